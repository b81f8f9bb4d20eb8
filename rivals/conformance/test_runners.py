"""Does tiny jobs and tortures with the runners of caches in other languages. `make rivals-test` runs
it.

A runner that is not installed is skipped, and a line says how to install it; with
HAYPILE_REQUIRE_RIVALS=1 that is a failure.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import tomllib
import unittest
import zlib
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tiny import (CLEAR, COMPUTE, DELETE, EXPIRE, FLUSH, FRESH, GET, GETSET, LIMIT_SECONDS, LOAD, SET,
                  SETTINGS, WAIT, Process, many, word, words, write_job)
from torture import NUMBERS, Tortured, settled, value_of

RIVALS = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or RIVALS.parent / "target")
SIZES = [100, 5, 8, 0]
# An entry of one second is gone then under any clock of whole seconds.
EXPIRY_MS = 2_100


def value_of_job(pool, span, key, size):
    """The value of a key, as docs/job.md defines it."""
    start = key * 61 % span
    return key.to_bytes(8, "little")[:size] + pool[start + 8:start + size]


def words_of(value):
    """The checksum `read_words` of a value."""
    whole = len(value) // 8 * 8
    words_ = [int.from_bytes(value[at:at + 8], "little") for at in range(0, whole, 8)]
    return sum(words_) + sum(value[whole:])


@dataclass(frozen=True)
class Runner:
    """What a runner has to say and can do."""

    name: str
    language: str
    is_shared: bool = True
    """Several processes can use one cache."""
    is_kept: bool = True
    """A process that comes later finds what was flushed."""
    server: str | None = None
    """The program of another process that serves it, whose time it has to say."""
    can_delete: bool = True
    """It has a call for that."""
    can_overwrite: bool = True
    """It has a call that replaces a value."""
    can_expire: bool = True
    """It knows a time to live."""
    computes_once: bool = False
    """What several processes ask for is computed once."""
    can_compute: bool = False
    """It has a call that computes what is not there, once for all processes."""
    can_evict: bool = True
    """It keeps what fits when it evicts. Otherwise it refuses a job that does not fit, and asks for room."""
    stands_kills: bool = False
    """A kill loses nothing of what was done before."""
    directory: str | None = None
    """The directory here that its program is in, and is named as, if that is not its own name."""
    levels: int = 1
    """How many caches, each of which has the capacity, may hold an entry that the others have not."""
    path: Path | None = None
    """Where it is, if it has no directory here."""
    is_small: bool = False
    """It may refuse what docs/job.md lets a runner refuse, in words of its own, and leave out what is
    optional: what a runner for a new cache begins with."""

    @property
    def program(self):
        """The program."""
        directory = self.directory or self.name
        return self.path or RIVALS / directory / directory


class Installed:
    """Skips the tests of a `runner` that is not there."""

    runner = None

    @classmethod
    def setUpClass(cls):
        if cls.runner.program.exists():
            listed = cls.list_subjects()
            if listed.returncode == 0:
                return
            why = f"{cls.runner.name}: {listed.stdout.strip() or listed.stderr.strip()}"
        else:
            why = f"{cls.runner.name}: {cls.runner.program} is not built; run: make rivals-test"
        if os.environ.get("HAYPILE_REQUIRE_RIVALS", "0") not in ("", "0"):
            raise RuntimeError(why)
        print(f"Skipped: {why}", flush=True)
        raise unittest.SkipTest(why)

    @classmethod
    def list_subjects(cls):
        """What the runner says of its subjects."""
        return subprocess.run([cls.runner.program, "list-subjects"], capture_output=True,
                              text=True, timeout=LIMIT_SECONDS, check=False)


class Jobs(Installed):
    """The protocol of docs/job.md, as `runner` speaks it."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.job, self.place = Path(holder.name, "job"), Path(holder.name, "place")
        self.job.mkdir()
        self.place.mkdir()

    def start(self, *arguments, subject=None):
        """A process that does the job that was written."""
        subject = subject or self.runner.name
        return Process(self.runner.program, self.job, self.place, subject, *arguments)

    def results(self, prepare, timed, sizes=(), subject=None, **settings):
        """The results of a job that one process does."""
        write_job(self.job, sizes or SIZES, prepare, timed, **settings)
        is_more = (settings.get("schema", 1) > 1 or settings.get("timing", "total") != "total"
                   or ":" in (subject or "") or any(it >> 28 in (FLUSH, WAIT) for it in timed))
        found, = self.results_of(1, subject=subject, may_refuse=self.runner.is_small and is_more)
        return found

    def results_of(self, processes, subject=None, may_refuse=False):
        """The results of each process of the job that was written."""
        with contextlib.ExitStack() as running:
            started = []
            for number in range(processes):
                arguments = ["--process", str(number)] if processes > 1 else []
                started.append(running.enter_context(self.start(*arguments, subject=subject)))
                line = started[-1].line()
                if may_refuse and line.startswith("error "):
                    self.skipTest(f"it refuses: {line[6:]}")
                self.assertEqual(line, "ready")
            for process in started:
                process.tell("go")
            self.assertEqual([process.line() for process in started], ["timed"] * processes)
            results = []
            for process in started:
                process.tell("verify")
                results.append(process.results())
            return results

    def numbers(self, results, *names):
        """Some of the results."""
        optional = {"hit_bytes"} if self.runner.is_small else set()
        return {name: int(results[name]) for name in names if name in results or name not in optional}

    def assert_numbers(self, results, expected):
        """Compares results; what is optional may be left out."""
        found = self.numbers(results, *expected)
        self.assertEqual(found, {name: expected[name] for name in found})

    def left(self):
        """What lies where the runner has worked."""
        return sorted(path.name for path in self.place.iterdir())

    def test_every_operation_is_done_and_counted(self):
        prepare = words(SET, (0, 1, 3))
        timed = [*words(GET, (0, 2)), *many([0, 2, 1]), *words(GETSET, (2, 2))]
        timed += words(SET, (0,) if self.runner.can_overwrite else ())
        found = self.results(prepare, timed)
        expected = {"operations": 7 + self.runner.can_overwrite, "hits": 4, "misses": 3, "wrong": 0, "errors": 0,
                    "verified_before": 3, "verified_after": 4, "hit_bytes": 100 + 100 + 5 + 8}
        self.assert_numbers(found, expected)
        self.assertEqual(int(found.get("entries", 4)), 4)
        self.assertEqual(found["language"], self.runner.language)
        self.assertTrue(all(int(found[name]) > 0 for name in ("wall_ns", "cpu_ns")), found)
        self.assertEqual("server_cpu_ns" in found, self.runner.server is not None)
        self.assertEqual(self.left(), [])

    def test_what_is_read_has_its_checksum(self):
        sizes = [100, 5, 8, 0, 23]
        timed = [*words(GET, (0, 1, 4, 0)), *many([2, 4, 3]), word(GETSET, 1)]
        found = self.results(words(SET, range(5)), timed, sizes=sizes, executions=2)
        self.assertEqual(self.numbers(found, "hits", "verified_new"), {"hits": 16, "verified_new": 0})
        pool, span = (self.job / "pool.bin").read_bytes(), SETTINGS["pool_span"]
        read = [value_of_job(pool, span, key, sizes[key]) for key in (0, 1, 4, 0, 2, 4, 3, 1)] * 2
        sums = {"read_words": sum(map(words_of, read)), "read_crc32": sum(map(zlib.crc32, read))}
        given = {name: int(found[name]) for name in sums if name in found}
        self.assertTrue(given)
        self.assertEqual(given, {name: sums[name] % (1 << 64) for name in given})

    def test_what_the_timed_part_alone_writes_is_counted(self):
        written = (1, 2) if self.runner.can_overwrite else (2,)
        found = self.results(words(SET, (0, 1)), [*words(SET, written), *words(GETSET, (0, 3))])
        self.assertEqual(self.numbers(found, "verified_after", "verified_new"),
                         {"verified_after": 4, "verified_new": 2})

    def test_what_is_deleted_is_gone(self):
        if not self.runner.can_delete:
            self.skipTest("it has no call for that")
        found = self.results(words(SET, (0, 1)), [*words(DELETE, (0, 2)), *words(GET, (0, 1))])
        expected = {"operations": 4, "hits": 1, "misses": 1, "errors": 0, "verified_after": 1}
        self.assert_numbers(found, expected)

    def test_clear_removes_all_and_load_writes_nothing(self):
        found = self.results(words(SET, (0, 1, 3)), [*words(LOAD, (0, 2)), word(CLEAR), word(LOAD, 0),
                                                     word(GET, 2), word(SET, 2), word(GET, 2)],
                             schema=3, timing="each")
        expected = {"operations": 6, "hits": 2, "misses": 3, "hit_bytes": 100 + 8, "errors": 0,
                    "wrong": 0, "verified_before": 3, "verified_after": 1}
        self.assert_numbers(found, expected)
        counts = [found[f"latency_{name}_count"] for name in ("load", "clear", "get", "set")]
        self.assertEqual(counts, ["3", "1", "2", "1"])

    def test_what_is_computed_is_there_from_then_on(self):
        found = self.results([word(SET, 0)], words(COMPUTE, (0, 1, 1, 2)), schema=3, executions=2,
                             compute_ms=2)
        expected = {"operations": 8, "hits": 6, "misses": 2, "hit_bytes": 2 * 100 + 3 * 5 + 8,
                    "errors": 0, "wrong": 0, "verified_before": 1, "verified_after": 3}
        self.assert_numbers(found, expected)
        self.assertGreaterEqual(int(found["wall_ns"]), 2 * 2_000_000)

    def test_what_has_expired_is_gone_and_computed_anew(self):
        keys, processes = 10, 2 if self.runner.is_shared else 1
        prepare = [word(SET, keys)]
        if self.runner.can_expire:
            prepare += [*words(EXPIRE, range(keys)), word(WAIT, EXPIRY_MS)]
        write_job(self.job, [50] * (keys + 1), prepare, *[words(COMPUTE, range(keys))] * processes,
                  schema=3, processes=processes, compute_ms=5)
        results = self.results_of(processes, may_refuse=self.runner.is_small)
        for found in results:
            expected = {"operations": keys, "errors": 0, "wrong": 0}
            self.assert_numbers(found, expected)
            self.assertEqual(int(found["hits"]) + int(found["misses"]), keys)
        expected = {"verified_before": 1, "verified_after": keys + 1}
        self.assertEqual(self.numbers(results[0], *expected), expected)
        computed = sum(int(found["misses"]) for found in results)
        most = keys if self.runner.computes_once else processes * keys
        self.assertTrue(keys <= computed <= most, f"{computed} were computed of {keys}")

    def test_executions_are_one_measurement(self):
        found = self.results(words(SET, (0, 1)), [*words(GET, (0, 2)), *many([1, 2])],
                             executions=3, verify_before=0, verify_after=0)
        expected = {"operations": 12, "hits": 6, "misses": 6, "hit_bytes": 3 * 105}
        self.assert_numbers(found, expected)
        self.assertFalse({"verified_before", "verified_after"} & set(found))

    def test_a_warm_up_leaves_a_new_cache_and_no_files(self):
        write, misses = (SET, 1) if self.runner.can_overwrite else (GETSET, 3)
        timed = [*words(GET, (0, 1)), *words(write, (1, 2)), word(GET, 2)]
        found = self.results([word(SET, 0)], timed, warm_up=2)
        expected = {"operations": 5, "hits": 2, "misses": misses, "hit_bytes": 108, "errors": 0, "wrong": 0,
                    "verified_before": 1, "verified_after": 3, "verified_new": 2, "warm_up": 2}
        self.assert_numbers(found, expected)
        self.assertEqual(list(self.place.glob("warm-up*")), [])
        self.assertNotIn("warm_up", self.results([], [word(GET, 0)]))

    def test_processes_warm_up_each_for_itself(self):
        if not self.runner.is_shared:
            self.skipTest("processes do not share it")
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 1), word(SET, 1)],
                  [word(GET, 2), word(SET, 2)], schema=2, processes=2, warm_up=3)
        for found in self.results_of(2, may_refuse=self.runner.is_small):
            self.assert_numbers(found, {"operations": 2, "hits": 0, "misses": 1, "warm_up": 3})
        self.assertEqual(list(self.place.glob("warm-up*")), [])

    def test_fresh_is_empty_and_wait_waits(self):
        found = self.results([word(SET, 0)],
                             [word(FRESH), word(GET, 0), word(SET, 0), word(GET, 0), word(WAIT, 2)],
                             executions=2)
        expected = {"operations": 6, "hits": 2, "misses": 2, "verified_before": 1,
                    "verified_after": 1}
        self.assert_numbers(found, expected)
        self.assertGreaterEqual(int(found["wall_ns"]), 4_000_000)

    def test_single_operations_are_timed(self):
        timed = [word(SET, 0), *words(GET, (0, 1, 0)), *many([0, 1]), word(FRESH)]
        found = self.results([], timed, timing="each", executions=2)
        counts = [found[f"latency_{name}_count"] for name in ("set", "get", "many", "fresh")]
        self.assertEqual(counts, ["1", "3", "1", "1"])
        self.assertEqual(self.numbers(found, "operations", "hits"), {"operations": 12, "hits": 6})
        sizes = [int(found[f"latency_get_{what}"]) for what in ("p50", "p90", "p99", "p999", "max")]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(float(found["latency_get_mean"]), 0)

    def test_it_evicts_and_what_is_left_is_right(self):
        keys, size = 2000, 1000
        if not self.runner.can_evict:
            write_job(self.job, [size] * keys, [], words(SET, range(keys)))
            with self.start() as process:
                self.assertRegex(process.line(), "^error .* ask for .*:room=N$")
                return
        found = self.results([], words(SET, range(keys)), sizes=[size] * keys)
        kept = int(found["verified_after"])
        self.assertEqual(self.numbers(found, "errors", "wrong"), {"errors": 0, "wrong": 0})
        # A quarter is a cache that throws away too much; a quarter more is one without a bound.
        fit = SETTINGS["capacity_bytes"] // size
        most = fit * 5 // 4 * self.runner.levels
        self.assertTrue(fit // 4 < kept < most, f"{kept} of {fit} that fit")

    def test_room_is_a_multiple_of_the_capacity(self):
        keys, size = 1000, 1000
        found = self.results([], words(SET, range(keys)), sizes=[size] * keys,
                             subject=f"{self.runner.name}:room=4")
        self.assertEqual(int(found["verified_after"]), keys)

    def test_the_subject_is_listed(self):
        listed = self.list_subjects().stdout
        subjects = [line.split("\t") for line in listed.splitlines()]
        self.assertTrue(all(len(fields) == 5 for fields in subjects), listed)
        fields, = (fields for fields in subjects if fields[0] == self.runner.name)
        self.assertEqual(fields[2], self.runner.language)
        self.assertRegex(fields[1], rf"^{self.runner.name}\b")
        self.assertRegex(fields[3], r"^\d+\.\d+")

    def test_the_manifest_says_the_same(self):
        path = self.runner.program.with_name("rival.toml")
        if self.runner.path and not path.exists():
            self.skipTest("it has no directory of its own")
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        listed = [line.split("\t")[0] for line in self.list_subjects().stdout.splitlines()]
        self.assertEqual((manifest["subjects"], manifest["language"]), (listed, self.runner.language))
        self.assertEqual(RIVALS.parent / manifest["program"], self.runner.program)

    def test_what_nobody_can_do_is_an_error(self):
        for settings in ({"threads": 2, "subject": "other"}, {"schema": 4}, {"timed": [word(12)]}):
            settings = dict(settings)
            subject = settings.pop("subject", None)
            write_job(self.job, SIZES, [], settings.pop("timed", []), **settings)
            with self.subTest(**settings), self.start(subject=subject) as process:
                self.assertRegex(process.line(), "^error .")
                self.assertEqual(process.line(), "")

    def test_what_cannot_be_done_is_an_error(self):
        if self.runner.is_small:
            self.skipTest("it has words of its own")
        refused = [({"threads": 2}, "one thread"), ({"schema": 4}, "schema 4"),
                   ({"subject": "other"}, "unknown subject 'other'"),
                   ({"subject": f"{self.runner.name}:colour=red"}, "written as"),
                   ({"subject": f"{self.runner.name}:room=0"}, "written as"),
                   ({"arguments": ["--process", "1"]}, "no process 1"), ({"keys": 5}, "5 keys"),
                   ({"timed": [word(12)]}, "unknown operation 12"), ({"timed": [word(GET, 4)]}, ""),
                   ({"timed": [word(COMPUTE, 4)]}, ""), ({"compute_ms": 60_001}, "compute_ms"),
                   ({"timed": [word(2, 2), 0]}, "")]
        if not self.runner.is_shared:
            said = f"error {self.runner.name} cannot be shared by processes"
            refused.append(({"schema": 2, "processes": 2}, said))
        if not self.runner.can_delete:
            refused.append(({"timed": [word(DELETE, 0)]}, "DELETE"))
        if not self.runner.can_overwrite:
            refused.append(({"timed": words(SET, (0, 0))}, "SET"))
            refused.append(({"timed": [word(SET, 0)], "executions": 2}, "SET"))
        if not self.runner.can_expire:
            refused.append(({"timed": [word(EXPIRE, 0)]}, "EXPIRE"))
        if not self.runner.is_kept:
            refused.append(({"timed": [word(FLUSH)]}, "FLUSH"))
            refused.append(({"timing": "open"}, "open"))
        for settings, said in refused:
            settings = dict(settings)
            subject, arguments = settings.pop("subject", None), settings.pop("arguments", [])
            write_job(self.job, SIZES, [], settings.pop("timed", []), **settings)
            with self.subTest(said=said), self.start(*arguments, subject=subject) as process:
                line = process.line()
                self.assertTrue(line.startswith("error ") and said in line, line)
                self.assertEqual(process.line(), "")

    def test_it_ends_when_nobody_listens_any_more(self):
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 0)])
        with self.start() as process:
            self.assertEqual(process.line(), "ready")
            # Closes its standard input, and waits.
            self.assertRaises(AssertionError, process.results)

    def test_what_was_flushed_is_there_for_the_next_process(self):
        if not self.runner.is_kept:
            self.skipTest("nothing is kept")
        self.results(words(SET, range(3)), [word(FLUSH)])
        found = self.results([], words(GET, (3, 0, 1, 2)), timing="open", verify_before=0)
        expected = {"operations": 4, "hits": 3, "misses": 1, "wrong": 0, "verified_after": 3}
        self.assert_numbers(found, expected)
        times = [int(found[f"{name}wall_ns"]) for name in ("open_", "first_hit_", "")]
        self.assertEqual(times, sorted(times))
        found = self.results([], [word(GET, 0)])
        self.assertEqual((found["hits"], found["verified_after"]), ("0", "0"), "not new")

    def test_two_processes_use_one_cache(self):
        if not self.runner.is_shared:
            self.skipTest("not shared")
        timed = [[*words(GET, range(10)), *words(SET, range(10 * process, 10 * process + 10))]
                 for process in (1, 2)]
        write_job(self.job, [50] * 40, words(SET, range(10)), *timed, schema=2, processes=2,
                  timing="each")
        first, second = self.results_of(2)
        for found in (first, second):
            expected = {"operations": 20, "hits": 10, "misses": 0, "wrong": 0, "errors": 0}
            self.assert_numbers(found, expected)
            self.assertEqual(found["latency_get_count"], "10")
        expected = {"verified_before": 10, "verified_after": 30}
        self.assertEqual(self.numbers(first, *expected), expected)
        self.assertNotIn("verified_after", second)

    def test_nothing_runs_on_when_it_is_killed(self):
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 0)])
        with self.start() as process:
            self.assertEqual(process.line(), "ready")
            helpers = [os.pidfd_open(pid) for pid in self.processes_here()]
            for helper in helpers:
                self.addCleanup(os.close, helper)
            process.kill()
            for helper in helpers:
                # Readable when the process has ended.
                ended, _, _ = select.select([helper], [], [], LIMIT_SECONDS)
                self.assertEqual(ended, [helper], "a process is left")

    def test_a_server_that_is_gone_is_an_error(self):
        if self.runner.server is None:
            self.skipTest("it has none")
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 0)])
        with self.start() as process:
            self.assertEqual(process.line(), "ready")
            self.kill_server()
            process.tell("go")
            lines = [process.line()]
            if lines == ["timed"]:
                process.tell("verify")
                lines.append(process.line())
            self.assertRegex(lines[-1], "^error .*(gone|ended)")

    def test_a_server_that_ends_while_others_are_verified_is_an_error(self):
        if self.runner.server is None:
            self.skipTest("it has none")
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 0)], [word(GET, 0)], schema=2,
                  processes=2)
        with self.start("--process", "0") as first:
            self.assertEqual(first.line(), "ready")
            with self.start("--process", "1") as second:
                self.assertEqual(second.line(), "ready")
                for process in (first, second):
                    process.tell("go")
                    self.assertEqual(process.line(), "timed")
                first.tell("verify")
                self.assertEqual(first.results()["verified_after"], "1")
                self.kill_server()
                second.tell("verify")
                self.assertRegex(second.line(), "^error .*(gone|ended)")

    def test_a_server_that_does_not_start_is_an_error(self):
        if self.runner.server is None:
            self.skipTest("it has none")
        write_job(self.job, SIZES, [word(SET, 0)], [word(GET, 0)])
        with self.server_that("echo it is out of order >&2; exit 1"), self.start() as process:
            self.assertRegex(process.line(), "^error .*cannot be started: it is out of order")
            self.assertEqual(process.line(), "")

    def test_what_a_server_refuses_is_an_error(self):
        if self.runner.server is None:
            self.skipTest("it has none")
        real = shutil.which(self.runner.server)
        with self.server_that(f'exec {real} "$@" -I 512k'):
            found = self.results([], words(SET, (0, 1)), sizes=[5, 600_000],
                                 capacity_bytes=4 << 20)
        self.assertEqual(self.numbers(found, "errors", "wrong"), {"errors": 1, "wrong": 0})
        self.assertIn("refused", found["first_error"])

    def server_that(self, does):
        """While this is entered, the server does this; but it says a version as it should."""
        program = self.job / self.runner.server
        program.write_text(f'#!/bin/sh\ncase $1 in -V | --version) echo version v=1.0 && exit ;; esac\n{does}\n')
        program.chmod(0o755)
        return mock.patch.dict(os.environ, PATH=f"{self.job}:{os.environ['PATH']}")

    def kill_server(self):
        """Kills the server of the runner, and waits until it has ended."""
        server, = (pid for pid in self.processes_here()
                   if Path(f"/proc/{pid}/exe").samefile(shutil.which(self.runner.server)))
        with open(os.pidfd_open(server), "rb") as ended:
            os.kill(server, signal.SIGKILL)
            select.select([ended], [], [], LIMIT_SECONDS)

    def processes_here(self):
        """The processes that work in the place of the runner."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").samefile(self.place):
                    yield int(process.name)
            except OSError:
                # It has ended, or is none of ours.
                continue


class Tortures(Installed):
    """The protocol of docs/torture.md, as `runner` speaks it."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.place = Path(holder.name)

    def start(self, role, subject=None, **settings):
        """A process that has opened the cache, which has room for all that is written."""
        subject = subject or f"{self.runner.name}:room=4"
        process = Tortured(self.runner.program, role, self.place, subject, **settings)
        self.addCleanup(process.close)
        self.assertRegex(process.line(), "^opened [0-9]+$")
        return process

    def written(self, operations=300, **settings):
        """Returns what a writer acknowledged that did at least that many operations and ended cleanly."""
        process = self.start("writer", **settings)
        self.assertEqual(process.line(), "ready")
        lines = [process.line() for _ in range(operations)]
        known, hand = settled(lines + process.end())
        self.assertFalse(hand, "it ended within an operation")
        return known

    def audited(self, keys=200, **settings):
        """What a new writer finds of all its keys, before it writes."""
        process = self.start("writer", audit=keys, **settings)
        *said, ready = process.lines_until("ready")
        self.assertEqual(ready, "ready")
        process.end()
        return said

    def found(self, known):
        """How an audit says what is known."""
        return [f"found {key} {known[key]}" for key in sorted(known) if known[key]]

    def round(self, reads=300, **settings):
        """What a reader says of one round: all but its last line, and the numbers of that."""
        process = self.start("reader", **settings)
        self.assertEqual(process.line(), "ready")
        process.tell(f"read {reads}")
        *said, last = process.lines_until("round ")
        self.assertEqual(process.end(), [])
        return said, [int(number) for number in last.split()[1:]]

    def test_a_successor_finds_what_was_acknowledged(self):
        known = self.written()
        self.assertGreater(len(known), 20)
        self.assertTrue(all(key % 2 == 1 and key < NUMBERS["keys"] for key in known), known)
        if self.runner.can_delete:
            self.assertIn(None, known.values(), "nothing was deleted")
        self.assertEqual(self.audited(), self.found(known))
        # What the other writer has is not there.
        self.assertEqual(self.audited(number=0), [])

    def test_sequence_numbers_go_on_from_the_first(self):
        process = self.start("writer", first=1000)
        self.assertEqual(process.line(), "ready")
        lines = [process.line() for _ in range(50)] + process.end()
        sequences = [int(line.split()[2]) for line in lines if line.startswith("set ")]
        self.assertEqual(sequences, list(range(1000, 1000 + len(sequences))))

    def test_what_is_written_is_what_the_document_says(self):
        sizes = {key: len(value_of(key, sequence)) for key, sequence in self.written().items()
                 if sequence}
        self.assertGreater(len(set(sizes.values())), 10)
        content = b"".join(path.read_bytes() for path in self.files())
        for line in self.audited():
            key, sequence = (int(number) for number in line.split()[1:])
            self.assertIn(value_of(key, sequence), content, line)

    def test_a_killed_writer_loses_nothing_that_it_acknowledged(self):
        if not self.runner.stands_kills:
            self.skipTest("it may lose something, and be locked for some time")
        process = self.start("writer")
        self.assertEqual(process.line(), "ready")
        lines = [process.line() for _ in range(200)]
        known, hand = settled(lines + process.kill())
        said = self.audited()
        if hand:
            # It was done or not.
            self.assertLessEqual(len([line for line in said if line.startswith(f"found {hand} ")]),
                                 1)
            said = [line for line in said if not line.startswith(f"found {hand} ")]
            known.pop(hand, None)
        self.assertEqual(said, self.found(known))

    def test_a_reader_reads_a_round(self):
        self.assertEqual(self.round()[1][:4], [300, 0, 0, 0])
        self.written()
        said, (reads, hits, busy, failed, longest) = self.round(readonly=1)
        self.assertEqual((said, reads, busy, failed), ([], 300, 0, 0))
        self.assertTrue(0 < hits < 300, hits)
        self.assertGreater(longest, 0)
        # It reads the same keys again.
        self.assertEqual(self.round()[1][1], hits)

    def test_a_value_that_was_changed_is_wrong(self):
        known = self.written()
        # The key that is drawn most often, for the reader has to meet it.
        key = min(key for key, sequence in known.items()
                  if sequence and len(value_of(key, sequence)) > 40)
        value = value_of(key, known[key])
        for path in self.files():
            content = path.read_bytes()
            path.write_bytes(content.replace(value[:40], value[:39] + bytes([value[39] ^ 1])))
        said, numbers = self.round()
        wrong, = set(said)
        self.assertRegex(wrong, f"^wrong {key} {known[key]} is not its own from byte 3[29] on$")
        self.assertEqual(numbers[3], 0)
        self.assertEqual([line for line in self.audited() if not line.startswith("found ")],
                         [wrong])

    def test_older_values_than_were_read_are_wrong(self):
        self.written(first=10_000, fetch=0, delete=0)
        reader = self.start("reader")
        self.assertEqual(reader.line(), "ready")
        reader.tell("read 300")
        self.assertEqual(len(reader.lines_until("round ")), 1)
        # As if what was read there had been written later.
        self.written(first=1, fetch=0, delete=0)
        reader.tell("read 300")
        *said, _ = reader.lines_until("round ")
        self.assertGreater(len(said), 0)
        for line in said:
            self.assertRegex(line, "^wrong [0-9]+ [0-9]+ after 1[0-9]{4} was read")

    def test_a_computer_computes_or_says_that_it_cannot(self):
        first = self.start("computer", key=7, first=5)
        self.assertEqual([first.line(), first.line()], ["ready", "asking"])
        if not self.runner.can_compute:
            self.assertEqual(first.end(), ["unsupported"])
            return
        self.assertEqual(first.line(), "computing")
        other = self.start("computer", key=7, first=6)
        self.assertEqual([other.line(), other.line()], ["ready", "asking"])
        first.kill()
        self.assertEqual(other.line(), "computing")
        other.tell("go")
        self.assertRegex(other.line(), "^value 6 [0-9]+$")
        self.assertEqual(other.end(), [])
        last = self.start("computer", key=7, first=8)
        self.assertEqual([last.line(), last.line()], ["ready", "asking"])
        self.assertRegex(last.line(), "^value 6 [0-9]+$")

    def test_who_computes_leaves_no_value_when_nobody_is_there(self):
        if not self.runner.can_compute:
            self.skipTest("it has no call for that")
        first = self.start("computer", key=7, first=5)
        self.assertEqual(first.lines_until("computing")[-1], "computing")
        self.assertRaises(AssertionError, first.end)
        other = self.start("computer", key=7, first=6)
        self.assertEqual(other.lines_until("computing")[-1], "computing")

    def told(self, client, order, *also):
        """What a client answers to an order, without the time; `also` is what it asks for in between."""
        client.tell(order)
        for line in also:
            self.assertEqual(client.line(), "computing", order)
            client.tell(line)
        word, *numbers = client.line().split()
        return " ".join([word, *numbers[:-1]])

    def test_a_client_does_what_it_is_told(self):
        client = self.start("client")
        first = client.line()
        if not self.runner.can_delete:
            self.assertEqual(first, "unsupported")
            return
        self.assertEqual(first, "ready")
        for answer, order, *also in [
                ("miss", "get 3"), ("stored", "fill 3", "go 7"), ("hit 7", "get 3"), ("hit 7", "fill 3"),
                ("done", "delete 3"), ("done", "delete 3"), ("miss", "get 3"), ("stored", "fill 3", "go 9")]:
            self.assertEqual(self.told(client, order, *also), answer, order)
        other = self.start("client")
        self.assertEqual(other.line(), "ready")
        self.assertEqual(self.told(other, "get 3"), "hit 9")
        # Key 3 is not in the group 0; it is in that of all, which few have.
        for group, hits in ((0, ["hit 9"]), (3, ["miss"]), (6, ["miss"])):
            self.told(other, "fill 3", *([] if self.told(other, "get 3") == "hit 9" else ["go 9"]))
            done = self.told(client, f"invalidate {group}")
            self.assertIn(self.told(other, "get 3"), hits if done == "done" else ["hit 9"], group)
        self.told(other, "fill 3", *([] if self.told(other, "get 3") == "hit 9" else ["go 9"]))
        if self.told(client, "clear") == "done":
            self.assertEqual(self.told(other, "get 3"), "miss")
        if self.runner.can_compute:
            self.told(client, "delete 4")
            self.assertEqual(self.told(client, "compute 4", "go 11"), "value 11")
            self.assertEqual(self.told(other, "compute 4"), "value 11")
        self.assertEqual((client.end(), other.end()), ([], []))

    def test_a_client_leaves_no_value_when_nobody_is_there(self):
        if not self.runner.can_delete:
            self.skipTest("it cannot remove")
        client = self.start("client")
        self.assertEqual(client.line(), "ready")
        client.tell("fill 5")
        self.assertEqual(client.line(), "computing")
        self.assertRaises(AssertionError, client.end)
        other = self.start("client")
        self.assertEqual(other.line(), "ready")
        self.assertEqual(self.told(other, "get 5"), "miss")

    def test_orders_that_are_none_are_errors(self):
        for role, subject, numbers in [("cook", self.runner.name, {}),
                                       ("writer", "other", {}),
                                       ("writer", self.runner.name, {"keys": "many"})]:
            process = Tortured(self.runner.program, role, self.place, subject, **numbers)
            self.addCleanup(process.close)
            with self.subTest(role=role, subject=subject):
                lines, status = process.refusal()
                self.assertTrue(status != 0 or lines[-1].startswith("error "), lines)
                self.assertFalse([line for line in lines if line.startswith("opened")])

    def files(self):
        """All files of the cache."""
        return [path for path in self.place.rglob("*") if path.is_file()]


