"""The cache of bytes: the compiled operations, and those of a MutableMapping."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from types import FrameType
from typing import Any, cast

from haypile import _haypile
from haypile._json import copied
from haypile._threads import in_a_thread
from haypile._types import Key, Ttl


# Errors that leave a cache without a value, which a cache may always be.
REFUSALS = (_haypile.ValueTooLarge, _haypile.Busy, _haypile.Full)


class CacheWarning(UserWarning):
    """A cache was opened, and not everything is as its URL wants it: a saved cache is damaged and so begins empty, an
    existing file ignores `size=`, a server does not answer, or a process without a place in a file only reads it.

    Cache.warnings returns the same texts, and what occurs later.
    """


def _warn(text: str) -> None:
    """Warns on behalf of the nearest caller outside of this package."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, CacheWarning, stacklevel=level)


class _Items(ItemsView[bytes, bytes]):
    """Entries that are there when they are reached: others may leave during the iteration."""

    _mapping: Cache

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for key in self._mapping:
            value = self._mapping.get(key)
            if value is not None:
                yield key, value


class _Values(ValuesView[bytes]):
    """The values of such entries."""

    _mapping: Cache

    def __iter__(self) -> Iterator[bytes]:
        for _, value in _Items(self._mapping):
            yield value


class Cache(_haypile.Cache, MutableMapping[Any, Any]):
    """A cache of bytes under keys of bytes or text. haypile.open makes one.

    A key is bytes or str, which is its UTF-8; a value is bytes or anything bytes-like, and comes back as
    bytes. Each entry has a TTL (`ttl`): a number of seconds, a datetime.timedelta, None for no expiry, or the
    TTL of the cache's URL if the argument is missing. A cache may forget: it can evict a new entry at once.

    It is a MutableMapping as well, whose keys are bytes when they are iterated over. Two caches are equal if
    they are the same object.

    Threads may use one cache. It closes at the end of a `with` block, or by close.

    After a fork, the child opens the URL again when it first uses the cache. So all processes share a `file:`
    cache, and a `memory:` cache is each process' own, and empty in the child. A relative path in the URL
    counts from where the child is then.
    """

    __slots__ = ()

    def __init__(self, url: str | os.PathLike[str]) -> None:
        for text in self.warnings():
            _warn(text)

    # A cache is not compared entry by entry.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def items(self) -> ItemsView[bytes, bytes]:
        """The entries. Those that leave the cache during the iteration are left out."""
        return _Items(cast(Any, self))

    def values(self) -> ValuesView[bytes]:
        """The values of these entries."""
        return _Values(cast(Any, self))

    def popitem(self) -> tuple[bytes, bytes]:
        """Removes an entry and returns its key and its value. Raises KeyError if the cache is empty."""
        for key in self:
            value = self.pop(key, None)
            if value is not None:
                return key, value
        raise KeyError("the cache is empty")

    # As Objects makes bytes of objects, for those who work with either.

    @property
    def _cache(self) -> Cache:
        return self

    _in_pieces = _cache

    def _loaded(self, _key: Any, data: bytes, _default: Any) -> Any:
        return data

    async def _dumped_in_loop(self, _key: Any, value: Any) -> tuple[Any, Any]:
        # A buffer may change, and all callers get the value.
        data = value if isinstance(value, bytes) else memoryview(value).tobytes()
        return data, data

    async def _loaded_in_loop(self, _key: Any, data: bytes | memoryview, _default: Any) -> Any:
        return data if isinstance(data, bytes) else await in_a_thread(lambda: copied(data))

    def _delete_value(self, key: Any, data: bytes) -> None:
        """Deletes an entry that still has this data; over a memcached without versions (-C), maybe a later one."""
        try:
            self.compare_and_delete(key, data)
        except _haypile.Unsupported:
            self.delete(key)

    def _write(self, key: Key, data: bytes, ttl: Ttl, lease: bytes | None) -> bool:
        """Writes data if the cache takes it, under a lease if there is one; returns whether it did."""
        return self._offer(key, data, ttl, lease=lease)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As get_or_set, with the TTL of the cache's URL."""
        return self.get_or_set(key, default)

    def update(self, entries: Any = (), /, **more: Any) -> None:
        """As set_many, with the TTL of the cache's URL."""
        self.set_many(entries)
        self.set_many(more)


def open(url: str | os.PathLike[str]) -> Cache:
    """Opens the cache of this URL, or the `file:` cache at this path.

        haypile.open("memory:size=64MiB,policy=s3fifo,ttl=10m")
        haypile.open("file:~/.cache/app.haypile,size=512MiB")
        haypile.open("memory:size=64MiB -> redis://localhost")
        haypile.open(pathlib.Path("app.haypile"))

    Raises OpenError with what is wrong and what is allowed.
    """
    return Cache(url)
