"""Functions whose results are remembered."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from haypile import _haypile, _identity, _keys
from haypile._flights import Call, is_coroutine_function, start
from haypile._types import MISSING, names_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from haypile._objects import Objects
    from haypile._types import Key, Ttl

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_Owner = TypeVar("_Owner")

# Keys that cache_clear deletes by one call.
_TOGETHER = 256


@functools.lru_cache(maxsize=1024)
def _group_of(prefix: str) -> str:
    """Returns the name of the group that has all results whose keys begin with a prefix, however long that is."""
    return f"memoize:{hashlib.blake2b(prefix.encode(), digest_size=16).hexdigest()}"


class CacheInfo(NamedTuple):
    """Calls of a function in this process; as of functools.lru_cache."""

    hits: int
    misses: int
    # The cache's, not the function's: a bound on bytes has no number of results.
    maxsize: None
    currsize: None


class Options(NamedTuple):
    """The arguments of Objects.memoize, with the cache of the results."""

    objects: Objects[Any]
    ttl: Ttl
    typed: bool
    key: Callable[..., Key] | None
    stale: float | None
    name: str | None
    groups: Iterable[Key] | Callable[..., Iterable[Key]]


class Decorator:
    """Makes memoized functions, with the options that memoize was called with."""

    def __init__(self, options: Options) -> None:
        if callable(options.ttl):
            raise TypeError("memoize is called to make a decorator: @objects.memoize(), with parentheses")
        self._options = options

    @overload
    def __call__(self, function: classmethod[_Owner, _P, _R]) -> classmethod[_Owner, _P, _R]: ...
    @overload
    def __call__(self, function: staticmethod[_P, _R]) -> staticmethod[_P, _R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[Concatenate[type[_Owner], _P], _R]) -> _OfClass[_Owner, _P, _R]: ...
    @overload
    def __call__(self, function: Callable[_P, _R]) -> Memoized[_P, _R]: ...

    def __call__(self, function: Any) -> Any:
        # These descriptors bind what they wrap: the memoized function gets the class as its argument.
        if isinstance(function, classmethod):
            return classmethod(self(function.__func__))
        if isinstance(function, staticmethod):
            return staticmethod(self(function.__func__))
        if isinstance(function, property):
            raise TypeError("memoize decorates a function: write @property above it")
        kind = _MemoizedCoroutine if is_coroutine_function(function) else Memoized
        return kind(function, self._options)


class Memoized(_haypile.Memoized, Generic[_P, _R]):
    """A function whose results are remembered."""

    # Those of the function.
    __name__: str
    __qualname__: str
    __wrapped__: Callable[_P, _R]
    _prefix = _identity.Prefix()

    def __init__(self, function: Callable[_P, _R], options: Options) -> None:
        functools.update_wrapper(self, function)
        if not hasattr(function, "__qualname__"):
            # It has no name of its own, such as a functools.partial.
            self.__name__ = self.__qualname__ = options.name or ""
        self.__wrapped__ = function
        self._objects, self._ttl, self._typed, self._key, self._stale, name, groups = options
        _identity.decorate(self, name)
        self._groups = groups if callable(groups) else names_of(groups)
        # What cache_clear invalidates.
        self._has_own_group = self._objects.cache._has_groups()

    if TYPE_CHECKING:

        def __call__(self, /, *args: _P.args, **named: _P.kwargs) -> _R: ...

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Memoized[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None
    ) -> BoundMemoized[_Q, _R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._bound(instance)

    def __reduce__(self) -> str:
        # As of any function: another process finds it by its name.
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<memoized function {self.__qualname__} over {self._objects!r}>"

    def cache_key(self, /, *args: _P.args, **named: _P.kwargs) -> str | bytes:
        """Returns the key of a call, by which the cache of its results deletes it: `objects.delete(f.cache_key(1))`."""
        if self._key is None:
            return self._prefix + _keys.of_call(self.__wrapped__, args, named, self._typed)
        key = self._key(*args, **named)
        if isinstance(key, str):
            return self._prefix + key
        if not isinstance(key, (bytes, bytearray, memoryview)):
            raise TypeError(f"key= returned {key!r}: a key is text or bytes, such as str(...) of it")
        return self._prefix.encode() + bytes(key)

    def _groups_of(self, /, *args: Any, **named: Any) -> tuple[Key, ...]:
        """Returns the groups of a call's result."""
        groups = names_of(self._groups(*args, **named)) if callable(self._groups) else self._groups
        return (*groups, _group_of(self._prefix)) if self._has_own_group else groups

    def cache_info(self) -> CacheInfo:
        """Returns the calls of this process."""
        hits, misses = self._counted()
        return CacheInfo(hits, misses, None, None)

    def cache_clear(self) -> None:
        """Forgets all results, for all processes, those of calls in progress too.

        Where the cache has no groups, such as on a server, it visits every key, and calls in progress store their results.
        """
        if self._has_own_group:
            self._objects.invalidate(_group_of(self._prefix))
            self._reset()
            return
        prefix = self._prefix.encode()
        mine = []
        for key in self._objects.cache:
            if key.startswith(prefix):
                mine.append(key)
            if len(mine) == _TOGETHER:
                self._objects.delete_many(mine)
                mine.clear()
        self._objects.delete_many(mine)
        self._reset()

    def _bound(self, instance: object) -> BoundMemoized[..., _R]:
        return BoundMemoized(self, instance)


