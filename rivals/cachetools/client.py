"""cachetools: what the operations of a job are on it."""

import math

import cachetools
from looped import LoopedClient
from subject import Subject

VERSION = cachetools.__version__


class Named:
    """Gives operations the names that the loops call: no call is added to reads and writes."""

    def delete(self, key):
        """Deletes a key if it is there."""
        self.pop(key, None)


class Cache(Named, cachetools.LRUCache):
    """An `LRUCache`."""

    set = cachetools.LRUCache.__setitem__


class ExpiringCache(Named, cachetools.TLRUCache):
    """A `TLRUCache`, whose entries live for `ttl` seconds from when they are written."""

    set = cachetools.TLRUCache.__setitem__

    def __init__(self, maxsize, getsizeof):
        super().__init__(maxsize, lambda _key, _value, now: now + self.ttl, getsizeof=getsizeof)
        self.ttl = math.inf

    def set_expiring(self, key, value):
        """Writes a value for one second."""
        self.ttl = 1
        self[key] = value
        self.ttl = math.inf


class Client(LoopedClient):
    """A cache bounded in bytes: an `LRUCache`, which knows no time, unless entries are to expire."""

    def __init__(self, room):
        self._keys = room.keys
        self._capacity_bytes = room.capacity_bytes
        self._kind = ExpiringCache if room.expires else Cache
        # It shows only values to the function that says how large an entry is.
        self._key_bytes = round(sum(map(len, room.keys)) / max(1, len(room.keys)))
        self.fresh()

    def fresh(self):
        """Replaces the cache by a new, empty one."""
        key_bytes = self._key_bytes
        self._cache = self._kind(self._capacity_bytes, lambda value: key_bytes + len(value))

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        self._cache.set_expiring(name, value)

    def counts(self):
        """How many entries there are, and the bytes by which it evicts."""
        return {"entries": len(self._cache), "charged_bytes": self._cache.currsize}

    def close(self, _keeps):
        """There is nothing to leave."""


SUBJECT = Subject("cachetools", VERSION, "cachetools.LRUCache: a dict of the process, bounded in bytes",
                  open=Client, is_kept=False)
