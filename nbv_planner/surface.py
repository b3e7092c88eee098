"""What is believed about the surface, and how measurements change it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.circle import CircleInterpolation
from nbv_planner.errors import MeasurementError, SettingError
from nbv_planner.evidence import Evidence, evidence_from_rows, nearest_cell
from nbv_planner.free_space import FreeRays
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, wrap_angle
from nbv_planner.gp.confidence import scheduled_half_width
from nbv_planner.gp.kernels import Kernel
from nbv_planner.gp.leave_one_out import LeaveOneOut, leave_one_out
from nbv_planner.gp.posterior import log_likelihood_of, posterior_on, stays_fast, trusted
from nbv_planner.gp.posterior_state import posterior_from_state, posterior_state
from nbv_planner.settings import check_settings, setting

# Steepest relative slope (1/rad) that is believed; beyond it a radius says next to nothing at its angle anyway.
_STEEPEST = 4.0

_COLUMNS = ("angle", "radius", "std", "tilt", "distance", "bearing")


@dataclass(frozen=True, eq=False)
class Measurements:
    """Surface measurements: polar angle, radius, and the standard deviation of the radius at that angle.

    Attributes:
        angle: shape (n,), radians, wrapped to [0, 2π) on construction.
        radius: shape (n,), metres.
        std: shape (n,), metres, positive.
        tilt: angle from the outward radial direction to the direction of the beam, shape (n,), radians; 0 (the
            default) where it is not known or does not matter.
        distance: range from the camera, shape (n,), metres; 0 (the default) where it is not known.
        bearing: direction of the beam against the line of sight, shape (n,), radians; 0 by default.
        spread: covariance of the hit's displacement by errors of the camera's pose, shape (n, 3), metres²: radial,
            radial with tangential, tangential; 0 by default.

    Raises:
        MeasurementError: sizes differ, a value is not finite, or a standard deviation is not positive.
    """

    angle: FloatArray
    radius: FloatArray
    std: FloatArray
    tilt: FloatArray | None = None
    distance: FloatArray | None = None
    bearing: FloatArray | None = None
    spread: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check, fill in and wrap."""
        count = np.size(self.angle)
        for name in _COLUMNS:
            given = getattr(self, name)
            values = np.zeros(count) if given is None else np.asarray(given, dtype=float).ravel()
            object.__setattr__(self, name, values)
        spread = np.zeros((count, 3)) if self.spread is None else np.asarray(self.spread, dtype=float)
        object.__setattr__(self, "spread", spread.reshape(-1, 3))
        sizes = [len(getattr(self, name)) for name in (*_COLUMNS, "spread")]
        if len(set(sizes)) > 1:
            raise MeasurementError(f"measurements differ in size: {', '.join(map(str, sizes))}")
        for name in (*_COLUMNS, "spread"):
            finite = np.isfinite(getattr(self, name))
            if not finite.all():
                bad = tuple(np.argwhere(~finite)[0])
                raise MeasurementError(f"measurement {bad[0]}: {name} is {getattr(self, name)[bad]}, must be finite")
        if count and self.std.min() <= 0.0:
            raise MeasurementError(f"measurement {self.std.argmin()}: std is {self.std.min()}, must be > 0")
        object.__setattr__(self, "angle", wrap_angle(self.angle))

    def __len__(self) -> int:
        """Return the number of measurements."""
        return len(self.angle)

    @classmethod
    def empty(cls) -> Measurements:
        """No measurement."""
        return cls(np.empty(0), np.empty(0), np.empty(0))

    @classmethod
    def together(cls, parts: Sequence[Measurements]) -> Measurements:
        """All of some sets, one behind the other."""
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in (*_COLUMNS, "spread")))

    def joined(self, other: Measurements) -> Measurements:
        """Both sets, `other` behind this one."""
        return Measurements.together([self, other])

    def chosen(self, mask: BoolArray) -> Measurements:
        """Those for which `mask`, shape (n,), is true."""
        return Measurements(*(getattr(self, name)[mask] for name in (*_COLUMNS, "spread")))

    def pose_variance(self, slope: FloatArray) -> FloatArray:
        r"""Variance of the radius at fixed angle that comes from errors of the camera's pose, shape (n,), metres².

        A hit displaced by (u, v) radially and tangentially departs from a surface of relative slope s by
        :math:`u - s v`, so the variance is :math:`c_{uu} - 2 s c_{uv} + s^2 c_{vv}`.

        Args:
            slope: relative slope s of the surface at each measurement, shape (n,), 1/rad.
        """
        assert self.spread is not None
        radial, mixed, tangential = self.spread.T
        return np.asarray(np.maximum(radial - 2.0 * slope * mixed + slope**2 * tangential, 0.0))

    def radial(self, slope: FloatArray) -> Measurements:
        r"""Propagate the noise along the beam to the radius at fixed angle.

        A return that moves by δ along a beam with tilt γ moves by :math:`δ\cosγ` in radius and by
        :math:`δ\sinγ/r` in angle, so at its angle it departs from a surface of relative slope :math:`s = f'/f` by
        :math:`δ(\cosγ - s\sinγ)`.

        Args:
            slope: relative slope s of the surface at each measurement, shape (n,), 1/rad.

        Returns:
            The measurements with :math:`σ\,\max(1, |\cosγ - s\sinγ|)` as standard deviation: never less than that
            of the range; to its square that of the camera's pose is added (:meth:`pose_variance`).
        """
        assert self.tilt is not None
        assert self.spread is not None
        std = self.std * np.maximum(np.abs(np.cos(self.tilt) - slope * np.sin(self.tilt)), 1.0)
        if self.spread.any():
            std = np.sqrt(std**2 + self.pose_variance(slope))
        return dataclasses.replace(self, std=std)


