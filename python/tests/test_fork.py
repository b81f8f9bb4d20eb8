"""Caches and forks: a child is correct whatever the threads of its parent were at."""

import os
import pathlib
import signal
import tempfile
import threading
import traceback
import unittest
import warnings

import haypile
import urls

# No machine needs that many seconds; a child that hangs ends after them.
PATIENCE = 60


def in_child(work):
    """Calls `work` in a forked child; true if it returned. The child tells of what it raised."""
    with warnings.catch_warnings():
        # Python warns of forks while there are threads, and that is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(PATIENCE)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return status == 0


class ForkTest(unittest.TestCase):
    """`memory:`, of which each process has its own."""

    def setUp(self):
        self.cache = haypile.open(urls.MEMORY)
        self.addCleanup(self.cache.close)
        self.cache.set("key", b"parent's")

    def exercise(self):
        """What a child does with an empty cache of its own."""
        cache = self.cache
        self.assertIsNone(cache.get("key"))
        self.assertTrue(cache.add("key", b"child's"))
        self.assertEqual(cache.get("key"), b"child's")
        cache.set("count", b"1")
        self.assertEqual(cache.incr("count"), 2)
        self.assertEqual(cache.get_or_compute("page", 60, lambda: b"page"), b"page")
        self.assertTrue(cache.delete("key"))
        self.assertEqual(cache.stats().deletes, 1)

    def test_a_child_has_a_cache_of_its_own(self):
        self.assertTrue(in_child(self.exercise))
        self.assertEqual(self.cache.get("key"), b"parent's")
        self.assertEqual(self.cache.stats().deletes, 0)

    def test_a_child_of_a_child(self):
        def child():
            self.exercise()
            self.cache.set("key", b"child's")
            self.assertTrue(in_child(self.exercise))
            self.assertEqual(self.cache.get("key"), b"child's")

        self.assertTrue(in_child(child))

    def test_a_child_may_close_it_or_never_use_it(self):
        def close():
            self.cache.close()
            with self.assertRaises(haypile.Closed):
                self.cache.get("key")

        self.assertTrue(in_child(close))
        self.assertTrue(in_child(lambda: None))
        self.assertEqual(self.cache.get("key"), b"parent's")

    def test_what_was_closed_before_stays_closed(self):
        self.cache.close()

        def child():
            for use in [lambda: self.cache.get("key"), self.cache.stats]:
                with self.assertRaises(haypile.Closed):
                    use()

        self.assertTrue(in_child(child))

    def test_forks_while_threads_work(self):
        stop = threading.Event()

        def work(number):
            while not stop.is_set():
                self.cache.set(f"{number}", bytes(1000))
                self.cache.get(f"{number}")
                self.cache.get_or_compute(f"page {number}", 0.001, lambda: b"page")
                haypile.open(urls.MEMORY).close()

        threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(40):
                self.assertTrue(in_child(self.exercise))
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def test_a_fork_while_a_thread_computes_and_another_waits(self):
        begun, end = threading.Event(), threading.Event()
        values = []

        def compute():
            begun.set()
            end.wait(PATIENCE)
            return b"parent's"

        def ask():
            values.append(self.cache.get_or_compute("page", 60, compute))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait(PATIENCE)
        try:
            # In the child nobody computes it, and it must not wait for the parent's thread.
            self.assertTrue(in_child(self.exercise))
        finally:
            end.set()
            for thread in threads:
                thread.join()
        self.assertEqual(values, [b"parent's"] * 2)

    def test_a_fork_within_a_computation(self):
        children = []

        def compute():
            children.append(in_child(self.exercise))
            return b"page"

        self.assertEqual(self.cache.get_or_compute("page", 60, compute), b"page")
        self.assertEqual(children, [True])

    def test_a_child_that_ends_the_computation_it_was_forked_in(self):
        pids = []

        def compute():
            pids.append(os.fork())
            return b"page"

        value = self.cache.get_or_compute("page", 60, compute)
        if pids == [0]:
            ok = value == b"page" and self.cache.get("page") is None
            os._exit(0 if ok else 1)
        _, status = os.waitpid(pids[0], 0)
        self.assertEqual(status, 0)
        self.assertEqual(self.cache.get("page"), b"page")

    def test_a_child_does_not_save_what_is_its_parents_to_save(self):
        with tempfile.TemporaryDirectory() as directory:
            snapshot = pathlib.Path(directory) / "snapshot"
            cache = haypile.open(f"memory:size=1MiB,persist={snapshot}")
            cache.set("key", b"value")

            def drop():
                nonlocal cache
                cache = None

            self.assertTrue(in_child(drop))
            self.assertFalse(snapshot.exists())
            cache.close()
            self.assertTrue(snapshot.exists())


class SharedForkTest(unittest.TestCase):
    """`file:`, of which there is one for all."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = haypile.open(urls.shared(holder.name))
        self.addCleanup(self.cache.close)

    def test_parent_and_children_have_one_cache(self):
        self.cache.set("key", b"parent's")
        self.cache.set("count", b"0")

        def child():
            self.assertEqual(self.cache.get("key"), b"parent's")
            self.cache.set("key", b"child's")
            for _ in range(1000):
                self.cache.incr("count")

        self.assertTrue(in_child(child))
        self.assertEqual(self.cache.get("key"), b"child's")
        self.assertEqual(self.cache.incr("count", 0), 1000)

    def test_a_child_goes_on_reading_a_view(self):
        self.cache.set("view", b"A" * 100_000)
        view = self.cache.get_view("view")
        self.assertEqual(view[0], ord("A"))
        told, tell = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.read(told, 1)
            os._exit(0 if bytes(view) == b"A" * 100_000 else 1)
        # The parent lets go of it, and uses its place again.
        del view
        self.cache.delete("view")
        for number in range(1000):
            self.cache.set(f"other {number}", b"Z" * 100_000)
        os.write(tell, b"x")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(told)
        os.close(tell)

    def test_forks_while_threads_work(self):
        stop = threading.Event()
        self.cache.set("count", b"0")

        def work():
            while not stop.is_set():
                self.cache.incr("count")
                self.cache.set("key", bytes(1000))
                self.cache.get("key")

        def child():
            for number in range(20):
                self.cache.incr("count")
                self.cache.set(f"{number}", b"child's")
                self.assertEqual(self.cache.get_or_compute("page", 60, lambda: b"page"), b"page")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(40):
                self.assertTrue(in_child(child))
        finally:
            stop.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    unittest.main()
