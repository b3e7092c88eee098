"""What the robust mapper keeps beside its belief, as plain arrays and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.free_space import FreeRays
from nbv_planner.geometry import FloatArray
from nbv_planner.robust.beams import Beams
from nbv_planner.robust.crossing import Linearised
from nbv_planner.surface import Measurements

Arrays = Mapping[str, NDArray[Any]]

_HITS = [field.name for field in dataclasses.fields(Measurements) if field.name != "spread"]
_DATA = [field.name for field in dataclasses.fields(Linearised)]


def beam_state(beams: Beams) -> FloatArray:
    """Beams as rows: angle, radius, std, tilt, distance, bearing, three of the spread, scan and view, shape (11, n)."""
    assert beams.hits.spread is not None
    return np.stack([*(getattr(beams.hits, name) for name in _HITS), *beams.hits.spread.T, beams.scan, beams.view])


def beams_from(rows: FloatArray) -> Beams:
    """The beams that :func:`beam_state` described.

    Raises:
        MeasurementError: another shape, a value that no beam has, or scans or views that do not rise.
    """
    size = len(_HITS)
    if rows.ndim != 2 or len(rows) != size + 5 or not np.isfinite(rows).all():
        raise MeasurementError(f"beams: shape {rows.shape}, must be ({size + 5}, n) and finite")
    scan, view = rows[-2].astype(np.intp), rows[-1].astype(np.intp)
    if (np.diff(scan) < 0).any() or (np.diff(view) < 0).any() or (rows[-2:] < 0).any():
        raise MeasurementError("beams: scans or views do not rise")
    columns = dict(zip(_HITS, rows[:size], strict=True))
    return Beams(Measurements(**columns, spread=rows[size : size + 3].T), scan, view)


def fit_state(data: Linearised, weight: FloatArray) -> FloatArray:
    """Linearised measurements and their weights as rows, shape (6, n)."""
    return np.stack([*(getattr(data, name) for name in _DATA), weight])


def fit_from(rows: FloatArray, count: int) -> tuple[Linearised, FloatArray]:
    """The measurements and weights that :func:`fit_state` described, of `count` beams.

    Raises:
        MeasurementError: another shape, or a value that is not allowed.
    """
    if rows.shape != (len(_DATA) + 1, count) or not np.isfinite(rows).all():
        raise MeasurementError(f"fit: shape {rows.shape}, must be ({len(_DATA) + 1}, {count}) and finite")
    data, weight = Linearised(*rows[:-1]), rows[-1]
    if (data.std <= 0.0).any() or (weight < 0.0).any():
        raise MeasurementError("fit: a standard deviation is not positive, or a weight negative")
    return data, weight


def ray_state(rays: Mapping[int, FreeRays]) -> FloatArray:
    """Free rays as rows: scan, view angle and distance of the camera, bearing, length, of a hit; shape (6, n)."""
    columns = [
        np.stack([
            *(np.full(len(one.bearing), value) for value in (scan, one.view_angle, one.distance)),
            one.bearing, one.length, np.zeros(len(one.bearing)) if one.of_hit is None else one.of_hit,
        ])
        for scan, one in rays.items()
    ]  # fmt: skip
    return np.concatenate([np.empty((6, 0)), *columns], axis=1)


def rays_from(rows: FloatArray, beams: Beams) -> dict[int, FreeRays]:
    """The rays that :func:`ray_state` described, by scan.

    Raises:
        MeasurementError: another shape, a value that is not allowed, or other hits than those of `beams`.
    """
    if rows.ndim != 2 or len(rows) != 6 or not np.isfinite(rows).all() or (rows[4] < 0.0).any():
        raise MeasurementError(f"rays: shape {rows.shape}, must be (6, n), finite, with lengths >= 0")
    found = {}
    for scan in np.unique(rows[0]):
        _, view, distance, bearing, length, of_hit = rows[:, rows[0] == scan]
        found[int(scan)] = FreeRays(float(view[0]), float(distance[0]), bearing, length, of_hit > 0.5)
        if found[int(scan)].hits != int((beams.scan == scan).sum()):
            raise MeasurementError(f"rays: those of scan {int(scan)} do not fit its beams")
    return found
