"""The posterior on a grid from measurements, by whichever solver is fast and exact enough, and its
saved state.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError, SettingError
from nbv_planner.geometry import TWO_PI, Arrays, FloatArray
from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.circle_solver import (
    FastPosterior,
    has_chain,
    is_supported,
)
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.dense import CovarianceTable, DensePosterior
from nbv_planner.gp.grid_posterior import GridPosterior
from nbv_planner.gp.kernels import Kernel, PeriodicMatern

MOST_EXACT_ANGLES = 3200
"""Distinct angles up to which the fast posterior stays exact (or twice the grid, if that is more),
for l = 0.2.
"""
_MOST_ROUGH_ANGLES = 3600
_LENGTH_SCALE, _SHORTEST = 0.2, 0.05
MOST_DENSE_ANGLES = 2000
"""Distinct angles up to which a dense solution is used where the fast one is not supported."""
Posterior = FastPosterior | GridPosterior | DensePosterior
"""What is known about the radius on a grid of M angles. Immutable; adding measurements returns
another one.
"""


def posterior_on(
    grid: FloatArray, kernel: Kernel, prior_mean: float, solver: str = "auto"
) -> Posterior:
    """Posterior before the first measurement at M query angles, radians, for a constant prior mean,
    metres.

    `dense` keeps every measurement and solves densely; with `auto` memory and time stay bounded,
    and kernels with Markov structure are solved in linear time. `grid` moves measurements to the
    nearest grid angle.

    Raises:
        SettingError: `grid` does not fit the kernel or the grid.
    """
    if solver == "dense":
        return DensePosterior(kernel, prior_mean, grid, table=CovarianceTable(kernel, grid))
    if solver == "grid":
        if not has_chain(kernel) or not np.allclose(
            grid, TWO_PI * np.arange(len(grid)) / len(grid)
        ):
            raise SettingError(
                "solver: grid needs a summed matern kernel with smoothness <= 5/2, and a uniform"
                " grid"
            )
        return GridPosterior.none(kernel, prior_mean, len(grid))
    if has_chain(kernel):
        return FastPosterior.none(kernel, prior_mean, grid, most_exact_angles(kernel))
    return DensePosterior(kernel, prior_mean, grid, most=MOST_DENSE_ANGLES)


def most_exact_angles(kernel: PeriodicMatern) -> int:
    """Distinct angles up to which the fast posterior stays exact: the more, the shorter the length
    scale.

    For ν = 1/2, rough at every length scale, it is one number. With 8192 the deviation would be 5
    instead of 52 % above the exact one after 10⁶ measurements, but memory would grow more from 10³
    on.
    """
    if kernel.order == 0:
        return _MOST_ROUGH_ANGLES
    return round(
        MOST_EXACT_ANGLES * _LENGTH_SCALE / min(max(kernel.length_scale, _SHORTEST), _LENGTH_SCALE)
    )


def trusted(posterior: Posterior, grid: FloatArray) -> Posterior:
    """The posterior itself, or one that does not round off where it holds too much information
    (`is_supported`).

    With few angles that is the dense solution, with many the fast one with the information limited.
    """
    if not isinstance(posterior, FastPosterior) or is_supported(
        posterior.kernel, posterior.data.information
    ):
        return posterior
    if len(posterior.data) > MOST_DENSE_ANGLES:
        return posterior.limited()
    return DensePosterior(posterior.kernel, posterior.prior_mean, grid, posterior.measured)


def saved_array(
    arrays: Arrays,
    name: str,
    *shape: int | None,
    dtype: Any = np.float64,
    finite: bool = True,
    least: float = -np.inf,
) -> NDArray[Any]:
    """An array of a saved state, of a `shape` in which None is any length; NaN is not allowed.

    Raises:
        MeasurementError: it is missing, or has another type or shape, or a value that is not
            allowed.
    """
    values = arrays.get(name)
    if values is None:
        raise MeasurementError(f"{name}: is missing")
    fits = len(shape) == values.ndim and all(
        n in (None, m) for n, m in zip(shape, values.shape, strict=True)
    )
    if not fits or not np.issubdtype(values.dtype, dtype):
        raise MeasurementError(
            f"{name}: is {values.dtype} {values.shape}, must be {dtype.__name__} {shape}"
        )
    if not (values >= least).all() or (finite and not np.isfinite(values).all()):
        raise MeasurementError(f"{name}: holds a value that is not finite, or less than {least:g}")
    return values


def posterior_state(posterior: Posterior) -> Arrays:
    """What a posterior depends on, as arrays of float64 by name.

    Linear-time posteriors keep `condensed`, shape (5, n), and `condensed_totals`, shape (2,), see
    :class:`CondensedMeasurements`, and of each cell with a measurement `forward` and `likelihood`,
    see :class:`Arcs`: recomputing these, many cells at once, would round differently. Those on the
    grid keep `sums`, see :class:`GridPosterior`; dense ones `measured`, shape (3, n): angle
    (radians), radius and standard deviation (metres).
    """
    if isinstance(posterior, GridPosterior):
        return {"sums": posterior.sums}
    if isinstance(posterior, FastPosterior):
        data = posterior.data
        cells = posterior.cells.take(np.unique(data.cell))
        return {
            "condensed": data.columns,
            "condensed_totals": np.array([float(data.count), float(data.is_exact)]),
            "forward": cells.forward,
            "likelihood": cells.likelihood,
        }
    return {"measured": np.stack(posterior.measured)}


def posterior_from_state(empty: Posterior, arrays: Arrays) -> Posterior:
    """The posterior that :func:`posterior_state` described; `empty` has its grid, kernel and prior
    mean.

    Raises:
        MeasurementError: an array is missing, has another shape, or holds an impossible
            measurement.
    """
    if isinstance(empty, FastPosterior):
        data = _condensed(empty.data, arrays)
        d = empty.cells.size
        parts = (("forward", 2 * d + 1), ("likelihood", d + 1))
        blocks = [
            saved_array(arrays, name, d, columns, len(data.changed)) for name, columns in parts
        ]
        cells = empty.cells.replaced(data.changed, Arcs(np.concatenate(blocks, axis=1)))
        return dataclasses.replace(empty, data=data, cells=cells)
    if isinstance(empty, GridPosterior):
        sums = saved_array(arrays, "sums", *empty.sums.shape)
        spread = np.linalg.eigvalsh(sums[:, :-1].T)
        if (spread < -1e-9 * spread.max()).any():
            raise MeasurementError("sums: the information on a state is negative")
        return dataclasses.replace(empty, sums=sums)
    angle, radius, std = saved_array(arrays, "measured", 3, None)
    if (std <= 0.0).any():
        raise MeasurementError(f"measured: a standard deviation is {std.min()}, must be > 0")
    return dataclasses.replace(empty, measured=(angle, radius, std))


def _condensed(empty: CondensedMeasurements, arrays: Arrays) -> CondensedMeasurements:
    """Condensed measurements, every cell of them marked as changed."""
    columns = saved_array(arrays, "condensed", 5, None)
    count, is_exact = saved_array(arrays, "condensed_totals", 2).tolist()
    angle = columns[0]
    precision = columns[1]
    first = empty.edge[0]
    turn = np.concatenate([[first], angle, [first + TWO_PI]])
    for holds, words in (
        (len(angle) <= empty.most, f"{len(angle)} angles, at most {empty.most} are kept"),
        ((np.diff(turn) >= 0.0).all(), "the angles do not rise within one turn"),
        (
            (precision > 0.0).all() and (columns[3] >= 0.0).all(),
            "a precision is not positive, or a spread negative",
        ),
        (
            count >= len(angle) and count.is_integer(),
            f"{count} measurements at {len(angle)} angles",
        ),
        (is_exact in (0.0, 1.0), f"exact: {is_exact}"),
    ):
        if not holds:
            raise MeasurementError(f"condensed: {words}")
    data = dataclasses.replace(
        empty,
        columns=columns,
        count=int(count),
        is_exact=bool(is_exact),
    )
    return dataclasses.replace(data, changed=np.unique(data.cell))
