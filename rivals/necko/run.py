"""A runner of the laboratory (docs/job.md): does jobs over HTTP on the HTTP cache of Firefox, Necko's.

    necko list-subjects
    necko run-job DIRECTORY necko[:disk|memory|both|none[,size=N]]
"""

import os
import re
import signal
import sys
import time
from dataclasses import dataclass

import browser
import cold
from job import CLEAR, FLUSH, GET, GETSET, LOAD, WAIT, Job, JobError
from measure import Runs
from origin import Origin

NAME = "necko"
USAGE = "necko[:disk|memory|both|none[,size=N]]"
ABOUT = "the HTTP cache of Firefox, headless, used by requests: lab loop --http, lab sequence --http"
# The sizes of the source, in KB of 1,024 bytes, as the browser counts them.
DISK_KB, MEMORY_KB = 1_048_576, 51_200
MODES = ("disk", "memory", "both", "none")
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20, "GB": 1 << 30, "GiB": 1 << 30}
# The browser refuses an entry above this share of its cache.
SHARE = 8
OPERATIONS = (GET, GETSET, LOAD, CLEAR, FLUSH, WAIT)
CHECK_PATH, CHECK_BODY = "/check", bytes(1000)
# How often the check loads its URL: it also has the browser load and compile all that a request needs.
CHECK_LOADS = 50
# The browser's own time of the timed part may be shorter than the runner's by a third, and by this.
WALL_SLACK_NS = 50_000_000


@dataclass(frozen=True)
class Subject:
    """A cache of the browser, by what stands behind the subject's name."""

    mode: str
    size_kb: int | None

    @classmethod
    def parse(cls, text):
        """Returns the subject of a text."""
        name, _, rest = text.partition(":")
        mode, *settings = rest.split(",") if rest else ["disk"]
        if name != NAME or mode not in MODES:
            raise JobError(f"unknown subject '{text}' (known: {USAGE})")
        size_kb = None
        for setting in settings:
            parsed = re.fullmatch(r"size=([0-9]+)([A-Za-z]*)", setting)
            if parsed is None or parsed[2] not in UNITS or mode == "none":
                raise JobError(f"invalid subject '{text}'; written as {USAGE}, with a size such as 6000KB")
            size_kb = int(parsed[1]) * UNITS[parsed[2]] >> 10
            if not 0 < size_kb < 1 << 31:
                raise JobError(f"'{text}': a size is 1 KB to 2147483647 KB")
        return cls(mode, size_kb)

    @property
    def is_on_disk(self):
        """Whether entries are files: also with both caches, because the browser then keeps in memory only what may not
        be on disk."""
        return self.mode in ("disk", "both")

    def kilobytes(self, capacity_bytes):
        """Returns the capacity of the cache that entries go to: the given one, or that of the source, if the job has
        room for it."""
        if self.size_kb is not None:
            return self.size_kb
        return min(DISK_KB if self.is_on_disk else MEMORY_KB, max(1, capacity_bytes >> 10))

    def preferences(self, capacity_bytes):
        """Returns the settings of the browser."""
        size_kb = self.kilobytes(capacity_bytes)
        return {
            "browser.cache.disk.enable": self.is_on_disk,
            "browser.cache.memory.enable": self.mode in ("memory", "both"),
            "browser.cache.disk.capacity": size_kb if self.is_on_disk else DISK_KB,
            "browser.cache.memory.capacity": size_kb if self.mode == "memory" else MEMORY_KB,
        }


