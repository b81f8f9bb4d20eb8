"""Rows of results made by hand: experiments of which no record is kept yet, and hostile text."""

import json
import random
from pathlib import Path
from typing import Any

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\u0007]]>&amp;"
LONG = "memory:policy=s3fifo,small=10,threshold=1,ghost=90,compress=zstd,persist=snapshot,shards=16"
SIZES = (50, 1024, 51_200, 524_288)


class Experiment:
    """Rows of one experiment, in seven blocks."""

    def __init__(self, name: str, file: str | None = None) -> None:
        self.name = name
        self.file = file or name
        self.run = name
        self.random = random.Random(name)
        machine = {"cpu": "A processor of no make", "cores": 2, "kernel": "Linux 6.1",
                   "memory_bytes": 8 << 30, "load_1m": 3.5}
        program = {"version": "0.1.0", "commit": None, "allocator": "system (glibc)"}
        self.rows: list[dict[str, Any]] = [{
            "type": "run", "schema": 1, "run": name, "experiment": name, "seed": 1,
            "command": f"haypile lab {name} --quick --out " + "a-long-name-" * 20,
            "machine": machine, "program": program, "started": "2026-01-02T03:04:05Z"}]

    def add(self, case: str, parameters: dict[str, Any], costs: dict[str, float],
            **more: Any) -> None:
        """Adds a sample for each block and subject, which takes about that many nanoseconds."""
        for block in range(7):
            for subject, ns in costs.items():
                cpu_ns = int(1000 * ns * self.random.lognormvariate(0, 0.03))
                self.rows.append({
                    "type": "sample", "schema": 1, "run": self.run, "experiment": self.name,
                    "case": case, "parameters": parameters, "seed": 1, "block": block,
                    "position": 0, "operations": 1000, "wall_ns": int(cpu_ns * 1.3),
                    "cpu_ns": cpu_ns, "hits": 900, "misses": 100,
                    "subject": {"name": subject, "version": "1.0", "language": "rust",
                                "program": "haypile"}, **more})

    def ask(self, run: str, **asked: str) -> None:
        """Begins a run that asks this; what is added belongs to it."""
        self.run = run
        self.rows.append({**self.rows[0], "run": run, "asked": asked})

    def write(self, directory: Path) -> Path:
        """Writes them as a file of results."""
        path = directory / f"{self.file}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return path


def write(directory: Path) -> list[Path]:
    """Writes a file for each experiment."""
    experiments = [ratio(), search(), crossover(), stampede(), hostile(), latency()]
    for name, cases in (("loop", ("call", "call + clear", "miss (no-store)", "hit")),
                        ("sequence", ("miss", "hit"))):
        calls = Experiment(name)
        for case in cases:
            for size in SIZES:
                costs = {"none": 80.0, "memory": 200 + size / 50, "memory+file": 220 + size / 48,
                         "file": 600 + size / 20}
                calls.add(case, {"value_bytes": size}, costs)
        experiments.append(calls)
    return [experiment.write(directory) for experiment in experiments]


def ratio() -> Experiment:
    """Rates that are far apart, some with a server."""
    experiment = Experiment("ratio")
    for case in ("1:10 small", "1:10 medium", "1:100 medium"):
        experiment.add(case, {"sets": 1}, {"chi:memcached-ip": 15_000, "libmemcached": 5_000},
                       server_cpu_ns=5_000_000)
        experiment.add(case, {"sets": 1}, {"chi:memory": 7_000, "memory": 300, LONG: 305})
    return experiment


def search() -> Experiment:
    """Lines by entries, for two fills."""
    experiment = Experiment("search")
    for fill in ("10%", "100%"):
        for entries in (1_000, 30_000, 1_000_000):
            costs = {"memory": 40 + entries / 50_000, "file": 90, LONG: 95}
            experiment.add("search", {"entries": entries, "fill": fill}, costs)
    return experiment


def crossover() -> Experiment:
    """Costs that part between 256 and 1,024 bytes."""
    experiment = Experiment("crossover")
    for size in (16, 64, 256, 1024, 4096, 65_536):
        costs = {"memory": 60 + size / 30, "file": (60 + size / 30) * (1 if size < 1000 else 1.4)}
        experiment.add("get-hit", {"value_bytes": size, "keys": 1000}, costs)
    return experiment


def stampede() -> Experiment:
    """One computation per round, and one per process."""
    experiment = Experiment("stampede")
    for processes in (2, 8):
        for subject, computed in (("file", 100), (LONG, 100 * processes)):
            counts = {"asked": 100, "computed": computed}
            experiment.add("expired", {"processes": processes}, {subject: 1000}, counts=counts)
    return experiment


def hostile() -> Experiment:
    """Names and errors that would like to be more than text, in charts and tables."""
    experiment = Experiment("micro")
    experiment.add(HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: 10, "x" * 5000: 11, "": 12})
    experiment.add("all fail", {}, {HOSTILE: 10}, error=HOSTILE * 100)
    return experiment


def latency() -> Experiment:
    """Percentiles that are far apart, asked for by files of the user's, one of them hostile."""
    experiment = Experiment("micro", "latency")
    experiment.ask("wait", file="how-long-do-i-wait.toml", source="A colleague", method="By hand",
                   question="How long does a single operation take where somebody waits for it?")
    for subject, p50 in (("memory", 90), ("file", 140), ("memcached", 21_000), (LONG, 95)):
        get = percentiles(p50)
        experiment.add("get-hit", {"keys": 10}, {subject: p50}, latency_ns={"get": get})
    experiment.ask("hostile", file=HOSTILE * 50, source=HOSTILE, method=HOSTILE,
                   question=HOSTILE * 50)
    for subject in (HOSTILE, "x" * 5000, "memory", "file", "memcached"):
        timed = {"get": percentiles(100), HOSTILE: percentiles(10**9), "set": percentiles(1)}
        for case in ("mixed", HOSTILE):
            experiment.add(case, {}, {subject: 10}, latency_ns=timed)
    return experiment


def percentiles(p50: int) -> dict[str, float]:
    """Times of single operations, of which one in a thousand takes very long."""
    return {"count": 100_000, "p50": p50, "p90": p50 * 2, "p99": p50 * 5, "p999": p50 * 300,
            "max": p50 * 9000, "mean": p50 * 1.5}
