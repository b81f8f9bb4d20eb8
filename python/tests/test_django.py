"""haypile.django, in addition to Django's own tests, which make test-suites runs."""

import asyncio
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import haypile
import test_fork
import urls
from planted import Planted

try:
    import django
except ImportError:
    raise unittest.SkipTest("Django is not installed: pip install 'haypile[django]'") from None

from django.conf import settings

if not settings.configured:
    settings.configure(SECRET_KEY="a secret of these tests, which is long enough")
    django.setup()

from django.core import signals
from django.core.cache import caches
from django.core.cache.backends.base import InvalidCacheBackendError
from django.test import override_settings
from django.utils.asyncio import async_unsafe

from haypile import _adapters
from haypile.django import HaypileCache

# No machine needs that many seconds.
PATIENCE = 60

OTHER_SECRET = "another secret, which is long enough as well"


class ReadsTheDatabase:
    """As a QuerySet, which queries when it is pickled."""

    @async_unsafe
    def __getstate__(self):
        return {"state": 1}


def key_with_thread(key, prefix, version):
    """A KEY_FUNCTION that records the thread that calls it."""
    key_with_thread.threads.add(threading.get_ident())
    return f"{prefix}:{version}:{key}"


key_with_thread.threads = set()


class DjangoTest(unittest.TestCase):
    """Over a file."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = pathlib.Path(holder.name)
        self.url = urls.shared(holder.name)
        self.addCleanup(lambda: _adapters.shared(self.url).close())

    def backend(self, url=None, **params):
        return HaypileCache(url or self.url, params)

    def test_secret_keys_change_without_a_loss(self):
        self.backend().set("key", "first")
        with override_settings(SECRET_KEY=OTHER_SECRET, SECRET_KEY_FALLBACKS=["a third one", settings.SECRET_KEY]):
            second = self.backend()
            self.assertEqual(second.get("key"), "first")
            second.set("other", "second")
        with override_settings(SECRET_KEY=OTHER_SECRET):
            self.assertEqual(self.backend().get_many(["key", "other"]), {"other": "second"})
        self.assertEqual(self.backend().get_many(["key", "other"]), {"key": "first"})

    def test_a_set_after_a_miss_does_not_undo_a_deletion(self):
        other = self.backend()
        leasing = {"leases": True}
        # Django makes backends as it needs them: the miss of one belongs to the write of another.
        self.assertIsNone(self.backend(OPTIONS=leasing).get("key"))
        other.delete("key")
        self.backend(OPTIONS=leasing).set("key", "old")
        self.assertIsNone(other.get("key"))
        backend = self.backend(OPTIONS=leasing)
        self.assertEqual(backend.get_many(["key", "other"]), {})
        other.delete("key")
        self.assertEqual(backend.set_many({"key": "old", "other": "kept"}), ["key"])
        self.assertEqual(other.get_many(["key", "other"]), {"other": "kept"})
        self.assertIsNone(backend.get("key"))
        backend.set("key", "new")
        self.assertEqual(other.get("key"), "new")

        async def task():
            await backend.aget("of a task")
            other.delete("of a task")
            # Another task's miss comes later, and is not this one's.
            await asyncio.create_task(backend.aget("of a task"))
            await backend.aset("of a task", "old")
            return await backend.aget("of a task")

        self.assertIsNone(asyncio.run(task()))

    def test_entries_of_another_secret_key_are_misses(self):
        first = self.backend()
        first.set("key", "first", None)
        first.set("other", "first", None)
        with override_settings(SECRET_KEY=OTHER_SECRET):
            second = self.backend()
            self.assertIsNone(second.get("key"))
            self.assertEqual(second.get_many(["key", "other"]), {})
            self.assertFalse(second.has_key("key"))
            self.assertFalse(second.touch("key"))
            with self.assertRaises(ValueError):
                second.incr("key")
            # They do not stand in the way of new ones.
            self.assertTrue(second.add("key", "second"))
            self.assertEqual(second.get("key"), "second")
            self.assertEqual(second.get_or_set("other", lambda: "second"), "second")
            self.assertEqual(second.get("other"), "second")
        self.assertIsNone(first.get("key"))

    def test_a_planted_pickle_is_not_loaded(self):
        backend = self.backend()
        Planted.loaded = 0
        data = pickle.dumps(Planted())
        for planted in (data, b"\0" * 16 + data, b"\0" * 15 + data):
            with haypile.open(self.url) as cache:
                cache.set(backend.make_key("key"), planted)
            self.assertIsNone(backend.get("key"))
            self.assertEqual(backend.get_many(["key"]), {})
            self.assertFalse(backend.has_key("key"))
            self.assertEqual(Planted.loaded, 0)
        # The same bytes are loaded without signatures: the test can tell.
        with haypile.open(self.url) as cache:
            cache.set(backend.make_key("key"), data)
        self.assertEqual(self.backend(OPTIONS={"sign": False}).get("key"), "loaded")
        self.assertEqual(Planted.loaded, 1)

    def test_a_value_moved_to_another_key_is_a_miss(self):
        backend = self.backend()
        backend.set("mine", "value")
        with haypile.open(self.url) as cache:
            cache.set(backend.make_key("yours"), cache.get(backend.make_key("mine")))
        self.assertEqual(backend.get("mine"), "value")
        self.assertIsNone(backend.get("yours"))

    def test_a_file_that_others_can_read_is_refused(self):
        self.backend().set("key", "value")
        os.chmod(self.directory / "shared.haypile", 0o644)
        for options in ({}, {"sign": False}):
            with self.assertRaisesRegex(haypile.UnsafePickle, "mode 644"):
                self.backend(OPTIONS=options)
        self.backend(OPTIONS={"serializer": "json"}).set("key", "value")

    def test_options(self):
        self.backend(OPTIONS={"MAX_ENTRIES": 3, "CULL_FREQUENCY": 1}).set("key", "value")
        with self.assertRaises(InvalidCacheBackendError) as raised:
            HaypileCache("redis://u:hunter2@127.0.0.1:1", {"OPTIONS": {"serialiser": "json"}})
        self.assertNotIn("hunter2", str(raised.exception))
        with self.assertRaisesRegex(InvalidCacheBackendError, "unknown option 'serialiser'.*sign"):
            self.backend(OPTIONS={"serialiser": "json"})

    def test_numbers_keep_their_timeout(self):
        backend = self.backend()
        cache = backend._objects.cache
        for start, step in ((5, 1), (5, -1), (5, -10), (-5, 1), (2**80, 1)):
            backend.set("count", start, 1000)
            self.assertEqual(backend.incr("count", step), start + step)
            self.assertEqual(backend.get("count"), start + step)
            left = cache.ttl(backend.make_key("count"))
            self.assertTrue(990 < left <= 1000, left)
        backend.set("count", 5, None)
        backend.decr("count", 10)
        self.assertIsNone(cache.ttl(backend.make_key("count")))

    def test_numbers_beyond_the_counters_of_the_engine(self):
        backend = self.backend()
        for start, step in ((2**64 - 1, 1), (2**64 - 2, 5), (0, 2**64), (1, 2**70), (1, -2**70), (-1, 1), (True, 1),
                            (1.5, 1)):
            backend.set("count", start)
            self.assertEqual(backend.incr("count", step), start + step)
            self.assertEqual(backend.get("count"), start + step)

    def test_processes_share_numbers(self):
        backend = self.backend()
        backend.set("up", 0)
        backend.set("down", 0)
        backend.set("both", 100)
        program = ("import sys, test_django\n"
                   "backend = test_django.HaypileCache(sys.argv[1], {})\n"
                   "for _ in range(200):\n"
                   "    backend.incr('up'); backend.decr('down'); backend.incr('both'); backend.decr('both')\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        processes = [subprocess.Popen([sys.executable, "-c", program, self.url], env=environment) for _ in range(3)]
        for process in processes:
            self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(backend.get_many(["up", "down", "both"]), {"up": 600, "down": -600, "both": 100})

    def test_threads_share_one_opened_cache_that_requests_leave_open(self):
        with override_settings(CACHES={"default": {"BACKEND": "haypile.django.HaypileCache", "LOCATION": self.url}}):
            found = []
            barrier = threading.Barrier(4)

            def use():
                barrier.wait(PATIENCE)
                backend = caches["default"]
                backend.set("key", "value")
                found.append((backend, backend._objects.cache))
                signals.request_finished.send(sender=None)

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(len({id(backend) for backend, _ in found}), 4)
            self.assertEqual(len({id(cache) for _, cache in found}), 1)
            self.assertFalse(found[0][1].closed)
            self.assertEqual(caches["default"].get("key"), "value")

    def test_forks(self):
        file, memory = self.backend(), self.backend(urls.MEMORY)
        file.set("key", "parent's")
        memory.set("key", "parent's")

        def exercise():
            self.assertEqual(file.get("key"), "parent's")
            self.assertIsNone(memory.get("key"))
            memory.set("key", "child's")
            self.assertEqual(memory.get("key"), "child's")
            file.set("key", "child's")
            self.assertEqual(self.backend().get("key"), "child's")

        self.assertTrue(test_fork.in_child(exercise))
        self.assertEqual(file.get("key"), "child's")
        self.assertEqual(memory.get("key"), "parent's")

    def test_a_fork_while_another_thread_opens_a_cache(self):
        def exercise():
            self.backend(urls.MEMORY + ",ttl=1h").set("key", "value")

        with _adapters._opening:
            self.assertTrue(test_fork.in_child(exercise))

    def test_values_that_are_too_large(self):
        backend = self.backend(urls.MEMORY + ",ttl=2h")
        large = b"x" * (16 << 20)
        backend.set_many({"set": "old", "many": "old"})
        backend.set("set", large)
        self.assertIsNone(backend.get("set"))
        self.assertEqual(backend.set_many({"many": large, "small": "new"}), ["many"])
        self.assertEqual(backend.get_many(["many", "small"]), {"small": "new"})
        self.assertFalse(backend.add("add", large))
        self.assertEqual(backend.get_or_set("get", lambda: large), large)

    def test_a_refusal_is_counted_and_raises_nothing(self):
        opened = urls.Busy("memory:size=1MiB")
        self.addCleanup(opened.close)
        _adapters._opened["a busy cache"] = opened
        self.addCleanup(_adapters._opened.pop, "a busy cache")
        cache = self.backend("a busy cache")
        cache.set("old", "value")
        self.assertIsNone(cache.set("old", bytes(2 << 20)))
        self.assertIsNone(cache.get("old"))
        self.assertEqual(cache.set_many({"one": bytes(2 << 20), "other": bytes(2 << 20)}), ["one", "other"])
        self.assertFalse(cache.add("new", bytes(2 << 20)))
        self.assertEqual(cache.get_or_set("computed", lambda: bytes(2 << 20)), bytes(2 << 20))
        self.assertEqual(asyncio.run(cache.aget_or_set("computed", lambda: bytes(2 << 20))), bytes(2 << 20))
        self.assertEqual(opened.stats().refused_values, 5)

    def test_one_thread_computes(self):
        backend = self.backend()
        begun, may_end, calls, results = threading.Event(), threading.Event(), [], []

        def compute():
            calls.append(1)
            begun.set()
            may_end.wait(PATIENCE)
            return "computed"

        threads = [threading.Thread(target=lambda: results.append(backend.get_or_set("key", compute)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        self.assertTrue(begun.wait(PATIENCE))
        may_end.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(results, ["computed"] * 4)
        self.assertEqual(len(calls), 1)

    def test_a_default_may_ask_for_its_own_key(self):
        backend = self.backend()
        self.assertEqual(backend.get_or_set("key", lambda: backend.get_or_set("key", lambda: "inner") + " outer"),
                         "inner outer")

    def test_async_methods_run_inline_where_the_cache_is_local(self):
        backend = self.backend(KEY_FUNCTION=key_with_thread)
        for is_local in (True, False):
            key_with_thread.threads.clear()
            backend._is_local = is_local

            async def exercise():
                await backend.aset("key", 1)
                self.assertEqual(await backend.aincr("key"), 2)
                self.assertEqual(await backend.aget_many(["key", "no"]), {"key": 2})
                return threading.get_ident()

            here = asyncio.run(exercise())
            self.assertEqual(here in key_with_thread.threads, is_local)
            self.assertEqual(len(key_with_thread.threads), 1)

    def test_of_tasks_one_computes_in_the_loop(self):
        backend, calls = self.backend(), []

        async def render():
            calls.append(threading.get_ident())
            await asyncio.sleep(0)
            return {"page": 1}

        def now():
            calls.append(threading.get_ident())
            return "now"

        async def late():
            return 7

        async def exercise():
            pages = await asyncio.gather(*(backend.aget_or_set("page", render) for _ in range(8)))
            self.assertEqual(pages, [{"page": 1}] * 8)
            self.assertEqual(await backend.aget_or_set("plain", now), "now")
            self.assertEqual(await backend.aget_or_set("plain", now), "now")
            self.assertEqual(await backend.aget_or_set("value", 5), 5)
            self.assertEqual(await backend.aget_or_set("past", now, 0), "now")
            self.assertEqual(await backend.aget_or_set("past", late, 0), 7)
            with self.assertRaises(ZeroDivisionError):
                await backend.aget_or_set("error", lambda: 1 / 0)
            return threading.get_ident()

        here = asyncio.run(exercise())
        self.assertEqual(calls, [here] * 3)
        self.assertEqual(backend.get_many(["page", "plain", "value", "past"]),
                         {"page": {"page": 1}, "plain": "now", "value": 5})

    def test_async_writes_of_what_reads_the_database(self):
        backend = self.backend()
        asyncio.run(backend.aset("key", ReadsTheDatabase()))
        self.assertEqual(backend.get("key").state, 1)


if __name__ == "__main__":
    unittest.main()
