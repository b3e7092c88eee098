"""The ground as a grid of cells: map, polygons and object in one raster, and shortest paths between
its cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, Point
from nbv_planner.world.ground.footprint import Footprint
from nbv_planner.world.ground.obstacles import cells_around, distance_to
from nbv_planner.world.ground.occupancy_map import UNKNOWN, OccupancyMap, load_map
from nbv_planner.world.ground.zones import (
    ZONE_TEXTS,
    Ground,
    GroundSettings,
    OpenGround,
    Zone,
    ZoneArray,
)

# Nodes between which paths are looked for, and cells of a ground without a map.
_MOST_NODES, _BLANK_SIDE = 40_000, 400
# Steps to the next nodes, of which the opposite ones follow: eight neighbours, and those of a
# knight's move.
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1))
# Columns of segments that are looked at together.
_AT_ONCE = 1 << 20


def ground_of(settings: GroundSettings, reach: float, map: OccupancyMap | None = None) -> Ground:
    """The ground of the settings, or of a `map` in place of their file, for places up to `reach`
    from the centre.

    Raises:
        ConfigFileError: the file of the map cannot be read.
    """
    if map is None and settings.ground_map:
        map = load_map(settings.ground_map)
    polygons = settings.polygons()
    if map is not None:
        return _on_map(settings, map, polygons)
    if not polygons:
        return OpenGround(settings)
    farthest = max(reach, *(float(np.abs(corners).max()) for corners in polygons.values()))
    half = 1.2 * farthest + 2.0 * settings.robot_radius
    cells = np.zeros((_BLANK_SIDE, _BLANK_SIDE), np.int8)
    return _on_map(settings, OccupancyMap(cells, 2.0 * half / _BLANK_SIDE, -half, -half), polygons)


def _on_map(
    settings: GroundSettings,
    map: OccupancyMap,
    polygons: Mapping[int, FloatArray],
    footprint: Footprint | None = None,
) -> GridGround:
    """The ground of a map with polygons: their zones of each cell."""
    barred = map.cells >= settings.occupied_threshold
    if settings.unknown_is_blocked:
        barred |= map.cells == UNKNOWN
    cells = settings.robot_radius / map.resolution
    zones = Zone.MAP * (barred | (distance_to(barred) < cells))
    for corners in polygons.values():
        zones |= Zone.POLYGON * cells_around(map, corners, cells)
    return GridGround(settings, map, zones.astype(np.uint8), polygons, footprint=footprint)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """Nodes on a map, in rows."""

    lengths: csr_matrix  #: between neighbours that a free line joins, cells.
    columns: int  #: nodes per row.
    stride: int  #: cells between two nodes.

    def centres(self, nodes: IntArray) -> FloatArray:
        """Column and row of the centres of nodes, shape (n, 2)."""
        k = self.stride
        return np.stack([nodes % self.columns, nodes // self.columns], axis=-1) * k + (k // 2 + 0.5)


@dataclass(frozen=True, eq=False)
class GridGround(Ground):
    """A ground in cells; a cell that a polygon or the object comes near to is barred as a whole,
    with its neighbours.
    """

    map: OccupancyMap
    fixed: ZoneArray  #: MAP and POLYGON of each cell, shape (H, W).
    polygons: Mapping[int, FloatArray]  #: corners of each by its number, shape (n, 2), metres.

    def seen_from(self, x: float, y: float) -> GridGround:
        """The same ground without an object, in a frame with the same axes whose origin is at (x,
        y), metres.
        """
        polygons = {number: corners - (x, y) for number, corners in self.polygons.items()}
        return replace(self, map=self.map.seen_from(x, y), polygons=polygons, footprint=None)

    @cached_property
    def cells(self) -> ZoneArray:
        """Zones of each cell, shape (H, W)."""
        return self.fixed | np.uint8(Zone.OBJECT) * self._object

    @cached_property
    def _object(self) -> BoolArray:
        """Cells within the margin of what the object may occupy."""
        if self.footprint is None:
            return np.zeros(self.fixed.shape, dtype=bool)
        return cells_around(self.map, self.footprint.corners, self.margin / self.map.resolution)

    @cached_property
    def _blocked_below(self) -> NDArray[np.int32]:
        """Number of cells in zones in each column below a row, shape (H + 1, W)."""
        below = np.zeros((self.cells.shape[0] + 1, self.cells.shape[1]), dtype=np.int32)
        np.cumsum(self.cells != 0, axis=0, out=below[1:])
        return below

    def zones(self, x: ArrayLike, y: ArrayLike) -> ZoneArray:
        """Those of the cells in which the places lie; outside of the map MAP."""
        there, column, row = self.map.inside(*self.map.to_cells(x, y))
        return np.where(there, self.cells[row, column], np.uint8(Zone.MAP))

    def clear(self, start: FloatArray, ends: FloatArray) -> BoolArray:
        """Whether no cell on the straight line between places is in a zone; columns and rows,
        shapes (n, 2).
        """
        start, ends = np.broadcast_arrays(start, ends)
        size = np.array(self.cells.shape[::-1])
        ok = np.asarray(
            ((start >= 0.0) & (start < size) & (ends >= 0.0) & (ends < size)).all(axis=1)
        )
        forward = (start[:, 0] <= ends[:, 0])[:, None]
        left = np.where(forward, start, ends)
        right = np.where(forward, ends, start)
        first = np.floor(left[ok, 0]).min(initial=0.0)
        last = np.floor(right[ok, 0]).max(initial=0.0)
        columns = int(last - first) + 1
        chosen = np.flatnonzero(ok)
        for part in np.array_split(chosen, max(1, len(chosen) * columns // _AT_ONCE)):
            ok[part] = self._clear_rightwards(left[part], right[part])
        return ok

    def _clear_rightwards(self, left: FloatArray, right: FloatArray) -> BoolArray:
        """As :meth:`clear`, for lines on the map that do not go to the left."""
        first, last = (np.floor(end[:, 0]).astype(np.intp) for end in (left, right))
        column = first[:, None] + np.arange(int((last - first).max(initial=0)) + 1)
        (u0, v0), (u1, v1) = (end.T[:, :, None] for end in (left, right))
        slope = np.divide(v1 - v0, u1 - u0, out=np.zeros_like(u0), where=u1 > u0)
        enter = np.where(column <= u0, v0, v0 + (column - u0) * slope)
        leave = np.where(column + 1 > u1, v1, v0 + (column + 1 - u0) * slope)
        low, high = (
            np.floor(end(enter, leave)).astype(np.intp) for end in (np.minimum, np.maximum)
        )
        height, width = self.cells.shape
        at = np.minimum(column, width - 1)
        below = self._blocked_below
        number = below[np.clip(high + 1, 0, height), at] - below[np.clip(low, 0, height), at]
        return np.asarray(((number == 0) | (column > last[:, None])).all(axis=1))

    @cached_property
    def _lattice(self) -> _Lattice:
        """Nodes all over the map, joined where the line between neighbours is free."""
        k = math.ceil(math.sqrt(self.fixed.size / _MOST_NODES))
        free = self.cells == 0
        rows, columns = (len(range(k // 2, size, k)) for size in free.shape)
        number = np.arange(rows * columns).reshape(rows, columns)
        starts = list[IntArray]()
        ends = list[IntArray]()
        lengths = list[FloatArray]()
        for down, right in _STEPS:
            if rows <= down or columns <= abs(right):
                continue
            here = number[: rows - down, max(0, -right) : columns - max(0, right)]
            low = k // 2 + k * max(0, -right)
            ok = np.ones(here.shape, dtype=bool)
            for row, column in _touched(down * k, right * k):
                begin = low + column
                ok &= free[k // 2 + row :: k, begin::k][: here.shape[0], : here.shape[1]]
            starts.append(here[ok])
            ends.append(here[ok] + down * columns + right)
            lengths.append(np.full(int(ok.sum()), k * math.hypot(down, right)))
        a, b, d = (
            np.concatenate([np.array([], dtype=int), *parts]) for parts in (starts, ends, lengths)
        )
        both = (np.concatenate([d, d]), (np.concatenate([a, b]), np.concatenate([b, a])))
        return _Lattice(csr_matrix(both, shape=(number.size, number.size)), columns, k)

    def _nodes_near(self, places: FloatArray) -> tuple[IntArray, FloatArray]:
        """Nodes around places (n, 2) in cells, and the lengths of straight lines to them, inf if
        not free, (n, 9).
        """
        k, columns = self._lattice.stride, self._lattice.columns
        rows = len(range(k // 2, self.cells.shape[0], k))
        middle = np.rint((places - k // 2 - 0.5) / k).astype(np.intp)
        around = (
            middle[:, None, :] + np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
        ).reshape(-1, 2)
        there = ((around >= 0) & (around < [columns, rows])).all(axis=1)
        around = np.where(there[:, None], around, 0)
        nodes = around[:, 1] * columns + around[:, 0]
        centres = self._lattice.centres(nodes)
        ends = np.repeat(places, 9, axis=0)
        length = np.where(there & self.clear(centres, ends), np.hypot(*(centres - ends).T), np.inf)
        return nodes.reshape(-1, 9), length.reshape(-1, 9)

    @cached_property
    def _fields(self) -> dict[tuple[float, float], tuple[FloatArray, IntArray]]:
        """Length to each node and the node before it, by the start in cells."""
        return {}

    def _field(self, start: tuple[float, float]) -> tuple[FloatArray, IntArray]:
        """Length from a free place to each node, cells, and the node before it; the start comes
        behind all nodes.
        """
        if start not in self._fields:
            graph = self._lattice.lengths
            number = graph.shape[0]
            near, length = (part[0] for part in self._nodes_near(np.array([start])))
            near = near[np.isfinite(length)]
            length = np.maximum(length[np.isfinite(length)], 1e-9)
            parts = (
                np.append(graph.data, length),
                np.append(graph.indices, near),
                np.append(graph.indptr, len(graph.data) + len(near)),
            )
            found = dijkstra(
                csr_matrix(parts, shape=(number + 1, number + 1)),
                indices=number,
                return_predecessors=True,
            )
            self._fields[start] = found[0][:-1], found[1]
        return self._fields[start]

    def _out(self, start: Sequence[float]) -> tuple[tuple[float, float], float]:
        """A start in cells, or the nearest free cell if it is in a zone, and the distance to that,
        cells.
        """
        (column,), (row,) = self.map.to_cells(start[:1], start[1:2])
        if not self.zones(start[:1], start[1:2]).any():
            return (float(column), float(row)), 0.0
        rows, columns = np.nonzero(self.cells == 0)
        if not len(rows):
            return (float(column), float(row)), math.inf
        away = np.hypot(columns + 0.5 - column, rows + 0.5 - row)
        nearest = int(np.argmin(away))
        return (float(columns[nearest]) + 0.5, float(rows[nearest]) + 0.5), float(away[nearest])

    def lengths(self, start: Sequence[float], x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Straight where the line is free, else along lines between nodes in 16 directions."""
        begin, out = self._out(start)
        ends = np.column_stack(self.map.to_cells(x, y))
        length = np.full(len(ends), np.inf)
        free = np.flatnonzero(self.zones(x, y) == 0)
        if math.isfinite(out):
            straight = self.clear(np.array(begin), ends[free])
            length[free[straight]] = np.hypot(*(ends[free[straight]] - begin).T)
            rest = free[~straight]
            if len(rest):
                near, last = self._nodes_near(ends[rest])
                length[rest] = (self._field(begin)[0][near] + last).min(axis=1)
        return (length + out) * self.map.resolution

    def path(self, start: Sequence[float], end: Sequence[float]) -> FloatArray:
        """The line over nodes, straightened from corner to corner as far as the cells between them
        are free.
        """
        if math.isinf(self.lengths(start, end[:1], end[1:2])[0]):
            return np.empty((0, 2))
        begin, out = self._out(start)
        goal = np.column_stack(self.map.to_cells(end[:1], end[1:2]))
        corners = np.vstack([[begin], goal])
        if not self.clear(corners[:1], goal)[0]:
            length, before = self._field(begin)
            near, last = (part[0] for part in self._nodes_near(goal))
            nodes = [int(near[np.argmin(length[near] + last)])]
            while before[nodes[-1]] < len(length):
                nodes.append(int(before[nodes[-1]]))
            corners = np.vstack([[begin], self._lattice.centres(np.array(nodes[::-1])), goal])
        kept = [0]
        while kept[-1] < len(corners) - 1:
            following = corners[kept[-1] + 1 :]
            free = np.flatnonzero(self.clear(corners[kept[-1]][None], following))
            kept.append(kept[-1] + 1 + int(free[-1]))
        path = self.map.to_metres(*corners[kept].T)
        path[-1] = end
        if out:
            return np.vstack([[start], path])
        path[0] = start
        return path

    def nearest_free(self, start: Sequence[float]) -> Point:
        """The centre of the nearest free cell."""
        begin, out = self._out(start)
        if out == 0.0:
            return float(start[0]), float(start[1])
        ((x, y),) = self.map.to_metres([begin[0]], [begin[1]])
        return float(x), float(y)

    def without(self) -> Iterable[tuple[str, Ground]]:
        """The ground without the object, without each polygon, and without its map."""
        if self.footprint is not None:
            yield "the object", replace(self, footprint=None)
        for number in self.polygons:
            others = {other: corners for other, corners in self.polygons.items() if other != number}
            yield f"polygon {number}", _on_map(self.settings, self.map, others, self.footprint)
        if self.map.cells.any():
            empty = replace(self.map, cells=np.zeros_like(self.map.cells))
            yield "the map", _on_map(self.settings, empty, self.polygons, self.footprint)

    def polygon_text(self, x: FloatArray, y: FloatArray) -> str:
        """Text for places in no-go polygons, with the numbers of these."""
        there, column, row = self.map.inside(*self.map.to_cells(x, y))
        cells = self.settings.robot_radius / self.map.resolution
        within = [
            str(number)
            for number, corners in self.polygons.items()
            if (there & cells_around(self.map, corners, cells)[row, column]).any()
        ]
        several = "s" if len(within) > 1 else ""
        return f"in polygon{several} {', '.join(within)}" if within else ZONE_TEXTS[Zone.POLYGON]

    @cached_property
    def hides(self) -> bool:
        """Whether a cell that the object cannot occupy is occupied."""
        return bool(np.isfinite(self._open_sight).all())

    @cached_property
    def _open_sight(self) -> FloatArray:
        """Distance of each cell to what hides the object, cells."""
        hides = (self.map.cells >= self.settings.occupied_threshold) & ~self._object
        if not hides.any():
            return np.full(hides.shape, np.inf)
        return np.asarray(distance_transform_edt(~hides))

    def sight(self, x: FloatArray, y: FloatArray, direction: FloatArray) -> FloatArray:
        """In steps as long as no obstacle can be nearer, at least half a cell."""
        column, row = (np.repeat(value, direction.shape[1]) for value in self.map.to_cells(x, y))
        turned = direction.ravel() - self.map.yaw
        cos, sin = np.cos(turned), np.sin(turned)
        far = np.zeros(len(cos))
        seen = np.full(len(cos), np.inf)
        going = np.arange(len(cos))
        limit = math.hypot(*self.cells.shape)
        while len(going) and np.isfinite(limit):
            there, i, j = self.map.inside(
                column[going] + far[going] * cos[going], row[going] + far[going] * sin[going]
            )
            open_to = np.where(there, self._open_sight[j, i], np.inf)
            seen[going[open_to == 0.0]] = far[going[open_to == 0.0]]
            step = np.where(there, np.maximum(open_to - 1.5, 0.5), 1.0)
            far[going] += step
            going = going[(open_to > 0.0) & (far[going] < 2.0 * limit)]
        return (seen * self.map.resolution).reshape(direction.shape)


@lru_cache(maxsize=64)
def _touched(down: int, right: int) -> tuple[tuple[int, int], ...]:
    """Cells that the line from the centre of the cell (0, 0) to that of (down, right) touches, as
    rows and columns.
    """
    rows = range(down + 1)
    columns = range(min(right, 0), max(right, 0) + 1)
    return tuple(
        (row, column)
        for row in rows
        for column in columns
        if 2 * abs(down * column - right * row) <= abs(down) + abs(right)
    )