if TYPE_CHECKING:

    class _OfClass(Memoized[Concatenate[type[_Owner], _Q], _R], Generic[_Owner, _Q, _R]):
        """A class method: type checkers do not see what classmethod does about what it wraps."""

        def __get__(self, instance: object, owner: type | None = None) -> BoundMemoized[_Q, _R]:  # type: ignore[override]
            ...


def _mark_coroutine_function(function: Any) -> None:
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(function)
    # For Python 3.11, which has no such mark: asyncio looks at this.
    function._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)


class _MemoizedCoroutine(Memoized[_P, _R]):
    """A coroutine function whose results are remembered."""

    def __init__(self, function: Callable[_P, _R], options: Options) -> None:
        super().__init__(function, options)
        _mark_coroutine_function(self)

    async def __call__(self, /, *args: Any, **named: Any) -> Any:  # type: ignore[override]
        objects = self._objects
        key = self.cache_key(*args, **named)
        started, groups = None, self._groups_of(*args, **named)
        if objects._lane is None:
            value, started = start(objects, key, self._ttl, self._stale, None, groups)
            if value is not MISSING:
                self._count(False)
                return value
        function = functools.partial(self.__wrapped__, *args, **named)
        call = Call(objects, key, self._ttl, function, self._stale, None, objects._lane, groups)
        value, is_computed = await call.value(started)
        self._count(is_computed)
        return value

    def _bound(self, instance: object) -> BoundMemoized[..., _R]:
        return _BoundCoroutine(self, instance)


class BoundMemoized(_haypile.BoundMemoized, Generic[_P, _R]):
    """A memoized function as the method of an object."""

    __name__: str
    __wrapped__: Callable[_P, _R]
    # A Memoized; as that type it would be a descriptor here.
    _memoized: Any

    def __init__(self, memoized: Memoized[..., _R], instance: object) -> None:
        functools.update_wrapper(self, memoized.__wrapped__)
        self._memoized = memoized
        self.__self__ = instance
        self.__wrapped__ = types.MethodType(memoized.__wrapped__, instance)

    if TYPE_CHECKING:

        def __call__(self, /, *args: _P.args, **named: _P.kwargs) -> _R: ...

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundMemoized):
            return NotImplemented
        return self.__self__ is other.__self__ and self._memoized is other._memoized

    def __hash__(self) -> int:
        return hash((id(self.__self__), id(self._memoized)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (getattr, (self.__self__, self.__name__))

    def cache_key(self, /, *args: _P.args, **named: _P.kwargs) -> str | bytes:
        """Returns the key of a call."""
        key: str | bytes = self._memoized.cache_key(self.__self__, *args, **named)
        return key

    def cache_info(self) -> CacheInfo:
        """Returns the calls of this process, of all objects."""
        info: CacheInfo = self._memoized.cache_info()
        return info

    def cache_clear(self) -> None:
        """Forgets all results, of all objects."""
        self._memoized.cache_clear()


class _BoundCoroutine(BoundMemoized[_P, _R]):
    """A memoized coroutine function as the method of an object."""

    def __init__(self, memoized: Memoized[..., _R], instance: object) -> None:
        super().__init__(memoized, instance)
        _mark_coroutine_function(self)

    async def __call__(self, /, *args: Any, **named: Any) -> Any:  # type: ignore[override]
        return await self._memoized(self.__self__, *args, **named)
