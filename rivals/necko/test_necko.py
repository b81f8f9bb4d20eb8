"""Tiny jobs over HTTP on Firefox's cache, and browsers that fail. `make rivals-test` runs it, in two minutes.

Where there is no Firefox the tests are skipped, and a line says how to get it; with HAYPILE_REQUIRE_RIVALS=1 that is a
failure.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parent / "conformance")]

import browser  # noqa: E402  pylint: disable=wrong-import-position
import guard  # noqa: E402  pylint: disable=wrong-import-position
from job import JobError  # noqa: E402  pylint: disable=wrong-import-position
from origin import Origin  # noqa: E402  pylint: disable=wrong-import-position
from modes import Subject  # noqa: E402  pylint: disable=wrong-import-position
from run import plausible, preference  # noqa: E402  pylint: disable=wrong-import-position
from tiny import (  # noqa: E402  pylint: disable=wrong-import-position
    CLEAR, DELETE, FLUSH, GET, LOAD, SET, WAIT, Process, word, words, write_job)

PROGRAM = HERE / "necko"
SIZES = [100, 5, 8, 0, 70_001]
KEYS = range(len(SIZES))
CAPACITY = 1 << 30
# Much longer than the guard takes.
LIMIT_SECONDS = 20
# A timed part that nobody waits for to the end.
LONG = [word(WAIT, 600_000)]


def value_of(pool, key, size):
    """The value of a key, as docs/job.md defines it."""
    start = key * 61 % 64
    return key.to_bytes(8, "little")[:size] + pool[start + 8:start + size]


def words_of(value):
    """The checksum `read_words` of a value."""
    whole = len(value) // 8 * 8
    return sum(int.from_bytes(value[at:at + 8], "little") for at in range(0, whole, 8)) + sum(value[whole:])


def mark(place):
    """What the environment of the processes of browsers has that work in this folder."""
    return f":{place}/{browser.Browser.FOLDER}".encode()


def left(place):
    """The processes of browsers and guards that work in this folder."""
    folder = str(place / browser.Browser.FOLDER).encode()
    guards = [int(entry.name) for entry in Path("/proc").iterdir()
              if entry.name.isdecimal() and {str(guard.__file__).encode(), folder} <= set(arguments(entry))]
    return guard.members(-1, mark(place)) + guards


def arguments(entry):
    """The arguments of a process, which may have ended."""
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


class JobCase(unittest.TestCase):
    """A folder for a job, a folder to work in, and an origin."""

    @classmethod
    def setUpClass(cls):
        listed = subprocess.run([PROGRAM, "list-subjects"], capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return
        why = f"necko: {listed.stdout.strip() or listed.stderr.strip()}"
        if os.environ.get("HAYPILE_REQUIRE_RIVALS", "0") not in ("", "0"):
            raise RuntimeError(why)
        print(f"Skipped: {why}", flush=True)
        raise unittest.SkipTest(why)

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.job, self.place = Path(holder.name, "job"), Path(holder.name, "place")
        self.job.mkdir()
        self.place.mkdir()
        self.origin = Origin({})
        self.addCleanup(self.origin.close)

    def write(self, prepare, timed, **settings):
        """Writes a job, and has the origin serve its values."""
        settings = {"schema": 3, "origin": self.origin.address, "capacity_bytes": CAPACITY, **settings}
        settings = {name: value for name, value in settings.items() if value is not None}
        write_job(self.job, SIZES, prepare, timed, **settings)
        pool = (self.job / "pool.bin").read_bytes()
        self.values = [value_of(pool, key, size) for key, size in enumerate(SIZES)]
        self.origin.bodies = {f"/key{key:05}": value for key, value in enumerate(self.values)}

    def start(self, subject, verb="run-job"):
        """Starts the runner."""
        process = Process(PROGRAM, self.job, self.place, subject, verb=verb)
        self.addCleanup(process.__exit__)
        return process

    def refused(self, subject):
        """What the runner says in the place of `ready`; nothing of it is left."""
        process = self.start(subject)
        said = process.line()
        self.assertTrue(said.startswith("error "), said)
        self.assert_nothing_left(process)
        return said

    def await_guard(self, process):
        """Nothing is left of a killed runner when the guard is done, which is not a child of this process."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while left(self.place) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assert_nothing_left(process)

    def assert_nothing_left(self, process):
        """No process, and no file, as soon as the runner has ended."""
        process.__exit__()
        self.assertEqual((left(self.place), list(self.place.iterdir())), ([], []))


