"""The backend for dogpile.cache."""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import haypile
import urls
from planted import Planted

try:
    from dogpile.cache import make_region
    from dogpile.cache.api import NO_VALUE

    import haypile.dogpile as face
except ImportError:
    raise unittest.SkipTest("the package 'dogpile.cache' is not installed: pip install 'haypile[dogpile]'") from None

SECRET = "a secret of sixteen bytes or more"

# Acquires a mutex, says so, and holds it.
HOLDER = """
import sys, time
import haypile.dogpile

backend = haypile.dogpile.HaypileBackend({"url": sys.argv[1], "lock_timeout": float(sys.argv[2])})
assert backend.get_mutex("key").acquire()
print("held", flush=True)
time.sleep(600)
"""

# Adds to a number in a file, which two processes at once would do wrong.
COUNTER = """
import sys, time
import haypile.dogpile

backend = haypile.dogpile.HaypileBackend({"url": sys.argv[1]})
for _ in range(20):
    mutex = backend.get_mutex("key")
    assert mutex.acquire()
    number = int(open(sys.argv[2]).read())
    time.sleep(0.001)
    with open(sys.argv[2], "w") as file:
        file.write(str(number + 1))
    mutex.release()
"""

# Asks for a value that takes long to create, and appends a line to a file for each creation.
ASKER = """
import sys, time
import haypile.dogpile
from dogpile.cache import make_region

region = make_region().configure("haypile", expiration_time=600, arguments={"url": sys.argv[1]})

def create():
    with open(sys.argv[2], "a") as file:
        file.write("created\\n")
    time.sleep(0.5)
    return "value"

assert region.get_or_create("key", create) == "value"
"""


def start(program, *arguments):
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


class Interrupted:
    """A cache in which something else happens once, after an entry was read or before it is compared and deleted."""

    def __init__(self, cache, interrupt):
        self._cache = cache
        self._interrupts = [interrupt]

    def __getattr__(self, name):
        return getattr(self._cache, name)

    def __contains__(self, key):
        return key in self._cache

    def _interrupt(self):
        if self._interrupts:
            self._interrupts.pop()()

    def get(self, *arguments):
        found = self._cache.get(*arguments)
        self._interrupt()
        return found

    def get_versioned(self, key):
        found = self._cache.get_versioned(key)
        self._interrupt()
        return found

    def compare_and_delete(self, key, expected):
        self._interrupt()
        return self._cache.compare_and_delete(key, expected)


class RefusalTest(unittest.TestCase):
    def test_a_value_that_the_cache_refuses_is_returned(self):
        cache = urls.Busy("memory:size=1MiB")
        self.addCleanup(cache.close)
        region = make_region().configure("haypile", arguments={"cache": cache})
        self.assertEqual(region.get_or_create("key", lambda: bytes(2 << 20)), bytes(2 << 20))
        region.set_multi({"one": bytes(2 << 20), "other": bytes(2 << 20)})
        self.assertEqual(cache.stats().refused_values, 3)


