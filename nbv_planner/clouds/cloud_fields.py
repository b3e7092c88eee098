"""Point clouds that the nodes publish, without ROS: their fields, and how they are read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import FloatArray

FLOAT64, FLOAT32, UINT32 = 8, 7, 6
"""Datatypes of sensor_msgs/PointField."""
FIELD_TYPES = {"f8": FLOAT64, "f4": FLOAT32, "u4": UINT32}
Layout = list[tuple[str, str]]
"""Names of fields, and their kinds, see :data:`FIELD_TYPES`."""
SURFACE_LAYOUT = [
    (name, "f4") for name in ("x", "y", "z", "angle", "mean", "std", "lower", "upper")
] + [("hits", "u4")]
"""Fields of a `surface` cloud; of the clouds `nbv_planner/candidates` and `ground_truth/surface`
below.
"""
EVIDENCE_LAYOUT = [
    (name, "f4") for name in ("evidence_angle", "evidence_radius", "evidence_std", "free")
]
"""Further fields of a `surface` cloud, present if the mapper publishes evidence."""
OWN_LAYOUT = [(name, "f4") for name in ("own_mean", "own_std", "own_lower", "own_upper")]
"""Fields of a `surface` cloud that takes errors common to views into account: the belief without
them, by which views are chosen."""
CANDIDATES_LAYOUT = [
    (name, "f4") for name in ("x", "y", "z", "angle", "utility", "cost", "feasible")
]
TURN_LAYOUT = [("turn", "f4")]
"""Optional field of `nbv_planner/candidates`: line of sight against the direction to the centre; 0
without it.
"""
EXCLUDED_LAYOUT = [("excluded", "u4")]
"""Optional field of `nbv_planner/candidates`: sums of
:class:`~nbv_planner.planning.view_space.Exclusion`.
"""
CELLS_LAYOUT = [
    *((name, "f4") for name in ("x", "y", "z")),
    ("key", "u4"),
    *((name, "f8") for name in ("sum_x", "sum_y", "sum_z", "beam_x", "beam_y", "beam_z")),
    *((name, "f8") for name in ("weight", "number")),
]
"""Fields of a `surface` cloud of cells: merged hits, where they are, and their sums, see
:class:`~nbv_planner.volume.grid.Merged`; in the plane z is 0."""
STD_LAYOUT = [("std", "f4")]
"""Optional field of a `surface` cloud of cells, to colour it by: standard deviation of a merged
hit, metres.
"""
CONTOUR_LAYOUT = [(name, "f4") for name in ("x", "y", "z", "angle", "radius")]
OUTLINE_LAYOUT = [("outline", "u4")]
"""Optional field of `ground_truth/surface`: number of the closed outline that a point is of;
without it all are of one star-shaped contour, by rising angle.
"""


def has_fields(msg: Any, layout: Layout) -> bool:
    """Whether a cloud carries the optional fields of `layout`."""
    return {name for name, _ in layout} <= {field.name for field in msg.fields}


def structured_points(msg: Any, layout: Layout, least: int = 1) -> Any:
    """The points of a cloud, `least` of them at least, as a structured array with the fields of
    `layout`, at any offset.

    Raises:
        InputRejectedError: reason `layout` (fields or sizes).
    """
    fields = {field.name: field for field in msg.fields}
    for name, kind in layout:
        field = fields.get(name)
        if (
            field is None
            or field.datatype != FIELD_TYPES[kind]
            or field.offset + int(kind[1]) > msg.point_step
        ):
            raise InputRejectedError(
                "layout", f"the cloud has no {name!r} field of the expected type"
            )
    count = msg.width * msg.height
    if msg.is_bigendian or count < least or len(msg.data) != count * msg.point_step:
        raise InputRejectedError(
            "layout", f"{len(msg.data)} bytes do not hold {count} points of {msg.point_step}"
        )
    offsets = tuple(fields[name].offset for name, _ in layout)
    return np.frombuffer(msg.data, dtype=_point_type(tuple(layout), offsets, msg.point_step))


@lru_cache(maxsize=8)
def _point_type(
    layout: tuple[tuple[str, str], ...], offsets: tuple[int, ...], size: int
) -> np.dtype[np.void]:
    """Type of a point of `size` bytes with fields at `offsets`; the clouds of one sender all have
    the same.
    """
    names = [name for name, _ in layout]
    formats = [f"<{kind}" for _, kind in layout]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": list(offsets), "itemsize": size}
    )


def columns_of(table: Any, *names: str) -> list[FloatArray]:
    """Fields in double precision; NaN stays NaN, without a warning."""
    with np.errstate(invalid="ignore"):
        return [np.asarray(table[name].astype(float)) for name in names]
