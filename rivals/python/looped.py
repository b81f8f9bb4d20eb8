"""The operations of a job on a cache with `get`, `set` and `delete`, one call for each key."""


class LoopedClient:
    """What clients of such caches are made of: they set `_cache`, and `_keys` by their numbers."""

    _cache = None
    _keys = ()

    def get(self, keys, seen):
        """Reads keys and shows what is found to `seen`; gives the number of misses."""
        get, names = self._cache.get, self._keys
        misses = 0
        for key in keys:
            value = get(names[key])
            if value is None:
                misses += 1
            else:
                seen(key, value)
        return misses

    def set(self, keys, values):
        """Writes the values of keys."""
        put, names = self._cache.set, self._keys
        for key in keys:
            put(names[key], values[key])

    def get_set(self, keys, values, seen):
        """Reads keys and writes those that are not there; gives their number."""
        get, put, names = self._cache.get, self._cache.set, self._keys
        misses = 0
        for key in keys:
            value = get(names[key])
            if value is None:
                misses += 1
                put(names[key], values[key])
            else:
                seen(key, value)
        return misses

    def delete(self, keys):
        """Deletes keys."""
        delete, names = self._cache.delete, self._keys
        for key in keys:
            delete(names[key])