def refuse_what_cannot_be_done(subject, job):
    """Raises a `JobError` for a job that is not for a browser; returns the operations, to prepare and timed."""
    origin = job.settings.get("origin")
    if origin is None:
        raise JobError(f"{NAME} is an HTTP cache, and the job has no origin; measure it with lab loop --http or lab "
                       "sequence --http")
    if origin != "inner" and not re.fullmatch(r"[\[\]0-9a-fA-F.:]+:[0-9]+", origin):
        raise JobError(f"'{origin}' is not the address of an origin")
    if job.number("threads") != 1:
        raise JobError(f"{NAME} sends one request after the other: it is measured on one thread, not on "
                       f"{job.number('threads')}")
    if job.number("processes", 1) != 1:
        raise JobError(f"{NAME} cannot be shared by processes")
    if job.settings.get("timing", "total") != "total":
        raise JobError(f"{NAME} does not know the timing {job.settings['timing']}")
    if job.number("warm_up", 0):
        raise JobError(f"{NAME} does no warm_up: the origin would count its requests")
    if job.number("cold", 0) and not subject.is_on_disk:
        raise JobError(f"{NAME}:{subject.mode} has no files, which a job with cold needs")
    largest, room = max(job.sizes, default=0), subject.kilobytes(job.number("capacity_bytes")) << 10
    if subject.mode != "none" and largest > room // SHARE:
        raise JobError(f"the browser stores no entry above an eighth of its cache of {room} bytes, and a value has "
                       f"{largest} bytes")
    runs = [job.operations(name) for name in ("prepare.ops", "timed.0.ops")]
    for operation, _ in (run for part in runs for run in part):
        if operation not in OPERATIONS:
            raise JobError(f"{NAME} cannot do operation {operation}: by a request, a browser reads and nothing else")
    return map(Runs, runs)


class Session:
    """A job on a browser."""

    def __init__(self, subject, directory):
        self._subject, self._job = subject, Job(directory)
        prepare, self._timed = refuse_what_cannot_be_done(subject, self._job)
        self._prepared = {key for operation, keys in prepare if operation in (GETSET,) for key in keys}
        self._origin = self._job.settings["origin"]
        self._preferences = subject.preferences(self._job.number("capacity_bytes"))
        self._results = {"errors": 0, "wrong": 0, "version": browser.version(), "language": "javascript"}
        self._browser = browser.Browser(self._preferences)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._browser.end()

    def run(self):
        """Does the job up to its results; returns them, or `None` if nobody waits for them any more."""
        job, results = self._job, self._results
        self._browser.start()
        self._check_cache()
        self._read_job()
        self._add(self._browser.call("prepare", is_timed=True))
        if job.number("verify_before"):
            results["verified_before"] = len(self._verify())
        if job.number("cold", 0):
            self._cool()
        self._browser.settle()
        executions = job.number("executions")
        group = self._browser.group
        if not hears("ready", "go"):
            return None
        wall_ns, cpu_ns = time.perf_counter_ns(), group.cpu_ns()
        found = self._browser.call("timed", executions, is_timed=True)
        cpu_ns, wall_ns = group.cpu_ns() - cpu_ns, time.perf_counter_ns() - wall_ns
        if not hears("timed", "verify"):
            return None
        pss_bytes = group.pss_bytes()
        self._add(found)
        results |= {
            "operations": self._timed.operations * executions,
            "wall_ns": plausible(round(found["ms"] * 1e6), wall_ns), "cpu_ns": cpu_ns,
            "hits": found["hits"], "misses": found["misses"], "hit_bytes": found["hitBytes"],
            "read_words": found["low"] + (found["high"] << 32),
        }
        if pss_bytes is not None:
            results["browser_pss_bytes"] = pss_bytes
        if self._subject.mode == "none":
            results["keeps_nothing"] = 1
        if job.number("verify_after"):
            right = self._verify()
            results |= {"verified_after": len(right), "verified_new": len(set(right) - self._prepared)}
        storages = self._browser.call("storages")
        results["entries"] = len(self._entries(storages)[0])
        if self._subject.is_on_disk:
            results["memory_entries"] = len(storages["memory"]["urls"])
        return results

    def _read_job(self):
        origin = self._origin if self._origin == "inner" else f"http://{self._origin}"
        self._browser.call("readJob", str(self._job.directory.resolve()), origin, self._job.number("pool_span"))

    def _add(self, found):
        """Adds failures and wrong values."""
        self._results["errors"] += found["errors"]
        self._results["wrong"] += found["wrong"]
        if found["firstError"]:
            self._results.setdefault("first_error", found["firstError"])

    def _verify(self):
        found = self._browser.call("verify", is_timed=True)
        self._add(found)
        return found["right"]

    def _check_cache(self):
        """Loads a URL of an origin of the runner's own, whose counts show which caches work; leaves them empty."""
        subject, browser_ = self._subject, self._browser
        with Origin({CHECK_PATH: CHECK_BODY}) as origin:
            url = f"http://{origin.address}{CHECK_PATH}"
            browser_.call("setUrl", url, len(CHECK_BODY))
            browser_.call("clear")
            hits = [bool((browser_.call("load", 0, 0) or {}).get("isHit")) for _ in range(CHECK_LOADS)]
            browser_.call("flush")
            storages = browser_.call("storages")
        expected = [subject.mode != "none" and load > 0 for load in range(CHECK_LOADS)]
        requests = CHECK_LOADS if subject.mode == "none" else 1
        if hits != expected or origin.requests != requests:
            wrong = "works although none" if subject.mode == "none" else "is off although it"
            raise JobError(f"the browser's cache {wrong} was asked for: of {CHECK_LOADS} loads of a URL {sum(hits)} were "
                           f"answered by the cache, and {origin.requests} by the origin")
        entries, used = self._entries(storages)
        if entries.count(url) != (subject.mode != "none"):
            raise JobError(f"the browser's cache has {entries.count(url)} entries of a URL that was loaded")
        # With both, entries are on disk alone: memory is for those that may not be there.
        if subject.is_on_disk and storages["memory"]["urls"]:
            raise JobError(f"the browser has an entry in memory with the settings '{subject.mode}'")
        capacity = subject.kilobytes(self._job.number("capacity_bytes")) << 10
        if subject.mode != "none" and used["capacity"] != capacity:
            raise JobError(f"the browser reports a cache of {used['capacity']} bytes, not of {capacity}")
        browser_.call("clear")
        if self._entries(browser_.call("storages"))[0]:
            raise JobError("the browser's cache is not empty after it was cleared")

    def _entries(self, storages):
        """Returns the URLs of the entries in the cache that the subject uses, and what its storage reports."""
        # Without a cache on disk, the storage of that name is the one in memory.
        used = storages["disk" if self._subject.is_on_disk else "memory"]
        if not self._subject.is_on_disk and self._browser.cache_files("entries"):
            raise JobError(f"the browser has files of entries with the settings '{self._subject.mode}'")
        if self._subject.mode == "none" and used["urls"]:
            raise JobError(f"the browser has {len(used['urls'])} entries with the settings 'none'")
        return used["urls"], used

    def _cool(self):
        """Starts the browser again, on files that are dropped from the system's memory."""
        self._browser.quit()
        file_bytes, resident_bytes = cold.drop(self._browser.cache_files())
        self._results |= {"file_bytes": file_bytes, "resident_bytes": resident_bytes}
        self._browser.start()
        self._read_job()


