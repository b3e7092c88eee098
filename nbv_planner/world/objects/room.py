"""The room of the simulated camera: what stands there besides the object, from its YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nbv_planner.errors import ConfigFileError
from nbv_planner.files.located_yaml import Located, read_located
from nbv_planner.geometry import TWO_PI, Point, polar_to_cartesian
from nbv_planner.settings import Settings, python_setting
from nbv_planner.world.ray_casting import Contour

_OTHER_STEPS = 256
_PLACE = {"unit": "m", "ge": -1e4, "le": 1e4}


@dataclass(frozen=True)
class WorldSettings(Settings):
    """Where the simulated object stands, and what else does."""

    object_x: float = python_setting(
        0.0, "Position of the simulated object in object_frame: to try scene unknown.", **_PLACE
    )
    object_y: float = python_setting(0.0, "The other coordinate of that position.", **_PLACE)
    other_x: float = python_setting(
        0.0,
        "Position of another, round object: to try scene unknown with something else in sight.",
        **_PLACE,
    )
    other_y: float = python_setting(0.0, "The other coordinate of that position.", **_PLACE)
    other_radius: float = python_setting(
        0.0, "Radius of the other object; 0: there is none.", unit="m", ge=0.0, le=1e4
    )
    room_file: str = python_setting(
        "",
        "World file whose room, walls and obstacles in object_frame, ends beams: to try your room;"
        " empty: none.",
        start_only=True,
    )

    @property
    def placed(self) -> Point:
        """Position of the simulated object, metres."""
        return self.object_x, self.object_y

    def others(self) -> list[Contour]:
        """Contours of all but the simulated object, in a frame whose origin it is.

        Raises:
            ConfigFileError: the file of the room cannot be read, or holds something that is not
                allowed.
        """
        found = load_room(self.room_file) if self.room_file else []
        if self.other_radius > 0.0:
            found.append(_disc(self.other_x, self.other_y, self.other_radius))
        return [Contour(one.x - self.object_x, one.y - self.object_y) for one in found]


def _disc(x: float, y: float, radius: float) -> Contour:
    angle = np.arange(_OTHER_STEPS) * (TWO_PI / _OTHER_STEPS)
    across, along = polar_to_cartesian(angle, radius)
    return Contour(across + x, along + y)


WORLD_SECTIONS = {
    "object": {"x": "object_x", "y": "object_y"},
    "other": {"x": "other_x", "y": "other_y", "radius": "other_radius"},
    "bias": {"x": "pose_bias_x", "y": "pose_bias_y", "yaw": "pose_bias_yaw"},
    "room": {},
}
"""Sections of a world file, each with the settings that its entries give."""
_FORMS = {"wall": 2, "polygon": 3, "circle": 0}
"""Points that a form has at least; a circle is x, y, radius."""


def load_room(path: str | Path) -> list[Contour]:
    """Read the room of a world file: under `room` a list of forms, each `wall` or `polygon` (a list
    of points x, y) or `circle`; metres.

    A wall is the line through its points, a polygon is closed.

    Raises:
        ConfigFileError: the file cannot be read or holds something that is not allowed; names the
            file and the line.
    """
    content = read_located(path)[1].known_mapping("section", WORLD_SECTIONS)
    if "room" not in content:
        raise ConfigFileError(f"{path}: must hold 'room:' with a list of {', '.join(_FORMS)}")
    return [_form(part.named("")) for part in content["room"].items()]


def _form(part: Located) -> Contour:
    (name, form), *more = part.entries() or [("", part)]
    if more or name not in _FORMS:
        raise form.error(f"a form of a room must be one of {', '.join(_FORMS)}, and one per entry")
    if name == "circle":
        x, y, radius = form.numbers(3)
        if radius <= 0.0:
            raise form.error(f"radius {radius:g} must be > 0 m")
        return _disc(x, y, radius)
    points = np.array([point.numbers(2) for point in form.items()])
    if len(points) < _FORMS[name]:
        raise form.error(f"must be {_FORMS[name]} or more points [x, y] in metres")
    if name == "wall":  # a closed line, too: there and back again
        points = np.vstack([points, points[-2:0:-1]])
    return Contour(*points.T.copy())
