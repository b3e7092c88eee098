"""Content of the topics `surface` and `ground_truth/surface`, in messages of rclpy or of a bag."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbv_planner.clouds.cloud_fields import (
    CELLS_LAYOUT,
    CONTOUR_LAYOUT,
    EVIDENCE_LAYOUT,
    OUTLINE_LAYOUT,
    OWN_LAYOUT,
    SURFACE_LAYOUT,
    columns_of,
    has_fields,
    structured_points,
)
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.star2d.belief import Evidence, SurfaceBelief
from nbv_planner.volume.grid import Merged
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.objects.true_outlines import MOST_OUTLINES


def surface_from_msg(msg: Any) -> SurfaceBelief | Merged:
    """Read a `surface` cloud of either member; of cells it holds the hits alone.

    Raises:
        InputRejectedError: `layout`, `not_finite`, and those of :func:`belief_from_msg`.
    """
    return hits_from_msg(msg) if has_fields(msg, CELLS_LAYOUT) else belief_from_msg(msg)


def hits_from_msg(msg: Any) -> Merged:
    """Read the hits of a `surface` cloud of cells, in three dimensions; there may be none.

    Raises:
        InputRejectedError: `layout` or `not_finite`.
    """
    table = structured_points(msg, CELLS_LAYOUT, least=0)
    sums = np.stack(columns_of(table, *(name for name, _ in CELLS_LAYOUT[4:])), axis=1)
    _check_finite("surface", sums)
    key = table["key"].astype(np.intp)
    return Merged(key, sums[:, :3], sums[:, 3:6], sums[:, 6], sums[:, 7])


def _check_finite(what: str, *columns: FloatArray) -> None:
    if not all(np.isfinite(values).all() for values in columns):
        raise InputRejectedError("not_finite", f"the {what} holds values that are not finite")


def belief_from_msg(msg: Any) -> SurfaceBelief:
    """Read a `surface` cloud; one without the fields of the evidence gives a belief without it.

    What the mapper says of it is in the :class:`~nbv_planner.mapping.surface_info.SurfaceInfo` with
    the same stamp.

    Raises:
        InputRejectedError: `layout` (fields or sizes), `not_finite`, `grid` (angles not rising),
            `band` (bounds crossed or negative standard deviation), or `evidence`.
    """
    table = structured_points(msg, SURFACE_LAYOUT)
    angle, mean, std, lower, upper = columns_of(table, "angle", "mean", "std", "lower", "upper")
    _check_finite("surface", angle, mean, std, lower, upper)
    if (
        len(angle) < 2
        or np.diff(angle).min() <= 0.0
        or angle[0] < 0.0
        or angle[-1] > 2.0 * math.pi + 1e-5
    ):
        raise InputRejectedError("grid", "the angles must rise within [0, 2*pi]")
    if std.min() < 0.0 or (upper - lower).min() < 0.0:
        raise InputRejectedError(
            "band", "the standard deviation is negative or the bounds are crossed"
        )
    return SurfaceBelief(
        angle=angle,
        mean=mean,
        std=std,
        lower=lower,
        upper=upper,
        hits=table["hits"].copy(),
        evidence=_evidence_from(msg, angle),
        without=_without_common_errors(msg),
    )


def _without_common_errors(msg: Any) -> FloatArray | None:
    """Mean, std, lower and upper as if no error was common to views, shape (4, M), metres."""
    if not has_fields(msg, OWN_LAYOUT):
        return None
    without = np.stack(
        columns_of(structured_points(msg, OWN_LAYOUT), *(name for name, _ in OWN_LAYOUT))
    )
    _check_finite("surface without common errors", without)
    return without


def _evidence_from(msg: Any, grid: FloatArray) -> Evidence | None:
    if not has_fields(msg, EVIDENCE_LAYOUT):
        return None
    table = structured_points(msg, EVIDENCE_LAYOUT)
    angle, radius, std, free = columns_of(table, *(name for name, _ in EVIDENCE_LAYOUT))
    # Single precision may round an angle out of its cell; by a whole cell it cannot.
    if not (np.abs(angle - grid) < grid[1] - grid[0]).all() or not np.isfinite(radius).all():
        raise InputRejectedError(
            "evidence", "a measurement is not at its grid angle, or its radius is not finite"
        )
    if not ((std > 0.0).all() and (free >= 0.0).all()):
        raise InputRejectedError(
            "evidence", "evidence_std must be > 0 and free >= 0; +inf where nothing is known"
        )
    return Evidence(angle, radius, std, free)


MOST_CONTOUR_POINTS = 100_000
"""More points are no plausible contour of a simulated scene; they would only take memory."""


def contour_from_msg(msg: Any) -> SurfacePoints:
    """Read a `ground_truth/surface` cloud: a closed contour, or outlines if it numbers them.

    Raises:
        InputRejectedError: `layout`, `not_finite`, or `grid` (no closed contour, or no outlines).
    """
    angle, radius = columns_of(structured_points(msg, CONTOUR_LAYOUT), "angle", "radius")
    _check_finite("contour", angle, radius)
    if has_fields(msg, OUTLINE_LAYOUT):
        number = structured_points(msg, OUTLINE_LAYOUT)["outline"].astype(int)
        counts = np.unique(number, return_counts=True)[1]
        if len(angle) > MOST_CONTOUR_POINTS or counts.min() < 3 or len(counts) > MOST_OUTLINES:
            raise InputRejectedError("grid", f"the {len(angle)} points are not closed outlines")
        return SurfacePoints(angle, radius, number)
    # may be 0: single precision makes neighbours equal
    gaps = np.diff(np.append(angle, angle[:1] + TWO_PI))
    if (
        not 3 <= len(angle) <= MOST_CONTOUR_POINTS
        or angle[0] < 0.0
        or gaps.min() < 0.0
        or gaps.max() >= math.pi
        or radius.min() <= 0.0
    ):
        raise InputRejectedError("grid", f"the {len(angle)} points are not a closed contour")
    return SurfacePoints(angle, radius)
