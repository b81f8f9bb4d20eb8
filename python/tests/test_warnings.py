"""What fails no call is told all the same: as a warning at the opening, in the log later, and by counts."""

import logging
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import haypile
import urls


def opened(url):
    """Opens a cache; returns it and the warnings of its opening."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache = haypile.open(url)
    return cache, caught


class OpeningTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)

    def check(self, url, *parts):
        """The opening of this URL gives one warning, at the line that opens it, and nothing in the log."""
        with self.assertNoLogs("haypile"):
            cache, caught = opened(url)
        self.assertEqual([warning.category for warning in caught], [haypile.CacheWarning])
        self.assertEqual(caught[0].filename, __file__)
        self.assertEqual(cache.warnings(), [str(caught[0].message)])
        for part in parts:
            self.assertIn(part, cache.warnings()[0])
        return cache

    def test_a_size_that_an_existing_file_ignores(self):
        url = urls.shared(self.directory, size="2MiB")
        first, caught = opened(url)
        self.assertEqual((caught, first.warnings()), ([], []))
        self.addCleanup(first.close)
        second = self.check(url.replace("2MiB", "64MiB"), "has 2MiB", "size=64MiB has no effect")
        self.addCleanup(second.close)
        self.assertIn("size=2MiB", second.url)

    def test_a_snapshot_that_is_damaged(self):
        snapshot = self.directory / "snapshot"
        url = f"memory:size=1MiB,persist={snapshot}"
        with haypile.open(url) as cache:
            cache["key"] = b"value"
        data = bytearray(snapshot.read_bytes())
        data[len(data) // 2] ^= 1
        snapshot.write_bytes(data)
        with self.check(url, str(snapshot)) as empty:
            self.assertEqual(len(empty), 0)

    def test_a_snapshot_of_another_kind(self):
        snapshot = self.directory / "snapshot"
        snapshot.write_bytes(b"not a snapshot")
        cache = self.check(f"memory:size=1MiB,persist={snapshot}", str(snapshot))
        with self.assertRaisesRegex(haypile.BackendError, "is left as it is"):
            cache.close()

    def test_a_file_without_a_place_for_another_writer(self):
        url = urls.shared(self.directory, size="1MiB")
        for _ in range(32):
            self.addCleanup(haypile.open(url).close)
        crowded_out = self.check(url, "places for processes that write")
        self.addCleanup(crowded_out.close)
        with self.assertRaises(haypile.Error):
            crowded_out["key"] = b"value"

    def test_of_several_servers_one_that_does_not_answer(self):
        server = urls.memcached(self).removeprefix("memcached://")
        self.check(f"memcached://{server},127.0.0.1:1", "127.0.0.1:1 did not answer").close()

    def test_a_warning_can_be_an_error_and_objects_warn_as_well(self):
        url = urls.shared(self.directory, size="2MiB")
        haypile.open(url).close()
        url = url.replace("2MiB", "64MiB")
        for make in (haypile.open, haypile.Objects, haypile.AsyncCache):
            with warnings.catch_warnings():
                warnings.simplefilter("error", haypile.CacheWarning)
                with self.assertRaisesRegex(haypile.CacheWarning, "has no effect"):
                    make(url)
            with self.assertWarns(haypile.CacheWarning) as caught:
                make(url)
            self.assertEqual(caught.filename, __file__)


class LaterTest(unittest.TestCase):
    def test_results_that_are_computed_at_each_call(self):
        with haypile.open("memory:size=1KiB") as cache:
            for times in (1, 2):
                if times == 1:
                    with self.assertLogs("haypile", "WARNING") as logged:
                        self.assertEqual(cache.get_or_compute("key", 60, lambda: bytes(4096)), bytes(4096))
                    self.assertRegex(logged.output[0], "computed again at each call.*4096 bytes is too large")
                else:
                    with self.assertNoLogs("haypile"):
                        cache.get_or_compute("key", 60, lambda: bytes(4096))
                self.assertEqual(cache.stats().refused_values, times)
                self.assertIn(f"{times} computed values were not stored", cache.warnings()[0])
        # Also of a closed cache.
        self.assertEqual(len(cache.warnings()), 1)

    def test_results_of_a_memoized_function(self):
        objects = haypile.Objects("memory:size=1KiB")
        self.addCleanup(objects.close)
        calls = []

        @objects.memoize(ttl=60)
        def large(number):
            calls.append(number)
            return "x" * 4096

        with self.assertLogs("haypile", "WARNING") as logged:
            self.assertEqual(large(1), large(1))
        self.assertEqual((len(logged.output), calls), (1, [1, 1]))
        self.assertEqual(objects.cache.stats().refused_values, 2)

    def test_a_server_that_does_not_answer(self):
        for start in (urls.memcached, urls.redis):
            with self.subTest(start.__name__):
                url = start(self)
                cache = haypile.open(url)
                self.addCleanup(cache.close)
                cache["key"] = b"value"
                self.assertEqual((cache.stats().unreachable, cache.warnings()), (0, []))
                urls.end(url)
                with self.assertLogs("haypile", "WARNING") as logged:
                    self.assertIsNone(cache.get("key"))
                self.assertIn("does not answer", logged.output[0])
                cache["key"] = b"value"
                self.assertGreaterEqual(cache.stats().unreachable, 2)
                self.assertIn("did not answer", cache.warnings()[0])

    def test_a_handler_may_use_the_cache_and_fail(self):
        with haypile.open("memory:size=1KiB") as cache:
            records = []

            class Handler(logging.Handler):
                def emit(self, record):
                    records.append((record.getMessage(), cache.get("short"), cache.warnings()))
                    raise RuntimeError("a handler that fails")

            handler = Handler()
            logging.getLogger("haypile").addHandler(handler)
            self.addCleanup(logging.getLogger("haypile").removeHandler, handler)
            cache["short"] = b"value"
            with unittest.mock.patch.object(sys, "unraisablehook") as hook:
                self.assertEqual(len(cache.get_or_compute("key", 60, lambda: bytes(4096))), 4096)
            self.assertEqual(len(records), 1)
            self.assertEqual(records[0][1:], (b"value", cache.warnings()))
            self.assertEqual(hook.call_count, 1)

    def test_a_program_without_a_log_reads_it_on_standard_error(self):
        program = """
import haypile
cache = haypile.open("memory:size=1KiB")
cache.get_or_compute("key", 60, lambda: bytes(4096))
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertIn("computed again at each call", run.stderr)


class StatsTest(unittest.TestCase):
    def test_they_have_every_count_of_the_engine(self):
        names = {name for name in dir(haypile.Stats) if not name.startswith("_")}
        for name in ("hits", "corrupt", "unreachable", "failed_reads", "refused_values", "failed_refreshes"):
            self.assertIn(name, names)
        with haypile.open("memory:size=1MiB") as cache:
            cache["key"] = b"value"
            text = (pathlib.Path(__file__).parents[2] / "crates/haypile/src/stats/event.rs").read_text()
            stats = cache.stats()
        listed = [line.split()[1] for line in text.splitlines() if line.startswith("            ") and _is_event(line)]
        self.assertGreater(len(listed), 15)
        for name in listed:
            self.assertIsInstance(getattr(stats, name), int)
        self.assertEqual(pickle.loads(pickle.dumps(stats)), stats)


def _is_event(line):
    words = line.split()
    return len(words) >= 2 and words[0].isalpha() and words[0][0].isupper() and words[1].replace("_", "").islower()


if __name__ == "__main__":
    unittest.main()
