#!/usr/bin/env python3
"""RelStorage's local client as a subject of Haypile's laboratory: a runner (docs/job.md).

    target/rivals/relstorage/bin/python rivals/relstorage/run.py list-subjects
    target/rivals/relstorage/bin/python rivals/relstorage/run.py run-job DIRECTORY relstorage
"""

import sys
import time

from client import NAME, VERSION, Client
from job import Job, JobError
from measure import Reader, Runs, memory, percentiles, timed


def say(*words):
    """A line to whoever started this."""
    print(*words, flush=True)


def list_subjects():
    """The one subject."""
    about = "RelStorage's local client: segmented LRU in C++"
    say("\t".join([NAME, NAME, "python", VERSION, about]))


def run_job(directory, subject):
    """Does a job, and says what came of it."""
    if subject != NAME:
        raise JobError(f"there is no subject '{subject}' here; there is {NAME}")
    job = Job(directory)
    if job.number("threads") != 1:
        raise JobError(f"{NAME} is measured on one thread, not on {job.number('threads')}; "
                       "ask for --threads 1")
    values, reader = job.values, Reader(job.values)
    prepare, runs = Runs(job.operations("prepare.ops")), Runs(job.operations("timed.0.ops"))
    resident, _ = memory()

    if job.settings.get("timing") == "open":
        open_and_read(job, runs, reader, resident)
        return
    # Where it writes anything to disk, it is to the working directory.
    client = Client(job.number("capacity_bytes"), ".")
    prepare.perform(client, reader, values)
    results = {}
    if job.number("verify_before"):
        results["verified_before"] = verify(client, reader, len(values))
    say("ready")
    if sys.stdin.readline() != "go\n":
        return
    executions = job.number("executions")
    reader.touched_bytes = 0
    misses, wall, cpu = timed(
        lambda: sum(runs.perform(client, reader, values) for _ in range(executions)))
    results |= {
        "operations": runs.operations * executions,
        "wall_ns": wall,
        "cpu_ns": cpu,
        "hits": runs.reads * executions - misses,
        "hit_bytes": reader.touched_bytes,
        "misses": misses,
        "errors": 0,
        "entries": client.entries(),
        "charged_bytes": client.charged_bytes(),
    }
    now, peak = memory()
    say("timed")
    if sys.stdin.readline() != "verify\n":
        return
    results |= {"memory_bytes": max(0, now - resident),
                "memory_peak_bytes": max(0, peak - resident)}
    if job.number("verify_after"):
        results["verified_after"] = verify(client, reader, len(values))
    if job.settings.get("timing") == "each":
        for name, times in runs.perform_each(client, reader, values).items():
            results |= {f"latency_{name}_{what}": number
                        for what, number in percentiles(times).items()}
    finish(results, reader)


def open_and_read(job, runs, reader, resident):
    """A job that begins with the opening: what an earlier process has saved is read."""
    keys, values = runs.keys(), job.values
    say("ready")
    if sys.stdin.readline() != "go\n":
        return
    times = {}
    start = time.perf_counter_ns(), time.process_time_ns()

    def note(name):
        times[f"{name}_wall_ns"] = time.perf_counter_ns() - start[0]
        times[f"{name}_cpu_ns"] = time.process_time_ns() - start[1]

    client = Client(job.number("capacity_bytes"), ".")
    client.restore()
    note("open")
    misses = 0
    for at, key in enumerate(keys):
        missed = client.get([key], reader.touch)
        misses += missed
        if not missed:
            note("first_hit")
            misses += client.get(keys[at + 1:], reader.touch)
            break
    note("all")
    now, peak = memory()
    say("timed")
    if sys.stdin.readline() != "verify\n":
        return
    results = {
        "operations": len(keys), "wall_ns": times.pop("all_wall_ns"),
        "cpu_ns": times.pop("all_cpu_ns"), "hits": len(keys) - misses, "misses": misses,
        "hit_bytes": reader.touched_bytes, "errors": 0, "entries": client.entries(),
        "charged_bytes": client.charged_bytes(), "memory_bytes": max(0, now - resident),
        "memory_peak_bytes": max(0, peak - resident), **times,
    }
    if job.number("verify_after"):
        results["verified_after"] = verify(client, reader, len(values))
    finish(results, reader)


def finish(results, reader):
    """Says the results."""
    results |= {"wrong": reader.wrong, "version": VERSION, "language": "python"}
    for name, value in results.items():
        say(name, value)
    say("end")


def verify(client, reader, keys):
    """Reads every key and compares its value; gives how many were there and right."""
    wrong = reader.wrong
    misses = client.get(range(keys), reader.compare)
    return keys - misses - (reader.wrong - wrong)


def main(arguments):
    """What the arguments say; gives the exit status."""
    match arguments:
        case ["list-subjects"]:
            list_subjects()
        case ["run-job", directory, subject]:
            try:
                run_job(directory, subject)
            except Exception as error:  # pylint: disable=broad-exception-caught
                say("error", " ".join(f"{type(error).__name__}: {error}".split()))
                return 2
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
