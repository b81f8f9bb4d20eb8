"""Storage of the package `limits`: rate limits that all threads and processes share.

Importing this module registers the schemes:

    import haypile.limits
    from limits.storage import storage_from_string

    storage = storage_from_string("haypile+file:///var/tmp/limits.haypile?size=16MiB")
    storage = storage_from_string("async+haypile+file:///var/tmp/limits.haypile?size=16MiB")
"""

from __future__ import annotations

import asyncio
import math
import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import limits.aio.storage as aio
from limits.aio.storage.base import SlidingWindowCounterSupport as AsyncSlidingWindowCounterSupport
from limits.errors import ConfigurationError
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from limits.storage.base import TimestampedSlidingWindow

from haypile._cache import Cache
from haypile._haypile import Busy, Error

_Result = TypeVar("_Result")

# The URL's schemes behind `haypile+`. Servers have storages in `limits` itself.
_SCHEMES = ("file", "memory")

# All keys begin with it, so that `reset` leaves the entries of others alone.
_PREFIX = "limits:"

# Attempts to change an entry that others change as well. Each lost attempt is another's success.
_ATTEMPTS = 1000

# Lost attempts after which a caller pauses before each of the next.
_EAGER_ATTEMPTS = 4

# The longest pause in seconds.
_PAUSE = 0.001

# Times of hits that an entry of a moving window holds exactly. It rounds further ones up to that part of the
# window, so that the entry stays below 40 KiB.
_EXACT_HITS = 1024

# Seconds that the entry of a moving window outlives its last hit, so that it does not expire before the hits do.
_TTL_MARGIN = 1.0

# A time and the number of hits at it.
_HITS = struct.Struct("<dQ")

# The number of a window, its hits, and those of the window before.
_WINDOWS = struct.Struct("<qQQ")


class _Limits:
    """The operations on a cache. Those that can lose a race are attempts: they return None if they did."""

    def __init__(self, uri: str | None) -> None:
        url = (uri or "").removeprefix("async+").removeprefix("haypile+")
        self.cache = Cache(url)
        schemes = self.cache._schemes()
        if len(schemes) != 1 or schemes[0] not in _SCHEMES:
            self.cache.close()
            raise ConfigurationError(f"rate limits need one level, file or memory, which '{self.cache.url}' is not")

    def incr(self, key: str, expiry: float, amount: int) -> int:
        count = self.cache.incr(_counter(key), amount, 0, expiry)
        assert count is not None, "there is an initial number"
        return count

    def get(self, key: str) -> int:
        return int(self.cache.get(_counter(key), b"0"))

    def get_expiry(self, key: str) -> float:
        try:
            return time.time() + (self.cache.ttl(_counter(key)) or 0.0)
        except KeyError:
            return time.time()

    def check(self) -> bool:
        try:
            self.cache.set(_PREFIX + "check", b"", 1)
            return True
        except Error:
            return False

    def clear(self, key: str) -> None:
        self.cache.delete_many([_counter(key), _moving(key)])

    def reset(self) -> int:
        prefix = _PREFIX.encode()
        return self.cache.delete_many([key for key in self.cache if key.startswith(prefix)])

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int) -> bool | None:
        name = _moving(key)
        found = self.cache.get_versioned(name)
        # Read after the entry, so that it is not before the times in it.
        now = time.time()
        hits = _hits_since(found, now - expiry)
        if sum(count for _, count in hits) + amount > limit:
            return False
        at = now
        if len(hits) >= _EXACT_HITS:
            # Up, so that a hit counts for too long rather than too short a time.
            step = expiry / _EXACT_HITS
            at = math.ceil(now / step) * step
        if hits and hits[-1][0] >= at:
            hits[-1] = (hits[-1][0], hits[-1][1] + amount)
        else:
            hits.append((at, amount))
        data = b"".join(_HITS.pack(*hit) for hit in hits)
        return self._write(name, data, found, expiry + hits[-1][0] - now + _TTL_MARGIN) or None

    def get_moving_window(self, key: str, expiry: int) -> tuple[float, int]:
        found = self.cache.get_versioned(_moving(key))
        now = time.time()
        hits = _hits_since(found, now - expiry)
        return (hits[0][0] if hits else now), sum(count for _, count in hits)

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int) -> bool | None:
        name = _sliding(key, expiry)
        found = self.cache.get_versioned(name)
        now = time.time()
        number, current, previous = _windows_at(found, now, expiry)
        weighted = previous * _previous_ttl(now, expiry) / expiry + current
        if math.floor(weighted) + amount > limit:
            return False
        data = _WINDOWS.pack(number, current + amount, previous)
        return self._write(name, data, found, 2 * expiry) or None

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        found = self.cache.get_versioned(_sliding(key, expiry))
        now = time.time()
        _, current, previous = _windows_at(found, now, expiry)
        previous_ttl = _previous_ttl(now, expiry) if previous else 0.0
        return previous, previous_ttl, current, _previous_ttl(now, expiry) + expiry

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self.cache.delete(_sliding(key, expiry))

    def _write(self, name: str, data: bytes, found: tuple[bytes, int | None] | None, ttl: float) -> bool:
        """Writes an entry if it is still as it was found."""
        if found is None:
            return self.cache.add(name, data, ttl)
        assert found[1] is not None, "files and memory have versions"
        return self.cache.cas(name, data, found[1], ttl)


class _OverCache:
    """The parts of a storage that are the same where it is awaited."""

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)  # type: ignore[call-arg]
        self._limits = _Limits(uri)

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        """The exceptions that are wrapped in StorageError if `wrap_exceptions`."""
        return Error

    @property
    def cache(self) -> Cache:
        """The cache of the counters."""
        return self._limits.cache


