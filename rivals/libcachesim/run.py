#!/usr/bin/env python3
"""Runs libCacheSim's own simulator, from its Python wheel, on a list of jobs.

    target/rivals/libcachesim/bin/python rivals/libcachesim/run.py < jobs.jsonl > rows.jsonl
    target/rivals/libcachesim/bin/python rivals/libcachesim/run.py --policies

One JSON object per line in, one per line out; README.md in this folder describes them.
The loop over the requests is the wheel's C code (`process_trace`), never Python. Each job runs in
a child process of its own, so that a crash in C costs one row and no job inherits another's heap.
"""

import importlib.metadata
import json
import os
import resource
import signal
import sys
import time

import libcachesim
import numpy

# Our name of a policy -> the wheel's class. Where the definitions differ, README.md says so.
POLICIES = {
    "fifo": libcachesim.FIFO,
    "lru": libcachesim.LRU,
    "slru4": libcachesim.SLRU,
    "clock": libcachesim.Clock,
    "sieve": libcachesim.Sieve,
    "s3fifo": libcachesim.S3FIFO,
    "wtinylfu": libcachesim.WTinyLFU,
    "arc": libcachesim.ARC,
    "lirs": libcachesim.LIRS,
    "2q": libcachesim.TwoQ,
    "lfu": libcachesim.LFU,
    "gdsf": libcachesim.GDSF,
    "belady": libcachesim.Belady,
    "belady-size": libcachesim.BeladySize,
}
ORACLE_GENERAL = numpy.dtype([("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])
WHEEL_HASHPOWER = 24
VERSION = importlib.metadata.version("libcachesim")


def fitted_hashpower(job, requests):
    """log2 of a hash table with a bucket for every object that the cache can hold.

    The wheel's default of 2^24 buckets (128 MiB) misses the processor's caches on every request
    and doubles its time on small caches; the rival is to be measured at its best.
    """
    keys = len(numpy.unique(requests["key"]))
    objects = min(keys, job["size"]) if job["unit"] == "objects" else keys
    return max(10, (objects - 1).bit_length())


def exact_count(ratio, total, what):
    """The count behind a ratio. The wheel returns ratios only, in double precision."""
    count = round(ratio * total)
    if abs(ratio * total - count) > 1e-3:
        raise ValueError(f"{what}: ratio {ratio!r} of {total} is not a whole number")
    return count


def simulate(job, cache, reader):
    """One pass over the trace, timed."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    cpu, wall = time.process_time_ns(), time.monotonic_ns()
    object_ratio, byte_ratio = cache.process_trace(reader)
    wall, cpu = time.monotonic_ns() - wall, time.process_time_ns() - cpu
    after = resource.getrusage(resource.RUSAGE_SELF)
    return object_ratio, byte_ratio, {
        "cpu_ns": cpu,
        "user_ns": round((after.ru_utime - before.ru_utime) * 1e9),
        "sys_ns": round((after.ru_stime - before.ru_stime) * 1e9),
        "wall_ns": wall,
    }


def run(job):
    """Yields one row per repetition of the job, after one untimed pass that warms up."""
    if job["policy"] not in POLICIES:
        raise ValueError(f"policy {job['policy']!r} is none of {', '.join(POLICIES)}")
    if job["unit"] not in ("objects", "bytes"):
        raise ValueError(f"unit {job['unit']!r} is neither 'objects' nor 'bytes'")
    requests = numpy.memmap(job["trace"], ORACLE_GENERAL, mode="r")
    hashpower = job.get("hashpower", "fit")
    if hashpower == "fit":
        hashpower = fitted_hashpower(job, requests)
    elif hashpower == "default":
        hashpower = WHEEL_HASHPOWER
    settings = libcachesim.ReaderInitParam(
        ignore_obj_size=job["unit"] == "objects", ignore_size_zero_req=False
    )
    reader = libcachesim.TraceReader(
        job["trace"], libcachesim.TraceType.ORACLE_GENERAL_TRACE, settings
    )
    total_bytes = int(requests["size"].sum(dtype=numpy.int64))
    for repetition in range(-1, job.get("repeat", 1)):
        cache = POLICIES[job["policy"]](
            job["size"], hashpower=hashpower, **job.get("params", {})
        )
        object_ratio, byte_ratio, times = simulate(job, cache, reader)
        if repetition < 0:
            continue
        row = {
            "subject": "libcachesim",
            "version": VERSION,
            "trace": os.path.basename(job["trace"]),
            "policy": job["policy"],
            "params": job.get("params", {}),
            "size": job["size"],
            "unit": job["unit"],
            "hashpower": hashpower,
            "requests": len(requests),
            "misses": exact_count(object_ratio, len(requests), "misses"),
        }
        if job["unit"] == "bytes":
            row["bytes"] = total_bytes
            row["byte_misses"] = exact_count(byte_ratio, total_bytes, "byte misses")
        yield {**row, **times}


def in_child(job):
    """Runs the job in a child that writes its rows; a crash becomes a row that says so."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            for row in run(job):
                print(json.dumps(row), flush=True)
        except Exception as error:  # Whatever went wrong belongs into the row.
            print(json.dumps({"subject": "libcachesim", "job": job, "error": str(error)}), flush=True)
            status = 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) > 1:
        what = (
            f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
            if os.WIFSIGNALED(status)
            else f"ended with status {os.waitstatus_to_exitcode(status)}"
        )
        print(json.dumps({"subject": "libcachesim", "job": job, "error": what}), flush=True)
    return status == 0


def main():
    if sys.argv[1:] == ["--policies"]:
        print("\n".join(POLICIES))
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    done = [in_child(json.loads(line)) for line in sys.stdin if line.strip()]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
