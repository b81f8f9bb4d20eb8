"""cachelib's tests over Haypile's cache, as its own test_redis_cache.py has them. `run` copies it next to them."""

import pytest
from cachelib.serializers import BaseSerializer
from clear import ClearTests
from common import CommonTests
from delete_many_with_prefix import DeleteManyWithPrefixTests
from has import HasTests
from serializer import SerializerTests

from haypile.cachelib import HaypileCache

SECRET = "a secret of these tests"


class SillySerializer(BaseSerializer):
    """As in cachelib's tests of its backends."""

    def dumps(self, value):
        return repr(value).encode()

    def loads(self, bvalue):
        return eval(bvalue.decode())


class CustomCache(HaypileCache):
    """A subclass with a serializer of its own, as in these tests."""

    serializer = SillySerializer()


OPTIONS = {
    "pickle": (HaypileCache, {}),
    "signed": (HaypileCache, {"sign": SECRET}),
    "prefix": (HaypileCache, {"key_prefix": "test-key-prefix:"}),
    "serializer": (CustomCache, {}),
}


@pytest.fixture(autouse=True, params=["file", "memory"])
def store(request):
    """The scheme of the URL."""
    return request.param


@pytest.fixture(autouse=True, params=list(OPTIONS))
def cache_factory(request, store, tmp_path):
    kind, options = OPTIONS[request.param]
    url = "memory:size=16MiB" if store == "memory" else f"file:{tmp_path}/test.haypile,size=16MiB"
    opened = []

    def _factory(self, *args, **kwargs):
        cache = kind(url, *args, **{**options, **kwargs})
        opened.append(cache)
        return cache

    request.cls.cache_factory = _factory
    yield
    for cache in opened:
        cache.close()


class TestHaypileCache(CommonTests, ClearTests, HasTests, DeleteManyWithPrefixTests, SerializerTests):
    """All that cachelib tests of its backends with shared classes."""
