"""Messages made malformed or hostile: fields anywhere in a good message take values that nobody expects."""

from __future__ import annotations

import array
import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sensor_msgs.msg import PointField

_FLOATS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 1e30, -1e30, 3.4e38, -3.4e38, 1e-45, 1e10,
    math.pi,
)
_LARGEST = 3.4e38  # that single precision holds
_DOUBLES = (*_FLOATS, 1.7e308, -1.7e308, 5e-324, 1e200, -1e200)
_STRINGS = ("", "object", "camera", "map", "/object", "objekt\u00f6", " object", "x" * 300, "object/../map", "%s%n{}")
_WHOLE = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
_NAMES = ("x", "y", "z", "angle", "mean", "std", "lower", "upper", "hits", "free", "evidence_std", "", "intensity")

# Fields that hold what is measured, and how often one of them is changed where there are some.
_CONTENTS = ("sequence<float>", "sequence<uint8>")
_PART_OF_CONTENTS = 0.5

Place = tuple[Any, str, str]
"""A message, one of its fields, and the type of that field."""


def places_of(msg: Any) -> Iterator[Place]:
    """All fields of a message, those of the messages inside it too."""
    for name, kind in msg.get_fields_and_field_types().items():
        inner = getattr(msg, name)
        if hasattr(inner, "get_fields_and_field_types"):
            yield from places_of(inner)
        else:
            yield msg, name, kind


class Mutator:
    """Changes copies of good messages at random; the same seed gives the same messages."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Draw from `rng`."""
        self._rng = rng

    def mutated(self, msg: Any) -> Any:
        """A copy of `msg` with one to three fields changed."""
        changed = copy.deepcopy(msg)
        places = list(places_of(changed))
        contents = [place for place in places if place[2] in _CONTENTS]
        for _ in range(int(self._rng.integers(1, 4))):
            among = contents if contents and self._rng.random() < _PART_OF_CONTENTS else places
            owner, name, kind = self._one_of(among)
            setattr(owner, name, self._value(getattr(owner, name), kind))
        return changed

    def _one_of(self, values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def _value(self, old: Any, kind: str) -> Any:
        """A value of the field type `kind`, made from the old one or not."""
        if kind == "string":
            return self._one_of(_STRINGS)
        if kind == "boolean":
            return not old
        if kind in _WHOLE:
            return self._whole(_WHOLE[kind], signed=not kind.startswith("u"))
        if kind in ("float", "double"):
            return self._number(old, _FLOATS if kind == "float" else _DOUBLES)
        if kind == "sequence<sensor_msgs/PointField>":
            return self._fields(list(old))
        if kind == "sequence<uint8>":
            return array.array("B", self._bytes(np.frombuffer(old, dtype=np.uint8).copy()).tobytes())
        return self._numbers(old, kind)

    def _whole(self, bits: int, *, signed: bool) -> int:
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return int(self._one_of((0, 1, 2, low, high, high // 2, int(self._rng.integers(0, 100)))))

    def _number(self, old: float, hostile: tuple[float, ...]) -> float:
        if self._rng.random() < 0.7:
            return float(self._one_of(hostile))
        changed = old * self._rng.uniform(-3.0, 3.0)
        return changed if abs(changed) < _LARGEST else 0.0

    def _numbers(self, old: Any, kind: str) -> Any:
        """Another sequence or array of numbers; an array keeps its length."""
        values = np.array(old, dtype=float)
        fixed = kind.endswith("]")
        ways: list[Callable[[], np.ndarray]] = [
            lambda: self._spoilt(values), lambda: values[::-1], lambda: np.full(len(values), self._one_of(_FLOATS)),
        ]
        if not fixed:
            ways += [
                lambda: values[: self._rng.integers(len(values) + 1)], lambda: np.empty(0),
                lambda: np.concatenate([values, values]), lambda: np.append(values, self._one_of(_FLOATS)),
            ]
        changed = self._one_of(ways)()
        return changed if fixed else array.array("f", changed.astype(np.float32).tobytes())

    def _spoilt(self, values: np.ndarray) -> np.ndarray:
        """Some values in the place of others."""
        values = values.copy()
        for index in self._rng.integers(0, max(len(values), 1), self._rng.integers(1, 9)):
            values[index : index + 1] = self._one_of(_FLOATS)
        return values

    def _bytes(self, data: np.ndarray) -> np.ndarray:
        """Bytes flipped, cut, repeated, or hostile numbers at aligned places."""
        way = self._rng.integers(5)
        if way == 0 or len(data) < 8:
            return data[: self._rng.integers(len(data) + 1)]
        if way == 1:
            return np.concatenate([data, data[: self._rng.integers(len(data))]])
        places = self._rng.integers(0, len(data) // 4, self._rng.integers(1, 9))
        if way == 2:
            data[places] ^= np.uint8(1) << self._rng.integers(0, 8, len(places)).astype(np.uint8)
        else:
            words = data[: len(data) // 4 * 4].view(np.float32)
            words[places] = np.array([self._one_of(_FLOATS) for _ in places], dtype=np.float32)
        return data

    def _fields(self, fields: list[PointField]) -> list[PointField]:
        """Fields of a cloud dropped, doubled, exchanged, or one of them changed."""
        if not fields or self._rng.random() < 0.1:
            return []
        place = int(self._rng.integers(len(fields)))
        way = self._rng.integers(4)
        if way == 0:
            return fields[:place] + fields[place + 1 :]
        if way == 1:
            return [*fields, copy.deepcopy(fields[place])]
        if way == 2:
            return fields[::-1]
        changed = copy.deepcopy(fields)
        name = str(self._one_of(("name", "offset", "datatype", "count")))
        bits = _WHOLE.get(changed[place].get_fields_and_field_types()[name], 0)
        setattr(changed[place], name, self._whole(bits, signed=False) if bits else str(self._one_of(_NAMES)))
        return changed
