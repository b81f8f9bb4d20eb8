"""Identity of functions: the beginning of the keys of a memoized function, the same in each process.

A name alone does not tell functions apart: a module may define it twice, and a decorator gives its function the name of
another. So the beginning also has a hash of what the function is: its code, its defaults, the variables around it, and
the same of each function that it wraps or finds in these. Nothing counts in it how many functions there were before: it
does not depend on the order in which a program decorates them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
import types
from collections.abc import Callable
from typing import Any, overload

from haypile._encoding import Encoder, frame, put_state, text
from haypile._haypile import BoundMemoized
from haypile._names import PROGRAM, NoKey, is_found, name_of_class

# A hash of a function, in bytes.
_HASH_BYTES = 16

# Attributes of wrappers that do not change results: what functools.update_wrapper copies, and marks of coroutines.
_OF_WRAPPERS = frozenset(
    (*functools.WRAPPER_ASSIGNMENTS, "__type_params__", "__annotate__", "_is_coroutine", "_is_coroutine_mark")
)

# The cell by which annotations reach the names of their class.
_CELLS_OF_CLASSES = ("__classdict__",)

_LRU_CACHE = type(functools.lru_cache(lambda: None))
_FUNCTIONS_OF_CLASSES: tuple[type, ...] = (types.MethodDescriptorType, types.WrapperDescriptorType)
_CALLERS = ("operator.attrgetter", "operator.itemgetter", "operator.methodcaller")
_TYPE_PARAMETERS = ("typing.ParamSpec", "typing.TypeVar", "typing.TypeVarTuple")


class Prefix:
    """The beginning of a memoized function's keys, as its attribute `_prefix`.

    An object that has it in its own dict is read there. It is not there while a variable around the function has no
    value yet, such as the name of a local function that calls itself: then each use looks again.
    """

    @overload
    def __get__(self, memoized: None, owner: type) -> Prefix: ...

    @overload
    def __get__(self, memoized: object, owner: type) -> str: ...

    def __get__(self, memoized: Any, owner: type) -> Prefix | str:
        if memoized is None:
            return self
        prefix, is_final = _prefix(memoized, at_decoration=False)
        if is_final:
            vars(memoized)["_prefix"] = prefix
        return prefix


def decorate(memoized: Any, name: str | None) -> None:
    """Gives a memoized function its prefix; raises TypeError if it cannot be told apart from others."""
    memoized._name = name
    # It may have been copied from another, with the function's own attributes.
    vars(memoized).pop("_prefix", None)
    prefix, is_final = _prefix(memoized, at_decoration=True)
    if is_final:
        vars(memoized)["_prefix"] = prefix


def _prefix(memoized: Any, at_decoration: bool) -> tuple[str, bool]:
    name, is_final = memoized._name, True
    if not name:
        name, is_final = _name_of(memoized.__wrapped__, memoized._key, at_decoration)
    # Without a colon of its own, so that the keys of no other name begin with it.
    return name.replace("%", "%25").replace(":", "%3A") + ":", is_final


def name_of_function(function: Any) -> str:
    """Returns a name that tells a function from others: its own, with a hash if others may have it."""
    if isinstance(function, type):
        return _PLAIN.class_name(function)
    name = f"{_module_of(function)}.{getattr(function, '__qualname__', '<unnamed>')}"
    if "<" not in name and type(function) is not types.MethodType:
        return name
    parts: list[bytes] = []
    _FunctionEncoder(at_decoration=False).put(parts, function)
    return f"{name}#{hashlib.blake2b(b''.join(parts), digest_size=_HASH_BYTES).hexdigest()}"


def _name_of(function: Any, key: Any, at_decoration: bool) -> tuple[str, bool]:
    """Returns the name by which all processes know a function and that no other has; whether it is final."""
    qualname = getattr(function, "__qualname__", None)
    if qualname is None:
        raise TypeError(f"{function!r} has no name: give memoize(name=...)")
    module = _module_of(function)
    parts: list[bytes] = []
    encoder = _FunctionEncoder(at_decoration)
    try:
        encoder.put_part(parts, function, "the function itself")
        # Two functions that make keys may make the same key of different arguments.
        encoder.put_part(parts, key, "key=")
    except NoKey as error:
        raise TypeError(
            f"{module}.{qualname} cannot be told apart from other functions of its name: {error.variable}:"
            f" {error.reason}: give memoize(name=...), a name that no other function has"
        ) from None
    found = hashlib.blake2b(b"".join(parts), digest_size=_HASH_BYTES).hexdigest()
    return f"{module}.{qualname}#{found}", encoder.is_final


def _module_of(function: Any) -> str:
    """Returns the module of a function, by a name that no other program has.

    All programs have the same name for their own module: there it is the module that `python -m` names, or the path of
    the script.
    """
    module = getattr(function, "__module__", None) or getattr(function, "__objclass__", type(function)).__module__
    if module not in PROGRAM:
        return str(module)
    names: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    if names.get("__spec__") is not None:
        return str(names["__spec__"].name)
    return os.path.abspath(names["__file__"]) if "__file__" in names else PROGRAM[0]


class _FunctionEncoder(Encoder):
    """Writes what a function may have around it: values, and other functions."""

    def __init__(self, at_decoration: bool) -> None:
        super().__init__(typed=True)
        self.is_final = True
        self._at_decoration = at_decoration
        # Functions by their addresses, with their places: a second visit writes the place. They are kept, so that no
        # other object has the address.
        self._visited: dict[int, tuple[int, Any]] = {}

    def put_part(self, parts: list[bytes], value: Any, label: str, where: str = "") -> None:
        """Appends the bytes of a value; an error names it by this label and place, unless it names a part of it already."""
        try:
            self.put(parts, value)
        except NoKey as error:
            error.variable = error.variable or f"{label}{error.path}{where}"
            raise

    def for_unordered(self) -> Encoder:
        # Functions get their places in the order of visits, so that sets must have none.
        return _PLAIN

    def class_name(self, kind: type) -> str:
        if self._at_decoration and not is_found(kind) and "<locals>" not in kind.__qualname__:
            # A class that is being made, or whose module is, is found later.
            self.is_final = False
            return name_of_class(kind)
        return super().class_name(kind)

    def put_other(self, parts: list[bytes], value: Any) -> None:
        kind = type(value)
        if kind is types.CodeType:
            self._put_code(parts, value)
        elif kind is types.ModuleType:
            self._put_module(parts, value)
        elif kind is types.MethodType:
            self.put_all(parts, b"M", (value.__self__, value.__func__), (".__self__", ".__func__"))
        elif issubclass(kind, BoundMemoized):
            self.put_all(parts, b"M", (value.__self__, value._memoized), (".__self__", ".__func__"))
        elif kind in (staticmethod, classmethod):
            self.put_all(parts, b"W", (kind, value.__func__))
        elif kind is types.BuiltinFunctionType:
            self.put_all(parts, b"B", (value.__module__, value.__qualname__, value.__self__), ("", "", ".__self__"))
        elif kind in _FUNCTIONS_OF_CLASSES:
            self.put_all(parts, b"B", (value.__name__, value.__objclass__))
        elif kind is functools.partial:
            self._put_once(parts, value, lambda: self._put_partial(parts, value))
        elif name_of_class(kind) in _CALLERS:
            self.put_all(parts, b"o", value.__reduce__())
        elif name_of_class(kind) in _TYPE_PARAMETERS:
            frame(parts, b"T", text(value.__name__))
        elif kind is types.FunctionType:
            self._put_once(parts, value, lambda: self._put_function(parts, value))
        elif isinstance(getattr(kind, "_prefix", None), Prefix):
            self._put_once(parts, value, lambda: self._put_memoized(parts, value))
        elif kind is _LRU_CACHE:
            self._put_once(parts, value, lambda: self.put_all(parts, b"L", (value.__wrapped__,), (".__wrapped__",)))
        elif "__wrapped__" in getattr(value, "__dict__", ()) and type(kind.__call__) is types.FunctionType:
            self._put_once(parts, value, lambda: self._put_wrapper(parts, value))
        else:
            super().put_other(parts, value)

    def _put_once(self, parts: list[bytes], value: Any, put: Callable[[], None]) -> None:
        """Calls `put` for a value that may have itself among its variables; for one that was visited, appends its number."""
        visited = self._visited.get(id(value))
        if visited is not None:
            frame(parts, b"@", b"%d" % visited[0])
            return
        self._visited[id(value)] = (len(self._visited), value)
        put()

    def _put_function(self, parts: list[bytes], function: types.FunctionType) -> None:
        code = function.__code__
        named = f"{function.__module__}.{function.__qualname__}"
        inner: list[bytes] = []
        self._put_code(inner, code)
        defaults = function.__defaults__ or ()
        parameters = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
        frame(inner, b"n", b"%d" % len(defaults))
        for name, value in zip(parameters, defaults):
            self.put_part(inner, value, f"the default of parameter '{name}'", f" of {named}")
        by_name = function.__kwdefaults__ or {}
        frame(inner, b"n", b"%d" % len(by_name))
        for name in sorted(by_name):
            frame(inner, b"=", text(name))
            self.put_part(inner, by_name[name], f"the default of parameter '{name}'", f" of {named}")
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            if name in _CELLS_OF_CLASSES:
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                self.is_final = False
                frame(inner, b"E", b"")
            else:
                self.put_part(inner, value, f"the variable '{name}'", f" around {named}")
        wrapped = vars(function).get("__wrapped__")
        if wrapped is not None:
            self.put_part(inner, wrapped, f"the function that {named} wraps")
        frame(parts, b"fn", b"".join(inner))

    def _put_partial(self, parts: list[bytes], partial: functools.partial[Any]) -> None:
        self.put_all(
            parts, b"p", (partial.func, partial.args, partial.keywords), (".func", ".args", ".keywords")
        )

    def _put_code(self, parts: list[bytes], code: types.CodeType) -> None:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.put_all(parts, b"C", (code.co_code, code.co_exceptiontable, counts, names, code.co_consts))

    def _put_module(self, parts: list[bytes], module: types.ModuleType) -> None:
        name = module.__name__
        if sys.modules.get(name) is not module:
            raise NoKey(f"the module {name} is not the one that is imported by this name")
        frame(parts, b"g", text(PROGRAM[0] if name in PROGRAM else name))

    def _put_memoized(self, parts: list[bytes], memoized: Any) -> None:
        if memoized._name:
            frame(parts, b"z", text(memoized._name))
        else:
            self.put_all(parts, b"Z", (memoized.__wrapped__, memoized._key), ("", ""))

    def _put_wrapper(self, parts: list[bytes], value: Any) -> None:
        """Appends the bytes of an object that is called in the place of a function: its class, and all its attributes."""
        kind = type(value)
        inner: list[bytes] = []
        self.put_all(inner, b"c", (kind, kind.__call__))
        put_state(self, inner, value, without=_OF_WRAPPERS)
        frame(parts, b"w", b"".join(inner))


_PLAIN = Encoder(typed=True)
