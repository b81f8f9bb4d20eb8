"""Parts that the modules for other libraries share."""

from __future__ import annotations

import os
import threading
from typing import Any

from haypile._cache import Cache
from haypile._haypile import Busy, NotACounter
from haypile._objects import ATTEMPTS, Objects
from haypile._types import MISSING, Ttl

# One more than the largest number of the engine's counters, which wrap around to 0.
_COUNTER_END = 1 << 64

_opened: dict[str, Cache] = {}
_opening = threading.Lock()


def shared(url: str | os.PathLike[str]) -> Cache:
    """Returns the cache of a URL that all threads of this process share; opens it first if needed."""
    name = os.fspath(url)
    cache = _opened.get(name)
    if cache is None or cache.closed:
        with _opening:
            cache = _opened.get(name)
            if cache is None or cache.closed:
                cache = _opened[name] = Cache(url)
    return cache


def _renew_lock() -> None:
    # Another thread of the parent may have held it, and does not exist in the child.
    global _opening
    _opening = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def count(objects: Objects[Any], key: str, delta: Any, *, initial: int | None = None, ttl: Ttl = ...) -> Any:
    """Adds to a number, whose TTL stays, and returns the sum.

    A missing number counts as `initial` and has the TTL `ttl`; without `initial`, the result is None.

    The engine's counters hold 64 bits without a sign. A step up is one of their operations; a step down, which
    they end at 0, and all other numbers are compared and swapped. Both are atomic. Over a server without versions,
    such as Redis, a step down is the counters' if their number is large enough, and others may lose one another.
    """
    cache = objects.cache
    if type(delta) is int and 0 <= delta < _COUNTER_END:
        try:
            number = cache.incr(key, delta)
        except NotACounter:
            number = None
        if number is not None:
            if number >= delta:
                return number
            # It has wrapped around.
            delta = _COUNTER_END
    for _ in range(ATTEMPTS):
        found = cache.get_versioned(key)
        value = MISSING if found is None else objects._loaded(key, found[0], MISSING)
        if value is MISSING:
            if initial is None:
                return None
            if objects.add(key, initial + delta, ttl):
                return initial + delta
            continue
        total = value + delta
        try:
            left = cache.ttl(key)
        except KeyError:
            continue
        if left is not None and left <= 0:
            continue
        assert found is not None
        if found[1] is None:
            if type(value) is type(delta) is int and delta < 0 <= total < _COUNTER_END:
                number = cache.decr(key, -delta)
                if number is not None:
                    return number
                continue
            objects.set(key, total, left)
            return total
        if cache.cas(key, objects._dumped(key, total), found[1], left):
            return total
    raise Busy(f"others have changed the number under {key!r} in {cache.url} {ATTEMPTS} times; try again")
