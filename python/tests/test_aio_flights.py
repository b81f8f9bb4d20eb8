"""Computing in event loops: one of all tasks, loops, threads and processes computes, and none of them is kept waiting by
one that has ended.
"""

import asyncio
import contextlib
import functools
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref
from unittest import mock

import haypile
import urls

# No machine needs that many seconds. Who waits for another caller until that one's time is over waits for an hour.
PATIENCE = 60
WAIT = "compute_wait=1h"

CALLERS = 1000

# Prints how often this process has computed, and its threads at most, for callers of one key and of many.
CROWD = f"""if True:
    import asyncio, json, resource, sys, threading
    import haypile

    url, addresses = sys.argv[1:]
    if addresses != "0":
        resource.setrlimit(resource.RLIMIT_AS, (int(addresses), int(addresses)))
    objects = haypile.Objects(url)
    calls, threads = [], []

    @objects.memoize(name="page", ttl=3600)
    async def page(number):
        calls.append(number)
        await asyncio.sleep(0.2)
        threads.append(threading.active_count())
        return number

    async def main():
        print("ready", flush=True)
        sys.stdin.readline()
        one = await asyncio.gather(*(page(0) for _ in range({CALLERS})))
        many = await asyncio.gather(*(page(1 + number) for number in range({CALLERS})))
        assert one == [0] * {CALLERS} and many == list(range(1, {CALLERS} + 1))

    asyncio.run(main())
    print(json.dumps([calls.count(0), len(calls), max(threads, default=0)]))
"""


