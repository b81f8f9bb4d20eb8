"""cachetools: what the operations of a job are on it."""

import cachetools
from looped import LoopedClient

VERSION = cachetools.__version__


class Cache(cachetools.LRUCache):
    """An `LRUCache` whose operations have the names that the loops call: no call is added to reads
    and writes."""

    set = cachetools.LRUCache.__setitem__

    def delete(self, key):
        """Deletes a key if it is there."""
        self.pop(key, None)


class Client(LoopedClient):
    """An `LRUCache` bounded in bytes."""

    def __init__(self, room):
        self._keys = room.keys
        self._capacity_bytes = room.capacity_bytes
        # It shows only values to the function that says how large an entry is.
        self._key_bytes = round(sum(map(len, room.keys)) / max(1, len(room.keys)))
        self.fresh()

    def fresh(self):
        """Replaces the cache by a new, empty one."""
        key_bytes = self._key_bytes
        self._cache = Cache(self._capacity_bytes, lambda value: key_bytes + len(value))

    def counts(self):
        """How many entries there are, and the bytes by which it evicts."""
        return {"entries": len(self._cache), "charged_bytes": self._cache.currsize}

    def close(self, _keeps):
        """There is nothing to leave."""
