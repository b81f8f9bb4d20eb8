"""The operations of a cache under asyncio: their results, and that the loop goes on where they wait."""

import asyncio
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import haypile

# No machine needs that many seconds.
PATIENCE = 60


class AsyncTest:
    """The same for every kind of cache."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = haypile.AsyncCache(self.url_in(pathlib.Path(holder.name)))
        self.addCleanup(self.cache.cache.close)

    def run_async(self, coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    def test_operations_have_the_results_of_their_methods(self):
        async def steps():
            cache = self.cache
            self.assertIsNone(await cache.get("key"))
            self.assertEqual(await cache.get("key", b"other"), b"other")
            await cache.set("key", b"value", 60)
            self.assertEqual(await cache.get("key"), b"value")
            self.assertLessEqual(await cache.ttl("key"), 60)
            self.assertTrue(await cache.touch("key", None))
            self.assertIsNone(await cache.ttl("key"))
            self.assertFalse(await cache.add("key", b"no"))
            self.assertTrue(await cache.add("added", b"yes"))
            self.assertTrue(await cache.replace("key", b"replaced"))
            self.assertFalse(await cache.replace("absent", b"no"))
            self.assertEqual(await cache.get_or_set("key", b"no"), b"replaced")
            self.assertEqual(await cache.pop("key"), b"replaced")
            self.assertEqual(await cache.pop("key", None), None)
            with self.assertRaises(KeyError):
                await cache.pop("key")
            self.assertTrue(await cache.delete("added"))
            self.assertEqual(await cache.incr("count", initial=5), 6)
            self.assertEqual(await cache.incr("count", 3), 9)
            self.assertEqual(await cache.decr("count"), 8)
            with self.assertRaises(haypile.NotACounter):
                await cache.set("text", b"text")
                await cache.incr("text")
            await cache.clear()
            self.assertEqual(len(cache.cache), 0)
        self.run_async(steps())

    def test_few_and_many_keys(self):
        async def steps():
            for count in (3, 1000):
                entries = {f"key {number}": b"%d" % number for number in range(count)}
                await self.cache.set_many(entries)
                self.assertEqual(await self.cache.get_many(entries), list(entries.values()))
                self.assertEqual(await self.cache.delete_many(iter(entries)), count)
        self.run_async(steps())

    def test_long_values(self):
        value = bytes(200_000)

        async def steps():
            await self.cache.set("key", value)
            self.assertEqual(await self.cache.get("key"), value)
        self.run_async(steps())

    def test_one_of_many_tasks_computes_and_the_loop_goes_on(self):
        calls = []

        async def steps():
            everybody_asked = asyncio.Event()

            async def compute():
                calls.append(threading.current_thread())
                await everybody_asked.wait()
                return b"page"

            tasks = [asyncio.create_task(self.cache.get_or_compute("page", 60, compute)) for _ in range(20)]
            while not calls:
                await asyncio.sleep(0)
            # The loop runs while all of them wait.
            everybody_asked.set()
            self.assertEqual(await asyncio.gather(*tasks), [b"page"] * 20)
            self.assertEqual(await self.cache.get_or_compute("page", 60, compute), b"page")
        self.run_async(steps())
        self.assertEqual(calls, [threading.main_thread()])

    def test_functions_that_are_not_coroutines_compute_in_another_thread(self):
        async def steps():
            return await self.cache.get_or_compute("key", 60, lambda: threading.current_thread().name.encode())
        self.assertNotEqual(self.run_async(steps()), threading.main_thread().name.encode())

    def test_what_a_function_returns_is_awaited_in_the_loop(self):
        async def compute():
            return threading.current_thread().name.encode()
        value = self.run_async(self.cache.get_or_compute("key", 60, lambda: compute()))
        self.assertEqual(value, threading.main_thread().name.encode())

    def test_errors_of_computations_are_raised(self):
        async def fail():
            raise LookupError("no page")

        def stop():
            raise StopIteration

        for function, error in ((fail, LookupError), (stop, RuntimeError)):
            with self.assertRaises(error):
                self.run_async(self.cache.get_or_compute("key", 60, function))

    def test_objects(self):
        objects = haypile.AsyncCache(haypile.Objects(self.cache.cache))

        async def compute():
            return {"name": "Ada"}

        async def steps():
            self.assertEqual(await objects.get_or_compute("user", 60, compute), {"name": "Ada"})
            await objects.set("none", None)
            self.assertIsNone(await objects.get("none", "default"))
            self.assertEqual(await objects.get_many(["user", "absent"]), {"user": {"name": "Ada"}})
        self.run_async(steps())

    def test_long_objects_are_made_bytes_and_back_in_pieces_beside_the_loop(self):
        objects, threads = haypile.AsyncCache(haypile.Objects(self.cache.cache)), []

        def noted(function):
            def call(value):
                threads.append((function, threading.current_thread()))
                return function(value)
            return call

        dumps, loads = haypile._json.dumps, haypile._json.loads
        long = [{"name": "Ada", "number": number} for number in range(5000)]

        async def steps():
            await objects.set("set", long)
            self.assertEqual(await objects.get("set"), long)
            self.assertEqual(await objects.get_many(["set"]), {"set": long})
            self.assertEqual(await objects.pop("set"), long)
            self.assertEqual(await objects.get_or_compute("computed", 60, lambda: long), long)
            self.assertEqual(await objects.get_or_compute("computed", 60, lambda: None), long)
        with mock.patch("haypile._json.dumps", noted(dumps)), mock.patch("haypile._json.loads", noted(loads)):
            self.run_async(steps())
        self.assertEqual([function for function, _ in threads], [dumps, loads, loads, loads, dumps, loads])
        self.assertNotIn(threading.main_thread(), [thread for _, thread in threads])

    def test_a_cancelled_task_stops_waiting(self):
        async def steps():
            started = threading.Event()
            release = threading.Event()

            def compute():
                started.set()
                release.wait(PATIENCE)
                return b"late"

            task = asyncio.create_task(self.cache.get_or_compute("key", 60, compute))
            while not started.is_set():
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            release.set()
            self.assertEqual(await self.cache.get_or_compute("key", 60, lambda: b"other"), b"late")
        self.run_async(steps())

    def test_the_block_closes_the_cache(self):
        async def steps():
            async with self.cache as cache:
                await cache.set("key", b"value")
            with self.assertRaises(haypile.Closed):
                await self.cache.get("key")
        self.run_async(steps())


class MemoryTest(AsyncTest, unittest.TestCase):
    def url_in(self, directory):
        return "memory:size=16MiB"


class FileTest(AsyncTest, unittest.TestCase):
    def url_in(self, directory):
        return f"file:{directory}/cache.haypile,size=16MiB"


if __name__ == "__main__":
    unittest.main()