class Jobs(JobCase):
    """What comes from the cache, and what from the origin."""

    def perform(self, subject):
        """Does a job; its results, and the origin's counts before, in and after the timed part."""
        begin = self.origin.requests
        # The browser ends processes of its own when it likes, which is an error of a measurement and no fault: once again.
        for _ in range(3):
            self.origin.requests = begin
            process = self.start(subject)
            self.assertEqual(process.line(), "ready")
            before = self.origin.requests
            process.tell("go")
            said = process.line()
            if not said.startswith("error a process of the browser ended in the timed part"):
                break
            self.assert_nothing_left(process)
        self.assertEqual(said, "timed")
        timed = self.origin.requests
        process.tell("verify")
        results = process.results()
        self.assert_nothing_left(process)
        self.assertEqual((results["errors"], results["wrong"]), ("0", "0"))
        self.assertTrue(0 < int(results["wall_ns"]) and 0 < int(results["cpu_ns"]), results)
        self.assertIn("Firefox", results["version"])
        return results, (before, timed - before, self.origin.requests - timed)

    def all_operations(self, subject):
        """All keys are read, which hit; the cache is cleared; all are read and stored; one is loaded."""
        timed = [*words(GET, KEYS), word(CLEAR), *words(GET, KEYS), word(CLEAR), *words(LOAD, KEYS)]
        self.write([*words(GET, KEYS), word(FLUSH)], timed)
        return self.perform(subject)

    def test_a_cache_on_disk_and_one_in_memory_keep_what_they_may(self):
        for subject in ("necko:disk,size=6000KB", "necko:memory"):
            before = self.origin.requests
            results, counts = self.all_operations(subject)
            count = len(SIZES)
            self.assertEqual((counts[0] - before, *counts[1:]), (count, 2 * count, count))
            self.assertEqual((results["hits"], results["misses"]), (str(count), str(2 * count)))
            self.assertEqual(int(results["read_words"]), sum(map(words_of, self.values)) % 2**64)
            self.assertEqual(int(results["hit_bytes"]), sum(SIZES))
            # What LOAD reads is not stored: the verification after it asks the origin.
            self.assertEqual((results["verified_before"], results["verified_after"]), (str(count), "0"))
            self.assertEqual(results["entries"], str(count))

    def test_without_a_cache_all_comes_from_the_origin(self):
        results, counts = self.all_operations("necko:none")
        count = len(SIZES)
        self.assertEqual(counts, (2 * count, 3 * count, count))
        self.assertEqual((results["hits"], results["misses"]), ("0", str(3 * count)))
        self.assertEqual((results["keeps_nothing"], results["entries"]), ("1", "0"))

    def test_a_call_sends_nothing(self):
        self.write([], words(GET, [0] * 1000), origin="inner")
        results, counts = self.perform("necko:memory")
        self.assertEqual((results["misses"], counts), ("1000", (0, 0, 0)))

    def test_both_caches_keep_entries_on_disk_which_a_cold_browser_finds(self):
        self.write([*words(GET, KEYS), word(FLUSH)], words(GET, KEYS), cold=1)
        results, counts = self.perform("necko:both")
        self.assertEqual((results["hits"], counts), (str(len(SIZES)), (len(SIZES), 0, 0)))
        self.assertEqual((results["entries"], results["memory_entries"]), (str(len(SIZES)), "0"))
        self.assertGreater(int(results["file_bytes"]), sum(SIZES))


