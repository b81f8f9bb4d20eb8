"""Caches of bytes and of objects, bounded in bytes, named by a URL.

>>> import haypile
>>> cache = haypile.open("memory:size=64MiB,ttl=10m")
>>> cache.set("user:7", b"Ada")
>>> cache.get("user:7")
b'Ada'

However many threads and processes ask for one key, one computes:

>>> cache.get_or_compute("page:/", 30, lambda: b"<html>")
b'<html>'

Objects holds objects instead of bytes, and remembers the results of functions:

>>> objects = haypile.Objects(cache)
>>> @objects.memoize(ttl=60)
... def square(number):
...     return number * number
>>> square(12)
144
"""

from haypile._aio import AsyncCache
from haypile._cache import Cache, CacheWarning, open
from haypile._haypile import (
    BackendError,
    Busy,
    Closed,
    ComputesItself,
    Error,
    Full,
    KeyTooLong,
    NotACounter,
    OpenError,
    Stats,
    Unsupported,
    ValueTooLarge,
    __version__,
)
from haypile._memoize import CacheInfo
from haypile._objects import Objects
from haypile._serializers import Serializer
from haypile._trust import UnsafePickle

__all__ = [
    "AsyncCache",
    "BackendError",
    "Busy",
    "Cache",
    "CacheInfo",
    "CacheWarning",
    "Closed",
    "ComputesItself",
    "Error",
    "Full",
    "KeyTooLong",
    "NotACounter",
    "Objects",
    "OpenError",
    "Serializer",
    "Stats",
    "Unsupported",
    "UnsafePickle",
    "ValueTooLarge",
    "__version__",
    "open",
]
