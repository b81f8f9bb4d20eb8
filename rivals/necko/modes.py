"""The caches of the browser, as subjects name them, and the jobs that they can do."""

import re
from dataclasses import dataclass

from browser import DISK_KB, MEMORY_KB, cache_preferences
from job import CLEAR, FLUSH, GET, GETSET, LOAD, SET, WAIT, JobError
from measure import Runs

NAME = "necko"
USAGE = "necko[:disk|memory|both|none[,size=N]]"
ABOUT = "the HTTP cache of Firefox, headless: lab loop, sequence, search and crossover, each with --http"
MODES = ("disk", "memory", "both", "none")
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20, "GB": 1 << 30, "GiB": 1 << 30}
# The browser refuses an entry above this share of its cache.
SHARE = 8
OPERATIONS = (GET, GETSET, LOAD, CLEAR, FLUSH, WAIT)
# Those of a job without an origin, to prepare and timed.
ALONE = ((SET,), (GET, WAIT))


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

    def kilobytes(self, job):
        """Returns the capacity of the cache that entries go to: the given one, or that of the source, if the job has
        room for it. A job without an origin has room for as many bytes as its entries need elsewhere: the browser
        counts more for each."""
        if self.size_kb is not None:
            return self.size_kb
        size_kb = DISK_KB if self.is_on_disk else MEMORY_KB
        return size_kb if is_alone(job) else min(size_kb, max(1, job.number("capacity_bytes") >> 10))

    def preferences(self, job):
        """Returns the settings of the browser."""
        size_kb = self.kilobytes(job)
        memory_kb = {"memory": size_kb, "both": MEMORY_KB}.get(self.mode)
        return cache_preferences(size_kb if self.is_on_disk else None, memory_kb)


def is_alone(job):
    """Whether the cache is used without an origin: keys are looked up in it, and no request is sent."""
    return "origin" not in job.settings


def refuse_what_cannot_be_done(subject, job):
    """Raises a `JobError` for a job that is not for a browser; returns the operations, to prepare and timed."""
    origin = job.settings.get("origin", "inner")
    if is_alone(job) and subject.mode == "none":
        raise JobError(f"{NAME}:none stores nothing, and the job has no origin to ask")
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
    if job.number("killed", 0) and not (subject.is_on_disk and is_alone(job)):
        raise JobError(f"a killed {NAME}:{subject.mode} leaves nothing for a job; its caches on disk do, in a job "
                       "without an origin (lab search --http --killed)")
    largest, room = max(job.sizes, default=0), subject.kilobytes(job) << 10
    if subject.mode != "none" and largest > room // SHARE:
        raise JobError(f"the browser stores no entry above an eighth of its cache of {room} bytes, and a value has "
                       f"{largest} bytes")
    runs = [job.operations(name) for name in ("prepare.ops", "timed.0.ops")]
    allowed = ALONE if is_alone(job) else (OPERATIONS, OPERATIONS)
    for known, part in zip(allowed, runs):
        for operation, _ in part:
            if operation not in known:
                raise JobError(f"{NAME} cannot do operation {operation}: by a request, a browser reads and nothing else; "
                               "without an origin, it stores first, and then looks up")
    return map(Runs, runs)
