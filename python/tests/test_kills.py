"""Processes that are killed while they write and compute: the others go on, with right values.

Two processes use one `file:` cache all the time. Others start, work, and are killed at steps that a seed chooses:
between operations, within writes, within computations. HAYPILE_LONG=1 kills fifty times as many; HAYPILE_SEED is
another seed. Where HAYPILE_PROGRAM names the haypile command, it checks the file as well.
"""

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import time
import unittest

import haypile
import urls

KILLS = 2000 if os.environ.get("HAYPILE_LONG") else 40
SEED = int(os.environ.get("HAYPILE_SEED", "1"))
SECRET = b"a secret of sixteen bytes or more"
KEYS = 40

# Seconds that a call waits for the computation of another process, and those that it may take at all: a second
# for a wait that was begun again after each of several kills, and the rest for a slow machine.
WAIT = 2
BOUND = 60


def value_of(key, number):
    """A value that says whether it is whole and under its key."""
    text = f"{key} {number} ".encode()
    # Of one segment and less, and of several pages.
    data = text * (1 + number % 7 * 300)
    return {"key": key, "number": number, "data": data, "hash": hashlib.blake2b(data).digest()}


def is_right(key, value):
    return value["key"] == key and value == value_of(key, value["number"])


class Worker:
    """One process' use of the cache."""

    def __init__(self, url, seed):
        self.random = random.Random(seed)
        self.cache = haypile.open(url)
        self.objects = haypile.Objects(self.cache, "pickle", sign=SECRET)
        self.wrong, self.longest, self.done = [], 0.0, 0

        @self.objects.memoize(ttl=0.05, name="remembered")
        def remembered(key):
            return self.computed(key)

        self.remembered = remembered
        self.operations = [self.get, self.get, self.set, self.set_many, self.compute, self.refresh, self.call,
                           self.delete, self.count, self.view, self.keys]

    def computed(self, key):
        """A computation, during which this process may be killed."""
        self.report("computing")
        return value_of(key, self.random.randrange(1000))

    def report(self, step):
        """Tells the test that it is at a step. A survivor does not: nobody reads what it says."""

    def expect(self, is_as_expected, found):
        if not is_as_expected:
            self.wrong.append(repr(found)[:200])

    def get(self, key):
        value = self.objects.get(key)
        self.expect(value is None or is_right(key, value), value)

    def set(self, key):
        self.objects.set(key, value_of(key, self.random.randrange(1000)), self.random.choice([None, 0.01, 60]))

    def set_many(self, key):
        self.objects.set_many({name: value_of(name, self.random.randrange(1000)) for name in (key, f"{key}+")})
        value = self.objects.get(f"{key}+")
        self.expect(value is None or is_right(f"{key}+", value), value)

    def compute(self, key):
        value = self.objects.get_or_compute(key, 0.05, lambda: self.computed(key))
        self.expect(is_right(key, value), value)

    def refresh(self, key):
        value = self.objects.get_or_compute(key, 0.05, lambda: self.computed(key), stale=0.05, early=0.02)
        self.expect(is_right(key, value), value)

    def call(self, key):
        value = self.remembered(key)
        self.expect(is_right(key, value), value)

    def delete(self, key):
        self.objects.delete(key)
        value = self.objects.pop(f"{key}+", None)
        self.expect(value is None or is_right(f"{key}+", value), value)

    def count(self, key):
        number = self.objects.incr("count", 1, initial=0, ttl=None)
        self.expect(isinstance(number, int) and number > 0, number)

    def view(self, key):
        self.cache.set(f"{key} bytes", key.encode() * 5000)
        view = self.cache.get_view(f"{key} bytes")
        self.expect(view is None or view == key.encode() * 5000, key)

    def keys(self, key):
        found = set(self.cache)
        self.expect(all(name.startswith((b"key ", b"count", b"remembered:")) for name in found), found)

    def work(self):
        """One operation."""
        operation = self.random.choice(self.operations)
        begun = time.monotonic()
        try:
            operation(f"key {self.random.randrange(KEYS)}")
        except haypile.Busy:
            # Allowed: nothing has changed.
            pass
        self.longest = max(self.longest, time.monotonic() - begun)
        self.done += 1


