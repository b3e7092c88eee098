"""An outline that is known before the first measurement, as a prior: a drawing, the last visit, the
neighbouring cut.

It says where the surface should be, how far it may be from there, and how well its place is known.
Whether the object is like it at all is left to the measurements, see
:mod:`nbv_planner.known.outline_fit`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.geometry import ORIGIN, TWO_PI, FloatArray, Point, polar_points, wrap_angle

DIRECTIONS = 720
"""Angles at which the radius of a known outline is kept."""
# Slopes r'/r above this count as this: beyond, a deviation along the normal tells no radius.
_STEEPEST = 3.0
# Part of the largest radius to which those in a message are rounded, at most.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class KnownOutline:
    r"""The radius :math:`r_0(φ)` about a point of its own, and how far it can be trusted.

    Displaced by :math:`β = (Δx, Δy, Δθ)`, turned about that point first, it is a curve
    :math:`c(β, φ)` about the :attr:`centre`. To first order, where both are the same,

    .. math::
        c(β, φ) = r_0 + Δx (\cos φ + q \sin φ) + Δy (\sin φ - q \cos φ) - Δθ\, r_0', \quad
        q = r_0' / r_0
    """

    #: :math:`r_0` at 720 polar angles from 0 on, equally spaced, shape (720,), metres.
    radius: FloatArray
    std: float  #: standard deviation of the object's distance from it along the normal, metres.
    place_std: tuple[float, float]  #: standard deviation of Δx and Δy, metres, and of Δθ, radians.
    origin: Point = ORIGIN  #: the point of its own, in the object frame, metres.
    centre: Point = ORIGIN  #: about which radii are asked for, likewise.

    def about(self, x: float, y: float) -> KnownOutline:
        """The same for radii about (x, y) of the object frame, metres."""
        return self if (x, y) == self.centre else dataclasses.replace(self, centre=(x, y))

    def moved(self, x: float, y: float) -> KnownOutline:
        """The same displaced by so much, metres."""
        return dataclasses.replace(self, origin=(self.origin[0] + x, self.origin[1] + y))

    @property
    def place_variance(self) -> FloatArray:
        """Variance of the displacement β before the first measurement, shape (3,)."""
        along, turn = self.place_std
        return np.array([along, along, turn]) ** 2

    def curve(self, place: FloatArray, angle: FloatArray) -> FloatArray:
        """Radius of the displaced outline at each polar `angle` (n,), radians, for the displacement
        `place`, shape (3,); shape (n,), metres.

        Where it turns back as seen from the centre, one of its radii counts; NaN if the centre is
        outside.
        """
        corner = self.radius * np.exp(1j * (TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)))
        corner *= np.exp(1j * place[2])
        corner += complex(*place[:2]) + complex(*self.origin) - complex(*self.centre)
        bearing = np.angle(np.append(corner, corner[0]))
        step = np.diff(bearing)
        turn = np.append(0.0, np.cumsum(step - TWO_PI * np.rint(step / TWO_PI)))
        if not math.isclose(turn[-1], TWO_PI, rel_tol=1e-6):
            return np.full(len(angle), np.nan)
        turn = np.maximum.accumulate(turn)
        radius = np.abs(np.append(corner, corner[0]))
        return np.asarray(np.interp(wrap_angle(angle - bearing[0]), turn, radius))

    def about_place(
        self, place: FloatArray, angle: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""The :meth:`curve` c (n,), the radial deviation per deviation along its normal,
        :math:`\sqrt{1 + q^2}`, (n,), and the derivative of c by the displacement, (n, 3).

        A point of the curve that moves by δ changes the radius by :math:`δ_r - q δ_φ`, with
        :math:`q = c'/c`.
        """
        half = TWO_PI / DIRECTIONS
        near = np.concatenate([angle, angle + half, angle - half])
        here, after, before = self.curve(place, near).reshape(3, -1)
        slope = np.clip((after - before) / (2.0 * half * here), -_STEEPEST, _STEEPEST)
        cos, sin = np.cos(angle), np.sin(angle)
        pivot = place[:2] + self.origin - np.array(self.centre)
        moves = ((1.0, 0.0), (0.0, 1.0), (pivot[1] - here * sin, here * cos - pivot[0]))
        columns = [x * (cos + slope * sin) + y * (sin - slope * cos) for x, y in moves]
        return here, np.sqrt(1.0 + slope**2), np.stack(columns, axis=1)

    @property
    def loops(self) -> tuple[FloatArray]:
        """Its corners where it is placed, shape (720, 2), in the object frame, metres."""
        angle = TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)
        return (polar_points(angle, self.radius) + self.origin,)

    @property
    def plain(self) -> dict[str, Any]:
        """Plain values for a message, see :func:`known_outline`: radii as whole numbers of a
        small unit.
        """
        unit = 2.0 ** math.floor(math.log2(_ROUNDING * self.radius.max()))
        return {
            **plain_stds(self),
            "origin": list(map(float, self.origin)),
            "unit": unit,
            "radius": " ".join(f"{round(one)}" for one in self.radius / unit),
        }

    def as_transmitted(self) -> KnownOutline:
        """As a message carries it, with its rounding."""
        return known_outline(self.plain).about(*self.centre)


def plain_stds(known: Any) -> dict[str, Any]:
    """Deviations of what is known, and of its place, as plain values; :func:`stds_in` is the
    inverse.
    """
    return {"std": float(known.std), "place_std": list(map(float, known.place_std))}


Stds = tuple[float, tuple[float, float]]


def stds_in(content: dict[str, Any]) -> Stds:
    """Deviations of what is known, and of its place.

    Raises:
        ValueError: one is not valid.
    """
    std, along, turn = map(float, [content["std"], *content["place_std"]])
    if not all(0.0 < one < math.inf for one in (std, along, turn)):
        raise ValueError("prior_outline: deviations must be finite and > 0")
    return std, (along, turn)


def known_outline(content: dict[str, Any]) -> KnownOutline:
    """Read what :attr:`KnownOutline.plain` gave.

    Raises:
        ValueError: a value is not valid.
    """
    radius = float(content["unit"]) * np.array(str(content["radius"]).split(), dtype=float)
    x, y = map(float, content["origin"])
    if radius.shape != (DIRECTIONS,):
        raise ValueError(f"prior_outline: has {len(radius)} radii, must be {DIRECTIONS}")
    if not (np.isfinite([*radius, x, y]).all() and (radius > 0.0).all()):
        raise ValueError("prior_outline: radii must be finite and > 0")
    return KnownOutline(radius, *stds_in(content), (x, y))