class SeveralJobs(JobCase):
    """Jobs one after the other in one process."""

    def perform(self, process, prepare, timed, **settings):
        """Writes a job and has it done; its results, and the main process of its browser."""
        self.write(prepare, timed, **settings)
        process.tell("job")
        self.assertEqual(process.line(), "ready")
        main_process = min(self.browsers())
        process.tell("go")
        self.assertEqual(process.line(), "timed")
        process.tell("verify")
        results = process.results_of_one()
        self.assertEqual((results["errors"], results["wrong"]), ("0", "0"))
        return results, main_process

    def browsers(self):
        """The processes of the browser."""
        return guard.members(-1, mark(self.place))

    def states(self):
        """Their states, as letters, but that of the helper outside of the group, which waits for a crash."""
        found = [Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split() for pid in self.browsers()]
        self.assertGreater(len(found), 2)
        return {state for state, _, group, *_ in found if int(group) == os.getpgid(min(self.browsers()))}

    def test_a_browser_is_kept_as_long_as_jobs_need_the_same(self):
        count = str(len(SIZES))
        process = self.start("necko:disk", "run-jobs")
        results, first = self.perform(process, words(GET, KEYS), words(GET, KEYS))
        self.assertEqual((results["earlier_jobs"], results["hits"], results["verified_after"]), ("0", count, count))
        # It is at rest, and its files are gone.
        self.assertEqual(self.states(), {b"T"})
        self.assertEqual(list((self.place / "necko" / "profile" / "cache2" / "entries").iterdir()), [])
        # The same keys: the cache is empty, although it has been full.
        before = self.origin.requests
        results, second = self.perform(process, [], words(GET, KEYS), verify_before=0, verify_after=0)
        self.assertEqual((results["earlier_jobs"], results["hits"], results["misses"]), ("1", "0", count))
        self.assertEqual((second, self.origin.requests - before), (first, len(SIZES)))
        # Other settings.
        results, third = self.perform(process, words(GET, KEYS), words(GET, KEYS), capacity_bytes=1 << 22)
        self.assertEqual((results["earlier_jobs"], results["hits"]), ("0", count))
        self.assertFalse(Path(f"/proc/{first}").exists())
        # A browser that starts again is its job's own.
        same = {"capacity_bytes": 1 << 22}
        results, cold = self.perform(process, [*words(GET, KEYS), word(FLUSH)], words(GET, KEYS), cold=1, **same)
        self.assertEqual((results["earlier_jobs"], results["hits"]), ("0", count))
        self.assertEqual((self.browsers(), list(self.place.iterdir())), ([], []))
        # One that ends between two jobs.
        results, fifth = self.perform(process, [], words(GET, KEYS), **same)
        os.kill(fifth, signal.SIGKILL)
        results, sixth = self.perform(process, [], words(GET, KEYS), verify_before=0, **same)
        self.assertEqual((results["earlier_jobs"], results["hits"]), ("0", "0"))
        self.assertEqual(len({first, third, cold, fifth, sixth}), 5)
        process.finish()
        self.assertEqual((left(self.place), list(self.place.iterdir())), ([], []))

    def test_a_runner_that_is_killed_while_its_browser_rests_leaves_nothing(self):
        process = self.start("necko:memory", "run-jobs")
        self.perform(process, [], words(GET, KEYS))
        self.assertEqual(self.states(), {b"T"})
        process.kill()
        self.await_guard(process)

    def test_a_job_that_fails_ends_the_runner(self):
        process = self.start("necko:memory", "run-jobs")
        self.perform(process, [], words(GET, KEYS))
        self.write([], [word(DELETE)])
        process.tell("job")
        self.assertIn("error necko cannot do operation 3", process.line())
        self.assert_nothing_left(process)

    def test_only_jobs_are_asked_for(self):
        self.write([], words(GET, KEYS))
        process = self.start("necko:memory", "run-jobs")
        process.tell("go")
        self.assertEqual(process.line(), "error 'go' was said where 'job' or the end was due")
        self.assert_nothing_left(process)


class Lookups(JobCase):
    """Jobs without an origin: entries are stored, and looked up without a request."""

    def look_up(self, subject, **settings):
        """Stores all but one, and looks all of them up; the results."""
        self.write(words(SET, KEYS[:-1]), words(GET, KEYS), origin=None, **settings)
        process = self.start(subject)
        self.assertEqual(process.line(), "ready")
        process.tell("go")
        self.assertEqual(process.line(), "timed")
        process.tell("verify")
        results = process.results()
        self.assert_nothing_left(process)
        self.assertEqual((results["errors"], results["wrong"], self.origin.requests), ("0", "0", 0))
        stored = str(len(SIZES) - 1)
        self.assertEqual((results["hits"], results["misses"]), (stored, "1"))
        self.assertEqual((results["verified_before"], results["verified_after"]), (stored, stored))
        self.assertEqual(int(results["read_words"]), sum(map(words_of, self.values[:-1])) % 2**64)
        return results

    def test_entries_in_memory_are_found_without_a_request(self):
        self.assertNotIn("index_ready_before", self.look_up("necko:memory,size=8MB"))

    def test_a_killed_browser_leaves_its_entries_and_no_index(self):
        results = self.look_up("necko:disk", killed=1)
        said = [results[name] for name in ("killed", "index_ready_before", "index_ready_after")]
        self.assertEqual(said, ["1", "0", "0"])

    @unittest.skipUnless(os.environ.get("HAYPILE_TEST_FULL"), "a browser builds its index after 50 s: make test-full")
    def test_an_index_that_is_ready_is_waited_for(self):
        results = self.look_up("necko:disk")
        self.assertEqual((results["index_ready_before"], results["index_ready_after"]), ("1", "1"))


