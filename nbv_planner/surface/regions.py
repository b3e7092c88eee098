"""Regions that matter: weights of places on the surface, by which what is covered counts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.errors import SettingError
from nbv_planner.geometry import ORIGIN, BoolArray, FloatArray, Point
from nbv_planner.world.ground.footprint import on_edges
from nbv_planner.world.objects.text import UNITS
from nbv_planner.world.objects.true_outlines import Outlines

# Pairs of a point and an edge that are worked on at a time.
_PAIRS = 1 << 20
# Samples of an outline of which a stretch is a part.
_SAMPLES = 4000
_TURN = 360.0


@dataclass(frozen=True, eq=False)
class Region(ABC):
    """A part of the plane, or in space of a range of heights, with a weight."""

    name: str  #: what messages call it.
    weight: float  #: at least 0.
    height: tuple[float, float] | None = field(default=None, kw_only=True)  #: metres; None: any.

    @abstractmethod
    def within(self, points: FloatArray) -> BoolArray:
        """Which points of the plane, shape (n, 2), metres, it holds, shape (n,)."""

    @property
    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """What a file has of its place."""

    def holds(self, points: FloatArray) -> BoolArray:
        """Which points, shape (n, D), metres, it holds, shape (n,); in the plane at any height."""
        found = self.within(points[:, :2])
        if self.height is not None and points.shape[1] > 2:
            low, high = self.height
            found &= (points[:, 2] >= low) & (points[:, 2] <= high)
        return found


@dataclass(frozen=True, eq=False)
class Arc(Region):
    """The polar angles about the origin from one, `span` further counter-clockwise, degrees."""

    begin: float
    span: float

    def within(self, points: FloatArray) -> BoolArray:
        """See :class:`Region`."""
        angle = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
        return np.asarray((angle - self.begin) % _TURN <= self.span)

    @property
    def plain(self) -> dict[str, Any]:
        """See :class:`Region`."""
        return {"arc": [self.begin, self.begin + self.span]}


@dataclass(frozen=True, eq=False)
class Area(Region):
    """A polygon, or several rings of which what lies in an odd number counts, as GeoJSON has
    holes.
    """

    rings: Sequence[FloatArray]  #: corners of each, shape (k, 2), metres.

    def within(self, points: FloatArray) -> BoolArray:
        """See :class:`Region`."""
        edges = sum(map(len, self.rings))
        parts = np.array_split(points, -(-len(points) * edges // _PAIRS) or 1)
        rings = Outlines(self.name, self.rings)
        return np.concatenate([rings.holds(part).sum(axis=0) % 2 == 1 for part in parts])

    @property
    def plain(self) -> dict[str, Any]:
        """See :class:`Region`."""
        return {"polygon": [_digits(ring) for ring in self.rings]}

    def meets(self, radius: float, centre: Point, factor: float = 1.0) -> bool:
        """Whether `factor` times it has a point within a `radius` of a `centre`, metres."""
        at = np.array([centre])
        if Outlines(self.name, [factor * ring for ring in self.rings]).holds(at).sum() % 2:
            return True
        spacing = max(radius / 100.0, 1e-3 * factor * float(np.ptp(self.rings[0], axis=0).max()))
        return any(
            np.hypot(*(on_edges(factor * ring, spacing)[0] - at).T).min() <= radius
            for ring in self.rings
        )


@dataclass(frozen=True, eq=False)
class OutlineStretch(Region):
    """What is nearer to a stretch of outlines than to the rest of them: counter-clockwise from the
    place nearest to one point to that nearest to another.
    """

    loops: Sequence[FloatArray]  #: corners of the outlines, shape (k, 2), metres.
    ends: FloatArray  #: the two points, shape (2, 2), metres.

    @cached_property
    def _samples(self) -> tuple[cKDTree, BoolArray, FloatArray]:
        """Samples of all outlines, which of them are of the stretch, and how far its ends are from
        them, metres.
        """
        loops = [loop if _area(loop) > 0.0 else loop[::-1] for loop in self.loops]
        steps = (np.hypot(*(np.roll(loop, -1, axis=0) - loop).T) for loop in loops)
        spacing = sum(float(step.sum()) for step in steps) / _SAMPLES
        each = [on_edges(loop, spacing)[0] for loop in loops]
        tree = cKDTree(np.concatenate(each))
        away, (first, _) = tree.query(self.ends)
        begin = np.cumsum([0, *map(len, each)])
        number = int(np.searchsorted(begin, first, side="right")) - 1
        size = len(each[number])
        beyond, last = cKDTree(each[number]).query(self.ends[1])
        start = first - begin[number]
        place = begin[number] + (start + np.arange((last - start) % size + 1)) % size
        chosen = np.zeros(tree.n, dtype=bool)
        chosen[place] = True
        return tree, chosen, np.array([away[0], beyond])

    @property
    def reach(self) -> tuple[int, float]:
        """Number of its samples, and how far its ends are from the outline, in extents of that."""
        extent = float(np.ptp(np.concatenate(self.loops), axis=0).max())
        _, chosen, away = self._samples
        return int(chosen.sum()), float(away.max()) / extent

    def within(self, points: FloatArray) -> BoolArray:
        """See :class:`Region`."""
        tree, chosen, _ = self._samples
        return np.asarray(chosen[tree.query(points)[1]])

    @property
    def plain(self) -> dict[str, Any]:
        """See :class:`Region`."""
        return {"stretch": _digits(self.ends)}


def _area(loop: FloatArray) -> float:
    """Twice the area of a polygon, positive if it is counter-clockwise, square metres."""
    x, y = loop.T
    return float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def _digits(values: FloatArray) -> Any:
    return np.vectorize(lambda value: float(f"{value:.9g}"))(values).tolist()


@dataclass(frozen=True, eq=False)
class Regions:
    r"""Weights w of points, in parts of the greatest: of those that hold a point the last one
    counts, and `elsewhere` where none does.

    Of what is to be covered, elements of the size s count :math:`w s`: a completeness is
    :math:`\sum_{seen} w s / \sum w s`.
    """

    regions: Sequence[Region]
    elsewhere: float = 0.0
    #: of which stretches are parts: corners of each, shape (k, 2), metres.
    outline: Sequence[FloatArray] = ()
    origin: Point = ORIGIN  #: of the points in the frame of the regions, metres.

    @property
    def most(self) -> float:
        """Greatest weight that is given."""
        return max([self.elsewhere, *(region.weight for region in self.regions)])

    def weights(self, points: FloatArray) -> FloatArray:
        """Weight of points of any shape (..., D), metres: (...), in [0, 1]."""
        flat = points.reshape(-1, points.shape[-1]).astype(float)
        flat[:, :2] += self.origin
        found = np.full(len(flat), self.elsewhere)
        for region in self.regions:
            found[region.holds(flat)] = region.weight
        return np.asarray(found.reshape(points.shape[:-1]) / self.most)

    def seen_from(self, x: float, y: float) -> Regions:
        """The same for points in a frame with the same axes whose origin is at (x, y) of this
        one's, metres.
        """
        return replace(self, origin=(self.origin[0] + x, self.origin[1] + y))

    def check(self, radius: float, centre: Point) -> None:
        """Refuse a polygon without a point within the greatest `radius` of the object about its
        `centre`, metres.

        Raises:
            SettingError: names it, and the unit that would fit, if any.
        """
        for region in self.regions:
            if not isinstance(region, Area) or region.meets(radius, centre):
                continue
            fits = [
                f"; {metres:g} times that would fit, as with unit={unit}"
                for unit, metres in UNITS.items()
                if region.meets(radius, centre, metres)
            ]
            raise SettingError(
                f"region_file: {region.name}: the polygon contains nothing within {radius:g} m"
                f" (radius_max) of the centre of the object{''.join(fits[:1])}"
            )

    @property
    def summary(self) -> str:
        """What it is, in words."""
        number = len(self.regions)
        return (
            f"by weight ({number} region{'' if number == 1 else 's'},"
            f" {self.elsewhere / self.most:g} elsewhere)"
        )

    @property
    def text(self) -> str:
        """All of it in one line, lengths in metres, for
        :func:`~nbv_planner.surface.region_files.regions_in`.
        """
        regions = [
            {"name": one.name, **one.plain, "weight": one.weight}
            | ({} if one.height is None else {"height": list(one.height)})
            for one in self.regions
        ]
        content: dict[str, Any] = {"elsewhere": self.elsewhere, "regions": regions}
        if any(isinstance(region, OutlineStretch) for region in self.regions):
            content["outline"] = [_digits(loop) for loop in self.outline]
        return json.dumps(content)
