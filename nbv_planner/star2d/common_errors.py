r"""Errors that do not average out: those common to all views, and those of each view.

All hits share the errors of the sensor and of its mount, so however many there are, the surface is
off by as much. Where views overlap at different incidence they show a part of it. A beam that
crosses the believed contour at a point with the normal n ends at the signed distance :math:`z_k`
from it along n. With a free constant :math:`f_c` in each cell c of the contour,

.. math:: z_k = f_{c(k)} + G_k θ + ε_k, \qquad θ \sim N(0, I), \quad ε_k \sim N(0, κσ_k^2)

where the columns of :math:`G_k` are :math:`n \cdot d_j`, and :math:`d_j` displaces a hit as one
prior standard deviation of the range's offset and scale, of the bearing's offset and scale, of the
sensor ahead and to the left, and of the time does. Bearings b that are read as :math:`(1 + δ) b`
move a hit at the distance ρ across its beam by :math:`ρ b δ`; scans that are stamped δ late get the
pose of δ later, which moves the hit p of a camera at c by :math:`(v + ω × (p - c)) δ`, with the
rate (v, ω) of the pose. An error whose column is 0, as the last one where no camera moves, keeps
its prior, and the others are as without it. With the means of the cells taken off (the estimator
with fixed effects), :math:`M = G - \bar G`,

.. math:: S = (M^\top W M + I)^{-1}, \qquad m = S M^\top W z, \qquad W_{kk} = 1 / κσ_k^2

The noise along n is that of the range times the cosine of the incidence, and what the contour adds.
κ ≥ 1 is how much more the cells scatter than noise would (Liang & Zeger 1986). The contour lies
where the hits are on average, so it is off by :math:`g = \bar G / (n \cdot r)` along the radius:
the believed surface is moved by :math:`-g m`, and its variance grows by :math:`g S g^\top`. What no
view contradicts keeps its prior.

Normals and cells are taken where the *beam* crosses the contour: at the noisy hit they would depend
on its noise, and so would G, which biases m (errors in variables).

Beyond that, views may differ in a cell by more than their noise: noise that neighbouring beams
share, or poses of views that are off. The variance :math:`τ^2` of that (DerSimonian & Laird 1986),
less two standard errors, divided by the effective number of views, widens the band too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    angle_difference,
    cartesian_to_polar,
)
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.star2d.belief import CommonErrors, SurfaceBelief
from nbv_planner.star2d.overlap import ContourPolyline, ViewData, cells_of, thinned
from nbv_planner.star2d.robust_fit import entered

# Hits that are compared at most.
_HITS = 4096
# How far along a beam its crossing is sought, in standard deviations, and in how many steps.
_REACH, _STEPS = 4.0, 9
# Cosine between normal and radius from which on a cell shows common errors, and least one of a
# shift.
_STEEP, _STEEPEST = 0.5, 0.25
# Cosine of the incidence from which on a hit counts, and the least one by which its noise is taken.
_GRAZING, _SLANTING = 0.1, 0.3
# What the contour adds to the noise along its normal, in variances of the range.
_ROUGH = 0.4
# Standard errors of the scatter between views that count as chance.
_CHANCE = 2.0


@dataclass(frozen=True)
class AccuracySettings(Settings):
    """Standard deviations of errors that all beams or views share, beside the noise: by data sheet
    and mounting.
    """

    accuracy: bool = setting(
        True,
        "Estimate errors that all views share, and widen the band by their uncertainty: false if"
        " sensor and mount are calibrated.",
    )
    range_offset_std: float = setting(
        0.08,
        "Standard deviation of an error that all ranges share: take it from the data sheet of the"
        " sensor.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    range_scale_std: float = python_setting(
        0.003,
        "Standard deviation of an error in proportion to the range.",
        ge=0.0,
        le=1.0,
    )
    bearing_offset_std: float = python_setting(
        0.002,
        "Standard deviation of an error of all bearings, or of the heading.",
        unit="rad",
        ge=0.0,
        le=1.0,
    )
    mount_std: float = setting(
        0.025,
        "Standard deviation of the mounting position of the sensor: the accuracy of your"
        " measurement of it.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    bearing_scale_std: float = python_setting(
        0.002,
        "Standard deviation of an error in proportion to the bearing.",
        ge=0.0,
        le=1.0,
    )
    time_skew_std: float = python_setting(
        0.02,
        "Standard deviation of an error of the stamps of scans against those of poses.",
        unit="s",
        ge=0.0,
    )

    @property
    def prior(self) -> FloatArray:
        """Standard deviation of each error: range offset and scale, bearing, ahead, left, bearing
        scale, time; (7,).
        """
        return np.array(
            [
                self.range_offset_std,
                self.range_scale_std,
                self.bearing_offset_std,
                self.mount_std,
                self.mount_std,
                self.bearing_scale_std,
                self.time_skew_std,
            ]
        )


@dataclass(frozen=True, eq=False)
class Crossings:
    """Where the beams of all views cross a contour, of n hits."""

    view: IntArray  #: number of the view, from 0, shape (n,).
    angle: FloatArray  #: polar angle of the crossing, radians, shape (n,).
    #: signed distance of the hit from the contour along its normal, metres, shape (n,).
    off: FloatArray
    std: FloatArray  #: standard deviation of the range, metres, shape (n,).
    facing: FloatArray  #: cosine of the incidence, positive, shape (n,).
    upright: FloatArray  #: cosine between the normal and the radius, shape (n,).
    range: FloatArray  #: from the sensor to the crossing, metres, shape (n,).
    #: distances along the normal by which a unit of each error displaces a hit, shape (n, 7): of
    #: offset (m), scale, bearing (rad), ahead and left (m), bearing scale, time (s).
    by: FloatArray

    @classmethod
    def of(cls, views: Sequence[ViewData], outline: ContourPolyline) -> Crossings:
        """Cross the contour with the beams of views, thinned out alike where there are too many."""
        number, (x, y, std) = thinned(views, _HITS)
        poses = np.array([(view.pose, view.rate) for view in views])[number]
        (at_x, at_y, yaw), (speed_x, speed_y, turning) = poses.transpose(1, 2, 0)
        far = np.hypot(x - at_x, y - at_y)
        along_x, along_y = (x - at_x) / far, (y - at_y) / far
        places = std[:, None] * np.linspace(-_REACH, _REACH, _STEPS)
        place_x = x[:, None] + places * along_x[:, None]
        place_y = y[:, None] + places * along_y[:, None]
        beyond, found = entered(place_x, place_y, places, outline.angle, outline.radius)
        angle = cartesian_to_polar(x + beyond * along_x, y + beyond * along_y)[0]
        upright, aside = _normal(outline, angle)
        cos, sin = np.cos(angle), np.sin(angle)
        normal_x = upright * cos - aside * sin
        normal_y = upright * sin + aside * cos
        facing = -(normal_x * along_x + normal_y * along_y)
        across = normal_y * along_x - normal_x * along_y
        far = far + beyond
        ahead = np.cos(yaw)
        left = np.sin(yaw)
        bearing = angle_difference(np.arctan2(along_y, along_x), yaw)
        by = np.stack(
            [
                -facing,
                -facing * far,
                across * far,
                normal_x * ahead + normal_y * left,
                normal_y * ahead - normal_x * left,
                across * far * bearing,
                normal_x * speed_x + normal_y * speed_y + across * far * turning,
            ],
            axis=1,
        )
        kept = found & (facing > _GRAZING)
        columns = (number, angle, beyond * facing, std, facing, upright, far, by)
        return cls(*(values[kept] for values in columns))


def _normal(outline: ContourPolyline, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parts of the outward normal of a contour along the radius and across it, at polar angles,
    (n,) each.
    """
    rise = np.roll(outline.radius, -1) - np.roll(outline.radius, 1)
    turn = (np.roll(outline.angle, -1) - np.roll(outline.angle, 1)) % TWO_PI
    slope = np.interp(angle, outline.angle, rise / (turn * outline.radius), period=TWO_PI)
    length = np.hypot(1.0, slope)
    return 1.0 / length, -slope / length


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of the contour that hits fall into."""

    cell: IntArray  #: of each hit, shape (n,).
    number: int  #: how many there are.

    @classmethod
    def of(cls, crossings: Crossings, outline: ContourPolyline) -> _Cells:
        """Those of :func:`cells_of`."""
        return cls(*cells_of(crossings.angle, outline, float(np.median(crossings.std))))

    def means(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Means over the hits in each cell by their `weight`, (n,); 0 where there is none."""
        whole, *sums = (
            np.bincount(self.cell, part * weight, minlength=self.number)
            for part in (1.0, *values.T)
        )
        return (np.stack(sums) / np.where(whole > 0.0, whole, 1.0)).T

    def shared(self, view: IntArray, views: int) -> BoolArray:
        """Which hits are in a cell that several views look into, shape (n,)."""
        hits = np.bincount(self.cell * views + view, minlength=self.number * views)
        looking = (hits.reshape(-1, views) > 0).sum(axis=1)
        return np.asarray((looking > 1)[self.cell])

    def on(self, angle: FloatArray, values: FloatArray) -> FloatArray:
        """Values (number,) of the cells that hold hits at polar angles, shape (M,), radians,
        interpolated.
        """
        there = np.unique(self.cell)
        middle = (there + 0.5) * (TWO_PI / self.number)
        return np.interp(angle, middle, values[there], period=TWO_PI)


