"""A server of a job's own, which listens on a socket in the working directory, and the code that its clients share."""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from job import JobError
from looped import LoopedClient

# Time until the server can be connected to.
START_SECONDS = 10
PAUSE_SECONDS = 0.001


def version(program):
    """Returns the first line that the program prints of its version."""
    if shutil.which(program) is None:
        raise JobError(f"{program} is not installed; run: apt-get install {program}")
    said = subprocess.run([program, "-V" if program == "memcached" else "--version"], capture_output=True, text=True,
                          check=False).stdout
    return said.partition("\n")[0]


class Server:
    """A running server: `guard.py` ends it with the last process of the job."""

    def __init__(self, name):
        self.name, self.path = name, f"{name}.sock"
        self._lock_path, self._log_path = f"{name}.lock", f"{name}.log"
        self._lock = open(self._lock_path, "ab")  # pylint: disable=consider-using-with
        self._guard, self.pid = None, None

    def start(self, *command):
        """Starts it by this command, and waits until it listens."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f"another job uses the {self.name} in this directory") from None
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)
        guard = Path(__file__).with_name("guard.py")
        self._guard = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-S", "-B", guard, self._lock_path, self._log_path, *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.pid = int(self._guard.stdout.readline() or 0)
        deadline = time.monotonic() + START_SECONDS
        while not self.is_there():
            if self._guard.poll() is not None or time.monotonic() > deadline:
                said = Path(self._log_path).read_text(encoding="utf-8", errors="replace")
                raise JobError(f"{self.name} cannot be started: {' '.join(said.split())}")
            time.sleep(PAUSE_SECONDS)

    def join(self):
        """Joins the job of the process that has started it."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f"the {self.name} of this job is gone") from None

    def is_there(self):
        """Whether it listens."""
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(self.path) == 0

    def cpu_ns(self):
        """Returns the processor time that it has taken, by the clock that clock_getcpuclockid makes in Linux."""
        try:
            return time.clock_gettime_ns((~self.pid << 3) | 2)
        except OSError:
            raise JobError(f"{self.name} is gone") from None

    def leave(self, is_alone):
        """Leaves the job. Without other processes: waits until the server has ended, and removes its files."""
        self._lock.close()
        if is_alone:
            self._guard.wait()
            for path in (self.path, self._lock_path, self._log_path):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)


class ServedClient(LoopedClient):
    """The base of clients of such a server: they `_connect`, and know the server's `_command`."""

    def __init__(self, name, room):
        self._keys, self._is_alone = room.keys, room.processes == 1
        self.server = Server(name)
        if room.is_new:
            self.server.start(*self._command(room))
        else:
            self.server.join()
        self._cache = self._connect()

    def _command(self, room):
        """Returns the program and its arguments."""
        raise NotImplementedError

    def _connect(self):
        """Returns the package's client, connected."""
        raise NotImplementedError

    def fresh(self):
        """Empties the cache: the server stays."""
        self.clear()

    def close(self, _keeps):
        """Leaves the server, which ends with the last process that uses it."""
        self._cache.close()
        self.server.leave(self._is_alone)
