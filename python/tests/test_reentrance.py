"""Python code that a cache calls, or that interrupts one, and that uses the same cache.

A test that hangs ends the whole process with the stacks of all threads.
"""

import contextlib
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import unittest
import weakref

import haypile
import urls

# No machine needs that many seconds.
PATIENCE = 120
LARGE = bytes(range(256)) * 400


class Argument:
    """An argument whose key is the result of a function."""

    def __init__(self, key):
        self.key = key

    def __cache_key__(self):
        return self.key()


class ReentranceTest:
    """The same for every kind of cache."""

    def setUp(self):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.name = self.url()
        self.cache = haypile.open(self.name)
        self.addCleanup(self.cache.close)
        self.uses = 0
        # What finalizers and callbacks raise.
        unraisable = []
        self.addCleanup(lambda: self.assertEqual(unraisable, []))
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda found: unraisable.append(repr(found.exc_value))

    def use(self):
        """Uses the cache in every way except closing it; leaves the keys of others alone."""
        self.uses += 1
        cache, number = self.cache, self.uses
        key = f"inner {number % 100}"
        cache.set(key, b"%d" % number, 60)
        assert cache.get(key) == b"%d" % number
        assert cache.incr(key) == number + 1
        assert cache.get_many([key, "none"]) == [b"%d" % (number + 1), None]
        cache.set_many({key: LARGE})
        view = cache.get_view(key)
        value, version = cache.get_versioned(key)
        assert view == value and cache.cas(key, b"new", version)
        assert key.encode() in set(cache)
        assert cache.pop(key) == b"new"
        assert cache.get_or_compute(key, 60, lambda: b"computed") == b"computed"
        assert haypile.Objects(cache).get_or_set(f"{key} object", [1]) == [1]
        cache.delete(key)
        with haypile.open(urls.MEMORY) as other:
            other["key"] = b"other"

    def clear(self):
        self.use()
        self.cache.clear()

    def close(self):
        self.use()
        self.cache.close()

    def reopen(self):
        """After a test that closes it."""
        self.cache.close()
        self.cache = haypile.open(self.name)
        self.addCleanup(self.cache.close)
        return self.cache

    def test_a_computation(self):
        compute = self.cache.get_or_compute
        self.assertEqual(compute("key", 60, lambda: [self.use()] and b"computed"), b"computed")
        self.assertEqual(self.cache["key"], b"computed")
        for change in (self.clear, lambda: self.cache.delete("other")):
            self.assertEqual(compute("other", 60, lambda: [change()] and b"computed"), b"computed")
            self.cache.delete("other")
        # What is written in the meantime is newer.
        value = compute("third", 60, lambda: self.cache.set("third", b"written") or b"computed")
        self.assertEqual((value, self.cache["third"]), (b"computed", b"written"))

    def test_a_computation_that_closes(self):
        for options in ({}, {"stale": 60}, {"early": 1}):
            value = self.cache.get_or_compute("key", 60, lambda: [self.close()] and b"computed", **options)
            self.assertEqual(value, b"computed")
            with self.assertRaises(haypile.Closed):
                self.cache.get("key")
            self.reopen().delete("key")

    def test_a_computation_that_drops_the_cache(self):
        holder = [haypile.open(self.name)]

        def compute():
            holder.clear()
            gc.collect()
            return b"computed"

        self.assertEqual(holder[0].get_or_compute("key", 60, compute), b"computed")

    def test_computations_within_computations(self):
        def nested(depth):
            inner = (lambda: nested(depth - 1) + b".") if depth else lambda: b"bottom"
            return self.cache.get_or_compute(f"depth {depth}", 60, inner)

        self.assertEqual(nested(100), b"bottom" + b"." * 100)
        self.assertEqual(self.cache["depth 50"], b"bottom" + b"." * 50)
        self.cache.clear()
        with self.assertRaises(RecursionError):
            nested(1_000_000)
        self.assertEqual(nested(10), b"bottom" + b"." * 10)

    def test_what_ends_a_thread_is_raised(self):
        for error in (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration):
            def fail():
                self.use()
                raise error

            with self.assertRaises(error):
                self.cache.get_or_compute("key", 60, fail)
            self.assertNotIn("key", self.cache)

    def test_a_computation_is_forgotten_with_what_it_raised(self):
        class Failure(Exception):
            def __del__(_):
                self.use()

        # A failed refresh returns the current value, and nobody sees its exception.
        self.cache.set("key", b"old", 5)
        for options in ({"early": 59.999}, {"stale": 60, "early": 59.999}):
            failures = []

            def fail():
                failure = Failure()
                failures.append(weakref.ref(failure))
                raise failure

            uses = self.uses
            self.assertEqual(self.cache.get_or_compute("key", 60, fail, **options), b"old")
            gc.collect()
            self.assertEqual([failure() for failure in failures], [None])
            self.assertEqual(self.uses, uses + 1)

    def test_iterables(self):
        for change in (self.use, self.clear):
            def keys():
                for number in range(5):
                    change()
                    self.cache[f"key {number}"] = b"%d" % number
                    yield f"key {number}"

            found = [None] * 4 + [b"4"] if change == self.clear else [b"0", b"1", b"2", b"3", b"4"]
            self.assertEqual(self.cache.get_many(keys()), found)
            self.cache.set_many((key, b"written") for key in keys())
            self.assertEqual(self.cache["key 0"], b"written")
            self.assertEqual(self.cache.delete_many(keys()), 1 if change == self.clear else 5)
        objects = haypile.Objects(self.cache)
        objects.set_many((key, 7) for key in keys())
        self.assertEqual(objects.get_many(keys()), {"key 4": 4})

    def test_iterables_that_close(self):
        def keys():
            self.close()
            yield "key"

        for operation in (lambda: self.cache.get_many(keys()), lambda: self.cache.delete_many(keys()),
                          lambda: self.cache.set_many((key, b"v") for key in keys())):
            with self.assertRaises(haypile.Closed):
                operation()
            self.reopen()

    def test_serializers(self):
        def dumps(value):
            self.use()
            return repr(value).encode()

        def loads(data):
            self.use()
            self.cache["loaded"] = data
            return int(data)

        objects = haypile.Objects(self.cache, (dumps, loads))
        objects["key"] = -1
        objects.set_many({"other": -2})
        self.assertEqual((objects["key"], objects.get_many(["other"])), (-1, {"other": -2}))
        self.assertEqual(objects.get_or_compute("computed", 60, lambda: -3), -3)
        self.assertEqual(objects.get_or_compute("computed", 60, lambda: self.fail("it is there")), -3)
        self.assertEqual(objects.pop("computed"), -3)
        self.assertEqual(self.cache["loaded"], b"-3")
        self.assertEqual(self.uses, 7)
        closing = haypile.Objects(self.cache, (lambda value: [self.close()] and b"-4", int))
        self.assertEqual(closing.get_or_compute("closing", 60, lambda: -4), -4)
        self.reopen()
        closing = haypile.Objects(self.cache, (lambda value: [self.close()] and b"-4", int))
        with self.assertRaises(haypile.Closed):
            closing["key"] = -4

    def test_keys_of_calls(self):
        outer = self
        objects = haypile.Objects(self.cache)

        def key():
            outer.use()
            return remembered(1) if outer.uses < 10 else 1

        @objects.memoize(ttl=60, name="remembered")
        def remembered(argument):
            outer.use()
            return 1

        self.assertEqual([remembered(Argument(key)), remembered(Argument(key))], [1, 1])
        self.assertEqual(remembered.cache_info().misses, 2)

    def test_finalizers(self):
        outer = self

        class Text(str):
            def __del__(self):
                outer.use()

        class Value(bytes):
            __del__ = Text.__del__

        cache = self.cache
        for operation in (
                lambda: cache.set(Text("key"), Value(b"value")), lambda: cache.get(Text("key")),
                lambda: cache.get("none", Value(b"value")), lambda: cache.set_many([(Text("key"), Value(b"value"))]),
                lambda: cache.get_many([Text("key")]), lambda: cache.get_view(Text("key")),
                lambda: cache.get_or_set(Text("key"), Value(b"value")), lambda: cache.pop(Text("none"), Value(b"value")),
                lambda: cache.get_or_compute(Text("new"), 60, lambda: Value(b"value")), lambda: cache[Text("key")],
                lambda: cache.delete(Text("new")), lambda: Text("key") in cache):
            uses = self.uses
            operation()
            gc.collect()
            self.assertGreater(self.uses, uses)
        self.assertEqual(cache["key"], b"value")

    def test_finalizers_that_the_collector_calls(self):
        outer = self

        class Cycle:
            def __init__(self):
                self.cycle = self

            def __del__(self):
                if not outer.busy:
                    outer.busy = True
                    outer.use()
                    outer.busy = False

        self.busy = False
        thresholds = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *thresholds)
        gc.set_threshold(1, 1, 1)
        end = time.monotonic() + PATIENCE / 2
        while self.uses < 100 and time.monotonic() < end:
            Cycle()
            self.cache["key"] = b"value"
            Cycle()
            self.assertEqual(self.cache.get_many(["key", "none"]), [b"value", None])
            Cycle()
            self.assertIn((b"key", b"value"), list(self.cache.items()))
            self.assertEqual(self.cache.get_or_compute("new", 60, lambda: [Cycle()] and b"new"), b"new")
            self.assertIsNotNone(self.cache.get_view("key"))
            self.cache.delete("new")
        self.assertGreaterEqual(self.uses, 100)
        self.busy = True
        gc.collect()

    def test_callbacks_of_weak_references(self):
        class Value:
            pass

        value = Value()
        reference = weakref.ref(value, lambda _: self.use())
        self.assertIsNone(self.cache.pop("none", None))

        def compute():
            nonlocal value
            value = None
            return b"computed"

        self.assertEqual(self.cache.get_or_compute("key", 60, compute), b"computed")
        self.assertIsNone(reference())
        self.assertEqual(self.uses, 1)
        # A cache has none itself, and says so.
        with contextlib.suppress(TypeError):
            weakref.ref(self.cache)

    @unittest.skipIf(sys.version_info < (3, 12), "objects of Python have buffers from Python 3.12 on")
    def test_buffers(self):
        entries = {}

        class Buffer:
            def __init__(self, change):
                self.change = change

            def __buffer__(self, _flags):
                self.change()
                return memoryview(b"buffer")

        def grow():
            entries[f"new {len(entries)}"] = b"new"

        for change in (self.use, self.clear, lambda: self.cache.set("key", b"inner"), entries.clear, grow):
            self.cache["key"] = Buffer(change)
            self.assertEqual(self.cache["key"], b"buffer")
            entries.update({"key": Buffer(change), "other": Buffer(change)})
            self.cache.set_many(entries)
            self.assertEqual(self.cache.get_many(["key", "other"]), [b"buffer"] * 2)
            self.cache.delete("key")
            self.assertEqual(self.cache.get_or_compute("key", 60, lambda: Buffer(change)), b"buffer")
        with self.assertRaises(haypile.Closed):
            self.cache["key"] = Buffer(self.close)

    def test_iteration(self):
        self.cache.set_many({f"key {number}": b"v" for number in range(1000)})
        keys = {key for key in self.cache if not key.startswith(b"inner")}
        seen = 0
        for key in self.cache:
            seen += key in keys
            if seen % 200 == 1:
                self.use()
        self.assertEqual(seen, 1000)
        iterators = iter(self.cache), iter(self.cache.items()), iter(self.cache.values())
        for iterator in iterators:
            next(iterator)
        self.close()
        for iterator in iterators:
            with self.assertRaises(haypile.Closed):
                list(iterator)
        self.reopen()["key"] = b"value"
        dropped = iter(haypile.open(self.name))
        gc.collect()
        self.assertIsInstance(list(dropped), list)

    def test_views(self):
        self.cache["key"] = LARGE
        view = self.cache.get_view("key")
        self.clear()
        self.use()
        self.assertEqual(view, LARGE)
        self.close()
        self.assertEqual(view, LARGE)
        self.cache = None
        gc.collect()
        self.assertEqual(view, LARGE)
        self.cache = haypile.open(self.name)
        self.addCleanup(self.cache.close)
        self.cache["key"] = b"new"
        self.assertEqual(view[1:], LARGE[1:])
        del view
        self.assertEqual(self.cache["key"], b"new")

    def test_closing_while_threads_work(self):
        for _ in range(20):
            cache, errors = self.reopen(), []
            cache["key"] = b"value"
            begun = threading.Barrier(4)

            def work():
                begun.wait(PATIENCE)
                try:
                    while True:
                        assert cache.get("key") == b"value"
                        cache.set("key", b"value")
                        assert cache.get_or_compute("key", 60, lambda: b"value") == b"value"
                        assert (b"key", b"value") in list(cache.items())
                        assert bytes(cache.get_view("key")) == b"value"
                except haypile.Closed:
                    pass
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            begun.wait(PATIENCE)
            for _ in range(20):
                cache.get("key")
            cache.close()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])


