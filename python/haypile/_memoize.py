"""Functions whose results are remembered."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from haypile import _identity, _keys
from haypile._haypile import Calls
from haypile._threads import callable_from_thread, in_a_thread
from haypile._types import MISSING

if TYPE_CHECKING:
    from haypile._types import Key, Ttl
    from haypile._objects import Objects

# Keys that cache_clear deletes by one call.
_TOGETHER = 256


class CacheInfo(NamedTuple):
    """Calls of a function in this process; as of functools.lru_cache."""

    hits: int
    misses: int
    # The cache's, not the function's: a bound on bytes has no number of results.
    maxsize: None
    currsize: None


def memoizer(
    objects: Objects,
    ttl: Ttl,
    typed: bool,
    key: Callable[..., Key] | None,
    stale: float | None,
    name: str | None,
) -> Callable[[Callable[..., Any]], Any]:
    """Returns the decorator."""
    if callable(ttl):
        raise TypeError("memoize is called to make a decorator: @objects.memoize(), with parentheses")

    def decorate(function: Callable[..., Any]) -> Any:
        # These descriptors bind what they wrap: the memoized function gets the class as its argument.
        if isinstance(function, classmethod):
            return classmethod(decorate(function.__func__))
        if isinstance(function, staticmethod):
            return staticmethod(decorate(function.__func__))
        if isinstance(function, property):
            raise TypeError("memoize decorates a function: write @property above it")
        kind = _MemoizedCoroutine if inspect.iscoroutinefunction(function) else _Memoized
        return kind(objects, function, ttl, typed, key, stale, name)

    return decorate


class _Memoized:
    """A function whose results are remembered."""

    # Those of the function.
    __name__: str
    __qualname__: str
    _prefix = _identity.Prefix()

    def __init__(
        self,
        objects: Objects,
        function: Callable[..., Any],
        ttl: Ttl,
        typed: bool,
        key: Callable[..., Key] | None,
        stale: float | None,
        name: str | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._objects = objects
        self._ttl = ttl
        self._typed = typed
        self._key = key
        self._stale = stale
        _identity.decorate(self, name)
        self._calls = Calls()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else _Bound(self, instance)

    def __reduce__(self) -> str:
        # As of any function: another process finds it by its name.
        return self.__qualname__

    def __call__(self, *args: Any, **named: Any) -> Any:
        computed = False

        def compute() -> Any:
            nonlocal computed
            computed = True
            return self.__wrapped__(*args, **named)

        key = self.cache_key(*args, **named)
        value = self._objects.get_or_compute(key, self._ttl, compute, stale=self._stale)
        self._calls.count(computed)
        return value

    def cache_key(self, *args: Any, **named: Any) -> str | bytes:
        """Returns the key of a call."""
        if self._key is None:
            return self._prefix + _keys.of_call(self.__wrapped__, args, named, self._typed)
        key = self._key(*args, **named)
        if isinstance(key, str):
            return self._prefix + key
        if not isinstance(key, (bytes, bytearray, memoryview)):
            raise TypeError(f"key= returned {key!r}: a key is text or bytes, such as str(...) of it")
        return self._prefix.encode() + bytes(key)

    def cache_info(self) -> CacheInfo:
        """Returns the calls of this process."""
        hits, misses = self._calls.counted()
        return CacheInfo(hits, misses, None, None)

    def cache_clear(self) -> None:
        """Forgets all results, for all processes; it visits every key of the cache."""
        prefix = self._prefix.encode()
        mine = []
        for key in self._objects.cache:
            if key.startswith(prefix):
                mine.append(key)
            if len(mine) == _TOGETHER:
                self._objects.delete_many(mine)
                mine.clear()
        self._objects.delete_many(mine)
        self._calls.reset()


def _mark_coroutine_function(function: Any) -> None:
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(function)
    # For Python 3.11, which has no such mark: asyncio looks at this.
    function._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)


class _MemoizedCoroutine(_Memoized):
    """A coroutine function whose results are remembered."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        _mark_coroutine_function(self)

    async def __call__(self, *args: Any, **named: Any) -> Any:
        key = self.cache_key(*args, **named)
        if self._stale is None and self._objects.cache._is_local():
            value = self._objects.get(key, MISSING)
            if value is not MISSING:
                self._calls.count(False)
                return value
        call = callable_from_thread(self.__wrapped__)
        computed = False

        def compute() -> Any:
            nonlocal computed
            computed = True
            return call(*args, **named)

        def get() -> Any:
            return self._objects.get_or_compute(key, self._ttl, compute, stale=self._stale)

        value = await in_a_thread(get)
        self._calls.count(computed)
        return value


class _Bound:
    """A method: the function with its object."""

    __name__: str

    def __init__(self, memoized: _Memoized, instance: object) -> None:
        functools.update_wrapper(self, memoized.__wrapped__)
        self._memoized = memoized
        self.__self__ = instance
        self.__wrapped__ = memoized.__wrapped__.__get__(instance)
        if isinstance(memoized, _MemoizedCoroutine):
            _mark_coroutine_function(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (getattr, (self.__self__, self.__name__))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._memoized(self.__self__, *args, **named)

    def cache_key(self, *args: Any, **named: Any) -> str | bytes:
        """Returns the key of a call."""
        return self._memoized.cache_key(self.__self__, *args, **named)

    def cache_info(self) -> CacheInfo:
        """Returns the calls of this process, of all objects."""
        return self._memoized.cache_info()

    def cache_clear(self) -> None:
        """Forgets all results, of all objects."""
        self._memoized.cache_clear()