class RelStorageTest(Jobs, unittest.TestCase):
    """RelStorage's local client."""

    runner = Runner("relstorage", "python", is_shared=False, can_expire=False)


class DiskCacheTest(Jobs, unittest.TestCase):
    """diskcache."""

    runner = Runner("diskcache", "python", stands_kills=True, computes_once=True)


class DiskCacheTortureTest(Tortures, unittest.TestCase):
    """diskcache."""

    runner = DiskCacheTest.runner


class DiskCacheCommunityTest(Jobs, unittest.TestCase):
    """diskcache-community, the fork of diskcache."""

    runner = Runner("diskcache-community", "python", stands_kills=True, computes_once=True)


class DiskCacheCommunityTortureTest(Tortures, unittest.TestCase):
    """diskcache-community, the fork of diskcache."""

    runner = DiskCacheCommunityTest.runner


class DiskCacheRsTest(Jobs, unittest.TestCase):
    """diskcache_rs, which has the interface of diskcache."""

    runner = Runner("diskcache_rs", "python", can_expire=False, can_evict=False, stands_kills=True)


class DiskCacheRsTortureTest(Tortures, unittest.TestCase):
    """diskcache_rs, which has the interface of diskcache."""

    runner = DiskCacheRsTest.runner


class DogpileTest(Jobs, unittest.TestCase):
    """dogpile.cache."""

    runner = Runner("dogpile", "python", can_expire=False, can_evict=False, computes_once=True, can_compute=True)


