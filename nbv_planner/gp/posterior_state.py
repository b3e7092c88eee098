"""A posterior as plain arrays, and back: what was measured and what has been worked out from it, bit for bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import TWO_PI
from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.fast import FastPosterior
from nbv_planner.gp.posterior import DensePosterior, Posterior

Arrays = Mapping[str, NDArray[Any]]

_COLUMNS = "condensed"
_TOTALS = "condensed_totals"
_FORWARD, _LIKELIHOOD = "forward", "likelihood"
_MEASURED = "measured"
_COUNTS = ("count", "is_exact", "scatter", "log_variance")


def posterior_state(posterior: Posterior) -> dict[str, NDArray[Any]]:
    """What a posterior rests on, as arrays of float64 by name.

    Linear-time posteriors keep `condensed`, shape (5, n), and `condensed_totals`, shape (4,), see
    :class:`CondensedMeasurements`, and of each cell with a measurement `forward` and `likelihood`, see :class:`Arcs`:
    to work these out anew, many cells at once, would round differently. Dense ones keep `measured`, shape (3, n):
    angle (radians), radius and standard deviation (metres).
    """
    if isinstance(posterior, FastPosterior):
        data = posterior.data
        cells = posterior.cells.take(np.unique(data.cell))
        return {
            _COLUMNS: data.columns, _TOTALS: np.array([float(getattr(data, name)) for name in _COUNTS]),
            _FORWARD: cells.forward, _LIKELIHOOD: cells.likelihood,
        }
    return {_MEASURED: np.stack(posterior.measured)}


def posterior_from_state(empty: Posterior, arrays: Arrays) -> Posterior:
    """The posterior that :func:`posterior_state` described.

    Args:
        empty: posterior of the same grid, kernel and prior mean without any measurement.
        arrays: what it rests on.

    Raises:
        MeasurementError: an array is missing, has another shape, or holds what no measurement can be.
    """
    if isinstance(empty, FastPosterior):
        data = _condensed(empty.data, arrays)
        cells = empty.cells.replaced(data.changed, _cells(empty, len(data.changed), arrays))
        return dataclasses.replace(empty, data=data, cells=cells)
    assert isinstance(empty, DensePosterior)
    angle, radius, std = _array(arrays, _MEASURED, 3)
    if (std <= 0.0).any():
        raise MeasurementError(f"{_MEASURED}: a standard deviation is {std.min()}, must be > 0")
    return dataclasses.replace(empty, measured=(angle, radius, std))


def _condensed(empty: CondensedMeasurements, arrays: Arrays) -> CondensedMeasurements:
    """Condensed measurements, every cell of them marked as changed."""
    columns = _array(arrays, _COLUMNS, 5)
    count, is_exact, scatter, log_variance = _array(arrays, _TOTALS, 4).reshape(4, -1)[:, 0]
    angle, precision, first = columns[0], columns[1], empty.edge[0]
    if len(angle) > empty.most:
        raise MeasurementError(f"{_COLUMNS}: {len(angle)} angles, at most {empty.most} are kept")
    if (np.diff(angle) < 0.0).any() or (len(angle) and not first <= angle[0] <= angle[-1] <= first + TWO_PI):
        raise MeasurementError(f"{_COLUMNS}: the angles do not rise within one turn")
    if (precision <= 0.0).any() or (columns[3] < 0.0).any():
        raise MeasurementError(f"{_COLUMNS}: a precision is not positive, or a spread negative")
    if count < len(angle) or count != round(count) or is_exact not in (0.0, 1.0):
        raise MeasurementError(f"{_TOTALS}: {count} measurements at {len(angle)} angles, exact: {is_exact}")
    data = dataclasses.replace(
        empty, columns=columns, count=int(count), is_exact=bool(is_exact), scatter=float(scatter),
        log_variance=float(log_variance),
    )
    return dataclasses.replace(data, changed=np.unique(data.cell))


def _cells(empty: FastPosterior, number: int, arrays: Arrays) -> Arcs:
    """What is known about the `number` cells with measurements."""
    found = {}
    for name in (_FORWARD, _LIKELIHOOD):
        shape = (*getattr(empty.cells, name).shape[:2], number)
        found[name] = _array(arrays, name, shape[0])
        if found[name].shape != shape:
            raise MeasurementError(f"{name}: shape {found[name].shape}, must be {shape}")
    return Arcs(np.concatenate([found[_FORWARD], found[_LIKELIHOOD]], axis=1))


def _array(arrays: Arrays, name: str, rows: int) -> NDArray[np.float64]:
    """Return the array `name` of `rows` rows; all of it must be finite."""
    values = arrays.get(name)
    if values is None or values.dtype != np.float64 or values.ndim < 1 or len(values) != rows:
        found = "missing" if values is None else f"of {values.dtype}, shape {values.shape}"
        raise MeasurementError(f"{name}: is {found}, must be {rows} rows of float64")
    if not np.isfinite(values).all():
        raise MeasurementError(f"{name}: holds a value that is not finite")
    return values
