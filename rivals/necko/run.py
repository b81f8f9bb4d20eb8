"""A runner of the laboratory (docs/job.md): does jobs over HTTP on the HTTP cache of Firefox, Necko's.

    necko list-subjects
    necko [--pref NAME=VALUE]... run-job DIRECTORY necko[:disk|memory|both|none[,size=N]]
    necko [--pref NAME=VALUE]... run-jobs DIRECTORY necko[:disk|memory|both|none[,size=N]]
"""

import contextlib
import re
import sys
import time

import browser
import cold
from job import Job, JobError
from modes import ABOUT, NAME, USAGE, Subject, is_alone, refuse_what_cannot_be_done
from origin import Origin

CHECK_PATH, CHECK_BODY = "/check", bytes(1000)
# How often the check loads its URL: it also has the browser load and compile all that a request needs, unless an
# earlier job has done that.
CHECK_LOADS, KEPT_CHECK_LOADS = 50, 5
# How long entries may be listed after the cache was cleared.
EMPTY_SECONDS = 5
# How long its index may take to be ready: it waits 50 seconds before it begins.
INDEX_SECONDS, INDEX_PAUSE_SECONDS = 180, 0.25
# The browser's own time of the timed part may be shorter than the runner's by a third, and by this.
WALL_SLACK_NS = 250_000_000


class Values:
    """The bodies of a job's keys, by their paths."""

    def __init__(self, job):
        self._values = {self.path(key): value for key, value in zip(job.keys, job.values)}

    @staticmethod
    def path(key):
        """Returns the path of a key, which may be a URL."""
        text = key.decode()
        url = re.match(r"https?://[^/]*(/.*)", text)
        return url[1] if url else f"/{text}"

    def get(self, path):
        """Returns a body."""
        return self._values.get(path)


