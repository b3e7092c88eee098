"""The belief about the surface, and the evidence for it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    Point,
    angle_difference,
    polar_points,
    polar_to_cartesian,
)
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.surface.checks import Check
from nbv_planner.surface.regions import Regions
from nbv_planner.world.ground.zones import Ground


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Measurements merged to one per grid angle, and what is known to be free. Immutable.

    The measurements :math:`(φ_i, r_i, σ_i)` nearest to a grid angle become one at their mean,
    weighted by :math:`w_i = σ_i^{-2}`, with the standard deviation :math:`(\sum_i w_i)^{-1/2}`. The
    slope of the surface within the cell is lost: half a grid step times its slope at most.
    """

    #: mean angle of the measurements, shape (M,), radians, within half a step of the grid angle (so
    #: up to that below 0 or above 2π); the grid angle itself where nothing was measured.
    angle: FloatArray
    radius: FloatArray  #: mean radius, shape (M,), metres; 0 where nothing was measured.
    std: FloatArray  #: its standard deviation, shape (M,), metres; +inf where nothing was measured.
    #: radius from which on outwards the object is known not to be, shape (M,), metres; +inf where
    #: that is not known.
    free: FloatArray

    @classmethod
    def none(cls, grid: FloatArray) -> Evidence:
        """No evidence yet about the surface at the angles of `grid`, shape (M,), radians."""
        unknown = np.full(len(grid), np.inf)
        return cls(np.asarray(grid, dtype=float), np.zeros(len(grid)), unknown, unknown)

    @property
    def measured(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angle (radians), radius and standard deviation (metres) where anything was measured,
        shape (n,) each.
        """
        there = np.isfinite(self.std)
        return self.angle[there], self.radius[there], self.std[there]

    @property
    def rows(self) -> FloatArray:
        """The attributes one below the other, shape (4, M); :func:`evidence_from_rows` reads
        them.
        """
        return np.stack(dataclasses.astuple(self))

    def adding(
        self, grid: FloatArray, angle: FloatArray, radius: FloatArray, std: FloatArray
    ) -> Evidence:
        """Add measurements on a uniform `grid`, shape (M,), radians.

        They are angles (radians), radii and their standard deviations (metres, positive), shape
        (n,) each.
        """
        cell = nearest_cell(grid, angle)
        near = grid[cell] + angle_difference(angle, grid[cell])
        weight = std**-2.0
        old = self.std**-2.0
        size = len(grid)
        total = old + np.bincount(cell, weight, size)
        divisor = np.where(total > 0.0, total, 1.0)
        # About the grid angle, so that no digits are lost by adding a turn.
        offset = (
            old * (self.angle - grid) + np.bincount(cell, weight * (near - grid[cell]), size)
        ) / divisor
        mean = (old * self.radius + np.bincount(cell, weight * radius, size)) / divisor
        with np.errstate(divide="ignore"):
            return dataclasses.replace(self, angle=grid + offset, radius=mean, std=total**-0.5)

    def bounded(self, free: FloatArray) -> Evidence:
        """Add that the object is inside `free`, shape (M,), metres, at the grid angles."""
        return dataclasses.replace(self, free=np.minimum(self.free, free))

    def rounded(self) -> Evidence:
        """The same in single precision, as a message carries it."""
        return Evidence(*self.rows.astype(np.float32).astype(float))


def evidence_from_rows(rows: FloatArray) -> Evidence:
    """Evidence from its attributes one below the other, shape (4, M).

    Raises:
        MeasurementError: a value that no evidence has.
    """
    angle, radius, std, free = rows
    if not (np.isfinite(rows[:2]).all() and (std > 0.0).all() and (free >= 0.0).all()):
        raise MeasurementError("evidence: holds a value that is not allowed")
    return Evidence(angle, radius, std, free)


def nearest_cell(grid: FloatArray, angle: FloatArray) -> IntArray:
    """Index of the angle of a uniform grid (2π may be there beside 0) nearest to each angle in [0,
    2π).
    """
    step = grid[1] - grid[0]
    return np.asarray(np.rint((angle - grid[0]) / step).astype(np.intp) % len(grid))


# Standard deviations from which on each error counts as found.
_FOUND = np.array([2.5, 3.0, 3.0, 3.0])
# Which of them is judged by the views alone. Across the beams honest views are off by half a
# standard deviation on average, so that must stand out against what is declared.
_ALONE = np.array([True, False, False, False])
# Part of the prior variance that views take away at least where they tell anything.
_LEAST_GAINED = 1e-9
# Digits after the point that are said at most.
_MOST_DIGITS = 6


@dataclass(frozen=True, eq=False)
class CommonErrors:
    """Errors that all views share: what was found of them."""

    #: error of a hit along its beam, and to the left of it, at the mean range (metres), of the
    #: scale of the bearings (part), and of the stamps of the scans (seconds); shape (4,).
    value: FloatArray
    std: FloatArray  #: its standard deviation, shape (4,).
    prior: FloatArray  #: its standard deviation before the first scan, shape (4,).
    views: int  #: number of views that it comes from.

    @property
    def alone(self) -> tuple[FloatArray, FloatArray]:
        r"""Value and standard deviation by the views alone, without the prior, shape (4,) each.

        A prior with the standard deviation p leaves s and the value v of them:
        :math:`v p^2 / (p^2 - s^2)` and :math:`s p / \sqrt{p^2 - s^2}`, which is large where they
        tell nothing.
        """
        gained = np.maximum(1.0 - (self.std / np.maximum(self.prior, 1e-12)) ** 2, _LEAST_GAINED)
        return self.value / gained, self.std / np.sqrt(gained)

    @property
    def shown(self) -> tuple[FloatArray, FloatArray]:
        """Value and standard deviation as they are judged, (4,) each: along the beams by the views
        :attr:`alone`.
        """
        value, std = self.alone
        return np.where(_ALONE, value, self.value), np.where(_ALONE, std, self.std)

    @property
    def significant(self) -> BoolArray:
        """Which of them, as :attr:`shown`, differ from 0 by more than 3 standard deviations, the
        first by 2.5; (4,).
        """
        value, std = self.shown
        return np.abs(value) > _FOUND * std

    @property
    def summary(self) -> str:
        """What was found, in words; empty if nothing was."""
        said = (
            ("ranges are", 1.0, "m short", "m long"),
            ("hits lie", 1.0, "m to the right", "m to the left"),
            ("bearings are", 100.0, "% narrow", "% wide"),
            ("scans are", 1.0, "s early", "s late"),
        )
        found = list[str]()
        for (what, unit, less, more), value, std, there in zip(
            said, *self.shown, self.significant, strict=True
        ):
            if there:
                found.append(
                    f"{what} {_rounded(unit * abs(value), unit * std)}"
                    f" {more if value > 0.0 else less}"
                )
        return f"{' and '.join(found)}, by {self.views} views" if found else ""


def _rounded(value: float, std: float) -> str:
    """A value and its standard deviation, to the first digit of that."""
    digits = min(max(-math.floor(math.log10(std)), 0), _MOST_DIGITS) if std > 0.0 else _MOST_DIGITS
    return f"{value:.{digits}f} ± {std:.{digits}f}"


@dataclass(frozen=True, eq=False)
class SurfaceBelief:
    """Gaussian belief about the radius on a grid of polar angles, with a confidence band.
    Immutable.
    """

    #: grid, shape (M,), rising, radians; uniform over the circle. The thesis's grid counts 0 and 2π
    #: twice.
    angle: FloatArray
    mean: FloatArray  #: posterior mean, shape (M,), metres.
    std: FloatArray  #: posterior standard deviation, shape (M,), metres.
    lower: FloatArray  #: lower confidence bound, shape (M,), metres.
    upper: FloatArray  #: upper confidence bound, shape (M,), metres.
    #: measurements so far in each grid cell, counted where their beams meet the mean contour, shape
    #: (M,).
    hits: NDArray[np.integer[Any]]
    #: merged measurements that it depends on, to condition another model on; None if not passed on.
    evidence: Evidence | None = None
    #: whether what the model assumes holds; empty where nobody checked.
    checks: tuple[Check, ...] = ()
    #: about which its angles and radii are, in the object frame, metres.
    centre: Point = ORIGIN
    #: errors common to views, which mean and band take into account; None if not.
    common: CommonErrors | None = None
    #: mean, std, lower and upper as if no error was common to views, shape (4, M), metres; None
    #: where none are sought.
    without: FloatArray | None = None
    #: outline that was known before the first measurement; None if none was.
    known: KnownOutline | None = None

    @cached_property
    def by_noise(self) -> SurfaceBelief:
        """The belief as if no error was common to views: what a further view would change."""
        if self.without is None:
            return self
        mean, std, lower, upper = self.without
        return dataclasses.replace(
            self, mean=mean, std=std, lower=lower, upper=upper, common=None, without=None
        )

    @property
    def common_std(self) -> FloatArray:
        """Standard deviation of what is left of common errors, shape (M,), metres."""
        return np.sqrt(np.maximum(self.std**2 - self.by_noise.std**2, 0.0))

    @property
    def step(self) -> float:
        """Grid step Δφ in radians."""
        return float(self.angle[1] - self.angle[0])

    @property
    def width(self) -> FloatArray:
        """Width `u − l` of the band, shape (M,), metres."""
        return self.upper - self.lower

    @property
    def count(self) -> int:
        """Number of measurements that it depends on."""
        return int(self.hits.sum())

    @property
    def finite(self) -> bool:
        """Whether mean and standard deviation are finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.std).all())

    def band(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Polar angle, lower and upper bound, see :class:`~nbv_planner.surface.seam.Banded`."""
        return self.angle, self.lower, self.upper

    def narrow(self, tolerance: float) -> BoolArray:
        """At which grid angles measurements made the band narrower than `tolerance` (metres), shape
        (M,).

        Further away from the nearest measurement than the tolerance itself, a surface at 45 degrees
        to the ray leaves such a band: there it is the prior that is narrow, which is no evidence.
        """
        return (self.width < tolerance) & (distance_to_measurement(self) <= tolerance)

    def narrow_part(self, tolerance: float, regions: Regions | None = None) -> float:
        """Part of the circle that is :meth:`narrow`, see
        :class:`~nbv_planner.surface.seam.Banded`.
        """
        narrow, weight = self.narrow(tolerance), self._weights(regions)
        whole = float(weight.sum())
        return float(weight[narrow].sum()) / whole if whole else 0.0

    def _weights(self, regions: Regions | None) -> FloatArray:
        """Of the mean contour at each grid angle, shape (M,)."""
        if regions is None:
            return np.ones(len(self.angle))
        mean = polar_points(self.angle, np.maximum(self.mean, 0.0))
        return regions.weights(mean + self.centre)

    def measured(self, tolerance: float, regions: Regions | None = None) -> float:
        r"""Estimated coverage: the part of the mean contour, by L1 length, that is :meth:`narrow`.

        The surface crosses about :math:`(|Δx| + |Δy|)/h` pixel borders per piece, so the L1 length
        counts its surface points. It takes a narrow band for a seen surface, which is too
        optimistic at sharp tips that no view has seen.
        """
        x, y = polar_to_cartesian(self.angle, np.maximum(self.mean, 0.0))
        length = np.abs(np.roll(x, -1) - x) + np.abs(np.roll(y, -1) - y)
        length *= self._weights(regions)
        whole = float(length.sum())
        narrow = self.narrow(tolerance)
        return float(length[narrow & np.roll(narrow, -1)].sum()) / whole if whole else 0.0

    def keep_off(self, ground: Ground, most: float) -> Ground:
        """The ground with what the object may occupy, see
        :class:`~nbv_planner.surface.seam.PublishedSurface`.
        """
        return ground.with_object(self.angle, self.upper, most, self.centre)

    def interpolate(self, values: FloatArray, angle: ArrayLike) -> FloatArray:
        """Linear interpolation of grid `values` at any `angle`, around the circle."""
        return CircleInterpolation.at(self.angle, angle)(values)

    def seen_from(self, x: float, y: float) -> SurfaceBelief:
        """The same belief in a frame with the same axes whose origin is at (x, y) of this one's,
        metres.
        """
        return (
            self
            if x == y == 0.0
            else dataclasses.replace(self, centre=(self.centre[0] - x, self.centre[1] - y))
        )

    def as_transmitted(self) -> SurfaceBelief:
        """Return the belief as a `surface` message carries it, in single precision.

        A planner in the same process uses this form too, so that it decides as one that subscribes
        to the topic does.
        """
        names = ("angle", "mean", "std", "lower", "upper")
        rounded: dict[str, Any] = {
            n: np.asarray(getattr(self, n), dtype=np.float32).astype(float) for n in names
        }
        if self.without is not None:
            rounded["without"] = self.without.astype(np.float32).astype(float)
        return dataclasses.replace(
            self, **rounded, evidence=self.evidence and self.evidence.rounded()
        )


def contour_steps(belief: SurfaceBelief) -> FloatArray:
    """Length of the mean contour from each grid angle to the next, shape (M,), metres."""
    x, y = polar_to_cartesian(belief.angle, belief.mean)
    return np.hypot(np.roll(x, -1) - x, np.roll(y, -1) - y)


def distance_to_measurement(belief: SurfaceBelief) -> FloatArray:
    """Length of the mean contour from each grid angle to the nearest with a measurement, shape
    (M,), metres.
    """
    hit = belief.hits > 0
    if not hit.any():
        return np.full(len(hit), np.inf)
    steps = contour_steps(belief)
    at = np.cumsum(steps) - steps
    around = steps.sum()
    places = np.concatenate([at[hit] - around, at[hit], at[hit] + around])
    after = np.searchsorted(places, at)
    return np.asarray(np.minimum(at - places[after - 1], places[after] - at))


# Steepest relative slope (1/rad) that is used; beyond it a radius holds next to no information at
# its angle.
_STEEPEST = 4.0


def slope_on_grid(grid: FloatArray, mean: FloatArray) -> FloatArray:
    """Relative slope `μ'/μ` of a contour at the angles of its grid, shape (M,), 1/rad, by central
    differences.
    """
    step = float(grid[1] - grid[0])
    after, before = (
        at_neighbour(mean) for at_neighbour in _neighbours(np.asarray(grid, dtype=float).tobytes())
    )
    slope = (after - before) / (2.0 * step * np.maximum(mean, 1e-9))
    return np.clip(slope, -_STEEPEST, _STEEPEST)


@lru_cache(maxsize=8)
def _neighbours(grid: bytes) -> tuple[CircleInterpolation, CircleInterpolation]:
    """Interpolation one step after and one before each angle of a grid, whose bytes are the cache
    key.
    """
    angle = np.frombuffer(grid)
    step = float(angle[1] - angle[0])
    return CircleInterpolation.at(angle, angle + step), CircleInterpolation.at(angle, angle - step)


def uniform_grid(size: int) -> FloatArray:
    """Uniform grid of `size` polar angles from 0 without the end point."""
    return np.arange(size) * (TWO_PI / size)


def once_around(belief: SurfaceBelief) -> slice:
    """The part of the grid that counts each direction once: the thesis's grid holds 0 and 2π."""
    closed = belief.angle[-1] - belief.angle[0] > TWO_PI - 0.5 * belief.step
    return slice(0, -1) if closed else slice(None)
