"""A cache for cachelib, and so for Flask-Caching and Flask-Session.

    from haypile.cachelib import HaypileCache

    cache = HaypileCache("file:/var/cache/app.haypile,size=512MiB", default_timeout=300)

Flask-Caching finds the class by its name, and passes CACHE_OPTIONS to it:

    app.config["CACHE_TYPE"] = "haypile.cachelib.HaypileCache"
    app.config["CACHE_OPTIONS"] = {"url": "file:/var/cache/app.haypile,size=512MiB"}

Flask-Session takes an instance:

    app.config["SESSION_TYPE"] = "cachelib"
    app.config["SESSION_CACHELIB"] = HaypileCache("file:/var/cache/sessions.haypile,size=64MiB")
"""

from __future__ import annotations

import datetime
import os
import pickle
from typing import Any, TypeAlias

from cachelib.base import BaseCache
from cachelib.serializers import BaseSerializer, JSONSerializer

from haypile._adapters import count
from haypile._cache import REFUSALS, Cache
from haypile._misses import Misses
from haypile._objects import Objects
from haypile._serializers import Serializer
from haypile._types import MISSING, Secrets

_Timeout: TypeAlias = int | datetime.timedelta | None

# Serializers of cachelib that do not run what they load. Not their subclasses, which may.
_SAFE = (JSONSerializer,)


class HaypileCache(BaseCache):
    """A cache of cachelib over a Haypile cache, given by its URL or opened.

    Timeouts are cachelib's: None is `default_timeout`, and 0 never expires. A negative one expires at once.
    `ttl=` of the URL has no effect. `key_prefix` stands before each key; clear deletes all entries nevertheless, or
    those of the URL's `namespace=`.

    `serializer` is one of haypile.Objects ("pickle" by default) or of cachelib.serializers; it may be set later,
    as Flask-Caching does with CACHE_SERIALIZER. `sign`, a secret of at least 16 bytes, signs each value, and an
    entry without a valid signature is a miss; of a list of secrets the first signs, and all are accepted. Integers
    from 0 to 2**64 - 1 are stored as digits, not signed, so that inc is atomic.

    Loading a pickle runs what it contains. So a `file:` cache has to belong to this user and to have mode 0600,
    and a server needs `sign`, except with "json", "msgpack" and JSONSerializer; otherwise this raises
    haypile.UnsafePickle.

    `leases=True` has a `set` that follows a miss of `get` in the same thread or task, within a minute, refused if somebody
    has deleted or written the key in between: what was asked for before a deletion does not come back after it. It costs
    a lookup per miss, and `set` then returns False. A program that sets what it knows itself, after a miss of
    which it made nothing, does not want it. Over a server with `leases=no` it does nothing.

    set and add return False if the cache does not store the value: it is too large, or another process holds
    a lock. The cache counts that in its stats, and set deletes the entry under the key.
    """

    # As for cachelib's own classes: a subclass or a caller may replace it.
    serializer: Any = "pickle"

    def __init__(
        self,
        url: Cache | str | os.PathLike[str],
        default_timeout: int | datetime.timedelta = 300,
        ignore_delete_many_errors: bool = True,
        *,
        key_prefix: str | None = None,
        serializer: Any = None,
        sign: Secrets | None = None,
        leases: bool = False,
    ) -> None:
        super().__init__(default_timeout, ignore_delete_many_errors)
        self.key_prefix = key_prefix or ""
        if serializer is not None:
            self.serializer = serializer
        self._cache = url if isinstance(url, Cache) else Cache(url)
        self._misses = Misses(self._cache, leases)
        self._sign = sign
        # The serializer, and the objects made with it.
        self._built: tuple[Any, Objects[Any] | None] = (None, None)
        self._objects()

    def get(self, key: str) -> Any:
        made = self.key_prefix + key
        value = self._objects().get(made, MISSING)
        if value is not MISSING:
            return value
        self._misses.note(made)
        return None

    def get_many(self, *keys: str) -> list[Any]:
        made = [self.key_prefix + key for key in keys]
        found = self._objects().get_many(made)
        for key in made:
            if key not in found:
                self._misses.note(key)
        return [found.get(key) for key in made]

    def set(self, key: str, value: Any, timeout: _Timeout = None) -> bool:
        objects, made, ttl = self._objects(), self.key_prefix + key, self._ttl(timeout)
        if _is_past(ttl):
            objects.delete(made)
            return True
        return objects._write(made, value, ttl, self._misses.lease(made))

    def add(self, key: str, value: Any, timeout: _Timeout = None) -> bool:
        objects, made, ttl = self._objects(), self.key_prefix + key, self._ttl(timeout)
        if _is_past(ttl):
            return not self.has(key)
        try:
            return objects.add(made, value, ttl)
        except REFUSALS:
            return False

    def set_many(self, mapping: dict[str, Any], timeout: _Timeout = None) -> list[Any]:
        ttl = self._ttl(timeout)
        # Other threads may change the mapping.
        pairs = list(mapping.items())
        # Of those that were missed, each has its lease.
        if not _is_past(ttl) and not self._misses.is_on:
            try:
                self._objects().set_many([(self.key_prefix + key, value) for key, value in pairs], ttl)
                return [key for key, _ in pairs]
            except REFUSALS:
                pass
        return [key for key, value in pairs if self.set(key, value, timeout)]

    def delete(self, key: str) -> bool:
        return self._objects().delete(self.key_prefix + key)

    def delete_many(self, *keys: str) -> list[Any]:
        self._objects().delete_many([self.key_prefix + key for key in keys])
        return list(keys)

    def has(self, key: str) -> bool:
        # An entry that get does not return is not there.
        return self._objects().get(self.key_prefix + key, MISSING) is not MISSING

    def clear(self) -> bool:
        self._objects().clear()
        return True

    def inc(self, key: str, delta: int = 1) -> int | None:
        """Adds to a number, or to 0 if there is none, and returns the sum. The number keeps its timeout."""
        ttl = self._ttl(None)
        try:
            number: int | None = count(
                self._objects(), self.key_prefix + key, delta, initial=0, ttl=None if _is_past(ttl) else ttl
            )
        except REFUSALS:
            return None
        return number

    def dec(self, key: str, delta: int = 1) -> int | None:
        """Subtracts from a number, or from 0 if there is none; as inc."""
        return self.inc(key, -delta)

    def close(self) -> None:
        """Closes the Haypile cache."""
        self._cache.close()

    def _ttl(self, timeout: _Timeout) -> float | None:
        seconds = self._normalize_timeout(timeout)
        return None if seconds == 0 else seconds

    def _objects(self) -> Objects[Any]:
        serializer = self.serializer
        built_for, objects = self._built
        if objects is None or built_for is not serializer:
            objects = Objects(self._cache, _adapted(serializer), sign=self._sign)
            # Both at once: another thread never gets the objects of another serializer.
            self._built = (serializer, objects)
        return objects


def _adapted(serializer: Any) -> Any:
    """Returns what haypile.Objects takes for a serializer, of Haypile or of cachelib."""
    if not isinstance(serializer, BaseSerializer):
        return serializer

    def dumps(value: Any) -> bytes:
        data = serializer.dumps(value)
        if data is None:
            # The serializer has logged why.
            raise pickle.PicklingError(f"{type(serializer).__name__} cannot serialize a {type(value).__name__}")
        return data

    kind = type(serializer)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return Serializer(dumps, serializer.loads, is_unsafe=kind not in _SAFE, name=name)


def _is_past(ttl: float | None) -> bool:
    return ttl is not None and ttl < 0
