r"""Nominal against actual: how far hits lie from the outline that the object should have.

Along the outline, cut into cells, the mean signed distance of the hits in each is

.. math::
    y_j = d_j + b_j^\top β + ε_j, \qquad ε_j \sim N(0, v_j), \quad v_j = 1 / \sum_i σ_i^{-2}

with the deviation d, positive where there is material outside of the outline, and β, what is left
of an error of the outline's place. Two questions are asked of it.

* *Where does the object differ?* The test is on the hits, which no model has smoothed and no mapper
  taken for outliers: of all windows of m measured cells, of many lengths, the greatest
  :math:`|\sum_j ψ(y_j / \sqrt{v_j})| / \sqrt m`, ψ clipping at ±3 so that a wrong hit alone finds
  nothing (a scan statistic: Glaz, Naus and Wallenstein 2001). Its distribution where the object is
  as the outline is comes from draws of the noise, with the place found from each again: the
  family-wise error is 5 %, for normal noise, up to the number of draws.
* *How far is it off?* d is a Gaussian process along the outline, wide enough to shrink no deviation
  by much; its mean, its 95 % interval at each place, and, by draws of the greatest error, the band
  that holds all places seen with 95 % (as far as d is like draws of the process).

The place is the best fit, by Gauss-Newton steps with weights from wide to narrow, without the
stretches that differ; or the outline is taken as it is placed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.known.best_fit import BestFit, Met, turning
from nbv_planner.known.nominal import Nominal

PLACES = ("fitted", "placed")
"""Whether deviations are those after the best fit, or from the outline as it is placed."""
# Standard deviations beyond which the mean of a cell counts no more.
_CLIP = 3.0
# Measured cells of a stretch at least, and part of a polygon that one is at most.
_FEWEST, _LONGEST = 3, 0.5
# Draws, and the probability that is asked for; the normal distance of an interval of 95 %.
_DRAWS, _SEED, _LEVEL, _NORMAL = 999, 0, 0.95, 1.959964
_FEWER_HITS = 8
# Of the deviation as a process: its standard deviation and length scale in those of a hit.
_WIDE, _SMOOTH = 5.0, 1.5
# A place counts as seen where hits leave less than this part of the standard deviation before.
_SEEN = 0.6
# Halvings by which it is found what a stretch surely exceeds.
_HALVINGS = 30
# The place is found again without the stretches that differ so often.
_ROUNDS = 2


class Conformity(Enum):
    """Whether what was seen is within a tolerance."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True)
class Stretch:
    """A part of the outline from which the object differs significantly."""

    x: float  #: its middle, metres.
    y: float
    length: float  #: along the outline, metres.
    mean: float  #: deviation, positive: material outside, metres.
    greatest: float  #: largest deviation in it, of the same sign, metres.

    @property
    def summary(self) -> str:
        """What it is, in words."""
        kind = "more" if self.mean > 0.0 else "less"
        return (
            f"{abs(self.mean):.3g} m {kind} (at most {abs(self.greatest):.3g} m) over"
            f" {self.length:.3g} m about x {self.x:.4g}, y {self.y:.4g}"
        )


@dataclass(frozen=True, eq=False)
class Deviation:
    """Deviation of an object from its nominal outline at P places of it."""

    points: FloatArray  #: places on the outline where it lies now, shape (P, 2), metres.
    normals: FloatArray  #: outward there, shape (P, 2).
    place: (
        FloatArray  #: displacement of the outline: x, y, metres, and turn about its middle, (3,).
    )
    mean: FloatArray  #: deviation, positive: material outside, shape (P,), metres.
    std: FloatArray  #: its standard deviation, shape (P,), metres.
    band: FloatArray  #: half of the interval that holds at all places seen, shape (P,), metres.
    seen: BoolArray  #: where it is known, shape (P,).
    significant: BoolArray  #: where the object differs, shape (P,).
    stretches: Sequence[Stretch]  #: those that differ, the surest first.
    #: tolerance up to which a stretch surely differs by more, metres; 0 without any.
    surely: float
    nominal: Nominal  #: the outline, where it was before.

    @property
    def lower(self) -> FloatArray:
        """Lower end of the 95 % interval at each place, shape (P,), metres."""
        return self.mean - _NORMAL * self.std

    @property
    def upper(self) -> FloatArray:
        """Upper end, shape (P,), metres."""
        return self.mean + _NORMAL * self.std

    @property
    def part_seen(self) -> float:
        """Part of the outline that was seen."""
        return float(self.nominal.length[self.seen].sum() / self.nominal.length.sum())

    def verdict(self, tolerance: float) -> Conformity:
        """Whether what was seen deviates by less than a `tolerance`, metres.

        PASS if the band lies within at all places seen, FAIL if a stretch surely exceeds it: each
        is wrong of at most 5 % of objects, the first as far as the model of d holds.
        """
        if self.surely > tolerance:
            return Conformity.FAIL
        within = np.abs(self.mean) + self.band <= tolerance
        return (
            Conformity.PASS if self.seen.any() and within[self.seen].all() else Conformity.UNDECIDED
        )


