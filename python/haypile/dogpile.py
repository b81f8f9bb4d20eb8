"""A backend of dogpile.cache, and a mutex that threads and processes share.

    region = dogpile.cache.make_region().configure(
        "haypile", expiration_time=60, arguments={"url": "file:/var/tmp/app.haypile,size=64MiB"}
    )
"""

from __future__ import annotations

import hashlib
import pickle
import random
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dogpile.cache import register_backend
from dogpile.cache.api import (
    NO_VALUE,
    BackendArguments,
    BytesBackend,
    CacheMutex,
    CantDeserializeException,
    Deserializer,
    KeyType,
    SerializedReturnType,
    Serializer,
)

from haypile._cache import REFUSALS, Cache
from haypile._haypile import Busy, Error, Unsupported
from haypile._trust import Guard, Signer
from haypile._types import Ttl

# Seconds between two attempts to acquire or to release a mutex: the first pause, and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05

# Seconds that a release keeps its caller while the store is busy; then another thread goes on.
_RELEASE_PATIENCE = 0.5

_LOCK_TIMEOUT = 30.0


class HaypileBackend(BytesBackend):
    """A backend over a haypile.Cache. dogpile.cache knows it as "haypile".

    Arguments:

    - `url`: the cache's URL; or `cache`, an open haypile.Cache.
    - `ttl`: seconds after which the cache drops a value, or None for never; the TTL of the URL by default. It
      should be longer than the region's expiration_time: dogpile serves an expired value while one caller
      computes the next.
    - `sign`: a secret of at least 16 bytes, or several of which the first signs and all are accepted. Each value
      then carries a signature of itself and its key; a value without a valid one is a miss and is not loaded.
    - `distributed_lock`: whether callers exclude each other by an entry of the cache instead of a lock of this
      process. True by default for caches that processes share.
    - `lock_timeout`: seconds after which such a lock is free even if its holder did not release it; 30 by default.

    While a caller creates a value under such a lock, it has a lease on the key (haypile.Cache.lease): if another process
    deletes or sets the key in the meantime, the created value goes to this caller and is not stored. A region on
    memcached or Redis, with another lock, or with an async_creation_runner, has none.

    Values are pickles unless the region has a serializer and a deserializer. Loading a pickle runs what it says:
    the rules of haypile.Objects apply, and `configure` raises UnsafePickle where others can write.
    """

    def __init__(self, arguments: BackendArguments) -> None:
        cache = arguments.get("cache")
        if cache is None:
            if "url" not in arguments:
                raise ValueError("arguments need 'url', the URL of a cache, or 'cache', an open haypile.Cache")
            cache = Cache(arguments["url"])
        self.cache: Cache = cache
        self._ttl: Ttl = _seconds(arguments.get("ttl", ...))
        sign = arguments.get("sign")
        # Separates these values from those of haypile.Objects with the same secret.
        self._signer = None if sign is None else Signer(sign, "dogpile", cache._namespace())
        self._guard: Guard | None = None
        is_shared = not {"memory", "none"}.issuperset(cache._schemes())
        self._distributed_lock = _flag(arguments.get("distributed_lock", is_shared))
        self._lock_timeout = float(arguments.get("lock_timeout", _LOCK_TIMEOUT))
        # Keys whose mutex a thread holds, and the lease of each once it has been looked for.
        self._held: dict[tuple[int, KeyType], bytes | None] = {}
        if not self._lock_timeout > 0:
            raise ValueError("lock_timeout is more than zero: without a TTL, the lock of a killed process would stay")

    # The region reads these only if it has no functions of its own. So the check applies to pickles alone.

    @property
    def serializer(self) -> Serializer | None:  # type: ignore[override]
        """The function that makes pickles; raises UnsafePickle where others can write."""
        self._guarded()
        return _dumps

    @property
    def deserializer(self) -> Deserializer | None:  # type: ignore[override]
        """The function that loads pickles; raises UnsafePickle where others can write."""
        guard = self._guarded()

        def load(data: bytes) -> Any:
            guard.check()
            return _loads(data)

        return load

    def has_lock_timeout(self) -> bool:
        """Returns whether a lock can end before its holder releases it."""
        return self._distributed_lock

    def get_mutex(self, key: KeyType) -> CacheMutex | None:
        """Returns the mutex of a key, or None if dogpile is to use a lock of this process."""
        return _LeasingMutex(self, key) if self._distributed_lock else None

    def get_serialized(self, key: KeyType) -> SerializedReturnType:
        """Returns the bytes of a key, or NO_VALUE."""
        data = self.cache.get(key)
        self._note_lease(key)
        return self._verified(key, data)

    def get_serialized_multi(self, keys: Iterable[KeyType]) -> Sequence[SerializedReturnType]:
        """Returns the bytes of each key, or NO_VALUE."""
        keys = list(keys)
        return [self._verified(key, data) for key, data in zip(keys, self.cache.get_many(keys))]

    def set_serialized(self, key: KeyType, value: bytes) -> None:
        """Writes the bytes of a key. A refusal is counted in the cache's stats, and the previous value is gone."""
        holding = (threading.get_ident(), key)
        lease = self._held.get(holding)
        if lease is not None:
            # It serves once: what the same caller sets next is newer.
            self._held[holding] = None
        self.cache._write(key, self._signed(key, value), self._ttl, lease)

    def set_serialized_multi(self, mapping: Mapping[KeyType, bytes]) -> None:
        """Writes the bytes of each key."""
        try:
            self.cache.set_many([(key, self._signed(key, value)) for key, value in mapping.items()], self._ttl)
        except REFUSALS:
            for key, value in mapping.items():
                self.set_serialized(key, value)

    def delete(self, key: KeyType) -> None:
        """Deletes the value of a key, if it has one."""
        self.cache.delete(key)

    def delete_multi(self, keys: Iterable[KeyType]) -> None:
        """Deletes the values of those keys that have one."""
        self.cache.delete_many(keys)

    def _note_lease(self, key: KeyType) -> None:
        """Takes a lease on a key that is looked for under its mutex: what is created comes after this."""
        holding = (threading.get_ident(), key)
        if holding in self._held:
            try:
                self._held[holding] = self.cache.lease(key)
            except Error:
                pass  # It has no leases, or fails, and then it cannot be written either.

    def _guarded(self) -> Guard:
        if self._guard is None:
            self._guard = Guard(self.cache, self._signer is not None)
        return self._guard

    def _signed(self, key: str, data: bytes) -> bytes:
        return data if self._signer is None else self._signer.signed(key, data)

    def _verified(self, key: str, data: bytes | None) -> SerializedReturnType:
        if data is not None and self._signer is not None:
            data = self._signer.verified(key, data)
        return NO_VALUE if data is None else data


