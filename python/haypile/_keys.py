"""Keys of calls: their arguments as bytes, the same in each process and version of Python."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import types
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Set
from typing import Any

# The module of the program, by its name there and in processes that multiprocessing starts.
PROGRAM = ("__main__", "__mp_main__")

# A hash of arguments, in bytes: two calls that are told apart share one in 2^64 of them.
_HASH_BYTES = 16


def of_call(args: tuple[Any, ...], named: dict[str, Any], typed: bool) -> str:
    """Returns a hash of arguments."""
    parts: list[bytes] = []
    for value in args:
        _put(parts, value, typed)
    for name in sorted(named):
        _frame(parts, b"=", name.encode())
        _put(parts, named[name], typed)
    return hashlib.blake2b(b"".join(parts), digest_size=_HASH_BYTES).hexdigest()


def of_function(function: Callable[..., Any]) -> str:
    """Returns a hash of what a function does, for one whose name others have as well: its code, its defaults, and the
    values of the variables around it as they are now.
    """
    parts: list[bytes] = []
    _put_code(parts, function.__code__)
    _put(parts, function.__defaults__, True)
    _put(parts, function.__kwdefaults__, True)
    for cell in function.__closure__ or ():
        try:
            _put(parts, cell.cell_contents, True)
        except ValueError:
            # It gets its value later, as the function's own name does.
            _frame(parts, b"v", b"")
    return hashlib.blake2b(b"".join(parts), digest_size=_HASH_BYTES).hexdigest()


def _put_code(parts: list[bytes], code: types.CodeType) -> None:
    _frame(parts, b"C", code.co_code)
    _frame(parts, b"N", "\0".join(code.co_names).encode())
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            _put_code(parts, value)
        elif isinstance(value, frozenset):
            # Its order differs from process to process.
            _frame(parts, b"K", repr(sorted(map(repr, value))).encode())
        else:
            _frame(parts, b"K", repr(value).encode())


def _frame(parts: list[bytes], tag: bytes, data: bytes) -> None:
    # With its length, so that no two sequences of parts are the same bytes.
    parts.append(b"%b%d:" % (tag, len(data)))
    parts.append(data)


def _put(parts: list[bytes], value: Any, typed: bool) -> None:
    kind = type(value)
    if kind is str:
        _frame(parts, b"s", value.encode("utf-8", "surrogatepass"))
    elif kind in (int, bool, float):
        _put_number(parts, value, typed)
    elif value is None:
        _frame(parts, b"n", b"")
    elif kind in (bytes, bytearray, memoryview):
        _frame(parts, b"b", bytes(value))
    elif kind in (tuple, list):
        _put_all(parts, b"t" if kind is tuple or not typed else b"l", value, typed)
    elif isinstance(value, enum.Flag):
        # Values of several bits, or of none that is named, have no name of their own.
        _frame(parts, b"e", _name(kind).encode())
        _put(parts, value.value, typed)
    elif isinstance(value, enum.Enum):
        _frame(parts, b"e", f"{_name(type(value))}.{value.name}".encode())
    elif isinstance(value, type):
        _frame(parts, b"c", _name(value).encode())
    elif hasattr(value, "__cache_key__"):
        _frame(parts, b"k", _name(kind).encode())
        _put(parts, value.__cache_key__(), typed)
    elif isinstance(value, (Set, Mapping)) and kind in (set, frozenset, dict):
        _put_unordered(parts, value, typed)
    elif kind is slice:
        _put_all(parts, b"r", (value.start, value.stop, value.step), typed)
    elif kind in _BY_TEXT and _has_known_zone(value):
        _frame(parts, b"x", f"{kind.__name__} {value!r}".encode())
    elif "__dataclass_fields__" in vars(kind):
        _frame(parts, b"d", _name(kind).encode())
        _put_all(parts, b"t", [getattr(value, field.name) for field in dataclasses.fields(value)], typed)
    else:
        raise TypeError(
            f"an argument of type {_name(kind)} has no key: give memoize(key=...), a function of the same"
            " arguments that returns a key, or the type a method __cache_key__ that returns a simple value"
        )


# Types whose repr is their value.
_BY_TEXT = frozenset(
    (
        complex,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
        decimal.Decimal,
        fractions.Fraction,
        range,
        uuid.UUID,
    )
)


def _has_known_zone(value: Any) -> bool:
    """Whether the text of a time tells its zone: zones of a program's own may have any."""
    zone = getattr(value, "tzinfo", None)
    is_known = type(zone) is datetime.timezone or (type(zone) is zoneinfo.ZoneInfo and zone.key is not None)
    return zone is None or is_known


def _put_number(parts: list[bytes], value: int | float, typed: bool) -> None:
    if typed:
        _frame(parts, type(value).__name__.encode(), repr(value).encode())
    elif isinstance(value, float) and not value.is_integer():
        _frame(parts, b"f", repr(value).encode())
    else:
        # As for functools.lru_cache, 1, 1.0 and True are one.
        _frame(parts, b"i", b"%d" % int(value))


def _put_all(parts: list[bytes], tag: bytes, values: Any, typed: bool) -> None:
    inner: list[bytes] = []
    for value in values:
        _put(inner, value, typed)
    _frame(parts, tag, b"".join(inner))


def _put_unordered(parts: list[bytes], value: Any, typed: bool) -> None:
    # Lists: methods of elements may run, and other threads may change what holds them.
    pairs = list(value.items()) if isinstance(value, Mapping) else [(element,) for element in list(value)]
    encoded = []
    for pair in pairs:
        inner: list[bytes] = []
        _put_all(inner, b"t", pair, typed)
        encoded.append(b"".join(inner))
    _frame(parts, b"m" if isinstance(value, Mapping) else b"u", b"".join(sorted(encoded)))


def _name(kind: type) -> str:
    module = PROGRAM[0] if kind.__module__ in PROGRAM else kind.__module__
    return f"{module}.{kind.__qualname__}"