class DogpileTortureTest(Tortures, unittest.TestCase):
    """dogpile.cache."""

    runner = DogpileTest.runner


class CachetoolsTest(Jobs, unittest.TestCase):
    """cachetools."""

    runner = Runner("cachetools", "python", is_shared=False, is_kept=False)


class DictTest(Jobs, unittest.TestCase):
    """A dict of Python."""

    runner = Runner("dict", "python", directory="stdlib", is_shared=False, is_kept=False, can_expire=False,
                    can_evict=False)


class LruCacheTest(Jobs, unittest.TestCase):
    """functools.lru_cache."""

    runner = Runner("lru_cache", "python", directory="stdlib", is_shared=False, is_kept=False, can_delete=False,
                    can_overwrite=False, can_expire=False)


class PymemcacheTest(Jobs, unittest.TestCase):
    """memcached by pymemcache."""

    runner = Runner("pymemcache", "python", is_kept=False, server="memcached")

    def test_what_a_server_refuses_is_an_error(self):
        # By default nobody waits for the answer: the value is missing.
        real = shutil.which(self.runner.server)
        for subject, said in (("pymemcache", "timed"), ("pymemcache:noreply=no", "error .*object too large")):
            write_job(self.job, [5, 600_000], [], words(SET, (0, 1)), capacity_bytes=4 << 20)
            with (self.subTest(subject=subject), self.server_that(f'exec {real} "$@" -I 512k'),
                  self.start(subject=subject) as process):
                self.assertEqual(process.line(), "ready")
                process.tell("go")
                self.assertRegex(process.line(), f"^{said}")
                if said == "timed":
                    process.tell("verify")
                    self.assertEqual(process.results()["verified_after"], "1")


