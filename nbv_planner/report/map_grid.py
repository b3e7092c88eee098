"""The map that one takes home, as PGM with YAML: where the surface is, what is free, and what is
not known; lengths in metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import (
    ORIGIN,
    BoolArray,
    CircleInterpolation,
    FloatArray,
    Point,
    angle_difference,
    cartesian_to_polar,
)
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene

FREE = 0
OCCUPIED = 100
UNKNOWN = -1
"""Values of the cells of a map, as nav_msgs/OccupancyGrid has them."""

# Cells along a side at most: more cost time at every scan.
_MOST_CELLS = 400
# Points of each edge of an outline from which the cells that it occupies are told.
_BETWEEN = 5


@dataclass(frozen=True)
class MapGrid:
    """Square cells around the centre, up to the view circle, their side that of a world pixel
    unless too many.
    """

    scene: Scene
    centre: Point = ORIGIN  #: in the frame of the map, metres.

    @property
    def resolution(self) -> float:
        """Side of a cell, metres."""
        return max(self.scene.pixel_size, 2.0 * self.scene.view_distance / _MOST_CELLS)

    @property
    def size(self) -> int:
        """Number of cells along a side."""
        return math.ceil(2.0 * self.scene.view_distance / self.resolution)

    @property
    def origin(self) -> Point:
        """Coordinates x and y of the lower left corner, metres."""
        half = 0.5 * self.size * self.resolution
        return self.centre[0] - half, self.centre[1] - half

    @cached_property
    def centres(self) -> tuple[FloatArray, FloatArray]:
        """Coordinates x and y of the centres of the cells, shape (size, size), metres; rows by
        rising y.
        """
        along = (np.arange(self.size) + 0.5) * self.resolution
        x, y = np.meshgrid(*(corner + along for corner in self.origin))
        return x, y

    def swept(self, rays: FreeRays, increment: float) -> BoolArray:
        """Cells whose centre lies on the free stretch of a ray, or within half an `increment`
        (radians) beside it.

        The rays are about the centre of the map.
        """
        x, y = (v - c - o for v, c, o in zip(self.centres, self.centre, rays.origin, strict=True))
        if not len(rays.direction):
            return np.zeros(x.shape, dtype=bool)
        ahead = np.arctan2(*-rays.origin[::-1])
        distance = np.hypot(x, y)
        bearing = angle_difference(np.arctan2(y, x), ahead)
        own = angle_difference(np.arctan2(rays.direction[:, 1], rays.direction[:, 0]), ahead)
        order = np.argsort(own)
        known = own[order]
        length = rays.length[order]
        nearest = np.searchsorted(0.5 * (known[1:] + known[:-1]), bearing)
        return np.asarray(
            (np.abs(known[nearest] - bearing) <= 0.5 * increment) & (distance <= length[nearest])
        )

    def occupancy(
        self, belief: SurfaceBelief | VolumeSurface, swept: BoolArray
    ) -> NDArray[np.int8]:
        """Values of the cells, shape (size, size): :data:`OCCUPIED`, :data:`FREE` or
        :data:`UNKNOWN`.

        Occupied: the band of the surface where it has been seen, at least one cell thick. Free:
        `swept` by a beam and not inside of what has been seen. Unknown: the inside, and what no
        beam has reached. Where there is no band, what lies within a cell of the measured
        outline is occupied.
        """
        if isinstance(belief, VolumeSurface):
            return self._around_bodies(belief, swept)
        angle, radius = cartesian_to_polar(
            *(v - c for v, c in zip(self.centres, belief.centre, strict=True))
        )
        at = CircleInterpolation.at(belief.angle, angle)
        half = self.resolution * math.sqrt(0.5)
        mean, lower, upper = (at(values) for values in (belief.mean, belief.lower, belief.upper))
        seen = at(seen_stretches(belief, self.scene.pixel_size).astype(float)) > 0.5
        occupied = (
            seen
            & (radius >= np.minimum(lower, mean - half))
            & (radius <= np.maximum(upper, mean + half))
        )
        cells = np.full(radius.shape, UNKNOWN, dtype=np.int8)
        cells[swept & (~seen | (radius > mean))] = FREE
        cells[occupied] = OCCUPIED
        return cells

    def _around_bodies(self, surface: VolumeSurface, swept: BoolArray) -> NDArray[np.int8]:
        places, drawn = np.stack(self.centres, axis=-1), surface.likeliest
        cells = np.full(swept.shape, UNKNOWN, dtype=np.int8)
        cells[(swept | drawn.passed(places)) & ~drawn.occupied(places)] = FREE
        measured = [
            body.points[run] for body in drawn.bodies for seen, run in body.stretches if seen
        ]
        if measured:
            part = np.linspace(0.0, 1.0, _BETWEEN)[:, None, None]
            dense = [(run[:-1] + part * np.diff(run, axis=0)).reshape(-1, 2) for run in measured]
            away, _ = cKDTree(np.concatenate(dense)).query(
                places, distance_upper_bound=self.resolution
            )
            cells[np.isfinite(away)] = OCCUPIED
        return cells

    def write(self, folder: Path, cells: NDArray[np.int8]) -> list[Path]:
        """Write `map.yaml` and `map.pgm` as Nav2's map_server reads them, and return their paths.

        Free cells are 254, occupied 0, unknown 205; with its usual `free_thresh` of 0.25 unknown
        ones would be free.
        """
        image = np.full(cells.shape, 205, dtype=np.uint8)
        image[cells == FREE], image[cells == OCCUPIED] = 254, 0
        write_whole(
            folder / "map.pgm", b"P5\n%d %d\n255\n" % cells.shape[::-1] + image[::-1].tobytes()
        )
        x, y = self.origin
        write_whole(
            folder / "map.yaml",
            f"image: map.pgm\nmode: trinary\nresolution: {self.resolution:.9g}  # metres per cell\n"
            f"origin: [{x:.9g}, {y:.9g}, 0.0]  # metres, metres, radians; of the lower left cell\n"
            "negate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n",
        )
        return [folder / "map.yaml", folder / "map.pgm"]
