"""Entries of a group are invalidated together, by whatever process."""

import asyncio
import multiprocessing
import os
import tempfile
import threading
import unittest

import haypile

SPAWN = multiprocessing.get_context("spawn")


def invalidate(url, group):
    with haypile.open(url) as cache:
        cache.invalidate(group)


class Groups(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        # With the 128 numbers of groups that a file this small has by default, every sixtieth one has a number for two of these groups.
        self.file = f"file:{os.path.join(directory.name, 'cache')},size=1MiB,groups=16384"

    def caches(self):
        for url in ("memory:size=1MiB", self.file, f"memory:size=1MiB -> {self.file}"):
            cache = haypile.open(url)
            self.addCleanup(cache.close)
            cache.clear()
            with self.subTest(url=url):
                yield cache

    def test_an_invalidation_makes_entries_a_miss(self):
        for cache in self.caches():
            cache.set("one", b"1", groups=["user:1", "all"])
            cache.set_many({"two": b"2", "three": b"3"}, groups=(b"user:2", "all"))
            self.assertTrue(cache.add("four", b"4", ttl=60, groups=iter(["all"])))
            cache.set("five", b"5")
            cache.invalidate("user:1")
            self.assertEqual(cache.get_many(["one", "two", "three"]), [None, b"2", b"3"])
            self.assertIsNone(cache.get_view("one"))
            cache.invalidate(b"all")
            self.assertEqual(sorted(cache), [b"five"])
            self.assertEqual(cache["five"], b"5")

    def test_names_that_are_none(self):
        cache = haypile.open("memory:size=1MiB")
        self.addCleanup(cache.close)
        with self.assertRaisesRegex(TypeError, "groups are an iterable of names"):
            cache.set("key", b"value", groups="user:7")
        with self.assertRaisesRegex(TypeError, "the name of a group is bytes or str, not 'int'"):
            cache.set("key", b"value", groups=[7])
        with self.assertRaisesRegex(TypeError, "groups are an iterable of names, such as .*, not 'NoneType'"):
            cache.set("key", b"value", groups=None)
        with self.assertRaisesRegex(TypeError, "the name of a group is bytes or str, not 'int'"):
            cache.invalidate(7)
        for groups in ([""], ["x" * 251], ["g"] * 65):
            with self.assertRaisesRegex(ValueError, "1 to 250 bytes"):
                cache.set("key", b"value", groups=groups)
        self.assertNotIn("key", cache)
        with self.assertRaises(ValueError):
            cache.invalidate("")

    def test_a_lease_is_revoked_by_an_invalidation(self):
        for cache in self.caches():
            lease = cache.lease("key")
            cache.invalidate("user:7")
            self.assertFalse(cache.set_leased("key", b"old", lease, groups=["user:7"]))
            self.assertTrue(cache.set_leased("key", b"new", cache.lease("key"), groups=["user:7"]))

    def test_a_computation_does_not_undo_an_invalidation_by_another_process(self):
        for cache in self.caches():
            if "file:" not in cache.url:
                continue

            def compute():
                other = SPAWN.Process(target=invalidate, args=(self.file, "user:7"))
                other.start()
                other.join()
                self.assertEqual(other.exitcode, 0)
                return b"old"

            self.assertEqual(cache.get_or_compute("key", 60, compute, groups=["user:7"]), b"old")
            self.assertIsNone(cache.get("key"))
            self.assertEqual(cache.get_or_compute("key", 60, lambda: b"new", groups=["user:7"]), b"new")
            self.assertEqual(cache.get("key"), b"new")

    def test_objects_and_memoized_functions(self):
        for cache in self.caches():
            objects = haypile.Objects(cache)
            objects.set("object", {"name": "Ada"}, groups=["user:7"])
            calls = []

            @objects.memoize(ttl=60, groups=lambda user, page: [f"user:{user}", "pages"])
            def render(user, page):
                calls.append((user, page))
                return f"{user} {page}"

            @objects.memoize(ttl=60, groups=["user:7"])
            def name():
                calls.append("name")
                return "Ada"

            for _ in range(2):
                self.assertEqual([render(7, 1), render(8, page=2), name()], ["7 1", "8 2", "Ada"])
            self.assertEqual(calls, [(7, 1), (8, 2), "name"])
            objects.invalidate("user:7")
            self.assertIsNone(objects.get("object"))
            calls.clear()
            self.assertEqual([render(7, 1), render(8, page=2), name()], ["7 1", "8 2", "Ada"])
            self.assertEqual(calls, [(7, 1), "name"])

    def test_one_name_is_not_an_iterable_of_them(self):
        objects = haypile.Objects("memory:size=1MiB")
        self.addCleanup(objects.close)
        with self.assertRaisesRegex(TypeError, "groups are an iterable of names"):
            objects.memoize(ttl=60, name="f", groups="user:7")(len)
        by_call = objects.memoize(ttl=60, name="g", groups=lambda _: "user:7")(len)
        with self.assertRaisesRegex(TypeError, "groups are an iterable of names"):
            by_call("x")
        # What cannot be loaded is computed in the same groups, though the first look has read the iterator.
        objects.cache.set("key", b"no object")
        self.assertEqual(objects.get_or_compute("key", 60, lambda: 5, groups=iter(["user:7"])), 5)
        self.assertEqual(objects.get("key"), 5)
        objects.invalidate("user:7")
        self.assertIsNone(objects.get("key"))

    def test_cache_clear_is_not_undone_by_a_call_in_progress(self):
        for cache in self.caches():
            objects = haypile.Objects(cache)
            begun, cleared = threading.Event(), threading.Event()

            @objects.memoize(ttl=60, name="slow")
            def slow(number):
                begun.set()
                cleared.wait(30)
                return number

            @objects.memoize(ttl=60, name="other")
            def other(number):
                return -number

            self.assertEqual(other(1), -1)
            thread = threading.Thread(target=slow, args=(1,))
            thread.start()
            begun.wait(30)
            slow.cache_clear()
            cleared.set()
            thread.join()
            self.assertNotIn(slow.cache_key(1), cache)
            self.assertIn(other.cache_key(1), cache)
            self.assertEqual(slow(1), 1)
            self.assertIn(slow.cache_key(1), cache)
            slow.cache_clear()
            self.assertNotIn(slow.cache_key(1), cache)
            self.assertEqual(slow.cache_info().misses, 0)

    def test_event_loops(self):
        async def use(cache):
            shared = haypile.AsyncCache(cache)
            await shared.set("key", b"value", groups=["g"])
            await shared.set_many({"other": b"value"}, groups=["h"])
            calls = []

            async def compute():
                calls.append(1)
                return b"computed"

            for _ in range(2):
                self.assertEqual(await shared.get_or_compute("computed", 60, compute, groups=["g"]), b"computed")
            self.assertEqual(len(calls), 1)
            # An iterator is read once, however often the call looks.
            await shared.get_or_compute("iterated", 60, compute, groups=iter(["g"]))
            with self.assertRaisesRegex(TypeError, "groups are an iterable of names"):
                await shared.get_or_compute("key", 60, compute, groups="g")
            await shared.invalidate("g")
            self.assertIsNone(await shared.get("iterated"))
            self.assertIsNone(await shared.get("key"))
            self.assertEqual(await shared.get("other"), b"value")
            self.assertEqual(await shared.get_or_compute("computed", 60, compute, groups=["g"]), b"computed")
            self.assertEqual(len(calls), 3)

        for cache in self.caches():
            asyncio.run(use(cache))


if __name__ == "__main__":
    unittest.main()
