"""Values of numpy and pydantic as bytes; neither is imported here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from haypile._names import NoKey, name_of_class

if TYPE_CHECKING:
    from haypile._encoding import Encoder

# Kinds of numpy's types whose bytes are their value; others hold addresses.
_KINDS_BY_BYTES = frozenset("biufcSUmMV")


# Packages of scalars whose elements are all that they are; subclasses of a program may be more.
_SCALARS = ("numpy", "ml_dtypes")


def writer(kind: type) -> Callable[[Encoder, list[bytes], Any], None] | None:
    """Returns the function that writes values of a type of these packages."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if issubclass(kind, getattr(numpy, "generic", ())) and kind.__module__.partition(".")[0] in _SCALARS:
            return _put_scalar
        # Subclasses, such as masked arrays, are more than their elements.
        if kind is getattr(numpy, "ndarray", None):
            return _put_array
    pydantic = sys.modules.get("pydantic.main")
    if pydantic is not None and issubclass(kind, getattr(pydantic, "BaseModel", ())):
        # Models of its version 1 are other classes.
        return _put_model if hasattr(kind, "model_fields") else None
    return None


def _put_scalar(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"np", (_dtype(value), _elements(value)))


def _put_array(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    encoder.put_all(parts, b"nda", (_dtype(value), value.shape, _elements(value)))


def _dtype(value: Any) -> tuple[str, str]:
    dtype = value.dtype
    if dtype.hasobject or dtype.kind not in _KINDS_BY_BYTES:
        raise NoKey(f"a value of numpy's type {dtype} has no key")
    # The first has the order of bytes, the second the names of fields and the types of other packages.
    return (dtype.str, repr(dtype))


def _elements(value: Any) -> Any:
    # The bytes of a long double have some that are not set.
    return [repr(element) for element in value.flat] if value.dtype.char in "gG" else value.tobytes()


def _put_model(encoder: Encoder, parts: list[bytes], value: Any) -> None:
    kind = type(value)
    own = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    if own.__module__.partition(".")[0] != "pydantic":
        raise NoKey(f"the model {name_of_class(kind)} compares by an __eq__ of its own")
    # A generic model with its types is made when it is needed; what it is made from has a name.
    origin = value.__pydantic_generic_metadata__["origin"] or kind
    encoder.put_all(parts, b"pm", (encoder.class_name(origin), kind.__qualname__))
    fields = kind.model_fields
    # Others, such as cached properties, are not compared.
    held = {name: field for name, field in vars(value).items() if name in fields}
    for values in (held, value.__pydantic_extra__ or {}, value.__pydantic_private__ or {}):
        names = sorted(values)
        encoder.put_all(parts, b"N", names)
        encoder.put_all(parts, b"t", [values[name] for name in names], [f".{name}" for name in names])
