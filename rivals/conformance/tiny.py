"""Tiny jobs for runners, and the program that starts them: the laboratory's side of docs/job.md."""

import subprocess
import sys
from array import array

GET, SET, MANY, DELETE, FRESH, GETSET, FLUSH, WAIT, CLEAR, LOAD, EXPIRE, COMPUTE = range(12)
SETTINGS = {"schema": 1, "seed": 1, "pool_span": 64, "capacity_bytes": 1 << 20,
            "capacity_entries": 1000, "threads": 1, "executions": 1, "verify_before": 1,
            "verify_after": 1, "timing": "total"}
# How long a runner may take; much longer than any does.
LIMIT_SECONDS = 60


def word(operation, operand=0):
    """An operation as the file has it."""
    return operation << 28 | operand


def words(operation, keys):
    """The same operation on each of the keys."""
    return [word(operation, key) for key in keys]


def many(keys):
    """One read of all these keys."""
    return [word(MANY, len(keys)), *keys]


def write_job(directory, sizes, prepare, *timed, **settings):
    """Writes a job whose keys have values of these sizes; `timed` are the operations of each
    process."""
    def put(name, numbers):
        numbers = array("I", numbers)
        if sys.byteorder != "little":
            numbers.byteswap()
        (directory / name).write_bytes(numbers.tobytes())
    keys = [f"key{number:05}".encode() for number in range(len(sizes))]
    (directory / "keys.bin").write_bytes(b"".join(keys))
    pool = bytes(range(256)) * (max(sizes) // 256 + 1)
    (directory / "pool.bin").write_bytes(pool[:64] + pool[:max(sizes)] + pool[:8])
    put("keys.idx", [number * 8 for number in range(len(sizes) + 1)])
    put("sizes.bin", sizes)
    put("prepare.ops", prepare)
    for process, operations in enumerate(timed):
        put(f"timed.{process}.ops", operations)
    lines = {**SETTINGS, "keys": len(sizes), **settings}
    text = "".join(f"{name} {value}\n" for name, value in lines.items())
    (directory / "job.txt").write_text(text, encoding="ascii")


def by_name(lines):
    """Results by name. A line that is none of them has no value."""
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


class Process:
    """A runner that does a job in a directory, where it also works."""

    def __init__(self, program, directory, place, subject, *arguments, verb="run-job"):
        command = [program, verb, directory, subject, *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place)

    def tell(self, line):
        """Says a line to it."""
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def line(self):
        """Its next line."""
        return self._process.stdout.readline().rstrip("\n")

    def results(self):
        """Its results by name; it has to say nothing else, and to end well."""
        output, _ = self._process.communicate(timeout=LIMIT_SECONDS)
        lines = output.splitlines()
        assert lines and lines[-1] == "end" and self._process.returncode == 0, lines
        return by_name(lines[:-1])

    def results_of_one(self):
        """Its results of one job of several, by name."""
        return by_name(iter(self.line, "end"))

    def finish(self):
        """Ends its input; it has to say nothing else, and to end well."""
        output, _ = self._process.communicate(timeout=LIMIT_SECONDS)
        assert (output, self._process.returncode) == ("", 0), (output, self._process.returncode)

    def kill(self):
        """Ends it as a crash does."""
        self._process.kill()
        self._process.communicate(timeout=LIMIT_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
