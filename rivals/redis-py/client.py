"""Redis by redis-py and hiredis, on a socket: what the operations of a job are on it."""

import re
from functools import partial
from importlib.metadata import version as package_version

import redis
from looped import show
from server import ServedClient, version
from subject import Subject

SERVER_VERSION, = re.search(r"v=([0-9.]+)", version("redis-server")).groups()
VERSION = f"{SERVER_VERSION} (redis-py {package_version('redis')}, hiredis {package_version('hiredis')})"

# A waiting caller asks for the lock this often; the default is 0.1.
LOCK_SLEEP_SECONDS = 0.001


class Client(ServedClient):
    """The package's `Redis`, with its own defaults."""

    def __init__(self, room):
        super().__init__("redis-server", room)
        if room.is_new:
            # It counts its own memory, without which a small cache would have no room.
            empty_bytes = self._cache.info("memory")["used_memory"]
            self._cache.config_set("maxmemory", empty_bytes + room.capacity_bytes)

    def _command(self, room):
        return ["redis-server", "--port", "0", "--unixsocket", self.server.path, "--save", "", "--appendonly", "no",
                "--maxmemory-policy", "allkeys-lru"]

    def _connect(self):
        return redis.Redis(unix_socket_path=self.server.path)

    def get_many(self, keys, seen):
        """Reads keys by one MGET and shows the values found to `seen`; returns the number of misses."""
        names = self._keys
        return show(keys, self._cache.mget([names[key] for key in keys]), seen)

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set(name, value, ex=1)

    def compute(self, key, computed):
        """Reads a key, or writes the value of `computed`, which one caller calls at a time."""
        return self.compute_locked(key, computed, partial(self._cache.lock, sleep=LOCK_SLEEP_SECONDS))

    def clear(self):
        """Removes all entries."""
        self._cache.flushall()

    def counts(self):
        """Returns the number of entries, and the bytes by which it evicts."""
        return {"entries": self._cache.dbsize(), "charged_bytes": self._cache.info("memory")["used_memory"]}


SUBJECT = Subject("redis-py", VERSION, "Redis on a socket of this machine, asked by redis-py with hiredis",
                  open=Client, is_shared=True, is_kept=False)
