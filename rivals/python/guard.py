"""Starts the server of a job, and ends it with the job's last process; `server.py` starts this.

    python3 guard.py LOCK LOG PROGRAM ARGUMENT...

Each process of the job holds a shared lock on the file LOCK as long as it lives, however it ends. The guard waits for
an exclusive one, and then kills the server. The kernel kills the server if the guard is killed. It is a program of its
own because a fork of the runner would share the pages of the objects whose references the runner counts.
"""

import fcntl
import os
import signal
import subprocess
import sys


def main(lock, log, *command):
    """Runs the server until no process of the job is left, or until it ends by itself."""
    with open(lock, "ab") as lock_file, open(log, "wb") as log_file:
        # A server that ends by itself has nobody to wait for.
        signal.signal(signal.SIGCHLD, lambda *_: os._exit(1))
        with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, stdout=log_file,
                              stderr=log_file) as server:
            print(server.pid, flush=True)
            # The runner waits for the end of this output.
            os.dup2(log_file.fileno(), sys.stdout.fileno())
            fcntl.flock(lock_file, fcntl.LOCK_EX)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