class Session:
    """A job on a browser."""

    def __init__(self, subject, directory):
        self._subject, self._job = subject, Job(directory)
        prepare, self._timed = refuse_what_cannot_be_done(subject, self._job)
        self._prepared, self._looked_up = prepare.written(), set(self._timed.keys())
        self._origin = self._job.settings.get("origin")
        self.preferences = subject.preferences(self._job)
        self._results = {"errors": 0, "wrong": 0, "version": browser.version(), "language": "javascript"}
        self._browser = None

    @property
    def is_alone_with_browser(self):
        """Whether no other job may use the browser before or after this one: it ends and starts again in between, or it
        looks keys up, which the browser remembers."""
        return bool(self._job.number("cold", 0)) or is_alone(self._job)

    def run(self, browser_, earlier_jobs=0):
        """Does the job on a browser, up to its results; returns them, or `None` if nobody waits for them any more.
        `earlier_jobs` is how many the browser has done before."""
        job, results = self._job, self._results
        self._browser = browser_
        results["earlier_jobs"] = earlier_jobs
        self._check_cache(KEPT_CHECK_LOADS if earlier_jobs else CHECK_LOADS)
        self._prepare()
        if job.number("verify_before"):
            # The browser knows a key that was looked up before to be missing: it would not search again.
            results["verified_before"] = len(self._verify(self._prepared if is_alone(job) else None))
        if job.number("cold", 0):
            self._start_again(self._drop)
        elif job.number("killed", 0):
            self._start_again(end=self._browser.kill)
            results["killed"] = 1
        elif self._searches_index:
            # What the browser has of its entries in memory ends with it: files are searched from here on.
            self._start_again()
            self._await_index()
        self._browser.settle(browser.KEPT_QUIET_SECONDS if earlier_jobs else browser.QUIET_SECONDS)
        executions = job.number("executions")
        group = self._browser.group
        self._note_index("before")
        if not hears("ready", "go"):
            return None
        wall_ns, cpu_ns = time.perf_counter_ns(), group.cpu_ns()
        found = self._browser.call("timed", executions, is_timed=True)
        cpu_ns, wall_ns = group.cpu_ns() - cpu_ns, time.perf_counter_ns() - wall_ns
        if cpu_ns < 0:
            raise JobError("a process of the browser ended in the timed part, and the system has forgotten its processor time")
        if not hears("timed", "verify"):
            return None
        pss_bytes = group.pss_bytes()
        self._note_index("after")
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
        entries = len(self._entries(storages)[0])
        if not is_alone(job):
            # A key that was looked up without being there is one as well.
            results["entries"] = entries
        if self._subject.is_on_disk:
            results["memory_entries"] = len(storages["memory"]["urls"])
        return results

    @property
    def _searches_index(self):
        """Whether keys that are not there are looked up in the index of the cache's files. Of one that is there the file
        is opened, index or not."""
        return self._subject.is_on_disk and is_alone(self._job) and not self._looked_up <= self._prepared

    def _prepare(self):
        """Prepares, from an origin of the runner's own if the job has none; after that, nobody answers there."""
        with contextlib.ExitStack() as held:
            if is_alone(self._job):
                self._origin = held.enter_context(Origin(Values(self._job))).address
            self._read_job()
            self._add(self._browser.call("prepare", is_timed=True))

    def _read_job(self):
        origin = self._origin if self._origin == "inner" else f"http://{self._origin}"
        self._browser.call("readJob", str(self._job.directory.resolve()), origin, self._job.number("pool_span"),
                           is_alone(self._job))

    def _await_index(self):
        """Waits until the index knows all files: a browser that has just been started builds it after 50 seconds."""
        deadline = time.monotonic() + INDEX_SECONDS
        while not self._browser.call("isIndexReady"):
            if time.monotonic() > deadline:
                raise JobError(f"the browser's index of its files is not ready after {INDEX_SECONDS} s")
            time.sleep(INDEX_PAUSE_SECONDS)

    def _note_index(self, moment):
        """Verifies that the index is as the job wants it: not ready after a kill, and ready otherwise."""
        if not self._searches_index:
            return
        is_ready = self._browser.call("isIndexReady")
        if is_ready == bool(self._job.number("killed", 0)):
            raise JobError(f"the browser's index of its files is {'' if is_ready else 'not '}ready {moment} the timed part")
        self._results[f"index_ready_{moment}"] = int(is_ready)

    def _add(self, found):
        """Adds failures and wrong values."""
        self._results["errors"] += found["errors"]
        self._results["wrong"] += found["wrong"]
        if found["firstError"]:
            self._results.setdefault("first_error", found["firstError"])

    def _verify(self, keys=None):
        found = self._browser.call("verify", None if keys is None else sorted(keys), is_timed=True)
        self._add(found)
        return found["right"]

    def _check_cache(self, loads):
        """Loads a URL of an origin of the runner's own, whose counts show which caches work; leaves them empty."""
        subject, browser_ = self._subject, self._browser
        with Origin({CHECK_PATH: CHECK_BODY}) as origin:
            url = f"http://{origin.address}{CHECK_PATH}"
            browser_.call("setUrl", url, len(CHECK_BODY))
            browser_.call("clear")
            hits = [bool((browser_.call("load", 0, 0) or {}).get("isHit")) for _ in range(loads)]
            browser_.call("flush")
            storages = browser_.call("storages")
        expected = [subject.mode != "none" and load > 0 for load in range(loads)]
        requests = loads if subject.mode == "none" else 1
        if hits != expected or origin.requests != requests:
            wrong = "works although none" if subject.mode == "none" else "is off although it"
            raise JobError(f"the browser's cache {wrong} was asked for: of {loads} loads of a URL {sum(hits)} were "
                           f"answered by the cache, and {origin.requests} by the origin")
        entries, used = self._entries(storages)
        if entries.count(url) != (subject.mode != "none"):
            raise JobError(f"the browser's cache has {entries.count(url)} entries of a URL that was loaded")
        # With both, entries are on disk alone: memory is for those that may not be there.
        if subject.is_on_disk and storages["memory"]["urls"]:
            raise JobError(f"the browser has an entry in memory with the settings '{subject.mode}'")
        capacity = subject.kilobytes(self._job) << 10
        if subject.mode != "none" and used["capacity"] != capacity:
            raise JobError(f"the browser reports a cache of {used['capacity']} bytes, not of {capacity}")
        # Not all entries: for some milliseconds after that the browser drops new ones.
        browser_.call("removeUrl", url)
        self._await_empty("its only entry was removed")

    def leave_empty(self):
        """Clears the cache after a job, for the next one, and waits until all is gone."""
        self._browser.call("clear")
        self._browser.call("flush")
        self._await_empty("it was cleared")

    def _await_empty(self, after):
        # A response that was just read is listed until the browser has let go of it.
        deadline = time.monotonic() + EMPTY_SECONDS
        while self._entries(self._browser.call("storages"))[0]:
            if time.monotonic() > deadline:
                raise JobError(f"the browser's cache is not empty after {after}")
            time.sleep(browser.PAUSE_SECONDS)

    def _entries(self, storages):
        """Returns the URLs of the entries in the cache that the subject uses, and what its storage reports."""
        # Without a cache on disk, the storage of that name is the one in memory.
        used = storages["disk" if self._subject.is_on_disk else "memory"]
        if not self._subject.is_on_disk and self._browser.cache_files("entries"):
            raise JobError(f"the browser has files of entries with the settings '{self._subject.mode}'")
        if self._subject.mode == "none" and used["urls"]:
            raise JobError(f"the browser has {len(used['urls'])} entries with the settings 'none'")
        return used["urls"], used

    def _drop(self):
        """Drops the files of the cache from the system's memory."""
        file_bytes, resident_bytes = cold.drop(self._browser.cache_files())
        self._results |= {"file_bytes": file_bytes, "resident_bytes": resident_bytes}

    def _start_again(self, between=lambda: None, end=None):
        """Has the browser end, in order or otherwise, and starts it again on its files."""
        (end or self._browser.quit)()
        between()
        self._browser.start()
        self._read_job()


