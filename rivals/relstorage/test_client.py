"""Tests what is RelStorage's own; `make rivals-test` runs it."""

import sys
import tempfile
import unittest
from array import array
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

# pylint: disable=wrong-import-position
import job
from client import Client
from subject import Room


class ClientTest(unittest.TestCase):
    """The client."""

    def test_a_value_may_look_compressed(self):
        client = Client(Room(1_000_000, True, {}, [b"a", b"b"], 1))
        values = [b".bxyz", b".zxyz"]
        client.set([0, 1], values)
        seen = []
        self.assertEqual(client.get([0, 1], lambda key, value: seen.append(value)), 0)
        self.assertEqual(seen, values)


class ValueTest(unittest.TestCase):
    """The values of a job."""

    def test_a_value_is_its_number_and_the_pool(self):
        with tempfile.TemporaryDirectory() as holder:
            write_job(Path(holder))
            values = job.Job(holder).values
        self.assertEqual([len(value) for value in values], [100, 5, 8, 0])
        self.assertEqual(values[0], bytes(8) + bytes(range(8, 100)))
        self.assertEqual(values[1], b"\1\0\0\0\0")
        self.assertEqual(values[2], b"\2" + bytes(7))


def write_job(directory):
    """A job of four keys, as far as values need it."""
    (directory / "job.txt").write_text("schema 1\nkeys 4\npool_span 64\n", encoding="ascii")
    (directory / "keys.bin").write_bytes(b"abcd")
    (directory / "pool.bin").write_bytes(bytes(range(64 + 100 + 8)))
    (directory / "keys.idx").write_bytes(array("I", range(5)).tobytes())
    (directory / "sizes.bin").write_bytes(array("I", [100, 5, 8, 0]).tobytes())


if __name__ == "__main__":
    unittest.main()