class RedisPyTest(Jobs, unittest.TestCase):
    """Redis by redis-py."""

    runner = Runner("redis-py", "python", is_kept=False, server="redis-server", computes_once=True)

    def test_what_a_server_refuses_is_an_error(self):
        real = shutil.which(self.runner.server)
        write_job(self.job, [5, 600_000], [], words(SET, (0, 1)), capacity_bytes=4 << 20)
        with (self.server_that(f'exec {real} "$@" --rename-command SET ""'),
              self.start() as process):
            self.assertEqual(process.line(), "ready")
            process.tell("go")
            self.assertRegex(process.line(), "^error ResponseError: ")


class HaypilePythonTest(Jobs, unittest.TestCase):
    """Our own package, with a file."""

    runner = Runner("haypile-python", "python", computes_once=True)

    def test_objects_have_the_bytes_of_values_in_them(self):
        prepare = words(SET, (0, 1, 3))
        timed = [*words(GET, (0, 2)), *many([0, 2, 1]), *words(GETSET, (2, 2)), word(SET, 0), word(DELETE, 3),
                 *words(LOAD, (3, 0)), *words(COMPUTE, (3, 3)), word(EXPIRE, 1)]
        expected = {"operations": 14, "hits": 6, "misses": 5, "wrong": 0, "errors": 0, "verified_before": 3,
                    "verified_after": 4, "hit_bytes": 100 + 100 + 5 + 8 + 100}
        stores = ("store=file", "store=memory")
        for options in ("objects=json", "objects=pickle", "objects=msgpack", "many=get", "many=get,objects=json"):
            for store in stores:
                with self.subTest(options=options, store=store):
                    found = self.results(prepare, timed, subject=f"haypile-python:{store},{options}", schema=3)
                    self.assert_numbers(found, expected)
                    self.assertEqual(self.left(), [])
        write_job(self.job, SIZES, [], [])
        with self.start(subject="haypile-python:objects=marshal") as process:
            self.assertEqual(process.line(), "error unknown objects 'marshal' (known: json, pickle, msgpack)")

    def test_memory_does_the_same_and_keeps_nothing(self):
        subject = "haypile-python:store=memory"
        expected = {"hits": 4, "errors": 0, "wrong": 0, "verified_before": 4, "verified_after": 3}
        for named in (subject, f"{subject},policy=slru"):
            found = self.results(words(SET, range(4)), [*words(GET, range(4)), word(DELETE, 1)],
                                 subject=named)
            self.assert_numbers(found, expected)
            self.assertEqual(self.left(), [])
        refused = [(subject, {"schema": 2, "processes": 2}, [], "cannot be shared by processes"),
                   (subject, {"timing": "open"}, [word(GET, 0)], "nothing that could be opened"),
                   (subject, {}, [word(FLUSH)], "Unsupported"),
                   (f"{subject},policy=none", {}, [], "none"),
                   ("haypile-python:policy=lru", {}, [], "with store=memory only")]
        for named, settings, timed, said in refused:
            write_job(self.job, SIZES, [], timed, **settings)
            with self.subTest(said=said), self.start(subject=named) as process:
                line = process.line()
                if line == "ready":
                    process.tell("go")
                    line = process.line()
                self.assertTrue(line.startswith("error ") and said in line, line)


