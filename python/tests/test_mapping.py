"""The cache as a mapping, and what reads and writes have beyond bytes under keys."""

import collections.abc
import os
import pathlib
import pickle
import tempfile
import unittest

import haypile
import urls


class MappingTest(unittest.TestCase):
    def setUp(self):
        self.cache = haypile.open("memory:size=8MiB")
        self.addCleanup(self.cache.close)

    def test_it_is_a_mutable_mapping(self):
        cache = self.cache
        self.assertIsInstance(cache, collections.abc.MutableMapping)
        cache["a"] = b"1"
        cache[b"b"] = bytearray(b"2")
        self.assertEqual(cache["b"], b"2")
        self.assertEqual(sorted(cache), [b"a", b"b"])
        self.assertEqual(sorted(cache.items()), [(b"a", b"1"), (b"b", b"2")])
        self.assertEqual(sorted(cache.values()), [b"1", b"2"])
        self.assertEqual(set(cache.keys()), {b"a", b"b"})
        del cache["a"]
        for missing in (lambda: cache["a"], lambda: cache.pop("a"), lambda: cache.__delitem__("a")):
            with self.assertRaisesRegex(KeyError, "'a'"):
                missing()
        self.assertEqual(cache.pop("a", None), None)
        self.assertEqual(cache.pop("b"), b"2")
        with self.assertRaises(TypeError):
            cache.pop("b", 1, 2)
        self.assertEqual(cache.setdefault("c", b"3"), b"3")
        self.assertEqual(cache.setdefault("c", b"4"), b"3")
        cache.update({"c": b"5"}, d=b"6")
        self.assertEqual({cache.popitem(), cache.popitem()}, {(b"c", b"5"), (b"d", b"6")})
        with self.assertRaises(KeyError):
            cache.popitem()

    def test_a_cache_equals_itself_alone(self):
        with haypile.open("memory:size=8MiB") as other:
            self.assertNotEqual(self.cache, other)
            self.assertEqual(len({self.cache, other, self.cache}), 2)

    def test_iteration_goes_on_while_entries_leave(self):
        self.cache.set_many((f"key-{number}", b"v" * 100) for number in range(2_000))
        seen = 0
        for key, value in self.cache.items():
            self.assertEqual(value, b"v" * 100)
            seen += 1
            self.cache.clear()
        self.assertEqual(seen, 1)

    def test_every_key_is_iterated_over(self):
        keys = {b"key-%d" % number for number in range(3_000)}
        for url in ("memory:size=8MiB", urls.file(self)):
            with self.subTest(url), haypile.open(url) as cache:
                cache.set_many(dict.fromkeys(keys, b"v"))
                self.assertEqual(set(cache), keys)

    def test_many_keys_are_any_iterable(self):
        cache = self.cache
        cache.set_many({"a": b"1"}.items())
        cache.set_many([("b", b"2")], ttl=60)
        self.assertEqual(cache.get_many(key for key in "abc"), [b"1", b"2", None])
        self.assertEqual(cache.delete_many(iter(["a", "b", "c"])), 2)
        for text in ("abc", b"abc"):
            with self.assertRaisesRegex(TypeError, "an iterable of keys"):
                cache.get_many(text)
        with self.assertRaises(TypeError):
            cache.set_many(["a"])


class VersionTest(unittest.TestCase):
    def test_what_somebody_else_wrote_stays(self):
        for url in ("memory:size=8MiB", urls.file(self)):
            with self.subTest(url), haypile.open(url) as cache:
                self.assertIsNone(cache.get_versioned("key"))
                cache["key"] = b"1"
                value, version = cache.get_versioned("key")
                self.assertEqual(value, b"1")
                self.assertTrue(cache.cas("key", b"2", version))
                self.assertFalse(cache.cas("key", b"3", version))
                self.assertEqual(cache["key"], b"2")
                self.assertFalse(cache.delete_version("key", version))
                self.assertEqual(cache["key"], b"2")
                self.assertTrue(cache.delete_version("key", cache.get_versioned("key")[1]))
                self.assertNotIn("key", cache)
                self.assertFalse(cache.delete_version("key", version))

    def test_an_entry_is_deleted_by_its_value_only_while_it_has_it(self):
        file = urls.file(self)
        given = ["memory:size=8MiB", "memory:compress=lz4", file, f"memory:size=1MiB+{file}"]
        for server in (urls.redis, urls.memcached):
            try:
                given.append(server(self))
            except unittest.SkipTest:
                continue
            given.append(f"memory:// -> {given[-1]}")
        for url in given:
            with self.subTest(url), haypile.open(url) as cache:
                for value in (b"token", bytes(10_000)):
                    self.assertFalse(cache.compare_and_delete("key", value))
                    cache["key"] = value
                    self.assertFalse(cache.compare_and_delete("key", value[1:]))
                    self.assertEqual(cache["key"], value)
                    self.assertTrue(cache.compare_and_delete("key", bytearray(value)))
                    self.assertNotIn("key", cache)
                    self.assertFalse(cache.compare_and_delete("key", value))
                    cache["key"] = value
                    self.assertEqual(cache.pop("key"), value)
                    self.assertNotIn("key", cache)

    def test_the_rest_of_a_life(self):
        with haypile.open("memory:size=8MiB") as cache:
            cache.set("short", b"", ttl=50)
            cache.set("long", b"")
            self.assertTrue(40 < cache.ttl("short") <= 50)
            self.assertIsNone(cache.ttl("long"))
            with self.assertRaises(KeyError):
                cache.ttl("missing")

    def test_get_or_set(self):
        with haypile.open("memory:size=8MiB") as cache:
            self.assertEqual(cache.get_or_set("key", b"1", ttl=50), b"1")
            self.assertEqual(cache.get_or_set("key", b"2"), b"1")
            self.assertTrue(40 < cache.ttl("key") <= 50)

    def test_counters(self):
        with haypile.open("memory:size=8MiB") as cache:
            self.assertIsNone(cache.incr("count"))
            self.assertEqual(cache.incr("count", 5, initial=10, ttl=50), 15)
            self.assertTrue(40 < cache.ttl("count") <= 50)
            self.assertEqual(cache.incr("count", -4, initial=99), 11)
            self.assertEqual(cache.decr("count", -1), 12)
            self.assertEqual(cache.decr("count", 99), 0)
            self.assertEqual(cache.decr("other", 5, initial=3), 0)
            for step in (1 << 64, -(1 << 64), 1 << 200):
                with self.assertRaises(OverflowError):
                    cache.incr("count", step)
            self.assertEqual(cache.incr("largest", 0, initial=(1 << 64) - 1), (1 << 64) - 1)

    def test_early_and_stale(self):
        with haypile.open("memory:size=8MiB") as cache:
            cache.get_or_compute("key", 50, lambda: b"old", stale=100)
            self.assertTrue(140 < cache.ttl("key") <= 150)
            # Due from now on: less than 160 seconds are left.
            self.assertEqual(cache.get_or_compute("key", 170, lambda: b"new", early=160), b"new")

            def fails():
                raise OSError("the origin is away")

            self.assertEqual(cache.get_or_compute("key", 500, fails, early=400), b"new")
            for arguments in ({"ttl": None, "early": 5}, {"ttl": 5, "stale": None, "early": ...}):
                with self.assertRaisesRegex(ValueError, "is a time"):
                    cache.get_or_compute("key", function=fails, **arguments)
            for early in (5, 6):
                with self.assertRaisesRegex(ValueError, "each call would compute"):
                    cache.get_or_compute("key", 5, fails, early=early, stale=10)