class Preferences(JobCase):
    """Preferences that the caller chooses."""

    def perform(self, text):
        """Does a job with a preference; what the runner says."""
        self.write([], words(GET, KEYS))
        said = subprocess.run([PROGRAM, "--pref", text, "run-job", self.job, "necko:memory"], cwd=self.place,
                              input="go\nverify\n", capture_output=True, text=True, check=False).stdout
        self.assertEqual((left(self.place), list(self.place.iterdir())), ([], []))
        return said

    def test_they_are_set_and_read_back_if_the_browser_knows_them(self):
        self.assertIn(f"hits {len(SIZES)}\n", self.perform("browser.cache.disk.preload_chunk_count=0"))
        self.assertEqual(self.perform("browser.cache.disk.preload_chunk=0"),
                         "error the browser has no preference browser.cache.disk.preload_chunk\n")
        # One that turns off what the subject is for.
        self.assertIn("error the browser's cache is off", self.perform("browser.cache.memory.enable=false"))

    def test_values_have_the_kinds_that_a_browser_knows(self):
        for text, value in (("a=true", True), ("a=false", False), ("a=-3", -3), ("a=", ""), ("a=b=c", "b=c")):
            self.assertEqual(preference(text), ("a", value))
        for text in ("a", "=1"):
            with self.assertRaisesRegex(JobError, "NAME=VALUE"):
                preference(text)


