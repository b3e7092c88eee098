"""Where the robot must not be, and the paths around it: what all grounds share, and the ground
without a map.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from nbv_planner.errors import SettingError, shown
from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
    repeated,
)
from nbv_planner.settings import Settings, setting

ZoneArray = NDArray[np.uint8]
"""Sum of the zones that places lie in, 0 for one where the robot may be, shape (n,)."""
# An outline has so many samples per greatest radius; arcs of paths have a vertex per so many
# radians.
_SAMPLES, _ARC_STEP = 100, math.radians(2.0)


class Zone(enum.IntFlag):
    """Why the robot must not be somewhere; several may hold at once."""

    MAP = 1
    POLYGON = 2
    OBJECT = 4
    CUT_OFF = 8


ZONE_WORDS = {
    Zone.MAP: "not free in the map, or outside of it",
    Zone.POLYGON: "in a no-go polygon",
    Zone.OBJECT: "where the object may be",
    Zone.CUT_OFF: "cut off from the camera",
}
"""What holds for a place in each zone."""


@dataclass(frozen=True)
class GroundSettings(Settings):
    """Where the robot must not be.

    Raises:
        SettingError: a value is out of range, or the text of the polygons is none.
    """

    ground_map: str = setting(
        "",
        "Map of the ground in object_frame: YAML of a map_server with a PGM image; empty: none.",
        start_only=True,
    )
    robot_radius: float = setting(
        0.0,
        "Radius of the robot about the camera: its distance to all that is not free.",
        unit="m",
        ge=0.0,
        le=1e3,
    )
    clearance: float = setting(
        0.3,
        "Distance of the robot to all that the object may occupy.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    no_go_polygons: str = setting(
        "",
        "Polygons that the robot must not enter, in object_frame: x,y x,y x,y; x,y ... in metres;"
        " empty: none.",
    )
    unknown_is_blocked: bool = setting(True, "Whether unknown cells of the map count as occupied.")
    occupied_threshold: int = setting(
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


def on_edges(corners: FloatArray, spacing: float) -> tuple[FloatArray, float]:
    """Points on the edges of a polygon, all corners among them, shape (n, 2), and the widest gap on
    an edge.
    """
    edge = np.roll(corners, -1, axis=0) - corners
    length = np.hypot(*edge.T)
    number = np.maximum(np.ceil(length / spacing), 1.0).astype(np.intp)
    which, nth = repeated(number)
    return corners[which] + (nth / number[which])[:, None] * edge[which], float(
        (length / number).max()
    )


class Outline:
    """What the object may occupy, as far as a radius for each polar angle: a polygon that holds it.

    The radius between two angles may be that of the larger one: each corner is at the largest
    radius of its angle and its neighbours', divided by the cosine of half a step, so that no chord
    cuts into it.
    """

    def __init__(
        self,
        angle: FloatArray,
        radius: FloatArray,
        most: float = math.inf,
        centre: tuple[float, float] = ORIGIN,
    ) -> None:
        """Give the radii, metres, at rising polar angles, radians, shape (M,), and the greatest one
        that is used.

        They are about a `centre`, metres.
        """
        self.centre = centre  #: of the radii, metres.
        once = angle - angle[0] < TWO_PI - 1e-9
        self._angle = angle[once] - angle[0]
        reach = np.clip(radius[once], 0.0, most)
        steps = np.diff(self._angle, append=TWO_PI)
        widest = np.maximum(reach, np.maximum(np.roll(reach, 1), np.roll(reach, -1)))
        self._radius = widest / math.cos(0.5 * float(steps.max()))
        self._turn = float(angle[0])
        #: shape (n, 2), metres.
        self.corners = np.column_stack(polar_to_cartesian(angle[once], self._radius)) + centre
        self.greatest = float(self._radius.max())  #: greatest radius, metres.

    @cached_property
    def _samples(self) -> tuple[cKDTree, float]:
        """Points on the edges, all corners among them, and half of the widest gap on an edge."""
        points, gap = on_edges(self.corners, max(self.greatest, 1e-9) / _SAMPLES)
        return cKDTree(points), 0.5 * gap

    def holds(self, x: FloatArray, y: FloatArray) -> BoolArray:
        """Whether points, metres, lie inside the polygon."""
        place = np.mod(np.arctan2(y - self.centre[1], x - self.centre[0]) - self._turn, TWO_PI)
        first = np.searchsorted(self._angle, place, side="right") - 1
        start, end = self.corners[first], np.roll(self.corners, -1, axis=0)[first]
        edge = end - start
        return np.asarray(edge[:, 0] * (y - start[:, 1]) - edge[:, 1] * (x - start[:, 0]) > 0.0)

    def distance(self, x: FloatArray, y: FloatArray) -> FloatArray:
        r"""Distance of points to the polygon, 0 inside, metres; never more than it is.

        The point of the edges next to one at the distance d is a corner, or the foot of a
        perpendicular with a sample within half a gap g on the same edge:
        :math:`d \ge \sqrt{d_s^2 - g^2}` with the distance d_s to the samples.
        """
        tree, gap = self._samples
        found = tree.query(np.column_stack([x, y]))[0]
        return np.where(self.holds(x, y), 0.0, np.sqrt(np.maximum(found**2 - gap**2, 0.0)))


G = TypeVar("G", bound="Ground")


@dataclass(frozen=True, eq=False)
class Ground(ABC):
    """Where the robot may be and how it gets there, in metres in the object frame. Immutable."""

    settings: GroundSettings
    #: what the object may occupy; None if nothing is known of it.
    outline: Outline | None = dataclasses.field(default=None, kw_only=True)

    @property
    def margin(self) -> float:
        """Distance of the robot's centre to all that the object may occupy, metres."""
        return self.settings.clearance + self.settings.robot_radius

    def with_outline(self: G, outline: Outline | None) -> G:
        """The same ground with another object on it."""
        return dataclasses.replace(self, outline=outline)

    def with_object(
        self,
        angle: FloatArray,
        upper: FloatArray,
        most: float = math.inf,
        centre: tuple[float, float] = ORIGIN,
    ) -> Ground:
        """The same ground with an object that reaches up to `upper` (M,) of a `centre`, never
        beyond `most`, metres.
        """
        return self.with_outline(Outline(angle, upper, most, centre))

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

        From a start in a zone, the path begins with the straight way out, see :meth:`standing`.
        """

    @abstractmethod
    def path(self, start: Sequence[float], end: Sequence[float]) -> FloatArray:
        """Corners of a path, shape (k, 2), metres, no longer than :meth:`lengths` says; empty if
        there is none.
        """

    @abstractmethod
    def way_out(self, start: Sequence[float]) -> tuple[float, float]:
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
        if start is not None and not zones.all():
            free = zones == 0
            zones[np.flatnonzero(free)[np.isinf(self.lengths(start, x[free], y[free]))]] = (
                Zone.CUT_OFF
            )
        return zones

    def standing(self, start: Sequence[float]) -> str:
        """Words for a start in a zone, with the way out; empty for any other."""
        (zone,) = self.zones(start[:1], start[1:2])
        if not zone:
            return ""
        x, y = self.way_out(start)
        away = math.hypot(x - start[0], y - start[1])
        zones = " and ".join(words for one, words in ZONE_WORDS.items() if zone & one)
        return (
            f"the robot stands at x {start[0]:.4g} m, y {start[1]:.4g} m, {zones}; the way out"
            f" leads to x {x:.4g} m, y {y:.4g} m, {away:.3g} m away"
        )

    def without(self) -> Iterable[tuple[str, Ground]]:
        """Names of what may cut off places, each with the ground without it."""
        return ()

    def blame(self, start: Sequence[float] | None, x: FloatArray, y: FloatArray) -> str:
        """Which zones keep the robot from places, in words: the first zone of each, and what cuts
        off the others.
        """
        zones = self.reachable(start, x, y)
        words = [
            f"{number} {said}"
            for zone, said in ZONE_WORDS.items()
            if zone != Zone.CUT_OFF
            and (
                number := int(
                    np.count_nonzero(
                        (zones & np.uint8(zone) != 0) & (zones & np.uint8(zone - 1) == 0)
                    )
                )
            )
        ]
        words = [word.replace("in a no-go polygon", self.polygon_words(x, y)) for word in words]
        cut = zones == Zone.CUT_OFF
        if cut.any() and start is not None:
            freed = [
                name
                for name, ground in self.without()
                if np.isfinite(ground.lengths(start, x[cut], y[cut])).any()
            ]
            by = (
                f" by {' or '.join(freed)}"
                if freed
                else " by several zones together"
                if self.without()
                else ""
            )
            words.append(f"{int(cut.sum())} cut off{by}")
        standing = "" if start is None else self.standing(start)
        return ", ".join(words) + (f"; {standing}" if standing else "")

    def polygon_words(self, x: FloatArray, y: FloatArray) -> str:
        """Words for places in the no-go polygons."""
        return ZONE_WORDS[Zone.POLYGON]


@dataclass(frozen=True, eq=False)
class OpenGround(Ground):
    """Free ground on which there is nothing but the object: paths around a disc that holds it, in
    closed form.
    """

    def seen_from(self, x: float, y: float) -> OpenGround:
        """The same ground without an object: it looks the same from everywhere."""
        return OpenGround(self.settings)

    @property
    def _centre(self) -> FloatArray:
        """Of the disc."""
        return np.array(ORIGIN if self.outline is None else self.outline.centre)

    @property
    def disc(self) -> float:
        """Radius of the disc that paths avoid, metres."""
        return 0.0 if self.outline is None else self.outline.greatest + self.margin

    def zones(self, x: ArrayLike, y: ArrayLike) -> ZoneArray:
        """OBJECT within the margin of what the object may occupy."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        blocked = np.zeros(len(x), dtype=np.uint8)
        near = np.hypot(x - self._centre[0], y - self._centre[1]) < self.disc
        if self.outline is not None and near.any():
            blocked[near] = Zone.OBJECT * (self.outline.distance(x[near], y[near]) <= self.margin)
        return blocked

    def lengths(self, start: Sequence[float], x: ArrayLike, y: ArrayLike) -> FloatArray:
        """As :func:`around_disc`; out of the disc and into it radial, which keeps clear of what is
        star-shaped.
        """
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        angle, away = cartesian_to_polar(x - self._centre[0], y - self._centre[1])
        (own,), (here,) = cartesian_to_polar(*(np.array(start) - self._centre)[:, None])
        disc = self.disc
        apart = np.abs(angle_difference(angle, own))
        first, second = max(float(here), disc), np.maximum(away, disc)
        length = around_disc(disc, first, second, apart) + (first - here + second - away)
        return np.where(self.zones(x, y) == 0, length, np.inf)

    def path(self, start: Sequence[float], end: Sequence[float]) -> FloatArray:
        """Start, tangent points with the corners of an arc outside of the disc between them,
        end.
        """
        if self.zones(end[:1], end[1:2]).any():
            return np.empty((0, 2))
        angles, away = cartesian_to_polar(*(np.array([start, end], dtype=float) - self._centre).T)
        disc, sign = self.disc, math.copysign(1.0, float(angle_difference(angles[1], angles[0])))
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
        between = np.array([polar_to_cartesian(*place) for place in polar], dtype=float).reshape(
            -1, 2
        )
        return np.vstack([[start], between + self._centre, [end]])

    def way_out(self, start: Sequence[float]) -> tuple[float, float]:
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
    angles θ `apart` from it it is straight, or where the disc of radius B lies between, two
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
    return np.asarray(
        np.arccos(
            np.clip(np.divide(disc, away, out=np.ones_like(away), where=away > 0.0), 0.0, 1.0)
        )
    )


def along(path: FloatArray, distance: float) -> tuple[float, float]:
    """Place on a path, shape (k, 2), at a `distance` from its start, metres; its ends lie before
    and behind it.
    """
    legs = np.hypot(*np.diff(path, axis=0).T)
    travelled = np.concatenate([[0.0], np.cumsum(legs)])
    x, y = (float(np.interp(distance, travelled, column)) for column in path.T)
    return x, y


def path_length(path: FloatArray) -> float:
    """Length of a path, shape (k, 2), metres."""
    return float(np.hypot(*np.diff(path, axis=0).T).sum())
