"""Nothing grows over many operations: memory, objects, descriptors, mappings, threads.

A process of its own does the operations, so that other tests do not disturb what it measures. About half a million
operations by default; HAYPILE_LONG=1 does ten million, which takes some minutes.
"""

import asyncio
import ctypes
import gc
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import haypile
import urls

OPERATIONS = 10_000_000 if os.environ.get("HAYPILE_LONG") else 500_000
SECRET = b"a secret of sixteen bytes or more"
VALUE = bytes(2000)

# Growth that is noise, for each thing that is measured. One leak in each round exceeds it.
MARGINS = {"resident": 3 << 20, "allocated": 32 << 10, "blocks": 80, "objects": 25, "descriptors": 0,
           "mappings": 12, "threads": 0}

# No machine needs that many seconds.
PATIENCE = 3600


class Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    """Bytes that malloc has handed out, which are the engine's; 0 where the C library does not count them."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    mallinfo2.restype = Mallinfo
    found = mallinfo2()
    return found.uordblks + found.hblkhd


def measured():
    """What this process holds."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    # A thread that was joined may still be ending.
    end = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
        os.sched_yield()
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        resident = int(statm.read().split()[1]) * mmap.PAGESIZE
    with open("/proc/self/maps", encoding="ascii") as maps:
        mappings = len(maps.readlines())
    return {"resident": resident, "allocated": allocated(), "blocks": sys.getallocatedblocks(),
            "objects": len(gc.get_objects()), "descriptors": len(os.listdir("/proc/self/fd")),
            "mappings": mappings, "threads": len(os.listdir("/proc/self/task"))}


def fails():
    """A computation that does not succeed."""
    raise LookupError("away")


class Work:
    """Operations on caches of one URL. Each method does about 100, of which `number` is the first one's."""

    def __init__(self, url):
        self.url = url
        self.cache = haypile.open(url)
        self.json = haypile.Objects(self.cache)
        self.pickle = haypile.Objects(self.cache, "pickle", sign=SECRET)

        @self.json.memoize(ttl=60)
        def remembered(argument):
            return fails() if argument is None else [argument]

        @self.json.memoize(ttl=60)
        async def awaited(argument):
            return fails() if argument is None else [argument]

        self.remembered, self.awaited = remembered, awaited
        self.loop = asyncio.new_event_loop()
        self.kept = []

    def close(self):
        """Ends it."""
        self.loop.close()
        self.cache.close()

    def reads_and_writes(self, number):
        for number in range(number, number + 20):
            key = f"key {number % 1000}"
            self.cache.set(key, VALUE, 60)
            assert len(self.cache.get(key, VALUE)) == len(VALUE)
            assert self.cache.get(f"missing {number}") is None
            self.cache[b"key"] = bytearray(VALUE)
            self.cache.delete(key)

    def refusals(self, number):
        for use in 20 * (lambda: self.cache.get(7), lambda: self.cache.set("key", "text"),
                         lambda: self.cache.set("key", b"", -1), lambda: self.cache["missing"],
                         lambda: self.cache.get("k" * 65536)):
            try:
                use()
            except (haypile.Error, TypeError, ValueError, KeyError):
                continue
            raise AssertionError(number)

    def many(self, number):
        keys = [f"many {number + index}" for index in range(25)]
        self.cache.set_many(dict.fromkeys(keys, VALUE))
        self.cache.set_many((key, VALUE) for key in keys)
        assert len(self.cache.get_many(keys)) == 25
        self.cache.delete_many(keys)

    def views(self, number):
        for number in range(number, number + 25):
            self.cache[f"view {number % 50}"] = VALUE
            view = self.cache.get_view(f"view {number % 50}")
            part = view and view[10:20]
            self.cache.delete(f"view {number % 50}")
            assert part is None or part == VALUE[10:20]
            self.cache.get_view("missing")

    def counters_and_versions(self, number):
        for number in range(number, number + 20):
            self.cache.incr("count", 1, initial=0, ttl=60)
            self.cache.decr("count")
            self.cache["version"] = VALUE
            found = self.cache.get_versioned("version")
            if found is not None:
                self.cache.cas("version", b"new", found[1])
                self.cache.cas("version", b"newer", found[1])
                self.cache.delete_version("version", found[1])

    def computations(self, number):
        for number in range(number, number + 20):
            key = f"computed {number}"
            self.cache.get_or_compute(key, 60, lambda: VALUE)
            self.cache.get_or_compute(key, 60, lambda: VALUE)
            self.cache.get_or_compute(key, 60, lambda: VALUE, stale=60, early=59.999)
            for arguments in ({}, {"stale": 60}):
                try:
                    self.cache.get_or_compute(f"missing {number}", 60, fails, **arguments)
                except LookupError:
                    pass

    def iteration(self, number):
        self.cache.set_many({f"iterated {number + index}": b"v" for index in range(30)})
        # Not all of them: an iterator that was not exhausted is dropped.
        for _, (key, value) in zip(range(30), self.cache.items()):
            self.cache.pop(key, None)
            self.cache.pop("missing", value)

    def objects(self, number):
        value = {"text": "x" * 500, "list": [None, True, 1.5]}
        for number in range(number, number + 10):
            for objects in (self.json, self.pickle):
                objects.set(f"object {number % 100}", value, 60)
                objects.get(f"object {number % 100}")
                objects.get_or_compute(f"object {number % 200}", 60, lambda: value)
                # Of the other serializer or without a signature.
                self.json.get("object")
                self.pickle["object"] = value
                objects.set_many([(f"object {number % 50}", value)])
                objects.get_many([f"object {number % 50}", "missing"])
                objects.pop("object", None)

    def memoized(self, number):
        for number in range(number, number + 33):
            self.remembered(number)
            self.remembered(number)
            try:
                self.remembered(None)
            except LookupError:
                pass

    def coroutines(self, number):
        async def all_kinds():
            calls = [self.awaited(number), self.awaited(number), self.awaited(None)]
            await asyncio.gather(*calls, return_exceptions=True)
            for _ in range(97):
                await self.awaited(number)

        self.loop.run_until_complete(all_kinds())

    def waits(self, number):
        """Threads that come and go, of which one computes."""
        def ask():
            for index in range(number, number + 25):
                self.cache.get_or_compute(f"asked {index}", 60, lambda: VALUE)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def opening(self, number):
        with haypile.open(self.url) as cache:
            for index in range(24):
                cache.set(f"key {index}", VALUE)
                cache.get(f"key {index}")
                iter(cache)
        # Dropped, with an iterator and a view, without being closed.
        left = haypile.open(self.url)
        left["key"] = VALUE
        left.get_view("key"), iter(left)
        for url in (f"{self.url},nonsense=1", "nonsense:", 7):
            try:
                haypile.open(url)
            except (haypile.Error, TypeError):
                continue
            raise AssertionError(number)


