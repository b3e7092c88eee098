"""Contours of own objects from CSV files and drawings, and the point from which all of a contour is
seen.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from nbv_planner.errors import ContourError, reason
from nbv_planner.geometry import (
    TWO_PI,
    FloatArray,
    Point,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
    wrap_angle,
)
from nbv_planner.system import read_regular
from nbv_planner.world.objects.drawing_files import (
    SAME,
    FileOutline,
    read_dxf,
    read_geojson,
)

_LARGEST = 10**7  # bytes: a quarter of a million points
_COLUMNS: dict[tuple[str, ...], bool] = {("x", "y"): False, ("phi", "r"): True}
# A turn that was written with four digits, radians.
_ROUNDED_TURN = 1e-3
# Part of the extent that the point from which all is seen must be away from the line of each edge.
_CLEAR = 1e-3


def load_contour(path: str | Path, *, file_origin: bool = False) -> tuple[FloatArray, FloatArray]:
    """Read a closed contour from a CSV file with a header `x,y` (metres) or `phi,r` (radians,
    metres), or from a drawing that holds one outline, see :func:`read_outlines`.

    Further columns, lines that begin with # and lines without a value are left out. The points
    follow the contour in either direction; a point equal to the one before, and a last one equal to
    the first, are left out. With `file_origin` the angles and radii are those about the
    :func:`seeing_point`. Returned are strictly rising polar angles in [0, 2π) and radii, shape
    (n,).

    Raises:
        ContourError: the file cannot be read, or the contour is not star-shaped around the origin;
            the message names the file and the line, and the point around which it is, if there is
            one.
    """
    contour = _FileContour.read(Path(path))
    if file_origin:
        contour = contour.about(contour.seeing_point())
    elif len(bad := np.flatnonzero(contour.radius <= 0.0)):
        where = f"{path} {contour.where}{contour.lines[bad[0]]}"
        if contour.radius[bad[0]] < 0.0:
            raise ContourError(f"{where}: radius is {contour.radius[bad[0]]:g}, must be > 0")
        raise ContourError(f"{where}: the origin lies on the contour; {contour.advice()}")
    return contour.rising()


def file_origin(path: str | Path) -> Point:
    """The :func:`seeing_point` of the contour in a file, in its unit.

    Raises:
        ContourError: the file cannot be read, or there is no such point.
    """
    return _FileContour.read(Path(path)).seeing_point()


def seeing_point(x: FloatArray, y: FloatArray) -> Point | None:
    r"""Point that sees all of a closed polygon in straight lines, None if no point does.

    Of all such points, the kernel of the polygon with vertices :math:`p_i`, shape (n,) each, the
    one with the greatest distance t from the lines of its edges, by a linear programme over (c, t):
    maximise t with :math:`n_i \cdot (c - p_i) \ge t` for the unit normals :math:`n_i` that point
    inwards.
    """
    points = np.stack([x, y], axis=1)
    extent = float(np.ptp(points, axis=0).max())
    middle = points.mean(axis=0)
    points = (points - middle) / (extent or 1.0)
    side = np.roll(points, -1, axis=0) - points
    double = float(np.sum(points[:, 0] * side[:, 1] - points[:, 1] * side[:, 0]))  # twice the area
    long = np.hypot(*side.T)
    if extent == 0.0 or double == 0.0:
        return None
    kept = long > 0.0
    inwards = (
        np.sign(double) * np.stack([-side[kept, 1], side[kept, 0]], axis=1) / long[kept, np.newaxis]
    )
    found = linprog(
        [0.0, 0.0, -1.0],
        np.column_stack([-inwards, np.ones(len(inwards))]),
        -np.sum(inwards * points[kept], axis=1),
        bounds=[(None, None), (None, None), (None, 1.0)],
        method="highs",  # the default of scipy 1.8 takes minutes for a large outline
    )
    if not found.success or found.x[2] < _CLEAR:
        return None
    angle = np.arctan2(*(points - found.x[:2]).T[::-1])
    if not np.isclose(abs(angle_difference(np.roll(angle, -1), angle).sum()), TWO_PI):
        return None  # it crosses itself, or goes round more than once
    at = middle + extent * found.x[:2]
    at[np.abs(at) < SAME * extent] = 0.0
    return float(at[0]), float(at[1])


@dataclass(frozen=True, eq=False)
class _FileContour:
    """The points of a file about an origin, with the number of the line of each."""

    name: str
    lines: Sequence[int]
    angle: FloatArray
    radius: FloatArray
    where: str = "line "  #: what stands before that number.

    @classmethod
    def read(cls, path: Path) -> _FileContour:
        """Read a file; see :func:`load_contour`."""
        first, *more = (one for one in read_outlines(path) if not one.hole)
        if more and path.suffix.lower() in _DRAWINGS:
            raise ContourError(f"{path}: holds {1 + len(more)} outlines; {_NONE}")
        whole = reduce(FileOutline.then, more, first)
        if whole.polar and np.ptp(whole.places.real) > TWO_PI + _ROUNDED_TURN:
            found = (
                f"the polar angles span {np.ptp(whole.places.real):g}, more than 2 pi, one turn"
                " around the origin"
            )
            raise ContourError(
                f"{path}: {found}: they look like degrees, must be radians (degrees times pi / 180)"
            )
        whole = whole.distinct()
        if len(whole.numbers) < 3:
            raise ContourError(
                f"{path}: has {len(whole.numbers)} different points, needs at least 3"
            )
        x, y = whole.places.real, whole.places.imag
        polar = (wrap_angle(x), y) if whole.polar else cartesian_to_polar(x, y)
        return cls(str(path), whole.numbers.tolist(), polar[0], polar[1], whole.where)

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Cartesian coordinates of the points."""
        return polar_to_cartesian(self.angle, self.radius)

    def about(self, origin: Point) -> _FileContour:
        """The same about another origin."""
        x, y = self.points()
        moved = cartesian_to_polar(x - origin[0], y - origin[1])
        return _FileContour(self.name, self.lines, *moved, self.where)

    def seeing_point(self) -> Point:
        """See :func:`seeing_point`; a ContourError if there is none."""
        found = seeing_point(*self.points())
        if found is None:
            raise ContourError(f"{self.name}: {_NONE}")
        return found

    def advice(self) -> str:
        """Where the origin must be, if anywhere."""
        found = seeing_point(*self.points())
        if found is None:
            return _NONE
        return (
            f"all of it is seen from x = {found[0]:.6g}, y = {found[1]:.6g}: subtract these, or add"
            " ,origin=auto"
        )

    def rising(self) -> tuple[FloatArray, FloatArray]:
        """Order the points by rising angle, or report where the contour turns back."""
        lines, angle, radius = self.lines, self.angle, self.radius
        turn = angle_difference(np.roll(angle, -1), angle)
        if turn.sum() < 0.0:
            lines, angle, radius = lines[::-1], angle[::-1], radius[::-1]
            turn = angle_difference(np.roll(angle, -1), angle)
        if np.isclose(turn.sum(), 0.0):
            raise ContourError(f"{self.name}: the origin lies outside the contour; {self.advice()}")
        back = np.flatnonzero(turn <= 0.0)
        if len(back):
            after = (back[0] + 1) % len(lines)
            first, last = sorted((lines[back[0]], lines[after]))
            raise ContourError(
                f"{self.name}: the contour turns back between {self.where}{first} and"
                f" {self.where}{last}, near"
                f" {angle[after]:.4f} rad; it must be star-shaped around the origin (polar angle"
                f" strictly monotone, gaps below pi); {self.advice()}"
            )
        if not np.isclose(turn.sum(), TWO_PI):
            turns = turn.sum() / TWO_PI
            raise ContourError(
                f"{self.name}: the contour winds {turns:.2f} times around the origin, must be 1"
            )
        start = int(np.argmin(angle))
        return np.roll(angle, -start), np.roll(radius, -start)


