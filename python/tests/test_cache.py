"""What one process sees of a cache."""

import array
import datetime
import pathlib
import pickle
import tempfile
import threading
import traceback
import unittest

import haypile
import urls

ERRORS = ["OpenError", "KeyTooLong", "ValueTooLarge", "NotACounter", "Closed", "ComputesItself",
          "Unsupported", "Busy", "Full", "BackendError"]


class CacheTest:
    """The same for every kind of cache."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = haypile.open(self.url_in(holder.name))
        self.addCleanup(self.cache.close)

    def test_values(self):
        cache = self.cache
        self.assertIsNone(cache.get("key"))
        self.assertEqual(cache.get("key", b"default"), b"default")
        cache.set("key", b"value")
        self.assertEqual(cache.get("key", b"default"), b"value")
        self.assertIn("key", cache)
        self.assertNotIn("other", cache)
        self.assertEqual(len(cache), 1)
        self.assertFalse(cache.add("key", b"added"))
        self.assertTrue(cache.replace("key", b"replaced"))
        self.assertFalse(cache.replace("other", b"replaced"))
        self.assertTrue(cache.add("other", b""))
        self.assertEqual(cache.get_many(["other", "none", b"key"]), [b"", None, b"replaced"])
        self.assertTrue(cache.delete("key"))
        self.assertFalse(cache.delete("key"))
        cache.clear()
        self.assertEqual(len(cache), 0)
        self.assertTrue(cache)

    def test_a_text_is_its_utf_8(self):
        self.cache.set("kéy", b"value")
        self.assertEqual(self.cache.get("kéy".encode()), b"value")
        self.cache.set(b"\0\xff", b"\0\xff\0")
        self.assertEqual(self.cache.get(b"\0\xff"), b"\0\xff\0")

    def test_a_value_is_whatever_has_bytes(self):
        numbers = array.array("d", [1.5, 2.5])
        backwards = memoryview(b"abc")[::-1]
        for value in [b"bytes", bytearray(b"array"), memoryview(b"view"), numbers, backwards]:
            self.cache.set("key", value)
            self.assertEqual(self.cache.get("key"), memoryview(value).tobytes())

    def test_many_are_written_also_where_one_is_refused(self):
        self.cache.set_many({"a": b"1", b"b": bytearray(b"2")}, ttl=60)
        self.assertEqual(self.cache.get_many(["a", "b"]), [b"1", b"2"])
        with self.assertRaises(haypile.KeyTooLong):
            self.cache.set_many({"c": b"3", "k" * 65536: b"", "d": b"4"})
        self.assertEqual(self.cache.get_many(["c", "d"]), [b"3", b"4"])

    def test_counters(self):
        self.assertIsNone(self.cache.incr("count"))
        self.cache.set("count", b"41")
        self.assertEqual(self.cache.incr("count"), 42)
        self.assertEqual(self.cache.incr("count", 8), 50)
        self.assertEqual(self.cache.decr("count", delta=60), 0)
        self.cache.set("count", b"many")
        with self.assertRaisesRegex(haypile.NotACounter, "decimal digits"):
            self.cache.incr("count")
        self.assertEqual(self.cache.get("count"), b"many")

    def test_ttls(self):
        for ttl in [60, 0.5, datetime.timedelta(minutes=1), None, ...]:
            self.cache.set("key", b"value", ttl)
            self.assertTrue(self.cache.touch("key", ttl=ttl), ttl)
        self.assertFalse(self.cache.touch("none", 1))
        for ttl in [0, -1, float("nan"), float("inf"), datetime.timedelta(0),
                    datetime.timedelta(seconds=-1)]:
            with self.assertRaisesRegex(ValueError, "TTL", msg=ttl):
                self.cache.set("key", b"value", ttl=ttl)
        with self.assertRaisesRegex(TypeError, "not 'str'"):
            self.cache.set("key", b"value", ttl="60")

    def test_what_is_refused(self):
        with self.assertRaisesRegex(haypile.KeyTooLong, "65535"):
            self.cache.get(b"k" * 65536)
        self.cache.set("key", b"old")
        with self.assertRaisesRegex(haypile.ValueTooLarge, "the old value stays"):
            self.cache.set("key", bytes(32 << 20))
        self.assertEqual(self.cache.get("key"), b"old")
        with self.assertRaisesRegex(TypeError, "a key is bytes or str, not 'int'"):
            self.cache.get(7)
        with self.assertRaisesRegex(TypeError, "bytes-like object, not 'str'"):
            self.cache.set("key", "text")
        with self.assertRaises(OverflowError):
            self.cache.incr("key", -(1 << 64))
        with self.assertRaises(UnicodeEncodeError):
            self.cache.get("\ud800")

    def test_computing(self):
        calls = []

        def compute():
            calls.append(1)
            return bytearray(b"computed")

        for _ in range(2):
            self.assertEqual(self.cache.get_or_compute("key", 60, compute), b"computed")
        self.assertEqual(len(calls), 1)
        self.assertEqual(self.cache.get("key"), b"computed")

    def test_what_a_computation_raises_is_raised(self):
        error = KeyError("its own")

        def fail():
            raise error

        try:
            self.cache.get_or_compute("key", None, fail)
        except KeyError as raised:
            self.assertIs(raised, error)
            frames = traceback.extract_tb(raised.__traceback__)
        self.assertEqual(frames[-1].name, "fail")
        with self.assertRaisesRegex(TypeError, "not 'NoneType'"):
            self.cache.get_or_compute("key", None, lambda: None)
        self.assertIsNone(self.cache.get("key"))

    def test_a_computation_cannot_wait_for_itself(self):
        def ask():
            return self.cache.get_or_compute("key", 60, ask)

        with self.assertRaises(haypile.ComputesItself):
            self.cache.get_or_compute("key", 60, ask)
        value = self.cache.get_or_compute(
            "outer", 60, lambda: self.cache.get_or_compute("inner", 60, lambda: b"inner") + b"!")
        self.assertEqual(value, b"inner!")

    def test_one_of_many_threads_computes(self):
        calls, values = [], []
        asked = threading.Barrier(5)

        def compute():
            # The others run while this one has not returned: it waits for them to ask.
            calls.append(1)
            asked.wait(30)
            return b"computed"

        def follow():
            asked.wait(30)
            values.append(self.cache.get_or_compute("key", 60, compute))

        followers = [threading.Thread(target=follow) for _ in range(4)]
        for follower in followers:
            follower.start()
        values.append(self.cache.get_or_compute("key", 60, compute))
        for follower in followers:
            follower.join(30)
        self.assertEqual(calls, [1])
        self.assertEqual(values, [b"computed"] * 5)

    def test_threads(self):
        self.cache.set("count", b"0")

        def work(number):
            for index in range(500):
                self.cache.incr("count")
                self.cache.set(f"{number}", b"%d" % index)
                self.assertEqual(self.cache.get(f"{number}"), b"%d" % index)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.cache.get("count"), b"2000")

    def test_statistics(self):
        self.assertIsNone(self.cache.stats().hit_ratio)
        self.cache.set("key", b"value")
        self.cache.get("key")
        self.cache.get("none")
        stats = self.cache.stats()
        self.assertEqual((stats.hits, stats.misses, stats.sets, stats.entries), (1, 1, 1, 1))
        self.assertEqual(stats.hit_ratio, 0.5)
        self.assertGreater(stats.bytes, 0)
        self.assertRegex(repr(stats), "hits=1 misses=1")

    def test_closing(self):
        with self.cache as cache:
            cache.set("key", b"value")
            self.assertFalse(cache.closed)
        self.assertTrue(self.cache.closed)
        self.assertIn("closed", repr(self.cache))
        with self.assertRaisesRegex(haypile.Closed, "open it again"):
            self.cache.get("key")
        with self.assertRaises(haypile.Closed), self.cache:
            self.fail("it was closed")
        self.assertEqual(self.cache.stats().sets, 1)
        self.cache.close()


class MemoryTest(CacheTest, unittest.TestCase):
    """`memory:`"""

    def url_in(self, _directory):
        return urls.MEMORY

    def test_what_cannot_be_on_disk(self):
        self.cache.flush()
        with self.assertRaises(haypile.Unsupported):
            self.cache.flush(durable=True)

    def test_another_process_would_open_its_own(self):
        self.cache.set("key", b"value")
        with pickle.loads(pickle.dumps(self.cache)) as other:
            self.assertEqual(other.url, self.cache.url)
            self.assertIsNone(other.get("key"))

    def test_a_computation_looks_once(self):
        before = self.cache.stats().misses
        self.cache.get_or_compute("key", None, lambda: b"computed")
        again = self.cache.get_or_compute("key", None, lambda: self.fail("it is there"))
        stats = self.cache.stats()
        self.assertEqual((again, stats.misses - before, stats.hits), (b"computed", 1, 1))


class FileTest(CacheTest, unittest.TestCase):
    """`file:`"""

    def url_in(self, directory):
        return urls.shared(directory)

    def test_what_is_written_is_there_when_it_is_opened_again(self):
        self.cache.set("key", b"value")
        self.cache.flush(durable=True)
        with pickle.loads(pickle.dumps(self.cache)) as other:
            self.assertEqual(other.get("key"), b"value")
            other.set("key", b"other")
        self.assertEqual(self.cache.get("key"), b"other")


class ModuleTest(unittest.TestCase):
    """The module and its names."""

    def test_opening_says_what_is_wrong(self):
        with self.assertRaisesRegex(haypile.OpenError, "sise"):
            haypile.open("memory:sise=1MiB")
        with self.assertRaises(TypeError):
            haypile.open(7)

    def test_no_text_contains_a_password(self):
        for url in (
            "redis://u:hunter2@127.0.0.1:1/0,timeout=1s",
            "redis://u:hunter2@127.0.0.1:1/none",
            "redis://u:hunter2@127.0.0.1:1",
            "redis://:hun/hunter2@127.0.0.1:1?timeout",
            "redis:u:hun,hunter2@127.0.0.1:1",
            "redis+unix://:hunter2@/run/nothing.sock",
            "memory:size=1MiB -> redis://u:hunter2@127.0.0.1:1->none:",
            "memcached://u:hunter2@127.0.0.1:1/path",
            "u:hun%ter%hunter2@h",
            "://:hunter2@h",
            "redis://u:hunter2",
        ):
            for make in (haypile.open, haypile.Objects, haypile.AsyncCache):
                with self.subTest(url, make=make):
                    with self.assertRaises(haypile.OpenError) as raised:
                        make(url)
                    self.assertNotIn("hunter2", f"{raised.exception} {raised.exception!r}")

    def test_the_url_is_canonical(self):
        with haypile.open("memory:size=1024KiB") as cache:
            self.assertEqual(cache.url, "memory://?size=1MiB&policy=s3fifo")
            self.assertEqual(repr(cache), f"<haypile.Cache {cache.url}>")

    def test_errors_have_one_base(self):
        for name in ERRORS:
            self.assertTrue(issubclass(getattr(haypile, name), haypile.Error), name)
        self.assertTrue(issubclass(haypile.Error, Exception))

    def test_a_snapshot_is_saved_at_the_end(self):
        with tempfile.TemporaryDirectory() as directory:
            url = f"memory:size=1MiB,persist={pathlib.Path(directory) / 'snapshot'}"
            with haypile.open(url) as cache:
                cache.set("key", b"value")
            with haypile.open(url) as cache:
                self.assertEqual(cache.get("key"), b"value")


if __name__ == "__main__":
    unittest.main()
