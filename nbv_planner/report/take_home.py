"""What one takes home: the outline as CSV, GeoJSON and DXF; all lengths in metres."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import (
    ORIGIN,
    BoolArray,
    FloatArray,
    IntArray,
    Point,
    polar_points,
    runs_around,
)
from nbv_planner.star2d.belief import SurfaceBelief, once_around
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.volume.contours import Body
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.scene import Scene

# Layers of a drawing, by the part that is on each.
_LAYERS = {"mean": "OUTLINE", "lower": "LOWER", "upper": "UPPER"}


Places = list[list[float]]
"""Points [x, y], metres."""


def rounded(points: FloatArray) -> Places:
    """Points, shape (n, 2), to nine digits."""
    return [[float(f"{x:.9g}"), float(f"{y:.9g}")] for x, y in points.tolist()]


class OutlineFiles(ABC):
    """An outline of either surface, as the files that it is written to."""

    frame: str  #: frame in which it is given.
    accuracy: str  #: how accurate it is, in words; empty if not known.

    @property
    @abstractmethod
    def rings(self) -> list[tuple[dict[str, object], Places]]:
        """Closed lines, and what each is: its `part`, the `mean` of the largest body first."""

    @property
    @abstractmethod
    def lines(self) -> list[tuple[dict[str, object], Places]]:
        """Runs of measured and of guessed points of the mean, and what each is: whether it was
        `measured`.
        """

    @property
    @abstractmethod
    def summary(self) -> str:
        """What is in it, and how much of it was measured."""

    @property
    @abstractmethod
    def csv(self) -> str:
        """Text of a table, which `file:` objects read back."""

    @property
    def geojson(self) -> str:
        """Text with a polygon for each ring, and one line for each measured or guessed stretch."""
        shapes: list[tuple[dict[str, object], str, object]] = [
            (known, "Polygon", [[*points, points[0]]]) for known, points in self.rings
        ]
        shapes += [
            ({"part": "stretch", **known}, "LineString", points) for known, points in self.lines
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
        lines = [(_LAYERS[str(known["part"])], 1, points) for known, points in self.rings]
        lines += [
            ("MEASURED" if known["measured"] else "GUESSED", 0, points)
            for known, points in self.lines
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


def outline_of(belief: Any, scene: Scene, frame: str = "object") -> OutlineFiles:
    """The outline of a belief of either surface."""
    if isinstance(belief, VolumeSurface):
        return Bodies(belief.likeliest.bodies, frame)
    return MeasuredOutline.of(belief, scene, frame)


@dataclass(frozen=True, eq=False)
class MeasuredOutline(OutlineFiles):
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
    centre: Point = ORIGIN  #: about which the angles are, in that frame, metres.
    #: half of the band with and without errors common to views, in words; empty if not known.
    accuracy: str = ""

    @classmethod
    def of(cls, belief: SurfaceBelief, scene: Scene, frame: str = "object") -> MeasuredOutline:
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
                f"accurate to {both:.3g} m (median), {alone:.3g} m without the errors common to"
                " all views"
            )
            accuracy += f"; {words}, which is corrected" if (words := belief.common.summary) else ""
        return cls(belief.angle[part], mean, lower, upper, seen, frame, belief.centre, accuracy)

    def points(self, radius: FloatArray) -> Places:
        """Points at the polar angles and a `radius`, shape (n,), metres, to nine digits."""
        return rounded(polar_points(self.angle, radius) + self.centre)

    @property
    def rings(self) -> list[tuple[dict[str, object], Places]]:
        """See :attr:`OutlineFiles.rings`: mean, lower and upper."""
        rings = {"mean": self.radius, "lower": self.lower, "upper": self.upper}
        return [({"part": name}, self.points(radius)) for name, radius in rings.items()]

    @property
    def lines(self) -> list[tuple[dict[str, object], Places]]:
        """See :attr:`OutlineFiles.lines`."""
        mean = self.points(self.radius)
        return [
            ({"measured": seen}, [mean[index] for index in run]) for seen, run in self.stretches
        ]

    @property
    def stretches(self) -> list[tuple[bool, IntArray]]:
        """Measured and guessed ones, see :func:`~nbv_planner.geometry.runs_around`."""
        return runs_around(self.measured)

    @property
    def summary(self) -> str:
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


@dataclass(frozen=True, eq=False)
class Bodies(OutlineFiles):
    """The outlines of one body or several, of any form."""

    bodies: Sequence[Body]  #: the largest one first.
    frame: str = "object"  #: see :class:`OutlineFiles`.
    accuracy: str = ""

    @property
    def rings(self) -> list[tuple[dict[str, object], Places]]:
        """See :attr:`OutlineFiles.rings`: the mean of each `body`, by its number from 1 on."""
        return [
            ({"part": "mean", "body": number}, rounded(body.points))
            for number, body in enumerate(self.bodies, start=1)
        ]

    @property
    def lines(self) -> list[tuple[dict[str, object], Places]]:
        """See :attr:`OutlineFiles.lines`; of each `body`."""
        return [
            ({"measured": seen, "body": number}, rounded(body.points[run]))
            for number, body in enumerate(self.bodies, start=1)
            for seen, run in body.stretches
        ]

    @property
    def summary(self) -> str:
        """Number of bodies and points, part that was measured, and median deviation there."""
        if not self.bodies:
            return "none, nothing was hit"
        std, measured = (
            np.concatenate([getattr(body, name) for body in self.bodies])
            for name in ("std", "measured")
        )
        what = f"{len(self.bodies)} bodies, " if len(self.bodies) > 1 else ""
        said = f"{what}{len(std)} points, {measured.mean():.1%} of them measured"
        if measured.any():
            said += f", their standard deviation {np.median(std[measured]):.3g} m (median)"
        return said

    @property
    def csv(self) -> str:
        """Text with the columns x, y, std, measured, an empty line between bodies."""
        tables = [
            "".join(
                f"{x!r},{y!r},{wide:.3g},{seen:d}\n"
                for (x, y), wide, seen in zip(
                    rounded(body.points), body.std, body.measured, strict=True
                )
            )
            for body in self.bodies
        ]
        return (
            f"# outlines in the frame {self.frame}: x, y in metres, one body after the other, the"
            " largest first;\n# std: standard deviation in metres; measured: 1 near a hit, else a"
            " guess\nx,y,std,measured\n" + "\n".join(tables)
        )
