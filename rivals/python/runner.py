"""A runner of the laboratory (docs/job.md): does jobs on one cache, on one thread.

    PROGRAM list-subjects
    PROGRAM run-job DIRECTORY SUBJECT [--process NUMBER]
    PROGRAM run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...
"""

import contextlib
import gc
import os
import shutil
import sys
import time
from pathlib import Path

import torture
from job import EXPIRE, FLUSH, Job, JobError
from measure import Reader, Runs, memory, percentiles, timed
from subject import Room


def say(*words):
    """Writes a line to the laboratory."""
    print(*words, flush=True)


def is_told(line):
    """Waits for a line; whether it was the one that is due."""
    return sys.stdin.readline() == f"{line}\n"


@contextlib.contextmanager
def folder(path):
    """A new and empty working directory, for some time."""
    before = Path.cwd()
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(path, ignore_errors=True)


class Session:
    """A subject that does a job."""

    def __init__(self, subject, directory, text, process):
        options = subject.options_of(text)
        self._subject, self._process = subject, process
        job = self._job = Job(directory)
        self._is_open_timed = job.settings.get("timing") == "open"
        self._refuse_what_cannot_be_done(options)
        self._reader = Reader(job.values, job.compute_ms())
        writes = subject.writes(options) if subject.writes else None
        # Made before the memory is noted: they are the caller's objects, as values are.
        self._written = [writes(value) for value in job.values] if writes else job.values
        self._prepare = Runs(job.operations("prepare.ops"))
        self._runs = Runs(job.operations(f"timed.{process}.ops"))
        flushes, self._expires = (self._runs.has(operation) or self._prepare.has(operation)
                                  for operation in (FLUSH, EXPIRE))
        if flushes and not subject.is_kept:
            raise JobError(f"{subject.name} cannot do FLUSH: it keeps nothing on disk")
        if self._expires and not subject.has_ttl:
            raise JobError(f"{subject.name} cannot do EXPIRE: it knows no time to live")
        if subject.check:
            repetitions = job.number("executions") + (job.settings.get("timing") == "each")
            subject.check(self._prepare, self._runs, max(repetitions, self._warm_up))
        # What is to be found later stays; anything else is removed at the end.
        self._keeps = self._is_open_timed or self._processes > 1 or flushes
        self._options = options
        # Not with the opening, which may be timed.
        written = self._prepare.written() | self._runs.written()
        self._written_sizes = tuple(job.sizes[key] for key in written)
        # The keys that were there with the right value when that was last looked at.
        self._right = set()
        self._resident, _ = memory()
        self._server_cpu_ns = 0
        # Values that were not the right ones while it warmed up.
        self._wrong_before = 0

    def _refuse_what_cannot_be_done(self, options):
        job, name = self._job, self._subject.name
        threads = job.number("threads")
        self._processes = job.number("processes", 1)
        self._capacity_bytes = job.number("capacity_bytes") * int(options.get("room", 1))
        if threads != 1:
            raise JobError(f"{name} is measured on one thread, not on {threads}; ask for "
                           "--threads 1")
        if self._processes > 1 and not self._subject.is_shared:
            raise JobError(f"{name} cannot be shared by processes")
        if self._process >= self._processes:
            raise JobError(f"there is no process {self._process}; the job is for "
                           f"{self._processes}, from 0")
        if self._is_open_timed and not self._subject.is_kept:
            raise JobError(f"{name} cannot be opened again: it keeps nothing on disk")
        self._warm_up = job.number("warm_up", 0)
        if self._is_open_timed and self._warm_up:
            raise JobError("a job with the timing open has no warm_up")

    def run(self):
        """Does the job, and says what came of it."""
        results = self._open_and_read() if self._is_open_timed else self._prepare_and_perform()
        if results is None:
            return
        client, results = results
        now, peak = memory()
        server = getattr(client, "server", None)
        if server is not None and server.pid:
            # It did not run before: all of its memory is the cache's.
            now, peak = now + memory(server.pid)[0], peak + memory(server.pid)[1]
        say("timed")
        if not is_told("verify"):
            return
        if server is not None and server.pid:
            results["server_cpu_ns"] = server.cpu_ns() - self._server_cpu_ns
        results |= {"memory_bytes": max(0, now - self._resident),
                    "memory_peak_bytes": max(0, peak - self._resident)}
        if self._process == 0:
            results |= client.counts()
            if self._job.number("verify_after"):
                results["verified_after"] = self._verify(client)
                results["verified_new"] = len(self._right - self._prepare.written())
        if self._job.settings.get("timing") == "each":
            for name, times in self._runs.perform_each(client, self._reader, self._written).items():
                results |= {f"latency_{name}_{what}": number
                            for what, number in percentiles(times).items()}
        results |= {"errors": 0, "wrong": self._reader.wrong + self._wrong_before, "version": self._subject.version,
                    "language": "python"}
        self._check_server(client)
        client.close(self._keeps)
        for name, value in results.items():
            say(name, value)
        say("end")

    @staticmethod
    def _check_server(client):
        """Raises a `JobError` if the client has a server that is gone: it looks empty to some clients."""
        server = getattr(client, "server", None)
        if server is not None and not server.is_there():
            raise JobError(f"{server.name} is gone")

    def _open(self, is_new, processes=None):
        return self._subject.open(Room(self._capacity_bytes, is_new, self._options, self._job.keys,
                                       processes or self._processes, self._expires,
                                       self._written_sizes,
                                       self._job.number("capacity_entries", 0) * int(self._options.get("room", 1)),
                                       self._job.sizes))

    def _warm(self):
        """Does the timed operations untimed, on a cache of its own."""
        reader = Reader(self._job.values, self._job.compute_ms())
        with folder(f"warm-up.{self._process}"):
            client = self._open(is_new=True, processes=1)
            self._prepare.perform(client, reader, self._written)
            for _ in range(self._warm_up):
                self._runs.perform(client, reader, self._written)
            client.close(False)
        self._wrong_before = reader.wrong

    def _prepare_and_perform(self):
        job, reader, written, runs = self._job, self._reader, self._written, self._runs
        if self._warm_up:
            self._warm()
        is_first = self._process == 0
        client = self._open(is_new=is_first)
        results = {"warm_up": self._warm_up} if self._warm_up else {}
        if is_first:
            self._prepare.perform(client, reader, written)
            if job.number("verify_before"):
                results["verified_before"] = self._verify(client)
        # Not between go and timed, which the laboratory times as well.
        gc.collect()
        say("ready")
        if not is_told("go"):
            return None
        server = getattr(client, "server", None)
        if server is not None and server.pid:
            self._server_cpu_ns = server.cpu_ns()
        executions = job.number("executions")
        touched_before, checksum_before = reader.touched_bytes, reader.touched_crc32
        # Of a client that waits for no answer to a write: the time of those writes counts.
        settle = getattr(client, "settle", lambda: None)

        def work():
            misses = sum(runs.perform(client, reader, written) for _ in range(executions))
            settle()
            return misses

        try:
            misses, wall, cpu = timed(work)
        except Exception:
            self._check_server(client)
            raise
        self._check_server(client)
        results |= {
            "operations": runs.operations * executions,
            "wall_ns": wall,
            "cpu_ns": cpu,
            "hits": runs.reads * executions - misses,
            "hit_bytes": reader.touched_bytes - touched_before,
            "read_crc32": (reader.touched_crc32 - checksum_before) % (1 << 64),
            "misses": misses,
        }
        return client, results

    def _open_and_read(self):
        """The timed part begins with the opening: what an earlier process has saved is read."""
        keys, reader = self._runs.keys(), self._reader
        say("ready")
        if not is_told("go"):
            return None
        times = {}
        start = time.perf_counter_ns(), time.process_time_ns()

        def note(name):
            times[f"{name}wall_ns"] = time.perf_counter_ns() - start[0]
            times[f"{name}cpu_ns"] = time.process_time_ns() - start[1]

        client = self._open(is_new=False)
        note("open_")
        misses = 0
        for at, key in enumerate(keys):
            missed = client.get([key], reader.touch)
            misses += missed
            if not missed:
                note("first_hit_")
                misses += client.get(keys[at + 1:], reader.touch)
                break
        note("")
        return client, {"operations": len(keys), "hits": len(keys) - misses, "misses": misses,
                        "hit_bytes": reader.touched_bytes,
                        "read_crc32": reader.touched_crc32 % (1 << 64), **times}

    def _verify(self, client):
        """Reads every key and compares its value; gives how many were there and right."""
        reader, right = self._reader, set()

        def compare(key, value):
            if reader.compare(key, value):
                right.add(key)

        client.get(range(len(self._job.values)), compare)
        self._right = right
        return len(right)


def main(subjects, arguments):
    """Does what the arguments say with one of the subjects; returns the exit status."""
    try:
        match arguments:
            case ["list-subjects"]:
                for subject in subjects:
                    say("\t".join([subject.name, subject.usage, "python", subject.version,
                                   subject.about]))
            case ["run-job", directory, text, *rest] if is_process(rest):
                Session(named(subjects, text), directory, text, int(rest[1]) if rest else 0).run()
            case ["run-torture", *orders]:
                torture.run(named(subjects, "".join(orders[3:4])), orders)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except JobError as error:
        say("error", error)
        return 2
    except Exception as error:  # pylint: disable=broad-exception-caught
        say("error", " ".join(f"{type(error).__name__}: {error}".split()))
        return 2
    return 0


def named(subjects, text):
    """Returns the subject of this text, or else the first one, which refuses it."""
    name = text.partition(":")[0]
    return next((subject for subject in subjects if subject.name == name), subjects[0])


def is_process(rest):
    """Whether this is nothing, or the number of a process."""
    return not rest or len(rest) == 2 and rest[0] == "--process" and rest[1].isdecimal()
