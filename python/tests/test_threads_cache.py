"""One cache that threads use at the same time: no operation fails, and no value is torn or lost."""

import gc
import itertools
import os
import pickle
import sys
import sysconfig
import threading
import time
import unittest

import haypile
import urls
from hammer import SECONDS, THREADS, hammer
from test_fork import in_child

# Above the length from which the GIL is released for a write.
LONG = 70_000


def value_of(byte, length=1500):
    return bytes([byte % 256]) * length


def is_whole(value):
    return value.count(value[0]) == len(value)


class ThreadsTest:
    """The same for every kind of cache."""

    def setUp(self):
        self.cache = haypile.open(self.url())
        self.addCleanup(self.cache.close)

    def test_every_operation_on_the_same_keys(self):
        cache = self.cache
        steps = itertools.cycle(range(256))

        def use(number):
            step = next(steps)
            key = f"key {step % 7}"
            cache.set(key, value_of(step, 1500 if step % 16 else LONG), 60)
            for found in (cache.get(key), cache.get_view(key), *cache.get_many([key, "key 0"])):
                self.assertTrue(found is None or is_whole(bytes(found)))
            found = cache.get_versioned(key)
            if found is not None:
                cache.cas(key, value_of(step), found[1])
            cache.get_or_set(key, value_of(step))
            cache.add(key, value_of(step))
            cache.replace(key, value_of(step))
            cache.touch(key, 60)
            cache.set_many({key: value_of(step), "key 0": value_of(step)})
            cache.get_or_compute(key, 60, lambda: value_of(step))
            cache.get_or_compute(key, 60, lambda: value_of(step), stale=60)
            self.assertIn(key in cache, (True, False))
            found = cache.pop(key, None)
            self.assertTrue(found is None or is_whole(found))
            cache.delete("key 0")
            cache.delete_many([key])
            self.assertLessEqual(len(cache), 8)
            self.assertLessEqual(set(cache), {b"key %d" % number for number in range(7)})
            self.assertGreater(cache.stats().sets, 0)
            repr(cache)

        hammer(self, use)

    def test_no_count_is_lost(self):
        counts = [0] * THREADS

        def count(number):
            self.cache.incr("number", 3, initial=0)
            self.cache.decr("number", 2, initial=0)
            counts[number] += 1

        self.cache["number"] = b"0"
        hammer(self, count)
        self.assertEqual(int(self.cache["number"]), sum(counts))

    def test_no_swap_is_lost(self):
        swapped = [0] * THREADS

        def swap(number):
            value, version = self.cache.get_versioned("number")
            if self.cache.cas("number", b"%d" % (int(value) + 1), version):
                swapped[number] += 1

        self.cache["number"] = b"0"
        hammer(self, swap)
        self.assertEqual(int(self.cache["number"]), sum(swapped))

    def test_one_of_all_threads_computes(self):
        rounds = itertools.count()
        computed = {}
        keys = {}

        def get(number):
            # Threads ask for the keys in the same order, so that they meet.
            keys[number] = keys.get(number, 0) + 1
            key = f"key {keys[number]}"

            def compute():
                computed.setdefault(key, []).append(number)
                return key.encode()

            self.assertEqual(self.cache.get_or_compute(key, 600, compute), key.encode())
            next(rounds)

        hammer(self, get, seconds=SECONDS / 2)
        self.assertEqual([key for key, numbers in computed.items() if len(numbers) != 1], [])

    def test_threads_that_share_an_iterator_get_each_key_once(self):
        keys = {b"key %d" % number for number in range(2000)}
        self.cache.set_many([(key, b"") for key in keys])
        iterator = iter(self.cache)
        found = [[] for _ in range(THREADS)]

        def step(number):
            found[number].extend(itertools.islice(iterator, 10))

        hammer(self, step, seconds=SECONDS / 2)
        found = [key for part in found for key in part]
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(set(found), keys)

    def test_a_view_stays_as_it_is_while_others_overwrite(self):
        cache = self.cache
        cache["key"] = value_of(1, LONG)
        held = cache.get_view("key")
        expected = bytes(held)

        def overwrite(number):
            cache.set("key", value_of(number, LONG))
            cache.delete("key")

        def read(number):
            self.assertEqual(bytes(held), expected)
            view = cache.get_view("key")
            if view is not None:
                self.assertTrue(is_whole(bytes(view)))
                part = view[1:100]
                view.release()
                self.assertTrue(is_whole(bytes(part)))

        hammer(self, overwrite, read)
        cache.clear()
        self.assertEqual(bytes(held), expected)

    def test_a_bytearray_that_is_resized_while_it_is_written(self):
        cache = self.cache
        array = bytearray(b"a" * 4000)

        def resize(number):
            # No export of ours makes this a BufferError.
            array.extend(b"b" * 1000)
            del array[-1000:]

        def write(number):
            cache["key"] = array
            cache.set_many({"key": array, "other": array})
            cache.add("third", array)

        def read(number):
            found = cache.get("key", b"a" * 4000)
            self.assertEqual(found[:4000], b"a" * 4000)
            self.assertIn(len(found), (4000, 5000))

        # One thread resizes: a bytearray itself does not promise to take two at once.
        hammer(self, resize, write, read, write, threads=4)

    def test_a_memoryview_that_is_changed_while_it_is_written(self):
        array = bytearray(LONG)
        view = memoryview(array)

        def change(number):
            view[:] = value_of(number, LONG)

        def write(number):
            self.cache["key"] = view
            self.assertEqual(len(self.cache.get("key", view)), LONG)

        hammer(self, change, write)

    def test_a_dict_that_is_changed_while_it_is_written(self):
        cache = self.cache
        entries = {f"key {number}": b"value" for number in range(200)}

        def change(number):
            for extra in range(100):
                entries[f"{number} {extra}"] = b"value"
            for extra in range(100):
                entries.pop(f"{number} {extra}", None)

        def use(number):
            cache.set_many(entries)
            cache.set_many(entries.items())
            self.assertGreaterEqual(len(cache.get_many(entries)), 200)
            cache.delete_many(entries.keys())

        hammer(self, change, use)

    def test_a_dict_that_a_garbage_collection_changes_while_it_is_written(self):
        entries = {f"key {number}": b"value" for number in range(200)}

        class OfUser(dict):
            pass

        of_user = OfUser(entries)
        collections = 0

        def change(phase, info):
            nonlocal collections
            collections += 1
            # Not at each: Python makes the list of a dict again until it stays as it is.
            if collections < 50:
                entries[f"extra {collections}"] = of_user[f"extra {collections}"] = b"value"

        thresholds = gc.get_threshold()
        gc.callbacks.append(change)
        try:
            for given in (entries, entries.items(), of_user, of_user.items()):
                collections = 0
                gc.set_threshold(1)
                self.cache.set_many(given)
                gc.set_threshold(*thresholds)
                self.assertGreaterEqual(len(self.cache.get_many(f"key {number}" for number in range(200))), 200)
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(change)

    def test_a_set_that_is_changed_while_it_is_read(self):
        keys = {f"key {number}" for number in range(200)}

        def change(number):
            extra = {f"{number} {extra}" for extra in range(100)}
            keys.update(extra)
            keys.difference_update(extra)

        def use(number):
            self.assertGreaterEqual(len(self.cache.get_many(keys)), 200)
            self.cache.delete_many(keys)

        hammer(self, change, use)

    def test_closing_while_others_use_it(self):
        for _ in range(10):
            cache = haypile.open(self.url())

            def use(number):
                try:
                    cache["key"] = b"value"
                    cache.get_view("key")
                    list(cache)
                except haypile.Closed:
                    self.assertTrue(cache.closed)
                    time.sleep(0.001)

            def close(number):
                time.sleep(0.002)
                cache.close()

            hammer(self, use, use, close, seconds=SECONDS / 20, threads=4)

    def test_pickles_and_caches_of_one_url(self):
        url = self.url()

        def use(number):
            with pickle.loads(pickle.dumps(haypile.open(url))) as cache:
                cache.set("key", value_of(number))
                self.assertTrue(is_whole(cache.get("key", b"a")))

        hammer(self, use)

    @unittest.skipUnless(hasattr(os, "fork"), "a system without forks")
    def test_forks_while_others_use_it(self):
        objects = haypile.Objects(self.cache)

        @objects.memoize()
        def double(number):
            return 2 * number

        def use(number):
            self.cache.set("key", value_of(number))
            self.cache.get_many(["key", "other"])
            self.assertEqual(double(number), 2 * number)
            list(self.cache)

        def use_in_child():
            self.cache.set("child", b"value")
            threads = [threading.Thread(target=self.cache.get, args=("key",)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(double(4), 8)
            self.assertGreaterEqual(double.cache_info().hits, 0)

        def fork(number):
            self.assertTrue(in_child(use_in_child))

        hammer(self, fork, use, use, use, threads=4)


class MemoryTest(ThreadsTest, unittest.TestCase):
    def url(self):
        return "memory:size=64MiB"


class FileTest(ThreadsTest, unittest.TestCase):
    def url(self):
        return urls.file(self)


class InterpreterTest(unittest.TestCase):
    def test_the_module_does_not_switch_the_gil_on(self):
        if not sysconfig.get_config_var("Py_GIL_DISABLED") or os.environ.get("PYTHON_GIL") == "1":
            self.skipTest("a Python with a GIL")
        self.assertFalse(sys._is_gil_enabled())


if __name__ == "__main__":
    unittest.main()