class SignalTest(ReentranceTest):
    """Handlers of signals."""

    def handle(self, handler):
        """Calls this at every SIGALRM."""
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, handler))

    def test_handlers_during_operations(self):
        within = False

        def handler(_number, _frame):
            nonlocal within
            if not within:
                within = True
                self.use()
                within = False

        self.handle(handler)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        end = time.monotonic() + PATIENCE / 2
        rounds = 0
        while self.uses < 50 and time.monotonic() < end:
            rounds += 1
            key = f"key {rounds % 10}"
            self.cache.set(key, LARGE)
            self.assertEqual(self.cache.get(key), LARGE)
            self.assertEqual(self.cache.get_many([key, "none"]), [LARGE, None])
            self.assertIn(key.encode(), set(self.cache))
            self.assertEqual(self.cache.pop(key), LARGE)
            self.assertEqual(self.cache.get_or_compute(key, 60, lambda: b"computed"), b"computed")
        self.assertGreaterEqual(self.uses, 50)

    @contextlib.contextmanager
    def computing(self):
        """Another thread computes `key` for as long as this lasts; the result ends that."""
        cache = self.cache
        begun, end = threading.Event(), threading.Event()

        def compute():
            begun.set()
            end.wait(PATIENCE)
            return b"theirs"

        thread = threading.Thread(target=cache.get_or_compute, args=("key", 60, compute))
        thread.start()
        self.assertTrue(begun.wait(PATIENCE))
        try:
            yield end.set
        finally:
            end.set()
            thread.join()

    def wait(self):
        """Waits for `key`, and sends a signal to this thread when it has missed."""
        misses = self.cache.stats().misses
        cache, main = self.cache, threading.main_thread().ident

        def send():
            end = time.monotonic() + PATIENCE
            while cache.stats().misses == misses and time.monotonic() < end:
                time.sleep(0.001)
            signal.pthread_kill(main, signal.SIGALRM)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return self.cache.get_or_compute("key", 60, lambda: b"its own")
        finally:
            sender.join()

    def test_handlers_during_a_wait(self):
        handled = []
        with self.computing() as end:
            def handler(_number, _frame):
                self.use()
                # A wait within a wait for the same value, which the other thread ends.
                threading.Thread(target=end).start()
                handled.append(self.cache.get_or_compute("key", 60, lambda: b"the handler's"))

            self.handle(handler)
            self.assertEqual(self.wait(), b"theirs")
        self.assertEqual(handled, [b"theirs"])

    def test_a_handler_that_closes_during_a_wait(self):
        with self.computing() as end:
            def handler(_number, _frame):
                self.close()
                end()

            self.handle(handler)
            try:
                value = self.wait()
            except haypile.Closed:
                value = b"closed"
        self.assertIn(value, (b"theirs", b"its own", b"closed"))
        self.assertTrue(self.cache.closed)

    def test_a_handler_that_forks_during_a_wait(self):
        statuses = []
        with self.computing() as end:
            def handler(_number, _frame):
                pid = os.fork()
                if pid == 0:
                    try:
                        # The thread of faulthandler is the parent's.
                        signal.signal(signal.SIGALRM, signal.SIG_DFL)
                        signal.alarm(PATIENCE)
                        self.use()
                        os._exit(0)
                    finally:
                        os._exit(1)
                statuses.append(os.waitpid(pid, 0)[1])
                end()

            self.handle(handler)
            with self.assertWarnsRegex(DeprecationWarning, "fork") if sys.version_info >= (3, 12) \
                    else contextlib.nullcontext():
                self.assertEqual(self.wait(), b"theirs")
        self.assertEqual(statuses, [0])


class MemoryTest(SignalTest, unittest.TestCase):
    """`memory:`"""

    def url(self):
        return urls.MEMORY


class FileTest(SignalTest, unittest.TestCase):
    """`file:`"""

    def url(self):
        return urls.file(self)


class LevelsTest(SignalTest, unittest.TestCase):
    """Two levels, of which operations release the GIL."""

    def url(self):
        return f"memory:size=2MiB -> {urls.file(self)}"


if __name__ == "__main__":
    unittest.main()