class ViewTest(unittest.TestCase):
    def test_a_value_stays_while_it_is_looked_at(self):
        value = os.urandom(100_000)
        for url in ("memory:size=8MiB", urls.file(self)):
            with self.subTest(url):
                cache = haypile.open(url)
                self.assertIsNone(cache.get_view("key"))
                cache["key"] = value
                view = cache.get_view("key")
                self.assertTrue(view.readonly)
                self.assertEqual((len(view), view.format), (len(value), "B"))
                part = view[1000:2000]
                cache["key"] = b"new"
                cache.delete("key")
                for number in range(200):
                    cache[f"other-{number}"] = b"x" * 100_000
                self.assertEqual(view, value)
                del view
                cache.close()
                del cache
                self.assertEqual(part, value[1000:2000])
                with self.assertRaises(TypeError):
                    part[0] = 1


class NameTest(unittest.TestCase):
    def test_a_cache_is_named_by_a_path(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "a b,c?d%.haypile"
            with haypile.open(path) as cache:
                cache["key"] = b"value"
            self.assertTrue(path.exists())
            with haypile.open(path) as cache:
                self.assertEqual(cache["key"], b"value")
            with self.assertRaisesRegex(TypeError, "its URL"):
                haypile.open(7)

    def test_a_relative_path_counts_from_the_current_directory(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            os.mkdir("folder")
            for path in (pathlib.Path("a.haypile"), pathlib.Path("folder", "..", "folder", "b.haypile")):
                with haypile.open(path) as cache:
                    cache["key"] = b"value"
                    copied = pickle.dumps(cache)
                # Another process may be elsewhere.
                os.chdir(before)
                with pickle.loads(copied) as cache:
                    self.assertEqual(cache["key"], b"value")
                os.chdir(directory)
            self.assertEqual(sorted(os.listdir()), ["a.haypile", "folder"])
            self.assertEqual(os.listdir("folder"), ["b.haypile"])
            with self.assertRaisesRegex(haypile.OpenError, "absolute path"):
                haypile.open("file:a.haypile")
            os.chdir(before)

    def test_a_home_directory(self):
        with tempfile.TemporaryDirectory() as directory:
            before = os.environ.get("HOME")
            os.environ["HOME"] = directory
            try:
                with haypile.open("file:~/a.haypile,size=2MiB") as cache:
                    self.assertEqual(cache.get("key"), None)
                haypile.open(pathlib.Path("~/b.haypile")).close()
            finally:
                if before is None:
                    del os.environ["HOME"]
                else:
                    os.environ["HOME"] = before
            self.assertEqual(sorted(os.listdir(directory)), ["a.haypile", "b.haypile"])

    def test_levels_and_servers_have_their_names(self):
        server = urls.memcached(self)
        with haypile.open(f"memory:size=2MiB -> {server}") as cache, haypile.open(server) as below:
            self.assertEqual(cache._schemes(), ["memory", "memcached"])
            cache["key"] = b"value"
            self.assertEqual((cache["key"], below["key"]), (b"value", b"value"))
            below.set_many({"a": b"1", "b": b"2"})
            self.assertEqual(cache.get_many("a b c".split()), [b"1", b"2", None])
            self.assertEqual(below.pop("a"), b"1")
            self.assertEqual(below.incr("count", 2, initial=1), 3)

    def test_statistics_are_pickled(self):
        with haypile.open("memory:size=8MiB") as cache:
            cache["key"] = b"1"
            cache.get("key")
            stats = cache.stats()
            self.assertEqual(pickle.loads(pickle.dumps(stats)), stats)
            cache.get("key")
            self.assertNotEqual(cache.stats(), stats)