class FastMmapTest(Jobs, unittest.TestCase):
    """Cache::FastMmap."""

    runner = Runner("fastmmap", "perl", computes_once=True, can_compute=True)


class CacheHaypileTest(Jobs, unittest.TestCase):
    """Our own file, from Perl."""

    runner = Runner("cache-haypile", "perl", directory="haypile-perl", computes_once=True, can_compute=True,
                    stands_kills=True)


class CacheHaypileTortureTest(Tortures, unittest.TestCase):
    """Our own file, from Perl."""

    runner = CacheHaypileTest.runner


class ChiHaypileTest(Jobs, unittest.TestCase):
    """CHI over our own file."""

    runner = Runner("chi-haypile", "perl", directory="haypile-perl", computes_once=True)


class FastMmapTortureTest(Tortures, unittest.TestCase):
    """Cache::FastMmap."""

    runner = FastMmapTest.runner


class MemcachedTest(Jobs, unittest.TestCase):
    """memcached."""

    runner = Runner("memcached-fast", "perl", directory="memcached", is_kept=False, server="memcached")


class LibmemcachedIpTest(Jobs, unittest.TestCase):
    """memcached by libmemcached, over IP."""

    runner = Runner("libmemcached-ip", "perl", directory="libmemcached", is_kept=False,
                    server="memcached")