def posterior(
    slopes: FloatArray, off: FloatArray, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean (p,) and covariance (p, p) of errors θ ~ N(0, I) with off = slopes θ + noise of unit
    variance.

    Slopes (n, p) and distances (n,) are less the means of their cells; hits of one `cluster` (n,)
    may be off together. An error whose slopes are all 0 keeps its prior, and the others are as
    without it.
    """
    seen = np.asarray(slopes.any(axis=0))
    mean = np.zeros(slopes.shape[1])
    covariance = np.eye(slopes.shape[1])
    if seen.any():
        columns = np.ascontiguousarray(slopes[:, seen])
        mean[seen], covariance[np.ix_(seen, seen)] = _posterior_of_seen(columns, off, cluster)
    return mean, covariance


def _posterior_of_seen(
    slopes: FloatArray, off: FloatArray, cluster: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The :func:`posterior` of errors all of which have slopes."""
    information = slopes.T @ slopes
    unit = np.eye(slopes.shape[1])
    covariance = np.linalg.inv(information + unit)
    left = off - slopes @ (covariance @ (slopes.T @ off))
    pull = np.stack([np.bincount(cluster, column * left) for column in slopes.T], axis=-1)
    scatter, expected = (
        np.trace(covariance @ part @ covariance) for part in (pull.T @ pull, information)
    )
    factor = max(scatter / expected, 1.0) if expected > 0.0 else 1.0
    covariance = np.linalg.inv(information / factor + unit)
    return covariance @ (slopes.T @ off) / factor, covariance


def corrected(
    belief: SurfaceBelief, views: Sequence[ViewData], std: float, settings: AccuracySettings
) -> SurfaceBelief:
    """The `belief` moved by what the views say of common errors, its band widened by what is left
    of them.

    It stays as it is where that is switched off, or there is no hit. A range has the standard
    deviation `std`, metres.
    """
    prior = settings.prior
    if not settings.accuracy or not prior.any() or not views:
        return belief
    outline = ContourPolyline(belief, std)
    crossings = Crossings.of(views, outline)
    if not len(crossings.view):
        return belief
    cells = _Cells.of(crossings, outline)
    steady = (crossings.upright > _STEEP) & cells.shared(crossings.view, len(views))
    slopes = crossings.by * (prior / crossings.std[:, None])
    off = crossings.off / crossings.std
    columns = np.column_stack([slopes, off])
    weight = steady / (crossings.facing**2 + _ROUGH)
    apart = np.sqrt(weight)[:, None] * (columns - cells.means(columns, weight)[cells.cell])
    mean, covariance = posterior(apart[:, :-1], apart[:, -1], cells.cell // 2)
    along_radius = (1.0 / np.maximum(crossings.upright, _STEEPEST))[:, None]
    alike = np.ones(len(off))
    moved, rise = (
        cells.means(part, alike) for part in (crossings.by * prior * along_radius, along_radius)
    )
    variance = np.einsum("ci,ij,cj->c", moved, covariance, moved)
    left = off - slopes @ mean
    variance += rise[:, 0] ** 2 * _scatter(crossings, cells, left, steady, len(views))
    shift, variance = (cells.on(belief.angle, part) for part in (-moved @ mean, variance))
    distance = float(np.mean(crossings.range))
    found = _at_distance(distance, prior, (mean, covariance), len(views))
    return _moved_and_widened(belief, shift, variance, found)


def _at_distance(
    distance: float, prior: FloatArray, errors: tuple[FloatArray, FloatArray], views: int
) -> CommonErrors:
    """The errors of a hit at a `distance`, metres, from mean (7,) and covariance (7, 7) of those of
    the sensor, in standard deviations of the `prior`.
    """
    mean, covariance = errors
    sums = prior * np.array(
        [
            [1.0, distance, 0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, distance, 0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ]
    )
    left = np.sqrt(np.einsum("ki,ij,kj->k", sums, covariance, sums))
    return CommonErrors(sums @ mean, left, np.sqrt((sums**2).sum(axis=1)), views)


def _moved_and_widened(
    belief: SurfaceBelief, shift: FloatArray, variance: FloatArray, found: CommonErrors
) -> SurfaceBelief:
    """The `belief` with its mean moved and its band widened, by arrays of shape (M,), metres and
    metres².
    """
    wide = np.sqrt(belief.std**2 + variance)
    wider = np.divide(wide, belief.std, out=np.ones_like(wide), where=belief.std > 0.0)
    lower, upper = (
        belief.mean + shift + wider * (bound - belief.mean)
        for bound in (belief.lower, belief.upper)
    )
    return dataclasses.replace(
        belief,
        mean=belief.mean + shift,
        std=wide,
        lower=lower,
        upper=upper,
        common=found,
        without=np.stack([belief.mean, belief.std, belief.lower, belief.upper]),
    )


def _scatter(
    crossings: Crossings, cells: _Cells, off: FloatArray, steady: BoolArray, views: int
) -> FloatArray:
    r"""Variance that is left of the mean of the views in each cell, shape (cells,), metres², see
    the module.

    `off` are the distances less the common errors, in standard deviations of the range, shape (n,).
    """
    place = cells.cell * views + crossings.view
    size = cells.number * views
    noise = np.maximum(crossings.facing, _SLANTING) ** 2
    count, expected, total = (
        np.bincount(place[steady], values, minlength=size).reshape(-1, views)
        for values in (np.ones(int(steady.sum())), noise[steady], off[steady])
    )
    weight = np.divide(count**2, expected, out=np.zeros(count.shape), where=count > 0.0)
    mean = total / np.maximum(count, 1.0)
    whole = np.maximum(weight.sum(axis=1), 1e-12)
    apart = weight * (mean - ((weight * mean).sum(axis=1) / whole)[:, None]) ** 2
    freedom = float(np.maximum((count > 0.0).sum(axis=1) - 1, 0).sum())
    lever = float((weight.sum(axis=1) - (weight**2).sum(axis=1) / whole).sum())
    excess = float(apart.sum()) - freedom - _CHANCE * math.sqrt(2.0 * freedom)
    hits = np.bincount(place, minlength=size).reshape(-1, views)
    share = (hits**2).sum(axis=1) / np.maximum(hits.sum(axis=1), 1) ** 2
    if lever <= 0.0:
        return np.zeros(len(share))
    return np.asarray(max(excess, 0.0) / lever * float(np.median(crossings.std)) ** 2 * share)
