"""Python's own caches, a dict and functools.lru_cache: what the operations of a job are on them."""

import functools
import platform

from job import CLEAR, COMPUTE, DELETE, EXPIRE, FRESH, GETSET, SET, JobError
from looped import LoopedClient
from subject import Subject

VERSION = platform.python_version()


class Dict(dict):
    """A dict. It gives operations the names that the loops call: no call is added to reads and writes."""

    set = dict.__setitem__

    def delete(self, key):
        """Deletes a key if it is there."""
        self.pop(key, None)


class DictClient(LoopedClient):
    """A dict, which evicts nothing."""

    def __init__(self, room):
        needed_bytes = sum(room.written_sizes) + sum(map(len, room.keys))
        if needed_bytes > room.capacity_bytes:
            raise JobError(f"a dict evicts nothing, and does no job of {needed_bytes} bytes with a capacity of "
                           f"{room.capacity_bytes}; ask for dict:room=N")
        self._keys = room.keys
        self.fresh()

    def fresh(self):
        """Replaces the dict by a new, empty one."""
        self._cache = Dict()

    def counts(self):
        """Returns the number of entries."""
        return {"entries": len(self._cache)}

    def close(self, _keeps):
        """There is nothing to leave."""


class Absent(Exception):
    """A value that the decorated function does not have."""


def absent(_key):
    """Raises the error of a value that is not there, which `lru_cache` does not remember."""
    raise Absent


class LruClient:
    """A function that is decorated with `lru_cache`: every operation calls it.

    `_function` makes what the cache lacks, of the number of the key, which is `_key` until the function was called.
    """

    def __init__(self, room):
        # Of a text alone it makes no tuple.
        self._keys = texts(room.keys)
        self._entries = room.capacity_entries
        self._function, self._key = absent, None
        self.fresh()

    def fresh(self):
        """Replaces the function by a new one, which has remembered nothing."""
        def made(_name):
            key, self._key = self._key, None
            return self._function(key)

        self._call = functools.lru_cache(self._entries)(made)

    def get(self, keys, seen):
        """Reads keys and shows the values found to `seen`; returns the number of misses."""
        call, names = self._call, self._keys
        self._function = absent
        misses = 0
        for key in keys:
            try:
                value = call(names[key])
            except Absent:
                misses += 1
            else:
                seen(key, value)
        return misses

    def set(self, keys, values):
        """Has the values of keys remembered that are not there."""
        call, names = self._call, self._keys
        self._function = values.__getitem__
        before = call.cache_info().misses
        for key in keys:
            self._key = key
            call(names[key])
        if call.cache_info().misses != before + len(keys):
            raise JobError("lru_cache has a value already, and cannot replace it")

    def get_set(self, keys, values, seen):
        """Reads keys and has the values remembered that are not there; returns their number."""
        call, names = self._call, self._keys
        self._function = values.__getitem__
        misses = 0
        for key in keys:
            self._key = key
            value = call(names[key])
            if self._key is None:
                misses += 1
            else:
                seen(key, value)
        return misses

    def load(self, keys, values, seen, make):
        """Reads keys and makes the values of those that are not there; returns their number."""
        call, names = self._call, self._keys
        self._function = absent
        misses = 0
        for key in keys:
            try:
                value = call(names[key])
            except Absent:
                misses += 1
                make(key, values[key])
            else:
                seen(key, value)
        return misses

    def compute(self, key, computed):
        """Calls the function, which calls `computed` if it has not remembered the result."""
        self._function = lambda _key: computed()
        return self._call(self._keys[key])

    def clear(self):
        """Removes all entries."""
        self._call.cache_clear()

    def counts(self):
        """Returns the number of entries, by which it evicts."""
        return {"entries": self._call.cache_info().currsize}

    def close(self, _keeps):
        """There is nothing to leave."""


def texts(keys):
    """Returns the keys as text, or as they are if one of them is not text."""
    try:
        return [key.decode() for key in keys]
    except UnicodeDecodeError:
        return keys


def check(prepare, timed, repetitions):
    """Refuses what a decorated function cannot do: deleting a result, and replacing one."""
    written = set()
    for runs in (prepare, *[timed] * repetitions):
        for operation, operands in runs:
            if operation == DELETE:
                raise JobError("lru_cache cannot do DELETE: it has no call that removes one result")
            if operation in (FRESH, CLEAR):
                written.clear()
            elif operation in (GETSET, COMPUTE):
                written.update(operands)
            elif operation in (SET, EXPIRE):
                count = len(written)
                written.update(operands)
                if len(written) != count + len(operands):
                    raise JobError("lru_cache cannot do SET of a key that was written before: it has no call that "
                                   "replaces a result")


SUBJECTS = (
    Subject("dict", VERSION, "a dict of Python, without a bound", open=DictClient, is_kept=False, has_ttl=False),
    Subject("lru_cache", VERSION, "functools.lru_cache: a function that remembers results, bounded in entries",
            open=LruClient, is_kept=False, has_ttl=False, check=check),
)