def plausible(inner_ns, outer_ns):
    """Returns the time by the browser's clock, if the runner's does not contradict it."""
    if inner_ns > outer_ns or inner_ns * 3 // 2 < outer_ns - WALL_SLACK_NS:
        raise JobError(f"the browser says that the timed part took {inner_ns} ns, and by the runner's clock it took "
                       f"{outer_ns} ns")
    return inner_ns


def hears(said, expected):
    """Says a line; whether the answer is this one, and not the end."""
    print(said, flush=True)
    return sys.stdin.readline() == f"{expected}\n"


def run_job(directory, text):
    """Does a job and says what came of it, when the browser has ended and its folder is gone."""
    with Session(Subject.parse(text), directory) as session:
        results = session.run()
    if results is not None:
        for name, value in results.items():
            print(name, value)
        print("end", flush=True)


def interrupted(number, _frame):
    """Ends the runner in order."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(arguments):
    """Does what the arguments say; returns the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        match arguments:
            case ["list-subjects"]:
                print(NAME, USAGE, "javascript", browser.version(), ABOUT, sep="\t", flush=True)
            case ["run-job", directory, text]:
                run_job(directory, text)
            case ["run-job", _, _, "--process", _]:
                raise JobError(f"{NAME} cannot be shared by processes")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except JobError as error:
        print("error", " ".join(str(error).split()), flush=True)
        return 2
    except Exception as error:  # pylint: disable=broad-exception-caught
        print("error", *f"{type(error).__name__}: {error}".split(), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
