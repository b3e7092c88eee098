"""Errors that all beams or views share: of range, pose, time and mount; and outlines finer than the
prior expects.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from campaigns.worlds import Lie, polygon
from nbv_planner.geometry import FloatArray, angle_difference
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour
from nbv_planner.world.scan import Scan


@dataclass(frozen=True)
class RangeError(Lie):
    """All ranges are off by a constant and by a part of them."""

    offset: float = 0.0  #: longer by this, metres.
    factor: float = 1.0  #: of the true range.

    def received(self, scan: Scan, earlier: Sequence[Scan]) -> Scan:
        """Other ranges, with the limits of the sensor."""
        ranges = np.where(
            np.isfinite(scan.ranges), self.factor * scan.ranges + self.offset, scan.ranges
        )
        ranges = np.where(
            ranges > scan.range_max, np.inf, np.where(ranges < scan.range_min, -np.inf, ranges)
        )
        return dataclasses.replace(scan, ranges=ranges.astype(np.float32))


@dataclass(frozen=True)
class Walk(Lie):
    """The true pose walks away from the reported one by a random step with each view, in the object
    frame.
    """

    step: float = 0.0  #: root mean square length of a step, metres.
    seed: int = 0  #: of the steps.

    def seeded(self, seed: int) -> Lie:
        """Other steps in each run."""
        return dataclasses.replace(self, seed=seed)

    def pose(self, pose: CameraPose, view: int, before: CameraPose | None) -> CameraPose:
        """The sum of the steps so far."""
        steps = np.random.default_rng([self.seed, 1]).standard_normal(
            (max(view - self.since + 1, 0), 2)
        )
        x, y = math.sqrt(0.5) * self.step * steps.sum(axis=0)
        return dataclasses.replace(pose, x=pose.x + float(x), y=pose.y + float(y))


@dataclass(frozen=True)
class Behind(Lie):
    """A scan is taken before the camera is at its reported pose: an angle about the centre earlier,
    and a part of its motion.
    """

    angle: float = 0.0  #: radians.
    part: float = 0.0  #: of the angle between the last goal and this one.

    def pose(self, pose: CameraPose, view: int, before: CameraPose | None) -> CameraPose:
        """Turned back about the centre, against the direction of motion; without motion, as
        reported.
        """
        if before is None:
            return pose
        way = float(angle_difference(math.atan2(pose.y, pose.x), math.atan2(before.y, before.x)))
        back = self.angle * float(np.sign(way)) + self.part * way
        return CameraPose(0.0, 0.0, -back).then(pose)


@dataclass(frozen=True)
class CorrelatedNoise(Lie):
    """The noise of a beam is correlated with that of its neighbour; its standard deviation is as
    declared.
    """

    correlation: float = 0.0  #: of neighbouring beams; it falls geometrically.

    def normals(self, normals: FloatArray) -> FloatArray:
        """Autoregressive noise of unit variance."""
        fresh = math.sqrt(1.0 - self.correlation**2) * normals
        fresh[0] = normals[0]
        return np.asarray(lfilter([1.0], [1.0, -self.correlation], fresh))


def gear(radius: float, depth: float, teeth: int) -> Contour:
    """A wheel with square teeth about a mean radius, metres."""
    return _wheel(radius, depth, teeth, ((0.0, -1), (0.06, 1), (0.5, 1), (0.56, -1)))


def saw(radius: float, depth: float, teeth: int) -> Contour:
    """A wheel with teeth that rise slowly and drop steeply, about a mean radius, metres."""
    return _wheel(radius, depth, teeth, ((0.0, -1), (0.9, 1)))


def _wheel(
    radius: float, depth: float, teeth: int, corners: Sequence[tuple[float, int]]
) -> Contour:
    """Teeth with `corners` by their place in a pitch and the side of the mean radius on which they
    lie.
    """
    vertices = [
        (2.0 * math.pi * (tooth + at) / teeth, radius + 0.5 * depth * side)
        for tooth in range(teeth)
        for at, side in corners
    ]
    return polygon([(far * math.cos(angle), far * math.sin(angle)) for angle, far in vertices])


FINE_SHAPES: dict[str, Callable[..., Contour]] = {"gear": gear, "saw": saw}
"""Outlines of a fine structure, by name."""
