#!/usr/bin/env python3
"""The smallest runner (docs/job.md): a dictionary that evicts the oldest, as a cache. To measure another
cache copy this, or write the same in its language, and put that cache in the place of `Cache`.

    rivals/conformance/smallest.py list-subjects
    rivals/conformance/smallest.py run-job DIRECTORY smallest
"""

import sys
import time
from array import array
from pathlib import Path
from zlib import crc32

NAME, VERSION = "smallest", "1.0"
GET, SET, MANY, DELETE, FRESH, GETSET = range(6)
COUNTS = ("operations", "hits", "misses", "read_crc32")


class Cache:
    """Step 1: the cache. This one is bounded in bytes of keys and values."""

    def __init__(self, capacity_bytes):
        self._free, self._values = capacity_bytes, {}

    def get(self, key):
        """The value, or `None`."""
        return self._values.get(key)

    def set(self, key, value):
        """Writes a value."""
        self.delete(key)
        self._values[key] = value
        self._free -= len(key) + len(value)
        while self._free < 0:
            self.delete(next(iter(self._values)))

    def delete(self, key):
        """Deletes a key that may be there."""
        value = self._values.pop(key, None)
        if value is not None:
            self._free += len(key) + len(value)


class Job:
    """Step 2: what is to be done, all of it read before anything is timed."""

    def __init__(self, directory):
        lines = (directory / "job.txt").read_text(encoding="ascii").splitlines()
        self.settings = dict(line.split(" ", 1) for line in lines)
        # What it does not know it refuses: a wrong answer would be worse than none.
        for name, known in (("schema", "1"), ("threads", "1"), ("timing", "total")):
            if self.settings[name] != known:
                raise ValueError(f"{NAME} knows {name} {known} alone, not {self.settings[name]}")
        keys, pool = ((directory / name).read_bytes() for name in ("keys.bin", "pool.bin"))
        ends, sizes = numbers(directory / "keys.idx"), numbers(directory / "sizes.bin")
        self.keys = [keys[start:end] for start, end in zip(ends, ends[1:])]
        span = self.number("pool_span")
        self.values = [value_of(pool, span, key, size) for key, size in enumerate(sizes)]
        self.prepare = decoded(numbers(directory / "prepare.ops"))
        self.timed = decoded(numbers(directory / "timed.0.ops"))

    def number(self, name):
        """One of the settings."""
        return int(self.settings[name])


def numbers(path):
    """The numbers of a file."""
    found = array("I", path.read_bytes())
    if sys.byteorder != "little":
        found.byteswap()
    return found


def value_of(pool, span, key, size):
    """The value of a key, as docs/job.md defines it."""
    start = key * 61 % span
    return key.to_bytes(8, "little")[:size] + pool[start + 8:start + size]


def decoded(words):
    """Pairs of an operation and its key. A read of many is as many reads."""
    pairs = [(word >> 28, word & 0xFFFFFFF) for word in words]
    unknown = {operation for operation, _ in pairs} - {GET, SET, MANY, DELETE, FRESH, GETSET}
    if unknown:
        raise ValueError(f"{NAME} cannot do the operations {sorted(unknown)}")
    return [pair for pair in pairs if pair[0] != MANY]


class Runs:
    """Step 3: the operations, and what they found."""

    def __init__(self, job):
        self._job = job
        self._cache = Cache(job.number("capacity_bytes"))
        self.found = dict.fromkeys(COUNTS, 0) | {"errors": 0, "wrong": 0}

    def do(self, pairs):
        """Does the operations of a part."""
        found, keys, values = self.found, self._job.keys, self._job.values
        for operation, key in pairs:
            found["operations"] += operation != FRESH
            if operation == SET:
                self._cache.set(keys[key], values[key])
            elif operation == DELETE:
                self._cache.delete(keys[key])
            elif operation == FRESH:
                self._cache = Cache(self._job.number("capacity_bytes"))
            else:
                value = self._cache.get(keys[key])
                found["misses" if value is None else "hits"] += 1
                if value is not None:
                    # Reads every byte, and compares what tells one value from another.
                    found["read_crc32"] += crc32(value)
                    right = values[key]
                    found["wrong"] += len(value) != len(right) or value[:8] != right[:8]
                elif operation == GETSET:
                    self._cache.set(keys[key], values[key])

    def verify(self):
        """The keys that are there with the right value, which is compared byte for byte."""
        values = [self._cache.get(key) for key in self._job.keys]
        right = {key for key, value in enumerate(values) if value == self._job.values[key]}
        self.found["wrong"] += sum(value is not None for value in values) - len(right)
        return right


def run(directory):
    """Step 4: the conversation, and the clocks."""
    job = Job(Path(directory))
    # On a cache of its own, so that the one that is measured begins empty.
    warm_up, runs = int(job.settings.get("warm_up", "0")), Runs(job)
    if warm_up:
        for pairs in [job.prepare, *[job.timed] * warm_up]:
            runs.do(pairs)
        runs = Runs(job)
        runs.found["warm_up"] = warm_up
    runs.do(job.prepare)
    runs.found |= dict.fromkeys(COUNTS, 0)
    if job.number("verify_before"):
        runs.found["verified_before"] = len(runs.verify())
    if not hears("ready", "go"):
        return
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(job.number("executions")):
        runs.do(job.timed)
    runs.found["wall_ns"] = time.perf_counter_ns() - wall_ns
    runs.found["cpu_ns"] = time.process_time_ns() - cpu_ns
    if not hears("timed", "verify"):
        return
    if job.number("verify_after"):
        right = runs.verify()
        prepared = {key for operation, key in job.prepare if operation in (SET, GETSET)}
        runs.found |= {"verified_after": len(right), "verified_new": len(right - prepared)}
    for name, value in (runs.found | {"version": VERSION, "language": "python"}).items():
        print(name, value)
    print("end", flush=True)


def hears(said, expected):
    """Says a line; whether the answer is this one, and not the end."""
    print(said, flush=True)
    return sys.stdin.readline().strip() == expected


def main(arguments):
    """Does what the laboratory asks for."""
    try:
        if arguments == ["list-subjects"]:
            print(NAME, NAME, "python", VERSION, "a dictionary that evicts the oldest", sep="\t")
        elif len(arguments) == 3 and arguments[::2] == ["run-job", NAME]:
            run(arguments[1])
        else:
            raise ValueError(f"write list-subjects, or run-job DIRECTORY {NAME}")
    except Exception as error:  # pylint: disable=broad-exception-caught
        print("error", *f"{type(error).__name__}: {error}".split(), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
