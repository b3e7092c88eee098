"""Families with corners: polygons."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, cartesian_to_polar, wrap_angle
from nbv_planner.objects.families.dice import Dice
from nbv_planner.objects.shapes import Polygon

# Between vertices on a circle: the edge stays within 1 % of the radius, r (1 - cos 0.125).
_ARC_STEP = 0.25


def rectangle(dice: Dice, low: float, high: float) -> Polygon:
    """Rectangle, turned, its centre off the origin."""
    a = dice.between(0.4 * high, high)
    b = dice.between(1.05 * low, a)
    x0, y0 = dice.between(-0.7, 0.7) * (a - low), dice.between(-0.7, 0.7) * (b - low)
    angle, radius = cartesian_to_polar(x0 + a * np.array([1, -1, -1, 1]), y0 + b * np.array([1, 1, -1, -1]))
    return _polygon(angle + dice.angle(), radius)


def regular(dice: Dice, low: float, high: float) -> Polygon:
    """Regular polygon with 3 to 10 vertices, turned."""
    count = dice.whole(3, 10)
    radius = dice.between(1.1 * low, high)
    return _polygon(np.arange(count) * (TWO_PI / count) + dice.angle(), np.full(count, radius))


def irregular(dice: Dice, low: float, high: float) -> Polygon:
    """Polygon with 4 to 12 vertices anywhere between the bounds, one in each of as many equal sectors."""
    count = dice.whole(4, 12)
    angle = (np.arange(count) + dice.uniforms(count, 0.1, 0.9)) * (TWO_PI / count)
    return _polygon(angle + dice.angle(), dice.uniforms(count, low, high))


def notches(dice: Dice, low: float, high: float) -> Polygon:
    """Round body with 2 to 6 notches or teeth, all of one kind: a step in radius with steep flanks, one per sector."""
    inner = dice.between(low, 0.6 * high)
    outer = dice.between(inner + 0.15 * (high - low), high)
    body, step = (outer, inner) if dice.between(0.0, 1.0) < 0.5 else (inner, outer)
    count = dice.whole(2, 6)
    sector = TWO_PI / count
    middle = (np.arange(count) + dice.uniforms(count, 0.35, 0.65)) * sector
    width = dice.uniforms(count, 0.075, 0.3) * sector
    flank = np.minimum(dice.uniforms(count, 0.02, 0.08), 0.8 * width)
    corners = np.column_stack([middle - width, middle - width + flank, middle + width - flank, middle + width])
    return _polygon(*_with_arcs(corners.ravel() + dice.angle(), np.tile([body, step, step, body], count)))


def _with_arcs(angle: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put vertices on a circle between neighbours of equal radius; the first follows the last."""
    angles, radii = [angle], [radius]
    gap = np.append(angle[1:], angle[0] + TWO_PI) - angle
    for index in np.flatnonzero(radius == np.roll(radius, -1)):
        inner = angle[index] + np.linspace(0.0, gap[index], 1 + math.ceil(gap[index] / _ARC_STEP))[1:-1]
        angles.append(inner)
        radii.append(np.full(len(inner), radius[index]))
    return np.concatenate(angles), np.concatenate(radii)


def _polygon(angle: FloatArray, radius: FloatArray) -> Polygon:
    """Polygon from vertices in any order."""
    turned = wrap_angle(angle)
    order = np.argsort(turned)
    return Polygon(tuple(turned[order].tolist()), tuple(radius[order].tolist()))