class Keeper:
    """The browser of several jobs. It is kept from one job to the next one as long as both need the same settings."""

    def __init__(self, subject, preferences):
        self._subject, self._preferences = subject, preferences
        self._browser, self._jobs = None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def run(self, directory):
        """Does a job; returns its results, or `None` if nobody waits for them any more. Then the browser is at rest, or
        has ended."""
        session = Session(self._subject, directory)
        if not (self._fits(session) and self._goes_on()):
            self._end()
            self._browser = browser.Browser(session.preferences, self._preferences)
            self._browser.start()
        results = session.run(self._browser, self._jobs)
        if results is None or session.is_alone_with_browser:
            self._end()
        else:
            self._jobs += 1
            session.leave_empty()
            self._browser.rest()
        return results

    def _fits(self, session):
        """Whether the browser is one that this job may use."""
        kept = self._browser
        return kept is not None and kept.has(session.preferences) and not session.is_alone_with_browser

    def _goes_on(self):
        """Whether the browser goes on. One that has ended while it was at rest is replaced: all that was measured on it
        was finished, and the results show by `earlier_jobs` that the next job has another one."""
        try:
            self._browser.go_on()
        except JobError:
            if self._browser.is_running():
                raise
            return False
        return True

    def _end(self):
        ended, self._browser, self._jobs = self._browser, None, 0
        if ended is not None:
            ended.end()


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


def preference(text):
    """Returns name and value of a preference: a boolean, a number, or else a text."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise JobError(f"'{text}' is not a preference; written as NAME=VALUE")
    if re.fullmatch(r"-?[0-9]{1,9}", value):
        return name, int(value)
    return name, {"true": True, "false": False}.get(value, value)


def run_job(directory, text, preferences):
    """Does a job and says what came of it, when the browser has ended and its folder is gone."""
    session = Session(Subject.parse(text), directory)
    with browser.Browser(session.preferences, preferences) as browser_:
        browser_.start()
        results = session.run(browser_)
    say_results(results)


def run_jobs(directory, text, preferences):
    """Does a job each time that it is told, until its input ends. Between two jobs the browser is at rest."""
    with Keeper(Subject.parse(text), preferences) as keeper:
        while line := sys.stdin.readline():
            if line != "job\n":
                raise JobError(f"{line.strip()!r} was said where 'job' or the end was due")
            say_results(keeper.run(directory))


def say_results(results):
    """Says what came of a job, unless nobody waits for it any more."""
    if results is not None:
        for name, value in results.items():
            print(name, value)
        print("end", flush=True)


def main(arguments):
    """Does what the arguments say; returns the exit status."""
    browser.end_in_order()
    preferences = {}
    try:
        while arguments[:1] == ["--pref"] and len(arguments) > 1:
            preferences |= [preference(arguments[1])]
            arguments = arguments[2:]
        match arguments:
            case ["list-subjects"]:
                print(NAME, USAGE, "javascript", browser.version(), ABOUT, sep="\t", flush=True)
            case ["run-job", directory, text]:
                run_job(directory, text, preferences)
            case ["run-jobs", directory, text]:
                run_jobs(directory, text, preferences)
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
