"""Outlines in drawings: GeoJSON and DXF."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import ContourError, reason, shown
from nbv_planner.geometry import FloatArray, IntArray, polar_to_cartesian

ComplexArray = NDArray[np.complex128]

# Parts of the extent: points nearer than this are one, and so are ends of lines that meet, written
# with four digits.
SAME = 1e-9
CLOSING = 1e-4
# What this package writes beside an outline: values of `part`, and names of layers.
_BESIDE = {"lower", "upper", "stretch", "measured", "guessed"}


@dataclass(frozen=True, eq=False)
class FileOutline:
    """The points of an outline as a file has them, with where each stands."""

    places: ComplexArray  #: x + iy, or polar angle + i radius, shape (n,).
    numbers: IntArray  #: of the line or the point, shape (n,).
    where: str = "line "  #: what stands before that number.
    polar: bool = False
    hole: bool = False  #: whether it is the edge of a hole.

    @property
    def points(self) -> FloatArray:
        """Cartesian coordinates, shape (n, 2)."""
        x, y = self.places.real, self.places.imag
        return np.stack(polar_to_cartesian(x, y) if self.polar else (x, y), axis=1)

    def chosen(self, kept: IntArray | slice) -> FileOutline:
        """Some of the points."""
        return replace(self, places=self.places[kept], numbers=self.numbers[kept])

    def then(self, other: FileOutline) -> FileOutline:
        """With the points of another one behind its own."""
        places = np.append(self.places, other.places)
        return replace(self, places=places, numbers=np.append(self.numbers, other.numbers))

    def place(self, index: int) -> str:
        """Where a point stands in the file."""
        return f"{self.where}{self.numbers[index]}"

    def distinct(self) -> FileOutline:
        """Without points equal to the one before, and a last one that closes the outline."""
        points = self.points
        extent = np.ptp(points, axis=0).max()
        apart = np.hypot(*(points - np.roll(points, 1, axis=0)).T)
        kept = np.append(0, np.flatnonzero(apart[1:] > SAME * extent) + 1)
        apart = np.hypot(*(points[kept[-1]] - points[0]))
        return self.chosen(kept[:-1] if len(kept) > 1 and apart <= CLOSING * extent else kept)


def read_geojson(path: Path, data: bytes) -> list[FileOutline]:
    """Polygons, their holes, and lines in the bytes of a GeoJSON file; lines that meet are
    one.

    Raises:
        ContourError: it is no GeoJSON, or holds something else; names the feature.
    """
    lines: dict[bool, list[FileOutline]] = {True: [], False: []}
    name = ""
    try:
        for name, shape in _geometries(json.loads(data), ""):
            given, is_line = shape["coordinates"], shape["type"].endswith("LineString")
            for _ in range(2 - _DEPTHS[shape["type"]]):
                given = [given]
            for number, ring in (one for rings in given for one in enumerate(rings)):
                places = np.array([complex(x, y) for x, y, *_ in ring])
                if not (len(places) and np.isfinite(places).all()):
                    raise ValueError(f"{shown(ring)} are not points")
                numbers = np.arange(1, len(places) + 1)
                hole = number > 0 and not is_line
                one = FileOutline(places, numbers, f"{name}point ", hole=hole)
                lines[is_line].append(one)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ContourError(
            f"{path} {name}is not GeoJSON of {', '.join(_DEPTHS)}: {reason(error)}"
        ) from error
    return lines[False] + _chained(lines[True])


# Types that are read: in how many lists the lines of their coordinates lie.
_DEPTHS = {"LineString": 0, "Polygon": 1, "MultiLineString": 1, "MultiPolygon": 2}
_LISTS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}


def _geometries(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The name of the feature and the geometry, of each."""
    kind = value.get("type")
    if kind == "Feature":
        if (value.get("properties") or {}).get("part") not in _BESIDE:
            yield from _geometries(value["geometry"], name)
    elif kind in _LISTS:
        for number, one in enumerate(value[_LISTS[kind]], 1):
            yield from _geometries(one, f"feature {number} ")
    else:
        yield name, value


