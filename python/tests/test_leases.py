"""A value that was computed before a removal of its key is not stored, in whatever process the removal was."""

import asyncio
import multiprocessing
import os
import tempfile
import unittest

import haypile
import urls

SPAWN = multiprocessing.get_context("spawn")


def delete(url, key):
    with haypile.open(url) as cache:
        cache.delete(key)


def clear(url, _):
    with haypile.open(url) as cache:
        cache.clear()


class Leases(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = f"file:{os.path.join(directory.name, 'cache')},size=1MiB"

    def test_a_lease_is_revoked_by_a_change_of_its_key(self):
        for url in ("memory:size=1MiB", self.file):
            cache = haypile.open(url)
            self.addCleanup(cache.close)
            lease = cache.lease("user:7")
            self.assertIsInstance(lease, bytes)
            self.assertEqual(len(lease), 32)
            self.assertTrue(cache.set_leased("user:7", b"Ann", lease))
            self.assertFalse(cache.set_leased("user:7", b"Bob", lease))
            changes = (
                lambda: cache.delete("user:7"),
                lambda: cache.delete("user:7"),
                lambda: cache.set("user:7", b"new"),
                cache.clear,
                lambda: cache.pop("user:7"),
            )
            for change in changes:
                if change is changes[-1]:
                    cache.set("user:7", b"there")
                lease = cache.lease("user:7")
                change()
                before = cache.get("user:7")
                self.assertFalse(cache.set_leased("user:7", b"old", lease, ttl=60))
                self.assertEqual(cache.get("user:7"), before)
            self.assertEqual(cache.stats().revoked, 6)
            self.assertTrue(cache.set_leased("user:7", b"Ann", cache.lease("user:7"), ttl=60))
            self.assertTrue(0 < cache.ttl("user:7") <= 60)

    def test_bytes_that_are_no_lease(self):
        for url in ("memory:size=1MiB", self.file):
            cache = haypile.open(url)
            self.addCleanup(cache.close)
            with self.assertRaisesRegex(ValueError, "a lease has 32 bytes"):
                cache.set_leased("key", b"value", b"short")
            with self.assertRaises(TypeError):
                cache.set_leased("key", b"value", "text")
            self.assertFalse(cache.set_leased("key", b"value", bytes(32)))

    def test_another_process_removes_during_a_computation(self):
        for namespace in ("", ",namespace=spaced"):
            for remove in (delete, clear):
                url = self.file + namespace

                def elsewhere():
                    process = SPAWN.Process(target=remove, args=(url, "key"))
                    process.start()
                    process.join()
                    self.assertEqual(process.exitcode, 0)

                def compute():
                    elsewhere()
                    return b"old"

                with self.subTest(remove=remove, url=url), haypile.open(url) as cache:
                    self.assertEqual(cache.get_or_compute("key", 600, compute), b"old")
                    self.assertIsNone(cache.get("key"))
                    lease = cache.lease("key")
                    elsewhere()
                    self.assertFalse(cache.set_leased("key", b"old", lease))
                    self.assertIsNone(cache.get("key"))

    def test_a_value_that_is_offered_under_a_lease(self):
        for url in ("memory:size=1MiB", self.file):
            cache = haypile.open(url)
            self.addCleanup(cache.close)
            lease = cache._try_lease("key")
            self.assertTrue(cache._offer("key", b"value", 60, lease=lease))
            self.assertFalse(cache._offer("key", b"old", 60, lease=lease))
            self.assertEqual(cache.get("key"), b"value")
            lease = cache._try_lease("key")
            cache.delete("key")
            # A refused value is not offered again without its lease.
            self.assertFalse(cache._write("key", b"old", 60, lease))
            self.assertFalse(cache._write("key", bytes(2 << 20), 60, lease))
            self.assertIsNone(cache.get("key"))

    def test_leases_on_servers(self):
        for start in (urls.memcached, urls.redis):
            with self.subTest(start.__name__):
                url = start(self)
                cache, other = haypile.open(url), haypile.open(url)
                self.addCleanup(cache.close)
                self.addCleanup(other.close)
                objects = haypile.Objects(cache)

                def compute():
                    other.delete("key")
                    return "old"

                self.assertEqual(objects.get_or_compute("key", 600, compute), "old")
                self.assertIsNone(other.get("key"))
                lease = cache.lease("key")
                self.assertNotIn("key", other)
                self.assertTrue(other.set_leased("key", b"new", lease))
                self.assertFalse(cache.set_leased("key", b"old", lease))
                self.assertEqual(cache["key"], b"new")

    def test_forked_children_have_leases_of_their_own(self):
        cache = haypile.open(urls.redis(self))
        self.addCleanup(cache.close)
        cache.lease("key")
        leases = set()
        for _ in range(3):
            cache.delete("key")
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(writer, cache.lease("key"))
                os._exit(0)
            os.close(writer)
            leases.add(os.read(reader, 32))
            os.close(reader)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(leases), 3)
        self.assertEqual({len(lease) for lease in leases}, {32})

    def test_a_computation_among_writers_of_what_cannot_be_loaded(self):
        for url in ("memory:size=1MiB", self.file):
            cache = haypile.open(url)
            self.addCleanup(cache.close)
            calls = []

            def loads(data):
                # Each time that somebody looks, another program has written it.
                cache.set("key", b"foreign")
                raise ValueError("foreign")

            objects = haypile.Objects(cache, (bytes, loads))

            def compute():
                calls.append(1)
                cache.delete("key")
                return b"old"

            async def compute_in_loop():
                return compute()

            for get in (
                lambda: objects.get_or_compute("key", 60, compute),
                lambda: asyncio.run(haypile.AsyncCache(objects).get_or_compute("key", 60, compute_in_loop)),
            ):
                cache.set("key", b"foreign")
                self.assertEqual(get(), b"old")
                self.assertIsNone(cache.get("key"))
            self.assertEqual(len(calls), 2)


if __name__ == "__main__":
    unittest.main()
