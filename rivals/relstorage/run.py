#!/usr/bin/env python3
"""RelStorage's local client as a subject of Haypile's laboratory: a runner (docs/job.md).

    target/rivals/relstorage/bin/python rivals/relstorage/run.py list-subjects
    target/rivals/relstorage/bin/python rivals/relstorage/run.py run-job DIRECTORY relstorage
"""

import sys

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

    client = Client(job.number("capacity_bytes"))
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
