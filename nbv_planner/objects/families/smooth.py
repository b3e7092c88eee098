"""Families without corners: a formula at 2048 angles, a closed cubic spline in between (off by less than 1e-5 m)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.gp.prior_draw import prior_series
from nbv_planner.objects.families.dice import Dice
from nbv_planner.objects.shapes import Spline

_SIZE = 2048
ANGLES: FloatArray = np.arange(_SIZE) * (TWO_PI / _SIZE)
"""Angles of the samples, radians."""


def ellipse(dice: Dice, low: float, high: float) -> Spline:
    r"""Ellipse with axes turned and its centre c off the origin.

    With A scaling the axes to 1, the radius along the unit vector u solves :math:`|A(ru - c)| = 1`.
    """
    a = dice.between(0.5 * high, high)
    b = dice.between(1.1 * low, a)
    turned = ANGLES - dice.angle()
    x, y = 0.7 * dice.uniforms(2, -1.0, 1.0) * (1.0 - low / np.array([a, b]))
    p, q = np.cos(turned) / a, np.sin(turned) / b
    along, square = p * x + q * y, p**2 + q**2
    return _spline((along + np.sqrt(along**2 + square * (1.0 - x**2 - y**2))) / square)


def flower(dice: Dice, low: float, high: float) -> Spline:
    r"""Flower with its petals turned, :math:`m + a\cos(n(φ - φ_0))`."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    petals = dice.whole(2, 9)
    mean, amplitude = middle + dice.between(-0.3, 0.3) * half, dice.between(0.2, 0.9) * half
    return _spline(mean + amplitude * np.cos(petals * (ANGLES - dice.angle())))


def superellipse(dice: Dice, low: float, high: float) -> Spline:
    r"""Rectangle with round corners, turned: :math:`(|\cos φ/a|^p + |\sin φ/b|^p)^{-1/p}`."""
    a = dice.between(0.4 * high, high)
    b = dice.between(1.05 * low, a)
    power, turned = dice.between(2.5, 6.0), ANGLES - dice.angle()
    total = np.abs(np.cos(turned) / a) ** power + np.abs(np.sin(turned) / b) ** power
    return _spline(total ** (-1.0 / power))


def fourier(dice: Dice, low: float, high: float) -> Spline:
    r"""Series :math:`\sum_{k=1}^{10} k^{-s}(g_k\cos kφ + h_k\sin kφ)` with normal g, h, scaled to a depth."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    k = np.arange(1, 11)
    weight = dice.normals(2, 10) * k ** -dice.between(0.5, 1.5)
    series = weight[0] @ np.cos(np.outer(k, ANGLES)) + weight[1] @ np.sin(np.outer(k, ANGLES))
    return _spline(middle + dice.between(0.3, 0.97) * half * series / np.abs(series).max())


def bumps(dice: Dice, low: float, high: float) -> Spline:
    r"""Circle with 2 to 8 round bumps and dents :math:`a\exp(κ(\cos(φ - φ_i) - 1))`, 0.1 to 0.5 rad wide."""
    half = 0.5 * (high - low)
    radius = np.full(_SIZE, dice.between(low + 0.4 * half, high - 0.4 * half))
    for _ in range(dice.whole(2, 8)):
        height, width = dice.between(-1.0, 1.0) * half, dice.between(0.1, 0.5)
        radius += height * np.exp((np.cos(ANGLES - dice.angle()) - 1.0) / width**2)
    return _spline(radius)


def gp(dice: Dice, low: float, high: float) -> Spline:
    """Sample of a Gaussian process about the middle of the bounds, its hyper-parameters drawn as well."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    smoothness = ("3/2", "5/2", "7/2")[dice.whole(0, 2)]
    kernel = PeriodicMatern(smoothness, dice.between(0.12, 0.6), dice.between(0.15, 0.5) * half)
    return _spline(middle + prior_series(kernel, dice.normals(2, 1, _SIZE // 2))[0])


def _spline(radius: FloatArray) -> Spline:
    return Spline(tuple(ANGLES.tolist()), tuple(radius.tolist()))
