"""JSON in pieces: the standard library's, which lets other threads run while it reads or writes a large value.

Its encoder and its decoder hold the GIL from the first byte to the last, which stops an event loop for 100 ms and more
with 10 MB. Here each of their calls gets about 64 KiB, and between these a thread that waits for the GIL gets it.
Results and errors are those of the standard library.

One piece are: a text of a subclass of str, a dict of a class with `items` of its own, a key, an integer, and the last
copy of a text that is read. A value with an error is read or written a second time, all at once, so that the error is
the standard library's. A dict of hundreds of thousands of keys holds the GIL for some milliseconds where it grows.
Freeing a value and collecting garbage also hold the GIL, and are not in the hands of this module.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Any

from haypile._haypile import _is_short, _json_outline, _short_run

# Up to this much is one piece: the estimated cost of an object (see is_short), or bytes of JSON.
SHORT = 1 << 16
# Runs of items and members that the decoder gets are of once or twice this length.
CHUNK_BYTES = 1 << 15
# Characters of a text that the encoder gets.
CHUNK_CHARACTERS = 1 << 15
# Items of a container that are taken from it at once. More are never short.
RUN_ITEMS = 1 << 10
# Pieces of a JSON text that are freed at once.
FREED_PIECES = 16
# Containers inside of each other that are written in pieces; those further inside are one piece.
DEEPEST = 200
# Longest time for which the GIL is kept in pieces of less.
TURN_SECONDS = 1e-3
# The GIL is given up for this long. A thread that waits for it wakes up in this time; none does in no time.
PAUSE_SECONDS = 2e-5

# The methods of a JSONEncoder and a JSONDecoder, which json.dumps and json.loads call.
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_decode = json.JSONDecoder().decode
# The encoder checks the items of other methods.
_DICT_ITEMS = (dict.items, OrderedDict.items)


def is_short(value: Any, budget: int = SHORT) -> bool:
    """Returns whether a value costs at most `budget`: 64 for each object in it, and 1 for each character.

    Stops as soon as it costs more, and never raises. Keys are objects as well. An object that is not a str, dict,
    list or tuple costs 64.
    """
    return _is_short(value, budget)


def dumps(value: Any) -> bytes:
    """Returns the JSON of a value, in UTF-8 and without spaces.

    If another thread changes the value, the JSON can have some of its changes and not others.
    """
    if not _is_short(value, SHORT):
        try:
            return _Writer().dumps(value)
        except Exception:
            pass  # The next line raises what the standard library raises, or it succeeds.
    return _encode(value).encode()


def loads(data: bytes | bytearray | memoryview) -> Any:
    """Returns the value of a JSON text."""
    data = copied(data)
    if len(data) > SHORT:
        outline = _json_outline(data, CHUNK_BYTES)
        if outline is not None:
            try:
                return _built(data, outline)
            except Exception:
                pass  # The next line raises what the standard library raises, or it succeeds.
    return json.loads(data)


class _Turn:
    """The time for which a thread has kept the GIL."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = time.perf_counter() + TURN_SECONDS

    def check(self) -> None:
        """Lets other threads run if it is their turn."""
        # Without this they would get the GIL after the switch interval, of 5 ms.
        if time.perf_counter() > self._end:
            time.sleep(PAUSE_SECONDS)
            self._end = time.perf_counter() + TURN_SECONDS


class _Unusual(Exception):
    """The standard library has to do this."""


class _Writer:
    """The pieces of the JSON of a value."""

    __slots__ = ("_path", "_pieces", "_turn")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        # The containers around the current object.
        self._path: set[int] = set()
        self._turn = _Turn()

    def dumps(self, value: Any) -> bytes:
        self._write(value)
        # Copies without the GIL.
        data = b"".join(self._pieces)
        # To free all of them at once takes some milliseconds.
        while self._pieces:
            del self._pieces[-FREED_PIECES:]
            self._turn.check()
        return data

    def _write(self, value: Any) -> None:
        kind = type(value)
        if kind is str:
            self._write_text(value)
        elif len(self._path) >= DEEPEST:
            self._add(_encode(value))
        elif issubclass(kind, dict) and kind.items in _DICT_ITEMS:
            self._write_items(value, iter(value.items()), is_dict=True)
        elif issubclass(kind, (list, tuple)):
            self._write_items(value, iter(value), is_dict=False)
        else:
            self._add(_encode(value))

    def _add(self, text: str) -> None:
        self._pieces.append(text.encode())
        self._turn.check()

    def _write_text(self, text: str) -> None:
        self._pieces.append(b'"')
        for start in range(0, len(text), CHUNK_CHARACTERS):
            self._add(_encode(text[start : start + CHUNK_CHARACTERS])[1:-1])
        self._pieces.append(b'"')

    def _write_items(self, container: Any, iterator: Iterator[Any], *, is_dict: bool) -> None:
        if id(container) in self._path:
            raise _Unusual
        self._path.add(id(container))
        opener, closer = ("{", b"}") if is_dict else ("[", b"]")
        separator = opener
        while items := list(islice(iterator, RUN_ITEMS)):
            start = 0
            while start < len(items):
                length = _short_run(items, start, SHORT)
                run = items[start : start + max(length, 1)]
                if length == 0:
                    if is_dict:
                        key, value = run[0]
                        # The key, its quotes and its colon.
                        self._add(separator + _encode({key: 0})[1:-2])
                    else:
                        (value,) = run
                        self._add(separator)
                    self._write(value)
                elif is_dict:
                    members = dict(run)
                    if len(members) != length:
                        raise _Unusual
                    self._add(separator + _encode(members)[1:-1])
                else:
                    self._add(separator + _encode(run)[1:-1])
                separator = ","
                start += len(run)
        if separator == opener:
            self._add(opener)
        self._pieces.append(closer)
        self._path.remove(id(container))


def copied(data: bytes | bytearray | memoryview) -> bytes:
    """Returns the bytes of a buffer."""
    if isinstance(data, bytes):
        return data
    with memoryview(data) as view, view.cast("B") as octets:
        # Copies of pieces with the GIL, and all of them without it.
        return b"".join([bytes(octets[start : start + SHORT]) for start in range(0, len(octets), SHORT)])


def _built(data: bytes, outline: list[tuple[str, int, int]]) -> Any:
    """Returns the value of a JSON text by the steps of its outline."""
    turn = _Turn()
    value: Any = None
    # The containers that are begun, with their keys.
    containers: list[tuple[str, Any, Any]] = []
    for step, start, end in outline:
        if step == ".":
            kind, _, container = containers[-1]
            piece = str(memoryview(data)[start:end], "utf-8", "surrogatepass")
            if kind == '"':
                container.append(_decode(f'"{piece}"'))
            else:
                part = _decode(f"[{piece}]" if kind == "[" else f"{{{piece}}}")
                if not part:
                    raise _Unusual  # A comma too many.
                if kind == "[":
                    container += part
                else:
                    container.update(part)
            turn.check()
        elif step == "]":
            kind, key, value = containers.pop()
            if kind == '"':
                value = "".join(value)
            if containers:
                outer_kind, _, outer = containers[-1]
                if outer_kind == "[":
                    outer.append(value)
                else:
                    outer[key] = value
        else:
            key = None
            if containers and containers[-1][0] == "{":
                key = _decode(str(data[start:end], "utf-8", "surrogatepass"))
                if type(key) is not str:
                    raise _Unusual
            containers.append((step, key, {} if step == "{" else []))
    return value