@dataclass(frozen=True, eq=False)
class SurfaceBelief:
    """Gaussian belief about the radius on a grid of polar angles, with a confidence band. Immutable.

    Attributes:
        angle: grid, shape (M,), rising, radians; uniform over the circle. The thesis's grid counts 0 and 2π twice.
        mean: posterior mean, shape (M,), metres.
        std: posterior standard deviation, shape (M,), metres.
        lower: lower confidence bound, shape (M,), metres.
        upper: upper confidence bound, shape (M,), metres.
        hits: measurements so far in each grid cell, counted where their beams meet the mean contour, shape (M,).
        evidence: what it rests on, to condition another model on; None if that was not handed on.
    """

    angle: FloatArray
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    hits: NDArray[np.integer[Any]]
    evidence: Evidence | None = None

    @property
    def step(self) -> float:
        """Grid step Δφ in radians."""
        return float(self.angle[1] - self.angle[0])

    @property
    def width(self) -> FloatArray:
        """Width `u − l` of the band, shape (M,), metres."""
        return self.upper - self.lower

    def interpolate(self, values: FloatArray, angle: ArrayLike) -> FloatArray:
        """Linear interpolation of grid `values` at any `angle`, around the circle."""
        return CircleInterpolation.at(self.angle, angle)(values)

    def relative_slope(self, angle: ArrayLike) -> FloatArray:
        """Relative slope `μ'/μ` of the mean contour at any `angle`, 1/rad, by central differences on the grid."""
        return relative_slope(self.angle, self.mean, angle)

    def as_transmitted(self) -> SurfaceBelief:
        """Return the belief as it arrives over a `surface` message, in single precision.

        A planner in the same process uses this form too, so that it decides as one behind a topic does.
        """
        names = ("angle", "mean", "std", "lower", "upper")
        rounded = {n: np.asarray(getattr(self, n), dtype=np.float32).astype(float) for n in names}
        evidence = None if self.evidence is None else self.evidence.rounded()
        return dataclasses.replace(self, **rounded, evidence=evidence)


def relative_slope(grid: FloatArray, mean: FloatArray, angle: ArrayLike) -> FloatArray:
    """Relative slope `μ'/μ` at `angle` of a contour given on the grid, 1/rad, by central differences."""
    return CircleInterpolation.at(grid, angle)(slope_on_grid(grid, mean))


def slope_on_grid(grid: FloatArray, mean: FloatArray) -> FloatArray:
    """Relative slope `μ'/μ` of a contour at the angles of its grid, shape (M,), 1/rad, by central differences."""
    step = float(grid[1] - grid[0])
    after, before = (at_neighbour(mean) for at_neighbour in _neighbours(np.asarray(grid, dtype=float).tobytes()))
    slope = (after - before) / (2.0 * step * np.maximum(mean, 1e-9))
    return np.asarray(np.clip(slope, -_STEEPEST, _STEEPEST))


@lru_cache(maxsize=8)
def _neighbours(grid: bytes) -> tuple[CircleInterpolation, CircleInterpolation]:
    """Interpolation one step after and one before each angle of a grid, whose bytes are the cache key."""
    angle = np.frombuffer(grid)
    step = float(angle[1] - angle[0])
    return CircleInterpolation.at(angle, angle + step), CircleInterpolation.at(angle, angle - step)


