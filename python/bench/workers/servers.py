"""The servers of `scripts/bench-workers`: gunicorn with a site, and redis-server."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from sites import Limits

HERE = pathlib.Path(__file__).resolve().parent
STARTS_WITHIN_S = 60
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class NotStarted(Exception):
    """A server that did not start, with the end of its log."""


def gunicorn_command(site, limits, python="python"):
    """Without --preload, as gunicorn runs by default."""
    return [python, "-m", "gunicorn", "--workers", limits.workers, "--bind", f"unix:{limits.folder}/http",
            "--no-control-socket", site.wsgi]


def redis_command(limits, program="redis-server"):
    """A cache in memory: bounded, evicting, without snapshots."""
    return [program, "--port", 0, "--unixsocket", limits.redis_socket, "--save", "", "--appendonly", "no",
            "--maxmemory", f"{limits.mib}mb", "--maxmemory-policy", "allkeys-lru", "--dir", limits.folder]


class Servers:
    """gunicorn with a site, and redis-server if the cache needs it, with a folder of their own."""

    def __init__(self, options, cache, cleanup):
        self.workers = options.workers
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="haypile-workers-", dir=options.directory.resolve()))
        cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        limits = Limits(str(self.folder), options.mib, options.entries, options.workers)
        pathlib.Path(limits.files).mkdir()
        self.http = f"{self.folder}/http"
        self.log = self.folder / "log"
        self.processes = []
        cleanup.callback(self.end)
        if cache.needs_redis_server:
            self.start(redis_command(limits, options.redis_server))
            self.wait(lambda: connects(limits.redis_socket))
        self.start(gunicorn_command(options.site, limits, options.python),
                   WORKERS_CACHE=json.dumps(cache.settings(limits)))
        self.wait(lambda: connects(self.http) and len(children(self.processes[-1].pid)) == self.workers)

    def start(self, command, **environment):
        """Starts a process in a session of its own, which ends as a whole; Ctrl-C does not reach it."""
        with open(self.log, "ab") as log:
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
            command = [str(word) for word in command]
            self.processes.append(subprocess.Popen(command, cwd=HERE, env=environment, stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log, start_new_session=True))

    def wait(self, condition):
        end = time.monotonic() + STARTS_WITHIN_S
        while not condition():
            if time.monotonic() > end or self.processes[-1].poll() is not None:
                raise NotStarted(f"'{' '.join(self.processes[-1].args[:3])}' did not start: {self.last_words()}")
            time.sleep(0.02)

    def last_words(self):
        return self.log.read_text(errors="replace").strip()[-2000:] or "it printed nothing"

    def pids(self):
        for process in self.processes:
            yield from [process.pid, *children(process.pid)]

    def cpu_s(self):
        """Processor time, user and system, of all processes, with those that have ended."""
        ticks = 0
        for pid in self.pids():
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
        return ticks / TICKS_PER_S

    def memory_kib(self):
        """Sums over all processes: a page that n of them share counts as 1/n in each."""
        total = collections.Counter()
        for pid in self.pids():
            rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total.update({name: int(kib) for name, kib in re.findall(r"^(Pss|Pss_Shmem): +(\d+) kB", rollup, re.M)})
        return total

    def files_kib(self):
        """The room that the cache's files take, holes left out."""
        total = 0
        for path in (self.folder / "cache").rglob("*"):
            # A cache may remove a file at any time.
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_blocks // 2 if path.is_file() else 0
        return total

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def connects(path):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        return connection.connect_ex(path) == 0


def children(pid):
    """The processes that a process has started and that run."""
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
