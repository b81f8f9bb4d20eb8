"""Leases that callers do not know of: of those who get, miss, ask elsewhere and set, by an interface that has no leases."""

from __future__ import annotations

import contextvars
import time
from typing import Any

from haypile._cache import Cache
from haypile._haypile import Error, Unsupported
from haypile._types import Key

# Keys whose last misses are remembered.
_MOST = 16

# Seconds after which a miss belongs to no later write: a writer that comes later knows something newer.
_LONGEST = 60.0


# Of each: the cache, the key, the lease, and when it was granted. Neither a list nor a dict that changes: tasks begin with
# what their makers have.
_noted: contextvars.ContextVar[tuple[tuple[int, Key, bytes, float], ...]] = contextvars.ContextVar(
    "haypile-misses", default=()
)


class Misses:
    """The leases of the last misses of a thread, or of a task, for its next writes of the same keys.

    A lease is taken right after the miss, before its caller asks elsewhere. If another thread or process deletes or
    writes the key in between, in whatever way, the write that follows is refused. A write of a key that was not
    missed, or a minute later, is not under a lease.
    """

    def __init__(self, cache: Cache, is_on: bool) -> None:
        self._cache = cache
        # Not where it was not asked for, nor over a cache without leases.
        self.is_on = is_on

    def note(self, key: Key) -> None:
        """Remembers that a key was missed."""
        if not self.is_on:
            return
        try:
            lease = self._cache.lease(key)
        except Unsupported:
            self.is_on = False
            return
        except Error:
            # It could not be written either.
            return
        place = (id(self._cache), key)
        others = [noted for noted in _noted.get() if noted[:2] != place]
        _noted.set((*others[1 - _MOST :], (*place, lease, time.monotonic())))

    def lease(self, key: Key) -> bytes | None:
        """Returns the lease of the last miss of a key, once; None if there is none."""
        noted, place = _noted.get(), (id(self._cache), key)
        for found in noted:
            if found[:2] == place:
                _noted.set(tuple(other for other in noted if other is not found))
                return found[2] if time.monotonic() - found[3] < _LONGEST else None
        return None
