r"""Do the views fit together? Tests of displacements that would explain contradictions between
views.

Only where views overlap can they contradict each other, and what the surface is like there must not
matter. So the contour is cut into cells about as long as the noise, in each of which the surface
may be off by any amount. With the signed distances z of the hits from the believed contour, in
standard deviations of the range, and their derivatives :math:`D_k = g_k A_k` by a displacement of a
group of views (g = 1, the others 0), both less their means in the cell c, where others look into it
too:

.. math:: d = N^{-1} \sum_k D_k^\top z_k, \quad N = \sum_k D_k^\top D_k + P, \qquad
    S = N^{-1} \Bigl(\sum_c u_c u_c^\top\Bigr) N^{-1}, \quad u_c = \sum_{k \in c} D_k^\top (z_k -
    D_k d)

with a weak prior P (the estimator with fixed effects: Frisch & Waugh 1933; S: Liang & Zeger 1986).
Within a cell the surface is not flat, so that each of the K sides that look into it sees it off by
an amount of its own, however many of its n hits are theirs (:math:`n_k`): with the standard
deviation τ of that (a random effect: Laird & Ware 1982) the terms of the cell count by

.. math:: 1 / (1 + τ^2 ν), \quad ν = \bigl(n - \sum_k n_k^2 / n\bigr) / (K - 1).

The covariance of d is :math:`N^{-1}` if the noise is as the scans show it, and S whatever it is,
but S is unsure where cells are few. The score of the group is the length of d in the standard
deviations of that of both which makes it shorter:
:math:`\sqrt{\min(d^\top N d,\; d^\top S^{-1} d)}`. Groups are all views from each one on (drift; an
object that moved), and each view alone; a displacement common to all views (bias) is one of the
camera, in the plane ahead, left and turn, in space of six numbers, which contradicts itself as it
comes from different sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.surface.checks import ALL_AROUND
from nbv_planner.world.pose import Poses

# Beyond this many standard deviations a hit pulls no harder; beyond it lie outliers.
GATE = 4.0
# Prior standard deviation of a displacement: in mean radii, and in radians.
_LIKELY = 0.1
# Cells that a score rests on at least: of some views against the others, and of one common to all.
_ENOUGH_CELLS, _MANY_CELLS = 6, 20
# Standard deviation by which a side sees a cell off, as a part of its length: chosen on a star and
# a concave polygon, whose corners no smooth contour follows.
UNLIKE = 0.25
_TRACE = 1e-9
# Views from which on they are compared.
_ENOUGH_VIEWS = 3
# Beams in a row that are more than chance.
IN_A_ROW = 3


@runtime_checkable
class Comparable(Protocol):
    """A belief with which the hits of all views can be compared, whatever its topology."""

    @property
    def drawable(self) -> bool:
        """Whether there is a surface."""

    def agreement(
        self, cameras: Poses, view: IntArray, hits: FloatArray
    ) -> tuple[Displaced, float, list[FloatArray]]:
        """Residuals of hits, the part of them that lies off the surface, alone, NaN with too few,
        and places in each wall whose sides cannot be told apart, shape (m, 2), metres; in space
        none is sought.

        Of the poses of the views, the number of the view of each hit, (n,), and its place and
        standard deviation, metres, (D + 1, n).
        """


@dataclass(frozen=True, eq=False)
class Displaced:
    """Residuals of the hits of all views about a mean surface divided into cells."""

    cameras: Poses  #: of the views.
    view: IntArray  #: number of the view of each hit, from 0, shape (n,).
    #: signed distance of each hit from the surface, positive outside, standard deviations, (n,).
    distance: FloatArray
    #: its derivatives by a displacement of the hit: along each axis (metres) and a turn about the
    #: centre, in space about each axis (radians), (n, 3) or (n, 6).
    by: FloatArray
    cell: IntArray  #: in which its beam meets the surface, shape (n,).
    cells: int  #: number of them.
    kept: BoolArray  #: which hits count, shape (n,).
    #: standard deviation by which a side sees a cell off (τ), in that of a hit.
    unlike: float = 0.0

    def scores(self, radius: float, noise: float = 1.0) -> tuple[float, float]:
        """Greatest score of a displacement of some views against the others, and that of one common
        to all.

        Each is NaN where too little overlaps. The surface has the mean `radius`, metres; the scans
        show the part `noise` of the standard deviation.
        """
        views = int(self.view.max(initial=-1)) + 1
        if views < _ENOUGH_VIEWS:
            return math.nan, math.nan
        cells = self.cells
        place = self.view * cells + self.cell
        dimension = self.cameras.position.shape[1]
        lengths = np.ones(self.by.shape[1])
        lengths[:dimension] = radius
        by, distance = self.by * (lengths / noise), self.distance / noise
        sums = _sums(by, distance, place, self.kept, views * cells).reshape(views, cells, -1)
        groups = np.concatenate([np.triu(np.ones((views, views)))[1:], np.eye(views)])
        own = np.tensordot(groups, sums, 1)
        every = sums.sum(axis=0)
        unlike = (self.unlike / noise) ** 2
        weight = _weights(np.stack([own[..., 0], every[:, 0] - own[..., 0]]), unlike)
        overlap = _scores(own, every, weight, _ENOUGH_CELLS)
        if views < ALL_AROUND:
            return _greatest(overlap), math.nan
        seats, rotation = self.cameras.position[:views] / radius, self.cameras.rotation[:views]
        every = _of_cameras(sums, seats, rotation).sum(axis=0)
        weight = _weights(sums[..., 0], unlike)
        bias = _scores(every[None], every, weight[None], _MANY_CELLS)
        return _greatest(overlap), _greatest(bias)


def _greatest(scores: FloatArray) -> float:
    """The greatest of some scores that is known, NaN if none is."""
    return float(scores[known].max()) if (known := ~np.isnan(scores)).any() else math.nan


def _weights(number: FloatArray, unlike: float) -> FloatArray:
    """Weights of cells, for the `number` of hits of K sides in each, shape (K, ...), and the
    variance τ²: shape (...), 0 where only one side looks; see above.
    """
    every = np.maximum(number.sum(axis=0), 1.0)
    sides = (number > 0).sum(axis=0)
    against = (every - (number**2).sum(axis=0) / every) / np.maximum(sides - 1, 1)
    return np.asarray((sides > 1) / (1.0 + unlike * against))


def _of_cameras(sums: FloatArray, place: FloatArray, rotation: FloatArray) -> FloatArray:
    """The sums (views, cells, ...), with derivatives by a displacement of the camera: ahead, left
    (and up), and its turns.

    Of cameras at a `place` c, shape (views, D), with the axes R, (views, D, D), a displacement t
    and a turn ω move the hits by :math:`R t + c × R ω` and turn them by :math:`R ω`.
    """
    dimension = place.shape[1]
    size = 3 if dimension == 2 else 6
    by = np.zeros((len(place), size, size))
    by[:, :dimension, :dimension] = rotation
    if dimension == 2:
        by[:, :2, 2] = np.stack([place[:, 1], -place[:, 0]], axis=1)
        by[:, 2, 2] = 1.0
    else:
        by[:, :3, 3:] = np.cross(place[:, :, None], rotation, axis=1)
        by[:, 3:, 3:] = rotation
    twice = (by[:, :, np.newaxis, :, np.newaxis] * by[:, np.newaxis, :, np.newaxis, :]).reshape(
        -1, size**2, size**2
    )
    ends = [2, 2 + size, 2 + 2 * size]
    number, slope, pull, products = np.split(sums, ends, axis=-1)
    return np.concatenate([number, slope @ by, pull @ by, products @ twice], axis=-1)


def _sums(
    by: FloatArray, distance: FloatArray, place: IntArray, kept: BoolArray, size: int
) -> FloatArray:
    """Sums over the kept hits of each place: number, z, D, D z and the products of D; shape (size,
    17), in space (size, 50).
    """
    slope = by[kept].T
    z = np.clip(distance[kept], -GATE, GATE)
    place = place[kept]
    products = (slope[:, None] * slope).reshape(len(slope) ** 2, -1)
    columns = np.concatenate([[np.ones_like(z), z], slope, slope * z, products])
    return np.stack([np.bincount(place, column, minlength=size) for column in columns], axis=-1)


def _scores(own: FloatArray, every: FloatArray, weight: FloatArray, least: int) -> FloatArray:
    """Score of the displacement of each group of views.

    Args:
        own: sums of the hits of each group in each cell, see :func:`_sums`, shape (groups, cells,
            17 or 50).
        every: those of all hits, shape (cells, 17 or 50).
        weight: of each cell, 0 where not both a group and others look, shape (groups, cells).
        least: number of such cells below which the score is NaN.

    Returns:
        Shape (groups,).
    """
    number = np.maximum(every[:, :1], 1.0)
    size = 3 if own.shape[-1] == 17 else 6
    slope, pull, products = np.split(own[..., 2:], [size, 2 * size], axis=-1)
    pull = (pull - slope * (every[:, 1:2] / number)) * weight[..., None]
    normal = (
        products.reshape(*slope.shape, size) - slope[..., None] * (slope / number)[..., None, :]
    )
    normal = normal * weight[..., None, None]
    cells = (weight > 0.0).sum(axis=1)
    precision = normal.sum(axis=1) + np.eye(size) / _LIKELY**2
    inverse = np.linalg.inv(precision)
    found = np.einsum("gij,gj->gi", inverse, pull.sum(axis=1))
    apart = pull - np.einsum("gcij,gj->gci", normal, found)
    few = cells / np.maximum(cells - size, 1)
    scatter = few[:, None, None] * (np.swapaxes(apart, 1, 2) @ apart)
    # A trace of the other, as fewer cells than numbers leave it singular.
    by_cells = inverse @ scatter @ inverse + _TRACE * inverse
    by_noise = np.einsum("gi,gij,gj->g", found, precision, found)
    squared = np.minimum(
        by_noise, (found * np.linalg.solve(by_cells, found[..., None])[..., 0]).sum(axis=1)
    )
    return np.where(cells >= least, np.sqrt(np.maximum(squared, 0.0)), np.nan)


def in_rows(mask: BoolArray, least: int) -> BoolArray:
    """Those elements of a mask (n,) that are true in a row of at least `least`."""
    row = np.cumsum(np.diff(mask, prepend=False)) * mask  # odd numbers, one for each row
    return np.asarray(mask & (np.bincount(row)[row] >= least))
