"""The operations of a job on a cache with `get`, `set` and `delete`, one call for each key."""

# Begins the name of the entry that is the lock of a key.
LOCK_PREFIX = b"lock:"


def show(keys, values, seen):
    """Shows the values of keys to `seen`, those that are `None` left out; returns their number."""
    misses = 0
    for key, value in zip(keys, values):
        if value is None:
            misses += 1
        else:
            seen(key, value)
    return misses


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

    def get_set(self, keys, values, seen, put=None):
        """Reads keys and writes those that are not there, or does something else with them by `put`;
        gives their number."""
        get, put, names = self._cache.get, put or self._cache.set, self._keys
        misses = 0
        for key in keys:
            value = get(names[key])
            if value is None:
                misses += 1
                put(names[key], values[key])
            else:
                seen(key, value)
        return misses

    def load(self, keys, values, seen, make):
        """Reads keys and makes the values of those that are not there; gives their number."""
        return self.get_set(keys, values, seen, make)

    def expire(self, keys, values):
        """Writes the values of keys, for one second."""
        put, names = self._set_expiring, self._keys
        for key in keys:
            put(names[key], values[key])

    def _set_expiring(self, name, value):
        """Writes a value for one second."""
        raise NotImplementedError

    def compute(self, key, computed):
        """Reads a key, or writes what `computed` gives: each that misses computes, where a cache has
        no call for that."""
        name = self._keys[key]
        value = self._cache.get(name)
        if value is None:
            value = computed()
            self._cache.set(name, value)
        return value

    def compute_locked(self, key, computed, lock):
        """Reads a key, or writes the value of `computed`, by one caller at a time: a caller that had to wait for the
        lock, which `lock` makes of its name, reads again."""
        cache, name = self._cache, self._keys[key]
        value = cache.get(name)
        if value is None:
            with lock(LOCK_PREFIX + name):
                value = cache.get(name)
                if value is None:
                    value = computed()
                    cache.set(name, value)
        return value

    def clear(self):
        """Removes all entries."""
        self._cache.clear()

    def delete(self, keys):
        """Deletes keys."""
        delete, names = self._cache.delete, self._keys
        for key in keys:
            delete(names[key])
