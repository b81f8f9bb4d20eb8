"""The threads in which an AsyncCache waits: they are used again, and bounded where that keeps nobody out."""

import asyncio
import contextvars
import gc
import os
import pickle
import subprocess
import sys
import threading
import unittest
import weakref

import haypile
from haypile import _threads
from test_fork import in_child

# No machine needs that many seconds.
PATIENCE = 60


class LaneTest(unittest.TestCase):
    def setUp(self):
        # What a server's operations call in their threads.
        self.dumps = bytes
        self.objects = haypile.Objects("memory:size=8MiB", (lambda value: self.dumps(value), bytes))
        self.addCleanup(self.objects.close)
        self.cache = self.async_cache()

    def async_cache(self):
        cache = haypile.AsyncCache(self.objects)
        # As over a server.
        cache._is_local = False
        return cache

    def run_async(self, coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    async def until(self, condition):
        while not condition():
            await asyncio.sleep(0.001)

    def hold(self):
        """Makes operations wait; returns a list of those that do, and the event that ends that."""
        held, release = [], threading.Event()
        self.addCleanup(release.set)

        def dumps(value):
            if value != b"free":
                held.append(value)
                release.wait(PATIENCE)
            return bytes(value)

        self.dumps = dumps
        return held, release

    def test_threads_are_used_again(self):
        def threads():
            return {thread for thread in threading.enumerate() if thread.name == "haypile-async"}

        used = set()
        before = threads()

        def note(value):
            used.add(threading.current_thread())
            return value

        async def steps():
            for _ in range(100):
                self.dumps = note
                await self.cache.set("key", b"value")
                # A short value is made bytes in the loop.
                self.dumps = bytes
                await self.cache.get_or_compute("other", 60, lambda: note(b"computed"))
                await self.cache.delete("other")
        self.run_async(steps())
        self.assertLess(len(threads() - before), 10)
        self.assertNotIn(threading.main_thread(), used)

    def test_operations_are_bounded_and_functions_are_not(self):
        held, release = self.hold()
        width = _threads._LANE_WIDTH

        async def steps():
            tasks = [asyncio.create_task(self.cache.set(f"key {number}", b"value")) for number in range(3 * width)]
            await self.until(lambda: len(held) == width)
            await asyncio.sleep(0.01)
            self.assertEqual(len(held), width)
            # Other caches do not wait for them, and the functions of one cache not for each other.
            other, begun = self.async_cache(), threading.Barrier(2 * width)

            def compute():
                begun.wait(PATIENCE)
                return b"free"
            keys = [f"computed {number}" for number in range(2 * width)]
            computed = await asyncio.gather(*(other.get_or_compute(key, 60, compute) for key in keys))
            self.assertEqual(computed, [b"free"] * len(keys))
            await other.set("other", b"free")
            release.set()
            await asyncio.gather(*tasks)
            self.assertEqual(len(held), 3 * width)
            self.assertEqual(await self.cache.get("key 0"), b"value")
        self.run_async(steps())
        self.assertEqual(len(self.objects), 3 * width + 2 * width + 1)

    def test_computations_that_need_one_another(self):
        async def compute(depth):
            if depth == 0:
                return b"free"
            return await self.cache.get_or_compute(f"depth {depth}", 60, lambda: asyncio.run_coroutine_threadsafe(
                compute(depth - 1), self.loop).result(PATIENCE))

        async def steps():
            self.loop = asyncio.get_running_loop()
            return await compute(100)
        self.assertEqual(self.run_async(steps()), b"free")

    def test_a_cancelled_operation_goes_on_to_its_end(self):
        held, release = self.hold()

        async def steps():
            tasks = [asyncio.create_task(self.cache.set(f"key {number}", b"value")) for number in range(50)]
            await self.until(lambda: len(held) == _threads._LANE_WIDTH)
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                self.assertIsInstance(result, asyncio.CancelledError)
            release.set()
            await self.until(lambda: len(self.objects) == 50)
        self.run_async(steps())

    def test_context_variables_are_those_of_the_task(self):
        variable = contextvars.ContextVar("variable")
        seen = []
        self.dumps = lambda value: seen.append(variable.get(None)) or value

        async def compute():
            seen.append(variable.get(None))
            return b"computed"

        async def ask(number):
            variable.set(number)
            await self.cache.set("key", b"value")
            await self.cache.get_or_compute(f"key {number}", 60, compute)

        async def steps():
            for number in range(3):
                await asyncio.create_task(ask(number))
        self.run_async(steps())
        self.assertEqual(seen, [number for number in range(3) for _ in range(3)])

    def test_a_thread_keeps_nothing(self):
        class Value:
            pass

        values = weakref.WeakSet()
        self.dumps = lambda value: b"value"

        async def steps():
            value = Value()
            values.add(value)
            await self.cache.set("key", value)
            await self.cache.get_or_compute("computed", 60, lambda value=value: value)
        self.run_async(steps())
        for _ in range(PATIENCE * 100):
            gc.collect()
            if not values:
                break
            threading.Event().wait(0.01)
        self.assertEqual(len(values), 0)

    def test_a_pickle_is_the_cache(self):
        cache = pickle.loads(pickle.dumps(haypile.AsyncCache("memory:size=8MiB")))
        self.assertEqual(cache.cache.url.split(",")[0].split(":")[0], "memory")
        self.run_async(cache.set("key", b"value"))

    @unittest.skipUnless(hasattr(os, "fork"), "a system without forks")
    def test_a_child_has_threads_of_its_own(self):
        held, release = self.hold()

        def use():
            async def steps():
                tasks = [self.cache.set(f"key {number}", b"free") for number in range(100)]
                await asyncio.gather(*tasks)
                await self.cache.get_or_compute("computed", 60, lambda: b"free")
                self.assertEqual(len(self.objects), 101)
            # A loop of its own: asyncio takes the parent's for running.
            asyncio._set_running_loop(None)
            self.run_async(steps())

        async def steps():
            tasks = [asyncio.create_task(self.cache.set(f"key {number}", b"value")) for number in range(50)]
            await self.until(lambda: len(held) == _threads._LANE_WIDTH)
            self.assertTrue(in_child(use))
            release.set()
            await asyncio.gather(*tasks)
        self.run_async(steps())

    def test_neither_the_loop_nor_the_interpreter_waits_for_one_that_is_stuck(self):
        program = """if True:
            import asyncio, threading, haypile

            def dumps(value):
                started.set()
                threading.Event().wait()

            async def steps():
                task = asyncio.create_task(cache.set("key", b"value"))
                other = asyncio.create_task(cache.get_or_compute("other", 60, lambda: dumps(None)))
                while not started.is_set():
                    await asyncio.sleep(0)
                task.cancel()

            started = threading.Event()
            cache = haypile.AsyncCache(haypile.Objects("memory:size=8MiB", (dumps, bytes)))
            cache._is_local = False
            asyncio.run(steps())
            print("at the end")
        """
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, "at the end\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