# Entities that would be part of an outline, and are not read.
_CURVES = {"ARC", "CIRCLE", "ELLIPSE", "SPLINE", "INSERT", "REGION", "HELIX"}
_LINES = {"LWPOLYLINE", "LINE", "VERTEX"}


def read_dxf(path: Path, data: bytes) -> list[FileOutline]:
    """Polylines and lines in the bytes of an ASCII DXF file; open ones that meet are one.

    Raises:
        ContourError: it is no DXF, or holds curves; names the line.
    """
    lines: dict[bool, list[FileOutline]] = {True: [], False: []}
    is_closed = False
    points = dict[int, complex]()
    for line, kind, codes in [*_entities(path, data), (0, "", [])]:
        if kind in _CURVES or any(code == 42 and float(value) for _, code, value in codes):
            raise ContourError(
                f"{path} line {line}: {kind} is a curve or a block; must be polylines and lines"
                " with straight edges: explode and flatten the drawing"
            )
        if kind != "VERTEX":
            if points:
                places, numbers = np.array([*points.values()]), np.array([*points])
                lines[is_closed].append(FileOutline(places, numbers))
            points = {}
            is_closed = any(code == 70 and int(float(value)) & 1 for _, code, value in codes)
        beside = any(code == 8 and value.lower() in _BESIDE for _, code, value in codes)
        for (number, code, x), (_, after, y) in pairwise(codes):
            if code in (10, 11) and after == code + 10 and kind in _LINES and not beside:
                points[number] = complex(float(x), float(y))
    return lines[True] + _chained(lines[False])


def _entities(path: Path, data: bytes) -> Iterator[tuple[int, str, list[tuple[int, int, str]]]]:
    """Line, name, and (line, code, value) of what follows, of each entity of the drawing."""
    number, begin, section, kind = 0, 0, "", ""
    codes = list[tuple[int, int, str]]()
    try:
        lines = data.decode("utf-8", "replace").splitlines()
        for number in range(1, len(lines), 2):
            code, value = int(lines[number - 1]), lines[number].strip()
            if 10 <= code < 80 and not np.isfinite(float(value)):
                raise ValueError(f"{shown(value)} is not finite")
            if code:
                codes.append((number + 1, code, value))
                continue
            if kind == "SECTION":
                section = codes[0][2]
            elif section == "ENTITIES":
                yield begin, kind, codes
            begin, kind, codes = number + 1, value, []
        if kind != "EOF":
            raise ValueError("it does not end with EOF")
    except (ValueError, LookupError) as error:
        raise ContourError(
            f"{path} line {number}: must be an ASCII DXF: {reason(error)}"
        ) from error


_TURNED = (slice(None), slice(None, None, -1))


def _chained(lines: Sequence[FileOutline]) -> list[FileOutline]:
    """Open lines, those whose ends meet joined; each is closed by its last point and its first."""
    ends = np.array([line.places[[0, -1]] for line in lines]).reshape(-1, 2)
    same = CLOSING * np.abs(ends - ends[:1, :1]).max(initial=0.0)
    free = np.abs(ends[:, 0] - ends[:, 1]) > same
    found = [line for line, is_open in zip(lines, free, strict=True) if not is_open]
    while free.any():
        first = free.argmax()
        free[first] = False
        line = lines[first]
        for _ in range(2):  # beyond its end, then beyond its beginning
            while free.any():
                away = np.where(free[:, None], np.abs(ends - line.places[-1]), np.inf)
                other, side = divmod(int(away.argmin()), 2)
                if away.min() > same or abs(line.places[-1] - line.places[0]) <= same:
                    break
                free[other] = False
                line = line.then(lines[other].chosen(_TURNED[side]).chosen(slice(1, None)))
            line = line.chosen(_TURNED[1])
        found.append(line)
    return found
