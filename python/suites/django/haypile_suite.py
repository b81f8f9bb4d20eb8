"""Django's BaseCacheTests over Haypile's backend, as Django's LocMemCacheTests has them over its own."""

import atexit
import tempfile

from asgiref.sync import async_to_sync
from cache.tests import BaseCacheTests, caches_setting_for_tests
from cache.tests_async import AsyncDummyCacheTests
from django.core.cache import cache
from django.core.cache.backends.base import BaseCache
from django.test import SimpleTestCase, TestCase, override_settings

from haypile.django import HaypileCache

_holder = tempfile.TemporaryDirectory()
atexit.register(_holder.cleanup)

# As Django's tests of memcached and Redis: these bound their caches in bytes as well.
CULLING = {"cull", "zero_cull"}


def caches_of(url, backend="haypile.django.HaypileCache"):
    """CACHES of Django's tests, all over one cache."""
    return override_settings(CACHES=caches_setting_for_tests(exclude=CULLING, BACKEND=backend, LOCATION=url))


def url_of(name):
    """The URL of a file of these tests."""
    return f"file:{_holder.name}/{name}.haypile,size=16MiB"


@caches_of(url_of("sync"))
class FileTests(BaseCacheTests, TestCase):
    """Over one file."""


@caches_of("memory:size=16MiB")
class MemoryTests(BaseCacheTests, TestCase):
    """In the process."""


class ThroughAsync(BaseCache):
    """A backend whose methods call the async ones of ours."""

    def __init__(self, location, params):
        self.inner = HaypileCache(location, params)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __setattr__(self, name, value):
        if name == "inner":
            super().__setattr__(name, value)
        else:
            # A test replaces key_func.
            setattr(self.inner, name, value)


def _through(name):
    def method(self, *args, **named):
        return async_to_sync(getattr(self.inner, "a" + name))(*args, **named)

    method.__name__ = name
    return method


for _name in ("add", "get", "set", "touch", "delete", "get_many", "has_key", "incr", "decr", "set_many",
              "delete_many", "clear", "incr_version", "decr_version", "close"):
    setattr(ThroughAsync, _name, _through(_name))


def _get_or_set(self, key, default, *args, **named):
    return async_to_sync(self.inner.aget_or_set)(key, default, *args, **named)


# With its signature, which a test reads from an error.
_get_or_set.__name__ = "get_or_set"
_get_or_set.__qualname__ = "ThroughAsync.get_or_set"
ThroughAsync.get_or_set = _get_or_set


@caches_of(url_of("async"), "haypile_suite.ThroughAsync")
class AsyncFileTests(BaseCacheTests, TestCase):
    """Over one file, by the async methods."""


@caches_of(url_of("dummy"))
class AsyncTests(AsyncDummyCacheTests, SimpleTestCase):
    """Django's own tests of async methods: written for its dummy cache."""

    def tearDown(self):
        cache.clear()


_DUMMY = "asserts that the dummy cache stores nothing; covered by BaseCacheTests through the async methods"

# Tests of AsyncDummyCacheTests that only a cache without entries passes.
NOT_APPLICABLE = {
    f"AsyncTests.{name}": _DUMMY
    for name in ("test_simple", "test_aadd", "test_aget_many", "test_adelete", "test_ahas_key", "test_aincr",
                 "test_adecr", "test_data_types", "test_expiration", "test_unicode", "test_aincr_version",
                 "test_adecr_version", "test_aget_or_set")
}