class Refusals(JobCase):
    """Jobs and subjects that are not for a browser: none is started."""

    def test_what_it_cannot_do_is_refused_in_a_sentence(self):
        # Starting a browser would take longer, and say something else.
        os.environ["HAYPILE_FIREFOX"] = "/bin/true"
        self.addCleanup(os.environ.pop, "HAYPILE_FIREFOX")
        for said, settings in (("one thread", {"threads": 2}), ("leaves nothing", {"killed": 1, "origin": None}),
                               ("processes", {"processes": 2, "schema": 2}), ("timing each", {"timing": "each"}),
                               ("warm_up", {"warm_up": 1}), ("has no files", {"cold": 1}),
                               ("address", {"origin": "example"}), ("schema", {"schema": 4}),
                               ("an eighth", {"capacity_bytes": 300_000})):
            self.write([], words(GET, KEYS), **settings)
            self.assertIn(said, self.refused("necko:memory"))
        self.write([], words(GET, KEYS), origin=None)
        self.assertIn("stores nothing", self.refused("necko:none"))
        self.write([], words(GET, KEYS), killed=1)
        self.assertIn("leaves nothing", self.refused("necko:disk"))
        for operation, origin in ((SET, self.origin.address), (DELETE, self.origin.address), (LOAD, None), (SET, None)):
            self.write([], [word(operation)], origin=origin)
            self.assertIn(f"operation {operation}", self.refused("necko:memory"))
        for subject in ("necko:ram", "necko:disk,room=2", "necko:none,size=1MB", "necko:disk,size=0KB"):
            self.assertIn(subject, self.refused(subject))

    def test_a_program_that_is_not_a_firefox_is_named(self):
        for name, said in (("/bin/true", "is not a Firefox"), ("/no/such", "no such program")):
            with mock.patch.dict(os.environ, HAYPILE_FIREFOX=name):
                with self.assertRaisesRegex(JobError, said):
                    browser.version()

    def test_sizes_are_those_of_the_source_or_given(self):
        for text, kilobytes in (("necko", 1_048_576), ("necko:disk", 1_048_576), ("necko:both", 1_048_576),
                                ("necko:memory", 51_200), ("necko:disk,size=6000KB", 6000),
                                ("necko:memory,size=2MiB", 2048)):
            self.assertEqual(Subject.parse(text).kilobytes(self.room(CAPACITY)), kilobytes)
        self.assertEqual(Subject.parse("necko:disk").kilobytes(self.room(1 << 20)), 1024)
        self.assertEqual(Subject.parse("necko:disk").kilobytes(self.room(1 << 20, None)), 1_048_576)

    @staticmethod
    def room(capacity_bytes, origin="inner"):
        """A job with this capacity."""
        settings = {"origin": origin} if origin else {}
        return SimpleNamespace(settings=settings, number=lambda _: capacity_bytes)

    def test_a_clock_that_is_wrong_is_an_error(self):
        second = 10**9
        self.assertEqual(plausible(second, second + 1), second)
        for inner in (2 * second, second // 3):
            with self.assertRaisesRegex(JobError, "by the runner's clock"):
                plausible(inner, second)


class Failures(JobCase):
    """Browsers that fail: a clear error in bounded time, nothing left running, no folder left."""

    def fake(self, body):
        """Has the runner start a script in the place of the browser."""
        path = self.job / "browser"
        version = "[ \"$1\" = --version ] && exec echo Mozilla Firefox 1.0"
        path.write_text(f"#!/bin/sh\n{version}\n{body}\n", encoding="ascii")
        path.chmod(0o755)
        patch = mock.patch.dict(os.environ, HAYPILE_FIREFOX=str(path))
        patch.start()
        self.addCleanup(patch.stop)

    def limit(self, seconds):
        """Bounds what the runner waits for."""
        patch = mock.patch.dict(os.environ, {browser.SECONDS_NAME: str(seconds)})
        patch.start()
        self.addCleanup(patch.stop)

    def with_setting(self, name, value):
        """Has the browser start with another setting than the runner's."""
        line = f"user_pref(\\\"{name}\\\", {value});"
        self.fake(f"for last; do :; done\necho \"{line}\" >> \"$last/user.js\"\nexec \"{self.real}\" \"$@\"")

    def setUp(self):
        super().setUp()
        self.real = browser.program()
        self.write(words(GET, KEYS), LONG)

    def test_one_that_ends_or_never_opens_marionette(self):
        self.fake("echo no display >&2\nexit 3")
        said = self.refused("necko:disk")
        self.assertIn("ended with status 3 before it could open Marionette: no display", said)
        self.limit(1)
        self.fake("sleep 600 &\nsleep 600")
        self.assertIn("did not open Marionette within 1 s", self.refused("necko:disk"))

    def test_one_that_leaves_its_group_ends_too(self):
        self.limit(1)
        self.fake("setsid sleep 600 &\nsleep 600")
        self.assertIn("did not open Marionette", self.refused("necko:disk"))

    def test_a_cache_with_other_settings_is_an_error(self):
        self.with_setting("browser.cache.disk.enable", "false")
        self.assertIn("browser.cache.disk.enable = false, not true", self.refused("necko:disk"))

    def test_a_cache_that_is_off_is_an_error(self):
        # All settings are what the runner wants, and none of its caches works.
        script = ("import sys, run\n"
                  "names = ('browser.cache.disk.enable', 'browser.cache.memory.enable')\n"
                  "run.Subject.preferences = lambda *_: dict.fromkeys(names, False)\n"
                  "sys.exit(run.main(sys.argv[1:]))")
        environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent / 'python'}"}
        said = subprocess.run([sys.executable, "-B", "-c", script, "run-job", self.job, "necko:disk"], cwd=self.place,
                              env=environment, input="", capture_output=True, text=True, check=False).stdout
        self.assertRegex(said, r"^error the browser's cache is off although it was asked for: of 50 loads of a URL 0 ")
        self.assertEqual((left(self.place), list(self.place.iterdir())), ([], []))

    def timed(self, subject):
        """Starts a job, up to its timed part; the runner and the browser's processes."""
        process = self.start(subject)
        self.assertEqual(process.line(), "ready")
        process.tell("go")
        return process, guard.members(-1, mark(self.place))

    def test_a_killed_browser_is_an_error(self):
        process, pids = self.timed("necko:memory")
        os.kill(min(pids), signal.SIGKILL)
        self.assertIn("error the browser ended with SIGKILL while it was used", process.line())
        self.assert_nothing_left(process)

    def test_a_browser_that_hangs_is_an_error(self):
        self.limit(8)
        process, pids = self.timed("necko:memory")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self.assertIn("error the browser did not finish 'timed' within 8 s", process.line())
        self.assert_nothing_left(process)

    def test_a_runner_that_is_told_to_end_leaves_nothing(self):
        process, _ = self.timed("necko:memory")
        process._process.terminate()  # pylint: disable=protected-access
        process._process.wait(LIMIT_SECONDS)  # pylint: disable=protected-access
        self.assert_nothing_left(process)

    def test_a_killed_runner_leaves_nothing(self):
        process, pids = self.timed("necko:disk")
        self.assertTrue(pids)
        process.kill()
        self.await_guard(process)

    def test_a_full_disk_is_an_error(self):
        mounts = ["unshare", "--mount", "--map-root-user"]
        can = shutil.which("unshare") and subprocess.run([*mounts, "true"], capture_output=True, check=False)
        if not can or can.returncode:
            self.skipTest("there are no namespaces")
        self.limit(15)
        script = "mount -t tmpfs -o size=400k none . && cd \"$PWD\" && \"$@\"; echo left $(ls)"
        said = subprocess.run([*mounts, "sh", "-c", script, "sh", PROGRAM, "run-job", self.job, "necko:disk"],
                              cwd=self.place, input="", capture_output=True, text=True, check=False).stdout
        self.assertRegex(said, r"^error .*\nleft\n$")
        self.assertEqual(left(self.place), [])


if __name__ == "__main__":
    unittest.main()