class LibmemcachedSocketTest(Jobs, unittest.TestCase):
    """memcached by libmemcached, on a socket."""

    runner = Runner("libmemcached-socket", "perl", directory="libmemcached", is_kept=False,
                    server="memcached")


class ChiMemcachedIpTest(Jobs, unittest.TestCase):
    """CHI over memcached, over IP."""

    runner = Runner("chi-memcached-ip", "perl", directory="chi", is_kept=False, server="memcached")


class ChiMemcachedSocketTest(Jobs, unittest.TestCase):
    """CHI over memcached, on a socket."""

    runner = Runner("chi-memcached-socket", "perl", directory="chi", is_kept=False,
                    server="memcached")


class ChiL1Test(Jobs, unittest.TestCase):
    """CHI in memory over CHI over memcached."""

    runner = Runner("chi-l1", "perl", directory="chi", is_kept=False, server="memcached", levels=2)


class ChiFastMmapTest(Jobs, unittest.TestCase):
    """CHI over Cache::FastMmap."""

    runner = Runner("chi-fastmmap", "perl", directory="chi")


class ChiMemoryTest(Jobs, unittest.TestCase):
    """CHI in memory."""

    runner = Runner("chi-memory", "perl", directory="chi", is_shared=False, is_kept=False)


class KSharedDataCacheTest(Jobs, unittest.TestCase):
    """KSharedDataCache."""

    runner = Runner("kshareddatacache", "c++", can_delete=False, can_expire=False)


