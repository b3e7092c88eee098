"""Which cells of a map are occupied or near a polygon, and how far others are from these."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import binary_dilation, distance_transform_edt

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.world.ground.footprint import on_edges
from nbv_planner.world.ground.occupancy_map import OccupancyMap, load_map
from nbv_planner.world.ground.zones import GroundSettings


class KnownObstacles:
    """Occupied cells of the map outside of the bound of the object: a beam that ends there has not
    hit the object.
    """

    def __init__(self, map: OccupancyMap, settings: GroundSettings, radius_max: float) -> None:
        """Take the cells that are `radius_max` metres away from the centre, or farther."""
        rows, columns = np.indices(map.cells.shape)
        away = np.hypot(*np.moveaxis(map.to_metres(columns + 0.5, rows + 0.5), -1, 0))
        self._map = map
        self._away = (
            distance_to((map.cells >= settings.occupied_threshold) & (away > radius_max))
            * map.resolution
        )

    def hold(self, x: FloatArray, y: FloatArray, within: FloatArray) -> BoolArray:
        """Whether places lie `within` a distance of an obstacle, all in metres; by cells."""
        there, column, row = self._map.inside(*self._map.to_cells(x, y))
        return there & (self._away[row, column] <= within)


def known_obstacles(
    settings: GroundSettings, radius_max: float, map: OccupancyMap | None = None
) -> KnownObstacles | None:
    """The obstacles in the map of the settings, whose content may be given as `map`; None without a
    map.

    Raises:
        ConfigFileError: the file of the map cannot be read.
    """
    if not settings.ground_map:
        return None
    return KnownObstacles(map or load_map(settings.ground_map), settings, radius_max)


def distance_to(cells: BoolArray) -> FloatArray:
    """Distance of each cell to the nearest of some `cells`, as squares, in cells; inf if there are
    none; both of shape (H, W).
    """
    if not cells.any():
        return np.full(cells.shape, np.inf)
    return np.asarray(distance_transform_edt(~binary_dilation(cells, np.ones((3, 3), dtype=bool))))


def cells_around(map: OccupancyMap, corners: FloatArray, cells: float) -> BoolArray:
    """Cells at a distance of `cells` or less from those that a polygon touches, shape (H, W).

    The corners of the polygon have shape (n, 2), metres.
    """
    column, row = map.to_cells(*corners.T)
    height, width = map.cells.shape
    around = np.zeros(map.cells.shape, dtype=bool)
    columns, near_columns = _spans(column, width, cells)
    rows, near_rows = _spans(row, height, cells)
    if not columns or not rows:
        return around
    touched = _filled(np.array(near_columns) + 0.5, np.array(near_rows) + 0.5, column, row)
    points, _ = on_edges(np.column_stack([column, row]), 0.25)
    i, j = (np.floor(points) - [near_columns.start, near_rows.start]).astype(np.intp).T
    on = (i >= 0) & (i < len(near_columns)) & (j >= 0) & (j < len(near_rows))
    touched[j[on], i[on]] = True
    near = distance_to(touched) <= cells
    first_row = rows.start - near_rows.start
    first_column = columns.start - near_columns.start
    around[rows.start : rows.stop, columns.start : columns.stop] = near[
        first_row : first_row + len(rows), first_column : first_column + len(columns)
    ]
    return around


def _spans(at: FloatArray, size: int, cells: float) -> tuple[range, range]:
    """Columns (or rows) of the map that a polygon with corners `at` may come near to, and those
    that decide it.
    """
    first = int(np.clip(at.min() - (cells + 3.0), 0, size))
    last = int(np.clip(at.max() + (cells + 3.0), 0, size))
    margin = math.ceil(cells) + 2  # beside the map a part of the polygon may bar cells on it
    begin = max(first - margin, min(first, math.floor(at.min()) - 2))
    end = min(last + margin, max(last, math.ceil(at.max()) + 2))
    return range(first, last), range(begin, end)


def _filled(x: FloatArray, y: FloatArray, column: FloatArray, row: FloatArray) -> BoolArray:
    """Which points of the grid `x` × `y` are inside a polygon: a ray to the left crosses it an odd
    number of times.
    """
    a, b = column, row
    c, d = np.roll(column, -1), np.roll(row, -1)
    line, edge = np.nonzero((y[:, None] > b) != (y[:, None] > d))
    at = a[edge] + (y[line] - b[edge]) * (c[edge] - a[edge]) / (d[edge] - b[edge])
    crossings = np.zeros((len(y), len(x) + 1), dtype=np.intp)
    np.add.at(crossings, (line, np.searchsorted(x, at, side="right")), 1)
    return np.asarray(crossings.cumsum(axis=1)[:, :-1] % 2 == 1)
