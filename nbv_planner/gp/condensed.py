"""Measurements condensed to a bounded number of angles, so that memory and time do not grow with an
episode.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle

# Merging beside a gap costs as much as that many times nearer to a cell boundary: the slope there
# is used far into the gap. 4 was too small, 64 no better.
_BESIDE_GAP = 16.0
# Largest exponent of the discount for pairs that a rough surface hides: beyond, they all count as
# hidden.
_DARKEST = 600.0
_NOTHING_CHANGED: IntArray = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class CondensedMeasurements:
    r"""Measurements at distinct angles, with neighbours merged beyond a greatest number of angles.
    Immutable.

    Measurements at equal angles are merged without loss. Beyond `most` angles, neighbours are
    merged too, but never across a cell boundary, and :math:`n` measurements with precisions
    :math:`w_i = σ_i^{-2}` become the straight line

    .. math::
        \sum_i w_i\bigl(r_i - f(\barφ) - (φ_i - \barφ) f'(\barφ)\bigr)^2, \quad
        \barφ = \frac{\sum_i w_i φ_i}{\sum_i w_i},

    of which only these sums are kept. They do not depend on the kernel. The information about the
    slope in a pair of precisions v, w at a distance δ, :math:`δ^2 vw/(v+w)` (Ward's criterion),
    estimates what merging them would lose to the curvature of the surface. The posterior is wanted
    at the cell boundaries only and sees what is far from them less sharply, so the pairs with the
    least of it over their distance to the boundary are merged, those beside a gap in the
    measurements last (a heuristic).

    Measured against the exact posterior at the boundaries of 1000 cells, 3200 angles left of 60 000
    random, clustered, one-sided or mixed ones of 0.2 m noise: within 5e-4 m for l = 0.2, 5e-3 m for
    0.05 (2e-4 and 2e-3 m with ν = 5/2), with 8192 left within 5e-5 and 6e-4 m (ν = 3/2). Of 20 000
    of 1 cm noise, in rising order and beside a gap, too: within 7e-4 m for l = 0.2.

    A rough surface (ν = 1/2) has no slope. With q the mean square by which it changes per radian
    and w the precision per radian, its value at a boundary is a mean of what is measured around it
    with weights :math:`e^{-x\sqrt{qw}}`, x the distance. Merging gives two measurements the same
    weight; what that adds to the variance of the value goes with
    :math:`δ^2 vw/(v+w)\,e^{-2x\sqrt{qw}}`, and the pairs with the least of it are merged. Measured
    with 3600 of 20 000 (100 000, 10⁶) random angles left, 0.1 m noise, l = 0.2: the deviation is on
    the median 8 (24, 52) % above the exact one and nowhere below; the means lie apart by 1.7 (1.9,
    1.5) cm (root mean square), where the exact deviation is 7.0 (4.5, 2.5) cm. Within a cluster or
    an arc: below 1.2e-3 m.
    """

    edge: FloatArray  #: where each cell begins, rising, shape (N,), radians in [0, 2π).
    most: int  #: greatest number of angles kept, at least 2 N.
    #: mean angle (radians, from edge[0] to edge[0] + 2π, rising), precision :math:`\sum w_i`
    #: (1/m²), mean radius (m), :math:`\sum w_i (φ_i-\barφ)^2` and
    #: :math:`\sum w_i (φ_i-\barφ)(r_i-\bar r)`; shape (5, n).
    columns: FloatArray
    count: int = 0  #: number of measurements.
    is_exact: bool = True  #: whether none but repeats have been merged.
    #: cells in which the newest measurements changed anything, rising.
    changed: IntArray = dataclasses.field(default_factory=lambda: _NOTHING_CHANGED)
    #: mean square q by which the surface changes over a small angle, per radian (m²/rad), if it is
    #: rough (ν = 1/2); 0 if it has a slope.
    diffusion: float = 0.0

    @classmethod
    def none(cls, edge: FloatArray, most: int, *, diffusion: float = 0.0) -> CondensedMeasurements:
        """No measurement yet; see the attributes."""
        return cls(edge, max(most, 2 * len(edge)), np.empty((5, 0)), diffusion=diffusion)

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    @property
    def angle(self) -> FloatArray:
        """Mean angles, shape (n,), radians, from edge[0] to edge[0] + 2π."""
        return np.asarray(self.columns[0])

    @property
    def precision(self) -> FloatArray:
        """Summed precisions at each angle, shape (n,), 1/m²."""
        return np.asarray(self.columns[1])

    @property
    def radius(self) -> FloatArray:
        """Mean radius at each angle, shape (n,), metres."""
        return np.asarray(self.columns[2])

    @property
    def noise_std(self) -> FloatArray:
        """Standard deviation of each mean radius, shape (n,), metres."""
        return self.precision**-0.5

    @property
    def information(self) -> float:
        """Sum of all precisions, 1/m²."""
        return float(self.precision.sum())

    @property
    def cell(self) -> IntArray:
        """The cell that each angle lies in, shape (n,)."""
        return np.repeat(np.arange(len(self.edge)), np.diff(self.bounds))

    @cached_property
    def bounds(self) -> IntArray:
        """Where the angles of each cell begin, and that of the last one end, shape (N + 1,)."""
        return np.append(np.searchsorted(self.angle, self.edge), len(self))

    def adding(
        self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
    ) -> CondensedMeasurements:
        """Add measurements, and merge neighbours where there are too many angles; see
        :meth:`adding_all`.
        """
        return self.adding_all(angle, radius, noise_std)._condensed()

    def adding_all(
        self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
    ) -> CondensedMeasurements:
        """Add measurements, however many angles there are then.

        They are angles (radians), radii and their standard deviations (metres, positive), shape
        (n,) each.
        """
        angle = wrap_angle(angle)
        angle = np.where(angle < self.edge[0], angle + TWO_PI, angle)
        blank = np.zeros(len(angle))
        new = np.stack([angle, noise_std**-2.0, radius, blank, blank])
        columns = np.concatenate([self.columns, new], axis=1)
        columns = columns.take(np.argsort(columns[0], kind="stable"), axis=1)
        added = dataclasses.replace(
            self,
            columns=columns,
            count=self.count + len(angle),
            changed=np.unique(np.searchsorted(self.edge, angle, side="right") - 1),
        )
        return added._merging(np.flatnonzero(columns[0, 1:] == columns[0, :-1]))

    def limited(self, information: float) -> CondensedMeasurements:
        """All precisions scaled by one factor, so that they sum to `information` (1/m²) at most."""
        columns = self.columns.copy()
        columns[[1, 3, 4]] *= min(1.0, information / self.information)
        return dataclasses.replace(self, columns=columns)

    def _condensed(self) -> CondensedMeasurements:
        """Merge neighbours until at most `most` angles are left, an eighth of them at a time at
        most.

        So the pairs are evaluated again before costly ones are merged, and a scan takes one round.
        """
        data = self
        while len(data) > data.most:
            pairs = data._cheapest_pairs(min(len(data) - data.most, 1 + len(data) // 8))
            cells = np.searchsorted(data.bounds, pairs, side="right") - 1
            data = dataclasses.replace(
                data._merging(pairs), changed=np.union1d(data.changed, cells), is_exact=False
            )
        return data

    def _cheapest_pairs(self, number: int) -> IntArray:
        """At most `number` pairs (i, i + 1) that lose little and share no angle, named by i.

        Of every run of neighbours among the 2 `number` cheapest pairs, every other one is free,
        with the cheapest.
        """
        cost = self._cost()
        wanted = min(2 * number, int(np.isfinite(cost).sum()))
        cheap = np.sort(np.argpartition(cost, wanted - 1)[:wanted])
        first = np.flatnonzero(np.diff(cheap, prepend=-2) > 1)
        size = np.diff(first, append=wanted)
        least = cost[cheap] == np.repeat(np.minimum.reduceat(cost[cheap], first), size)
        place = np.arange(wanted)
        cheapest = np.repeat(np.maximum.reduceat(np.where(least, place, 0), first), size)
        free = cheap[(place - cheapest) % 2 == 0]
        return np.sort(free[np.argsort(cost[free], kind="stable")[:number]])

    def _cost(self) -> FloatArray:
        """Estimate of what merging i with i + 1 would lose, shape (n - 1,); infinite across a cell
        boundary.

        It counts half in the cells that have changed already, which have to be solved again anyway.
        """
        angle, precision = self.columns[:2]
        bounds = self.bounds
        size, apart = np.diff(bounds), np.diff(angle)
        begin = np.repeat(self.edge, size)
        end = np.repeat(self._end, size)
        inside = np.minimum((angle - begin)[:-1], (end - angle)[1:])
        from_gap = self._from_gap()
        share = np.ones(len(size))
        share[self.changed] = 0.5
        slope = precision[1:] * precision[:-1] / (precision[1:] + precision[:-1]) * apart**2
        cost = slope * np.repeat(share, size)[1:]
        if self.diffusion:
            sight = np.repeat(2.0 * np.sqrt(self.diffusion * self._density), size)[1:]
            cost *= np.exp(-np.minimum(sight * np.minimum(inside, from_gap), _DARKEST))
        else:
            cost /= np.minimum(inside + apart, (from_gap + apart) / _BESIDE_GAP)
        cost[bounds[(bounds > 0) & (bounds < len(self))] - 1] = np.inf
        return np.asarray(cost)

    @property
    def _end(self) -> FloatArray:
        """Where each cell ends, shape (N,), radians."""
        return np.append(self.edge[1:], self.edge[0] + TWO_PI)

    @property
    def _density(self) -> FloatArray:
        """Precision per radian in each cell, shape (N,), 1/(m² rad)."""
        total = np.append(0.0, np.cumsum(self.precision))[self.bounds]
        return np.diff(total) / (self._end - self.edge)

    def _from_gap(self) -> FloatArray:
        """How far the nearer one of i and i + 1 is from the nearest end of a gap, shape (n - 1,),
        radians.

        A gap is wider than a cell; the first and the last angle lie beside one, too.
        """
        angle = self.angle
        apart = np.diff(self.angle)
        gaps = np.flatnonzero(apart > TWO_PI / len(self.edge))
        run = np.diff(gaps, prepend=-1, append=len(angle) - 1)
        first = angle[np.append(0, gaps + 1)]
        last = angle[np.append(gaps, len(angle) - 1)]
        return np.asarray(
            np.minimum((angle - np.repeat(first, run))[:-1], (np.repeat(last, run) - angle)[1:])
        )

    def _merging(self, pairs: IntArray) -> CondensedMeasurements:
        """Merge each angle i of `pairs` with i + 1; where i and i + 1 are both among them, all
        three become one.
        """
        if len(pairs) == 0:
            return self
        begins = np.diff(pairs, prepend=-2) > 1
        start = pairs[begins]
        size = np.diff(np.flatnonzero(begins), append=len(pairs)) + 1
        merged = _merged(self.columns.take(np.union1d(pairs, pairs + 1), axis=1), size)
        kept = np.ones(len(self), dtype=bool)
        kept[pairs + 1] = False
        # several times faster than np.delete
        columns = self.columns.take(np.flatnonzero(kept), axis=1)
        columns[:, start - np.searchsorted(pairs, start)] = merged
        return dataclasses.replace(self, columns=columns)


def _merged(columns: FloatArray, size: IntArray) -> FloatArray:
    """The columns of runs of `size` neighbours merged into one each."""
    angle, precision, radius, spread, slope = columns
    start = np.cumsum(size) - size
    total = np.add.reduceat(precision, start)
    first = np.repeat(angle[start], size)
    mean_angle = angle[start] + np.add.reduceat(precision * (angle - first), start) / total
    mean_radius = np.add.reduceat(precision * radius, start) / total
    ahead = angle - np.repeat(mean_angle, size)
    above = radius - np.repeat(mean_radius, size)
    spread = np.add.reduceat(spread + precision * ahead**2, start)
    slope = np.add.reduceat(slope + precision * ahead * above, start)
    return np.stack([mean_angle, total, mean_radius, spread, slope])
