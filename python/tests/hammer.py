"""Threads that use one object at the same time."""

import sys
import threading
import time

# Threads of one test; more than processors, so that they are also interrupted.
THREADS = 6

# Seconds that a test lasts.
SECONDS = 0.4

# No machine needs that many seconds.
PATIENCE = 60


def hammer(test, *works, seconds=SECONDS, threads=THREADS):
    """Calls each function with the number of its thread, again and again, in as many threads as there are functions or
    more; fails the test with the first exception of any, or if one of them does not return.
    """
    failures = []
    start = threading.Barrier(max(threads, len(works)))
    stop = threading.Event()

    def run(work, number):
        try:
            start.wait(PATIENCE)
            while not stop.is_set():
                work(number)
        # A panic of Rust is not an Exception.
        except BaseException as failure:
            failures.append(failure)
            stop.set()

    workers = [
        threading.Thread(target=run, args=(works[number % len(works)], number), daemon=True)
        for number in range(start.parties)
    ]
    interval = sys.getswitchinterval()
    # With a GIL, threads change places between more instructions.
    sys.setswitchinterval(1e-5)
    try:
        for worker in workers:
            worker.start()
        stop.wait(seconds)
        stop.set()
        end = time.monotonic() + PATIENCE
        for worker in workers:
            worker.join(max(0, end - time.monotonic()))
            test.assertFalse(worker.is_alive(), "a thread does not return")
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]
