"""A cache of objects over a cache of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from haypile import _json
from haypile._cache import Cache
from haypile._haypile import Busy, ObjectReader, _get_or_compute
from haypile._memoize import Decorator, Options
from haypile._serializers import Serializer, name_of, named
from haypile._shared import Shared
from haypile._threads import Lane, in_a_thread
from haypile._trust import Guard, Signer
from haypile._types import MISSING, SHORT_BYTES, Key, Secrets, Ttl

_V = TypeVar("_V")
_Default = TypeVar("_Default")
_Result = TypeVar("_Result")

# Writes by others between two attempts that are tolerated.
ATTEMPTS = 1000


def default_of(key: Key, default: tuple[Any, ...]) -> Any:
    """Returns the default of a call that has one, and raises KeyError otherwise."""
    if not default:
        raise KeyError(key)
    return default[0]


def is_little(value: Any) -> bool:
    """Whether a loop does not notice how long it takes to make bytes of a value, and to write them."""
    if isinstance(value, memoryview):
        return value.nbytes < SHORT_BYTES
    if isinstance(value, bytes | bytearray):
        return len(value) < SHORT_BYTES
    return _json.is_short(value)


class Objects(ObjectReader, Generic[_V]):
    """A cache of objects: `serializer` makes bytes of them.

        objects = haypile.Objects(haypile.open("file:~/.cache/app.haypile,size=512MiB"))
        objects.set("user:7", {"name": "Ada"}, ttl=60)

    The serializer is "json", "msgpack" (an extra), "pickle", or a pair of functions, to bytes and back.
    Integers from 0 are digits with all of these names, so that incr and decr count them.

    Loading a pickle runs what it says. So "pickle" is accepted over a `memory:` cache, over a `file:` that belongs
    to this user and that nobody else can read or write (mode 0600), over a saved cache (`persist=`) that nobody
    else can write, and over a server only with `sign`; otherwise this raises UnsafePickle, also later in a child of a fork, where the cache
    is opened again. With `sign`, a secret of this program, each value carries a signature (HMAC-SHA-256, of the
    key, the serializer and the URL's `namespace=` as well); what has no valid one is a miss. To change the secret,
    give [new, old]: the first signs, and all are accepted. Integers from 0 are not signed: they are digits.

    A value that cannot be loaded is a miss: a program of another version may have written it. So for all
    operations here it is not there; len, iteration and delete see the entry. A stored None is a value, which get
    returns as such.

    With `share=1000`, the objects of up to 1000 entries (and 16 KiB of stored bytes for each, all in all) are kept, and get,
    [], get_or_compute and memoized functions return the same object again while its entry has not changed, in whatever process:
    without loading it, and without copying its bytes. **All callers get one object**: who changes it changes it for all
    of this process, until the entry changes. Over servers, and for AsyncCache, nothing is kept.

    Objects[User] is a cache of users, for type checkers.
    """

    __slots__ = ("_cache", "_given", "_guard", "_held", "_lane", "_serializer", "_shared", "_signer")

    @overload
    def __init__(
        self: Objects[Any],
        cache: Cache | str | os.PathLike[str],
        serializer: Literal["json", "msgpack", "pickle"] | Serializer = "json",
        *,
        sign: Secrets | None = None,
        share: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        cache: Cache | str | os.PathLike[str],
        serializer: tuple[Callable[[_V], bytes], Callable[[bytes], _V]],
        *,
        sign: Secrets | None = None,
        share: int | None = None,
    ) -> None: ...

    def __init__(
        self,
        cache: Cache | str | os.PathLike[str],
        serializer: Any = "json",
        *,
        sign: Any = None,
        share: int | None = None,
    ) -> None:
        self._cache = cache if isinstance(cache, Cache) else Cache(cache)
        # Operations on a local cache run in the thread of a loop, all others in these.
        self._lane = None if self._cache._is_local() else Lane()
        self._given = serializer
        self._serializer = named(serializer)
        self._signer = None if sign is None else Signer(sign, name_of(self._serializer), self._cache._namespace())
        self._guard = Guard(self._cache, self._signer is not None) if self._serializer.is_unsafe else None
        shared = None if share is None else Shared(share)
        self._shared: Any = shared
        # A server that restarts gives versions again, to other entries.
        has_lasting_versions = self._cache._schemes()[-1] in ("memory", "file")
        self._held: Any = shared.held if shared is not None and has_lasting_versions else None
        self._read_from(self._cache, self._held)

    @property
    def cache(self) -> Cache:
        """The cache of bytes."""
        return self._cache

    if TYPE_CHECKING:

        @overload
        def get(self, key: Key) -> _V | None: ...
        @overload
        def get(self, key: Key, default: _Default) -> _V | _Default: ...

        def get(self, key: Key, default: Any = None) -> Any:
            """Returns the value of a key, or `default`."""

    def get_many(self, keys: Iterable[Key]) -> dict[Key, _V]:
        """Returns the values of those keys that have one."""
        keys = list(keys)
        return self._all_loaded(keys, self._cache.get_many(keys))

    def set(self, key: Key, value: _V, ttl: Ttl = ..., *, groups: Iterable[Key] = ()) -> None:
        """Writes a value, whether or not the key has one. The entry belongs to `groups`, which invalidate takes."""
        self._cache.set(key, self._dumped(key, value), ttl, groups=groups)

    def invalidate(self, group: Key) -> None:
        """Makes every entry of a group a miss, for all processes; as Cache.invalidate."""
        self._cache.invalidate(group)

    def set_many(
        self,
        entries: Mapping[Key, _V] | Iterable[tuple[Key, _V]],
        ttl: Ttl = ...,
        *,
        groups: Iterable[Key] = (),
    ) -> None:
        """Writes each value under its key. The entries belong to `groups`."""
        # A list: to serialise a value runs Python, and other threads may change the mapping.
        pairs = list(entries.items()) if isinstance(entries, Mapping) else entries
        self._cache.set_many([(key, self._dumped(key, value)) for key, value in pairs], ttl, groups=groups)

    def add(self, key: Key, value: _V, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has none; returns whether it did.

        An entry that get does not return is replaced. What another writer has written in the meantime stays, except
        over a server without versions, such as Redis, where the later of two such writers wins.
        """
        return self._added(key, self._dumped(key, value), ttl) is MISSING

    def replace(self, key: Key, value: _V, ttl: Ttl = ...) -> bool:
        """Writes a value if the key has one that get returns; returns whether it did."""
        cache, data = self._cache, self._dumped(key, value)
        for _ in range(ATTEMPTS):
            found = cache.get_versioned(key)
            if found is None or self._loaded(key, found[0], MISSING) is MISSING:
                return False
            if found[1] is None:
                return cache.replace(key, data, ttl)
            if cache.cas(key, data, found[1], ttl):
                return True
        raise self._busy(key)

    def get_or_set(self, key: Key, default: _V, ttl: Ttl = ...) -> _V:
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
        function: Callable[[], _Result],
        *,
        stale: float | None = None,
        early: float | None = None,
        groups: Iterable[Key] = (),
    ) -> _Result:
        """Returns the value of a key; if there is none, calls `function()` and stores its result.

        As Cache.get_or_compute: of all threads and processes, one computes. The entry belongs to `groups`. A value that cannot be loaded is deleted
        first, so that this holds for it too. A value that the cache refuses is returned, and counted in its stats.
        """
        value: _Result = _get_or_compute(self, key, ttl, function, stale, early, groups)
        return value

    @overload
    def pop(self, key: Key) -> _V: ...
    @overload
    def pop(self, key: Key, default: _Default, /) -> _V | _Default: ...

    def pop(self, key: Key, *default: Any) -> Any:
        """Deletes an entry and returns its value, or the default; raises KeyError without one."""
        data = self._cache.pop(key, None)
        value = MISSING if data is None else self._loaded(key, data, MISSING)
        return default_of(key, default) if value is MISSING else value

    def delete(self, key: Key) -> bool:
        """Deletes an entry; returns whether there was one."""
        return self._cache.delete(key)

    def delete_many(self, keys: Iterable[Key]) -> int:
        """Deletes the entries of many keys; returns how many there were."""
        return self._cache.delete_many(keys)

    def touch(self, key: Key, ttl: Ttl = ...) -> bool:
        """Sets a new TTL for a value, counted from now; returns whether there was one that get returns."""
        return key in self and self._cache.touch(key, ttl)

    def ttl(self, key: Key) -> float | None:
        """Returns the remaining life of a value in seconds; None if it does not expire. Raises KeyError without one."""
        if key not in self:
            raise KeyError(key)
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
        groups: Iterable[Key] | Callable[..., Iterable[Key]] = (),
    ) -> Decorator:
        """A decorator that remembers the results of a function, for all threads and processes.

            @objects.memoize(ttl=60)
            def price(article): ...

        Results belong to the function as it is: its module, name, code, defaults and the values of the variables
        around it. A function that is edited forgets its results. What it reads elsewhere, such as a global variable,
        is not seen: call cache_clear() when that changes, or give `name` and change it. `name` stands for all of this
        in keys: programs, or versions of Python, share results only if it is the same. A function that holds a value
        without a key, such as a connection, needs it.

        Arguments that are not equal have different keys: None, numbers, texts, bytes, lists, tuples, sets, dicts, those
        of collections, dates, paths, addresses, patterns, UUIDs, enums, classes, dataclasses, numpy's arrays and
        pydantic's models. Others, and so methods of other objects, need `key`, a function of the same arguments that
        returns text or bytes, or a method `__cache_key__` of their type, which returns a simple value. Classes have to
        be found by their name: those made in functions are refused. `typed` tells 1, 1.0 and True apart. With
        `stale`, results are served for that many seconds after their TTL while one caller computes the next.

        Results belong to `groups`, which are names or a function of the same arguments that returns them, and
        `invalidate(group)` makes those of a group a miss:

            @objects.memoize(ttl=60, groups=lambda user, page: [f"user:{user}", "pages"])
            def render(user, page): ...

        The function has `cache_info()` (of this process), `cache_clear()`, `cache_key(*args)` and `__wrapped__`. Of a
        coroutine function the calls are awaited; the calls of one loop with the same arguments are one.
        """
        return Decorator(Options(self, ttl, typed, key, stale, name, groups))

    def __contains__(self, key: Key) -> bool:
        # An entry that cannot be loaded is none.
        data = self._cache.get(key)
        return data is not None and self._loaded(key, data, MISSING) is not MISSING

    def __getitem__(self, key: Key) -> _V:
        value = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: _V) -> None:
        self.set(key, value)

    def __delitem__(self, key: Key) -> None:
        del self._cache[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Objects[_V]:
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
        return (_remade, (self._cache, self._given, None if self._shared is None else self._shared.most))

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
        raise self._busy(key)

    def _busy(self, key: Key) -> Busy:
        return Busy(f"others have changed the value under {key!r} in {self._cache.url} {ATTEMPTS} times; try again")

    def _write(self, key: Key, value: _V, ttl: Ttl, lease: bytes | None) -> bool:
        """Writes a value if the cache takes it, under a lease if there is one; returns whether it did.

        A refusal is counted, and the old value is gone then; of a revoked lease, what somebody else has written stays.
        """
        return self._cache._write(key, self._dumped(key, value), ttl, lease)

    def _get_shared(self, key: Key, default: Any, held: Any, found: Any) -> Any:
        """Returns the value of a key whose object is not shared, or not any more."""
        value = self._shared.get(self, key, held, found)
        return default if value is MISSING else value

    def _all_loaded(self, keys: list[Key], found: list[bytes | None]) -> dict[Key, _V]:
        loaded = {}
        for key, data in zip(keys, found):
            value = MISSING if data is None else self._loaded(key, data, MISSING)
            if value is not MISSING:
                loaded[key] = value
        return loaded

    def _delete_value(self, key: Key, data: bytes) -> None:
        self._cache._delete_value(key, data)

    def _dumped(self, key: Key, value: Any) -> bytes:
        data = self._serializer.dumps(value)
        # Counters count digits, which are no longer digits with a signature.
        is_number = type(value) is int and data.isdigit()
        return data if self._signer is None or is_number else self._signer.signed(key, data)

    def _loaded(self, key: Key, data: bytes, default: Any) -> Any:
        if self._guard is not None:
            self._guard.check()
        is_number = data.isdigit()
        if self._signer is not None and not is_number:
            verified = self._signer.verified(key, data)
            if verified is None:
                return default
            data = verified
        try:
            value = self._serializer.loads(data)
        except Exception:
            return default
        # Digits without a signature are a number, and nothing else.
        return default if self._signer is not None and is_number and type(value) is not int else value

    @property
    def _in_pieces(self) -> Objects[_V]:
        """The same for another thread than the loop's, with a serializer that lets the loop go on if there is one."""
        if self._given != "json":
            return self
        other: Objects[_V] = Objects.__new__(Objects)
        for name in Objects.__slots__:
            setattr(other, name, getattr(self, name))
        other._read_from(self._cache, self._held)
        other._serializer = Serializer(_json.dumps, _json.loads, name="json")
        return other

    async def _dumped_in_loop(self, key: Key, value: Any) -> tuple[bytes, Any]:
        if is_little(value):
            return self._dumped(key, value), value
        return await in_a_thread(lambda: self._in_pieces._dumped(key, value)), value

    async def _loaded_in_loop(self, key: Key, data: bytes | memoryview, default: Any) -> Any:
        if isinstance(data, bytes) and len(data) < SHORT_BYTES:
            return self._loaded(key, data, default)
        return await in_a_thread(lambda: self._in_pieces._loaded(key, _json.copied(data), default))


def _remade(cache: Cache, serializer: Any, share: int | None) -> Objects[Any]:
    return Objects(cache, serializer, share=share)