class HaypileStorage(
    _OverCache, Storage, MovingWindowSupport, SlidingWindowCounterSupport, TimestampedSlidingWindow
):
    """Storage of `limits` over a `file:` cache, which processes share, or a `memory:` cache.

    Counters are entries of the cache. It has to be large enough not to evict them: an evicted counter begins
    again from zero.
    """

    STORAGE_SCHEME = [f"haypile+{scheme}" for scheme in _SCHEMES]

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Adds to the counter of a fixed window, which expires `expiry` seconds after its first hit."""
        return self._limits.incr(key, expiry, amount)

    def get(self, key: str) -> int:
        """Returns the hits of a fixed window."""
        return self._limits.get(key)

    def get_expiry(self, key: str) -> float:
        """Returns the time at which a fixed window ends."""
        return self._limits.get_expiry(key)

    def check(self) -> bool:
        """Returns whether the cache can be written."""
        return self._limits.check()

    def reset(self) -> int | None:
        """Deletes the counters of all limits, and no other entries. Returns how many there were."""
        return self._limits.reset()

    def clear(self, key: str) -> None:
        """Deletes the fixed and the moving window of a key."""
        self._limits.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds hits to a moving window, unless it would have more than `limit`. Returns whether it did."""
        return _retried(lambda: self._limits.acquire_entry(key, limit, expiry, amount))

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns the time of the first hit in a moving window, and how many hits there are."""
        return self._limits.get_moving_window(key, expiry)

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds hits to the current window, unless the weighted count would exceed `limit`."""
        return _retried(lambda: self._limits.acquire_sliding_window_entry(key, limit, expiry, amount))

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Returns the hits of the previous window and its remaining time, and those of the current one."""
        return self._limits.get_sliding_window(key, expiry)

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Deletes the previous and the current window of a key."""
        self._limits.clear_sliding_window(key, expiry)


class AsyncHaypileStorage(
    _OverCache,
    aio.Storage,
    aio.MovingWindowSupport,
    AsyncSlidingWindowCounterSupport,
    TimestampedSlidingWindow,
):
    """As HaypileStorage, for limits.aio.

    The operations run in the event loop: they take less time than it takes to reach a thread.
    """

    STORAGE_SCHEME = [f"async+haypile+{scheme}" for scheme in _SCHEMES]

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """As HaypileStorage.incr."""
        return self._limits.incr(key, expiry, amount)

    async def get(self, key: str) -> int:
        """As HaypileStorage.get."""
        return self._limits.get(key)

    async def get_expiry(self, key: str) -> float:
        """As HaypileStorage.get_expiry."""
        return self._limits.get_expiry(key)

    async def check(self) -> bool:
        """As HaypileStorage.check."""
        return self._limits.check()

    async def reset(self) -> int | None:
        """As HaypileStorage.reset."""
        return self._limits.reset()

    async def clear(self, key: str) -> None:
        """As HaypileStorage.clear."""
        self._limits.clear(key)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """As HaypileStorage.acquire_entry."""
        return await _retried_async(lambda: self._limits.acquire_entry(key, limit, expiry, amount))

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """As HaypileStorage.get_moving_window."""
        return self._limits.get_moving_window(key, expiry)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """As HaypileStorage.acquire_sliding_window_entry."""
        return await _retried_async(lambda: self._limits.acquire_sliding_window_entry(key, limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """As HaypileStorage.get_sliding_window."""
        return self._limits.get_sliding_window(key, expiry)

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        """As HaypileStorage.clear_sliding_window."""
        self._limits.clear_sliding_window(key, expiry)


def _counter(key: str) -> str:
    return f"{_PREFIX}fixed:{key}"


def _moving(key: str) -> str:
    return f"{_PREFIX}moving:{key}"


def _sliding(key: str, expiry: int) -> str:
    return f"{_PREFIX}sliding:{expiry}:{key}"


def _hits_since(found: tuple[bytes, int | None] | None, oldest: float) -> list[tuple[float, int]]:
    """Returns the hits in a moving window, oldest first."""
    return [hit for hit in _HITS.iter_unpack(found[0]) if hit[0] >= oldest] if found else []


def _windows_at(found: tuple[bytes, int | None] | None, now: float, expiry: int) -> tuple[int, int, int]:
    """Returns the number of the current window, its hits, and those of the window before."""
    number = int(now / expiry)
    if found is None:
        return number, 0, 0
    written, current, previous = _WINDOWS.unpack(found[0])
    if written >= number:
        # Later only if the clock was set back: the window lasts until the clock is there again.
        return written, current, previous
    return number, 0, current if written == number - 1 else 0


def _previous_ttl(now: float, expiry: int) -> float:
    """Returns the seconds until the end of the current window, for which the previous one still counts."""
    return (1 - (now / expiry) % 1) * expiry


def _pauses() -> Iterator[float]:
    """Yields the pause after each lost attempt; raises Busy after the last."""
    for attempt in range(_ATTEMPTS):
        yield 0.0 if attempt < _EAGER_ATTEMPTS else random.uniform(0, _PAUSE)
    raise Busy(f"others changed a rate limit in each of {_ATTEMPTS} attempts to change it: try again")


def _retried(attempt: Callable[[], _Result | None]) -> _Result:
    pauses = _pauses()
    while (result := attempt()) is None:
        pause = next(pauses)
        if pause:
            time.sleep(pause)
    return result


async def _retried_async(attempt: Callable[[], _Result | None]) -> _Result:
    pauses = _pauses()
    while (result := attempt()) is None:
        await asyncio.sleep(next(pauses))
    return result
