"""How objects become bytes."""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from haypile import _identity


class Serializer(NamedTuple):
    """A pair of functions: to bytes, and back."""

    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]
    # Whether loading runs what the bytes say.
    is_unsafe: bool = False
    # What the bytes are, the same in each process: a signature is valid for no others.
    name: str = ""


def _json_dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _pickle_dumps(value: Any) -> bytes:
    # Integers are digits, which counters count; no pickle of this protocol begins with one.
    if type(value) is int and 0 <= value < 1 << 64:
        return b"%d" % value
    return pickle.dumps(value, protocol=5)


def _pickle_loads(data: bytes) -> Any:
    return int(data) if data.isdigit() else pickle.loads(data)


def _msgpack() -> Serializer:
    try:
        msgpack: Any = importlib.import_module("msgpack")
    except ImportError:
        raise ImportError("serializer='msgpack' needs the package: pip install msgpack") from None

    def dumps(value: Any) -> bytes:
        # As for pickles. MessagePack has one byte for a small integer, which can be a digit, so that integers of
        # other types are digits as well; it never has digits alone for anything else.
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
            return b"%d" % value
        data: bytes = msgpack.packb(value, use_bin_type=True)
        return data

    def loads(data: bytes) -> Any:
        return int(data) if data.isdigit() else msgpack.unpackb(data, raw=False, strict_map_key=False)

    return Serializer(dumps, loads, name="msgpack")


def named(serializer: Any) -> Serializer:
    """Returns the serializer of this name, or of this pair of functions."""
    if isinstance(serializer, Serializer):
        return serializer
    if serializer == "json":
        return Serializer(_json_dumps, json.loads, name="json")
    if serializer == "pickle":
        return Serializer(_pickle_dumps, _pickle_loads, is_unsafe=True, name="pickle")
    if serializer == "msgpack":
        return _msgpack()
    if isinstance(serializer, str):
        raise ValueError(
            f"serializer {serializer!r} is unknown: it is 'json', 'msgpack', 'pickle' or a pair of functions"
        )
    dumps, loads = serializer
    return Serializer(dumps, loads)


def name_of(serializer: Serializer) -> str:
    """Returns what tells the bytes of a serializer from those of others, the same in each process."""
    if serializer.name:
        return serializer.name
    try:
        return f"{_identity.name_of_function(serializer.dumps)} {_identity.name_of_function(serializer.loads)}"
    except TypeError as error:
        raise TypeError(
            f"values cannot be signed for a serializer that cannot be told apart from others: {error}: give"
            " haypile.Serializer(dumps, loads, name=...)"
        ) from None
