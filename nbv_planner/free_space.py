"""Free space: rays that met no surface bound a star-shaped object from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, wrap_angle


@dataclass(frozen=True, eq=False)
class FreeRays:
    """Stretches of rays from one camera on which there is no surface.

    Attributes:
        view_angle: polar angle of the camera, radians.
        distance: its distance from the centre, metres.
        bearing: direction of each ray against that to the centre, counter-clockwise, shape (B,), radians.
        length: free stretch from the camera on, shape (B,), metres, not negative.
        of_hit: whether each ray is that of a hit, in the order of the hits of its scan, shape (B,); None if nobody
            knows.
    """

    view_angle: float
    distance: float
    bearing: FloatArray
    length: FloatArray
    of_hit: BoolArray | None = None

    @property
    def hits(self) -> int:
        """Number of rays that are known to be those of hits."""
        return 0 if self.of_hit is None else int(self.of_hit.sum())

    @property
    def misses(self) -> FreeRays:
        """The rays that met nothing at all."""
        return self.without_hits(np.ones(self.hits, dtype=bool))

    def without_hits(self, doubtful: BoolArray) -> FreeRays:
        """The same without the rays of `doubtful` hits, a mask over the hits of the scan; misses stay."""
        assert self.of_hit is not None
        kept = np.ones(len(self.bearing), dtype=bool)
        kept[np.flatnonzero(self.of_hit)[doubtful]] = False
        return FreeRays(self.view_angle, self.distance, self.bearing[kept], self.length[kept], self.of_hit[kept])

    def bound(self, angle: FloatArray) -> FloatArray:
        r"""Least radius at each polar `angle` at which a ray is free, shape (M,), metres; +inf where none passes.

        A ray at bearing β passes the polar angles up to :math:`δ` from the camera's with
        :math:`δ = \operatorname{atan2}(L\sin|β|, d - L\cosβ)`, at the radius
        :math:`d \sin|β| / \sin(|β| + δ)` (eq. camera-ray), which grows with |β|. So of the rays that reach an angle
        the one with the least |β| counts. A star-shaped object that has a free point is inside of it.

        Args:
            angle: shape (M,), radians.
        """
        sides = (self._bound_on_side(wrap_angle(turn * (angle - self.view_angle)), turn) for turn in (1.0, -1.0))
        return np.minimum(*sides)

    def _bound_on_side(self, offset: FloatArray, turn: float) -> FloatArray:
        """Bound at `offset` (M,) in [0, 2π) from the camera's angle, `turn` times the polar angle.

        A rising bearing sweeps a falling polar angle.
        """
        rays = np.flatnonzero(-turn * self.bearing >= 0.0)
        rays = rays[np.argsort(np.abs(self.bearing[rays]), kind="stable")]
        bearing, length = np.abs(self.bearing[rays]), self.length[rays]
        reach = np.arctan2(length * np.sin(bearing), self.distance - length * np.cos(bearing))
        furthest = np.maximum.accumulate(reach) if len(rays) else reach
        # The angle of a ray's own end must not slip to the next ray by rounding.
        ray = np.searchsorted(furthest, np.where(offset < TWO_PI - 1e-9, offset, 0.0) - 1e-12)
        bound, found = np.full(len(offset), np.inf), ray < len(rays)
        bearing, length, offset = bearing[ray[found]], length[ray[found]], offset[found]
        along = np.sin(bearing + offset)
        radius = np.divide(self.distance * np.sin(bearing), along, out=self.distance - length, where=along > 1e-9)
        bound[found] = np.maximum(radius, 0.0)
        return bound
