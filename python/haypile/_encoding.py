"""Values as bytes, the same in each process: what is not equal has different bytes."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from haypile import _packages
from haypile._names import NoKey, is_found, name_of_class, not_found, short


class Encoder:
    """Turns values, of the types that arguments have, into bytes.

    Each is a tag, which contains no digit, the length of the data, and the data: no two sequences of values have the
    same bytes. `typed` tells 1, 1.0 and True apart.
    """

    def __init__(self, typed: bool) -> None:
        self.typed = typed

    def put(self, parts: list[bytes], value: Any) -> None:
        """Appends the bytes of a value to `parts`, as all methods here do."""
        kind = type(value)
        writer = _WRITERS.get(kind)
        if writer is not None:
            writer(self, parts, value)
        elif issubclass(kind, enum.Enum):
            self._put_member(parts, value)
        elif issubclass(kind, type):
            frame(parts, b"c", text(self.class_name(value)))
        elif hasattr(kind, "__cache_key__"):
            frame(parts, b"k", text(self.class_name(kind)))
            self.put_all(parts, b"t", (value.__cache_key__(),), (".__cache_key__()",))
        elif (writer := _standard_writer(kind)) is not None:
            writer(self, parts, value)
        elif (package := _packages.writer(kind)) is not None:
            package(self, parts, value)
        elif "__dataclass_fields__" in vars(kind):
            self._put_dataclass(parts, value)
        elif (base := _builtin_base(kind)) is not None:
            self._put_derived(parts, value, base)
        else:
            self.put_other(parts, value)

    def put_other(self, parts: list[bytes], value: Any) -> None:
        """Appends the bytes of a value of another type than this class knows; raises NoKey unless a subclass knows it."""
        raise NoKey(f"a value of type {name_of_class(type(value))} has no key")

    def put_all(
        self, parts: list[bytes], tag: bytes, values: Sequence[Any], labels: Sequence[str] | None = None
    ) -> None:
        """Appends the bytes of many values in one frame; an error has the label of the value that has no key."""
        inner: list[bytes] = []
        value = None
        try:
            for value in values:
                self.put(inner, value)
        except NoKey as error:
            place = next((index for index, held in enumerate(values) if held is value), 0)
            error.path = (labels[place] if labels else f"[{place}]") + error.path
            raise
        frame(parts, tag, b"".join(inner))

    def put_pairs(self, parts: list[bytes], tag: bytes, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Appends the bytes of the pairs of a mapping in one frame, in their order."""
        inner: list[bytes] = []
        for key, value in list(pairs):
            self.put_all(inner, b"t", (key,), (" key",))
            self.put_held(inner, key, value)
        frame(parts, tag, b"".join(inner))

    def put_held(self, parts: list[bytes], key: Any, value: Any) -> None:
        """Appends the bytes of the value that a mapping has under a key; an error has the key in its path."""
        try:
            self.put(parts, value)
        except NoKey as error:
            error.path = f"[{short(key)}]{error.path}"
            raise

    def for_unordered(self) -> Encoder:
        """Returns the encoder of values whose order differs from process to process."""
        return self

    def class_name(self, kind: type) -> str:
        """Returns the name of a class; it has to be the class that all processes find by this name."""
        if not is_found(kind):
            raise not_found(kind)
        return name_of_class(kind)

    def _put_member(self, parts: list[bytes], member: enum.Enum) -> None:
        kind = type(member)
        frame(parts, b"e", text(self.class_name(kind)))
        if isinstance(member, enum.Flag):
            # Values of several bits, or of none that is named, have no name of their own.
            self.put(parts, member.value)
        elif kind._member_map_.get(member._name_) is member:
            frame(parts, b"s", text(member._name_))
        else:
            raise NoKey(f"{short(member)} is not a member that {name_of_class(kind)} has by name")

    def _put_dataclass(self, parts: list[bytes], value: Any) -> None:
        kind = type(value)
        if _origin(vars(kind).get("__eq__")) != _generated():
            raise NoKey(f"{name_of_class(kind)} does not compare by its fields (eq=False, or an __eq__ of its own)")
        frame(parts, b"d", text(self.class_name(kind)))
        names = [field.name for field in dataclasses.fields(value)]
        self.put_all(parts, b"t", [getattr(value, name) for name in names], [f".{name}" for name in names])

    def _put_derived(self, parts: list[bytes], value: Any, base: type) -> None:
        """Appends the bytes of a named tuple, or of an instance of a subclass of str, int, float or bytes."""
        kind = type(value)
        if kind.__eq__ is not base.__eq__:
            raise NoKey(f"{name_of_class(kind)} compares by an __eq__ of its own")
        # A named tuple of the same fields is equal, whatever made its class; a class with methods of its own may do
        # something else with an equal value.
        name = name_of_class(kind) if base is tuple and _has_fields_alone(kind) else self.class_name(kind)
        frame(parts, b"D", text(name))
        if base is tuple:
            fields = kind._fields
            self.put_all(parts, b"t", fields)
            self.put_all(parts, b"t", tuple.__getitem__(value, slice(None)), [f".{name}" for name in fields])
        else:
            _WRITERS[base](self, parts, _plain(value, base))
        put_state(self, parts, value)


