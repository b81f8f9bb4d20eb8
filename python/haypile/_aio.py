"""The operations of a cache for asyncio."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from haypile._cache import Cache
from haypile._objects import Objects
from haypile._threads import Lane, callable_from_thread, in_a_thread
from haypile._types import MISSING, Key, Ttl

_Result = TypeVar("_Result")

# Bytes of a value, and keys of one call, that a loop does not notice: they take less time than the way to another
# thread and back, about 50 us.
_SHORT_BYTES = 64 << 10
_FEW_KEYS = 256


class AsyncCache:
    """The operations of a Cache, or of Objects, as coroutines. It makes the Cache itself if it gets a URL or a path.

        cache = haypile.AsyncCache("file:~/.cache/app.haypile,size=512MiB")
        await cache.set("user:7", b"Ada", ttl=60)
        page = await cache.get_or_compute("page:/", 30, render)     # render may be a coroutine function

    Arguments, results and errors are those of the methods of the same names. Operations on short values, and on few
    keys, of `memory:` and `file:` run in the thread of the loop, because they take less time than to change threads. A
    write to a `file:` can wait there for a process that was stopped within a write, a second at most. All others run in
    other threads, 32 at the same time at most; computations, clear and close do not count as any of these.

    A task that is cancelled stops waiting; the operation itself goes on to its end.
    """

    __slots__ = ("_cache", "_is_local", "_lane")

    def __init__(self, cache: Cache | Objects | str | os.PathLike[str]) -> None:
        if isinstance(cache, str | os.PathLike):
            cache = Cache(cache)
        self._cache: Any = cache
        self._is_local = (cache.cache if isinstance(cache, Objects) else cache)._is_local()
        self._lane = Lane()

    @property
    def cache(self) -> Any:
        """The Cache, or the Objects, whose operations these are."""
        return self._cache

    async def get(self, key: Key, default: Any = None) -> Any:
        return await self._run(lambda: self._cache.get(key, default))

    async def get_many(self, keys: Iterable[Key]) -> Any:
        keys = list(keys)
        return await self._run(lambda: self._cache.get_many(keys), len(keys) <= _FEW_KEYS)

    async def set(self, key: Key, value: Any, ttl: Ttl = ...) -> None:
        await self._run(lambda: self._cache.set(key, value, ttl), _is_short(value))

    async def set_many(self, entries: Mapping[Key, Any] | Iterable[tuple[Key, Any]], ttl: Ttl = ...) -> None:
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        await self._run(lambda: self._cache.set_many(pairs, ttl), len(pairs) <= _FEW_KEYS)

    async def add(self, key: Key, value: Any, ttl: Ttl = ...) -> bool:
        return await self._run(lambda: bool(self._cache.add(key, value, ttl)), _is_short(value))

    async def replace(self, key: Key, value: Any, ttl: Ttl = ...) -> bool:
        return await self._run(lambda: bool(self._cache.replace(key, value, ttl)), _is_short(value))

    async def get_or_set(self, key: Key, default: Any, ttl: Ttl = ...) -> Any:
        return await self._run(lambda: self._cache.get_or_set(key, default, ttl), _is_short(default))

    async def pop(self, key: Key, *default: Any) -> Any:
        return await self._run(lambda: self._cache.pop(key, *default))

    async def delete(self, key: Key) -> bool:
        return await self._run(lambda: bool(self._cache.delete(key)))

    async def delete_many(self, keys: Iterable[Key]) -> int:
        keys = list(keys)
        return await self._run(lambda: int(self._cache.delete_many(keys)), len(keys) <= _FEW_KEYS)

    async def touch(self, key: Key, ttl: Ttl = ...) -> bool:
        return await self._run(lambda: bool(self._cache.touch(key, ttl)))

    async def ttl(self, key: Key) -> float | None:
        remaining: float | None = await self._run(lambda: self._cache.ttl(key))
        return remaining

    async def incr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        count: int | None = await self._run(lambda: self._cache.incr(key, delta, initial, ttl))
        return count

    async def decr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        count: int | None = await self._run(lambda: self._cache.decr(key, delta, initial, ttl))
        return count

    async def get_or_compute(
        self,
        key: Key,
        ttl: Ttl,
        function: Callable[[], Any],
        *,
        stale: float | None = None,
        early: float | None = None,
    ) -> Any:
        """As Cache.get_or_compute; `function` may be a coroutine function, which runs in this loop.

        A value that is there, and is neither stale nor due early, is found without another thread if the cache is local.
        """
        if self._is_local and stale is None and early is None:
            value = self._cache.get(key, MISSING)
            if value is not MISSING:
                return value
        function = callable_from_thread(function)
        return await in_a_thread(lambda: self._cache.get_or_compute(key, ttl, function, stale=stale, early=early))

    async def clear(self) -> None:
        await in_a_thread(self._cache.clear)

    async def close(self) -> None:
        await in_a_thread(self._cache.close)

    async def __aenter__(self) -> AsyncCache:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (AsyncCache, (self._cache,))

    def __repr__(self) -> str:
        return f"<haypile.AsyncCache over {self._cache!r}>"

    async def _run(self, operation: Callable[[], _Result], is_short: bool = True) -> _Result:
        return operation() if self._is_local and is_short else await in_a_thread(operation, self._lane)


def _is_short(value: Any) -> bool:
    # An object's size is known only once it is serialised, which may take long as well.
    return not isinstance(value, bytes | bytearray | memoryview | str) or len(value) < _SHORT_BYTES
