"""Caches and memoized functions that are given to other processes, by each way to start them."""

import asyncio
import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import tempfile
import threading
import unittest
import warnings

import haypile
import urls

# No machine needs that many seconds.
PATIENCE = 120
SECRET = b"a secret of sixteen bytes or more"
METHODS = [method for method in ("fork", "spawn", "forkserver") if method in multiprocessing.get_all_start_methods()]

# Of each process its own, where it is imported again.
OBJECTS = haypile.Objects(urls.MEMORY)


@OBJECTS.memoize()
def squared(number):
    return [number * number, os.getpid()]


@OBJECTS.memoize()
async def cubed(number):
    return number**3


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __cache_key__(self):
        return self.factor

    @OBJECTS.memoize()
    def of(self, number):
        return number * self.factor


def use(cache):
    """Everything a child does with a cache that it was given; returns what it found and whether it is one."""
    found = cache.get("key")
    cache["key"] = b"child's"
    cache.incr("count", 1, initial=0)
    assert cache.get_or_compute("page", 60, lambda: b"page") == b"page"
    assert b"key" in set(cache) and cache.get_view("key") == b"child's"
    return found


def work(cache, results):
    """The same in a process of its own, which ends with 0."""
    results.put(use(cache))


def counted(cache, times):
    """Counts; of several processes no count is lost."""
    for _ in range(times):
        cache.incr("count", 1, initial=0)
    return os.getpid()


def read(objects):
    """What an Objects of this process has under a key."""
    return objects.get("key")


CACHE = None


def begin(cache):
    """Keeps the cache of a pool's process."""
    global CACHE
    CACHE = cache


def ask(key):
    """Asks it."""
    return CACHE.get_or_compute(key, 60, lambda: b"%d" % os.getpid())


class StartTest(unittest.TestCase):
    def setUp(self):
        self.shared = haypile.open(urls.file(self))
        self.addCleanup(self.shared.close)
        self.memory = haypile.open(urls.MEMORY)
        self.addCleanup(self.memory.close)
        # Python warns of forks while there are threads, and a pool has some.
        catching = warnings.catch_warnings()
        catching.__enter__()
        self.addCleanup(catching.__exit__, None, None, None)
        warnings.simplefilter("ignore", DeprecationWarning)

    def contexts(self):
        for method in METHODS:
            self.shared.clear()
            self.memory.clear()
            self.memory["key"] = self.shared["key"] = b"parent's"
            with self.subTest(method):
                yield multiprocessing.get_context(method)

    def test_an_argument_of_a_process(self):
        for context in self.contexts():
            for cache, expected in ((self.shared, b"parent's"), (self.memory, None)):
                results = context.SimpleQueue()
                process = context.Process(target=work, args=(cache, results))
                process.start()
                process.join(PATIENCE)
                self.assertEqual(process.exitcode, 0)
                self.assertEqual(results.get(), expected)
                results.close()
            self.assertEqual(self.shared["key"], b"child's")
            self.assertEqual(self.memory["key"], b"parent's")

    def test_a_closed_cache(self):
        # A fork inherits it closed; a pickle is the URL.
        for context in self.contexts():
            closed = haypile.open(self.shared.url)
            closed.close()
            with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
                self.assertEqual(pool.submit(use, closed).result(PATIENCE), b"parent's")

    def test_pools(self):
        for context in self.contexts():
            with concurrent.futures.ProcessPoolExecutor(3, context, begin, (self.shared,)) as pool:
                answers = set(pool.map(ask, ["key one"] * 30, timeout=PATIENCE))
                self.assertEqual(len(answers), 1)
                self.assertNotEqual(answers, {b"%d" % os.getpid()})
                pids = set(pool.map(counted, [self.shared] * 30, [20] * 30, timeout=PATIENCE))
                self.assertNotIn(os.getpid(), pids)
            self.assertEqual(self.shared["count"], b"600")

    def test_objects(self):
        for context in self.contexts():
            with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
                for serializer in ("json", "pickle"):
                    objects = haypile.Objects(self.shared, serializer)
                    objects["key"] = [1, None]
                    self.assertEqual(pool.submit(read, objects).result(PATIENCE), [1, None])

    def test_memoized_functions(self):
        for context in self.contexts():
            with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
                first, second = pool.map(squared, [7, 7], timeout=PATIENCE)
                self.assertEqual((first, first[0]), (second, 49))
                self.assertNotEqual(first[1], os.getpid())
                self.assertEqual(pool.submit(Scale(3).of, 5).result(PATIENCE), 15)

    def test_a_process_that_forks_while_a_thread_computes(self):
        begun, end = threading.Event(), threading.Event()

        def compute():
            begun.set()
            end.wait(PATIENCE)
            return b"parent's"

        cache = haypile.open(f"{self.shared.url}&compute_wait=200ms")
        self.addCleanup(cache.close)
        for context in self.contexts():
            begun.clear()
            end.clear()
            thread = threading.Thread(target=cache.get_or_compute, args=("page", 60, compute))
            thread.start()
            self.assertTrue(begun.wait(PATIENCE))
            try:
                results = context.SimpleQueue()
                process = context.Process(target=work, args=(cache, results))
                process.start()
                # It waits for the thread of its parent, and then computes itself.
                process.join(PATIENCE)
                self.assertEqual(process.exitcode, 0)
                results.close()
            finally:
                end.set()
                thread.join()