def deviation_of(
    nominal: Nominal, hits: Met, place_std: tuple[float, float], place: str = "fitted"
) -> Deviation:
    """Compare hits with a nominal outline.

    Args:
        nominal: the outline.
        hits: places of the surface, in the frame of the outline.
        place_std: standard deviation of the outline's place, of x and y, metres, and of the turn,
            radians.
        place: one of :data:`PLACES`.

    Returns:
        The deviation; with fewer than 8 hits nothing is seen, and the outline is as placed.
    """
    fixed = place == "placed" or len(hits.points) < _FEWER_HITS
    fit = BestFit.at(nominal, hits, place_std)
    if fixed:
        return _Cells.of(fit, fixed=True).deviation()
    fit = fit.best()
    for _ in range(_ROUNDS):
        differs = _Cells.of(fit, fixed=False).differing
        fit = fit.without(differs[fit.cell])
    return _Cells.of(fit, fixed=False).deviation()


@dataclass(frozen=True, eq=False)
class _Window:
    """Cells that differ."""

    cells: IntArray
    sign: float


@dataclass(frozen=True, eq=False)
class _Cells:
    """What was measured in each cell of the outline, P of them."""

    fit: BestFit
    fixed: bool  #: whether the outline is where it was put.
    there: IntArray  #: cells with hits, shape (n,).
    off: FloatArray  #: mean distance in these, shape (n,), metres.
    variance: FloatArray  #: of that, shape (n,).

    @classmethod
    def of(cls, fit: BestFit, *, fixed: bool) -> _Cells:
        """Average the hits of each cell in which their beams meet the outline."""
        count = len(fit.nominal.points)
        weight = fit.std**-2.0
        precision = np.bincount(fit.cell, weight, count)
        there = np.flatnonzero(precision)
        off = np.bincount(fit.cell, weight * fit.off, count)[there] / precision[there]
        return cls(fit, fixed, there, off, 1.0 / precision[there])

    @cached_property
    def by(self) -> FloatArray:
        """Derivative of the distance in each cell by a displacement of hits, shape (P, 3)."""
        nominal = self.fit.nominal
        away = nominal.points - self.fit.middle
        return np.column_stack([nominal.normals, turning(nominal.normals, away)])

    @cached_property
    def gain(self) -> FloatArray:
        """What the place takes of the distances in measured cells, shape (3, n); 0 if fixed."""
        if self.fixed:
            return np.zeros((3, len(self.there)))
        fit = self.fit
        weight = np.bincount(fit.cell, fit.weights(fit.narrow), len(self.by))[self.there]
        weighted = weight[:, None] * self.by[self.there]
        information = weighted.T @ self.by[self.there] + np.diag(fit.place_std**-2.0)
        return np.linalg.solve(information, weighted.T)

    def _scores(self, value: FloatArray) -> Iterator[tuple[slice, int, FloatArray]]:
        """Polygon, number of cells and score of windows that begin at each of its cells, for S
        rows of standardised distances (S, n): shape (S, cells).
        """
        every = np.zeros((len(value), len(self.by)))
        every[:, self.there] = np.clip(value, -_CLIP, _CLIP)
        number = np.zeros(len(self.by))
        number[self.there] = 1.0
        for part in self.fit.nominal.loops:
            size = part.stop - part.start
            sums, many = (
                np.cumsum(np.pad(np.tile(one[:, part], 2), ((0, 0), (1, 0))), axis=1)
                for one in (every, number[None])
            )
            for width in _widths(size):
                found = (many[:, width:] - many[:, :-width])[:, :size]
                score = (sums[:, width:] - sums[:, :-width])[:, :size]
                score *= (found >= _FEWEST) / np.sqrt(np.maximum(found, 1.0))
                yield part, width, score

    @cached_property
    def critical(self) -> float:
        """Score that the greatest one of an object without deviation exceeds with 5 %."""
        rng = np.random.default_rng(_SEED)
        std = np.sqrt(self.variance)
        noise = rng.standard_normal((_DRAWS, len(self.there))) * std
        noise -= (noise @ self.gain.T) @ self.by[self.there].T
        most = np.zeros(_DRAWS)
        for _, _, score in self._scores(noise / std):
            np.maximum(most, np.abs(score).max(axis=1), out=most)
        return float(np.quantile(most, _LEVEL))

    @cached_property
    def windows(self) -> list[_Window]:
        """Those that differ, the surest first, none of which meets another."""
        value = (self.off / np.sqrt(self.variance))[None]
        found = list[_Window]()
        while True:
            best = max(
                (
                    (float(np.abs(score).max()), part, width, int(np.abs(score).argmax()), score)
                    for part, width, score in self._scores(value)
                ),
                key=lambda one: one[0],
            )
            most, part, width, begin, score = best
            if most <= self.critical:
                return found
            cells = part.start + (begin + np.arange(width)) % (part.stop - part.start)
            found.append(_Window(cells, float(np.sign(score[0, begin]))))
            value[0, np.isin(self.there, cells)] = 0.0

    @property
    def differing(self) -> BoolArray:
        """Which cells belong to a window that differs, shape (P,)."""
        mask = np.zeros(len(self.by), dtype=bool)
        for one in self.windows:
            mask[one.cells] = True
        return mask

    def _surely(self, window: _Window) -> float:
        """Greatest distance that the mean of a window surely exceeds, by halving, metres."""
        inside = np.isin(self.there, window.cells)
        off, std = window.sign * self.off[inside], np.sqrt(self.variance[inside])
        low, high = 0.0, float(off.max())
        for _ in range(_HALVINGS):
            half = 0.5 * (low + high)
            score = np.clip((off - half) / std, -_CLIP, _CLIP).sum() / math.sqrt(len(off))
            low, high = (half, high) if score > self.critical else (low, half)
        return low

    def _process(self) -> tuple[FloatArray, FloatArray]:
        """Mean, shape (P,), and covariance, shape (P, P), of the deviation."""
        fit = self.fit
        prior = (_WIDE * fit.noise) ** 2 * self._correlation()
        gram = prior[np.ix_(self.there, self.there)] + np.diag(self.variance)
        factor = cho_factor(gram, lower=True)
        cross = prior[self.there]
        covariance = prior - cross.T @ cho_solve(factor, cross)
        place = self.gain @ (self.variance[:, None] * self.gain.T)
        return cross.T @ cho_solve(factor, self.off), covariance + self.by @ place @ self.by.T

    def _correlation(self) -> FloatArray:
        """Matérn 3/2 over the chord of a circle as long as the polygon, shape (P, P)."""
        nominal = self.fit.nominal
        found = np.zeros((len(self.by), len(self.by)))
        for part in nominal.loops:
            size = part.stop - part.start
            at = np.arange(size)
            around = float(nominal.length[part].sum())
            chord = around / math.pi * np.abs(np.sin(math.pi / size * (at[:, None] - at)))
            scaled = math.sqrt(3.0) * chord / self._smooth
            found[part, part] = (1.0 + scaled) * np.exp(-scaled)
        return found

    @property
    def _smooth(self) -> float:
        """Length scale of the deviation, metres."""
        return max(_SMOOTH * self.fit.noise, 4.0 * float(self.fit.nominal.length.max()))

    def deviation(self) -> Deviation:
        """What was found."""
        nominal, fit = self.fit.nominal, self.fit
        turn = fit.rotation.T
        points = (nominal.points - fit.middle) @ turn + fit.middle + fit.place[:2]
        normals = nominal.normals @ turn
        if len(fit.hits.points) < _FEWER_HITS:
            none = np.zeros(len(points), dtype=bool)
            unknown = np.full(len(points), np.nan)
            return Deviation(
                points, normals, fit.place, unknown, unknown, unknown, none, none, (), 0.0, nominal
            )
        mean, covariance = self._process()
        std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        seen = std < _SEEN * _WIDE * fit.noise
        found = [self._stretch(one, points, mean) for one in self.windows]
        surely = max((self._surely(one) for one in self.windows), default=0.0)
        band = _simultaneous(covariance[np.ix_(seen, seen)]) * std
        return Deviation(
            points,
            normals,
            fit.place,
            mean,
            std,
            band,
            seen,
            self.differing,
            found,
            surely,
            nominal,
        )

    def _stretch(self, window: _Window, points: FloatArray, mean: FloatArray) -> Stretch:
        cells = window.cells
        inside = np.isin(self.there, cells)
        weight = 1.0 / self.variance[inside]
        x, y = points[cells[len(cells) // 2]]
        return Stretch(
            float(x),
            float(y),
            float(self.fit.nominal.length[cells].sum()),
            float(weight @ self.off[inside] / weight.sum()),
            float(window.sign * (window.sign * mean[cells]).max()),
        )


def _simultaneous(covariance: FloatArray) -> float:
    """Standard deviations within which all of a normal vector lies with 95 %, by its covariance
    (n, n).
    """
    std = np.sqrt(np.diag(covariance))
    value, vector = np.linalg.eigh(covariance / std / std[:, None])
    root = vector * np.sqrt(np.maximum(value, 0.0))
    draws = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(std))) @ root.T
    return float(np.quantile(np.abs(draws).max(axis=1, initial=0.0), _LEVEL))


def _widths(size: int) -> list[int]:
    """Numbers of cells of windows on a polygon of `size` cells, each the root of 2 times the one
    before.
    """
    most = max(int(_LONGEST * size), _FEWEST)
    count = int(2.0 * math.log2(most / _FEWEST)) + 1
    return sorted({round(one) for one in np.geomspace(_FEWEST, most, count)})
