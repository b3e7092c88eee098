"""True objects of any outline in the plane: closed polygons, which may be several and may overlap.

Only simulation and evaluation may know them; planning never imports this room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner import world
from nbv_planner.errors import ContourError, SettingError
from nbv_planner.geometry import (
    BoolArray,
    FloatArray,
    IntArray,
    cartesian_to_polar,
    polar_to_cartesian,
)
from nbv_planner.surface.coverage import PointSet
from nbv_planner.world.ground.footprint import on_edges
from nbv_planner.world.objects import PolarObject, SurfacePoints, parse_object
from nbv_planner.world.objects.contour_files import read_table
from nbv_planner.world.objects.text import UNITS, file_options
from nbv_planner.world.objects.true_shapes import angles_around
from nbv_planner.world.pose import Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import Scene

# Greatest radius of a shipped outline, of that of the scene: the camera must reach into its slots.
_FILLED = 0.65
_MOST_OUTLINES, _MOST_CORNERS = 50, 2000
_FOLDER = Path(world.objects.__file__).with_name("contours")
_SHIPPED: dict[object, Path] = {
    **{
        path.stem.replace("letter_", "letter:"): path
        for path in sorted(_FOLDER.joinpath("bodies").glob("*.csv"))
    },
    **{f"outline:{path.stem}": path for path in sorted(_FOLDER.joinpath("later").glob("*.csv"))},
}
FORMS = tuple(map(str, _SHIPPED))
"""Objects that need not be star-shaped, besides files."""
_WALK = 1440
# Metres by which a beam may end before the point that it is cast to.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Outlines:
    """What lies in any of some closed polygons."""

    name: str  #: what messages call it.
    loops: Sequence[FloatArray]  #: corners of each, shape (n, 2), metres.

    @cached_property
    def contours(self) -> list[Contour]:
        """The polygons as beams meet them."""
        return [Contour(*loop.T) for loop in self.loops]

    @property
    def lines(self) -> list[FloatArray]:
        """Each as a line that ends where it began, for a picture, shape (2, n + 1)."""
        return [np.concatenate([loop, loop[:1]]).T for loop in self.loops]

    def holds(self, points: FloatArray) -> BoolArray:
        """Which points, shape (n, 2), lie in each polygon, by even and odd crossings: (L, n)."""
        found = np.zeros((len(self.loops), len(points)), dtype=bool)
        x, y = points.T[..., None]
        for inside, loop in zip(found, self.loops, strict=True):
            (x1, y1) = loop.T
            (x2, y2) = np.roll(loop, -1, axis=0).T
            flat = y1 == y2
            at = x1 + (y - y1) / np.where(flat, 1.0, y2 - y1) * (x2 - x1)
            inside[:] = (((y1 > y) != (y2 > y)) & (x < at)).sum(axis=1) % 2 == 1
        return found

    def sampled(self, spacing: float) -> PointSet:
        """Points of the outline, at most `spacing` (metres) apart; edges in another polygon are
        none of it.
        """
        points, length = [], []
        for number, loop in enumerate(self.loops):
            ends, _ = on_edges(loop, spacing)
            step = np.roll(ends, -1, axis=0) - ends
            middle = ends + 0.5 * step
            shown = ~np.delete(self.holds(middle), number, axis=0).any(axis=0)
            points.append(middle[shown])
            length.append(np.hypot(*step[shown].T))
        return PointSet(np.concatenate(points), np.concatenate(length))

    def visible(self, points: FloatArray, views: Poses, scene: Scene) -> BoolArray:
        """Which points of the outline, shape (n, 2), each view sees, shape (V, n)."""
        found = np.zeros((len(views), len(points)), dtype=bool)
        for seen, pose in zip(found, views, strict=True):
            x, y = pose.to_camera(*points.T)
            bearing, distance = np.arctan2(y, x), np.hypot(x, y)
            order = np.argsort(bearing)
            met = np.empty(len(points))
            cast = [cast_beams(contour, pose, bearing[order]) for contour in self.contours]
            met[order] = np.min(cast, axis=0)
            seen[:] = (met >= distance - _ROUNDING) & scene.in_cone(bearing, distance)
        return found


@dataclass(eq=False)
class OutlineTruth:
    """The true outlines, as a judge asks for them; their points, a pixel apart, count when seen.

    What none of the candidate `views` sees is no part of them.
    """

    shape: Outlines
    scene: Scene
    views: Poses
    #: points of the surface that a belief says was measured, for a resolution in metres.
    measured: Callable[[Any, float], PointSet]

    @classmethod
    def of(
        cls,
        text: str | PolarObject,
        scene: Scene,
        views: Poses,
        measured: Callable[[Any, float], PointSet],
    ) -> OutlineTruth:
        """That of an object, see :func:`parse_outlines`.

        Raises:
            SettingError: no view sees any of it.
        """
        truth = cls(parse_outlines(text, scene), scene, views, measured)
        if not len(truth):
            raise SettingError(f"object {text}: no candidate view sees any of it (range_max)")
        return truth

    @cached_property
    def points(self) -> SurfacePoints:
        """Of the outline, a pixel apart."""
        return SurfacePoints(*cartesian_to_polar(*self.outline(self.scene.pixel_size).points.T))

    def __len__(self) -> int:
        return len(self.points)

    def visible(self, views: Poses) -> BoolArray:
        """Which points each of the views sees, shape (V, P)."""
        points = polar_to_cartesian(self.points.angle, self.points.radius)
        return self.shape.visible(np.stack(points, axis=1), views, self.scene)

    def outline(self, spacing: float) -> PointSet:
        """Points at most `spacing` (metres) from each other."""
        every = self.shape.sampled(spacing)
        ever = self.shape.visible(every.points, self.views, self.scene).any(axis=0)
        return PointSet(every.points[ever], every.length[ever])

    def errors(self, belief: Any) -> dict[str, float]:
        """None of a radius."""
        return {}

    def calibration(self, belief: Any) -> None:
        """There is no band."""


def is_star_shaped(text: str | PolarObject, scene: Scene) -> bool:
    """Whether `text` describes an object that has one surface in each direction from the origin."""
    if text in _SHIPPED:
        return False
    if not (isinstance(text, str) and text.startswith("file:")):
        return True
    try:
        parse_object(text, scene)
    except ContourError:
        return False
    return True


def parse_outlines(text: str | PolarObject, scene: Scene) -> Outlines:
    """Build the true object that `text` describes: one of :data:`FORMS`, a file of outlines, or any
    object that :func:`~nbv_planner.world.objects.parse_object` knows.

    A file has the columns x, y or phi, r, as of star-shaped contours; an empty line stands between
    one outline and the next.

    Raises:
        NbvPlannerError: there is none of this name, the file cannot be read, an outline crosses
            itself, or one leaves the greatest radius of the scene; names the first place.
    """
    if text in _SHIPPED:
        found = _read(str(text), _SHIPPED[text], 1.0, moved=True)
        reach = max(np.hypot(*loop.T).max() for loop in found.loops)
        size = _FILLED * scene.radius_max / reach
        return Outlines(found.name, [size * loop for loop in found.loops])
    if isinstance(text, str) and text.startswith("file:"):
        path, unit, moved = file_options(text)
        return _read(text, path, UNITS[unit], moved=moved, most=scene.radius_max)
    shape = parse_object(text, scene)
    angle = angles_around(shape, _WALK)
    corners = np.stack(polar_to_cartesian(angle, shape.radius(angle)), axis=1)
    return Outlines(str(text), [corners])


def _read(
    name: str, path: str | Path, unit: float, *, moved: bool, most: float = math.inf
) -> Outlines:
    """Read outlines; if they are `moved`, to the middle of what holds them."""
    lines, x, y, polar = read_table(Path(path))
    points = unit * np.stack([x, y], axis=1)
    if polar:
        points = np.stack(polar_to_cartesian(x, unit * y), axis=1)
    if moved:
        points = points - 0.5 * (points.min(axis=0) + points.max(axis=0))
    away = np.hypot(*points.T)
    if away.max() > most * (1.0 + _ROUNDING):
        raise ContourError(
            f"{path} line {lines[int(away.argmax())]}: {away.max():.4g} m from the origin; must be"
            f" within radius_max, {most:g} m"
        )
    each = np.split(np.arange(len(points)), np.flatnonzero(np.diff(lines) > 1) + 1)
    if len(each) > _MOST_OUTLINES or len(points) > _MOST_CORNERS:
        raise ContourError(
            f"{path}: {len(each)} outlines, {len(points)} corners; must be {_MOST_OUTLINES} and"
            f" {_MOST_CORNERS} at most"
        )
    return Outlines(name, [_checked(path, points, lines, rows) for rows in each])


def _checked(
    path: str | Path, points: FloatArray, lines: Sequence[int], rows: IntArray
) -> FloatArray:
    """Points of the outline in some rows, those that repeat the one before left out."""
    kept = rows[(points[rows] != np.roll(points[rows], 1, axis=0)).any(axis=1)]
    if len(kept) < 3:
        where = f"{path} line {lines[rows[0]]}: the outline that begins there"
        raise ContourError(f"{where} has {len(kept)} different points, needs at least 3")
    if crossing := _crossing(points[kept]):
        one, other = (lines[kept[edge]] for edge in crossing)
        raise ContourError(
            f"{path}: the outline crosses itself, behind line {one} and behind line {other}"
        )
    return np.asarray(points[kept])


def _crossing(loop: FloatArray) -> tuple[int, ...]:
    """Numbers of the first two edges of a polygon that cross; none if none do."""
    start = loop
    end = np.roll(loop, -1, axis=0)
    along = end - start

    def side(points: FloatArray) -> Any:
        """Of the line of each edge (rows) on which each of the points lies."""
        away = points - start[:, None]
        return along[:, :1] * away[..., 1] - along[:, 1:] * away[..., 0]

    apart = side(start) * side(end) < 0.0
    return tuple(np.argwhere(np.triu(apart & apart.T, 2))[:1].ravel().tolist())