class PickleTest(unittest.TestCase):
    def setUp(self):
        self.cache = haypile.open(urls.file(self))
        self.addCleanup(self.cache.close)
        self.cache["key"] = b'"value"'

    def test_a_cache_is_its_url(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            copied = pickle.dumps(self.cache, protocol)
            self.assertNotIn(b"value", copied)
            with pickle.loads(copied) as cache:
                self.assertEqual((cache["key"], cache.url), (b'"value"', self.cache.url))
        for copied in (copy.copy(self.cache), copy.deepcopy(self.cache)):
            copied.close()
            self.assertEqual(self.cache["key"], b'"value"')

    def test_a_cache_that_cannot_be_opened_there(self):
        with tempfile.TemporaryDirectory() as directory:
            with haypile.open(f"file:{directory}/a.haypile,size=2MiB") as cache:
                copied = pickle.dumps(cache)
        with self.assertRaisesRegex(haypile.OpenError, f"{directory}/a.haypile.*No such file"):
            pickle.loads(copied)

    def test_what_is_not_pickled(self):
        for value in (iter(self.cache), self.cache.get_view("key"), self.cache.get_view("key").obj):
            with self.assertRaisesRegex(TypeError, "cannot pickle"):
                pickle.dumps(value)

    def test_objects_are_verified_again(self):
        path = self.cache.url.removeprefix("file://").partition("?")[0]
        copied = pickle.dumps(haypile.Objects(self.cache, "pickle"))
        os.chmod(path, 0o640)
        with self.assertRaisesRegex(haypile.UnsafePickle, "mode 640"):
            pickle.loads(copied)
        os.chmod(path, 0o600)
        objects = pickle.loads(copied)
        objects["key"] = {1}
        self.assertEqual(haypile.Objects(self.cache, "pickle")["key"], {1})
        objects.close()

    def test_a_secret_is_not_pickled(self):
        for serializer in ("json", "pickle"):
            with self.assertRaisesRegex(TypeError, "the secret") as caught:
                pickle.dumps(haypile.Objects(self.cache, serializer, sign=SECRET))
            self.assertNotIn(SECRET.decode(), str(caught.exception))

    def test_memoized_functions_are_found_by_name(self):
        for function in (squared, cubed, Scale.of):
            self.assertIs(pickle.loads(pickle.dumps(function)), function)
            self.assertIs(copy.deepcopy(function), function)
        self.assertEqual(asyncio.run(pickle.loads(pickle.dumps(cubed))(3)), 27)
        self.assertEqual(pickle.loads(pickle.dumps(Scale(4).of))(3), 12)
        local = OBJECTS.memoize()(lambda: None)
        with self.assertRaises((pickle.PicklingError, AttributeError)):
            pickle.dumps(local)

    def test_errors(self):
        for name in haypile.__all__:
            kind = getattr(haypile, name)
            if isinstance(kind, type) and issubclass(kind, Exception):
                copied = pickle.loads(pickle.dumps(kind("its text")))
                self.assertEqual((type(copied), str(copied)), (kind, "its text"))


if __name__ == "__main__":
    unittest.main()
