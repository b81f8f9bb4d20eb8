"""Does tiny jobs with the runner, as a process. `make rivals-test` runs it."""

import subprocess
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

import job
from client import Client

RUN = Path(__file__).with_name("run.py")
SETTINGS = {"schema": 1, "seed": 1, "pool_span": 64, "capacity_bytes": 1_000_000,
            "capacity_entries": 1000, "threads": 1, "executions": 1, "verify_before": 1,
            "verify_after": 1, "timing": "total"}
SIZES = [100, 5, 8, 0]


def word(operation, operand):
    """An operation as the file has it."""
    return operation << 28 | operand


def write_job(directory, prepare, timed, **settings):
    """Writes a job of four keys."""
    def put(name, words):
        (directory / name).write_bytes(array("I", words).tobytes())
    (directory / "keys.bin").write_bytes(b"aabbccdd")
    (directory / "pool.bin").write_bytes(bytes(range(256))[:64 + 100 + 8])
    put("keys.idx", [0, 2, 4, 6, 8])
    put("sizes.bin", SIZES)
    put("prepare.ops", prepare)
    put("timed.0.ops", timed)
    lines = {**SETTINGS, "keys": len(SIZES), **settings}
    text = "".join(f"{name} {value}\n" for name, value in lines.items())
    (directory / "job.txt").write_text(text, encoding="ascii")


class RunTest(unittest.TestCase):
    """The protocol of docs/job.md."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = Path(holder.name)

    def run_job(self, prepare, timed, subject="relstorage", **settings):
        """The lines that the runner says."""
        write_job(self.directory, prepare, timed, **settings)
        command = [sys.executable, RUN, "run-job", self.directory, subject]
        done = subprocess.run(command, input="go\nverify\n", capture_output=True, text=True, timeout=60,
                              cwd=self.directory)
        return done.returncode, done.stdout.splitlines()

    def results(self, prepare, timed, **settings):
        """The results of a job that is done."""
        status, lines = self.run_job(prepare, timed, **settings)
        self.assertEqual((status, lines[0], lines[-1]), (0, "ready", "end"), lines)
        self.assertEqual(lines[1], "timed")
        return dict(line.split(" ", 1) for line in lines[2:-1])

    def test_every_operation_is_done_and_counted(self):
        prepare = [word(job.SET, key) for key in (0, 1, 3)]
        timed = [word(job.GET, 0), word(job.GET, 2), word(job.MANY, 3), 0, 2, 1,
                 word(job.GETSET, 2), word(job.GETSET, 2), word(job.DELETE, 0), word(job.GET, 0),
                 word(job.SET, 0)]
        found = self.results(prepare, timed)
        counts = {name: int(found[name]) for name in (
            "operations", "hits", "misses", "wrong", "errors", "verified_before",
            "verified_after", "entries", "hit_bytes")}
        self.assertEqual(counts, {"operations": 10, "hits": 4, "misses": 4, "wrong": 0,
                                  "errors": 0, "verified_before": 3, "verified_after": 4,
                                  "entries": 4, "hit_bytes": 100 + 100 + 5 + 8})
        self.assertEqual((found["version"], found["language"]), ("4.3.0", "python"))
        self.assertGreater(int(found["wall_ns"]), 0)

    def test_a_value_may_look_compressed(self):
        client = Client(1_000_000)
        values = [b".bxyz", b".zxyz"]
        client.set([0, 1], values)
        seen = []
        self.assertEqual(client.get([0, 1], lambda key, value: seen.append(value)), 0)
        self.assertEqual(seen, values)

    def test_a_new_client_is_empty(self):
        found = self.results([word(job.SET, 0)], [word(job.FRESH, 0), word(job.GET, 0)],
                             executions=3, verify_before=0)
        self.assertEqual((found["operations"], found["hits"], found["misses"]), ("3", "0", "3"))
        self.assertNotIn("verified_before", found)

    def test_single_operations_are_timed(self):
        found = self.results([], [word(job.SET, 0), word(job.GET, 0)], timing="each")
        self.assertEqual((found["latency_set_count"], found["latency_get_count"]), ("1", "1"))

    def test_the_subject_is_listed(self):
        listed = subprocess.run([sys.executable, RUN, "list-subjects"], capture_output=True,
                                text=True, timeout=60, check=True).stdout
        self.assertEqual(listed.split("\t")[:4], ["relstorage", "relstorage", "python", "4.3.0"])
        self.assertEqual(listed.count("\n"), 1)

    def test_what_cannot_be_done_is_an_error(self):
        for wrong, said in (({"threads": 2}, "one thread"), ({"schema": 2}, "schema 2"),
                            ({"subject": "other"}, "no subject 'other'")):
            status, lines = self.run_job([], [], **wrong)
            self.assertEqual((status, len(lines)), (2, 1), lines)
            self.assertTrue(lines[0].startswith("error ") and said in lines[0], lines)


    def test_what_was_saved_is_there_for_the_next_process(self):
        self.results([word(job.SET, key) for key in range(3)],
                     [word(job.FLUSH, 0), word(job.WAIT, 1)])
        gets = [word(job.GET, key) for key in (3, 0, 1, 2)]
        found = self.results([], gets, timing="open", verify_before=0)
        self.assertEqual([found[name] for name in ("hits", "misses", "wrong", "verified_after")],
                         ["3", "1", "0", "3"])
        self.assertLess(int(found["open_wall_ns"]), int(found["first_hit_wall_ns"]))
        self.assertLess(int(found["first_hit_wall_ns"]), int(found["wall_ns"]))


class ValueTest(unittest.TestCase):
    """The values of a job."""

    def test_a_value_is_its_number_and_the_pool(self):
        with tempfile.TemporaryDirectory() as holder:
            write_job(Path(holder), [], [])
            values = job.Job(holder).values
        self.assertEqual([len(value) for value in values], SIZES)
        self.assertEqual(values[0], bytes(8) + bytes(range(8, 100)))
        self.assertEqual(values[1], b"\1\0\0\0\0")
        self.assertEqual(values[2], b"\2" + bytes(7))


if __name__ == "__main__":
    unittest.main()
