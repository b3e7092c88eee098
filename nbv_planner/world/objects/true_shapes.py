"""True object shapes: 2π-periodic polar functions `f(φ)` in metres (thesis appendix B.2), and contours from files."""

from __future__ import annotations

import csv
import dataclasses
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from nbv_planner.errors import ContourError, reason
from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference, cartesian_to_polar, wrap_angle
from nbv_planner.settings import Settings, setting
from nbv_planner.system import read_regular


class PolarObject(Protocol):
    """A closed curve around the origin, given by its radius at every polar angle."""

    def __hash__(self) -> int:
        """Hash of its values: results for a shape can be cached."""

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius `f(φ)` in metres at polar `angle` in radians (any real number)."""

    def corners(self) -> FloatArray:
        """Polar angles in [0, 2π) at which the curve has a corner, rising, radians."""


class _Smooth:
    def corners(self) -> FloatArray:
        """No corner."""
        return np.empty(0)


@dataclass(frozen=True)
class Cornerless(_Smooth):
    """An object of another package that says nothing of corners, and so has none."""

    shape: Any

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle` in radians."""
        return np.asarray(self.shape.radius(np.asarray(angle, dtype=float)), dtype=float)


@dataclass(frozen=True)
class Ellipse(_Smooth, Settings):
    r"""Ellipse with semi-axes `a` (along x) and `b` (along y), :math:`ab / \sqrt{(b\cos φ)^2 + (a\sin φ)^2}`."""

    a: float = setting(6.0, "Semi-axis along x.", unit="m", gt=0.0)
    b: float = setting(4.0, "Semi-axis along y.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self.a * self.b / np.hypot(self.b * np.cos(angle), self.a * np.sin(angle)))


@dataclass(frozen=True)
class Flower(_Smooth, Settings):
    r"""Flower with `frequency` petals, :math:`m + a\cos(nφ)`."""

    frequency: int = setting(5, "Number of petals.", ge=1)
    amplitude: float = setting(1.0, "Deviation from the mean radius.", unit="m", ge=0.0)
    mean: float = setting(5.0, "Mean radius.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self.mean + self.amplitude * np.cos(self.frequency * np.asarray(angle, dtype=float)))


@dataclass(frozen=True)
class Square(Settings):
    r"""Axis-parallel square, :math:`(w/2)/\sin ψ` with :math:`ψ = (φ - π/4 \bmod π/2) + π/4`."""

    width: float = setting(8.0, "Side length.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        psi = np.mod(np.asarray(angle, dtype=float) - np.pi / 4, np.pi / 2) + np.pi / 4
        return np.asarray(0.5 * self.width / np.sin(psi))

    def corners(self) -> FloatArray:
        """Polar angles of the four corners."""
        return np.pi / 4 + np.pi / 2 * np.arange(4)


@dataclass(frozen=True)
class Polygon:
    """Straight edges between vertices given by their polar angles, radians, rising, and radii, metres.

    The vertices must be suitable (see :func:`check_contour`): strictly rising angles in [0, 2π) with gaps below π.
    """

    angles: tuple[float, ...]
    radii: tuple[float, ...]
    _closed: tuple[FloatArray, FloatArray] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        angles, radii = np.asarray(self.angles, dtype=float), np.asarray(self.radii, dtype=float)
        closed = (
            np.concatenate([[angles[-1] - TWO_PI], angles, [angles[0] + TWO_PI]]),
            np.concatenate([radii[-1:], radii, radii[:1]]),
        )
        object.__setattr__(self, "_closed", closed)

    @classmethod
    def equally_spaced(cls, radii: tuple[float, ...]) -> Polygon:
        """Build the polygon whose vertices are at equally spaced angles from φ = 0."""
        return cls(tuple(np.arange(len(radii)) * TWO_PI / len(radii)), radii)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`.

        The edge from `(φ₁, r₁)` to `(φ₂, r₂)` is `r₁ r₂ sin(φ₂−φ₁) / (r₁ sin(φ−φ₁) + r₂ sin(φ₂−φ))`.
        """
        phi = wrap_angle(angle)
        angles, radii = self._closed
        edge = np.clip(np.searchsorted(angles, phi, side="right") - 1, 0, len(angles) - 2)
        first, second, r1, r2 = angles[edge], angles[edge + 1], radii[edge], radii[edge + 1]
        height = r1 * r2 * np.sin(second - first)
        return np.asarray(height / (r1 * np.sin(phi - first) + r2 * np.sin(second - phi)))

    def corners(self) -> FloatArray:
        """Polar angles of the vertices."""
        return np.asarray(self.angles, dtype=float)


@dataclass(frozen=True)
class Spline(_Smooth):
    """Closed cubic spline of the radius, metres, through points at polar angles strictly rising in [0, 2π), radians."""

    angles: tuple[float, ...]
    radii: tuple[float, ...]
    _curve: CubicSpline = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        angles, radii = np.asarray(self.angles, dtype=float), np.asarray(self.radii, dtype=float)
        closed_angles = np.concatenate([angles, [angles[0] + TWO_PI]])
        closed_radii = np.concatenate([radii, radii[:1]])
        object.__setattr__(self, "_curve", CubicSpline(closed_angles, closed_radii, bc_type="periodic"))

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self._curve(wrap_angle(np.asarray(angle) - self.angles[0]) + self.angles[0]))


_LARGEST = 10**7  # bytes: a quarter of a million points
_COLUMNS: dict[tuple[str, ...], bool] = {("x", "y"): False, ("phi", "r"): True}


def load_contour(path: str | Path) -> tuple[FloatArray, FloatArray]:
    """Read a closed contour from a CSV file with a header `x,y` (metres) or `phi,r` (radians, metres).

    Further columns and lines that begin with # are left out. The points follow the contour in either direction; a last
    point equal to the first is left out. Returned are strictly rising polar angles in [0, 2π) and radii, shape (n,).

    Raises:
        ContourError: the file cannot be read, or the contour is not star-shaped around the origin; the message
            names the file and the line.
    """
    name = str(path)
    lines, first, second, polar = _read_table(Path(path))
    if polar and np.ptp(first) > TWO_PI + 1e-6:
        found = f"the polar angles span {np.ptp(first):g}, more than 2 pi, one turn around the origin"
        raise ContourError(f"{name}: {found}: they look like degrees, must be radians (degrees times pi / 180)")
    angle, radius = (wrap_angle(first), second) if polar else cartesian_to_polar(first, second)
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
        reader = csv.reader(io.StringIO(read_regular(path, _LARGEST).decode("utf-8-sig"), newline=""))
        told = ((reader.line_num, row) for row in reader if not (row and row[0].startswith("#")))
        header = tuple(cell.strip() for cell in next(told, (0, []))[1])
        rows = [(line, row) for line, row in told if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ContourError(f"cannot read contour file {path}: {reason(error)}") from error
    if header[:2] not in _COLUMNS:
        found, known = ",".join(header), "'x,y' (metres) or 'phi,r' (radians, metres)"
        raise ContourError(f"{path}: first line is {found!r}, must be the header {known}")
    numbers = []
    for line, row in rows:
        try:
            if len(row) != len(header):
                raise ValueError
            first, second = (float(cell) for cell in row[:2])
        except ValueError as error:
            raise ContourError(f"{path} line {line}: needs two numbers, found {','.join(row)!r}") from error
        if not (np.isfinite(first) and np.isfinite(second)):
            raise ContourError(f"{path} line {line}: {first}, {second} must be finite")
        numbers.append((first, second))
    if len(numbers) < 3:
        raise ContourError(f"{path}: has {len(numbers)} points, needs at least 3")
    table = np.array(numbers)
    return [line for line, _ in rows], table[:, 0], table[:, 1], _COLUMNS[header[:2]]


def _rising(name: str, lines: list[int], angle: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Order the points by rising angle, or report where the contour turns back."""
    turn = angle_difference(np.roll(angle, -1), angle)
    if turn.sum() < 0.0:
        lines, angle, radius = lines[::-1], angle[::-1], radius[::-1]
        turn = angle_difference(np.roll(angle, -1), angle)
    if np.isclose(turn.sum(), 0.0):
        points = radius * np.exp(1j * angle)
        after = np.roll(points, -1)
        double = (points.conj() * after).imag  # twice the area between an edge and the origin
        centre = ((points + after) * double).sum() / (3.0 * double.sum()) if double.sum() else points.mean()
        where = f"x = {centre.real:.6g}, y = {centre.imag:.6g}"
        raise ContourError(f"{name}: the origin lies outside the contour; subtract its centroid, {where}")
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


_CHECKED = 7200  # angles


def check_contour(shape: PolarObject, radius_min: float, radius_max: float, name: str) -> None:
    """Check that a shape stays finite and inside the radius bounds.

    Raises:
        ContourError: names the first angle at which it does not, and its own bounds.
    """
    slack = 1e-9 * radius_max
    outside = first_outside(shape, radius_min - slack, radius_max + slack)
    if outside is not None:
        angle, radius = outside
        raise ContourError(
            f"object {name}: radius {radius:.4g} m at {angle:.4f} rad; "
            f"must be within [{radius_min:g}, {radius_max:g}] m (radius_min, radius_max). {_extent(shape)}"
        )


def _extent(shape: PolarObject) -> str:
    """The least and the greatest radius of a shape in words, and what to do if they do not fit."""
    radius = shape.radius(angles_around(shape, _CHECKED))
    low, high = float(radius.min()), float(radius.max())
    return f"It reaches from {low:.4g} to {high:.4g} m: change radius_max, or give the unit of a file (unit=mm)"


def first_outside(shape: PolarObject, low: float, high: float) -> tuple[float, float] | None:
    """First of 7200 angles and the corners at which the radius is not within [low, high], and the radius there."""
    angle = angles_around(shape, _CHECKED)
    radius = shape.radius(angle)
    bad = np.flatnonzero(~((radius >= low) & (radius <= high)))
    return (float(angle[bad[0]]), float(radius[bad[0]])) if len(bad) else None


def angles_around(shape: PolarObject, steps: int) -> FloatArray:
    """So many equally spaced polar angles and the corners, rising, radians."""
    return np.union1d(np.arange(steps) * (TWO_PI / steps), shape.corners())