class KSharedDataCacheTortureTest(Tortures, unittest.TestCase):
    """KSharedDataCache."""

    runner = KSharedDataCacheTest.runner


class LmdbTortureTest(Tortures, unittest.TestCase):
    """LMDB, whose jobs are tested in rivals/rust."""

    runner = Runner("lmdb", "rust", stands_kills=True,
                    path=TARGET / "rivals/rust/debug/haypile-rivals")


class SmallestJobsTest(Jobs, unittest.TestCase):
    """A runner by the documents alone."""

    runner = Runner("smallest", "python", is_shared=False, is_kept=False, can_expire=False,
                    is_small=True, path=RIVALS / "conformance" / "smallest.py")


class SmallestTest(unittest.TestCase):
    """The runner that the guide in rivals/README.md begins with."""

    program = RIVALS / "conformance" / "smallest.py"

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.job = Path(holder.name)

    def start(self):
        """A process that does the job that was written."""
        return Process(self.program, self.job, self.job, "smallest")

    def test_it_does_and_verifies_jobs(self):
        timed = [*words(GET, (0, 2)), *many([0, 2, 1]), *words(GETSET, (2, 2)), *words(DELETE, (0, 3))]
        write_job(self.job, SIZES, words(SET, (0, 1, 3)), timed)
        with self.start() as process:
            for said, told in (("ready", "go"), ("timed", "verify")):
                self.assertEqual(process.line(), said)
                process.tell(told)
            found = process.results()
        expected = {"operations": 9, "hits": 4, "misses": 3, "wrong": 0, "errors": 0,
                    "verified_before": 3, "verified_after": 2}
        self.assertEqual({name: int(found[name]) for name in expected}, expected)

    def test_it_is_bounded_and_fresh_is_empty(self):
        write_job(self.job, [1000] * 20, words(SET, range(20)), [], capacity_bytes=10_080)
        for expected in ("10", "0"):
            with self.start() as process:
                for said, told in (("ready", "go"), ("timed", "verify")):
                    self.assertEqual(process.line(), said)
                    process.tell(told)
                self.assertEqual(process.results()["verified_after"], expected)
            write_job(self.job, [1000] * 20, words(SET, range(20)), [word(FRESH)])

    def test_what_it_cannot_do_it_refuses(self):
        for settings, said in [({"threads": 2}, "threads 1 alone, not 2"), ({"schema": 2}, "schema"),
                               ({"timing": "each"}, "timing"), ({"timed": [word(FLUSH)]}, "[6]")]:
            settings = dict(settings)
            write_job(self.job, SIZES, [], settings.pop("timed", []), **settings)
            with self.subTest(said=said), self.start() as process:
                line = process.line()
                self.assertTrue(line.startswith("error ") and said in line, line)


if __name__ == "__main__":
    unittest.main()
