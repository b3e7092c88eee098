"""Distance between two closed contours."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.objects import PolarObject

_SAMPLES = 1500
_WALK = 4096
_STRIDE = 8


@dataclass(frozen=True, eq=False)
class SampledContour:
    """A closed contour as points at equal distances along it.

    Attributes:
        points: shape (N, 2), metres.
        spacing: distance between neighbours along the contour, metres.
    """

    points: FloatArray
    spacing: float
    _tree: cKDTree = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the points once for the search of nearest ones."""
        # A plain tree over points in order along a curve is as fast to search and quicker to build.
        object.__setattr__(self, "_tree", cKDTree(self.points, balanced_tree=False, compact_nodes=False))

    @classmethod
    def of_polar(cls, angle: FloatArray, radius: FloatArray, samples: int = _SAMPLES) -> SampledContour:
        """Sample the closed polygon through points given in polar coordinates, rising in angle, shape (n,) each."""
        vertices = np.stack(polar_to_cartesian(angle, radius), axis=1)
        closed = np.concatenate([vertices, vertices[:1]])
        way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
        spacing = float(way[-1]) / samples
        at = np.arange(samples) * spacing
        return cls(np.stack([np.interp(at, way, closed[:, axis]) for axis in (0, 1)], axis=1), spacing)

    @classmethod
    def of_shape(cls, shape: PolarObject, samples: int = _SAMPLES) -> SampledContour:
        """Sample a true object, its corners included in the walk along it."""
        angle = np.union1d(np.arange(_WALK) * (TWO_PI / _WALK), shape.corners())
        return cls.of_polar(angle, shape.radius(angle), samples)

    def farthest_from(self, other: SampledContour) -> float:
        r"""Directed distance :math:`\max_{a \in A} \min_{b \in B} |a - b|` from this contour to `other`, metres.

        The distance to `other` changes along a contour no faster than the way along it. So one sample in `_STRIDE` is
        looked at first, and of the others only those that could exceed the greatest of these.
        """
        coarse = other._tree.query(self.points[::_STRIDE])[0]
        greatest = float(coarse.max())
        reach = coarse + _STRIDE * self.spacing >= greatest
        rest = np.flatnonzero(np.repeat(reach, _STRIDE)[: len(self.points)])
        return float(max(greatest, other._tree.query(self.points[rest])[0].max()))


def hausdorff_distance(first: SampledContour, second: SampledContour) -> float:
    r"""Hausdorff distance :math:`\max(\max_{a} \min_{b} |a - b|, \max_{b} \min_{a} |a - b|)`, metres.

    Between samples; that of the sampled curves differs by at most one `spacing` (the larger one).
    """
    return max(first.farthest_from(second), second.farthest_from(first))
