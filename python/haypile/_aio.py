"""The operations of a cache for asyncio."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from haypile._cache import Cache
from haypile._flights import Call, awaitable, start
from haypile._json import copied
from haypile._objects import Objects, default_of, is_little
from haypile._threads import Lane, in_a_thread
from haypile._types import MISSING, Key, Ttl, names_of

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

_V = TypeVar("_V")
_Default = TypeVar("_Default")
_Result = TypeVar("_Result")

# Keys of one call that a loop does not notice: they take less time than the way to another thread and back, some 50 us.
_FEW_KEYS = 256


class AsyncCache(Generic[_V]):
    """The operations of a Cache, or of Objects, as coroutines. It makes the Cache itself if it gets a URL or a path.

        cache = haypile.AsyncCache("file:~/.cache/app.haypile,size=512MiB")
        await cache.set("user:7", b"Ada", ttl=60)
        page = await cache.get_or_compute("page:/", 30, render)     # render may be a coroutine function

    Arguments, results and errors are those of the methods of the same names. Operations on short values, and on few
    keys, of `memory:` and `file:` run in the thread of the loop, because they take less time than to change threads. A
    write to a `file:` can wait there for a process that was stopped within a write, a second at most. All others run in
    other threads, 32 at the same time at most; clear, close and functions that are not coroutine functions do not count
    as any of these. JSON of more than 64 KiB is made and read there in pieces, so that the loop goes on; pickles and
    MessagePack keep it waiting while they are made or read.

    A task that is cancelled stops waiting; the operation itself goes on to its end.
    """

    __slots__ = ("_cache", "_is_local", "_lane")

    @overload
    def __init__(self: AsyncCache[bytes], cache: Cache | str | os.PathLike[str]) -> None: ...
    @overload
    def __init__(self, cache: Objects[_V]) -> None: ...

    def __init__(self, cache: Any) -> None:
        if isinstance(cache, str | os.PathLike):
            cache = Cache(cache)
        self._cache: Any = cache
        self._is_local = bool(cache._cache._is_local())
        self._lane = Lane()

    @property
    def cache(self) -> Any:
        """The Cache, or the Objects, whose operations these are."""
        return self._cache

    @overload
    async def get(self, key: Key) -> _V | None: ...
    @overload
    async def get(self, key: Key, default: _Default) -> _V | _Default: ...

    async def get(self, key: Key, default: Any = None) -> Any:
        """Returns the value of a key, or `default`."""
        if not self._is_local:
            return await self._elsewhere(lambda cache: cache.get(key, default))
        data = self._cache._cache._get_short(key)
        return default if data is None else await self._cache._loaded_in_loop(key, data, default)

    async def get_many(self, keys: Iterable[Key]) -> Any:
        """Returns the values of keys, as the method of the Cache or of the Objects does."""
        keys = list(keys)
        if not self._is_local or len(keys) > _FEW_KEYS:
            return await self._elsewhere(lambda cache: cache.get_many(keys))
        found = [self._cache._cache._get_short(key) for key in keys]
        if any(isinstance(data, memoryview) for data in found):
            found = await in_a_thread(lambda: [None if data is None else copied(data) for data in found], self._lane)
            if isinstance(self._cache, Objects):
                return await self._elsewhere(lambda cache: cache._all_loaded(keys, found))
        return self._cache._all_loaded(keys, found) if isinstance(self._cache, Objects) else found

    @overload
    async def set(
        self: AsyncCache[bytes], key: Key, value: Buffer, ttl: Ttl = ..., *, groups: Iterable[Key] = ()
    ) -> None: ...
    @overload
    async def set(self, key: Key, value: _V, ttl: Ttl = ..., *, groups: Iterable[Key] = ()) -> None: ...

    async def set(self, key: Key, value: Any, ttl: Ttl = ..., *, groups: Iterable[Key] = ()) -> None:
        """Writes a value, whether or not the key has one. The entry belongs to `groups`."""
        await self._run(lambda cache: cache.set(key, value, ttl, groups=groups), is_little(value))

    async def invalidate(self, group: Key) -> None:
        """Makes every entry of a group a miss, for all processes; as Cache.invalidate."""
        await self._run(lambda cache: cache.invalidate(group))

    async def set_many(
        self,
        entries: Mapping[Key, _V] | Iterable[tuple[Key, _V]],
        ttl: Ttl = ...,
        *,
        groups: Iterable[Key] = (),
    ) -> None:
        """Writes each value under its key. The entries belong to `groups`."""
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        are_few = len(pairs) <= _FEW_KEYS and all(is_little(value) for _, value in pairs)
        await self._run(lambda cache: cache.set_many(pairs, ttl, groups=groups), are_few)

    async def add(self, key: Key, value: _V, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has none; returns whether it did."""
        return await self._run(lambda cache: bool(cache.add(key, value, ttl)), is_little(value))

    async def replace(self, key: Key, value: _V, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has one; returns whether it did."""
        return await self._run(lambda cache: bool(cache.replace(key, value, ttl)), is_little(value))

    async def get_or_set(self, key: Key, default: _V, ttl: Ttl = ...) -> _V:
        """Returns the value of a key; writes `default` first if there is none."""
        value: _V = await self._run(lambda cache: cache.get_or_set(key, default, ttl), is_little(default))
        return value

    @overload
    async def pop(self, key: Key) -> _V: ...
    @overload
    async def pop(self, key: Key, default: _Default, /) -> _V | _Default: ...

    async def pop(self, key: Key, *default: Any) -> Any:
        """Deletes an entry and returns its value, or the default; raises KeyError without one."""
        is_short = True
        if self._is_local:
            # Looked at first, because to pop a long value takes long.
            found = self._cache._cache._get_short(key)
            if found is None:
                return default_of(key, default)
            is_short = isinstance(found, bytes)
        return await self._run(lambda cache: cache.pop(key, *default), is_short)

    async def delete(self, key: Key) -> bool:
        """Deletes an entry; returns whether there was one."""
        return await self._run(lambda cache: bool(cache.delete(key)))

    async def delete_many(self, keys: Iterable[Key]) -> int:
        """Deletes the entries of many keys; returns how many there were."""
        keys = list(keys)
        return await self._run(lambda cache: int(cache.delete_many(keys)), len(keys) <= _FEW_KEYS)

    async def touch(self, key: Key, ttl: Ttl = ...) -> bool:
        """Sets a new TTL for an entry, counted from now; returns whether there was one."""
        return await self._run(lambda cache: bool(cache.touch(key, ttl)))

    async def ttl(self, key: Key) -> float | None:
        """Returns the remaining life of an entry in seconds; None if it does not expire."""
        remaining: float | None = await self._run(lambda cache: cache.ttl(key))
        return remaining

    async def incr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        """Adds to a counter and returns the new number; as Cache.incr."""
        count: int | None = await self._run(lambda cache: cache.incr(key, delta, initial, ttl))
        return count

    async def decr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        """Subtracts from a counter and stops at zero; as Cache.decr."""
        count: int | None = await self._run(lambda cache: cache.decr(key, delta, initial, ttl))
        return count

    @overload
    async def get_or_compute(
        self,
        key: Key,
        ttl: Ttl,
        function: Callable[[], Awaitable[_Result]],
        *,
        stale: float | None = None,
        early: float | None = None,
        groups: Iterable[Key] = (),
    ) -> _Result: ...
    @overload
    async def get_or_compute(
        self,
        key: Key,
        ttl: Ttl,
        function: Callable[[], _Result],
        *,
        stale: float | None = None,
        early: float | None = None,
        groups: Iterable[Key] = (),
    ) -> _Result: ...

    async def get_or_compute(
        self,
        key: Key,
        ttl: Ttl,
        function: Callable[[], Any],
        *,
        stale: float | None = None,
        early: float | None = None,
        groups: Iterable[Key] = (),
    ) -> Any:
        """As Cache.get_or_compute; `function` may be a coroutine function, which runs in this loop. Any other function
        runs in another thread.

        The callers of this loop count as one: they share one computation, and its value or its exception. They block no
        thread. Loops, threads and processes wait for each other, and take over one at a time. If the loop stops or ends
        before its computation, others take over within a tenth of a second. A computation that asks for the key that it
        computes, directly or through others of the loop, gets ComputesItself.
        """
        started, groups = None, names_of(groups)
        if self._is_local:
            value, started = start(self._cache, key, ttl, stale, early, groups)
            if value is not MISSING:
                return value
        lane = None if self._is_local else self._lane
        call = Call(self._cache, key, ttl, awaitable(function), stale, early, lane, groups)
        value, _ = await call.value(started)
        return value

    async def clear(self) -> None:
        """Deletes every entry."""
        await in_a_thread(self._cache.clear)

    async def close(self) -> None:
        """Closes the cache."""
        await in_a_thread(self._cache.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (AsyncCache, (self._cache,))

    def __repr__(self) -> str:
        return f"<haypile.AsyncCache over {self._cache!r}>"

    async def _run(self, operation: Callable[[Any], _Result], is_little: bool = True) -> _Result:
        return operation(self._cache) if self._is_local and is_little else await self._elsewhere(operation)

    def _elsewhere(self, operation: Callable[[Any], _Result]) -> Awaitable[_Result]:
        return in_a_thread(lambda: operation(self._cache._in_pieces), self._lane)
