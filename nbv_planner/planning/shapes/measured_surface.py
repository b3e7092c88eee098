"""How much of a shape has a measurement nearby, steep walls included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.evidence import Evidence, nearest_cell
from nbv_planner.geometry import FloatArray, IntArray, angle_difference, wrap_angle

# Steps of the radius in which a ray is divided, per reach.
_STEPS = 4


@dataclass(frozen=True, eq=False)
class MeasuredSurface:
    """Where along the ray of each grid angle a surface would have a measurement nearby.

    Attributes:
        near: how many steps of the radius, from the centre on, have a measurement nearby: cumulated, shape (M, B + 1).
        step: length of these steps, metres.
    """

    near: IntArray
    step: float

    @classmethod
    def of(cls, evidence: Evidence, angle: FloatArray, reach: float, radius_max: float) -> MeasuredSurface:
        """Look along each `angle` (uniform, shape (M,), radians) as far as `radius_max`, metres.

        Nearby is a measurement that lies within `reach` (metres) both along the ray and across it.
        """
        at, radius, _ = evidence.measured
        step = reach / _STEPS
        bins = int(np.ceil(radius_max / step)) + 1
        lowest = np.clip((radius - reach) / step, 0, bins).astype(np.intp)
        beyond = np.clip((radius + reach) / step + 1, 0, bins).astype(np.intp)
        nearest, size = nearest_cell(angle, wrap_angle(at)), len(angle)
        edges = np.zeros((size, bins + 1), dtype=np.intp)  # one more at the lowest step of an interval, one less behind
        widest = reach / (radius.min(initial=np.inf) * (angle[1] - angle[0]))
        for offset in range(-int(widest) - 1, int(widest) + 2):
            ray = (nearest + offset) % size
            close = np.abs(angle_difference(angle[ray], at)) * radius <= reach
            np.add.at(edges, (ray[close], lowest[close]), 1)
            np.add.at(edges, (ray[close], beyond[close]), -1)
        near = np.zeros((size, bins + 1), dtype=np.intp)
        np.cumsum(np.cumsum(edges, axis=1)[:, :-1] > 0, axis=1, out=near[:, 1:])
        return cls(near, step)

    def part(self, radius: FloatArray) -> FloatArray:
        """Part of the contour around each grid angle that has a measurement nearby, shape (S, M).

        Around a grid angle the contour goes over all radii from halfway to the one before to halfway to the next.

        Args:
            radius: shapes on the grid, shape (S, M), metres, at most `radius_max`.
        """
        half = 0.5 * (radius + np.roll(radius, -1, axis=1))
        before = np.roll(half, 1, axis=1)
        first = (np.minimum(np.minimum(half, before), radius) / self.step).astype(np.intp)
        beyond = (np.maximum(np.maximum(half, before), radius) / self.step).astype(np.intp) + 1
        ray = np.arange(len(self.near))
        return np.asarray((self.near[ray, beyond] - self.near[ray, first]) / (beyond - first))
