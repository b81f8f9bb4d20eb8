"""A cache that is opened by a name and outlives its process, as a client of `looped` has it."""

from looped import LoopedClient


class KeptClient(LoopedClient):
    """What clients of such caches are made of: they `_begin` when they know how to `_open`
    it, and how to `_remove` what is on disk."""

    def _begin(self, room):
        """Opens what an earlier process left, or a new and empty one."""
        self._keys = room.keys
        if room.is_new:
            self._remove()
        self._cache = self._open()

    def fresh(self):
        """Replaces the cache by a new, empty one."""
        self._cache.close()
        self._remove()
        self._cache = self._open()

    def close(self, keeps):
        """Leaves what is on disk only if it `keeps` that."""
        self._cache.close()
        if not keeps:
            self._remove()

    def _open(self):
        """The cache of the package, new if nothing is there."""
        raise NotImplementedError

    def _remove(self):
        """Removes what is on disk, if there is anything."""
        raise NotImplementedError
