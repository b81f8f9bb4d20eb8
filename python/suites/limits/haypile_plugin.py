"""Runs the tests of `limits` over Haypile: in place of the conftest of its sources, which starts servers.

Each test whose parameters name the storage `memory://` runs with a storage of ours instead. Those for servers
are left out, as are the fixtures that start them.
"""

import os
import sys
import time
import types

import pytest

import haypile.limits

# Processes that test at once empty the storage, so each has a file.
URL = os.environ["HAYPILE_URL"].format(worker=os.environ.get("PYTEST_XDIST_WORKER", "suite"))

# A window of limits begins at a full minute or hour of the clock, and a test that a boundary divides fails over the
# storages of limits too (its authors mark those tests as flaky). No test begins so near the end of a minute. The longest
# within a minute takes 2 s; those over windows of a few seconds wait for their boundaries themselves.
ROOM_S = 10

# The sources import clients of servers in order to name them in parameters that are not used here.
for name in ("redis", "redis.cluster"):
    module = types.ModuleType(name)
    module.ClusterNode = lambda *args: args
    module.__spec__ = types.SimpleNamespace(name=name)
    sys.modules[name] = module
sys.modules["redis"].cluster = sys.modules["redis.cluster"]
sys.modules["redis"].__version__ = "0"


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    parametrize = metafunc.parametrize

    def ours(names, values, **options):
        if "uri" in names and "fixture" in names:
            values = [
                pytest.param(*(_ours(value) for value in param.values), id="haypile")
                for param in values
                if param.values[0] in ("memory://", "async+memory://")
            ]
        parametrize(names, values, **options)

    metafunc.parametrize = ours


def _ours(value):
    if value == "memory://":
        return f"haypile+{URL}"
    if value == "async+memory://":
        return f"async+haypile+{URL}"
    name = getattr(value, "__name__", "")
    if name == "MemoryStorage":
        is_async = "aio" in value.__module__
        return haypile.limits.AsyncHaypileStorage if is_async else haypile.limits.HaypileStorage
    return value


@pytest.fixture(autouse=True)
def empty_storage():
    """Empties the cache, as the fixtures of the sources flush their servers, and leaves the test room in its minute."""
    cache = haypile.open(URL)
    cache.clear()
    left = 60 - time.time() % 60
    if left < ROOM_S:
        time.sleep(left)
    yield
    cache.close()
