"""What one takes home: the outline as CSV, GeoJSON and DXF, and the map as PGM with YAML; all
lengths in metres.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import (
    BoolArray,
    CircleInterpolation,
    FloatArray,
    IntArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
)
from nbv_planner.star2d.belief import SurfaceBelief, once_around
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene

FREE = 0
OCCUPIED = 100
UNKNOWN = -1
"""Values of the cells of a map, as nav_msgs/OccupancyGrid has them."""


@dataclass(frozen=True, eq=False)
class Outline:
    """The mean contour once around the centre, counter-clockwise, with its band; of n points
    each.
    """

    angle: FloatArray  #: polar angle, shape (n,), radians.
    radius: FloatArray  #: mean radius, shape (n,), metres, not negative.
    lower: FloatArray  #: lower confidence bound of the radius, shape (n,), metres, not negative.
    upper: FloatArray  #: upper confidence bound of the radius, shape (n,), metres.
    #: whether beams have seen the surface there, shape (n,); else it is the prior's guess.
    measured: BoolArray
    frame: str = "object"  #: frame in which it is given.
    centre: tuple[float, float] = (0.0, 0.0)  #: about which the angles are, in that frame, metres.
    #: half of the band with and without errors common to views, in words; empty if not known.
    accuracy: str = ""

    @classmethod
    def of(cls, belief: SurfaceBelief, scene: Scene, frame: str = "object") -> Outline:
        """The outline of a belief; seen is what :func:`seen_stretches` counts as seen."""
        part = once_around(belief)
        mean, lower, upper = (
            np.maximum(values, 0.0)[part] for values in (belief.mean, belief.lower, belief.upper)
        )
        seen = seen_stretches(belief, scene.pixel_size)[part]
        accuracy = ""
        if belief.common is not None and seen.any():
            both, alone = (
                0.5 * float(np.median(one.width[part][seen])) for one in (belief, belief.by_noise)
            )
            accuracy = (
                f"accurate to {both:.3g} m (median), {alone:.3g} m without what is common to all"
                " views"
            )
            accuracy += f"; {words}, which is corrected" if (words := belief.common.words) else ""
        return cls(belief.angle[part], mean, lower, upper, seen, frame, belief.centre, accuracy)

    def points(self, radius: FloatArray) -> list[list[float]]:
        """Points [x, y] at the polar angles and a `radius`, shape (n,), metres, to nine digits."""
        places = (np.stack(polar_to_cartesian(self.angle, radius), axis=1) + self.centre).tolist()
        return [[float(f"{x:.9g}"), float(f"{y:.9g}")] for x, y in places]

    @property
    def stretches(self) -> list[tuple[bool, IntArray]]:
        """Runs of measured and of guessed points: which, and their indices up to the first point of
        the next run.
        """
        count = len(self.angle)
        begins = np.flatnonzero(self.measured != np.roll(self.measured, 1))
        if not len(begins):
            return [(bool(self.measured[0]), np.arange(count + 1) % count)]
        ends = [*begins[1:], begins[0] + count]
        return [
            (bool(self.measured[begin]), np.arange(begin, end + 1) % count)
            for begin, end in zip(begins, ends, strict=True)
        ]

    @property
    def words(self) -> str:
        """Number of points, part that was measured, and median width of the band there."""
        width = (self.upper - self.lower)[self.measured]
        said = f", its band {np.median(width):.3g} m wide there (median)" if len(width) else ""
        if self.centre != (0.0, 0.0):
            said += f", about x {self.centre[0]:.4g} m, y {self.centre[1]:.4g} m"
        said += f"; {self.accuracy}" if self.accuracy else ""
        return f"{len(self.angle)} points, {self.measured.mean():.1%} of them measured{said}"

    @property
    def csv(self) -> str:
        """Text with the columns x, y, lower, upper, measured, which `file:` objects read back."""
        rows = zip(self.points(self.radius), self.lower, self.upper, self.measured, strict=True)
        return (
            f"# outline in the frame {self.frame}: x, y in metres; lower, upper: bounds of the"
            " radius in metres;\n# measured: 1 where beams have seen the surface, 0 where the"
            " radius is a"
            f" guess{'; ' if self.accuracy else ''}{self.accuracy}\nx,y,lower,upper,measured\n"
            + "".join(
                f"{x!r},{y!r},{low:.9g},{high:.9g},{seen:d}\n" for (x, y), low, high, seen in rows
            )
        )

    @property
    def geojson(self) -> str:
        """Text with the polygons mean, lower and upper, and one line for each measured or guessed
        stretch.
        """
        rings = {"mean": self.radius, "lower": self.lower, "upper": self.upper}
        mean = self.points(self.radius)
        shapes: list[tuple[dict[str, object], str, object]] = [
            ({"part": name}, "Polygon", [[*(points := self.points(radius)), points[0]]])
            for name, radius in rings.items()
        ]
        shapes += [
            ({"part": "stretch", "measured": seen}, "LineString", [mean[index] for index in run])
            for seen, run in self.stretches
        ]
        features = [
            {
                "type": "Feature",
                "properties": {**known, "units": "m", "frame": self.frame},
                "geometry": {"type": kind, "coordinates": place},
            }
            for known, kind, place in shapes
        ]
        accuracy = {"accuracy": self.accuracy} if self.accuracy else {}
        return json.dumps({"type": "FeatureCollection", **accuracy, "features": features}) + "\n"

    @property
    def dxf(self) -> str:
        """Text of a drawing (R12): layers OUTLINE, LOWER, UPPER closed, MEASURED and GUESSED open;
        1 unit is 1 m.
        """
        mean = self.points(self.radius)
        lines = [
            ("OUTLINE", 1, mean),
            ("LOWER", 1, self.points(self.lower)),
            ("UPPER", 1, self.points(self.upper)),
        ]
        lines += [
            ("MEASURED" if seen else "GUESSED", 0, [mean[i] for i in run])
            for seen, run in self.stretches
        ]
        codes: list[tuple[int, object]] = [
            (999, f"outline in the frame {self.frame}, metres"),
            *([(999, self.accuracy)] if self.accuracy else []),
            (0, "SECTION"),
            (2, "HEADER"),
            (9, "$ACADVER"),
            (1, "AC1009"),
            (9, "$INSUNITS"),
            (70, 6),
            (0, "ENDSEC"),
            (0, "SECTION"),
            (2, "ENTITIES"),
        ]
        for layer, closed, points in lines:
            codes += [
                (0, "POLYLINE"),
                (8, layer),
                (66, 1),
                (70, closed),
                (10, 0.0),
                (20, 0.0),
                (30, 0.0),
            ]
            for x, y in points:
                codes += [(0, "VERTEX"), (8, layer), (10, x), (20, y), (30, 0.0)]
            codes += [(0, "SEQEND"), (8, layer)]
        return "".join(f"{code}\n{value}\n" for code, value in [*codes, (0, "ENDSEC"), (0, "EOF")])

    def write(self, folder: Path) -> list[Path]:
        """Write `outline.csv`, `outline.geojson` and `outline.dxf`, each atomically, and return
        their paths.
        """
        files = [folder / f"outline.{kind}" for kind in ("csv", "geojson", "dxf")]
        for file in files:
            write_whole(file, getattr(self, file.suffix[1:]))
        return files


# Cells along a side at most: more cost time at every scan.
_MOST_CELLS = 400


@dataclass(frozen=True)
class MapGrid:
    """Square cells around the centre, up to the view circle, their side that of a world pixel
    unless too many.
    """

    scene: Scene
    centre: tuple[float, float] = (0.0, 0.0)  #: in the frame of the map, metres.

    @property
    def resolution(self) -> float:
        """Side of a cell, metres."""
        return max(self.scene.pixel_size, 2.0 * self.scene.view_distance / _MOST_CELLS)

    @property
    def size(self) -> int:
        """Number of cells along a side."""
        return math.ceil(2.0 * self.scene.view_distance / self.resolution)

    @property
    def origin(self) -> tuple[float, float]:
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

    def occupancy(self, belief: SurfaceBelief, swept: BoolArray) -> NDArray[np.int8]:
        """Values of the cells, shape (size, size): :data:`OCCUPIED`, :data:`FREE` or
        :data:`UNKNOWN`.

        Occupied: the band of the surface where it has been seen, at least one cell thick. Free:
        `swept` by a beam and not inside of what has been seen. Unknown: the inside, and what no
        beam has reached.
        """
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
