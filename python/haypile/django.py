"""A cache backend for Django.

    CACHES = {
        "default": {
            "BACKEND": "haypile.django.HaypileCache",
            "LOCATION": "file:/var/cache/app.haypile,size=512MiB",
        }
    }
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django import conf
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache, InvalidCacheBackendError
from django.core.exceptions import SynchronousOnlyOperation
from django.utils.crypto import salted_hmac

from haypile._adapters import count, shared
from haypile._cache import REFUSALS
from haypile._flights import Call, start
from haypile._haypile import ComputesItself, _redacted
from haypile._misses import Misses
from haypile._objects import Objects
from haypile._types import MISSING

_P = ParamSpec("_P")
_R = TypeVar("_R")

_OPTIONS = frozenset(("leases", "serializer", "sign"))

# Options of Django's own backends that bound the number of entries.
_CULLING = frozenset(("MAX_ENTRIES", "CULL_FREQUENCY"))


class HaypileCache(BaseCache):
    """A cache backend over the Haypile cache whose URL is LOCATION.

    KEY_PREFIX, VERSION, KEY_FUNCTION and TIMEOUT are Django's. Every entry has a timeout from Django, so `ttl=` of
    the URL has no effect. MAX_ENTRIES and CULL_FREQUENCY are ignored: `size=` of the URL bounds the cache in bytes.

    OPTIONS are `serializer`, one of haypile.Objects ("pickle" by default), `sign` (True by default) and `leases`.
    With `leases`, a `set` that follows a miss of `get` in the same thread or task, within a minute, is refused if somebody has
    deleted or written the key in between: what was asked for before a deletion does not come back after it. It costs
    a lookup per miss. Over a server with `leases=no` it does nothing.
    With `sign`, each value carries a signature by a key that is derived from SECRET_KEY, and an entry without a
    valid one, by this key or by one of SECRET_KEY_FALLBACKS, is a miss. Integers from 0 to 2**64 - 1 are stored as digits, not signed, so that incr is
    atomic. A `file:` cache of pickles has to belong to this user and to have mode 0600, signed or not; otherwise
    this raises haypile.UnsafePickle.

    All threads of a process share one opened cache for each LOCATION. Django calls close() at the end of each
    request; it leaves that cache open.

    A value that the cache refuses, because it is too large or another process holds a lock, is not stored: the cache
    counts that in its stats, and set deletes the entry under the key.
    get_or_set and aget_or_set with a callable compute once for all threads and processes that ask at the same time.
    aget_or_set calls it in the event loop's thread, and awaits the result of a coroutine function. The async methods run in the event loop's thread where the cache is local, and otherwise in another
    thread, as does the pickling of a QuerySet.
    """

    def __init__(self, location: str | os.PathLike[str], params: dict[str, Any]) -> None:
        super().__init__(params)
        options = params.get("OPTIONS") or {}
        unknown = sorted(set(options) - _OPTIONS - _CULLING)
        if unknown:
            raise InvalidCacheBackendError(
                f"unknown option {unknown[0]!r} in OPTIONS of {_redacted(os.fspath(location))}"
                f" (known: {', '.join(sorted(_OPTIONS))})"
            )
        secrets = None
        if options.get("sign", True):
            secrets = [_derived(key) for key in (conf.settings.SECRET_KEY, *conf.settings.SECRET_KEY_FALLBACKS)]
        self._objects = Objects(shared(location), options.get("serializer", "pickle"), sign=secrets)
        self._is_local = self._objects.cache._is_local()
        self._misses = Misses(self._objects.cache, bool(options.get("leases")))

    def get_backend_timeout(self, timeout: float | None = DEFAULT_TIMEOUT) -> float | None:
        """Returns seconds, of which 0 or less mean that the entry expires at once; None for no expiry."""
        return self.default_timeout if timeout == DEFAULT_TIMEOUT else timeout

    def add(self, key: Any, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        made = self.make_and_validate_key(key, version)
        ttl = self.get_backend_timeout(timeout)
        if _is_past(ttl):
            return self._objects.get(made, MISSING) is MISSING
        try:
            return self._objects.add(made, value, ttl)
        except REFUSALS:
            return False

    def get(self, key: Any, default: Any | None = None, version: int | None = None) -> Any:
        made = self.make_and_validate_key(key, version)
        value = self._objects.get(made, MISSING)
        if value is not MISSING:
            return value
        self._misses.note(made)
        return default

    def set(self, key: Any, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._set(self.make_and_validate_key(key, version), value, self.get_backend_timeout(timeout))

    def touch(self, key: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        made = self.make_and_validate_key(key, version)
        ttl = self.get_backend_timeout(timeout)
        if _is_past(ttl):
            return self._objects.delete(made)
        # An entry that get does not return is not there for touch.
        return self._objects.get(made, MISSING) is not MISSING and self._objects.touch(made, ttl)

    def delete(self, key: Any, version: int | None = None) -> bool:
        return self._objects.delete(self.make_and_validate_key(key, version))

    def get_many(self, keys: Iterable[Any], version: int | None = None) -> dict[Any, Any]:
        made = {key: self.make_and_validate_key(key, version) for key in keys}
        found = self._objects.get_many(made.values())
        for name in made.values():
            if name not in found:
                self._misses.note(name)
        return {key: found[name] for key, name in made.items() if name in found}

    def has_key(self, key: Any, version: int | None = None) -> bool:
        return self._objects.get(self.make_and_validate_key(key, version), MISSING) is not MISSING

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        number: int | None = count(self._objects, self.make_and_validate_key(key, version), delta)
        if number is None:
            raise ValueError(f"Key '{key}' not found")
        return number

    def set_many(
        self, data: dict[Any, Any], timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[Any]:
        # Other threads may change the dict.
        pairs = [(key, self.make_and_validate_key(key, version), value) for key, value in list(data.items())]
        ttl = self.get_backend_timeout(timeout)
        if _is_past(ttl):
            self._objects.delete_many([made for _, made, _ in pairs])
            return []
        try:
            if self._misses.is_on:
                # Of those that were missed, each has its lease.
                return [key for key, made, value in pairs if not self._set(made, value, ttl)]
            self._objects.set_many([(made, value) for _, made, value in pairs], ttl)
        except REFUSALS:
            # One at a time, to learn which are.
            return [key for key, made, value in pairs if not self._set(made, value, ttl)]
        return []

    def delete_many(self, keys: Iterable[Any], version: int | None = None) -> None:
        self._objects.delete_many([self.make_and_validate_key(key, version) for key in keys])

    def clear(self) -> None:
        """Deletes every entry, of all prefixes and versions; of the URL's `namespace=` if it has one."""
        self._objects.clear()

    def get_or_set(
        self, key: Any, default: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        ttl = self.get_backend_timeout(timeout)
        if not callable(default) or _is_past(ttl):
            return super().get_or_set(key, default, timeout, version)
        try:
            return self._objects.get_or_compute(self.make_and_validate_key(key, version), ttl, default)
        except ComputesItself:
            # `default` asks for its own key, or another greenlet of this thread computes it.
            return super().get_or_set(key, default, timeout, version)

    async def aadd(
        self, key: Any, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        return await self._run(self.add, key, value, timeout, version)

    async def aget(self, key: Any, default: Any | None = None, version: int | None = None) -> Any:
        return await self._run(self.get, key, default, version)

    async def aset(
        self, key: Any, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        await self._run(self.set, key, value, timeout, version)

    async def atouch(self, key: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return await self._run(self.touch, key, timeout, version)

    async def adelete(self, key: Any, version: int | None = None) -> bool:
        return await self._run(self.delete, key, version)

    async def aget_many(self, keys: Iterable[Any], version: int | None = None) -> dict[Any, Any]:
        return await self._run(self.get_many, keys, version)

    async def ahas_key(self, key: Any, version: int | None = None) -> bool:
        return await self._run(self.has_key, key, version)

    async def aincr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        return await self._run(self.incr, key, delta, version)

    async def aset_many(
        self, data: dict[Any, Any], timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[Any]:
        return await self._run(self.set_many, data, timeout, version)

    async def adelete_many(self, keys: Iterable[Any], version: int | None = None) -> None:
        await self._run(self.delete_many, keys, version)

    async def aclear(self) -> None:
        await self._run(self.clear)

    async def aget_or_set(
        self, key: Any, default: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        ttl = self.get_backend_timeout(timeout)
        if not callable(default):
            return await super().aget_or_set(key, default, timeout, version)
        made = self.make_and_validate_key(key, version)
        async def compute() -> Any:
            computed = default()
            return await computed if inspect.isawaitable(computed) else computed

        if _is_past(ttl):
            return await compute()
        try:
            started = None
            if self._is_local:
                value, started = start(self._objects, made, ttl, None, None)
                if value is not MISSING:
                    return value
            call = Call(self._objects, made, ttl, compute, None, None, self._objects._lane)
            value, _ = await call.value(started)
        except ComputesItself:
            # As get_or_set does.
            return await super().aget_or_set(key, compute, timeout, version)
        return value

    async def _run(self, function: Callable[_P, _R], *args: _P.args, **named: _P.kwargs) -> _R:
        # A local operation takes less time than the way to another thread.
        if self._is_local:
            try:
                return function(*args, **named)
            except SynchronousOnlyOperation:
                # Pickling a QuerySet queries the database, before anything is written.
                pass
        return await sync_to_async(function, thread_sensitive=True)(*args, **named)

    def _set(self, key: str, value: Any, ttl: float | None) -> bool:
        """Writes a value; returns whether the cache has taken it. If not, it has none under that key."""
        if _is_past(ttl):
            self._objects.delete(key)
            return True
        return self._objects._write(key, value, ttl, self._misses.lease(key))


def _derived(secret_key: str) -> bytes:
    """Returns the key that signs values, of one of the site's secret keys."""
    return salted_hmac("haypile.django.HaypileCache", "values", secret=secret_key, algorithm="sha256").digest()


def _is_past(ttl: float | None) -> bool:
    return ttl is not None and ttl <= 0
