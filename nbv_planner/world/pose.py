"""Poses of the camera in the plane or in space, one or many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation, Slerp

from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    Point,
    PoseCovariance,
    angle_difference,
    polar_points,
    wrap_angle,
)

# A pose of the view circle that has been in a message is off it by rounding only: metres, and
# radians.
_ON_CIRCLE = 1e-9
# Views that differ by less are the same: radians, and parts of the distance.
_SAME = 1e-6


@dataclass(frozen=True)
class CameraPose:
    """Pose of the camera; its x axis is the line of sight, y to the left, z up.

    The position is in metres, yaw the direction of the line of sight, radians, counter-clockwise
    from +x. The covariance of the errors of the three is None if they are not known or do not
    matter. The height is that above the plane of the object, metres. A pose in space has an
    attitude besides, and its yaw is that of the line of sight, seen from above.
    """

    x: float
    y: float
    yaw: float
    covariance: PoseCovariance | None = None
    height: float = 0.0
    #: unit quaternion (x, y, z, w) of the axes in space; None in the plane.
    attitude: tuple[float, float, float, float] | None = None
    #: point about which view angle, distance and turn are, metres; it is no part of the pose.
    centre: Point = field(default=ORIGIN, compare=False)
    #: view angle, distance and turn where the pose was given by them: the thesis's tables depend on
    #: their last digits.
    _polar: tuple[float, float, float] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @classmethod
    def from_polar(
        cls,
        view_angle: float,
        distance: float,
        turn: float = 0.0,
        centre: Point = ORIGIN,
    ) -> CameraPose:
        """The pose at a polar angle (radians) and distance (metres) of a `centre`, turned away by
        `turn`, radians.

        The turn is that of the line of sight against the direction to the centre,
        counter-clockwise; 0 looks there.
        """
        x = centre[0] + distance * math.cos(view_angle)
        y = centre[1] + distance * math.sin(view_angle)
        pose = cls(x, y, float(wrap_angle(view_angle + math.pi + turn)), centre=centre)
        object.__setattr__(pose, "_polar", (float(view_angle), float(distance), float(turn)))
        return pose

    @classmethod
    def in_space(cls, position: ArrayLike, rotation: ArrayLike) -> CameraPose:
        """The pose at a position (x, y, z), metres, with the axes that are columns of a rotation,
        shape (3, 3).
        """
        x, y, height = np.asarray(position, dtype=float).tolist()
        axes = np.asarray(rotation, dtype=float)
        quaternion = tuple(Rotation.from_matrix(axes).as_quat().tolist())
        return cls(x, y, math.atan2(axes[1, 0], axes[0, 0]), None, height, quaternion)

    def offset(self, goal: CameraPose) -> tuple[float, float]:
        """Distance, metres, and angle between the attitudes, radians in [0, π], of two poses in
        space or in the plane; a height in the plane does not count.
        """
        x, y = self.x - goal.x, self.y - goal.y
        if self.attitude is None or goal.attitude is None:
            return math.hypot(x, y), abs(float(angle_difference(self.yaw, goal.yaw)))
        turned = Rotation.from_quat(goal.attitude).inv() * Rotation.from_quat(self.attitude)
        return math.hypot(x, y, self.height - goal.height), float(turned.magnitude())

    def towards(self, other: CameraPose, part: float) -> CameraPose:
        """The pose at a part, in [0, 1], of the way to another one, both in space; it turns about
        one axis.
        """
        start, end = (np.array([pose.x, pose.y, pose.height]) for pose in (self, other))
        ends = Rotation.from_quat([self.attitude, other.attitude])
        turned = Slerp([0.0, 1.0], ends)(part)
        return CameraPose.in_space(start + part * (end - start), turned.as_matrix())

    def placed(self, x: float, y: float) -> CameraPose:
        """The same pose where its position is known to the last digit, metres."""
        if (x, y) == (self.x, self.y):
            return self
        pose = replace(self, x=x, y=y)
        object.__setattr__(pose, "_polar", self._polar)
        return pose

    def about(self, centre: Point) -> CameraPose:
        """The same pose, of which view angle, distance and turn are about another centre."""
        return self if centre == self.centre else replace(self, centre=centre)

    @property
    def view_angle(self) -> float:
        """Polar angle of the position about the centre, in [0, 2π) unless the pose was given by
        another one.
        """
        if self._polar is None:
            return float(wrap_angle(math.atan2(self.y - self.centre[1], self.x - self.centre[0])))
        return self._polar[0]

    @property
    def distance(self) -> float:
        """Distance from the centre, metres."""
        if self._polar is None:
            return math.hypot(self.x - self.centre[0], self.y - self.centre[1])
        return self._polar[1]

    @property
    def turn(self) -> float:
        """Turn of the line of sight against the direction to the centre, counter-clockwise,
        radians.
        """
        if self._polar is None:
            return math.remainder(self.yaw - self.view_angle - math.pi, TWO_PI)
        return self._polar[2]

    @property
    def reverse_heading(self) -> float:
        """Direction against the line of sight, radians; not wrapped."""
        return self.view_angle + self.turn

    @property
    def polar(self) -> tuple[float, float, float]:
        """View angle, distance and turn."""
        return self.view_angle, self.distance, self.turn

    def off_circle(self, view_distance: float) -> dict[str, Any]:
        """What besides the angle gives the view, `view_distance` and `view_turn`; nothing on the
        view circle.
        """
        on_circle = max(abs(self.distance - view_distance), abs(self.turn)) <= _ON_CIRCLE
        return {} if on_circle else {"view_distance": self.distance, "view_turn": self.turn}

    def summary(self, view_distance: float, digits: int = 4) -> str:
        """Where it is: its angle, and off the view circle of this radius distance and turn too; in
        space its position.
        """
        if self.attitude is not None:
            return f"({self.x:.{digits}g}, {self.y:.{digits}g}, {self.height:.{digits}g}) m"
        free = f", {self.distance:.{digits}g} m, turned by {self.turn:.{digits}f} rad"
        return f"{self.view_angle:.{digits}f} rad{free if self.off_circle(view_distance) else ''}"

    def then(self, relative: CameraPose) -> CameraPose:
        """Pose in the object frame of a body that is at `relative` in the frame of this pose, known
        exactly.
        """
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        ahead = cos * relative.x - sin * relative.y
        aside = sin * relative.x + cos * relative.y
        covariance = None if self.covariance is None else self.covariance.at_lever(ahead, aside)
        yaw = self.yaw + relative.yaw
        height = self.height + relative.height
        return CameraPose(self.x + ahead, self.y + aside, yaw, covariance, height)

    def relative_to(self, x: float, y: float) -> CameraPose:
        """This pose in a frame with the same axes whose origin, its centre there, is at (x, y),
        metres.
        """
        moved = replace(self, x=self.x - x, y=self.y - y, centre=ORIGIN)
        object.__setattr__(moved, "_polar", self._polar if self.centre == (x, y) else None)
        return moved

    def inverse(self) -> CameraPose:
        """Pose of the frame in which this pose is given, in the frame of this pose."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        x = -cos * self.x - sin * self.y
        y = sin * self.x - cos * self.y
        return CameraPose(x, y, -self.yaw, height=-self.height)

    def to_camera(self, x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Camera coordinates (x along the line of sight, y to the left) of world points."""
        dx = np.asarray(x, dtype=float) - self.x
        dy = np.asarray(y, dtype=float) - self.y
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return cos * dx + sin * dy, cos * dy - sin * dx

    def to_world(self, bearing: ArrayLike, distance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """World coordinates of points at `bearing` and range `distance`."""
        direction = self.yaw + np.asarray(bearing, dtype=float)
        reach = np.asarray(distance, dtype=float)
        return self.x + reach * np.cos(direction), self.y + reach * np.sin(direction)


@dataclass(frozen=True, eq=False)
class Poses:
    """Camera poses as arrays: where V cameras stand, and how they are turned, in D dimensions."""

    position: FloatArray  #: shape (V, D), metres.
    #: shape (V, D, D); its columns are the axes of the camera, the first the line of sight.
    rotation: FloatArray
    #: view angle, distance and turn of each, shape (V, 3), where they were given by them; see
    #: :class:`CameraPose`.
    _polar: FloatArray | None = None
    centre: Point = ORIGIN  #: about which they are, metres.

    @classmethod
    def from_polar(
        cls,
        view_angle: FloatArray,
        distance: FloatArray,
        turn: FloatArray,
        centre: Point = ORIGIN,
    ) -> Poses:
        """The poses in the plane that :meth:`CameraPose.from_polar` gives, of arrays of shape
        (V,).
        """
        position = polar_points(view_angle, distance) + centre
        polar = np.stack([view_angle, distance, turn], axis=-1)
        return cls(position, _turned(view_angle + math.pi + turn), polar, centre)

    @classmethod
    def on_circle(
        cls, view_angles: ArrayLike, view_distance: float, centre: Point = ORIGIN
    ) -> Poses:
        """Poses at `view_angles`, shape (V,), on a circle, that look at its centre."""
        angle = np.atleast_1d(np.asarray(view_angles, dtype=float))
        distance = np.full(len(angle), view_distance)
        turn = np.zeros(len(angle))
        return cls.from_polar(angle, distance, turn, centre)

    @classmethod
    def given(cls, views: ArrayLike | Poses, view_distance: float) -> Poses:
        """Poses as they are, or those on the circle that angles, shape (V,), radians, stand for."""
        return views if isinstance(views, Poses) else cls.on_circle(views, view_distance)

    @classmethod
    def of(cls, poses: Sequence[CameraPose]) -> Poses:
        """The same poses as arrays, about the centre of the first of them."""
        if poses and poses[0].attitude is not None:
            places = np.array([(pose.x, pose.y, pose.height) for pose in poses])
            attitudes = Rotation.from_quat([pose.attitude for pose in poses])
            return cls(places, np.asarray(attitudes.as_matrix()))
        centre = poses[0].centre if poses else ORIGIN
        polar = np.array([pose.about(centre).polar for pose in poses], dtype=float).reshape(-1, 3)
        position = np.array([(pose.x, pose.y) for pose in poses], dtype=float).reshape(-1, 2)
        yaw = np.array([pose.yaw for pose in poses], dtype=float)
        return cls(position, _turned(yaw), polar, centre)

    def about(self, centre: Point) -> Poses:
        """The same poses, of which view angles, distances and turns are about another centre."""
        return self if centre == self.centre else Poses(self.position, self.rotation, centre=centre)

    def relative_to(self, x: float, y: float) -> Poses:
        """These poses in a frame with the same axes whose origin, their centre there, is at (x, y),
        metres.
        """
        if x == y == 0.0:
            return self.about(ORIGIN)
        polar = self._polar if self.centre == (x, y) else None
        return Poses(self.position - (x, y), self.rotation, polar)

    def __len__(self) -> int:
        return len(self.position)

    def __iter__(self) -> Iterator[CameraPose]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> CameraPose:
        if _spatial(self):
            return CameraPose.in_space(self.position[index], self.rotation[index])
        angle, distance, turn = self.polar[index].tolist()
        pose = CameraPose.from_polar(angle, distance, turn, self.centre)
        return pose.placed(*self.position[index].tolist())

    @cached_property
    def polar(self) -> FloatArray:
        """View angle, distance and turn of each, see :class:`CameraPose`, shape (V, 3); in space
        the angle and the turn are those seen from above.
        """
        if self._polar is not None:
            return self._polar
        x, y = (self.position[:, :2] - self.centre).T
        angle = wrap_angle(np.arctan2(y, x))
        yaw = np.arctan2(self.rotation[:, 1, 0], self.rotation[:, 0, 0])
        away = np.hypot(np.hypot(x, y), self.position[:, 2]) if _spatial(self) else np.hypot(x, y)
        return np.stack([angle, away, angle_difference(yaw, angle + math.pi)], axis=-1)

    @property
    def view_angle(self) -> FloatArray:
        """Polar angles, shape (V,), radians."""
        return self.polar[:, 0]

    @property
    def distance(self) -> FloatArray:
        """Distances from the centre, shape (V,), metres."""
        return self.polar[:, 1]

    @property
    def reverse_heading(self) -> FloatArray:
        """Directions against the lines of sight, shape (V,), radians; not wrapped."""
        return self.view_angle + self.turn

    @property
    def heading(self) -> FloatArray:
        """Directions of the lines of sight, shape (V,), radians; not wrapped."""
        return self.polar[:, 0] + math.pi + self.turn

    @property
    def turn(self) -> FloatArray:
        """Turns of the lines of sight against the directions to the centre, shape (V,), radians."""
        return self.polar[:, 2]

    def chosen(self, which: BoolArray | IntArray | slice) -> Poses:
        """Those that a mask, indices or a slice select."""
        return Poses(self.position[which], self.rotation[which], self.polar[which], self.centre)

    def places(self) -> tuple[Poses, IntArray]:
        """The P distinct positions, as poses that look at the centre, and the index of that of each
        pose, (V,).
        """
        stands, which = np.unique(self.polar[:, :2], axis=0, return_inverse=True)
        views = Poses.from_polar(stands[:, 0], stands[:, 1], np.zeros(len(stands)), self.centre)
        return views, which.reshape(-1)

    def joined(self, others: Poses) -> Poses:
        """These poses and then the `others`."""
        others = others.about(self.centre)
        position, rotation, polar = (
            np.concatenate([getattr(one, name) for one in (self, others)])
            for name in ("position", "rotation", "polar")
        )
        return Poses(position, rotation, polar, self.centre)

    def are_on_circle(self, view_distance: float) -> bool:
        """Whether all lie on the circle of this radius and look at its centre, but for rounding."""
        off = np.abs(self.distance - view_distance) > _ON_CIRCLE * view_distance
        return not (off | (np.abs(self.turn) > _ON_CIRCLE)).any()

    def repeat(self, taken: Poses, tolerance: float = _SAME) -> BoolArray:
        """Which are the same as one of those `taken` within a tolerance (radians, part of the
        distance), shape (V,).
        """
        if _spatial(self):
            return _same_in_space(self, taken, tolerance)
        taken = taken.about(self.centre)
        turned = np.abs(angle_difference(self.view_angle[:, None], taken.view_angle))
        headed = np.abs(angle_difference(self.turn[:, None], taken.turn))
        nearer = np.abs(self.distance[:, None] - taken.distance)
        same = (turned < tolerance) & (headed < tolerance) & (nearer < tolerance * taken.distance)
        return np.asarray(same.any(axis=1))


def poses_in_plane(rows: FloatArray) -> Poses:
    """The poses of x, y (metres) and yaw (radians), shape (V, 3)."""
    return Poses(rows[:, :2], _turned(rows[:, 2]))


def _spatial(poses: Poses) -> bool:
    """Whether they are in space."""
    return bool(poses.position.shape[1] == 3)


def _same_in_space(views: Poses, taken: Poses, tolerance: float) -> BoolArray:
    """See :meth:`Poses.repeat`."""
    if not len(taken):
        return np.zeros(len(views), dtype=bool)
    apart = np.linalg.norm(views.position[:, None] - taken.position, axis=-1)
    near = apart < tolerance * np.linalg.norm(taken.position, axis=1)
    # of two rotations by an angle t apart it is 4 - 4 cos t, 2 t² for small ones
    turned = ((views.rotation[:, None] - taken.rotation) ** 2).sum(axis=(-2, -1))
    return np.asarray((near & (turned < 2.0 * tolerance**2)).any(axis=1))


def _turned(yaw: FloatArray) -> FloatArray:
    """Rotations by `yaw`, shape (V,), radians: shape (V, 2, 2)."""
    cos, sin = np.cos(yaw), np.sin(yaw)
    return np.array([[cos, -sin], [sin, cos]]).transpose(2, 0, 1)
