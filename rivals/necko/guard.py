"""Ends the browser of a job, and removes its folder, if the runner is killed; `browser.py` starts this.

    python3 guard.py FOLDER GROUP MARK

The runner holds the other end of standard input. Where that ends without the word "done", the runner is gone: the guard
kills every process of its group and every process with MARK in its environment, and removes FOLDER. It is in a
session of its own, so that it outlives a kill of the runner's group.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

# Killed processes end at once, unless the system waits for a disk.
LIMIT_SECONDS = 10
PAUSE_SECONDS = 0.01


def members(group, mark):
    """Returns the processes of a group, and those that have a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            # Behind the name, which may hold blanks and brackets: state, parent, group.
            state, _, its_group, *_ = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            is_member = int(its_group) == group or mark in (entry / "environ").read_bytes()
        except (OSError, ValueError):
            # It has ended, or belongs to another user.
            continue
        if is_member and state not in (b"Z", b"X"):
            found.append(int(entry.name))
    return found


def end(group, mark, spared=()):
    """Kills the members, except for those that are spared; returns the ones that have not ended in time."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        left = [pid for pid in members(group, mark) if pid not in spared]
        if not left or time.monotonic() > deadline:
            return left
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(PAUSE_SECONDS)


def remove(folder):
    """Removes a folder to which nobody writes any more."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while os.path.lexists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)


def main(folder, group, mark):
    """Waits for the end of the runner."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.readline() != "done\n":
        end(int(group), mark.encode())
        remove(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
