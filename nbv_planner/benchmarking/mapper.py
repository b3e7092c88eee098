"""What the surface mapper takes: an update by number of measurements and grid size, samples, likelihood."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nbv_planner.benchmarking.memory import megabytes_of
from nbv_planner.benchmarking.timing import median_milliseconds
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.dense import dense_log_likelihood, dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.surface import MapperSettings, Measurements, SurfaceMapper

_SCAN = 50
"""Measurements that one update adds."""

_BATCH = 10_000
"""Measurements that are added at once before the update that is measured."""

_ROUNDS = 9
_SAMPLES = 64
_MOST_DENSE = 1500
"""Measurements up to which the dense solutions are measured too."""

Columns = tuple[FloatArray, FloatArray, FloatArray]


def mapper_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each kernel, grid size and number of measurements, see :func:`mapper_row`.

    Args:
        quick: fewer and smaller cases, in seconds rather than minutes.
    """
    numbers = (100, 1500, 10_000) if quick else (100, 500, 1000, 1500, 5000, 20_000, 100_000, 1_000_000)
    cases = [(nu, 1000, n) for nu, n in itertools.product(MATERN_SMOOTHNESS, numbers)]
    cases += [("3/2", grid, 1500) for grid in ((500,) if quick else (500, 2000, 4096))]
    return (mapper_row(nu, grid, n) for nu, grid, n in cases)


def mapper_row(smoothness: str, grid_size: int, n: int) -> dict[str, Any]:
    """Measure one case: n distinct random angles, noise 0.1 m, the default kernel otherwise.

    Returns:
        `smoothness`, `grid`, `measurements`; `solver`; in milliseconds of processor time `update` (add the last 50
        measurements to a mapper that has given a belief, and compute the next one), `samples` (64 joint samples),
        `likelihood`, and where n allows it `dense_update`, `dense_likelihood` and `scikit_learn` (fit and predict; also
        only where it is installed), else None; `ratio` of `dense_update` and `scikit_learn_ratio` of `scikit_learn` to
        `update`; `megabytes` held by the mapper once it has computed a belief; `difference` in metres of mean and
        standard deviation from the dense solution, the greatest.
    """
    kernel, data = PeriodicMatern(smoothness=smoothness), measured_contour(n)
    mapper = fed_mapper(kernel, grid_size, data)
    belief = mapper.belief()
    times = median_milliseconds(mapper_calls(kernel, grid_size, data, mapper), _ROUNDS)
    row: dict[str, Any] = {"smoothness": smoothness, "grid": grid_size, "measurements": n, "solver": mapper.solver}
    row |= {name: times.get(name) for name in _TIMES}
    row["ratio"] = row["difference"] = row["scikit_learn_ratio"] = None
    row["megabytes"] = megabytes_of(lambda: _mapper_in_use(kernel, grid_size, data))
    if n <= _MOST_DENSE:
        mean, std = dense_posterior(kernel, 5.0, belief.angle, *data)
        row["ratio"] = times["dense_update"] / times["update"]
        if "scikit_learn" in times:
            row["scikit_learn_ratio"] = times["scikit_learn"] / times["update"]
        row["difference"] = max(float(np.abs(mean - belief.mean).max()), float(np.abs(std - belief.std).max()))
    return row


_TIMES = ("update", "samples", "likelihood", "dense_update", "dense_likelihood", "scikit_learn")


def measured_contour(n: int) -> Columns:
    """Angles (radians), radii and standard deviations (metres) of n measurements of a smooth contour."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, TWO_PI, n)
    return angle, 5.0 + np.cos(3.0 * angle) + 0.1 * rng.normal(size=n), np.full(n, 0.1)


def fed_mapper(kernel: PeriodicMatern, grid_size: int, data: Columns, *, without: int = 0) -> SurfaceMapper:
    """A mapper that was given all of `data` but the last ones."""
    mapper = SurfaceMapper(kernel, MapperSettings(grid_size=grid_size))
    for start in range(0, len(data[0]) - without, _BATCH):
        end = min(start + _BATCH, len(data[0]) - without)
        mapper.add(Measurements(*(column[start:end] for column in data)))
    return mapper


def _mapper_in_use(kernel: PeriodicMatern, grid_size: int, data: Columns) -> SurfaceMapper:
    mapper = fed_mapper(kernel, grid_size, data)
    mapper.belief()
    return mapper


def mapper_calls(
    kernel: PeriodicMatern, grid_size: int, data: Columns, mapper: SurfaceMapper
) -> dict[str, Callable[[], object]]:
    """What is timed, by the names in :func:`mapper_row`, for a mapper that was given `data`."""
    before = fed_mapper(kernel, grid_size, data, without=_SCAN)
    before.belief()  # as after every scan: what it combined is brought up to date
    scan = Measurements(*(column[-_SCAN:] for column in data))
    normals = np.random.default_rng(0).standard_normal((_SAMPLES, mapper.normals_per_sample))

    def update() -> object:
        follower = before.copy()
        follower.add(scan)
        return follower.belief()

    calls: dict[str, Callable[[], object]] = {
        "update": update,
        "samples": lambda: mapper.sample_from(normals),
        "likelihood": mapper.log_likelihood,
    }
    if len(data[0]) <= _MOST_DENSE:
        grid = mapper.belief().angle
        calls["dense_update"] = lambda: dense_posterior(kernel, 5.0, grid, *data)
        calls["dense_likelihood"] = lambda: dense_log_likelihood(kernel, 5.0, *data)
        calls |= _scikit_learn(kernel, grid, data)
    return calls


def _scikit_learn(kernel: PeriodicMatern, grid: FloatArray, data: Columns) -> dict[str, Callable[[], object]]:
    """The same update by scikit-learn, on the line instead of the circle; nothing if it is not installed."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern
    except ImportError:
        return {}
    top, bottom = kernel.smoothness.split("/")
    matern = ConstantKernel(kernel.variance, "fixed") * Matern(kernel.length_scale, "fixed", nu=int(top) / int(bottom))
    angle, radius, noise_std = data

    def update() -> object:
        regressor = GaussianProcessRegressor(matern, alpha=noise_std**2, optimizer=None)
        return regressor.fit(angle[:, None], radius - 5.0).predict(grid[:, None], return_std=True)

    return {"scikit_learn": update}