def put_state(encoder: Encoder, parts: list[bytes], value: Any, without: Iterable[str] = ()) -> None:
    """Appends the bytes of the attributes that an object has itself, in its dict and its slots."""
    state = dict(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            # Others see a private slot by a longer name.
            name = f"_{base.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    names = sorted(name for name in state if name not in without)
    if names:
        encoder.put_all(parts, b"N", names)
        encoder.put_all(parts, b"t", [state[name] for name in names], [f".{name}" for name in names])


def frame(parts: list[bytes], tag: bytes, data: bytes) -> None:
    """Appends a frame to `parts`: the tag, the length of the data, and the data."""
    parts.append(b"%b%d:%b" % (tag, len(data), data))


def text(value: str) -> bytes:
    """Returns the bytes of a text, which may be the name of a file that is not text."""
    return value.encode("utf-8", "surrogatepass")


def _put_text(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"s", value.encode("utf-8", "surrogatepass"))


def _put_int(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    # In hexadecimal digits, of which Python writes any number.
    frame(parts, b"int" if encoder.typed else b"i", b"%x" % value)


def _put_bool(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"bool" if encoder.typed else b"i", b"%d" % value)


def _put_float(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    if encoder.typed:
        frame(parts, b"float", repr(value).encode())
    elif value.is_integer():
        # As for functools.lru_cache, 1, 1.0 and True are one.
        frame(parts, b"i", b"%x" % int(value))
    else:
        frame(parts, b"f", repr(value).encode())


def _put_none(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"n", b"")


def _put_bytes(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"b", bytes(value))


def _put_view(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    if value.format == "B" and value.ndim == 1:
        frame(parts, b"b", value.tobytes())
    else:
        # Views of the same bytes in other formats are not equal.
        encoder.put_all(parts, b"v", (value.format, value.shape, value.tobytes()))


def _put_tuple(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"t", value)


def _put_list(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"l", value)


def _put_set(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    unordered = encoder.for_unordered()
    encoded = []
    # A list: methods of elements may run, and other threads may change what holds them.
    for element in list(value):
        inner: list[bytes] = []
        unordered.put_all(inner, b"t", (element,), (" element",))
        encoded.append(inner[0])
    frame(parts, b"u", b"".join(sorted(encoded)))


def _put_dict(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    put_mapping(encoder, parts, b"m", value)


def put_mapping(encoder: Encoder, parts: list[bytes], tag: bytes, value: Any) -> None:
    """Appends the bytes of a mapping, which are the same for each order of its pairs."""
    unordered = encoder.for_unordered()
    keyed: list[tuple[bytes, Any, Any]] = []
    for key, held in list(value.items()):
        encoded: list[bytes] = []
        unordered.put_all(encoded, b"t", (key,), (" key",))
        keyed.append((encoded[0], key, held))
    # The values too are visited in an order that all processes have.
    keyed.sort(key=lambda entry: entry[0])
    pairs = []
    for first, key, held in keyed:
        inner = [first]
        encoder.put_held(inner, key, held)
        pairs.append(b"".join(inner))
    frame(parts, tag, b"".join(pairs))


def _put_slice(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"r", (value.start, value.stop, value.step), (".start", ".stop", ".step"))


def _put_singleton(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"S", repr(value).encode())


def _put_repr(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"x", text(f"{type(value).__name__} {value!r}"))


def _put_str(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    frame(parts, b"x", text(f"{type(value).__name__} {value}"))


def _put_time(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    zone = value.tzinfo
    if zone is not None:
        # Zones of a program's own may have any text.
        writer = _WRITERS.get(type(zone)) or _standard_writer(type(zone))
        if writer is _put_zone:
            _check_zone(zone)
        elif type(zone) is not datetime.timezone:
            raise NoKey(f"a time in a zone of type {name_of_class(type(zone))} has no key")
    _put_repr(encoder, parts, value)


def _put_zone(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    _check_zone(value)
    _put_repr(encoder, parts, value)


def _check_zone(zone: Any) -> None:
    if zone.key is None:
        raise NoKey("a zoneinfo.ZoneInfo without a key has no key")
    if type(zone)(zone.key) is not zone:
        # From a file that somebody has given this name.
        raise NoKey(f"a zoneinfo.ZoneInfo that is not the zone {zone.key} of this system has no key")


def _put_fraction(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"F", (value.numerator, value.denominator))


def _put_range(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"R", (value.start, value.stop, value.step))


def _put_pattern(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"P", (value.pattern, value.flags))


def _put_ordered_dict(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_pairs(parts, b"O", value.items())


def _put_default_dict(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    # A function may read a key that is missing.
    encoder.put_all(parts, b"mf", (value.default_factory,), (".default_factory",))
    put_mapping(encoder, parts, b"md", value)


def _put_counter(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    put_mapping(encoder, parts, b"mc", value)


def _put_deque(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"q", (value.maxlen, list(value)), (".maxlen", ""))


_Writer = Callable[[Encoder, list[bytes], Any], None]

# By the exact type.
_WRITERS: dict[type, _Writer] = {
    str: _put_text,
    int: _put_int,
    bool: _put_bool,
    float: _put_float,
    type(None): _put_none,
    bytes: _put_bytes,
    bytearray: _put_bytes,
    memoryview: _put_view,
    tuple: _put_tuple,
    list: _put_list,
    set: _put_set,
    frozenset: _put_set,
    dict: _put_dict,
    slice: _put_slice,
    range: _put_range,
    complex: _put_repr,
    datetime.date: _put_repr,
    datetime.datetime: _put_time,
    datetime.time: _put_time,
    datetime.timedelta: _put_repr,
    datetime.timezone: _put_repr,
    types.EllipsisType: _put_singleton,
    types.NotImplementedType: _put_singleton,
}

# Types of the standard library, by name: importing its modules for them would cost every program the time.
_STANDARD: dict[str, _Writer] = {
    "collections.Counter": _put_counter,
    "collections.OrderedDict": _put_ordered_dict,
    "collections.defaultdict": _put_default_dict,
    "collections.deque": _put_deque,
    "decimal.Decimal": _put_repr,
    "fractions.Fraction": _put_fraction,
    "ipaddress.IPv4Address": _put_str,
    "ipaddress.IPv4Interface": _put_str,
    "ipaddress.IPv4Network": _put_str,
    "ipaddress.IPv6Address": _put_str,
    "ipaddress.IPv6Interface": _put_str,
    "ipaddress.IPv6Network": _put_str,
    "pathlib.PosixPath": _put_str,
    "pathlib.PurePosixPath": _put_str,
    "pathlib.PureWindowsPath": _put_str,
    "pathlib.WindowsPath": _put_str,
    "re.Pattern": _put_pattern,
    "uuid.UUID": _put_repr,
    "zoneinfo.ZoneInfo": _put_zone,
}


def _standard_writer(kind: type) -> _Writer | None:
    # Python 3.13 has the paths in a module of their own.
    writer = _STANDARD.get(name_of_class(kind).replace("pathlib._local.", "pathlib."))
    if writer is None or not is_found(kind):
        return None
    # These types live as long as their modules.
    _WRITERS[kind] = writer
    return writer


def _builtin_base(kind: type) -> type | None:
    """Returns the built-in type whose value an instance of this one has, if that says all that it compares."""
    for base in (str, int, float, bytes):
        if issubclass(kind, base):
            return base
    fields = getattr(kind, "_fields", None)
    is_named = issubclass(kind, tuple) and type(fields) is tuple and all(type(name) is str for name in fields)
    return tuple if is_named else None


def _has_fields_alone(kind: Any) -> bool:
    """Whether a class of named tuples has nothing but what its fields make of it."""
    return kind.__bases__ == (tuple,) and _OF_NAMED_TUPLES.union(kind._fields).issuperset(vars(kind))


# Attributes that each class of named tuples has, of some version of Python.
_OF_NAMED_TUPLES = frozenset(vars(collections.namedtuple("Example", ()))).union(
    ("__annotations__", "__annotate__", "__annotations_cache__", "__firstlineno__", "__orig_bases__", "__static_attributes__")
)


def _plain(value: Any, base: type) -> Any:
    """Returns a value of a built-in type, whatever a subclass makes of its methods."""
    if base is str:
        return str.__str__(value)
    if base is int:
        return int.__int__(value)
    if base is float:
        return float.__float__(value)
    return memoryview(value).tobytes()


# The origin of the functions that dataclasses generate to compare, once it was needed.
_generated_by: object = None


def _generated() -> object:
    """Returns the origin of the functions that dataclasses generate to compare."""
    global _generated_by
    if _generated_by is None:
        _generated_by = _origin(dataclasses.make_dataclass("Example", ()).__eq__)
    return _generated_by


def _origin(function: Any) -> object:
    code = getattr(function, "__code__", None)
    return code and (code.co_filename, code.co_qualname)
