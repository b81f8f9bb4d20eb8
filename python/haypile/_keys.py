"""Keys of calls: their arguments as bytes, the same in each process and version of Python."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from haypile._encoding import Encoder, frame, text
from haypile._names import NoKey

# A hash of arguments, in bytes: two calls that are told apart share one in 2^64 of them.
_HASH_BYTES = 16

_UNTYPED = Encoder(typed=False)
_TYPED = Encoder(typed=True)


def of_call(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], typed: bool) -> str:
    """Returns a hash of arguments; errors name the function and its parameter."""
    parts: list[bytes] = []
    encoder = _TYPED if typed else _UNTYPED
    try:
        for value in args:
            # Most arguments are texts and integers: as Encoder writes them.
            kind = type(value)
            if kind is str:
                data = value.encode("utf-8", "surrogatepass")
                parts.append(b"s%d:%b" % (len(data), data))
            elif kind is int and not typed:
                data = b"%x" % value
                parts.append(b"i%d:%b" % (len(data), data))
            else:
                encoder.put(parts, value)
        for name in sorted(named):
            frame(parts, b"=", text(name))
            encoder.put(parts, named[name])
    except NoKey as error:
        raise _explained(error, encoder, function, args, named) from None
    except RecursionError:
        named_as = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"an argument of {named_as} contains itself, or is too deep, and has no key") from None
    return hashlib.blake2b(b"".join(parts), digest_size=_HASH_BYTES).hexdigest()


def _explained(
    error: NoKey, encoder: Encoder, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> TypeError:
    """Returns an error that says which argument of which function has no key."""
    argument = "an argument"
    for label, value in _labelled(function, args, named):
        try:
            encoder.put([], value)
        except NoKey as found:
            error, argument = found, f"argument {label}{found.path}"
            break
    name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
    return TypeError(f"{argument} of {name}: {error.reason}: {error.advice}")


def _labelled(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns arguments with the names of their parameters, or their places."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some functions of Python's own have none.
        parameters = []
    several = next((f"*{p.name}" for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    labelled = []
    for place, value in enumerate(args):
        if place < len(names):
            label = f"'{names[place]}'"
        else:
            label = f"{place + 1}" if several is None else f"'{several}'[{place - len(names)}]"
        labelled.append((label, value))
    return labelled + [(f"'{name}'", named[name]) for name in sorted(named)]