class Leak(Work):
    """What the measurement has to notice."""

    def objects(self, number):
        self.kept.append([])

    def memory(self, number):
        ctypes.CDLL(None).malloc(512)

    def values(self, number):
        self.kept.append(VALUE + b"%d" % number)

    def descriptors(self, number):
        self.kept.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))

    def mappings(self, number):
        # Of alternating rights: the kernel merges neighbours that are the same.
        mapping = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | number // 100 % 2 * mmap.PROT_WRITE)
        self.kept.append(mapping)


KINDS = {kind.__name__: kind for kind in (Work, Leak)}


def main(kind, url, operations):
    """Prints, as JSON, by how much each thing has grown over each work."""
    work = KINDS[kind](url)
    names = [name for name in vars(type(work)) if name not in ("close",) and not name.startswith("_")]
    growths = {}
    # What opens a cache, or starts threads, takes a hundred times as long as the others.
    shares = {"opening": 0.2, "coroutines": 0.5, "waits": 0.5}
    for name in names:
        rounds = max(100, int(operations / 100 / len(names) / 3 * shares.get(name, 1)))
        found, number = [], 0
        for _ in range(4):
            for _ in range(rounds):
                getattr(work, name)(number)
                number += 100
            found.append(measured())
        # The first stretch is the warm-up. Of the others what grows in each is a leak.
        growths[name] = {thing: min(after[thing] - before[thing] for before, after in zip(found[1:], found[2:]))
                         for thing in found[0]}
    if kind == "Work":
        work.close()
    json.dump(growths, sys.stdout)


@unittest.skipUnless(sys.platform == "linux", "it reads Linux's /proc")
class LeakTest(unittest.TestCase):
    def grown(self, kind, url, operations):
        """What has grown beyond its margin, by the name of the work."""
        child = subprocess.run([sys.executable, __file__, kind, url, str(operations)], stdout=subprocess.PIPE,
                               check=True, timeout=PATIENCE)
        growths = json.loads(child.stdout)
        return {name: {thing: growth for thing, growth in found.items() if growth > MARGINS[thing]}
                for name, found in growths.items()}

    def check(self, url):
        grown = self.grown("Work", url, OPERATIONS // 2)
        self.assertEqual({name: found for name, found in grown.items() if found}, {})
        self.assertGreater(len(grown), 10)

    def test_memory(self):
        self.check("memory:size=2MiB")

    def test_file(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check(urls.shared(directory, size="2MiB"))

    def test_leaks_are_noticed(self):
        # Each work a hundred rounds, of one leak each: fewer than any of the others has.
        grown = self.grown("Leak", "memory:size=2MiB", 0)
        if allocated() == 0:
            del grown["memory"]
        expected = {"objects": {"objects", "blocks"}, "memory": {"allocated"}, "values": {"allocated", "blocks"},
                    "descriptors": {"descriptors"}, "mappings": {"mappings"}}
        for name, found in grown.items():
            self.assertLessEqual(expected[name], set(found), name)


if __name__ == "__main__" and len(sys.argv) == 4:
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
elif __name__ == "__main__":
    unittest.main()
