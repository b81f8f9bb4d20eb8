"""Keys, values and TTLs of every type, and objects that raise while they are converted."""

import datetime
import sys
import unittest

import haypile
import urls

LONGEST = 65535


class Failure(Exception):
    """What an object's own method raises."""


class Text(str):
    """A text whose methods do not say what it is."""

    def encode(self, *_):
        return b"another"

    def __str__(self):
        return "another"

    def __hash__(self):
        raise Failure("hashed")

    def __eq__(self, _):
        raise Failure("compared")


class Bytes(bytes):
    """The same of bytes."""

    def __bytes__(self):
        return b"another"

    def __len__(self):
        return 1

    __hash__, __eq__ = Text.__hash__, Text.__eq__


class ArgumentTest:
    """The same for every kind of cache."""

    def setUp(self):
        self.cache = haypile.open(self.url())
        self.addCleanup(self.cache.close)
        self.cache["key"] = b"old"

    def operations(self, key):
        """Every operation on a key."""
        cache = self.cache
        return [lambda: cache.get(key), lambda: cache[key], lambda: cache.get_view(key),
                lambda: cache.get_versioned(key), lambda: cache.ttl(key), lambda: cache.get_many([key]),
                lambda: cache.set(key, b"v"), lambda: cache.__setitem__(key, b"v"),
                lambda: cache.set_many([(key, b"v")]), lambda: cache.add(key, b"v"),
                lambda: cache.replace(key, b"v"), lambda: cache.cas(key, b"v", 1), lambda: cache.get_or_set(key, b"v"),
                lambda: cache.delete(key), lambda: cache.delete_version(key, 1), lambda: cache.compare_and_delete(key, b""), lambda: cache.delete_many([key]),
                lambda: cache.pop(key, None),
                lambda: cache.__delitem__(key), lambda: cache.touch(key, 5), lambda: cache.incr(key, 1, 1),
                lambda: cache.decr(key, 1, 1), lambda: key in cache,
                lambda: cache.get_or_compute(key, 5, lambda: self.fail("computed"))]

    def writes(self, ttl):
        """Every operation with a TTL."""
        cache = self.cache
        return [lambda: cache.set("other", b"v", ttl), lambda: cache.set_many({"other": b"v"}, ttl),
                lambda: cache.add("other", b"v", ttl), lambda: cache.replace("key", b"v", ttl),
                lambda: cache.cas("key", b"v", cache.get_versioned("key")[1], ttl),
                lambda: cache.get_or_set("other", b"v", ttl), lambda: cache.touch("key", ttl),
                lambda: cache.incr("count", 1, 1, ttl), lambda: cache.get_or_compute("other", ttl, lambda: b"v")]

    def check_refused(self, operations, error, text=""):
        """Each raises this, and changes nothing."""
        for number, operation in enumerate(operations):
            with self.subTest(operation=number), self.assertRaisesRegex(error, text):
                operation()
        self.assertEqual(dict(self.cache.items()), {b"key": b"old"})

    def test_keys_of_other_types(self):
        for key in (7, 1.5, None, True, ("key",), ["key"], bytearray(b"key"), memoryview(b"key"), object(), str):
            name = type(key).__name__
            self.check_refused(self.operations(key), TypeError, f"a key is bytes or str, not '{name}'")

    def test_texts_without_utf_8(self):
        for key in ("\ud800", "a\udfff", "\udc80" * 10):
            self.check_refused(self.operations(key), UnicodeEncodeError)

    def test_lengths(self):
        for key in ("k" * (LONGEST + 1), bytes(LONGEST + 1), "é" * (LONGEST // 2 + 1)):
            self.check_refused(self.operations(key), haypile.KeyTooLong, str(LONGEST))
        for key in ("", b"", "k" * LONGEST, "é" * (LONGEST // 2), b"\0", "\0"):
            self.cache[key] = b"value"
            self.assertEqual(self.cache[key], b"value")
            data = key.encode() if isinstance(key, str) else key
            self.assertIn(data, set(self.cache))
            del self.cache[key]

    def test_subclasses_are_what_they_hold(self):
        self.cache[Text("text")] = Bytes(b"value")
        self.cache[Bytes(b"bytes")] = b"value"
        self.cache.set_many([(Text("many"), Bytes(b"value"))])
        self.assertEqual(self.cache.get_many(["text", "bytes", "many", "another"]), [b"value"] * 3 + [None])
        self.assertIs(type(self.cache["text"]), bytes)

    def test_an_option_without_effect_is_refused(self):
        text = "the option 'size' has no effect with mode=copy; leave out one of them"
        with self.assertRaisesRegex(haypile.OpenError, text):
            haypile.open("file:/tmp/none,size=1MiB,mode=copy")

    def test_ttls_that_are_refused(self):
        wrong = (0, -1, -0.0, False, -1e-300, float("nan"), float("inf"), -float("inf"), 1e20, 1e308, 1 << 64, 10**400,
                 -(10**400), datetime.timedelta(0), datetime.timedelta.min)
        for ttl in wrong:
            self.check_refused(self.writes(ttl), ValueError, "TTL")
        self.check_refused(self.writes(1e308), ValueError, r"less than 2\*\*64 seconds")
        for ttl in ("60", b"60", [], 1j, object, datetime.datetime.now()):
            self.check_refused(self.writes(ttl), TypeError, f"a TTL is .* not '{type(ttl).__name__}'")

    def test_ttls_that_are_accepted(self):
        for ttl in (1e15, 1e19, (1 << 64) - 2049, datetime.timedelta.max, None):
            for write in self.writes(ttl):
                self.cache.delete_many(["other", "count"])
                self.cache["key"] = b"old"
                write()
                # Longer than a cache counts: it does not expire.
                key = next(key for key in ("other", "count", "key") if key in self.cache)
                left = self.cache.ttl(key)
                self.assertTrue(left is None or left > 1e9, (ttl, left))
        self.cache.set("key", b"value", True)
        self.assertLessEqual(self.cache.ttl("key"), 1)
        self.cache.get_or_compute("other", 60, lambda: b"v", stale=datetime.timedelta.max, early=59.5)

    def test_values_that_are_too_large(self):
        cache = self.cache
        for large in (bytes(32 << 20), bytearray(32 << 20)):
            large_writes = [lambda: cache.set("key", large), lambda: cache.set_many({"key": large}),
                            lambda: cache.replace("key", large), lambda: cache.add("other", large),
                            lambda: cache.get_or_set("other", large),
                            lambda: cache.cas("key", large, cache.get_versioned("key")[1])]
            self.check_refused(large_writes, haypile.ValueTooLarge, "the old value stays")
            self.assertEqual(len(cache.get_or_compute("other", 60, lambda: large)), len(large))
            self.assertNotIn("other", cache)
        objects = haypile.Objects(cache)
        with self.assertRaises(haypile.ValueTooLarge):
            objects["key"] = "x" * (32 << 20)
        self.assertEqual(cache["key"], b"old")

    def test_what_an_argument_raises_is_raised(self):
        class Seconds:
            def __float__(self):
                raise Failure("float")

        class Step:
            def __index__(self):
                raise Failure("index")

        class Pairs:
            def items(self):
                raise Failure("items")

        def keys():
            yield "key"
            raise Failure("generator")

        cache = self.cache
        self.check_refused(self.writes(Seconds()), Failure, "float")
        self.check_refused([lambda: cache.incr("key", Step()), lambda: cache.cas("key", b"", Step()),
                            lambda: cache.delete_version("key", Step()),
                            lambda: cache.set_many(Pairs()), lambda: cache.get_many(keys()),
                            lambda: cache.delete_many(keys()), lambda: cache.set_many((key, b"v") for key in keys())],
                           Failure)
        released = memoryview(b"value")
        released.release()
        self.check_refused([lambda: cache.set("key", released)], ValueError, "released")

    @unittest.skipIf(sys.version_info < (3, 12), "objects of Python have buffers from Python 3.12 on")
    def test_what_a_buffer_raises_is_raised(self):
        for error in (Failure, KeyboardInterrupt, BufferError, MemoryError):
            class Buffer:
                def __buffer__(self, _flags):
                    raise error("buffer")

            cache = self.cache
            self.check_refused([lambda: cache.set("key", Buffer()), lambda: cache.set_many({"key": Buffer()}),
                                lambda: cache.get_or_set("other", Buffer()),
                                lambda: cache.get_or_compute("other", 60, Buffer)], error, "buffer")

    def test_objects_that_raise_while_they_are_dumped(self):
        class Raises:
            def __reduce__(self):
                raise Failure("reduce")

        recursive = []
        recursive.append(recursive)
        cache = self.cache

        def dumps(_value):
            raise Failure("dumps")

        kinds = [(haypile.Objects(cache, "pickle"), Raises(), Failure), (haypile.Objects(cache), {"a": {1}}, TypeError),
                 (haypile.Objects(cache), recursive, ValueError), (haypile.Objects(cache), "\ud800", UnicodeEncodeError),
                 (haypile.Objects(cache, (dumps, bytes)), 1, Failure),
                 (haypile.Objects(cache, (lambda value: value, bytes)), "no bytes", TypeError)]
        for objects, value, error in kinds:
            for operation in (
                    lambda: objects.set("key", value), lambda: objects.set_many({"other": value, "key": value}),
                    lambda: objects.add("other", value), lambda: objects.replace("key", value),
                    lambda: objects.get_or_set("other", value), lambda: objects.__setitem__("key", value),
                    lambda: objects.get_or_compute("other", 60, lambda: value),
                    objects.memoize(name="value")(lambda: value)):
                self.check_refused([operation], error)


class MemoryTest(ArgumentTest, unittest.TestCase):
    """`memory:`"""

    def url(self):
        return urls.MEMORY


class FileTest(ArgumentTest, unittest.TestCase):
    """`file:`"""

    def url(self):
        return urls.file(self)


class LevelsTest(ArgumentTest, unittest.TestCase):
    """Two levels, of which operations release the GIL."""

    def url(self):
        return f"memory:size=1MiB -> {urls.file(self)}"


if __name__ == "__main__":
    unittest.main()