@contextlib.contextmanager
def crowd(url, processes=1, addresses=0):
    """Yields what each process has printed that had the crowd at the same time."""
    command = [sys.executable, "-c", CROWD, url, str(addresses)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    try:
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        yield [json.loads(process.communicate(timeout=2 * PATIENCE)[0]) for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()


class CrowdTest(unittest.TestCase):
    def test_a_thousand_callers_need_few_threads_and_little_memory(self):
        with crowd(urls.file(self, compute_wait="1h"), addresses=2 << 30) as [(of_one, of_all, threads)]:
            self.assertEqual((of_one, of_all), (1, 1 + CALLERS))
            self.assertLessEqual(threads, 34)

    def test_and_as_few_over_a_server(self):
        with crowd(urls.memcached(self), addresses=2 << 30) as [(of_one, of_all, threads)]:
            self.assertEqual((of_one, of_all), (1, 1 + CALLERS))
            self.assertLessEqual(threads, 34)

    def test_the_callers_of_eight_processes_compute_once(self):
        with crowd(urls.file(self, compute_wait="1h"), processes=8) as counted:
            of_one, _of_all, threads = zip(*counted)
            # A file has room for the claims of few hundred keys at the same time, so that of many some are computed twice.
            self.assertEqual(sum(of_one), 1)
            self.assertLessEqual(max(threads), 34)


class FlightsTest:
    """The same for every kind of cache."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = haypile.open(self.url_in(pathlib.Path(holder.name)))
        self.addCleanup(self.cache.close)
        self.objects = haypile.Objects(self.cache)
        self.of_bytes = haypile.AsyncCache(self.cache)
        self.calls = []

    def run_async(self, coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    async def until(self, condition):
        while not condition():
            await asyncio.sleep(0)

    async def compute(self):
        self.calls.append(asyncio.current_task())
        return b"value"

    def get(self, key="key"):
        """Asks as a thread that is in no loop does."""
        return self.cache.get_or_compute(key, 60, lambda: b"a thread's")

    def get_elsewhere(self):
        """Asks in another thread; an hour is too long."""
        got = []
        thread = threading.Thread(target=lambda: got.append(self.get()), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        return got

    # Loops that end.

    def begun(self, loop):
        """Has a loop begin a computation, and stop."""
        started = asyncio.Event()

        async def compute():
            started.set()
            await asyncio.sleep(3600)

        async def begin():
            task = asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, compute))
            task._log_destroy_pending = False
            await started.wait()
        loop.run_until_complete(begin())

    def test_a_loop_that_stops_keeps_nobody_waiting(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        self.begun(loop)
        self.assertEqual(self.get_elsewhere(), [b"a thread's"])

    def test_a_loop_that_is_closed_keeps_nobody_waiting(self):
        loop = asyncio.new_event_loop()
        self.begun(loop)
        loop.close()
        self.assertEqual(self.run_async(self.of_bytes.get_or_compute("key", 60, self.compute)), b"value")

    def test_a_loop_that_ends_before_the_computation_has_begun(self):
        for closes in (False, True):
            async def main():
                task = asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, self.compute))
                task._log_destroy_pending = False
            loop = asyncio.new_event_loop()
            self.addCleanup(loop.close)
            loop.run_until_complete(main())
            if closes:
                loop.close()
            self.assertEqual(self.get_elsewhere(), [b"a thread's"])
            self.cache.delete("key")

    def test_closed_loops_are_freed(self):
        loops = [asyncio.new_event_loop() for _ in range(3)]
        references = [weakref.ref(loop) for loop in loops]
        for loop in loops:
            self.begun(loop)
            loop.close()
        del loop, loops
        # Another loop that computes drops what is left of them.
        for _ in range(PATIENCE * 100):
            self.run_async(self.of_bytes.get_or_compute("other", 60, self.compute))
            self.cache.delete("other")
            gc.collect()
            if not any(reference() for reference in references):
                return
            threading.Event().wait(0.01)
        self.fail("a closed loop is still there")

    def test_a_loop_that_runs_for_a_moment_at_a_time(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)

        async def compute():
            self.calls.append(1)
            for _ in range(40):
                await asyncio.sleep(0)
            return b"value"
        task = loop.create_task(self.of_bytes.get_or_compute("key", 60, compute))
        for _ in range(2000):
            loop.call_soon(loop.stop)
            loop.run_forever()
            if task.done():
                break
            # As a program that draws: longer than a look of the thread that watches.
            threading.Event().wait(0.01)
        self.assertEqual((task.result(), self.cache.get("key"), len(self.calls)), (b"value", b"value", 1))

    def test_a_loop_that_goes_on_has_its_value_and_does_not_store_it(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        go_on = asyncio.Event()
        value = []

        async def compute():
            self.calls.append(1)
            await go_on.wait()
            return b"late"

        async def ask():
            value.append(await self.of_bytes.get_or_compute("key", 60, compute))

        async def begin():
            task = loop.create_task(ask())
            await self.until(lambda: self.calls)
            return task
        task = loop.run_until_complete(begin())
        self.assertEqual(self.get_elsewhere(), [b"a thread's"])
        go_on.set()
        loop.run_until_complete(asyncio.wait_for(task, PATIENCE))
        self.assertEqual(value, [b"late"])
        self.assertEqual(self.cache.get("key"), b"a thread's")

    def test_a_program_that_ends_during_a_computation(self):
        async def main():
            async def compute():
                self.calls.append(1)
                await asyncio.sleep(3600)
            asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, compute))
            await self.until(lambda: self.calls)
        asyncio.run(main())
        self.assertEqual(self.get_elsewhere(), [b"a thread's"])

    def test_a_caller_whose_time_is_over(self):
        release = asyncio.Event()

        async def compute():
            await release.wait()
            return await self.compute()

        async def steps():
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0):
                    await self.of_bytes.get_or_compute("key", 60, compute)
            release.set()
            return await self.of_bytes.get_or_compute("key", 60, self.compute)
        self.assertEqual(self.run_async(steps()), b"value")
        self.assertEqual(len(self.calls), 1)

    # Computations that ask for themselves.

    def test_a_coroutine_that_asks_for_its_own_key(self):
        async def again():
            return await self.of_bytes.get_or_compute("key", 60, again)
        with self.assertRaises(haypile.ComputesItself):
            self.run_async(self.of_bytes.get_or_compute("key", 60, again))
        self.assertEqual(self.get(), b"a thread's")

    def test_a_memoized_coroutine_that_awaits_itself(self):
        @self.objects.memoize(name="f")
        async def f(depth):
            return await g(depth)

        @self.objects.memoize(name="g")
        async def g(depth):
            return await f(depth // 2) + 1 if depth != 1 else 1
        self.assertEqual(self.run_async(f(16)), 5)
        with self.assertRaises(haypile.ComputesItself):
            self.run_async(f(0))

    def test_coroutines_that_wait_for_each_other(self):
        both = []

        async def compute(key, other):
            both.append(key)
            await self.until(lambda: len(both) == 2)
            return await self.of_bytes.get_or_compute(other, 60, self.compute)

        async def steps():
            return await asyncio.gather(
                self.of_bytes.get_or_compute("a", 60, functools.partial(compute, "a", "b")),
                self.of_bytes.get_or_compute("b", 60, functools.partial(compute, "b", "a")),
                return_exceptions=True,
            )
        results = self.run_async(steps())
        self.assertEqual({type(result) for result in results}, {haypile.ComputesItself})

    def test_a_caller_that_blocks_its_loop_for_a_key_of_the_loop(self):
        async def compute():
            return self.get()

        async def steps():
            with self.assertRaises(haypile.ComputesItself):
                await self.of_bytes.get_or_compute("key", 60, compute)

            async def other():
                begun.set()
                await release.wait()
                return b"other"
            begun, release = asyncio.Event(), asyncio.Event()
            task = asyncio.ensure_future(self.of_bytes.get_or_compute("other", 60, other))
            await begun.wait()
            with self.assertRaises(haypile.ComputesItself):
                self.get("other")
            release.set()
            self.assertEqual(await task, b"other")
        self.run_async(steps())

    def test_a_function_in_another_thread_that_asks_for_its_own_key(self):
        with self.assertRaises(haypile.ComputesItself):
            self.run_async(self.of_bytes.get_or_compute("key", 60, self.get))

    def test_a_task_that_a_computation_leaves_behind_may_ask(self):
        left = []

        async def ask_later():
            await self.until(lambda: self.calls)
            return await self.of_bytes.get_or_compute("key", 60, self.compute)

        async def compute():
            left.append(asyncio.ensure_future(ask_later()))
            return b"first"

        async def steps():
            self.assertEqual(await self.of_bytes.get_or_compute("key", 60, compute), b"first")
            self.calls.append(1)
            return await left[0]
        self.assertEqual(self.run_async(steps()), b"first")

    # Failures.

    def test_those_who_wait_in_one_loop_share_one_failure(self):
        async def fail():
            self.calls.append(1)
            await asyncio.sleep(0)
            raise LookupError("away")

        async def steps():
            asking = [self.of_bytes.get_or_compute("key", 60, fail) for _ in range(40)]
            results = await asyncio.gather(*asking, return_exceptions=True)
            self.assertEqual({type(result) for result in results}, {LookupError})
            self.assertEqual(len(self.calls), 1)
            return await self.of_bytes.get_or_compute("key", 60, self.compute)
        self.assertEqual(self.run_async(steps()), b"value")

    def test_those_of_a_loop_share_the_computation_after_a_threads_failure(self):
        began, go_on = threading.Event(), threading.Event()

        def fail():
            began.set()
            go_on.wait(PATIENCE)
            raise LookupError("away")

        def block():
            with self.assertRaises(LookupError):
                self.cache.get_or_compute("key", 60, fail)

        async def compute():
            value = await self.compute()
            await asyncio.sleep(0.01)
            return value

        async def steps():
            thread = threading.Thread(target=block)
            thread.start()
            began.wait(PATIENCE)
            first = asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, compute))
            await asyncio.sleep(0)
            go_on.set()
            # The loop stands still until the thread has failed, so that the first caller knows nothing of that.
            thread.join(PATIENCE)
            others = (self.of_bytes.get_or_compute("key", 60, compute) for _ in range(4))
            return await asyncio.gather(first, *others)
        self.assertEqual(self.run_async(steps()), 5 * [b"value"])
        self.assertEqual(len(self.calls), 1)

    def test_loops_and_threads_take_over_one_at_a_time(self):
        computing, most, failed = [], [], []
        everybody = threading.Barrier(8)

        def begin():
            computing.append(1)
            most.append(len(computing))

        def end():
            computing.pop()
            raise LookupError("away")

        async def fail():
            begin()
            await asyncio.sleep(0.01)
            end()

        async def ask():
            # All are awaited: some may share a computation of the others' threads, and go on with one of their own.
            asking = [self.of_bytes.get_or_compute("key", 60, fail) for _ in range(5)]
            return await asyncio.gather(*asking, return_exceptions=True)

        def run():
            everybody.wait(PATIENCE)
            if {type(result) for result in asyncio.run(ask())} == {LookupError}:
                failed.append(1)

        def block():
            everybody.wait(PATIENCE)
            with self.assertRaises(LookupError):
                self.cache.get_or_compute("key", 60, lambda: begin() or end())
            failed.append(1)
        threads = [threading.Thread(target=target) for target in (run, block) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual((len(failed), max(most)), (8, 1))

    def test_a_failure_that_nobody_awaits_is_no_noise(self):
        noise = []

        async def steps():
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: noise.append(context))
            release = asyncio.Event()

            async def fail():
                self.calls.append(1)
                await release.wait()
                raise LookupError("away")
            task = asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, fail))
            await self.until(lambda: self.calls)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            release.set()
            self.assertEqual(await self.of_bytes.get_or_compute("other", 60, self.compute), b"value")
        self.run_async(steps())
        self.assertEqual(noise, [])

    # Values.

    def test_a_miss_counts_once(self):
        self.run_async(self.of_bytes.get_or_compute("key", 60, self.compute))
        in_loop = self.cache.stats()
        self.get("other")
        in_thread = self.cache.stats()
        self.assertEqual((in_loop.misses, in_thread.misses), (1, 2))
        self.run_async(self.of_bytes.get_or_compute("key", 60, self.compute))
        self.assertEqual((self.cache.stats().hits, self.cache.stats().misses), (in_thread.hits + 1, in_thread.misses))

    def test_a_key_that_changes_during_the_computation_keeps_its_change(self):
        async def compute():
            self.cache.delete("key")
            return b"old"
        self.assertEqual(self.run_async(self.of_bytes.get_or_compute("key", 60, compute)), b"old")
        self.assertIsNone(self.cache.get("key"))

    def test_callers_after_a_change_do_not_share_what_was_begun_before_it(self):
        changes = [lambda: self.cache.delete("key"), self.cache.clear]
        for change in changes:
            release = asyncio.Event()
            begun = []

            async def compute(value):
                begun.append(value)
                await release.wait()
                return value

            def ask(value):
                return asyncio.ensure_future(self.of_bytes.get_or_compute("key", 60, functools.partial(compute, value)))

            async def steps():
                before = [ask(b"old"), ask(b"older")]
                await self.until(lambda: begun)
                change()
                after = [ask(b"new"), ask(b"newer")]
                # They have asked before the first computation ends, which keeps those of a file waiting.
                await asyncio.sleep(0)
                release.set()
                return await asyncio.gather(*before, *after)
            self.assertEqual(self.run_async(steps()), [b"old", b"old", b"new", b"new"])
            self.assertEqual(self.cache.get("key"), b"new")
            self.cache.delete("key")

    def test_the_current_value_is_served_while_the_next_is_computed(self):
        self.cache.set("key", b"current", 60)
        release = asyncio.Event()

        async def compute():
            self.calls.append(1)
            await release.wait()
            return b"next"

        async def fail():
            raise LookupError("away")

        def ask(function):
            return self.of_bytes.get_or_compute("key", 90, function, stale=60, early=80)

        async def steps():
            self.assertEqual(await ask(fail), b"current")
            task = asyncio.ensure_future(ask(compute))
            await self.until(lambda: self.calls)
            self.assertEqual(await ask(fail), b"current")
            self.assertEqual(await asyncio.to_thread(
                self.cache.get_or_compute, "key", 90, lambda: b"a thread's", stale=60, early=80), b"current")
            release.set()
            self.assertEqual(await task, b"next")
        self.run_async(steps())
        self.assertEqual(self.cache.get("key"), b"next")

    def test_a_value_lives_no_longer_than_its_callers(self):
        class Value(dict):
            pass
        references = []

        async def compute():
            # It outlives the computation, and has its context.
            left.append(asyncio.ensure_future(asyncio.sleep(3600)))
            value = Value(name="Ada")
            references.append(weakref.ref(value))
            return value

        async def steps():
            await haypile.AsyncCache(self.objects).get_or_compute("key", 60, compute)
            await asyncio.sleep(0)
            gc.collect()
            return references[0]()
        left = []
        self.assertIsNone(self.run_async(steps()))

    def test_bytes_that_may_change_are_copied(self):
        buffer = bytearray(b"value")

        async def compute():
            return buffer

        async def steps():
            return await asyncio.gather(*(self.of_bytes.get_or_compute("key", 60, compute) for _ in range(2)))
        values = self.run_async(steps())
        buffer[:] = b"other"
        self.assertEqual((values, [type(value) for value in values]), ([b"value"] * 2, [bytes] * 2))

    def test_memoized_coroutines_of_memoized_coroutines_and_of_objects_that_are_called(self):
        class Called:
            async def __call__(self, number):
                return number + 1

        @self.objects.memoize(name="above")
        @self.objects.memoize(name="below")
        async def two(number):
            return number + 1
        one = self.objects.memoize(name="called")(Called())

        async def steps():
            return [await two(1), await two(1), await one(2), await one(2)]
        self.assertEqual(self.run_async(steps()), [2, 2, 3, 3])
        self.assertIn("called", repr(one))

    def test_a_thread_that_cannot_be_started_is_tried_again(self):
        watch = haypile._flights._Watch()

        async def steps():
            with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
                self.assertEqual(await self.of_bytes.get_or_compute("key", 60, self.compute), b"value")
        if self.of_bytes._is_local:
            with mock.patch("haypile._flights._watch", watch):
                self.run_async(steps())
                loop = asyncio.new_event_loop()
                self.addCleanup(loop.close)
                self.cache.delete("key")
                self.begun(loop)
                self.assertEqual(self.get_elsewhere(), [b"a thread's"])

    def test_an_object_that_cannot_be_loaded_is_computed_by_one(self):
        objects = haypile.AsyncCache(self.objects)

        async def compute():
            self.calls.append(1)
            await asyncio.sleep(0)
            return {"name": "Ada"}

        async def steps():
            self.cache.set("key", b"not JSON")
            return await asyncio.gather(*(objects.get_or_compute("key", 60, compute) for _ in range(20)))
        self.assertEqual(self.run_async(steps()), [{"name": "Ada"}] * 20)
        self.assertEqual((self.calls, self.objects.get("key")), ([1], {"name": "Ada"}))

    def test_what_the_cache_refuses_is_returned_and_counted(self):
        value = bytes(64 << 20)

        async def compute():
            return value
        self.assertEqual(self.run_async(self.of_bytes.get_or_compute("key", 60, compute)), value)
        self.assertEqual(self.cache.stats().refused_values, 1)


class MemoryTest(FlightsTest, unittest.TestCase):
    def url_in(self, directory):
        return f"memory:size=16MiB,{WAIT}"


class FileTest(FlightsTest, unittest.TestCase):
    def url_in(self, directory):
        return urls.shared(directory, compute_wait="1h")


class LevelsTest(FlightsTest, unittest.TestCase):
    """Its operations run in other threads."""

    def url_in(self, directory):
        return f"memory:size=8MiB -> {urls.shared(directory, compute_wait='1h')}"


class OvertakingTest(unittest.TestCase):
    def test_who_has_waited_long_enough_computes_as_well_and_the_first_value_is_everybodys(self):
        cache = haypile.AsyncCache("memory:size=8MiB,compute_wait=10ms")
        self.addCleanup(cache.cache.close)
        calls = []

        async def compute():
            calls.append(1)
            if len(calls) == 1:
                await asyncio.sleep(3600)
            return b"second"

        async def steps():
            return await asyncio.gather(*(cache.get_or_compute("key", 60, compute) for _ in range(20)))
        self.assertEqual(asyncio.run(asyncio.wait_for(steps(), PATIENCE)), [b"second"] * 20)
        self.assertEqual(len(calls), 2)
        self.assertEqual(cache.cache.get("key"), b"second")

    def test_one_that_nobody_waits_for_is_alone(self):
        cache = haypile.AsyncCache("memory:size=8MiB,compute_wait=1ms")
        self.addCleanup(cache.cache.close)
        calls = []

        async def compute():
            calls.append(1)
            await asyncio.sleep(0.05)
            return b"value"
        self.assertEqual(asyncio.run(cache.get_or_compute("key", 60, compute)), b"value")
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
