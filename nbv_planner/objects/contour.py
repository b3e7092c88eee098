"""Contours given as points: reading them from a file and checking that they fit the problem."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from nbv_planner.errors import ContourError
from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference, cartesian_to_polar, wrap_angle
from nbv_planner.objects.shapes import PolarObject

_COLUMNS = {("x", "y"): False, ("phi", "r"): True}


def load_contour(path: str | Path) -> tuple[FloatArray, FloatArray]:
    """Read a closed contour from a CSV file with a header `x,y` (metres) or `phi,r` (radians, metres).

    The points follow the contour in either direction; a last point equal to the first is left out.

    Returns:
        Strictly rising polar angles in [0, 2π) and radii, shape (n,) each.

    Raises:
        ContourError: the file cannot be read, or the contour is not star-shaped around the origin; the message
            names the file and the line.
    """
    name = str(path)
    lines, first, second, polar = _read_table(Path(path))
    if polar:
        angle, radius = wrap_angle(first), second
    else:
        angle, radius = cartesian_to_polar(first, second)
    bad = np.flatnonzero(radius <= 0.0)
    if len(bad):
        raise ContourError(f"{name} line {lines[bad[0]]}: radius is {radius[bad[0]]:g}, must be > 0")
    closes = np.isclose(angle_difference(angle[0], angle[-1]), 0.0, atol=1e-12) and np.isclose(radius[0], radius[-1])
    if closes:
        lines, angle, radius = lines[:-1], angle[:-1], radius[:-1]
    return _rising(name, lines, angle, radius)


def _read_table(path: Path) -> tuple[list[int], FloatArray, FloatArray, bool]:
    """Line numbers, both columns, and whether they are polar."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = tuple(cell.strip() for cell in next(reader, []))
            rows = [(reader.line_num, row) for row in reader if row and not row[0].startswith("#")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ContourError(f"cannot read contour file {path}: {error}") from error
    if header not in _COLUMNS:
        raise ContourError(f"{path}: header is {','.join(header)!r}, must be 'x,y' or 'phi,r'")
    numbers = []
    for line, row in rows:
        try:
            first, second = (float(cell) for cell in row)
        except ValueError as error:
            raise ContourError(f"{path} line {line}: needs two numbers, found {','.join(row)!r}") from error
        if not (np.isfinite(first) and np.isfinite(second)):
            raise ContourError(f"{path} line {line}: {first}, {second} must be finite")
        numbers.append((first, second))
    if len(numbers) < 3:
        raise ContourError(f"{path}: has {len(numbers)} points, needs at least 3")
    table = np.array(numbers)
    return [line for line, _ in rows], table[:, 0], table[:, 1], _COLUMNS[header]


def _rising(name: str, lines: list[int], angle: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Order the points by rising angle, or say where the contour turns back."""
    turn = angle_difference(np.roll(angle, -1), angle)
    if turn.sum() < 0.0:
        lines, angle, radius = lines[::-1], angle[::-1], radius[::-1]
        turn = angle_difference(np.roll(angle, -1), angle)
    back = np.flatnonzero(turn <= 0.0)
    if len(back):
        after = (back[0] + 1) % len(lines)
        first, last = sorted((lines[back[0]], lines[after]))
        raise ContourError(
            f"{name}: the contour turns back between line {first} and line {last}, near {angle[after]:.4f} rad; "
            "it must be star-shaped around the origin (polar angle strictly monotone, gaps below pi)"
        )
    if not np.isclose(turn.sum(), TWO_PI):
        raise ContourError(f"{name}: the contour winds {turn.sum() / TWO_PI:.2f} times around the origin, must be 1")
    start = int(np.argmin(angle))
    return np.roll(angle, -start), np.roll(radius, -start)


def check_contour(shape: PolarObject, radius_min: float, radius_max: float, name: str) -> None:
    """Check that a shape stays finite and inside the radius bounds.

    Raises:
        ContourError: says at which angle it does not.
    """
    slack = 1e-9 * radius_max
    outside = first_outside(shape, radius_min - slack, radius_max + slack)
    if outside is not None:
        angle, radius = outside
        raise ContourError(
            f"object {name}: radius {radius:.4g} m at {angle:.4f} rad; "
            f"must be within [{radius_min:g}, {radius_max:g}] m (radius_min, radius_max)"
        )


def first_outside(shape: PolarObject, low: float, high: float) -> tuple[float, float] | None:
    """First of 7200 angles and the corners at which the radius is not within [low, high], and the radius there."""
    angle = np.union1d(np.linspace(0.0, TWO_PI, 7200, endpoint=False), shape.corners())
    radius = shape.radius(angle)
    bad = np.flatnonzero(~((radius >= low) & (radius <= high)))
    return (float(angle[bad[0]]), float(radius[bad[0]])) if len(bad) else None
