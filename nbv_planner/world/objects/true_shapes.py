"""True object shapes: 2π-periodic polar functions `f(φ)` in metres (thesis appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from nbv_planner.errors import ContourError
from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.settings import Settings, setting


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
    r"""Ellipse with semi-axes `a` (along x) and `b` (along y),
    :math:`ab / \sqrt{(b\cos φ)^2 + (a\sin φ)^2}`.
    """

    a: float = setting(6.0, "Semi-axis along x.", unit="m", gt=0.0)
    b: float = setting(4.0, "Semi-axis along y.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return self.a * self.b / np.hypot(self.b * np.cos(angle), self.a * np.sin(angle))


@dataclass(frozen=True)
class Flower(_Smooth, Settings):
    r"""Flower with `frequency` petals, :math:`m + a\cos(nφ)`."""

    frequency: int = setting(5, "Number of petals.", ge=1, le=1000)
    amplitude: float = setting(1.0, "Deviation from the mean radius.", unit="m", ge=0.0)
    mean: float = setting(5.0, "Mean radius.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(
            self.mean + self.amplitude * np.cos(self.frequency * np.asarray(angle, dtype=float))
        )


@dataclass(frozen=True)
class Square(Settings):
    r"""Axis-parallel square, :math:`(w/2)/\sin ψ` with :math:`ψ = (φ - π/4 \bmod π/2) + π/4`."""

    width: float = setting(8.0, "Side length.", unit="m", gt=0.0)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        psi = np.mod(np.asarray(angle, dtype=float) - np.pi / 4, np.pi / 2) + np.pi / 4
        return 0.5 * self.width / np.sin(psi)

    def corners(self) -> FloatArray:
        """Polar angles of the four corners."""
        return np.pi / 4 + np.pi / 2 * np.arange(4)


@dataclass(frozen=True)
class Polygon:
    """Straight edges between vertices given by their polar angles, radians, rising, and radii,
    metres.

    The vertices must be suitable (see :func:`check_contour`): strictly rising angles in [0, 2π)
    with gaps below π.
    """

    angles: tuple[float, ...]
    radii: tuple[float, ...]

    @cached_property
    def _closed(self) -> tuple[FloatArray, FloatArray]:
        """Angles and radii of the vertices, with the last one before them and the first behind."""
        angles, radii = self.angles, self.radii
        closed = (angles[-1] - TWO_PI, *angles, angles[0] + TWO_PI)
        return np.array(closed), np.array((radii[-1], *radii, radii[0]))

    @classmethod
    def equally_spaced(cls, radii: tuple[float, ...]) -> Polygon:
        """Build the polygon whose vertices are at equally spaced angles from φ = 0."""
        return cls(tuple(np.arange(len(radii)) * TWO_PI / len(radii)), radii)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`.

        The edge from `(φ₁, r₁)` to `(φ₂, r₂)` is
        `r₁ r₂ sin(φ₂−φ₁) / (r₁ sin(φ−φ₁) + r₂ sin(φ₂−φ))`.
        """
        phi = wrap_angle(angle)
        angles, radii = self._closed
        edge = np.clip(np.searchsorted(angles, phi, side="right") - 1, 0, len(angles) - 2)
        first = angles[edge]
        second = angles[edge + 1]
        r1 = radii[edge]
        r2 = radii[edge + 1]
        height = r1 * r2 * np.sin(second - first)
        return height / (r1 * np.sin(phi - first) + r2 * np.sin(second - phi))

    def corners(self) -> FloatArray:
        """Polar angles of the vertices."""
        return np.asarray(self.angles, dtype=float)


@dataclass(frozen=True)
class Spline(_Smooth):
    """Closed cubic spline of the radius, metres, through points at polar angles strictly rising in
    [0, 2π), radians.
    """

    angles: tuple[float, ...]
    radii: tuple[float, ...]

    @cached_property
    def _curve(self) -> CubicSpline:
        closed = (*self.angles, self.angles[0] + TWO_PI)
        return CubicSpline(closed, (*self.radii, self.radii[0]), bc_type="periodic")

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(
            self._curve(wrap_angle(np.asarray(angle) - self.angles[0]) + self.angles[0])
        )


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
            f"must be within [{radius_min:g}, {radius_max:g}] m (radius_min, radius_max). "
            f"{_advice(shape, radius_min, radius_max, name)}"
        )


# Spare part of a bound that is proposed, so that its four digits still hold the shape.
_SPARE = 1e-3


def _advice(shape: PolarObject, radius_min: float, radius_max: float, name: str) -> str:
    """The least and the greatest radius of a shape in words, and what to do if they do not fit."""
    radius = shape.radius(angles_around(shape, _CHECKED))
    low, high = float(radius.min()), float(radius.max())
    remedies = []
    if low < radius_min:
        remedies.append(
            f"set radius_min to {low * (1.0 - _SPARE):.4g}"
            if low > 0.0
            else "it must not reach its centre"
        )
    if high > radius_max:
        remedies.append(f"set radius_max to {high * (1.0 + _SPARE):.4g}")
    says = " and ".join(remedies)
    if name.startswith(("file:", "spline:")):
        says += ", or give the unit of the file (unit=mm)"
        if low < radius_min and ",origin=" not in name:
            says += ", or another origin (origin=auto)"
    return f"It reaches from {low:.4g} to {high:.4g} m" + (f": {says}" if says else "")


def first_outside(shape: PolarObject, low: float, high: float) -> tuple[float, float] | None:
    """First of 7200 angles and the corners at which the radius is not within [low, high], and the
    radius there.
    """
    angle = angles_around(shape, _CHECKED)
    radius = shape.radius(angle)
    bad = np.flatnonzero(~((radius >= low) & (radius <= high)))
    return (float(angle[bad[0]]), float(radius[bad[0]])) if len(bad) else None


def angles_around(shape: PolarObject, steps: int) -> FloatArray:
    """So many equally spaced polar angles and the corners, rising, radians."""
    return np.union1d(np.arange(steps) * (TWO_PI / steps), shape.corners())
