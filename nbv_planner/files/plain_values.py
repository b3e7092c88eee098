"""Values of dataclasses as JSON holds them, to the last bit, and back."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import math
import types
import typing
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from nbv_planner.errors import StateFileError, cut, reason, shown


def to_plain(value: Any) -> Any:
    """A value of a fact as JSON holds it, to the last bit; :func:`from_plain` is the inverse.

    Dataclasses become a dict of their fields, enumerations their value, tuples lists, arrays their
    bytes. NaN is null.
    """
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {
            field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
        text = base64.b64encode(little.tobytes()).decode()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "base64": text}
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Mapping):
        return {str(name): to_plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    return value


def deflated(content: bytes) -> str:
    """Bytes as a short text; :func:`inflated` is the inverse."""
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def inflated(text: str, size: int, name: str) -> bytes:
    """The `size` bytes that :func:`deflated` wrote; `name` is for messages.

    Raises:
        ValueError: the data are damaged or of another size; no more than `size` bytes are unpacked.
    """
    try:
        content = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"{name}: {error}") from error
    if len(content) != size:
        raise ValueError(f"{name}: {len(content)} bytes at least, must be {size}")
    return content


def from_plain(kind: Any, value: Any, name: str = "fact") -> Any:
    """The value of a type (`kind`) that :func:`to_plain` described; `name` is that of its place,
    for messages.

    Raises:
        StateFileError: `content`: the value does not fit; names the place, the value and what is
        allowed.
    """
    kind = getattr(kind, "__value__", kind)  # NDArray is a type statement's alias since numpy 2.5
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in parts:
            return None
        return from_plain(next(part for part in parts if part is not type(None)), value, name)
    try:
        if dataclasses.is_dataclass(kind):
            return _instance(kind, value, name)
        if origin in (tuple, list):
            return _sequence(origin, parts, value, name)
        if origin in (dict, Mapping, typing.get_origin(Mapping[str, Any])):
            return {
                str(key): from_plain(parts[1], one, f"{name}.{key}") for key, one in value.items()
            }
        if origin is np.ndarray:
            return _array(value)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind(value)
    except StateFileError:
        raise
    # whatever values of other types and constructors that check theirs lead to
    except Exception as error:
        raise StateFileError(
            "content", f"{name}: {shown(value)} is not valid ({cut(reason(error))})"
        ) from error
    return _scalar(kind, value, name)


@cache
def _types_of(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, localns={"np": np, "Any": Any})  # for aliases of arrays


def _instance(cls: Any, value: Any, name: str) -> Any:
    hints = _types_of(cls)
    fields = dataclasses.fields(cls)
    if isinstance(value, dict):  # what an older version did not have is as it was then
        usual = {one.name: one.default for one in fields if one.default is not dataclasses.MISSING}
        value = {**{own: to_plain(default) for own, default in usual.items()}, **value}
    if not isinstance(value, dict) or value.keys() != {field.name for field in fields}:
        wanted = ", ".join(field.name for field in fields)
        raise StateFileError("content", f"{name}: {shown(value)} must have the fields {wanted}")
    found = {
        field.name: from_plain(hints[field.name], value[field.name], f"{name}.{field.name}")
        for field in fields
    }
    instance = cls(**{field.name: found[field.name] for field in fields if field.init})
    for field in fields:
        if not field.init:
            object.__setattr__(instance, field.name, found[field.name])
    return instance


def _sequence(origin: type, parts: tuple[Any, ...], value: Any, name: str) -> Any:
    if not isinstance(value, list):
        raise StateFileError("content", f"{name}: {shown(value)} must be a list")
    kinds = parts if origin is tuple and parts[-1] is not ... else (parts[0],) * len(value)
    if len(kinds) != len(value):
        raise StateFileError("content", f"{name}: {shown(value)} must have {len(kinds)} values")
    return origin(
        from_plain(kind, one, f"{name}[{i}]")
        for i, (kind, one) in enumerate(zip(kinds, value, strict=True))
    )


def _array(value: Any) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biuf":
        raise ValueError("no numbers")
    flat = np.frombuffer(
        base64.b64decode(value["base64"], validate=True), dtype=dtype.newbyteorder("<")
    )
    return flat.astype(dtype).reshape(value["shape"])


_ALLOWED = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}


def _scalar(kind: Any, value: Any, name: str) -> Any:
    if kind is float and (value is None or value in ("inf", "-inf")):
        return math.nan if value is None else float(value)
    if kind is Any or kind is type(value):
        return value
    if kind is float and type(value) is int:
        return float(value)
    raise StateFileError("content", f"{name}: {shown(value)} must be {_ALLOWED.get(kind, kind)}")