_NONE = (
    "there is no point from which all of it is seen in straight lines, so it cannot be mapped as a"
    " whole"
)


_DRAWINGS = {".geojson": read_geojson, ".json": read_geojson, ".dxf": read_dxf}


def read_outlines(path: Path) -> list[FileOutline]:
    """Outlines, one or several, closed or not, in a file: GeoJSON or DXF by its ending, else CSV.

    In CSV an empty line stands between one outline and the next. Of GeoJSON there are Polygon,
    MultiPolygon (holes are marked), LineString and MultiLineString, alone or in a Feature or a
    collection; of an ASCII DXF there are POLYLINE, LWPOLYLINE and LINE with straight edges. Open
    lines whose ends meet are one outline. What this package writes beside an outline is left out.

    Raises:
        ContourError: it cannot be read, or holds something else or nothing; names the place.
    """
    try:
        data = read_regular(path, _LARGEST)
        found = _DRAWINGS.get(path.suffix.lower(), _read_table)(path, data)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ContourError(f"cannot read contour file {path}: {reason(error)}") from error
    if all(one.hole for one in found):
        raise ContourError(f"{path}: holds no outline")
    return found


def _read_table(path: Path, data: bytes) -> list[FileOutline]:
    """Outlines of a CSV file."""
    outline = 0
    rows = list[tuple[int, int, list[str]]]()
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    for row in reader:
        if not any(map(str.strip, row)):
            outline += 1
        elif not row[0].startswith("#"):
            rows.append((outline, reader.line_num, row))
    header = tuple(cell.strip() for cell in rows.pop(0)[2]) if rows else ()
    if header[:2] not in _COLUMNS:
        found = ",".join(header)
        known = "'x,y' (metres) or 'phi,r' (radians, metres)"
        raise ContourError(
            f"{path}: first line is {found[:80]!r}, must be the header {known}{_comma([header])}"
        )
    numbers = []
    for _, line, row in rows:
        try:
            if len(row) != len(header):
                raise ValueError
            first, second = (float(cell) for cell in row[:2])
        except ValueError as error:
            found = f"{','.join(row)[:80]!r}{_comma([header, row])}"
            raise ContourError(f"{path} line {line}: needs two numbers, found {found}") from error
        if not (np.isfinite(first) and np.isfinite(second)):
            raise ContourError(f"{path} line {line}: {first}, {second} must be finite")
        numbers.append(complex(first, second))
    if len(numbers) < 3:
        raise ContourError(f"{path}: has {len(numbers)} points, needs at least 3")
    outlines, lines = np.array([row[:2] for row in rows], dtype=int).T
    whole = FileOutline(np.array(numbers), lines, polar=_COLUMNS[header[:2]])
    return [whole.chosen(np.flatnonzero(outlines == one)) for one in np.unique(outlines)]


def _comma(rows: Sequence[Sequence[str]]) -> str:
    """What to say of rows that look like those of a spreadsheet with decimal commas, else
    nothing.
    """
    cells = rows[-1]
    halves = (
        len(rows) > 1
        and len(cells) == 2 * len(rows[0])
        and all(re.fullmatch(r"\s*[-+]?\d+\s*", c) for c in cells)
    )
    if halves or any(";" in cell or re.search(r"\d,\d", cell) for cell in cells):
        return " (columns are separated by commas, so numbers need a decimal point: 1.5, not 1,5)"
    return ""
