"""Objects that are returned again while their entries have not changed."""

import multiprocessing
import os
import pickle
import tempfile
import threading
import unittest

import haypile
import urls

SPAWN = multiprocessing.get_context("spawn")


class Failing(haypile.Cache):
    def __contains__(self, _key):
        raise haypile.Busy("another process makes room")


def write(url, key, value):
    with haypile.open(url) as cache:
        haypile.Objects(cache).set(key, value)


class IfChangedTest(unittest.TestCase):
    def test_bytes_that_have_not_changed_are_not_returned(self):
        with haypile.open("memory:size=1MiB") as cache:
            self.assertIsNone(cache.get_if_changed("key", 1))
            cache.set("key", b"value")
            _, version = cache.get_versioned("key")
            self.assertEqual(cache.get_if_changed("key", version), (None, version))
            self.assertEqual(cache.get_if_changed("key", version + 1), (b"value", version))
            cache.set("key", b"value")
            data, newer = cache.get_if_changed("key", version)
            self.assertEqual(data, b"value")
            self.assertNotEqual(newer, version)


class SharedTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = f"file:{os.path.join(directory.name, 'cache')},size=4MiB"

    def each(self, share=10):
        for url in ("memory:size=4MiB", self.file, "memory:size=1MiB -> " + self.file):
            objects = haypile.Objects(url, share=share)
            with self.subTest(url), objects:
                objects.clear()
                yield objects

    def test_an_object_is_loaded_once_while_its_entry_stays(self):
        for objects in self.each():
            objects.set("user:7", {"name": "Ada"})
            first = objects.get("user:7")
            self.assertEqual(first, {"name": "Ada"})
            self.assertIs(objects.get("user:7"), first)
            self.assertIs(objects["user:7"], first)
            self.assertIs(objects.get_or_compute("user:7", 60, self.fail), first)
            # The same value is another entry.
            objects.set("user:7", {"name": "Ada"})
            other = objects.get("user:7")
            self.assertEqual(other, first)
            self.assertIsNot(other, first)
            objects.delete("user:7")
            self.assertIsNone(objects.get("user:7"))
            self.assertEqual(objects.get("user:7", 5), 5)
            objects.set("group", [1], groups=["g"])
            self.assertEqual(objects.get("group"), [1])
            objects.invalidate("g")
            self.assertIsNone(objects.get("group"))
            objects.set("none", None)
            self.assertIsNone(objects.get("none", 1))
            self.assertIsNone(objects.get("none", 1))

    def test_whoever_changes_what_it_got_changes_it_for_all(self):
        for objects in self.each():
            objects.set("key", [1])
            objects.get("key").append(2)
            self.assertEqual(objects.get("key"), [1, 2])
            # What is stored is as it was.
            self.assertEqual(objects.cache.get("key"), b"[1]")
            self.assertEqual(haypile.Objects(objects.cache).get("key"), [1])

    def test_another_process_is_seen_at_once(self):
        with haypile.Objects(self.file, share=10) as objects:
            objects.set("key", "old")
            self.assertEqual(objects.get("key"), "old")
            process = SPAWN.Process(target=write, args=(self.file, "key", "new"))
            process.start()
            process.join()
            self.assertEqual(process.exitcode, 0)
            self.assertEqual(objects.get("key"), "new")

    def test_results_of_functions_are_shared(self):
        for objects in self.each():
            calls = []

            @objects.memoize(ttl=60)
            def double(number):
                calls.append(number)
                return [number, number]

            self.assertEqual(double(4), [4, 4])
            first = double(4)
            self.assertIs(double(4), first)
            self.assertEqual(calls, [4])
            before = objects.cache.stats().misses
            double(5)
            self.assertEqual(objects.cache.stats().misses - before, 1)
            double.cache_clear()
            self.assertEqual(double(4), [4, 4])
            self.assertEqual(calls, [4, 5, 4])

    def test_both_bounds_hold(self):
        for objects in self.each(share=10):
            shared = objects._shared
            for number in range(50):
                objects.set(str(number), "x")
                objects.get(str(number))
            self.assertEqual(len(shared.held), 10)
            self.assertEqual(shared._bytes, 10 * len('"x"'))
            large = "x" * 50_000
            for number in range(50):
                objects.set(f"large:{number}", large)
                self.assertEqual(objects.get(f"large:{number}"), large)
            self.assertLessEqual(shared._bytes, 10 << 14)
            self.assertEqual(shared._bytes, sum(entry[2] for entry in shared.held.values()))
            objects.set("huge", "x" * 300_000)
            for _ in range(2):
                self.assertEqual(len(objects.get("huge")), 300_000)
            self.assertEqual((shared._bytes, shared.held), (0, {}))

    def test_threads_write_and_read(self):
        for objects in self.each(share=3):
            wrong = []

            def work(number):
                for turn in range(300):
                    key = str(turn % 7)
                    objects.set(key, [key, turn, number])
                    found = objects.get(key)
                    if found is not None and found[0] != key:
                        wrong.append(found)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            shared = objects._shared
            self.assertEqual(shared._bytes, sum(entry[2] for entry in shared.held.values()))

    def test_a_forked_child_has_none_of_its_parents_objects(self):
        objects = haypile.Objects("memory:size=1MiB", share=10)
        self.addCleanup(objects.close)
        objects.set("key", "parent's")
        self.assertEqual(objects.get("key"), "parent's")
        child = os.fork()
        if child == 0:
            # Its cache is empty, and begins with the same versions.
            objects.set("key", "child's")
            os._exit(0 if objects.get("key") == "child's" else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_nothing_is_kept_of_a_server(self):
        for start in (urls.memcached, urls.redis):
            url = start(self)
            for objects in (haypile.Objects(url, share=10), haypile.Objects("memory:size=1MiB -> " + url, share=10)):
                with self.subTest(objects.cache.url), objects:
                    objects.set("key", [1])
                    # Its versions begin again when it restarts.
                    self.assertIsNot(objects.get("key"), objects.get("key"))
                    self.assertEqual(objects.get_or_compute("key", 60, self.fail), [1])

    def test_a_cache_that_fails_is_one_without_the_entry(self):
        with haypile.Objects("memory:size=1MiB", share=10) as objects:
            objects._cache = Failing("memory:size=1MiB")
            self.assertEqual(objects._shared.found(objects, "key"), haypile._types.MISSING)
            objects._cache.close()

    def test_a_signature_is_verified_before_an_object_is_shared(self):
        with haypile.Objects(self.file, sign="secret" * 6, share=10) as objects:
            objects.set("key", "signed")
            first = objects.get("key")
            self.assertEqual((first, objects.get("key")), ("signed", "signed"))
            objects.cache.set("key", b'"forged"')
            self.assertIsNone(objects.get("key"))
            self.assertIsNone(objects.get("key"))

    def test_what_is_no_number_of_objects(self):
        for share in (0, -1, True, 1.5, "10"):
            with self.subTest(share), self.assertRaisesRegex(ValueError, "share=1000"):
                haypile.Objects("memory:size=1MiB", share=share)

    def test_it_is_pickled(self):
        with haypile.Objects(self.file, share=7) as objects:
            with pickle.loads(pickle.dumps(objects)) as other:
                self.assertEqual(other._shared.most, 7)


if __name__ == "__main__":
    unittest.main()
