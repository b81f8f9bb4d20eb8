"""The tests that dogpile.cache has for the authors of backends, over the cache HAYPILE_URL."""

import os

from dogpile.testing.fixtures import (
    _GenericBackendTestSuite,
    _GenericMutexTestSuite,
    _GenericSerializerTestSuite,
)

# Processes that test at once use the same keys, so each has a file.
URL = os.environ["HAYPILE_URL"].format(worker=os.environ.get("PYTEST_XDIST_WORKER", "suite"))


class Haypile:
    backend = "haypile"
    config_args = {"arguments": {"url": URL, "distributed_lock": True}}

    @classmethod
    def teardown_class(cls):
        # The fixture reuses the keys of one test in the next.
        cls._keys.clear()


class TestBackend(Haypile, _GenericBackendTestSuite):
    pass


class TestBackendOwnLocks(Haypile, _GenericBackendTestSuite):
    # Locks of dogpile: the suite then also checks that creators never overlap.
    config_args = {"arguments": {"url": URL, "distributed_lock": False}}


class TestBackendSigned(Haypile, _GenericBackendTestSuite):
    config_args = {"arguments": {"url": URL, "sign": "a secret of sixteen bytes or more"}}


class TestSerializer(Haypile, _GenericSerializerTestSuite, _GenericBackendTestSuite):
    pass


class TestMutex(Haypile, _GenericMutexTestSuite):
    pass
