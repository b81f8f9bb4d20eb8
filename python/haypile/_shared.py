"""Objects that are returned again, without loading them, as long as their entries have not changed."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

from haypile._haypile import Error
from haypile._types import MISSING, Key

if TYPE_CHECKING:
    from haypile._objects import Objects

# Stored bytes for each object that may be kept: the bound on all of them together.
_MEAN_BYTES = 16 << 10


# A version, the object, and its stored bytes.
_Held: TypeAlias = tuple[int, Any, int]
# As Cache.get_versioned returns it.
_Found: TypeAlias = tuple[bytes, int | None] | None


class Shared:
    """The objects of at most `most` entries, and of at most 16 KiB of stored bytes for each of them, all in all.

    Those that were kept first leave first.
    """

    __slots__ = ("__weakref__", "_bytes", "_lock", "held", "most")

    def __init__(self, most: int) -> None:
        if type(most) is not int or most < 1:
            raise ValueError(f"share={most!r} is not a number of objects, such as share=1000")
        self.most = most
        self.held: dict[Key, _Held] = {}
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Keeps nothing any more."""
        self._lock = threading.Lock()
        self.held.clear()
        self._bytes = 0

    def get(self, objects: Objects[Any], key: Key, held: _Held | None, found: _Found) -> Any:
        """Returns the object of a key, or MISSING, after a look in which it was not as it is `held`, if it is."""
        if held is None:
            found = objects._cache.get_versioned(key)
        if found is None:
            self._drop(key)
            return MISSING
        data, version = found
        value = objects._loaded(key, data, MISSING)
        if value is MISSING or version is None:
            self._drop(key)
        else:
            self._keep(key, (version, value, len(data)))
        return value

    def found(self, objects: Objects[Any], key: Key) -> Any:
        """As Objects.get, for a caller that looks for itself where this finds nothing: a key without an entry counts as one miss."""
        try:
            if key not in self.held and key not in objects._cache:
                return MISSING
            return objects.get(key, MISSING)
        except Error:
            # A cache that fails is one without the entry: the caller finds out and counts it.
            return MISSING

    def _keep(self, key: Key, entry: _Held) -> None:
        with self._lock:
            self._forget_one(key)
            self.held[key] = entry
            self._bytes += entry[2]
            while len(self.held) > self.most or self._bytes > self.most * _MEAN_BYTES:
                self._forget_one(next(iter(self.held)))

    def _drop(self, key: Key) -> None:
        if key in self.held:
            with self._lock:
                self._forget_one(key)

    def _forget_one(self, key: Key) -> None:
        entry = self.held.pop(key, None)
        if entry is not None:
            self._bytes -= entry[2]


_all: weakref.WeakSet[Shared] = weakref.WeakSet()


def _forget_all() -> None:
    # A cache in memory is empty in a child, and begins with its versions again.
    for shared in list(_all):
        shared.forget()


os.register_at_fork(after_in_child=_forget_all)
