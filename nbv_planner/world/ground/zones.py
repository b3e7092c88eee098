"""Where the robot must not be, and the paths around it: what all grounds share, and the ground
without a map.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.errors import SettingError, shown
from nbv_planner.geometry import (
    ORIGIN,
    BoolArray,
    FloatArray,
    Point,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
)
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.world.ground.footprint import Footprint

ZoneArray = NDArray[np.uint8]
"""Sum of the zones that places lie in, 0 for one where the robot may be, shape (n,)."""
# Radians between the vertices of an arc of a path.
_ARC_STEP = math.radians(2.0)


class Zone(enum.IntFlag):
    """Why the robot must not be somewhere; several may hold at once."""

    MAP = 1
    POLYGON = 2
    OBJECT = 4
    CUT_OFF = 8


ZONE_TEXTS = {
    Zone.MAP: "not free in the map, or outside of it",
    Zone.POLYGON: "in a no-go polygon",
    Zone.OBJECT: "where the object may be",
    Zone.CUT_OFF: "cut off from the camera",
}
"""What holds for a place in each zone."""


@dataclass(frozen=True)
class GroundSettings(Settings):
    """Where the robot may not be.

    Raises:
        SettingError: a value is out of range, or the text of the polygons is not valid.
    """

    ground_map: str = setting(
        "",
        "Map of the ground in object_frame (YAML file as of map_server): give it if there are"
        " walls or furniture; empty: none.",
        start_only=True,
    )
    robot_radius: float = setting(
        0.0,
        "Radius of the robot about the camera, its least distance to occupied cells and polygons:"
        " give it with a map or polygons.",
        unit="m",
        ge=0.0,
        le=1e3,
    )
    clearance: float = setting(
        0.3,
        "Least distance of the robot to where the object may be: raise it for a robot that swings"
        " out when it turns.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    no_go_polygons: str = setting(
        "",
        "Polygons that the robot must not enter, in object_frame: x,y x,y x,y; x,y ... in"
        " metres: for stairs, cables, machines.",
    )
    unknown_is_blocked: bool = python_setting(
        True, "Whether unknown cells of the map count as occupied."
    )
    occupied_threshold: int = python_setting(
        65, "Occupancy of a cell from which on it is occupied.", unit="%", ge=1, le=100
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.polygons()

    @property
    def given(self) -> bool:
        """Whether anything is known about the ground."""
        return bool(self.ground_map or self.no_go_polygons.strip() or self.robot_radius > 0.0)

    def polygons(self) -> dict[int, FloatArray]:
        """Corners of each polygon by its number, from 1, shape (n, 2), metres."""
        texts = enumerate(self.no_go_polygons.split(";"), 1)
        return {number: _polygon(number, text) for number, text in texts if text.strip()}


def _polygon(number: int, text: str) -> FloatArray:
    corners = list[tuple[float, float]]()
    for word in text.split():
        try:
            x, y = (float(part) for part in word.split(","))
        except ValueError:
            x = y = math.nan
        if not (abs(x) <= 1e6 and abs(y) <= 1e6):  # false for NaN
            where = f"corner {len(corners) + 1} of polygon {number}"
            raise SettingError(f"no_go_polygons: {where} is {shown(word)}, must be x,y in metres")
        corners.append((x, y))
    if len(corners) < 3:
        raise SettingError(
            f"no_go_polygons: polygon {number} has {len(corners)} corners, must have 3 or more"
        )
    return np.array(corners)


@dataclass(frozen=True, eq=False)
class Ground(ABC):
    """Where the robot may be and how it gets there, in metres in the object frame. Immutable."""

    settings: GroundSettings
    #: what the object may occupy; None if nothing is known of it.
    footprint: Footprint | None = field(default=None, kw_only=True)

    @property
    def margin(self) -> float:
        """Distance of the robot's centre to all that the object may occupy, metres."""
        return self.settings.clearance + self.settings.robot_radius

    def with_object(
        self,
        angle: FloatArray,
        upper: FloatArray,
        most: float = math.inf,
        centre: Point = ORIGIN,
    ) -> Ground:
        """The same ground with an object that reaches up to `upper` (M,) of a `centre`, never
        beyond `most`, metres.
        """
        return replace(self, footprint=Footprint(angle, upper, most, centre))

    @abstractmethod
    def seen_from(self, x: float, y: float) -> Ground:
        """The same ground, without an object, in a frame with the same axes whose origin is at (x,
        y), metres.
        """

    @abstractmethod
    def zones(self, x: ArrayLike, y: ArrayLike) -> ZoneArray:
        """The zones, but CUT_OFF, in which places, metres, lie, shape (n,)."""

    @abstractmethod
    def lengths(self, start: Sequence[float], x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Lengths of paths from `start` (x, y) to places, shape (n,), metres; inf where there is
        none.

        From a start in a zone, the path begins with the straight way out, see :meth:`start_text`.
        """

    @abstractmethod
    def path(self, start: Sequence[float], end: Sequence[float]) -> FloatArray:
        """Corners of a path, shape (k, 2), metres, no longer than :meth:`lengths` says; empty
        without a path.
        """

    @abstractmethod
    def nearest_free(self, start: Sequence[float]) -> Point:
        """The place next to `start` that is in no zone; `start` itself if it is not."""

    @property
    def hides(self) -> bool:
        """Whether there is an obstacle that may hide something."""
        return False

    def sight(self, x: FloatArray, y: FloatArray, direction: FloatArray) -> FloatArray:
        """Distance to the first obstacle of the map from places (n,), in directions (n, b),
        radians, metres; or inf.

        What the object may occupy is no obstacle.
        """
        return np.full(direction.shape, np.inf)

    def hidden(
        self, x: FloatArray, y: FloatArray, angle: FloatArray, radius: FloatArray
    ) -> BoolArray:
        """Which points of a contour, polar angles and radii (m,), lie behind an obstacle from
        places, (n, m).
        """
        across, along = polar_to_cartesian(angle, radius)
        dx, dy = across - x[:, None], along - y[:, None]
        return self.sight(x, y, np.arctan2(dy, dx)) < np.hypot(dx, dy)

    def reachable(self, start: Sequence[float] | None, x: FloatArray, y: FloatArray) -> ZoneArray:
        """The zones of places, CUT_OFF for those without a path from `start` that are in no other
        one, shape (n,).
        """
        zones = self.zones(x, y)
        free = np.flatnonzero(zones == 0)
        if start is not None and len(free):
            zones[free[np.isinf(self.lengths(start, x[free], y[free]))]] = Zone.CUT_OFF
        return zones

    def start_text(self, start: Sequence[float]) -> str:
        """Text about a start in a zone, with the way out; empty for any other."""
        (zone,) = self.zones(start[:1], start[1:2])
        if not zone:
            return ""
        x, y = self.nearest_free(start)
        away = math.hypot(x - start[0], y - start[1])
        zones = " and ".join(text for one, text in ZONE_TEXTS.items() if zone & one)
        return (
            f"the robot stands at x {start[0]:.4g} m, y {start[1]:.4g} m, {zones}; the way out"
            f" leads to x {x:.4g} m, y {y:.4g} m, {away:.3g} m away"
        )

    def without(self) -> Iterable[tuple[str, Ground]]:
        """Names of what may cut off places, each with the ground without it."""
        return ()

    def zones_text(self, start: Sequence[float] | None, x: FloatArray, y: FloatArray) -> str:
        """Which zones keep the robot from places: the first zone of each, and what cuts off the
        others.
        """
        zones = self.reachable(start, x, y)
        parts = []
        for zone in (Zone.MAP, Zone.POLYGON, Zone.OBJECT):
            # No zone with a lower number holds for these places.
            number = np.count_nonzero((zones & np.uint8(2 * zone - 1)) == zone)
            if number:
                text = self.polygon_text(x, y) if zone == Zone.POLYGON else ZONE_TEXTS[zone]
                parts.append(f"{number} {text}")
        cut = zones == Zone.CUT_OFF
        if cut.any() and start is not None:
            parts.append(
                f"{np.count_nonzero(cut)} cut off{self._cut_off_by(start, x[cut], y[cut])}"
            )
        standing = "" if start is None else self.start_text(start)
        return ", ".join(parts) + (f"; {standing}" if standing else "")

    def _cut_off_by(self, start: Sequence[float], x: FloatArray, y: FloatArray) -> str:
        """What cuts off places: all without which there is a path to one of them."""
        grounds = list(self.without())
        freed = [name for name, ground in grounds if np.isfinite(ground.lengths(start, x, y)).any()]
        if freed:
            return f" by {' or '.join(freed)}"
        return " by several zones together" if grounds else ""

    def polygon_text(self, x: FloatArray, y: FloatArray) -> str:
        """Text for places in no-go polygons."""
        return ZONE_TEXTS[Zone.POLYGON]


@dataclass(frozen=True, eq=False)
class OpenGround(Ground):
    """Ground with nothing on it but the object: paths around a disc that holds it, in closed
    form.
    """

    def seen_from(self, x: float, y: float) -> OpenGround:
        """The same ground without an object: it looks the same from everywhere."""
        return OpenGround(self.settings)

    @property
    def _centre(self) -> FloatArray:
        """Of the disc."""
        return np.array(ORIGIN if self.footprint is None else self.footprint.centre)

    @property
    def disc(self) -> float:
        """Radius of the disc that paths avoid, metres."""
        return 0.0 if self.footprint is None else self.footprint.greatest + self.margin

    def zones(self, x: ArrayLike, y: ArrayLike) -> ZoneArray:
        """OBJECT within the margin of what the object may occupy."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        blocked = np.zeros(len(x), dtype=np.uint8)
        near = np.hypot(x - self._centre[0], y - self._centre[1]) < self.disc
        if self.footprint is not None and near.any():
            blocked[near] = Zone.OBJECT * (self.footprint.distance(x[near], y[near]) <= self.margin)
        return blocked

    def lengths(self, start: Sequence[float], x: ArrayLike, y: ArrayLike) -> FloatArray:
        """As :func:`around_disc`; out of the disc and into it radial, which keeps clear of what is
        star-shaped.
        """
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        angle, away = cartesian_to_polar(x - self._centre[0], y - self._centre[1])
        (start_angle,), (here,) = cartesian_to_polar(*(np.array(start) - self._centre)[:, None])
        disc = self.disc
        apart = np.abs(angle_difference(angle, start_angle))
        first = max(float(here), disc)
        second = np.maximum(away, disc)
        length = around_disc(disc, first, second, apart) + (first - here + second - away)
        return np.where(self.zones(x, y) == 0, length, np.inf)

    def path(self, start: Sequence[float], end: Sequence[float]) -> FloatArray:
        """Start, tangent points with the corners of an arc outside of the disc between them,
        end.
        """
        if self.zones(end[:1], end[1:2]).any():
            return np.empty((0, 2))
        angles, away = cartesian_to_polar(*(np.array([start, end], dtype=float) - self._centre).T)
        disc = self.disc
        sign = math.copysign(1.0, float(angle_difference(angles[1], angles[0])))
        apart = sign * float(angle_difference(angles[1], angles[0]))
        outside = np.maximum(away, disc)
        before, after = _tangent_angle(disc, outside)
        turn = apart - before - after
        polar = [(angles[0], outside[0])] if away[0] < disc else []
        if turn > 0.0:
            number = math.ceil(turn / _ARC_STEP)
            middle = before + (np.arange(number) + 0.5) * (turn / number)
            around = disc / math.cos(0.5 * turn / number)
            polar += [(angles[0] + sign * before, disc)]
            polar += [(angles[0] + sign * along, around) for along in middle]
            polar += [(angles[0] + sign * (before + turn), disc)]
        polar += [(angles[1], outside[1])] if away[1] < disc else []
        between = np.array([polar_to_cartesian(*place) for place in polar], dtype=float)
        return np.vstack([[start], between.reshape(-1, 2) + self._centre, [end]])

    def nearest_free(self, start: Sequence[float]) -> Point:
        """The nearest free place on the ray from the centre through `start`."""
        x, y = float(start[0]), float(start[1])
        if not self.zones([x], [y]).any():
            return x, y
        from_x, from_y = self._centre.tolist()
        angle = math.atan2(y - from_y, x - from_x)
        away = np.linspace(math.hypot(x - from_x, y - from_y), self.disc, 200)
        free = self.zones(from_x + away * math.cos(angle), from_y + away * math.sin(angle)) == 0
        out = float(away[np.argmax(free)]) if free.any() else self.disc
        return from_x + out * math.cos(angle), from_y + out * math.sin(angle)


def around_disc(disc: float, first: float, second: FloatArray, apart: FloatArray) -> FloatArray:
    r"""Lengths of shortest paths around a disc about the centre, shape (n,), metres, between places
    outside of it.

    From a place at the distance d_1, `first`, to those at the distances d_2, `second`, and the
    angles θ `apart` from it, a path is straight, or where the disc of radius B lies between, two
    tangents with an arc between them:

    .. math:: \sqrt{d_1^2 - B^2} + \sqrt{d_2^2 - B^2} + B (θ - \arccos(B/d_1) - \arccos(B/d_2))
    """
    turn = apart - _tangent_angle(disc, np.array(first)) - _tangent_angle(disc, second)
    tangents = sum(np.sqrt(np.maximum(far**2 - disc**2, 0.0)) for far in (first, second))
    straight = np.hypot(first - second, 2.0 * np.sqrt(first * second) * np.sin(0.5 * apart))
    return np.where(turn > 0.0, tangents + disc * turn, straight)


def _tangent_angle(disc: float, away: FloatArray) -> FloatArray:
    """Angle at the centre from a place to the point where a tangent from there touches the disc,
    radians.
    """
    cos = np.divide(disc, away, out=np.ones_like(away), where=away > 0.0)
    return np.asarray(np.arccos(np.clip(cos, 0.0, 1.0)))


def along(path: FloatArray, distance: float) -> Point:
    """Place on a path, shape (k, 2), at a `distance` from its start along it, metres; beyond its
    ends, these.
    """
    lengths = np.hypot(*np.diff(path, axis=0).T)
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    x, y = (float(np.interp(distance, at, column)) for column in path.T)
    return x, y


def path_length(path: FloatArray) -> float:
    """Length of a path, shape (k, 2), metres."""
    return float(np.hypot(*np.diff(path, axis=0).T).sum())
