"""Computing on a miss in event loops: the callers of a key in one loop share one future, and block no thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from haypile._cache import Cache
from haypile._haypile import Computation, ComputesItself, Pending
from haypile._threads import Lane, in_a_thread
from haypile._types import MISSING, SHORT_BYTES, Key, Ttl

# Seconds between two looks at who else computes a key; they grow, and with many keys at once further than that.
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.01
_PAUSE_PER_FLIGHT = 0.0001

# Seconds between two looks at whether the loops that compute still run.
_WATCH_SECONDS = 0.05

# Seconds that the thread which looks stays without anything to look at.
_IDLE_SECONDS = 10.0

# How often an object that cannot be loaded is deleted before its caller goes on without the cache.
_ATTEMPTS = 2


class Codec(Protocol):
    """A cache, and how its values become bytes."""

    _cache: Cache

    def _loaded(self, key: Key, data: bytes, default: Any) -> Any: ...

    def _delete_value(self, key: Key, data: bytes) -> None: ...

    async def _dumped_in_loop(self, key: Key, value: Any) -> tuple[bytes, Any]:
        """Returns the bytes of a value, and the value that callers get; makes those of a large one in another thread."""
        ...

    async def _loaded_in_loop(self, key: Key, data: bytes | memoryview, default: Any) -> Any:
        """Returns the value that bytes stand for, or `default` if they stand for none; a large value is made in another thread."""
        ...


# A cache as this process has opened it, and a key in it.
_Place: TypeAlias = tuple[int, bytes]


class _Frame:
    """A computation as those know it that run within: it holds no value, for tasks may keep it."""

    __slots__ = ("place", "parent", "awaiting", "is_over")

    def __init__(self, place: _Place, parent: _Frame | None) -> None:
        self.place = place
        # The computation in which this one began.
        self.parent = parent
        # Those that it waits for.
        self.awaiting: list[_Frame] = []
        self.is_over = False

    def waits_for(self, other: _Frame) -> bool:
        """Whether it waits for another one, or is that."""
        seen, todo = set(), [self]
        while todo:
            frame = todo.pop()
            if frame is other:
                return True
            if id(frame) not in seen:
                seen.add(id(frame))
                todo.extend(frame.awaiting)
        return False


class _Attempt:
    """A task that computes, and what it has begun in the engine."""

    __slots__ = ("_loop", "stage")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.stage: Pending | Computation | None = None

    def begin(self, stage: Pending | Computation) -> None:
        """Begins the next stage, which is given up if the loop stops."""
        self.end()
        self.stage = stage
        _watch.add(self._loop, stage)

    def end(self) -> None:
        """Ends the stage; where it has ended well, there is nothing to give up."""
        if self.stage is not None:
            _watch.remove(self.stage)
            self.stage.abandon()
            self.stage = None


class _Flight:
    """A value that tasks of one loop wait for, and the tasks that compute it."""

    __slots__ = ("future", "frame", "attempts", "begun", "last", "timer", "is_computed")

    def __init__(self, loop: asyncio.AbstractEventLoop, place: _Place, parent: _Frame | None) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        # If nobody waits any more, nobody misses an error.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.frame = _Frame(place, parent)
        # More than one if the first takes longer than its callers wait.
        self.attempts: set[asyncio.Task[None]] = set()
        self.begun = 0
        self.last: _Attempt | None = None
        self.timer: asyncio.TimerHandle | None = None
        # Whether its function has computed the value, and not another caller's.
        self.is_computed = False

    def is_current(self) -> bool:
        """Whether a caller that comes now gets this value: not if it has ended, or if the key has changed since."""
        stage = None if self.last is None else self.last.stage
        return not self.future.done() and (stage is None or stage.is_current())


# The computation in which a task, or a thread that works for one, runs.
_current: contextvars.ContextVar[_Frame | None] = contextvars.ContextVar("haypile-computation", default=None)

_Table: TypeAlias = dict[tuple[int, bytes], _Flight]
_tables: WeakKeyDictionary[asyncio.AbstractEventLoop, _Table] = WeakKeyDictionary()


def raise_if_own(identity: int, key: bytes) -> None:
    """Raises ComputesItself if this thread waits for a key whose computation goes on only when it no longer waits: that
    of its own task, or of another task of its loop. The compiled part calls this while a caller waits.
    """
    place = (identity, key)
    _raise_within(_current.get(), place)
    loop = asyncio._get_running_loop()
    if loop is not None and any(flight.frame.place == place for flight in list(_tables.get(loop, {}).values())):
        raise _computes_itself(key)


def _raise_within(frame: _Frame | None, place: _Place) -> None:
    """Raises ComputesItself if this computation, or one around it, computes the value of this place and goes on."""
    while frame is not None:
        if frame.place == place and not frame.is_over:
            raise _computes_itself(place[1])
        frame = frame.parent


def _table_of(loop: asyncio.AbstractEventLoop) -> _Table:
    table = _tables.get(loop)
    if table is None:
        # Loops of other threads come and go at the same time: an iteration over the table itself would fail.
        for reference in _tables.keyrefs():
            other = reference()
            # What is pending there refers to its loop, which would never be freed.
            if other is not None and other.is_closed():
                _tables.pop(other, None)
        table = _tables[loop] = {}
    return table


def _computes_itself(key: bytes) -> ComputesItself:
    return ComputesItself(f"the computation of {key!r} asks for the key that it computes, and would wait for itself")


# What Cache._start returns: a value, or a call that has begun and what it has returned.
Started: TypeAlias = bytes | memoryview | tuple[Pending, Computation | float] | None


def start(
    codec: Codec, key: Key, ttl: Ttl, stale: Any, early: Any, groups: Iterable[Key] = ()
) -> tuple[Any, Started]:
    """Looks for a value in a local cache, which takes less time than everything else here. Returns it if it is short; and
    otherwise MISSING, with what Call.value goes on with.
    """
    started = codec._cache._start(key, ttl, stale, early, groups)
    if isinstance(started, bytes):
        # None for an object that cannot be loaded: the call begins again.
        return codec._loaded(key, started, MISSING), None
    return MISSING, started


class Call:
    """A call of get_or_compute, or of a memoized coroutine function."""

    __slots__ = ("codec", "key", "ttl", "function", "stale", "early", "lane", "groups")

    def __init__(
        self,
        codec: Codec,
        key: Key,
        ttl: Ttl,
        function: Callable[[], Any],
        stale: Any,
        early: Any,
        lane: Lane | None,
        groups: Iterable[Key] = (),
    ) -> None:
        self.codec = codec
        self.key = key
        self.ttl = ttl
        # It returns a value, or something that is awaited.
        self.function = function
        self.stale = stale
        self.early = early
        # Where operations of the cache run; None if they take less time than the way to another thread.
        self.lane = lane
        # Those that the entry belongs to.
        self.groups = groups

    async def value(self, started: Started = None) -> tuple[Any, bool]:
        """Returns the value, and whether this call has computed it; `started` is what `start` has returned."""
        codec, begun = self.codec, None
        if self.lane is not None and not (self.stale is None and self.early is None):
            # A value that is stale is served while another caller computes the next one.
            look = functools.partial(codec._cache._start, self.key, self.ttl, self.stale, self.early, self.groups)
            started = await in_a_thread(look, self.lane)
        if isinstance(started, tuple):
            begun = started
        elif started is not None:
            value = await codec._loaded_in_loop(self.key, started, MISSING)
            if value is not MISSING:
                return value, False
        loop = asyncio.get_running_loop()
        table = _table_of(loop)
        key = self.key.encode() if isinstance(self.key, str) else self.key
        place = (codec._cache._identity(), key)
        name = (id(codec), key)
        current = _current.get()
        while current is not None and current.is_over:
            # A task that the computation has left behind.
            current = current.parent
        _raise_within(current, place)
        flight = table.get(name)
        if flight is None or not flight.is_current():
            flight = self._take_off(loop, table, name, place, current, begun)
            return await _arrival(flight, current), flight.is_computed
        if begun is not None and isinstance(begun[1], Computation):
            # Its turn came while the flight was about to ask for it.
            begun[1].abandon()
        if current is not None and flight.frame.waits_for(current):
            raise _computes_itself(key)
        if flight.timer is None:
            flight.timer = loop.call_later(
                codec._cache._compute_wait(), self._overtake, loop, flight, contextvars.copy_context()
            )
        return await _arrival(flight, current), False

    def _take_off(
        self,
        loop: asyncio.AbstractEventLoop,
        table: _Table,
        name: tuple[int, bytes],
        place: _Place,
        current: _Frame | None,
        begun: tuple[Pending, Any] | None,
    ) -> _Flight:
        flight = table[name] = _Flight(loop, place, current)

        def land(_future: object, codec: Codec = self.codec) -> None:
            # `codec` lives as long as its flight: no other has its id.
            flight.frame.is_over = True
            if table.get(name) is flight:
                del table[name]
            if flight.timer is not None:
                flight.timer.cancel()

        flight.future.add_done_callback(land)
        self._attempt(loop, flight, begun, contextvars.copy_context())
        return flight

    def _overtake(self, loop: asyncio.AbstractEventLoop, flight: _Flight, context: contextvars.Context) -> None:
        """Has one who waits compute as well: they have waited for long enough."""
        if not flight.future.done():
            self._attempt(loop, flight, None, context)
            flight.timer = loop.call_later(
                self.codec._cache._compute_wait(), self._overtake, loop, flight, context.copy()
            )

    def _attempt(
        self,
        loop: asyncio.AbstractEventLoop,
        flight: _Flight,
        begun: tuple[Pending, Any] | None,
        context: contextvars.Context,
    ) -> None:
        context.run(_current.set, flight.frame)
        is_late = flight.begun > 0
        flight.begun += 1
        attempt = flight.last = _Attempt(loop)
        if begun is not None:
            attempt.begin(begun[1] if isinstance(begun[1], Computation) else begun[0])
        task = loop.create_task(self._lead(flight, attempt, begun, is_late), context=context)
        # A loop that ends without it needs no message: whoever waited for it ends too.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        flight.attempts.add(task)
        task.add_done_callback(lambda task: _ended(flight, attempt, task))

    async def _lead(
        self, flight: _Flight, attempt: _Attempt, begun: tuple[Pending, Any] | None, is_late: bool
    ) -> None:
        value, is_computed = await self._computed(flight, attempt, begun, is_late)
        if not flight.future.done():
            flight.is_computed = is_computed
            flight.future.set_result(value)

    async def _computed(
        self, flight: _Flight, attempt: _Attempt, begun: tuple[Pending, Any] | None, is_late: bool
    ) -> tuple[Any, bool]:
        codec = self.codec
        for _ in range(_ATTEMPTS):
            turn = await self._turn(flight, attempt, begun, is_late)
            if isinstance(turn, Computation):
                return await self._stored(turn)
            begun = None
            value = await codec._loaded_in_loop(self.key, turn, MISSING)
            if value is not MISSING:
                return value, False
            # Written by another version or without our signature.
            await self._operate(functools.partial(codec._delete_value, self.key, bytes(turn)))
        # Others go on writing what this program cannot load: it waits for them no longer.
        lease = await self._operate(lambda: codec._cache._try_lease(self.key))
        data, value = await codec._dumped_in_loop(self.key, await self._call())
        if lease is not False:
            await self._operate(lambda: codec._cache._offer(self.key, data, self.ttl, self.groups, lease), len(data))
        return value, True

    async def _turn(
        self, flight: _Flight, attempt: _Attempt, begun: tuple[Pending, Any] | None, is_late: bool
    ) -> bytes | memoryview | Computation:
        """Waits until there is a value, or it is this caller's turn to compute it."""
        pending, polled = (None, None) if begun is None else begun
        pause = _FIRST_PAUSE

        def poll(pending: Pending) -> Any:
            polled = pending.poll()
            if isinstance(polled, Computation):
                # In the thread that has got it, for the loop may stop before it hears of that.
                attempt.begin(polled)
            return polled

        while True:
            if pending is None:
                pending = await self._operate(self._begin)
                attempt.begin(pending)
            if is_late:
                pending.after_a_wait()
            if flight.frame.parent is not None:
                pending.within_a_computation()
            while True:
                if polled is None:
                    polled = await self._operate(functools.partial(poll, pending))
                if isinstance(polled, bytes | memoryview | Computation):
                    return polled
                if polled is None:
                    # The loop stood still, and others have gone on.
                    pending = None
                    break
                table = _tables.get(asyncio.get_running_loop(), {})
                longest = max(_LONGEST_PAUSE, len(table) * _PAUSE_PER_FLIGHT)
                await asyncio.sleep(min(polled, pause))
                pause = min(2 * pause, longest)
                polled = None

    async def _stored(self, computation: Computation) -> tuple[Any, bool]:
        """Computes the value and stores it."""
        codec = self.codec
        try:
            data, value = await codec._dumped_in_loop(self.key, await self._call())
        except Exception:
            current = await self._operate(computation.fail)
            served = MISSING if current is None else await codec._loaded_in_loop(self.key, current, MISSING)
            if served is MISSING:
                raise
            return served, False
        await self._operate(lambda: computation.store(data), len(data))
        return value, True

    async def _call(self) -> Any:
        result = self.function()
        return await result if inspect.isawaitable(result) else result

    def _begin(self) -> Pending:
        return self.codec._cache._begin(self.key, self.ttl, self.stale, self.early, self.groups)

    async def _operate(self, operation: Callable[[], Any], value_bytes: int = 0) -> Any:
        if self.lane is None and value_bytes < SHORT_BYTES:
            return operation()
        return await in_a_thread(operation, self.lane)


