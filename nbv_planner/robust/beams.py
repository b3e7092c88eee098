"""The measurements that are kept, each with the view it was taken from and how its beam lay."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import (
    BoolArray,
    FloatArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
)
from nbv_planner.surface import Measurements


@dataclass(frozen=True, eq=False)
class Beams:
    """Measurements in the order in which they came. Immutable.

    Attributes:
        hits: where the beams met the surface.
        scan: number of the scan that each is from, shape (n,), rising.
        view: number of the view that each is from, shape (n,), rising.
    """

    hits: Measurements
    scan: NDArray[np.intp]
    view: NDArray[np.intp]

    @classmethod
    def none(cls) -> Beams:
        """No beam yet."""
        return cls(Measurements.empty(), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))

    def __len__(self) -> int:
        """Return the number of beams."""
        return len(self.scan)

    def joined(self, other: Beams) -> Beams:
        """Both, `other` behind these."""
        return Beams(
            self.hits.joined(other.hits), np.concatenate([self.scan, other.scan]),
            np.concatenate([self.view, other.view]),
        )

    def chosen(self, mask: BoolArray) -> Beams:
        """Those beams for which `mask`, shape (n,), is true."""
        return Beams(self.hits.chosen(mask), self.scan[mask], self.view[mask])

    @property
    def direction(self) -> FloatArray:
        """Direction in which each beam runs, shape (n,), radians, counter-clockwise from +x of the object frame."""
        assert self.hits.tilt is not None
        return np.asarray(self.hits.angle + self.hits.tilt)

    def displaced(self, ahead: float, left: float) -> Beams:
        """The same beams from a camera `ahead` and `left` (metres) of where it was, looking the same way."""
        assert self.hits.bearing is not None
        yaw, direction = self.direction - self.hits.bearing, self.direction
        x, y = polar_to_cartesian(self.hits.angle, self.hits.radius)
        angle, radius = cartesian_to_polar(
            x + ahead * np.cos(yaw) - left * np.sin(yaw), y + ahead * np.sin(yaw) + left * np.cos(yaw)
        )
        hits = dataclasses.replace(self.hits, angle=angle, radius=radius, tilt=angle_difference(direction, angle))
        return dataclasses.replace(self, hits=hits)

    def moved(self, way: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points that lie `way` (n, k), metres, further along each beam than its hit: x and y, shape (n, k)."""
        x, y = polar_to_cartesian(self.hits.angle, self.hits.radius)
        direction = self.direction
        return (
            x[:, np.newaxis] + way * np.cos(direction)[:, np.newaxis],
            y[:, np.newaxis] + way * np.sin(direction)[:, np.newaxis],
        )
