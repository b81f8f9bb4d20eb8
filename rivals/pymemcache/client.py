"""memcached by pymemcache, on a socket: what the operations of a job are on it."""

import os

import pymemcache
from job import JobError
from looped import show
from server import ServedClient, version
from subject import Subject

# The server's default limit of an item, and a generous bound of the bytes of an item without key and value.
ITEM_BYTES = 1 << 20
ITEM_MORE_BYTES = 1 << 10

VERSION = f"{version('memcached').removeprefix('memcached ')} (pymemcache {pymemcache.__version__})"


class Client(ServedClient):
    """The package's `Client`, with its own defaults."""

    def __init__(self, room):
        noreply = room.options.get("noreply", "yes")
        if noreply not in ("yes", "no"):
            raise JobError(f"unknown noreply '{noreply}' (known: yes, no)")
        self._options = {} if noreply == "yes" else {"default_noreply": False}
        super().__init__("memcached", room)

    def _command(self, room):
        mib = max(1, room.capacity_bytes >> 20)
        command = ["memcached", "-s", self.server.path, "-m", str(mib)]
        largest = ITEM_MORE_BYTES + max(map(len, room.keys), default=0) + max(room.sizes, default=0)
        # It refuses a limit of more than half of its memory.
        is_tiny = mib << 20 < 2 * ITEM_BYTES
        if is_tiny or largest > ITEM_BYTES:
            command += ["-I", str(max(largest, ITEM_BYTES // 2 if is_tiny else 0))]
        # It refuses to be root unless it is told.
        return command + ["-u", "root"] * (os.geteuid() == 0)

    def _connect(self):
        return pymemcache.Client(f"unix:{self.server.path}", **self._options)

    def get_many(self, keys, seen):
        """Reads keys by one request and shows the values found to `seen`; returns the number of misses."""
        names = [self._keys[key] for key in keys]
        return show(keys, map(self._cache.get_many(names).get, names), seen)

    def settle(self):
        """Waits until the server has done what needs no answer."""
        self._cache.version()

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, expire=1)

    def clear(self):
        """Removes all entries."""
        self._cache.flush_all(noreply=False)

    def counts(self):
        """Returns the number of entries, and the bytes that the server counts for them."""
        stats = self._cache.stats()
        return {"entries": stats[b"curr_items"], "charged_bytes": stats[b"bytes"]}


SUBJECT = Subject("pymemcache", VERSION, "memcached on a socket of this machine, asked by pymemcache",
                  open=Client, options=("noreply",), is_shared=True, is_kept=False)