@dataclass(frozen=True)
class MapperSettings:
    """Grid, prior mean and band of the surface mapper.

    Raises:
        SettingError: a value is out of range.
    """

    prior_mean: float = setting(5.0, "Prior mean of the radius.", unit="m", gt=0.0)
    grid_size: int = setting(1000, "Number of grid angles of the surface belief.", ge=16, le=100_000)
    solver: str = setting(
        "auto", "Posterior: dense Cholesky of all measurements, or auto: in linear time and bounded memory.",
        choices=("auto", "dense"),
    )
    confidence_scale: float = setting(
        2.0, "fixed: half-width of the confidence band in standard deviations (square root of β).", gt=0.0, le=100.0
    )
    confidence: str = setting(
        "fixed", "Confidence band: fixed, or schedule: widened with the number of views as the regret bounds need it.",
        choices=("fixed", "schedule"),
    )
    delta: float = setting(0.05, "schedule: probability with which the band may fail in any round.", gt=0.0, lt=1.0)
    schedule_a: float = setting(
        530.0, "schedule: factor a of P(steepest slope > L) <= a exp(-(L/b)²) under the prior.", gt=0.0
    )
    schedule_b: float = setting(26.0, "schedule: scale b of it; both fit the default kernel.", unit="m/rad", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
        self.half_width(np.zeros(1), 1)

    def half_width(self, std: FloatArray, t: int) -> FloatArray:
        """Half-width of the confidence band in round `t` (from 1) at the standard deviations `std`, metres.

        Raises:
            SettingError: the schedule has no positive β.
        """
        if self.confidence == "fixed":
            return self.confidence_scale * std
        return scheduled_half_width(std, t, self.delta, self.schedule_a, self.schedule_b)


def uniform_grid(size: int) -> FloatArray:
    """Uniform grid of `size` polar angles from 0 without the end point."""
    return np.arange(size) * (TWO_PI / size)


class SurfaceMapper:
    """Condition a Gaussian process over the polar angle on surface measurements.

    Unless the solver is set to `dense`, time and memory of an update do not grow with the number of measurements:
    beyond some thousand distinct angles, neighbouring ones are merged (:class:`CondensedMeasurements`).

    Attributes:
        solver: which solution gave the newest belief, `fast`, `condensed` or `dense`; before the first one the setting.
    """

    def __init__(self, kernel: Kernel, settings: MapperSettings, *, grid: FloatArray | None = None) -> None:
        """Start from the prior.

        Args:
            kernel: covariance function of the radius.
            settings: grid size, prior mean and band.
            grid: grid to use instead of the uniform one (the thesis protocol's counts 2π as well as 0).
        """
        self._kernel = kernel
        self._settings = settings
        self._grid = uniform_grid(settings.grid_size) if grid is None else np.asarray(grid, dtype=float)
        if len(self._grid) < 2:
            raise SettingError("grid: needs at least 2 angles")
        self.reset()

    @property
    def count(self) -> int:
        """Number of measurements conditioned on so far."""
        return int(self._hits.sum())

    @property
    def measurements(self) -> Measurements:
        """What is conditioned on: every measurement, repeats and (if condensed) neighbours merged to their mean.

        Their noise is that of the radius at their angle; how the beams lay is not kept.
        """
        return Measurements(*self._posterior.measured)

    @property
    def normals_per_sample(self) -> int:
        """Number of standard normals that one sample takes."""
        return self._trusted.normals_per_sample

    def reset(self) -> None:
        """Forget all measurements."""
        dense = self._settings.solver == "dense"
        self._posterior = posterior_on(self._grid, self._kernel, self._settings.prior_mean, dense=dense)
        self._trusted = self._posterior
        self._views = 0
        self._hits: NDArray[np.integer[Any]] = np.zeros(len(self._grid), dtype=np.uint32)
        self._evidence = Evidence.none(self._grid)
        self.solver = self._settings.solver

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the mapper knows, as arrays by name; :meth:`restore` gives the same belief bit for bit."""
        own = {"hits": self._hits, "views": np.array(self._views), "evidence": self._evidence.rows}
        return {**posterior_state(self._posterior), **own}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Know what another mapper of the same kernel, settings and grid gave as its :meth:`state`.

        Raises:
            MeasurementError: it is no such state; nothing has changed then.
        """
        blank = copy(self)
        blank.reset()
        posterior = posterior_from_state(blank._posterior, state)
        hits, views, evidence = (state.get(name, np.empty(0)) for name in ("hits", "views", "evidence"))
        if hits.dtype != np.uint32 or hits.shape != self._grid.shape or views.shape != () or int(views) < 0:
            raise MeasurementError(f"hits, views: {hits.dtype} {hits.shape}, {views} do not fit the grid")
        self._evidence = evidence_from_rows(self._grid, evidence)
        self._posterior, self._trusted = posterior, trusted(posterior, self._grid)
        self._hits, self._views, self.solver = hits, int(views), self._settings.solver

    def copy(self) -> SurfaceMapper:
        """Another mapper that knows the same; neither sees what is added to the other later."""
        return copy(self)  # what it holds is never changed, only replaced

    @property
    def round(self) -> int:
        """Round t of the thesis that the belief is for: one more than the views conditioned on."""
        return self._views + 1

    def add(
        self, measurements: Measurements, *, same_view: bool = False, free: Iterable[FreeRays] = ()
    ) -> None:
        """Condition on more measurements.

        Each call counts as one view, also without any measurement, unless they are of the `same_view` as the last.
        Free space is kept as evidence; the Gaussian belief does not look at it.

        Where the tilt of the beams is known, the noise of each radius is widened by the slope of the surface, as the
        belief with these measurements sees it (:meth:`Measurements.radial`). That takes a second posterior mean.
        """
        assert measurements.tilt is not None
        assert measurements.spread is not None
        new, at_hits = measurements, CircleInterpolation.at(self._grid, measurements.angle)
        if measurements.tilt.any() or measurements.spread.any():
            preview = trusted(self._posterior.preview(new.angle, new.radius, new.std), self._grid)
            new = new.radial(at_hits(slope_on_grid(self._grid, preview.mean())))
        self._posterior = self._posterior.adding(new.angle, new.radius, new.std)
        self._trusted = trusted(self._posterior, self._grid)
        self._hits = self._hits + self._new_hits(self._met(measurements, at_hits))
        self._evidence = self._evidence.adding(self._grid, new.angle, new.radius, new.std)
        for rays in free:
            self._evidence = self._evidence.bounded(rays.bound(self._grid))
        self._views += not same_view

    def stays_fast(self, information: float) -> bool:
        """Whether an update takes linear time that adds at most `information`, the sum of 1/σ² (1/m²)."""
        return stays_fast(self._posterior, information)

    def belief(self) -> SurfaceBelief:
        """Posterior given all measurements so far."""
        self.solver = self._trusted.solver
        mean, std = self._trusted.mean_and_std()
        half = self._settings.half_width(std, self.round)
        return SurfaceBelief(
            angle=self._grid, mean=mean, std=std, lower=mean - half, upper=mean + half, hits=self._hits,
            evidence=self._evidence,
        )

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw `count` joint samples of the radius on the grid from the posterior, shape (count, M), metres."""
        return self.sample_from(rng.standard_normal((count, self.normals_per_sample)))

    def sample_from(self, normals: FloatArray) -> FloatArray:
        """Joint posterior samples from given standard normals, as :meth:`sample` from random ones.

        The same normals give samples that move with the posterior (common random numbers), as long as the solver
        stays the same kind. Samples are linear in the normals; none (zeros) give the posterior mean.

        Args:
            normals: standard normals, shape (count, normals_per_sample).

        Returns:
            Samples, shape (count, M), metres.
        """
        return self._trusted.sample(np.asarray(normals, dtype=float))

    def log_likelihood(self, kernel: Kernel | None = None, *, prior_mean: float | None = None) -> float:
        """Log marginal likelihood of everything measured so far, to compare hyper-parameters.

        It takes linear time for the Matérn kernels. Condensed, it is an approximation (for ν = 1/2 a poor one).

        Args:
            kernel: kernel to judge; None for the mapper's own.
            prior_mean: prior mean to judge, metres; None for the mapper's own.
        """
        mean = self._settings.prior_mean if prior_mean is None else prior_mean
        return log_likelihood_of(self._posterior, kernel or self._kernel, mean)

    def leave_one_out(self) -> LeaveOneOut:
        """Predict each of :attr:`measurements` from the others: a check of kernel, noise and band."""
        return leave_one_out(self._kernel, self._settings.prior_mean, *self._posterior.measured)

    def _met(self, measurements: Measurements, at_hits: CircleInterpolation) -> FloatArray:
        r"""Angle at which each beam meets the mean contour, to first order, shape (n,), radians.

        Noise along a slanting beam moves its hit along the surface too, so that the outermost hits of a view pretend
        to have seen more of it. The step s along a beam at the tilt t to the contour of the relative slope q is
        :math:`s\,(\cos t - q \sin t) = μ - r`, cut off at three standard deviations.
        """
        tilt, radius = np.asarray(measurements.tilt), np.maximum(measurements.radius, 1e-9)
        if not tilt.any():
            return measurements.angle
        mean = self._trusted.mean()
        short = at_hits(mean) - measurements.radius
        rate = np.cos(tilt) - at_hits(slope_on_grid(self._grid, mean)) * np.sin(tilt)
        most = 3.0 * measurements.std
        step = np.clip(short * np.sign(rate) / np.maximum(np.abs(rate), 1e-3), -most, most)
        return wrap_angle(measurements.angle + step * np.sin(tilt) / radius)

    def _new_hits(self, angle: FloatArray) -> NDArray[np.integer[Any]]:
        """Count the measurements nearest to each grid angle."""
        return np.bincount(nearest_cell(self._grid, angle), minlength=len(self._grid)).astype(np.uint32)
