"""The storage for the package `limits`."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import haypile
import urls

try:
    import limits
    from limits import strategies
    from limits.aio import strategies as async_strategies
    from limits.errors import ConfigurationError, StorageError
    from limits.storage import storage_from_string

    import haypile.limits as face
except ImportError:
    raise unittest.SkipTest("the package 'limits' is not installed: pip install 'haypile[limits]'") from None

PROCESSES = 8

# Waits for the others, hits the limit many times, and prints how many hits passed.
HITS = """
import sys, time
import haypile.limits
from limits import parse, strategies
from limits.storage import storage_from_string

limiter = strategies.STRATEGIES[sys.argv[2]](storage_from_string(sys.argv[1]))
item = parse(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
print(sum(limiter.hit(item, "user") for _ in range(int(sys.argv[4]))), flush=True)
"""


def passed_hits(uri, strategy, limit, hits):
    """Returns how many hits of each of some processes pass."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HITS, uri, strategy, limit, str(hits)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        return [int(process.stdout.readline()) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


class LimitsTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        urls.shared(holder.name)
        self.uri = f"haypile+file://{holder.name}/shared.haypile"

    def storage(self, uri=None, **options):
        storage = storage_from_string(uri or self.uri, **options)
        self.addCleanup(storage.cache.close)
        return storage

    def test_processes_share_a_limit(self):
        for strategy in sorted(strategies.STRATEGIES):
            with self.subTest(strategy=strategy):
                # Long windows, and one that does not end during the test.
                day = 24 * 60 * 60
                if day - time.time() % day < 60:
                    time.sleep(61)
                self.assertEqual(sum(passed_hits(self.uri, strategy, "500 per day", 200)), 500)
                self.storage().reset()

    def test_a_killed_process_leaves_the_limit_usable(self):
        for strategy in sorted(strategies.STRATEGIES):
            with self.subTest(strategy=strategy):
                process = subprocess.Popen(
                    [sys.executable, "-c", HITS, self.uri, strategy, "100000000 per day", "100000000"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.stdin.write("\n")
                process.stdin.flush()
                time.sleep(0.2)
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                limiter = strategies.STRATEGIES[strategy](self.storage())
                begun = time.monotonic()
                self.assertTrue(limiter.hit(limits.parse("100000000 per day"), "user"))
                self.assertLess(time.monotonic() - begun, 5)

    def test_a_window_ends(self):
        for uri in (self.uri, "haypile+memory://?size=8MiB"):
            for strategy in sorted(strategies.STRATEGIES):
                with self.subTest(uri=uri, strategy=strategy):
                    limiter = strategies.STRATEGIES[strategy](self.storage(uri))
                    item = limits.parse("3 per second")
                    time.sleep(1 - time.time() % 1)
                    self.assertEqual([limiter.hit(item, "a") for _ in range(4)], [True] * 3 + [False])
                    self.assertTrue(limiter.hit(item, "b"))
                    self.assertEqual(limiter.get_window_stats(item, "a").remaining, 0)
                    time.sleep(2.1)
                    self.assertEqual(limiter.get_window_stats(item, "a").remaining, 3)
                    self.assertTrue(limiter.hit(item, "a", cost=3))
                    limiter.clear(item, "a")
                    self.assertTrue(limiter.hit(item, "a", cost=3))

    def test_further_hits_do_not_prolong_a_fixed_window(self):
        storage = self.storage()
        storage.incr("key", 10)
        time.sleep(1.1)
        self.assertEqual(storage.incr("key", 10), 2)
        self.assertLess(storage.get_expiry("key"), time.time() + 9.5)
        self.assertAlmostEqual(storage.get_expiry("other"), time.time(), delta=0.5)

    def test_a_moving_window_stays_small(self):
        storage = self.storage()
        hits = 5000
        for _ in range(hits):
            self.assertTrue(storage.acquire_entry("key", hits, 60))
        self.assertFalse(storage.acquire_entry("key", hits, 60))
        self.assertEqual(storage.get_moving_window("key", hits, 60)[1], hits)
        self.assertLess(len(storage.cache["limits:moving:key"]), 40 * 1024)

    def test_reset_leaves_other_entries(self):
        storage = self.storage()
        storage.cache["other"] = b"1"
        storage.incr("a", 60)
        storage.acquire_entry("b", 5, 60)
        storage.acquire_sliding_window_entry("c", 5, 60)
        self.assertEqual(storage.reset(), 3)
        self.assertEqual(list(storage.cache), [b"other"])

    def test_async(self):
        async def hits():
            storage = storage_from_string(f"async+{self.uri}")
            passed = []
            for strategy in sorted(async_strategies.STRATEGIES):
                limiter = async_strategies.STRATEGIES[strategy](storage)
                item = limits.parse("5 per day")
                passed.append(sum(await asyncio.gather(*(limiter.hit(item, strategy) for _ in range(20)))))
            self.assertTrue(await storage.check())
            self.assertEqual(await storage.reset(), 4)
            storage.cache.close()
            return passed

        self.assertEqual(asyncio.run(hits()), [5, 5, 5])

    def test_sync_and_async_share_a_limit(self):
        item = limits.parse("5 per day")
        limiter = strategies.MovingWindowRateLimiter(self.storage())
        self.assertEqual([limiter.hit(item) for _ in range(4)], [True] * 4)

        async def hits():
            storage = storage_from_string(f"async+{self.uri}")
            limiter = async_strategies.MovingWindowRateLimiter(storage)
            found = [await limiter.hit(item) for _ in range(2)]
            storage.cache.close()
            return found

        self.assertEqual(asyncio.run(hits()), [True, False])

    def test_attempts_are_bounded(self):
        storage = self.storage()
        storage._limits._write = lambda *_: False
        begun = time.monotonic()
        with self.assertRaisesRegex(haypile.Busy, "in each of 1000 attempts"):
            storage.acquire_entry("key", 5, 60)
        self.assertLess(time.monotonic() - begun, 20)

    def test_errors(self):
        with self.assertRaisesRegex(ConfigurationError, "one level"):
            storage_from_string("haypile+memory:size=8MiB -> memory:size=9MiB")
        with self.assertRaises(haypile.OpenError):
            storage_from_string("haypile+memory://?size=nothing")
        storage = self.storage(wrap_exceptions=True)
        storage.cache.close()
        self.assertFalse(storage.check())
        with self.assertRaises(StorageError):
            storage.incr("key", 60)
        with self.assertRaises(haypile.Closed):
            bare = self.storage()
            bare.cache.close()
            bare.get("key")

    def test_a_clock_that_is_set_back(self):
        # The later window stays the current one, so that no limit is exceeded.
        found = (face._WINDOWS.pack(10, 4, 1), 1)
        self.assertEqual(face._windows_at(found, 9 * 60.0, 60), (10, 4, 1))
        self.assertEqual(face._windows_at(found, 10 * 60.0, 60), (10, 4, 1))
        self.assertEqual(face._windows_at(found, 11 * 60.0, 60), (11, 0, 4))
        self.assertEqual(face._windows_at(found, 12 * 60.0, 60), (12, 0, 0))


if __name__ == "__main__":
    unittest.main()
