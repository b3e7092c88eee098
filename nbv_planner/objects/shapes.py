r"""True object shapes: 2π-periodic polar functions `f(φ)` in metres (thesis appendix B.2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.settings import check_settings, setting


class PolarObject(Protocol):
    """A closed curve around the origin, given by its radius at every polar angle."""

    def __hash__(self) -> int:
        """Hash of its values: what has been computed for a shape can be kept."""
        ...

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius `f(φ)` in metres at polar `angle` in radians (any real number)."""
        ...

    def corners(self) -> FloatArray:
        """Polar angles in [0, 2π) at which the curve has a corner, rising, radians."""
        ...


@dataclass(frozen=True)
class Ellipse:
    r"""Ellipse with semi-axes `a` (along x) and `b` (along y), :math:`ab / \sqrt{(b\cos φ)^2 + (a\sin φ)^2}`."""

    a: float = setting(6.0, "Semi-axis along x.", unit="m", gt=0.0)
    b: float = setting(4.0, "Semi-axis along y.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self.a * self.b / np.hypot(self.b * np.cos(angle), self.a * np.sin(angle)))

    def corners(self) -> FloatArray:
        """No corner."""
        return np.empty(0)


@dataclass(frozen=True)
class Flower:
    r"""Flower with `frequency` petals, :math:`m + a\cos(nφ)`."""

    frequency: int = setting(5, "Number of petals.", ge=1)
    amplitude: float = setting(1.0, "Deviation from the mean radius.", unit="m", ge=0.0)
    mean: float = setting(5.0, "Mean radius.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self.mean + self.amplitude * np.cos(self.frequency * np.asarray(angle, dtype=float)))

    def corners(self) -> FloatArray:
        """No corner."""
        return np.empty(0)


@dataclass(frozen=True)
class Square:
    r"""Axis-parallel square, :math:`(w/2)/\sin ψ` with :math:`ψ = (φ - π/4 \bmod π/2) + π/4`."""

    width: float = setting(8.0, "Side length.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        psi = np.mod(np.asarray(angle, dtype=float) - np.pi / 4, np.pi / 2) + np.pi / 4
        return np.asarray(0.5 * self.width / np.sin(psi))

    def corners(self) -> FloatArray:
        """Polar angles of the four corners."""
        return np.pi / 4 + np.pi / 2 * np.arange(4)


@dataclass(frozen=True)
class Polygon:
    """Straight edges between vertices given in polar coordinates, rising in angle.

    The vertices must be fit for it (see :func:`nbv_planner.objects.contour.check_contour`): strictly rising angles
    in [0, 2π) with gaps below π.

    Attributes:
        angles: polar angles of the vertices, radians.
        radii: radii of the vertices, metres.
    """

    angles: tuple[float, ...]
    radii: tuple[float, ...]
    _closed: tuple[FloatArray, FloatArray] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Close the polygon once."""
        angles, radii = np.asarray(self.angles, dtype=float), np.asarray(self.radii, dtype=float)
        closed = (
            np.concatenate([[angles[-1] - TWO_PI], angles, [angles[0] + TWO_PI]]),
            np.concatenate([radii[-1:], radii, radii[:1]]),
        )
        object.__setattr__(self, "_closed", closed)

    @classmethod
    def equally_spaced(cls, radii: tuple[float, ...]) -> Polygon:
        """Build the polygon whose vertices stand at equally spaced angles from φ = 0."""
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
class Spline:
    """Closed cubic spline of the radius through points given in polar coordinates, rising in angle.

    Attributes:
        angles: polar angles of the points, radians, strictly rising in [0, 2π).
        radii: radii of the points, metres.
    """

    angles: tuple[float, ...]
    radii: tuple[float, ...]
    _curve: CubicSpline = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Fit the spline once."""
        angles, radii = np.asarray(self.angles, dtype=float), np.asarray(self.radii, dtype=float)
        closed_angles = np.concatenate([angles, [angles[0] + TWO_PI]])
        closed_radii = np.concatenate([radii, radii[:1]])
        object.__setattr__(self, "_curve", CubicSpline(closed_angles, closed_radii, bc_type="periodic"))

    def radius(self, angle: ArrayLike) -> FloatArray:
        """Radius in metres at polar `angle`."""
        return np.asarray(self._curve(wrap_angle(np.asarray(angle) - self.angles[0]) + self.angles[0]))

    def corners(self) -> FloatArray:
        """No corner."""
        return np.empty(0)
