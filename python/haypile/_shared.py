"""Objects that are returned again, without loading them, as long as their entries have not changed."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from haypile._types import MISSING, Key

if TYPE_CHECKING:
    from haypile._objects import Objects

# Stored bytes for each object that may be kept: the bound on all of them together.
_MEAN_BYTES = 16 << 10


class Shared:
    """The objects of at most `most` entries, and of at most 16 KiB of stored bytes for each of them, all in all.

    Those that were kept first leave first.
    """

    __slots__ = ("__weakref__", "_bytes", "_held", "_lock", "most")

    def __init__(self, most: int) -> None:
        if type(most) is not int or most < 1:
            raise ValueError(f"share={most!r} is not a number of objects, such as share=1000")
        self.most = most
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Keeps nothing any more."""
        self._lock = threading.Lock()
        # Versions, objects and stored bytes.
        self._held: dict[Key, tuple[int, Any, int]] = {}
        self._bytes = 0

    def get(self, objects: Objects[Any], key: Key) -> Any:
        """Returns the object of a key, or MISSING."""
        held = self._held.get(key)
        found: tuple[bytes | None, int | None] | None
        if held is None:
            found = objects._cache.get_versioned(key)
        else:
            found = objects._cache.get_if_changed(key, held[0])
            if found is not None and found[0] is None:
                return held[1]
        if found is None or found[0] is None:
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
        """As get, for a caller that looks for itself where this finds nothing: a key without an entry counts as one miss."""
        if key not in self._held and key not in objects._cache:
            return MISSING
        return self.get(objects, key)

    def _keep(self, key: Key, entry: tuple[int, Any, int]) -> None:
        with self._lock:
            self._forget_one(key)
            self._held[key] = entry
            self._bytes += entry[2]
            while len(self._held) > self.most or self._bytes > self.most * _MEAN_BYTES:
                self._forget_one(next(iter(self._held)))

    def _drop(self, key: Key) -> None:
        if key in self._held:
            with self._lock:
                self._forget_one(key)

    def _forget_one(self, key: Key) -> None:
        entry = self._held.pop(key, None)
        if entry is not None:
            self._bytes -= entry[2]


_all: weakref.WeakSet[Shared] = weakref.WeakSet()


def _forget_all() -> None:
    # A cache in memory is empty in a child, and begins with its versions again.
    for shared in list(_all):
        shared.forget()


os.register_at_fork(after_in_child=_forget_all)
