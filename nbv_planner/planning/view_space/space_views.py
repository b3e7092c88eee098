"""Candidate views in space: on a sphere or a part of it, by the joints of a turntable and a tilt,
or from a file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference, of_optical
from nbv_planner.planning.view_space.space import ViewSpace
from nbv_planner.planning.view_space.view_settings import NO_LIST, rows_of
from nbv_planner.planning.view_space.viewpoints import (
    by_joints,
    looking,
    on_sphere,
    with_aims,
)
from nbv_planner.settings import Settings, setting
from nbv_planner.world.ground.zones import around_disc
from nbv_planner.world.pose import CameraPose, Poses

SPACES = ("sphere", "hemisphere", "turntable", "list")
"""Where a camera in space may stand."""
_MOST_POSES, _MOST_BYTES = 5000, 10**7
# A quaternion written with few digits is off by less; one left at zero by 1.
_UNIT = 1e-2
_NUMBERS = 7
_NO_POSE = "is not a pose: numbers must be finite, qx to qw of length 1"


@dataclass(frozen=True)
class SpaceViewSettings(Settings):
    """Candidate views of a camera in space.

    Raises:
        SettingError: a value is out of range, there are more than 5000 places, or a file without
            `view_space: list` or the other way round.
    """

    view_space: str = setting(
        "sphere",
        "Where the camera may stand: sphere; hemisphere: from the height of the centre on;"
        " turntable: by the angles of a table and of an arm that tilts; list: at the poses of"
        " view_file.",
        choices=SPACES,
    )
    num_views: int = setting(
        150, "sphere, hemisphere: number of candidate places.", ge=2, le=_MOST_POSES
    )
    turns: int = setting(
        24, "turntable: number of angles of the table, equally spaced.", ge=1, le=1000
    )
    tilts: int = setting(
        6, "turntable: number of elevations, equally spaced between the two.", ge=1, le=100
    )
    elevation_min: float = setting(
        -0.5 * math.pi,
        "Least elevation above the plane of the centre: higher for a table that the arm must not"
        " touch; of a hemisphere 0 at least.",
        unit="rad",
        ge=-0.5 * math.pi,
        le=0.5 * math.pi,
    )
    elevation_max: float = setting(
        0.5 * math.pi,
        "Greatest elevation: as far as the arm reaches.",
        unit="rad",
        ge=-0.5 * math.pi,
        le=0.5 * math.pi,
    )
    azimuth_max: float = setting(
        math.pi,
        "Greatest angle about the vertical from the object frame's x axis, to either side: for an"
        " arm that does not reach around the object.",
        unit="rad",
        gt=0.0,
        le=math.pi,
    )
    aim_aside: float = setting(
        0.0,
        "Part of radius_max beside the centre at which each place aims, too, to the left and to the"
        " right: for a camera that does not see the whole object; 0: at the centre alone.",
        ge=0.0,
        le=1.0,
    )
    tilt_ratio: float = setting(
        1.0,
        "turntable: speed of the tilt over that of the table, both in rad/s, by which the slower of"
        " the two joints is told: give your joints'.",
        gt=0.0,
    )
    view_poses: tuple[float, ...] = setting(
        NO_LIST,
        "Poses of your own of the optical frame in object_frame, x, y, z (m), qx, qy, qz, qw, x,"
        " ..., in place of view_space; -1 alone: none.",
        read_only=False,
    )
    view_file: str = setting(
        "",
        "list: CSV file with the columns x, y, z (m) and, unless all look at the centre, qx, qy,"
        " qz, qw of the optical frame.",
        start_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.posed:
            poses_of_numbers(self.view_poses)
        if (self.view_space == "list") != bool(self.view_file):
            raise SettingError("view_file: goes with view_space list, and that needs one")
        if self.turns * self.tilts > _MOST_POSES:
            raise SettingError(
                f"turns, tilts: {self.turns} x {self.tilts} candidates, must be <= {_MOST_POSES}"
            )
        if self.elevation_min > self.elevation_max:
            raise SettingError(
                f"elevation_min: {self.elevation_min} must be <= {self.elevation_max}"
                " (elevation_max)"
            )

    @property
    def posed(self) -> bool:
        """Whether the candidates are poses listed by the user."""
        return self.view_poses != NO_LIST

    def poses(self, distance: float, radius: float) -> Poses:
        """The candidates at a `distance` of the centre, about an object of this greatest `radius`,
        metres.

        Raises:
            SettingError: the file cannot be read, or a listed pose is within that radius.
        """
        low, high = self.elevation_min, self.elevation_max
        if self.posed:
            poses = _outside("view_poses", poses_of_numbers(self.view_poses), radius)
        elif self.view_space == "list":
            place = f"view_file: {self.view_file}"
            poses = _outside(place, space_poses_from(self.view_file), radius)
        elif self.view_space == "turntable":
            turns = np.arange(self.turns) * (TWO_PI / self.turns)
            turns = turns[np.abs(angle_difference(turns, 0.0)) <= self.azimuth_max]
            poses = by_joints(turns, np.linspace(low, high, self.tilts), distance)
        else:
            low = max(low, 0.0) if self.view_space == "hemisphere" else low
            poses = on_sphere(self.num_views, distance, low, max(low, high), self.azimuth_max)
        return with_aims(poses, self.aim_aside, radius) if self.aim_aside else poses


class SpaceViews(ViewSpace):
    """Poses around a ball that no camera enters."""

    def __init__(self, candidates: Poses, keep_out: float, tilt_ratio: float = 0.0) -> None:
        """Set up the candidates about a ball of the radius `keep_out`, metres; with a `tilt_ratio`
        > 0 a table turns and an arm tilts at once, so many times as fast.
        """
        super().__init__(candidates)
        self._keep_out, self._tilt_ratio = keep_out, tilt_ratio

    @classmethod
    def of(cls, settings: SpaceViewSettings, distance: float, radius: float) -> SpaceViews:
        """Those of the settings; see :meth:`SpaceViewSettings.poses`."""
        poses = settings.poses(distance, radius)
        nearest = float(np.linalg.norm(poses.position, axis=1).min())
        joints = settings.view_space == "turntable" and not settings.posed
        return cls(poses, min(radius, nearest), settings.tilt_ratio if joints else 0.0)

    def path_length(self, start: CameraPose, ends: Poses) -> FloatArray:
        r"""Length of the shortest path around the ball, shape (V,), metres; with joints that of the
        slower one, :math:`d \max(|Δ_{turn}|, |Δ_{tilt}| / q)` for a tilt q times as fast, so that
        over the speed of the way it is the time of the joints.
        """
        here = np.array([start.x, start.y, start.height])
        away, distance = float(np.linalg.norm(here)), np.linalg.norm(ends.position, axis=1)
        if self._tilt_ratio:
            azimuth = np.arctan2(ends.position[:, 1], ends.position[:, 0])
            turned = np.abs(angle_difference(azimuth, math.atan2(start.y, start.x)))
            tilt = np.arcsin(np.clip(ends.position[:, 2] / distance, -1.0, 1.0))
            tilted = np.abs(tilt - math.asin(min(max(start.height / max(away, 1e-12), -1.0), 1.0)))
            return np.asarray(distance * np.maximum(turned, tilted / self._tilt_ratio))
        cosine = ends.position @ here / np.maximum(distance * away, 1e-12)
        apart = np.arccos(np.clip(cosine, -1.0, 1.0))
        disc = self._keep_out
        return around_disc(disc, max(away, disc), np.maximum(distance, disc), apart)

    def nearest(self, view: CameraPose) -> int:
        """Index of the candidate nearest to `view`: by its place, and a radian counts as its
        distance from the centre.
        """
        return int(np.argmin(self._apart(self.candidates, view)))

    def apart(
        self, views: Poses, visited: Sequence[CameraPose], revisit_radius: float
    ) -> BoolArray:
        """Which of any `views` differ from all `visited` by the angle of the `revisit_radius` in
        place and direction together, (V,).
        """
        far = np.ones(len(views), dtype=bool)
        for taken in visited if revisit_radius > 0.0 else ():
            far &= self._apart(views, taken) >= revisit_radius * views.distance
        return far

    @staticmethod
    def _apart(views: Poses, other: CameraPose) -> FloatArray:
        one = Poses.of([other])
        away = np.linalg.norm(views.position - one.position, axis=1)
        # of two rotations by an angle t apart the trace of their quotient is 1 + 2 cos t
        trace = (views.rotation * one.rotation).sum(axis=(1, 2))
        turned = np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0))
        return np.asarray(np.maximum(away, turned * views.distance))


def _outside(place: str, poses: Poses, radius: float) -> Poses:
    """The same, if all are farther from the centre than the `radius`, metres."""
    away = np.linalg.norm(poses.position, axis=1)
    if (away <= radius).any():
        raise SettingError(
            f"{place}: pose {int(away.argmin()) + 1} is {away.min():.4g} m from the centre, must be"
            f" > {radius:g} m (radius_max)"
        )
    return poses


def poses_of_numbers(numbers: Sequence[float]) -> Poses:
    """Poses of the optical frame from x, y, z (metres), qx, qy, qz, qw of one after the other.

    Raises:
        SettingError: there are too few or too many numbers, or some are no pose.
    """
    count, rest = divmod(len(numbers), _NUMBERS)
    if rest or not 0 < count <= _MOST_POSES:
        raise SettingError(
            f"view_poses: has {len(numbers)} numbers, must be {_NUMBERS} of each of 1 to"
            f" {_MOST_POSES} poses"
        )
    rows = np.reshape(np.asarray(numbers, dtype=float), (count, _NUMBERS))
    for number, row in enumerate(rows, start=1):
        if not _is_pose(row):
            raise SettingError(f"view_poses: pose {number} {_NO_POSE}")
    return Poses(rows[:, :3], of_optical(rows[:, 3:]))


def _is_pose(numbers: FloatArray) -> bool:
    """Whether x, y, z and, if given, qx, qy, qz, qw are finite and of length 1."""
    length = float(np.linalg.norm(numbers[3:])) if len(numbers) > 3 else 1.0
    return bool(np.isfinite(numbers).all() and abs(length - 1.0) <= _UNIT)


def space_poses_from(path: str) -> Poses:
    """Read poses x, y, z (metres, object frame) and qx, qy, qz, qw of the optical frame from a file
    as of :func:`~.view_settings.rows_of`; without these columns all look at the centre.

    Raises:
        SettingError: the file cannot be read, or a pose is not valid; names its line.
    """
    place, rows = f"view_file: {path}", rows_of(path, _MOST_POSES)
    turned = isinstance(rows[0][1], dict) and "qx" in rows[0][1]
    names = ["x", "y", "z"] + ["qx", "qy", "qz", "qw"] * turned
    numbers = np.empty((len(rows), len(names)))
    for values, (line, row) in zip(numbers, rows, strict=True):
        try:
            values[:] = [float(row[name]) for name in names]
        except (KeyError, TypeError, ValueError) as error:
            raise SettingError(
                f"{place}, line {line}: must have the numbers {', '.join(names)}"
            ) from error
        if not _is_pose(values):
            raise SettingError(f"{place}, line {line}: {_NO_POSE}")
    position = numbers[:, :3]
    if len(names) == 3:
        return looking(position, np.zeros(3))
    return Poses(position, of_optical(numbers[:, 3:]))
