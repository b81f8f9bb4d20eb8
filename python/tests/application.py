"""A WSGI application over one cache, for test_gunicorn.py: gunicorn's master loads it, then forks.

Each answer is JSON with the process that gave it.
"""

import json
import os
import pathlib
import time
import urllib.parse

import haypile

DIRECTORY = pathlib.Path(os.environ["HAYPILE_TEST_DIRECTORY"])
# Opened by the master, and used by it: all workers inherit it.
CACHE = haypile.open(os.environ["HAYPILE_TEST_URL"])
CACHE.set("from the master", b"master")
CACHE.set("count", b"0")


def compute(query):
    """Computes slowly, until the test says so, and writes down that it did."""
    def value():
        (DIRECTORY / f"computed.{os.getpid()}").touch()
        wait_for("computed")
        return b"computed"

    (DIRECTORY / f"asked.{os.getpid()}").touch()
    return CACHE.get_or_compute(query["key"], 60, value).decode()


def wait_for(name):
    """Waits for a file of the test."""
    end = time.monotonic() + 60
    while not (DIRECTORY / name).exists():
        if time.monotonic() > end:
            raise TimeoutError(name)
        time.sleep(0.005)


def get(query):
    """The value of a key."""
    value = CACHE.get(query["key"])
    return value and value.decode()


def set_(query):
    """Writes a value."""
    CACHE.set(query["key"], query["value"].encode())


def incr(query):
    """Counts many times."""
    for _ in range(int(query["times"])):
        CACHE.incr("count")
    return CACHE.incr("count", 0)


ROUTES = {"/compute": compute, "/get": get, "/set": set_, "/incr": incr}


def application(environ, start_response):
    """What gunicorn calls."""
    query = dict(urllib.parse.parse_qsl(environ["QUERY_STRING"]))
    if "meet" in query:
        # Until the test has seen that each worker has a request.
        (DIRECTORY / f"met.{os.getpid()}").touch()
        wait_for("release")
    answer = ROUTES[environ["PATH_INFO"]](query)
    body = json.dumps({"pid": os.getpid(), "answer": answer}).encode()
    start_response("200 OK", [("Content-Type", "application/json"),
                              ("Content-Length", str(len(body)))])
    return [body]