async def _arrival(flight: _Flight, current: _Frame | None) -> Any:
    if current is None:
        return await asyncio.shield(flight.future)
    current.awaiting.append(flight.frame)
    try:
        return await asyncio.shield(flight.future)
    finally:
        current.awaiting.remove(flight.frame)


def _ended(flight: _Flight, attempt: _Attempt, task: asyncio.Task[None]) -> None:
    """Notes the end of an attempt: if none is left and none has a value, all who wait get the last error."""
    attempt.end()
    flight.attempts.discard(task)
    error = None if task.cancelled() else task.exception()
    if flight.attempts or flight.future.done():
        return
    if error is None:
        flight.future.cancel()
    else:
        flight.future.set_exception(error)


# The mark of coroutine functions that are not functions, before Python 3.12 had one of its own.
_MARK = getattr(asyncio.coroutines, "_is_coroutine", None)


def is_coroutine_function(function: Any) -> bool:
    """Whether a call returns what is awaited: of a function, a memoized one, or an object that is called."""
    return (
        inspect.iscoroutinefunction(function)
        or (_MARK is not None and getattr(function, "_is_coroutine", None) is _MARK)
        or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))
    )


def awaitable(function: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a function for a loop: one that is not a coroutine function runs in another thread."""
    if is_coroutine_function(function):
        return function

    async def call() -> Any:
        result = await in_a_thread(function)
        return await result if inspect.isawaitable(result) else result

    return call


class _Watched:
    """What is given up if its loop stops."""

    __slots__ = ("loop", "begun", "is_asked", "has_answered")

    def __init__(self, loop: asyncio.AbstractEventLoop, begun: Pending | Computation) -> None:
        self.loop = loop
        self.begun = begun
        self.is_asked = False
        self.has_answered = False

    def _answer(self) -> None:
        self.has_answered = True

    def has_stopped(self) -> bool:
        """Whether the loop does nothing. Some loops run for a moment at a time, so that one look does not tell."""
        if self.loop.is_closed():
            return True
        if self.loop.is_running() or self.has_answered:
            self.is_asked = self.has_answered = False
            return False
        if self.is_asked:
            return True
        self.is_asked = True
        try:
            self.loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            return True  # It was closed just now.
        return False


class _Watch:
    """A thread that looks whether loops still run, and gives up what those have begun that do not.

    A loop that stops, or is closed, tells nobody. Without this it would hold its keys, and callers in other loops, threads
    and processes would wait for it as long as they wait for anybody.
    """

    def __init__(self) -> None:
        # By their ids.
        self._watched: dict[int, _Watched] = {}
        self._changed = threading.Condition()
        # Set before the thread looks for the last time: either it sees what is added, or who adds sees this.
        self._is_idle = True
        self._has_thread = False

    def add(self, loop: asyncio.AbstractEventLoop, begun: Pending | Computation) -> None:
        self._watched[id(begun)] = _Watched(loop, begun)
        if self._is_idle:
            with self._changed:
                if self._has_thread:
                    self._changed.notify()
                else:
                    try:
                        threading.Thread(target=self._run, name="haypile-watch", daemon=True).start()
                    except RuntimeError:
                        # The system starts no more threads; the next one to be watched tries again.
                        return
                    self._has_thread = True
                self._is_idle = False

    def remove(self, begun: Pending | Computation) -> None:
        self._watched.pop(id(begun), None)

    def _run(self) -> None:
        # A child of a fork has a watch of its own.
        while self is _watch:
            time.sleep(_WATCH_SECONDS)
            for number, watched in list(self._watched.items()):
                if watched.has_stopped():
                    self._watched.pop(number, None)
                    if watched.loop.is_closed():
                        _tables.pop(watched.loop, None)
                    with contextlib.suppress(Exception):
                        watched.begun.abandon()
            # Nothing stays in it until the next look.
            watched = None  # type: ignore[assignment]
            if not self._watched and self._is_over():
                return

    def _is_over(self) -> bool:
        """Waits for something to watch; returns whether there was nothing for long."""
        with self._changed:
            self._is_idle = True
            if not self._watched:
                self._changed.wait_for(lambda: not self._is_idle, _IDLE_SECONDS)
            if self._watched:
                self._is_idle = False
                return False
            self._has_thread = self._is_idle is False
            return not self._has_thread


_watch = _Watch()


def _renew() -> None:
    # The thread, and who may hold its lock, are the parent's.
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
