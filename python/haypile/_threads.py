"""Waiting in other threads than that of an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def callable_from_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function for other threads: if it is a coroutine function, it runs in the present loop."""
    if not inspect.iscoroutinefunction(function):
        return function
    loop = asyncio.get_running_loop()
    return lambda *args, **named: asyncio.run_coroutine_threadsafe(function(*args, **named), loop).result()


def in_a_thread(work: Callable[[], _Result]) -> Awaitable[_Result]:
    """Awaits what may wait, in a thread of its own: in a pool, those that wait could keep out those that they
    wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

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

    def run() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (work(), None)
        except BaseException as error:  # noqa: BLE001 - the awaiting task raises it
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # The loop was closed: nobody waits any more.

    threading.Thread(target=run, name="haypile-async", daemon=True).start()
    return done
