"""The mapper: conditions a Gaussian process on measured radii, and returns the belief."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import SettingError
from nbv_planner.geometry import Arrays, CircleInterpolation, FloatArray, wrap_angle
from nbv_planner.gp.confidence import scheduled_half_width
from nbv_planner.gp.kernels import Kernel
from nbv_planner.gp.posterior import (
    posterior_from_state,
    posterior_on,
    posterior_state,
    saved_array,
    trusted,
)
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.known.outline_fit import outline_fit, with_outline
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.star2d.belief import (
    Evidence,
    SurfaceBelief,
    evidence_from_rows,
    nearest_cell,
    slope_on_grid,
    uniform_grid,
)
from nbv_planner.star2d.measurements import Measurements, PolarRays, polar
from nbv_planner.surface.seam import Hits
from nbv_planner.world.scan import FreeRays


@dataclass(frozen=True)
class MapperSettings(Settings):
    """Grid, prior mean and band of the surface mapper."""

    prior_mean: float = setting(
        5.0,
        "Prior mean of the radius: give it if the mean radius is far from halfway between the"
        " bounds.",
        unit="m",
        gt=0.0,
        scale="mean radius",
    )
    grid_size: int = setting(
        1000,
        "Number of angles at which the surface is computed: raise it for fine detail, lower it on"
        " a slow computer.",
        ge=16,
        le=100_000,
    )
    solver: str = setting(
        "auto",
        "How the posterior is computed: auto in linear time and bounded memory; dense to"
        " check it; grid on coarse grids.",
        choices=("auto", "dense", "grid"),
    )
    confidence_scale: float = setting(
        2.0,
        "Half-width of the confidence band in standard deviations: raise it for a safer band.",
        gt=0.0,
        le=100.0,
    )
    confidence: str = python_setting(
        "fixed",
        "Confidence band: fixed, or schedule: widened with the number of views as the regret bounds"
        " need it.",
        choices=("fixed", "schedule"),
    )
    delta: float = python_setting(
        0.05,
        "schedule: probability with which the band may fail in any round.",
        gt=0.0,
        lt=1.0,
    )
    schedule_a: float = python_setting(
        530.0,
        "schedule: factor a of P(steepest slope > L) <= a exp(-(L/b)²) under the prior.",
        gt=0.0,
    )
    schedule_b: float = python_setting(
        26.0,
        "schedule: scale b of it; both fit the default kernel.",
        unit="m/rad",
        gt=0.0,
        scale="span",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.half_width(np.zeros(1), 1)

    def half_width(self, std: FloatArray, t: int) -> FloatArray:
        """Half-width of the confidence band in round `t` (from 1) at the standard deviations `std`,
        metres.

        Raises:
            SettingError: the schedule has no positive β.
        """
        if self.confidence == "fixed":
            return self.confidence_scale * std
        return scheduled_half_width(std, t, self.delta, self.schedule_a, self.schedule_b)


class SurfaceMapper:
    """Condition a Gaussian process over the polar angle on surface measurements.

    Unless the solver is set to `dense`, time and memory of an update do not grow with the number of
    measurements: beyond some thousand distinct angles, neighbouring ones are merged
    (:class:`CondensedMeasurements`).
    """

    #: outline that is known beforehand, about the centre of the radii; None if none is.
    known: KnownOutline | None = None

    def __init__(
        self, kernel: Kernel, settings: MapperSettings, *, grid: FloatArray | None = None
    ) -> None:
        """Start from the prior.

        Args:
            kernel: covariance function of the radius.
            settings: grid size, prior mean and band.
            grid: grid to use instead of the uniform one (the thesis protocol's counts 2π as well as
                0).
        """
        self._kernel = kernel
        self._settings = settings
        self._grid = uniform_grid(settings.grid_size)
        if grid is not None:
            self._grid = np.asarray(grid, dtype=float)
        if len(self._grid) < 2:
            raise SettingError("grid: needs at least 2 angles")
        self.reset()

    @property
    def count(self) -> int:
        """Number of measurements conditioned on so far."""
        return int(self._hits.sum())

    @property
    def measurements(self) -> Measurements:
        """Measurements conditioned on: each one, repeats and (if condensed) neighbours merged to
        their mean.

        Their noise is that of the radius at their angle; the directions of the beams are not kept.
        """
        return Measurements(*self._posterior.measured)

    @property
    def points(self) -> FloatArray:
        """Where the :attr:`measurements` are, shape (n, 2), metres."""
        return self.measurements.points

    def reset(self) -> None:
        """Forget all measurements."""
        self._posterior = posterior_on(
            self._grid, self._kernel, self._settings.prior_mean, self._settings.solver
        )
        self._trusted = self._posterior
        self._views = 0
        self._hits: NDArray[np.integer[Any]] = np.zeros(len(self._grid), dtype=np.uint32)
        self._evidence = Evidence.none(self._grid)
        #: solution of the newest belief, `fast`, `condensed`, `grid` or `dense`; before the first
        #: one the setting.
        self.solver = self._settings.solver

    def state(self) -> Arrays:
        """Everything that the mapper holds, as arrays by name; :meth:`restore` gives the same
        belief bit for bit.
        """
        return {
            **posterior_state(self._posterior),
            "hits": self._hits,
            "views": np.array(self._views),
            "evidence": self._evidence.rows,
        }

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another mapper of the same kernel, settings and grid.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """
        blank = copy(self)
        blank.reset()
        posterior = posterior_from_state(blank._posterior, state)
        hits = saved_array(state, "hits", len(self._grid), dtype=np.uint32)
        views = saved_array(state, "views", dtype=np.integer, least=0)
        rows = saved_array(state, "evidence", 4, len(self._grid), finite=False)
        self._evidence = evidence_from_rows(rows)
        self._posterior, self._trusted = posterior, trusted(posterior, self._grid)
        self._hits = hits
        self._views = int(views)
        self.solver = self._settings.solver

    def copy(self) -> SurfaceMapper:
        """An independent copy."""
        return copy(self)  # what it holds is never changed, only replaced

    @property
    def round(self) -> int:
        """Round t of the thesis that the belief is for: one more than the views conditioned on."""
        return self._views + 1

    def take(
        self,
        hits: Hits,
        free: Iterable[FreeRays] = (),
        *,
        same_view: bool = False,
        last: bool = True,
    ) -> None:
        """Add hits and free space, see :class:`~nbv_planner.surface.seam.SurfaceModel`."""
        rays = [PolarRays.of(one) for one in free]
        self.add(polar(hits), same_view=same_view, free=rays, last=last)

    def add(
        self,
        measurements: Measurements,
        *,
        same_view: bool = False,
        free: Iterable[PolarRays] = (),
        last: bool = True,
    ) -> None:
        """Condition on more measurements.

        Each call counts as one view, also without any measurement, unless they are of the
        `same_view` as the last. Free space is kept as evidence; the Gaussian belief does not use
        it.

        Where the tilt of the beams is known, the noise of each radius is widened by the slope of
        the surface, as the belief with these measurements sees it
        (:meth:`Measurements.radial_std`). That takes a second posterior mean.
        """
        angle = measurements.angle
        radius = measurements.radius
        std = measurements.std
        at_hits = CircleInterpolation.at(self._grid, angle)
        if measurements.tilt.any() or measurements.spread.any():
            preview = trusted(self._posterior.preview(angle, radius, std), self._grid)
            std = measurements.radial_std(at_hits(slope_on_grid(self._grid, preview.mean())))
        self._posterior = self._posterior.adding(angle, radius, std)
        self._trusted = trusted(self._posterior, self._grid)
        self._hits = self._hits + self._new_hits(self._met(measurements, at_hits))
        self._evidence = self._evidence.adding(self._grid, angle, radius, std)
        for rays in free:
            self._evidence = self._evidence.bounded(rays.bound(self._grid))
        self._views += not same_view

    @property
    def refits_all(self) -> bool:
        """Whether a belief depends on the measurements alone: always."""
        return True

    def belief(self) -> SurfaceBelief:
        """Posterior given all measurements so far."""
        self.solver = self._trusted.solver
        mean, std = self._trusted.mean_and_std()
        if self.known is not None:
            fit = outline_fit(self.known, self._evidence)
            mean, std = with_outline(mean, std, self._grid, fit)
        half = self._settings.half_width(std, self.round)
        return SurfaceBelief(
            angle=self._grid,
            mean=mean,
            std=std,
            lower=mean - half,
            upper=mean + half,
            hits=self._hits,
            evidence=self._evidence,
            known=self.known,
        )

    def _met(self, measurements: Measurements, at_hits: CircleInterpolation) -> FloatArray:
        r"""Angle at which each beam meets the mean contour, to first order, shape (n,), radians.

        Noise along a slanting beam moves its hit along the surface too, so that the outermost hits
        of a view seem to have seen more of it. The step s along a beam at the tilt t to the contour
        of the relative slope q is :math:`s\,(\cos t - q \sin t) = μ - r`, cut off at three standard
        deviations.
        """
        tilt = measurements.tilt
        radius = np.maximum(measurements.radius, 1e-9)
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
        cell = nearest_cell(self._grid, angle)
        return np.bincount(cell, minlength=len(self._grid)).astype(np.uint32)