class HaypileMutex(CacheMutex):
    """A mutex that is an entry of a cache: its value is a token of the holder.

    The entry has a TTL, after which the mutex is free even if its holder was killed. A holder that needs longer
    loses it: a second one can then begin. The mutex is also lost if the cache evicts the entry.
    """

    def __init__(self, cache: Cache, key: str, timeout: float) -> None:
        self._cache = cache
        self._timeout = timeout
        # A hash, so that each key that the cache takes has a mutex.
        self._key = "haypile.dogpile.lock:" + hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        # By thread: dogpile gives the threads of a region one object, and a thread whose lock expired must not
        # release that of the next.
        self._tokens: dict[int, bytes] = {}

    def acquire(self, wait: bool = True) -> bool:
        """Acquires the mutex; waits for it if `wait`. Returns whether it did."""
        token = secrets.token_bytes(16)
        pause = _FIRST_PAUSE
        while not self._try_acquire(token):
            if not wait:
                return False
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)
        self._tokens[threading.get_ident()] = token
        return True

    def release(self) -> None:
        """Releases the mutex, unless it has expired. A thread may release for another that acquired it."""
        token = self._tokens.pop(threading.get_ident(), None)
        if token is None:
            try:
                _, token = self._tokens.popitem()
            except KeyError:
                raise RuntimeError("the mutex is not held: acquire it before") from None
        # The mutex is free after its timeout, whether or not the entry was deleted.
        now = time.monotonic()
        end = now + self._timeout
        if not self._try_release(token, min(end, now + _RELEASE_PATIENCE)):
            threading.Thread(target=self._release_later, args=(token, end), daemon=True).start()

    def locked(self) -> bool:
        """Returns whether any thread or process holds the mutex."""
        return self._key in self._cache

    def _try_acquire(self, token: bytes) -> bool:
        try:
            return self._cache.add(self._key, token, self._timeout)
        except Busy:
            # A process was stopped within a write; its lock on the store is released or taken over.
            return False

    def _try_release(self, token: bytes, end: float) -> bool:
        """Deletes the entry of this token, however late; returns False if the store was busy until `end`."""
        pause = _FIRST_PAUSE
        while True:
            try:
                self._cache.compare_and_delete(self._key, token)
                return True
            except Busy:
                if time.monotonic() + pause >= end:
                    return False
            except Unsupported:
                # A memcached that runs without versions (-C).
                if self._cache.get(self._key) == token:
                    self._cache.delete(self._key)
                return True
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _release_later(self, token: bytes, end: float) -> None:
        try:
            self._try_release(token, end)
        except Error:
            pass  # The cache was closed, or its server is gone: the entry expires.


class _LeasingMutex(HaypileMutex):
    """A mutex whose holder has a lease on the key."""

    def __init__(self, backend: HaypileBackend, key: KeyType) -> None:
        super().__init__(backend.cache, key, backend._lock_timeout)
        self._backend, self._of = backend, key

    def acquire(self, wait: bool = True) -> bool:
        acquired = super().acquire(wait)
        if acquired:
            self._backend._held[threading.get_ident(), self._of] = None
            # An expired value is created again without another look.
            self._backend._note_lease(self._of)
        return acquired

    def release(self) -> None:
        # Before another may hold it.
        held = self._backend._held
        held.pop((threading.get_ident(), self._of), None)
        super().release()
        # A thread may have released for another, which holds it no longer.
        for holding in [holding for holding in list(held) if holding[1] == self._of]:
            if holding[0] not in self._tokens:
                held.pop(holding, None)


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


def _loads(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:
        # A program of another version may have written it: computed again.
        raise CantDeserializeException(str(error)) from error


def _seconds(value: Any) -> Ttl:
    # Files of settings hold text.
    return float(value) if isinstance(value, str) else value


def _flag(value: Any) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on") if isinstance(value, str) else bool(value)


register_backend("haypile", "haypile.dogpile", "HaypileBackend")  # type: ignore[no-untyped-call]
