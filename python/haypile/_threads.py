"""Waiting in other threads than that of an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

_Result = TypeVar("_Result")

# What a thread does, which returns how the loop learns of it.
_Work: TypeAlias = Callable[[], Callable[[], None]]

# Seconds that a thread waits for its next work before it ends.
_IDLE_SECONDS = 10.0

# Operations of one cache that run at the same time; the others wait. More threads than that do not make a server
# faster, and they end by themselves after the `timeout=` of the server's URL.
_LANE_WIDTH = 32


class _Threads:
    """Threads that are used again. Nothing waits for a thread: if none is idle, another is started.

    A pool of concurrent.futures would not do. It has a bound, and computations that wait for one another could hold
    all of its threads. And Python waits for those at its exit, also for one that is stuck: these are daemons.
    """

    def __init__(self) -> None:
        # A permit is for one of the threads that wait at the queue; the caller that takes it puts one work there.
        self._idle = threading.Semaphore(0)
        self._queue: SimpleQueue[_Work] = SimpleQueue()

    def run(self, work: _Work) -> None:
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, name="haypile-async", daemon=True).start()
        self._queue.put(work)

    def _serve(self) -> None:
        # A child that was forked in a work ends here.
        while self is _threads:
            try:
                work = self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                if self._idle.acquire(blocking=False):
                    return
                # Others have taken all permits, and put one work for each thread that waits.
                work = self._queue.get()
            finish = work()
            # Idle from now on: the loop's next work finds this thread, however early it is.
            self._idle.release()
            finish()
            # The thread keeps nothing of them while it waits.
            del work, finish


class Lane:
    """A bound on the threads for operations that wait for none of the others behind it. Those begin in their order."""

    def __init__(self) -> None:
        self._renew()
        _lanes.add(self)

    def run(self, work: _Work) -> None:
        with self._lock:
            if self._running == _LANE_WIDTH:
                self._waiting.append(work)
                return
            self._running += 1
        threads = _threads
        try:
            threads.run(lambda: self._serve(threads, work))
        except BaseException:
            # The system starts no more threads.
            with self._lock:
                self._running -= 1
            raise

    def _serve(self, threads: _Threads, work: _Work) -> Callable[[], None]:
        while True:
            finish = work()
            if threads is not _threads:
                # In a child that was forked in the work: the count is the child's.
                return finish
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return finish
                work = self._waiting.popleft()
            finish()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[_Work] = deque()


_threads = _Threads()
_lanes: WeakSet[Lane] = WeakSet()


def _renew() -> None:
    # The threads are the parent's, as is what they do and what waits for them; so may be a thread that holds a lock.
    global _threads
    _threads = _Threads()
    for lane in list(_lanes):
        lane._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def in_a_thread(work: Callable[[], _Result], lane: Lane | None = None) -> Awaitable[_Result]:
    """Awaits what may wait, in another thread, with the context variables of this task.

    Without a lane it begins at once: what waits for another caller could otherwise keep out the one it waits for.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        elif isinstance(error, StopIteration):
            # No future takes it.
            done.set_exception(RuntimeError("the awaited function raised StopIteration"))
        else:
            done.set_exception(error)

    def run() -> Callable[[], None]:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (context.run(work), None)
        except BaseException as error:  # noqa: BLE001 - the awaiting task raises it
            outcome = (None, error)

        def finish() -> None:
            try:
                loop.call_soon_threadsafe(settle, *outcome)
            except RuntimeError:
                pass  # The loop was closed: nobody waits any more.

        return finish

    (lane or _threads).run(run)
    return done
