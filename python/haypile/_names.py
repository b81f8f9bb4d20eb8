"""Names of classes, and the error for values that have no key."""

from __future__ import annotations

import sys
from typing import Any

# The module of the program, by its name there and in processes that multiprocessing starts.
PROGRAM = ("__main__", "__mp_main__")

# The flag of types that are made at run time (Py_TPFLAGS_HEAPTYPE).
_MADE_AT_RUN_TIME = 1 << 9

_NEEDS_METHOD = (
    "give memoize(key=...), a function of the same arguments that returns a key, or the type a method __cache_key__"
    " that returns a simple value"
)


class NoKey(TypeError):
    """A value has no bytes that are the same in every process and that no other value has."""

    def __init__(self, reason: str, advice: str = _NEEDS_METHOD) -> None:
        super().__init__(f"{reason}: {advice}")
        self.reason = reason
        self.advice = advice
        # Place of the value in the one that was asked for, such as "[0].name".
        self.path = ""
        # The variable or parameter of a function that has it.
        self.variable: str | None = None


def short(value: Any) -> str:
    """Returns the text of a value in errors."""
    try:
        shown = repr(value)
    except Exception:
        # Such as that of a number of more digits than Python writes.
        return f"<{type(value).__name__}>"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def name_of_class(kind: type) -> str:
    """Returns the name of a class, by which it need not be found."""
    module = PROGRAM[0] if kind.__module__ in PROGRAM else kind.__module__
    return f"{module}.{kind.__qualname__}"


def is_found(kind: type) -> bool:
    """Whether this class is the one that its name finds; each process then has the same one by this name."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    # Such as that of None: Python's own, whose names are not all in a module.
    return found is kind or (kind.__module__ == "builtins" and not kind.__flags__ & _MADE_AT_RUN_TIME)


def not_found(kind: type) -> NoKey:
    """Returns the error for a class that its name does not find."""
    name = name_of_class(kind)
    origin = "is made in a function" if "<locals>" in name else "is not what its module has by this name"
    return NoKey(
        f"the class {name} {origin}, so that another class may have its name",
        "define it once, at the top level of a module, or give memoize(key=...), a function of the same arguments that"
        " returns a key",
    )
