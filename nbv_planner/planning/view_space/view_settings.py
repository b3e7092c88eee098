"""Which views a user gives: the settings, lists of angles and of poses, files of poses."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from nbv_planner.errors import ConfigFileError, SettingError, reason, shown
from nbv_planner.files.located_yaml import located
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, wrap_angle
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.system import at_home, read_regular
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import BeamScene, Scene

# A view at the very end of an arc belongs to it, whatever the rounding.
SLACK = 1e-9
# Listed views nearer to each other than this are one, radians.
_CLOSEST = 1e-3
# No more views are listed, and no more poses.
_MOST_LISTED, _MOST_LISTED_POSES = 1000, 2000
# Poses lie within so many metres of the centre.
_FARTHEST = 1e4
# No more free poses are allowed: a decision would take minutes.
_MOST_POSES = 100_000
# Bytes that their file may have.
_MOST_BYTES = 10**7
VIEW_SPACES = ("circle", "annulus", "file")
"""Where the camera may stand."""
NO_LIST = (-1.0,)
"""What stands for no list: ROS has no empty list of numbers."""
LISTS = ("view_angles", "view_poses")
"""Parameters that list candidates; they may change between two episodes."""


@dataclass(frozen=True)
class ViewSpaceSettings(Settings):
    """Candidate views and where the camera may go.

    An arc is a pair of angles, counter-clockwise from the first to the second; a list holds one arc
    after another.

    Raises:
        SettingError: a value is out of range, an arc is not a pair, listed views are too close,
            there are too many poses in the annulus, or none, or a file without `view_space: file`
            or the other way
                round.
    """

    view_space: str = setting(
        "circle",
        "Where the camera may stand: on the view circle; annulus: at any distance between"
        " two; file: at poses of your own.",
        choices=VIEW_SPACES,
    )
    annulus_min: float = setting(
        8.5,
        "annulus: least distance from the centre: how near your robot may come.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )
    annulus_max: float = setting(
        16.0,
        "annulus: greatest distance from the centre: how much room there is.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )
    annulus_radii: int = python_setting(
        6, "annulus: number of radii, equally spaced.", ge=1, le=1000
    )
    annulus_angles: int = python_setting(
        48,
        "annulus: number of view angles, equally spaced.",
        ge=1,
        le=10_000,
    )
    annulus_headings: int = python_setting(
        7,
        "annulus: number of headings at each position, from that at which one edge of the cone"
        " touches the bound of the object to the same on the other side.",
        ge=1,
        le=1000,
    )
    view_file: str = setting(
        "",
        "view_space file: poses in object_frame, CSV with the columns x, y, yaw, or YAML with"
        " a list; also cost and seconds of each.",
        start_only=True,
    )
    num_views: int = setting(
        100,
        "circle: number of candidate views: lower it if they are closer together than your"
        " robot's accuracy.",
        ge=1,
        le=100_000,
    )
    view_angles: tuple[float, ...] = setting(
        NO_LIST,
        "Views on the circle of your own, angles from 0 to 2 pi, in place of num_views; -1"
        " alone: none.",
        unit="rad",
        read_only=False,
    )
    view_poses: tuple[float, ...] = setting(
        NO_LIST,
        "Poses of your own in object_frame, x, y (m), yaw (rad), x, y, yaw, ..., in place of"
        " view_space; -1 alone: none.",
        read_only=False,
    )
    allowed_arcs: tuple[float, ...] = setting(
        (0.0, TWO_PI),
        "Arcs of the view circle where the camera may stand, counter-clockwise: start, end,"
        " start, end, ...: exclude where your robot cannot go.",
        unit="rad",
    )
    blocked_arcs: tuple[float, ...] = python_setting(
        (0.0, 0.0),
        "Arcs that it must not use: start, end, ...; an empty arc (start = end) blocks nothing.",
        unit="rad",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("allowed_arcs", "blocked_arcs"):
            if len(getattr(self, name)) % 2:
                raise SettingError(
                    f"{name}: has {len(getattr(self, name))} angles, must be pairs start, end"
                )
        if self.listed:
            check_angles("view_angles", self.view_angles)
        if self.posed:
            check_view_poses("view_poses", self.view_poses)
        if self.listed and (self.posed or self.view_space != "circle"):
            raise SettingError(
                "view_angles: are views on the circle; not with view_poses, or another view_space"
            )
        if self.annulus_min > self.annulus_max:
            raise SettingError(
                f"annulus_min: {self.annulus_min} must be <= {self.annulus_max} (annulus_max)"
            )
        number = self.annulus_radii * self.annulus_angles * self.annulus_headings
        if number > _MOST_POSES:
            raise SettingError(
                f"annulus_radii, annulus_angles, annulus_headings: are {number} poses, must be"
                f" {_MOST_POSES} or fewer"
            )
        if bool(self.view_file) != (self.view_space == "file"):
            raise SettingError(
                f"view_file: {self.view_file!r} does not go with view_space: {self.view_space}"
            )

    @property
    def listed(self) -> bool:
        """Whether the candidates are listed by the user."""
        return self.view_angles != NO_LIST

    @property
    def posed(self) -> bool:
        """Whether the candidates are poses listed by the user."""
        return self.view_poses != NO_LIST

    @property
    def on_circle(self) -> bool:
        """Whether all candidates lie on the view circle and look at its centre."""
        return self.view_space == "circle" and not self.posed

    def sight_in(self, scene: Scene) -> Scene:
        """The scene with beams, unless all candidates lie on the view circle; one of another class
        says it itself.
        """
        kind = Scene if self.on_circle else BeamScene
        return kind(*astuple(scene)) if type(scene) in (Scene, BeamScene) else scene


def check_angles(name: str, angles: Sequence[float]) -> FloatArray:
    """Return view angles (radians) that a user lists as `name`.

    Raises:
        SettingError: the list is empty or too long, an angle is not finite or out of range, or two
        are too close to each other.
    """
    if len(angles) > _MOST_LISTED:
        raise SettingError(f"{name}: has {len(angles)} angles, must be {_MOST_LISTED} or fewer")
    if not len(angles):
        raise SettingError(f"{name}: is empty, must hold at least one angle from 0 to 2 pi rad")
    for number, angle in enumerate(angles):
        if not 0.0 <= angle <= TWO_PI + SLACK:  # false for NaN
            raise SettingError(
                f"{name}[{number}]: {angle} is not a view angle; must be >= 0 and <= 6.28319 rad"
            )
    places = wrap_angle(angles)
    order = np.argsort(places, kind="stable")
    gaps = np.diff(places[order], append=places[order[:1]] + TWO_PI)
    if gaps.min() < _CLOSEST:
        first = int(np.argmin(gaps))
        one, other = (float(angles[order[index % len(order)]]) for index in (first, first + 1))
        raise SettingError(
            f"{name}: {one:g} and {other:g} rad are too close; must be {_CLOSEST:g} rad apart or"
            " more"
        )
    return np.asarray(angles, dtype=float)


def check_view_poses(name: str, numbers: Sequence[float]) -> list[CameraPose]:
    """Return the poses (x, y in metres, yaw in radians, one after another) that a user lists as
    `name`.

    Raises:
        SettingError: the list is empty or too long, has not three numbers for each pose, or one is
        not a valid pose.
    """
    if not len(numbers) or len(numbers) % 3:
        raise SettingError(
            f"{name}: has {len(numbers)} numbers, must be x, y, yaw for each of one or more poses"
        )
    if len(numbers) > 3 * _MOST_LISTED_POSES:
        raise SettingError(
            f"{name}: has {len(numbers) // 3} poses, must be {_MOST_LISTED_POSES} or fewer"
        )
    rows = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return [
        _pose_of(f"{name}, pose {number}", dict(zip(("x", "y", "yaw"), row, strict=True)))
        for number, row in enumerate(rows, start=1)
    ]


def _pose_of(place: str, row: object) -> CameraPose:
    """The pose of one row; the error names its `place`."""
    try:
        x, y, yaw = (float(row[name]) for name in ("x", "y", "yaw"))  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise SettingError(
            f"{place}: must have the numbers x, y (m), yaw (rad), not {shown(row)}"
        ) from error
    if not math.hypot(x, y) <= _FARTHEST or not math.isfinite(yaw):  # false for NaN
        raise SettingError(
            f"{place}: x {x}, y {y}, yaw {yaw} is not a pose; must be within {_FARTHEST:g} m"
        )
    return CameraPose(x, y, yaw)


def poses_from_file(path: str) -> tuple[list[CameraPose], FloatArray]:
    """Read poses x, y (metres, object frame), yaw (radians) from a file as of :func:`rows_of`.

    The optional columns `cost` and `seconds`, both >= 0 and 0 where a cell is empty, are returned
    in shape (2, V), as :meth:`~nbv_planner.planning.view_space.space.ViewSpace.view_costs`.

    Raises:
        SettingError: the file cannot be read, or a pose is not complete, not finite or out of
            range; names the line of the first such one, and how many there are.
    """
    rows = rows_of(path, _MOST_POSES)
    poses = list[CameraPose]()
    prices = list[tuple[float, float]]()
    wrong = list[SettingError]()
    for line, row in rows:
        try:
            place = f"view_file: {path}, line {line}"
            poses.append(_pose_of(place, row))
            prices.append((_price(place, row, "cost"), _price(place, row, "seconds")))
        except SettingError as error:
            wrong.append(error)
    if wrong:
        raise SettingError(
            f"{wrong[0]}" + (f"; {len(wrong)} of {len(rows)} poses are wrong" if wrong[1:] else "")
        )
    return poses, np.array(prices).T


def rows_of(path: str, most: int) -> list[tuple[int, Any]]:
    """Line and content of each row of a `view_file`: CSV with a header, or YAML with a list of
    mappings.

    Raises:
        SettingError: the file cannot be read, or there is no row, or more than `most`.
    """
    file = at_home(path)
    try:
        text = read_regular(file, _MOST_BYTES).decode("utf-8-sig")
        if file.suffix.lower() in (".yaml", ".yml"):
            parts = located(text, path).items() if text.strip() else []
            rows = [(part.line, part.plain()) for part in parts]
        else:
            reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingError(f"view_file: {path}: {reason(error)}") from error
    except ConfigFileError as error:
        raise SettingError(f"view_file: {error}") from error
    if not 0 < len(rows) <= most:
        raise SettingError(f"view_file: {path}: has {len(rows)} poses, must be 1 to {most}")
    return rows


def _price(place: str, row: Any, name: str) -> float:
    """An optional number of one row."""
    given = row.get(name)
    try:
        value = 0.0 if given in (None, "") else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 <= value < math.inf:  # false for NaN
        raise SettingError(f"{place}: {name} is {shown(given)}, must be a number >= 0, or nothing")
    return value


def on_arcs(views: Poses, settings: ViewSpaceSettings) -> BoolArray:
    """Which views lie on an allowed arc and on no blocked one, shape (V,)."""
    allowed, blocked = settings.allowed_arcs, settings.blocked_arcs
    return in_arcs(views.view_angle, allowed) & ~in_arcs(views.view_angle, blocked)


def in_arcs(angles: FloatArray, arcs: tuple[float, ...]) -> BoolArray:
    """Whether each angle lies on one of the arcs."""
    inside = np.zeros(len(angles), dtype=bool)
    for start, end in zip(arcs[::2], arcs[1::2], strict=True):
        if end == start:
            continue
        length = TWO_PI if end - start >= TWO_PI - SLACK else (end - start) % TWO_PI
        inside |= wrap_angle(angles - start + SLACK) <= length + 2.0 * SLACK
    return inside