class LeaseTest(unittest.TestCase):
    """What is created under a mutex does not undo what others delete in the meantime."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.url = urls.shared(holder.name)

    def region(self, **options):
        region = make_region().configure("haypile", arguments={"url": self.url}, **options)
        self.addCleanup(region.backend.cache.close)
        return region

    def test_a_deletion_during_the_creation_is_not_undone(self):
        region, other = self.region(), self.region()

        def create():
            other.delete("key")
            return "old"

        self.assertEqual(region.get_or_create("key", create), "old")
        self.assertIs(other.get("key"), NO_VALUE)
        self.assertEqual(region.get_or_create("key", lambda: "new"), "new")
        self.assertEqual(other.get("key"), "new")
        # What is set without a creation is.
        region.set("key", "set")
        self.assertEqual(other.get("key"), "set")
        self.assertEqual(region.backend._held, {})

    def test_an_expired_value_is_created_under_a_lease_too(self):
        region, other = self.region(expiration_time=0.001), self.region()
        region.set("key", "expired")
        time.sleep(0.01)

        def create():
            other.delete("key")
            return "old"

        self.assertEqual(region.get_or_create("key", create), "old")
        self.assertIs(other.get("key"), NO_VALUE)

    def test_a_mutex_that_another_thread_releases_leaves_no_lease(self):
        region, other = self.region(), self.region()
        mutex = region.backend.get_mutex("key")
        self.assertTrue(mutex.acquire())
        self.assertIs(region.get("key"), NO_VALUE)
        thread = threading.Thread(target=mutex.release)
        thread.start()
        thread.join()
        self.assertEqual(region.backend._held, {})
        other.delete("key")
        region.set("key", "value")
        self.assertEqual(other.get("key"), "value")


class BusyAtFirst:
    """A cache that is busy when a mutex is released, this number of times."""

    def __init__(self, cache, times):
        self._cache = cache
        self.times = times

    def __getattr__(self, name):
        return getattr(self._cache, name)

    def __contains__(self, key):
        return key in self._cache

    def compare_and_delete(self, key, expected):
        if self.times > 0:
            self.times -= 1
            raise haypile.Busy("another process makes room")
        return self._cache.compare_and_delete(key, expected)


class DogpileTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        self.url = urls.shared(self.directory)
        self.path = os.path.join(self.directory, "shared.haypile")
        Planted.loaded = 0

    def region(self, expiration_time=None, region={}, **arguments):
        arguments.setdefault("url", self.url)
        made = make_region(**region).configure("haypile", expiration_time=expiration_time, arguments=arguments)
        self.addCleanup(made.backend.cache.close)
        return made

    def backend(self, **arguments):
        return self.region(**arguments).backend

    def test_regions_share_values(self):
        first, second = self.region(), self.region()
        values = {"a": {"name": "Ada"}, "b": [1, None], "c": 3}
        first.set_multi(values)
        self.assertEqual(second.get_multi(["a", "b", "c", "d"]), [*values.values(), NO_VALUE])
        second.delete("a")
        self.assertIs(first.get("a"), NO_VALUE)

    def test_ttl(self):
        for ttl in (50, "50"):
            region = self.region(ttl=ttl)
            region.set("key", 1)
            region.set_multi({"other": 2})
            self.assertTrue(40 < region.backend.cache.ttl("key") <= 50)
            self.assertTrue(40 < region.backend.cache.ttl("other") <= 50)
        region = self.region(url=self.url + ",ttl=20s")
        region.set("key", 1)
        self.assertTrue(10 < region.backend.cache.ttl("key") <= 20)
        region = self.region(url=self.url + ",ttl=20s", ttl=None)
        region.set("key", 1)
        self.assertIsNone(region.backend.cache.ttl("key"))

    def test_a_cache_that_is_open(self):
        with haypile.open(urls.MEMORY) as cache:
            region = make_region().configure("haypile", arguments={"cache": cache})
            region.set("key", "value")
            self.assertEqual(list(cache), [b"key"])
            # A cache of one process needs no locks in it.
            self.assertIsNone(region.backend.get_mutex("key"))
            self.assertFalse(region.backend.has_lock_timeout())

    def test_arguments(self):
        for arguments, message in [({}, "'url'"), ({"url": urls.MEMORY, "sign": "short"}, "16 bytes"),
                                   ({"url": urls.MEMORY, "lock_timeout": 0}, "lock_timeout")]:
            with self.assertRaisesRegex(ValueError, message):
                face.HaypileBackend(arguments)

    def test_a_planted_pickle_is_not_loaded_when_signed(self):
        region = self.region(sign=SECRET)
        region.set("key", "value")
        valid = region.backend.cache["key"]
        self.assertEqual(region.get("key"), "value")
        planted = b'{"ct": %f, "v": 2}|' % time.time() + pickle.dumps(Planted())
        changed = valid[:-3] + bytes([valid[-3] ^ 1]) + valid[-2:]
        for data in (planted, valid[:16] + planted, bytes(16) + planted, changed, valid[:15], b"", b"123"):
            region.backend.cache["key"] = data
            self.assertIs(region.get("key"), NO_VALUE)
            self.assertEqual(region.get_multi(["key"]), [NO_VALUE])
            self.assertEqual(region.get_or_create("key", lambda: "created"), "created")
        region.set_multi({"a": "value", "b": "other"})
        self.assertEqual(region.get_multi(["a", "b", "c"]), ["value", "other", NO_VALUE])
        # Valid, but of another key.
        region.backend.cache["other"] = valid
        self.assertIs(region.get("other"), NO_VALUE)
        # Valid for haypile.Objects.
        haypile.Objects(region.backend.cache, "pickle", sign=SECRET)["key"] = Planted()
        self.assertIs(region.get("key"), NO_VALUE)
        self.assertEqual(Planted.loaded, 0)
        # Without a signature it is: the test would notice.
        unsigned = self.region()
        unsigned.backend.cache["key"] = planted
        self.assertEqual(unsigned.get("key"), "loaded")
        self.assertEqual(Planted.loaded, 1)

    def test_pickles_that_others_can_write_are_refused(self):
        os.chmod(self.path, 0o640)
        with self.assertRaises(haypile.UnsafePickle):
            self.region()
        # Serializers that run nothing are accepted.
        region = self.region(region={"serializer": lambda value: json.dumps(value).encode(), "deserializer": json.loads})
        region.set("key", {"a": 1})
        self.assertEqual(region.get("key"), {"a": 1})

    def test_a_pickle_that_cannot_be_loaded_is_a_miss(self):
        region = self.region()
        region.set("key", "value")
        data = region.backend.cache["key"]
        region.backend.cache["key"] = data.partition(b"|")[0] + b"|" + b"\x80\x05cno_module\nNothing\n."
        self.assertEqual(region.get_or_create("key", lambda: "created"), "created")

    def test_a_value_that_is_too_large_is_not_kept(self):
        with haypile.open("memory:size=1MiB") as cache:
            region = make_region().configure("haypile", arguments={"cache": cache})
            region.set("large", "value")
            self.assertEqual(region.get_or_create("other", lambda: "x" * 2_000_000), "x" * 2_000_000)
            region.set_multi({"large": "x" * 2_000_000, "small": 1})
            self.assertEqual((region.get("large"), region.get("small")), (NO_VALUE, 1))

    def test_processes_exclude_each_other(self):
        number = os.path.join(self.directory, "number")
        with open(number, "w") as file:
            file.write("0")
        processes = [start(COUNTER, self.url, number) for _ in range(8)]
        for process in processes:
            process.communicate()
            self.assertEqual(process.returncode, 0)
        with open(number) as file:
            self.assertEqual(file.read(), "160")

    def test_of_eight_processes_one_creates(self):
        created = os.path.join(self.directory, "created")
        processes = [start(ASKER, self.url, created) for _ in range(8)]
        for process in processes:
            process.communicate()
            self.assertEqual(process.returncode, 0)
        with open(created) as file:
            self.assertEqual(file.read(), "created\n")

    def test_a_killed_holder_blocks_no_longer_than_its_ttl(self):
        timeout = 2.0
        holder = start(HOLDER, self.url, timeout)
        self.assertEqual(holder.stdout.readline(), "held\n")
        held = time.monotonic()
        mutex = self.backend().get_mutex("key")
        self.assertTrue(mutex.locked())
        self.assertFalse(mutex.acquire(False))
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
        self.assertFalse(mutex.acquire(False))
        self.assertTrue(mutex.acquire())
        waited = time.monotonic() - held
        self.assertTrue(timeout * 0.5 < waited < timeout + 2, waited)
        mutex.release()

    def test_a_holder_that_is_late_does_not_release_the_lock_of_the_next(self):
        late, next_one = (self.backend(lock_timeout=timeout).get_mutex("key") for timeout in (0.2, 60))
        self.assertTrue(late.acquire())
        self.assertTrue(next_one.acquire())
        late.release()
        self.assertTrue(late.locked())
        self.assertFalse(late.acquire(False))
        next_one.release()
        self.assertFalse(next_one.locked())

    def test_a_late_thread_does_not_release_the_lock_of_another(self):
        # The threads of a region share one mutex object.
        mutex = self.backend(lock_timeout=1).get_mutex("key")
        self.assertTrue(mutex.acquire())
        taken, end = threading.Event(), threading.Event()

        def take():
            mutex.acquire()
            taken.set()
            end.wait(10)

        thread = threading.Thread(target=take)
        thread.start()
        self.assertTrue(taken.wait(10))
        mutex.release()
        self.assertTrue(mutex.locked())
        end.set()
        thread.join()

    def test_a_released_mutex_is_free_at_once(self):
        mutexes = [self.backend().get_mutex("key") for _ in range(2)]
        begun = time.monotonic()
        for _ in range(50):
            for mutex in mutexes:
                self.assertTrue(mutex.acquire(False))
                mutex.release()
        self.assertLess(time.monotonic() - begun, 1)
        with self.assertRaisesRegex(RuntimeError, "not held"):
            mutexes[0].release()

    def test_a_lock_that_is_lost_within_release_stays_with_the_next(self):
        for server in (lambda: self.url, lambda: urls.redis(self), lambda: urls.memcached(self)):
            try:
                url = server()
            except unittest.SkipTest:
                continue
            with self.subTest(url), haypile.open(url) as cache:
                next_one = face.HaypileMutex(cache, "key", 60)

                def expire():
                    cache.delete(next_one._key)
                    self.assertTrue(next_one.acquire(False))

                late = face.HaypileMutex(Interrupted(cache, expire), "key", 60)
                self.assertTrue(late.acquire())
                late.release()
                self.assertTrue(next_one.locked())
                next_one.release()
                self.assertFalse(next_one.locked())

    def test_over_a_server_without_versions_or_scripts_a_lock_is_released_as_well(self):
        with haypile.open(urls.memcached(self, "-C")) as cache:
            mutex = face.HaypileMutex(cache, "key", 60)
            self.assertTrue(mutex.acquire())
            mutex.release()
            self.assertFalse(mutex.locked())

    def test_a_release_goes_on_while_the_store_is_busy(self):
        cache = BusyAtFirst(self.backend().cache, 3)
        mutex = face.HaypileMutex(cache, "key", 60)
        self.assertTrue(mutex.acquire())
        mutex.release()
        self.assertEqual(cache.times, 0)
        self.assertFalse(mutex.locked())

    def test_a_store_that_stays_busy_does_not_keep_the_caller_and_the_lock_is_released_later(self):
        cache = BusyAtFirst(self.backend().cache, 1 << 30)
        mutex = face.HaypileMutex(cache, "key", 600)
        self.assertTrue(mutex.acquire())
        with unittest.mock.patch.object(face, "_RELEASE_PATIENCE", 0.01):
            mutex.release()
        self.assertTrue(mutex.locked())
        with self.assertRaisesRegex(RuntimeError, "not held"):
            mutex.release()
        cache.times = 0
        end = time.monotonic() + 60
        while mutex.locked() and time.monotonic() < end:
            time.sleep(0.001)
        self.assertFalse(mutex.locked())

    def test_another_thread_releases_after_background_creation(self):
        threads = []

        def runner(cache, key, creator, mutex):
            def create():
                try:
                    cache.set(key, creator())
                finally:
                    mutex.release()

            threads.append(threading.Thread(target=create))
            threads[-1].start()

        region = self.region(0.2, region={"async_creation_runner": runner})
        region.get_or_create("key", lambda: 1)
        time.sleep(0.3)
        self.assertEqual(region.get_or_create("key", lambda: 2), 1)
        for thread in threads:
            thread.join()
        self.assertEqual(region.get_or_create("key", lambda: 3), 2)
        self.assertFalse(region.backend.get_mutex("key").locked())


if __name__ == "__main__":
    unittest.main()
