"""Measures what a runner in Python adds to the cache in a read: its loop, and touching the value.

    python3 -B rivals/python/touch.py [VALUE_BYTES]

Prints nanoseconds of processor time per read, for a dict of 100,000 keys in random order. One dict
returns the value that it keeps, the other one a copy, as caches do that keep values elsewhere.
"""

import random
import statistics
import sys

from looped import LoopedClient
from measure import Reader, timed

KEYS, READS, ROUNDS = 100_000, 100_000, 9


class Copying(dict):
    """A dict that returns copies."""

    def get(self, key):
        """A copy of the value."""
        return bytes(memoryview(self[key]))


class Client(LoopedClient):
    """A dict as a cache."""

    def __init__(self, cache):
        self._cache, self._keys = cache, list(cache)


def ignore(_key, _value):
    """Does not touch."""


def measure(client, values, order):
    """Medians of a read without touching, and of what touching adds."""
    reader = Reader(values, 0)
    times = []
    for _ in range(ROUNDS):
        _, _, without = timed(lambda: client.get(order, ignore))
        _, _, touched = timed(lambda: client.get(order, reader.touch))
        times.append((without / len(order), (touched - without) / len(order)))
    assert reader.wrong == 0
    return map(statistics.median, zip(*times))


def main(value_bytes=160):
    """Measures both kinds of dict."""
    draw = random.Random(1)
    values = [key.to_bytes(8, "little") + draw.randbytes(value_bytes - 8) for key in range(KEYS)]
    order = draw.choices(range(KEYS), k=READS)
    print(f"{'':8}{'loop, get':>12}{'touching':>12}")
    for name, kind in (("kept", dict), ("copied", Copying)):
        client = Client(kind((b"%012d" % key, value) for key, value in enumerate(values)))
        without, added = measure(client, values, order)
        print(f"{name:8}{without:12.1f}{added:12.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
