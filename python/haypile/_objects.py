"""A cache of objects over a cache of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from haypile._cache import Cache
from haypile._haypile import Busy, Unsupported
from haypile._memoize import memoizer
from haypile._serializers import Serializer, named
from haypile._trust import Signer, check_safe
from haypile._types import MISSING, Key, Secrets, Ttl

# Writes by others between two attempts that are tolerated.
ATTEMPTS = 1000


class Objects:
    """A cache of objects: `serializer` makes bytes of them.

        objects = haypile.Objects(haypile.open("file:~/.cache/app.haypile,size=512MiB"))
        objects.set("user:7", {"name": "Ada"}, ttl=60)

    The serializer is "json", "msgpack" (an extra), "pickle", or a pair of functions, to bytes and back.
    Integers from 0 are digits with all of these names, so that incr and decr count them.

    Loading a pickle runs what it says. So "pickle" is accepted over a `memory:` cache, over a `file:` that
    belongs to this user and that nobody else can read or write (mode 0600), and over a server only with
    `sign`; otherwise this raises UnsafePickle. With `sign`, a secret of this program, each value carries a
    signature (HMAC-SHA-256, of the key as well); what has no valid one is a miss. To change the secret, give
    [new, old]: the first signs, and all are accepted. Counters are not signed: they are numbers.

    A value that cannot be loaded is a miss: a program of another version may have written it. A stored None
    is a value, which get returns as such.
    """

    __slots__ = ("_cache", "_given", "_serializer", "_signer")

    def __init__(
        self,
        cache: Cache | str | os.PathLike[str],
        serializer: str | Serializer | tuple[Callable[[Any], bytes], Callable[[bytes], Any]] = "json",
        *,
        sign: Secrets | None = None,
    ) -> None:
        self._cache = cache if isinstance(cache, Cache) else Cache(cache)
        self._given = serializer
        self._serializer = named(serializer)
        self._signer = None if sign is None else Signer(sign)
        if self._serializer.is_unsafe:
            check_safe(self._cache, self._signer is not None)

    @property
    def cache(self) -> Cache:
        """The cache of bytes."""
        return self._cache

    def get(self, key: Key, default: Any = None) -> Any:
        """Returns the value of a key, or `default`."""
        data = self._cache.get(key)
        return default if data is None else self._loaded(key, data, default)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Returns the values of those keys that have one."""
        keys = list(keys)
        found = {}
        for key, data in zip(keys, self._cache.get_many(keys)):
            if data is not None:
                value = self._loaded(key, data, MISSING)
                if value is not MISSING:
                    found[key] = value
        return found

    def set(self, key: Key, value: Any, ttl: Ttl = ...) -> None:
        """Writes a value, whether or not the key has one."""
        self._cache.set(key, self._dumped(key, value), ttl)

    def set_many(self, entries: Mapping[Key, Any] | Iterable[tuple[Key, Any]], ttl: Ttl = ...) -> None:
        """Writes each value under its key."""
        # A list: to serialise a value runs Python, and other threads may change the mapping.
        pairs = list(entries.items()) if isinstance(entries, Mapping) else entries
        self._cache.set_many([(key, self._dumped(key, value)) for key, value in pairs], ttl)

    def add(self, key: Key, value: Any, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has none; returns whether it did.

        An entry that get does not return is replaced. What another writer has written in the meantime stays, except
        over a server without versions, such as Redis, where the later of two such writers wins.
        """
        return self._added(key, self._dumped(key, value), ttl) is MISSING

    def replace(self, key: Key, value: Any, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has one; returns whether it did."""
        return self._cache.replace(key, self._dumped(key, value), ttl)

    def get_or_set(self, key: Key, default: Any, ttl: Ttl = ...) -> Any:
        """Returns the value of a key; writes `default` first if there is none."""
        data = self._dumped(key, default)
        value = self._loaded(key, self._cache.get_or_set(key, data, ttl), MISSING)
        if value is MISSING:
            # What cannot be loaded is a miss.
            value = self._added(key, data, ttl)
        return default if value is MISSING else value

    def get_or_compute(
        self,
        key: Key,
        ttl: Ttl,
        function: Callable[[], Any],
        *,
        stale: float | None = None,
        early: float | None = None,
    ) -> Any:
        """Returns the value of a key; if there is none, calls `function()` and stores its result.

        As Cache.get_or_compute: of all threads and processes, one computes. A value that cannot be loaded is deleted
        first, so that this holds for it too.
        """
        # The object itself for the caller that computes: nobody loads what was just dumped.
        computed: list[Any] = []

        def compute() -> bytes:
            computed.append(function())
            return self._dumped(key, computed[0])

        for _ in range(2):
            data = self._cache.get_or_compute(key, ttl, compute, stale=stale, early=early)
            if computed:
                return computed[0]
            value = self._loaded(key, data, MISSING)
            if value is not MISSING:
                return value
            # Written by another version or without our signature.
            self._delete_value(key, data)
        # Others go on writing what this program cannot load: it waits for them no longer.
        value = function()
        self._cache.set(key, self._dumped(key, value), ttl)
        return value

    def pop(self, key: Key, *default: Any) -> Any:
        """Deletes an entry and returns its value, or the default; raises KeyError without one."""
        data = self._cache.pop(key, None)
        value = MISSING if data is None else self._loaded(key, data, MISSING)
        if value is not MISSING:
            return value
        if not default:
            raise KeyError(key)
        return default[0]

    def delete(self, key: Key) -> bool:
        """Deletes an entry; returns whether there was one."""
        return self._cache.delete(key)

    def delete_many(self, keys: Iterable[Key]) -> int:
        """Deletes the entries of many keys; returns how many there were."""
        return self._cache.delete_many(keys)

    def touch(self, key: Key, ttl: Ttl = ...) -> bool:
        """Sets a new TTL for an entry, counted from now; returns whether there was one."""
        return self._cache.touch(key, ttl)

    def ttl(self, key: Key) -> float | None:
        """Returns the remaining life of an entry in seconds; None if it does not expire."""
        return self._cache.ttl(key)

    def incr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        """Adds to a number; as Cache.incr."""
        return self._cache.incr(key, delta, initial, ttl)

    def decr(self, key: Key, delta: int = 1, initial: int | None = None, ttl: Ttl = ...) -> int | None:
        """Subtracts from a number; as Cache.decr."""
        return self._cache.decr(key, delta, initial, ttl)

    def clear(self) -> None:
        """Deletes every entry."""
        self._cache.clear()

    def close(self) -> None:
        """Closes the cache of bytes."""
        self._cache.close()

    def memoize(
        self,
        ttl: Ttl = ...,
        *,
        typed: bool = False,
        key: Callable[..., Key] | None = None,
        stale: float | None = None,
        name: str | None = None,
    ) -> Callable[[Callable[..., Any]], Any]:
        """A decorator that remembers the results of a function, for all threads and processes.

            @objects.memoize(ttl=60)
            def price(article): ...

        Arguments are told apart by their values: None, numbers, texts, bytes, tuples, lists, sets, dicts, dates,
        enums, UUIDs, classes and dataclasses of these. Others, and so methods of other objects, need `key`, a
        function of the same arguments that returns a key, or a method `__cache_key__` of the object.
        `typed` tells 1, 1.0 and True apart. With `stale`, results are served for that many seconds after their TTL
        while one caller computes the next.

        The function has `cache_info()` (of this process), `cache_clear()`, `cache_key(*args)` and `__wrapped__`.
        `name` stands for the module and the name of the function in keys; the results of two programs meet only
        if it is the same. Of a coroutine function the calls are awaited.
        """
        return memoizer(self, ttl, typed, key, stale, name)

    def __contains__(self, key: Key) -> bool:
        return key in self._cache

    def __getitem__(self, key: Key) -> Any:
        value = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Any) -> None:
        self.set(key, value)

    def __delitem__(self, key: Key) -> None:
        del self._cache[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Objects:
        self._cache.__enter__()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the cache and verifies that it is safe there.
        if self._signer is not None:
            raise TypeError(
                "haypile.Objects with sign= is not pickled, because the pickle would contain the secret: make"
                " it where it is used"
            )
        return (Objects, (self._cache, self._given))

    def __repr__(self) -> str:
        return f"<haypile.Objects over {self._cache!r}>"

    def _added(self, key: Key, data: bytes, ttl: Ttl) -> Any:
        """Writes data if the key has no value that can be loaded; otherwise returns that value."""
        cache = self._cache
        for _ in range(ATTEMPTS):
            if cache.add(key, data, ttl):
                return MISSING
            found = cache.get_versioned(key)
            if found is None:
                continue
            held, version = found
            value = self._loaded(key, held, MISSING)
            if value is not MISSING:
                return value
            if version is None:
                cache.set(key, data, ttl)
                return MISSING
            if cache.cas(key, data, version, ttl):
                return MISSING
        raise Busy(f"others have changed the value under {key!r} in {cache.url} {ATTEMPTS} times; try again")

    def _delete_value(self, key: Key, data: bytes) -> None:
        """Deletes an entry that still has this data; over a memcached without versions (-C), maybe a later one."""
        try:
            self._cache.compare_and_delete(key, data)
        except Unsupported:
            self._cache.delete(key)

    def _dumped(self, key: Key, value: Any) -> bytes:
        data = self._serializer.dumps(value)
        # Digits stay as they are, so that counters count them.
        return data if self._signer is None or data.isdigit() else self._signer.signed(key, data)

    def _loaded(self, key: Key, data: bytes, default: Any) -> Any:
        if self._signer is not None and not data.isdigit():
            verified = self._signer.verified(key, data)
            if verified is None:
                return default
            data = verified
        try:
            return self._serializer.loads(data)
        except Exception:
            return default
