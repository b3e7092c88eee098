"""True objects of any outline in the plane: closed polygons, which may be several and may overlap.

Only simulation and evaluation may know them; planning never imports this room. Of any object,
:func:`true_object` says which description it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.errors import ContourError, SettingError, UnknownNameError, shown
from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    cartesian_to_polar,
    polar_points,
)
from nbv_planner.world.ground.footprint import on_edges
from nbv_planner.world.objects.contour_files import load_contour, read_outlines
from nbv_planner.world.objects.surface_points import SurfacePoints
from nbv_planner.world.objects.text import (
    UNITS,
    file_options,
    is_no_radius,
    parameters_in,
    parse_object,
)
from nbv_planner.world.objects.true_shapes import PolarObject, angles_around
from nbv_planner.world.pose import Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import Scene

# Greatest radius of a shipped outline, of that of the scene: the camera must reach into its slots.
_FILLED = 0.65
MOST_OUTLINES = 50
"""More are no plausible scene of a simulated camera."""
_MOST_CORNERS = 2000
_FOLDER = Path(__file__).with_name("contours")
_SHIPPED: dict[object, Path] = {
    **{
        path.stem.replace("letter_", "letter:"): path
        for path in sorted(_FOLDER.joinpath("bodies").glob("*.csv"))
    },
    **{f"outline:{path.stem}": path for path in sorted(_FOLDER.joinpath("later").glob("*.csv"))},
}
FORMS = tuple(map(str, _SHIPPED))
"""Objects that need not be star-shaped, besides files."""
_CUTS: dict[str, dict[str, tuple[int, float, float]]] = {
    "chair": {"leg": (1, -3.0, 5.0), "back": (1, 3.0, 5.8)},
    "comb": {"teeth": (0, 3.0, 4)},
    "horseshoe": {"leg": (1, -2.0, 4.5)},
    "mug": {"handle": (0, 4.0, 2.5)},
    "two_boxes": {"gap": (0, -1.0, 2.3)},
}
"""Lengths in a drawing that a parameter changes: axis, place where it is cut, and the length there;
of a comb the number of its teeth, 3 apart.
"""
_WALK = 1440
# Metres by which a beam may end before the point that it is cast to.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Outlines:
    """What lies in any of some closed polygons."""

    name: str  #: what messages call it.
    loops: Sequence[FloatArray]  #: corners of each, shape (n, 2), metres.
    remark: str = ""  #: what is to be said of the file that it is from.

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
            x1, y1 = loop.T
            x2, y2 = np.roll(loop, -1, axis=0).T
            flat = y1 == y2
            at = x1 + (y - y1) / np.where(flat, 1.0, y2 - y1) * (x2 - x1)
            inside[:] = (((y1 > y) != (y2 > y)) & (x < at)).sum(axis=1) % 2 == 1
        return found

    def farthest(self, angle: FloatArray) -> FloatArray:
        """Greatest radius about each of n equally spaced polar angles from 0 on, radians; 0 where
        there is nothing, metres.
        """
        found = np.zeros(len(angle))
        reach = max(float(np.hypot(*loop.T).max()) for loop in self.loops)
        points = self.walked(reach / len(angle))
        at = np.rint(points.angle * (len(angle) / TWO_PI)).astype(int) % len(angle)
        np.maximum.at(found, at, points.radius)
        return found

    @classmethod
    def through(cls, points: SurfacePoints, name: str) -> Outlines:
        """The polygons through points that have numbers of their outlines."""
        places = polar_points(points.angle, points.radius)
        number = np.asarray(points.outline)
        return cls(name, [places[number == one] for one in np.unique(number)])

    def walked(self, spacing: float) -> SurfacePoints:
        """All corners and points between, at most `spacing` (metres) apart, whatever hides them."""
        each = [on_edges(loop, spacing)[0] for loop in self.loops]
        number = np.repeat(np.arange(len(each)), list(map(len, each)))
        return SurfacePoints(*cartesian_to_polar(*np.concatenate(each).T), number)

    def sampled(self, spacing: float) -> tuple[FloatArray, FloatArray]:
        """Points of the outline, (n, 2), at most `spacing` (metres) apart, and the length that each
        stands for, (n,); edges in another polygon are none of it.
        """
        points, length = [], []
        for number, loop in enumerate(self.loops):
            ends, _ = on_edges(loop, spacing)
            step = np.roll(ends, -1, axis=0) - ends
            middle = ends + 0.5 * step
            shown = ~np.delete(self.holds(middle), number, axis=0).any(axis=0)
            points.append(middle[shown])
            length.append(np.hypot(*step[shown].T))
        return np.concatenate(points), np.concatenate(length)

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


def true_object(text: Any, scene: Scene, surface_model: str = "auto") -> PolarObject | Outlines:
    """Build the true object that `text` describes: by its radius where that is possible, as
    :func:`~nbv_planner.world.objects.parse_object` does, else as outlines.

    So `auto` takes it; the surface models `radius` and `volume` have one description alone. A file
    of several outlines is no radius, nor is one whose outline turns back about the origin.

    Raises:
        NbvPlannerError: as of :func:`parse_outlines`.
    """
    if surface_model == "radius":
        return parse_object(text, scene)
    if surface_model == "volume" or isinstance(text, Outlines) or is_no_radius(text):
        return parse_outlines(text, scene)
    if not str(text).startswith("file:"):
        return parse_object(text, scene)
    path, _, moved = file_options(str(text))
    if sum(not one.hole for one in read_outlines(Path(path))) > 1:
        with suppress(ContourError):  # else empty lines in one contour
            return parse_outlines(text, scene)
    try:
        load_contour(path, file_origin=moved)
    except ContourError:
        return parse_outlines(text, scene)
    return parse_object(str(text), scene)


def parse_outlines(text: str | PolarObject | Outlines, scene: Scene) -> Outlines:
    """Build the true object that `text` describes: one of :data:`FORMS`, a file of outlines, or any
    object that :func:`~nbv_planner.world.objects.parse_object` knows; outlines are kept as they
    are.

    A file is one that :func:`~nbv_planner.world.objects.contour_files.read_outlines` reads.

    Raises:
        NbvPlannerError: there is none of this name, a parameter is not allowed, the file cannot be
            read, an outline crosses itself, or one leaves the greatest radius of the scene; names
            the first place.
    """
    if isinstance(text, Outlines):
        return text
    family = str(text).partition(":")[0]
    if is_no_radius(text):
        drawn = text if text in _SHIPPED else family
        if drawn not in _SHIPPED:
            raise UnknownNameError("object", str(text), FORMS)
        drawing = [one.points for one in read_outlines(_SHIPPED[drawn])]
        loops = _centred(drawing if drawn == text else _cut(drawing, str(text)))
        size = _FILLED * scene.radius_max / max(np.hypot(*loop.T).max() for loop in loops)
        return Outlines(str(text), [size * loop for loop in loops])
    if family == "file":
        return outlines_in_file(str(text), scene.radius_max)
    shape = parse_object(text, scene)
    angle = angles_around(shape, _WALK)
    corners = polar_points(angle, shape.radius(angle))
    return Outlines(str(text), [corners])


def _cut(loops: Sequence[FloatArray], text: str) -> Sequence[FloatArray]:
    """A drawing with the lengths that `text` gives."""
    family, _, rest = text.partition(":")
    cuts = _CUTS.get(family, {})
    kinds = {name: type(cut[-1]) for name, cut in cuts.items()}
    for name, value in parameters_in(kinds, rest, text).items():
        axis, place, length = cuts[name]
        if not 0.01 <= value <= 100:
            raise SettingError(
                f"object {shown(text)}: {name}={value:g} must be from 0.01 to 100; as drawn it is"
                f" {length:g}"
            )
        along = np.eye(2)[axis]
        more = value - length
        if name == "teeth":
            (loop,) = loops
            teeth = loop[1:5] + place * along * np.arange(value)[:, None, None]
            end = loop[-1:] + place * more * along
            loops = [np.concatenate([loop[:1], *teeth[:-1], teeth[-1, :2], end])]
        else:
            loops = [loop + more * np.outer(loop[:, axis] > place, along) for loop in loops]
    return loops


def _centred(loops: Sequence[FloatArray]) -> list[FloatArray]:
    """The same about the middle of what holds them."""
    points = np.concatenate(loops)
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    return [loop - middle for loop in loops]


def outlines_in_file(text: str, most: float) -> Outlines:
    """Outlines of a file, named as an object is, within `most` of the origin, metres.

    Raises:
        NbvPlannerError: it cannot be read, an outline crosses itself, or one is farther away.
    """
    path, unit, moved = file_options(text)
    every = read_outlines(Path(path))
    found = [one.distinct() for one in every if not one.hole]
    loops = [UNITS[unit] * one.points for one in found]
    loops = _centred(loops) if moved else loops
    corners = sum(map(len, loops))
    if len(found) > MOST_OUTLINES or corners > _MOST_CORNERS:
        raise ContourError(
            f"{path}: {len(found)} outlines, {corners} corners; must be {MOST_OUTLINES} and"
            f" {_MOST_CORNERS} at most"
        )
    for number, (one, loop) in enumerate(zip(found, loops, strict=True), 1):
        away = np.hypot(*loop.T)
        if away.max() > most * (1.0 + _ROUNDING):
            raise ContourError(
                f"{path} {one.place(int(away.argmax()))}: outline {number} is {away.max():.4g} m"
                f" from the origin; must be within radius_max, {most:g} m (or give unit=mm,"
                " origin=auto)"
            )
        if len(loop) < 3:
            raise ContourError(
                f"{path} {one.place(0)}: outline {number}, which begins there, has {len(loop)}"
                " different points, needs at least 3"
            )
        if crossing := _crossing(loop):
            first, second = map(one.place, crossing)
            raise ContourError(
                f"{path}: outline {number} crosses itself, behind {first} and behind {second}"
            )
        if _is_flat(loop):
            raise ContourError(
                f"{path} {one.place(0)}: outline {number}, which begins there, has no area: all"
                f" its points lie on a line"
            )
    shown = _shown(loops)
    left_out = {"holes": len(every) - len(found), "outlines within others": len(loops) - len(shown)}
    words = ", ".join(f"{what}: {count}" for what, count in left_out.items() if count)
    remark = f"{path}: left out, as no camera sees them: {words}" if words else ""
    return Outlines(text, shown, remark)


def _is_flat(loop: FloatArray) -> bool:
    """Whether the points of a polygon, shape (n, 2), lie on one line."""
    spread = np.linalg.svd(loop - loop.mean(axis=0), compute_uv=False)
    return bool(spread[1] <= _ROUNDING * spread[0])


def _shown(loops: Sequence[FloatArray]) -> list[FloatArray]:
    """The polygons without repeats and without those that lie within another one."""
    once = {frozenset(map(tuple, loop.tolist())): loop for loop in loops}
    whole = Outlines("", list(once.values()))
    return [
        loop
        for number, loop in enumerate(whole.loops)
        if not np.delete(whole.holds(loop), number, axis=0).all(axis=1).any()
    ]


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
