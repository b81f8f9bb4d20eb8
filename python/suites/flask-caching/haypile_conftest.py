"""Runs the tests of Flask-Caching over Haypile: their own fixtures, but for the cache of the application and the
clock. `run` copies it next to their conftest, as peer_conftest."""

import os
import time

import pytest

pytest_plugins = ["peer_conftest"]
SCHEME = os.environ["HAYPILE_SCHEME"]

# A test that waits longer than this is left out.
LONGEST_WAIT_S = 5


@pytest.fixture
def app(app, tmp_path):
    where = f"file:{tmp_path}/suite.haypile," if SCHEME == "file" else "memory:"
    app.config["CACHE_TYPE"] = "haypile.cachelib.HaypileCache"
    app.config["CACHE_OPTIONS"] = {"url": f"{where}size=16MiB"}
    return app


class RealClock:
    """The clock that Haypile's entries expire by, in place of one that the tests set."""

    def advance(self, seconds):
        if seconds > LONGEST_WAIT_S:
            pytest.skip(f"waits {seconds} s for an expiry by the clock of the test; ours is the real one")
        time.sleep(seconds)


@pytest.fixture
def clock():
    return RealClock()


# Tests that open another cache than that of the application, and why.
NOT_APPLICABLE = {
    "test_cache_unlink": "a test of Flask-Caching's Redis cache",
    "test_cache_unlink_if_not": "a test of Flask-Caching's SimpleCache",
    "test_cache_delete_many_ignored": "a test of Flask-Caching's SimpleCache",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in NOT_APPLICABLE:
            item.add_marker(pytest.mark.skip(reason=NOT_APPLICABLE[item.name]))
