r"""The best fit of a nominal outline to hits: its rigid displacement, whatever part is unlike it.

Gauss-Newton steps on the signed distances of the hits, with the weights of Geman and McClure from
wide to narrow (graduated non-convexity: Blake and Zisserman 1987), from several turns.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.known.nominal import Feet, Nominal

# Least cosine of the angle of incidence: a hit that glances off lies beside the surface.
_GLANCING = 0.5
# Turns to begin with, in their standard deviation; steps from wide to narrow, and those at the
# end; the narrow width in standard deviations of a hit; how far a place may be from the declared
# one, in its deviation.
_TURNS = (0.0, -1.2, 1.2)
_NARROWING, _LAST, _NARROW, _FARTHEST = 6, 4, 4.0, 4.0
# A hit is followed along its beam to the outline so far, standard deviations.
_FOLLOWED = 3.0


class Met(Protocol):
    """Hits of beams, as :class:`nbv_planner.surface.seam.Hits` has them."""

    @property
    def points(self) -> FloatArray:
        """Shape (n, 2), metres."""

    @property
    def sigma(self) -> FloatArray:
        """Standard deviation of the range, shape (n,), metres."""

    @property
    def origin(self) -> FloatArray:
        """Where the camera stood, shape (n, 2), metres."""

    @property
    def spread(self) -> FloatArray:
        """Covariance by errors of the camera's pose, shape (n, 2, 2), metres²."""


@dataclass(frozen=True, eq=False)
class BestFit:
    """Hits about a displaced outline."""

    nominal: Nominal
    hits: Met
    place_std: FloatArray  #: of the outline's place before, x, y, metres, and turn, shape (3,).
    place: FloatArray  #: displacement of the outline, turned about its middle first, shape (3,).
    counts: FloatArray  #: 1 for hits by which the place is found, else 0, shape (n,).

    @classmethod
    def at(cls, nominal: Nominal, hits: Met, place_std: tuple[float, float]) -> BestFit:
        """The outline as it is placed, known to deviations in metres and radians."""
        along, turn = place_std
        deviation = np.array([along, along, turn])
        return cls(nominal, hits, deviation, np.zeros(3), np.ones(len(hits.points)))

    @cached_property
    def middle(self) -> FloatArray:
        """Of the outline, about which it turns."""
        return np.asarray(self.nominal.points.mean(axis=0))

    @cached_property
    def _away(self) -> FloatArray:
        """Hits from the middle, in the frame of the outline, shape (n, 2)."""
        return np.asarray((self.hits.points - self.middle - self.place[:2]) @ self.rotation)

    @cached_property
    def rotation(self) -> FloatArray:
        """Matrix of the turn, shape (2, 2)."""
        cos, sin = math.cos(self.place[2]), math.sin(self.place[2])
        return np.array([[cos, -sin], [sin, cos]])

    @cached_property
    def _feet(self) -> Feet:
        return self.nominal.feet(self._away + self.middle)

    @property
    def off(self) -> FloatArray:
        """Signed distance of the hits, shape (n,), metres."""
        return self._feet.distance

    @cached_property
    def by(self) -> FloatArray:
        """Its derivative by a displacement of the hit, shape (n, 3)."""
        outward = self._feet.outward
        return np.column_stack([outward, turning(outward, self._away)])

    @cached_property
    def _beam(self) -> tuple[FloatArray, FloatArray]:
        """Direction of the beams in the frame of the outline, (n, 2), and the cosine of the angle
        of incidence, (n,).
        """
        beam = (self.hits.points - self.hits.origin) @ self.rotation
        beam /= np.maximum(np.hypot(*beam.T), np.finfo(float).tiny)[:, None]
        across = np.abs((beam * self._feet.outward).sum(axis=1))
        return beam, np.maximum(across, _GLANCING)

    @cached_property
    def std(self) -> FloatArray:
        """Standard deviation of the distance, shape (n,), metres."""
        normal = self._feet.outward @ self.rotation.T
        pose = np.einsum("ni,nij,nj->n", normal, self.hits.spread, normal)
        return np.asarray(np.sqrt((self.hits.sigma * self._beam[1]) ** 2 + pose))

    @cached_property
    def cell(self) -> IntArray:
        """Cell in which each beam meets the outline, shape (n,): that does not depend on the error
        of its range, as the place nearest to the hit does.
        """
        beam, across = self._beam
        reach = _FOLLOWED * self.hits.sigma
        step = np.clip(self.off / across, -reach, reach)
        return self.nominal.feet(self._away + self.middle + step[:, None] * beam).cell

    def _moved(self, place: FloatArray) -> BestFit:
        return dataclasses.replace(self, place=place)

    def weights(self, width: float) -> FloatArray:
        """Weights of the hits by Geman and McClure, shape (n,), 1/m²."""
        return np.asarray(self.counts / self.std**2 / (1.0 + (self.off / width) ** 2) ** 2)

    @property
    def noise(self) -> float:
        """Median of the standard deviations, metres."""
        return float(np.median(self.hits.sigma))

    @property
    def narrow(self) -> float:
        """Distance from which on a hit counts little in the end, metres."""
        return _NARROW * self.noise

    def _step(self, width: float) -> BestFit:
        """Gauss-Newton, by the hits that are nearer than about a `width`."""
        weighted = self.weights(width)[:, None] * self.by
        precision = self.place_std**-2.0
        turn = self.rotation
        right = weighted.T @ self.off - precision * np.append(self.place[:2] @ turn, self.place[2])
        step = np.linalg.solve(weighted.T @ self.by + np.diag(precision), right)
        limit = _FARTHEST * self.place_std
        return self._moved(np.clip(self.place + np.append(turn @ step[:2], step[2]), -limit, limit))

    def best(self) -> BestFit:
        """The best of the places found from several turns."""
        found = [self._narrowed(turn * float(self.place_std[2])) for turn in _TURNS]
        return min(found, key=lambda one: one.cost)

    @property
    def cost(self) -> float:
        """What a place is judged by: the robust squares, and those of the displacement."""
        square = (self.off / self.narrow) ** 2
        robust = (self.narrow / self.std) ** 2 * square / (1.0 + square)
        return float(self.counts @ robust + ((self.place / self.place_std) ** 2).sum())

    def _narrowed(self, turn: float) -> BestFit:
        look = self._moved(np.array([0.0, 0.0, turn]))
        wide = max(2.0 * float(self.place_std[0]), self.narrow)
        for width in np.geomspace(wide, self.narrow, _NARROWING):
            look = look._step(float(width))
        return look._refined()

    def _refined(self) -> BestFit:
        look = self
        for _ in range(_LAST):
            look = look._step(self.narrow)
        return look

    def without(self, left_out: BoolArray) -> BestFit:
        """The place by the hits that are not `left_out`, shape (n,)."""
        return dataclasses.replace(self, counts=1.0 - left_out)._refined()


def turning(normal: FloatArray, away: FloatArray) -> FloatArray:
    """How fast what is `away` from the middle moves along a normal as it turns, shape (n,)."""
    return np.asarray(normal[:, 1] * away[:, 0] - normal[:, 0] * away[:, 1])