class Victim(Worker):
    """A worker that says at which step it is, until it is killed."""

    def report(self, step):
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()

    def work(self):
        self.report("working")
        super().work()


class Survivor(Worker):
    """A worker that goes on until its standard input ends, and then says what it has seen."""

    def run(self):
        os.set_blocking(0, False)
        while self.done < 200 or sys.stdin.buffer.read(1) is None:
            self.work()
        print(json.dumps({"wrong": self.wrong[:5], "longest": self.longest, "done": self.done}))


def main(kind, url, seed):
    if kind == "survivor":
        Survivor(url, seed).run()
        return
    victim = Victim(url, seed)
    while not victim.wrong:
        victim.work()
    print("wrong:", *victim.wrong, flush=True)


class KillTest(unittest.TestCase):
    def start(self, kind, url, seed):
        process = subprocess.Popen([sys.executable, __file__, kind, url, str(seed)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_survivors_go_on(self):
        # So small that entries are evicted all the time.
        url = urls.file(self, size="2MiB", verify="always", compute_wait=f"{WAIT}s")
        chance = random.Random(SEED)
        survivors = [self.start("survivor", url, f"{SEED}{number}") for number in range(2)]
        at = {"working": 0, "computing": 0}
        for kill in range(KILLS):
            victim = self.start("victim", url, f"{SEED}{kill}9")
            wanted = chance.choice(sorted(at))
            remaining = chance.randrange(1, 60 if wanted == "working" else 10)
            line = ""
            while remaining:
                line = victim.stdout.readline().strip()
                self.assertIn(line, at, "a victim saw a wrong value, or ended")
                remaining -= line == wanted
            victim.kill()
            self.assertEqual(victim.wait(), -9)
            at[line] += 1
        self.assertGreater(min(at.values()), KILLS // 10)
        for survivor in survivors:
            self.assertIsNone(survivor.poll())
            output, _ = survivor.communicate(timeout=BOUND)
            self.assertEqual(survivor.returncode, 0)
            found = json.loads(output)
            self.assertEqual(found["wrong"], [])
            self.assertLess(found["longest"], BOUND)
            self.assertGreaterEqual(found["done"], 200)
        self.check_after(url, url.removeprefix("file:").partition(",")[0])

    def check_after(self, url, path):
        """The cache works, and every entry in it is right."""
        program = os.environ.get("HAYPILE_PROGRAM")
        if program:
            subprocess.run([program, "check", path], check=True, stdout=subprocess.DEVNULL, timeout=BOUND)
        with haypile.open(url) as cache:
            worker = Worker(url, SEED)
            self.addCleanup(worker.cache.close)
            entries = dict(cache.items())
            self.assertGreater(len(entries), 5)
            for key in entries:
                if key.startswith(b"key ") and not key.endswith(b" bytes"):
                    worker.get(key.decode())
            for _ in range(1000):
                worker.work()
            self.assertEqual(worker.wrong, [])
            self.assertEqual(cache.stats().corrupt, 0)
            self.assertGreater(worker.cache.stats().evictions, 0)
            for number in range(KEYS):
                self.assertEqual(cache.get_or_compute(f"new {number}", 60, lambda: b"computed"), b"computed")
                self.assertEqual(cache.get(f"new {number}"), b"computed")
            cache.flush(durable=True)
            cache.clear()
            self.assertEqual(len(cache), 0)

    def test_a_wrong_value_is_noticed(self):
        url = urls.file(self)
        worker = Worker(url, SEED)
        self.addCleanup(worker.cache.close)
        for wrong in (value_of("key 2", 5), value_of("key 1", 5) | {"number": 6}, {**value_of("key 1", 5), "data": b""}):
            worker.objects["key 1"] = wrong
            worker.get("key 1")
        self.assertEqual(len(worker.wrong), 3)
        self.assertGreater(len(pickle.dumps(value_of("key 1", 6))), 4096)


if __name__ == "__main__" and len(sys.argv) == 4:
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
elif __name__ == "__main__":
    unittest.main()
