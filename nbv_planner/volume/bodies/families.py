"""Solids by formulas: signed functions, negative inside, unions and differences of them, as meshes.

Lengths are in units of the greatest radius, so that each fits into the ball of an object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.errors import UnknownNameError
from nbv_planner.geometry import FloatArray
from nbv_planner.volume.bodies.mesh import Mesh, level_set
from nbv_planner.world.objects.text import parameters_in

Function = Callable[[FloatArray], FloatArray]
"""Signed, at points of shape (n, 3): shape (n,)."""

# Values along an axis of the lattice, and how far it reaches.
_COUNT, _REACH = 72, 1.08
# Bumps of a random solid, and how wide they are, radians.
_BUMPS, _WIDE = 24, (0.35, 0.9)


def box(x: float, y: float, z: float, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Function:
    """A box of these half sides about a point."""

    def distance(points: FloatArray) -> FloatArray:
        off = np.abs(points - at) - (x, y, z)
        return np.asarray(
            np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)
        )

    return distance


def cylinder(radius: float, low: float, high: float) -> Function:
    """An upright cylinder about the axis z, between two heights."""

    def distance(points: FloatArray) -> FloatArray:
        aside = np.hypot(points[:, 0], points[:, 1]) - radius
        off = np.abs(points[:, 2] - 0.5 * (low + high)) - 0.5 * (high - low)
        outside = np.hypot(np.maximum(aside, 0.0), np.maximum(off, 0.0))
        return np.asarray(outside + np.minimum(np.maximum(aside, off), 0.0))

    return distance


def ring(
    radius: float, thick: float, at: tuple[float, float, float] = (0.0, 0.0, 0.0), axis: int = 2
) -> Function:
    """A torus about an axis through a point."""

    def distance(points: FloatArray) -> FloatArray:
        local = points - at
        flat = np.delete(local, axis, axis=1)
        return np.asarray(np.hypot(np.hypot(*flat.T) - radius, local[:, axis]) - thick)

    return distance


def union(*parts: Function) -> Function:
    """What is inside of any part."""
    return lambda points: np.min([part(points) for part in parts], axis=0)


def without(whole: Function, *parts: Function) -> Function:
    """What is inside of the whole and of no part."""
    return lambda points: np.max([whole(points), *(-part(points) for part in parts)], axis=0)


def superquadric(x: float, y: float, z: float, e1: float, e2: float) -> Function:
    """:math:`((x/a)^{2/e_2} + (y/b)^{2/e_2})^{e_2/e_1} + (z/c)^{2/e_1} = 1` (Barr 1981)."""

    def level(points: FloatArray) -> FloatArray:
        across, along, up = np.abs(points / (x, y, z)).T + 1e-9
        flat = (across ** (2.0 / e2) + along ** (2.0 / e2)) ** (e2 / e1)
        return np.asarray(min(x, y, z) * ((flat + up ** (2.0 / e1)) ** (0.5 * e1) - 1.0))

    return level


def star_shaped(seed: int) -> Function:
    """A radius over the directions with bumps and dents at random, between 0.35 and 0.95."""
    rng = np.random.default_rng(seed)
    towards = rng.standard_normal((_BUMPS, 3))
    towards /= np.linalg.norm(towards, axis=1)[:, None]
    height, width = rng.standard_normal(_BUMPS), rng.uniform(*_WIDE, size=_BUMPS)

    def bumps(points: FloatArray) -> FloatArray:
        away = np.maximum(np.linalg.norm(points, axis=1), 1e-9)
        angle = np.arccos(np.clip(points @ towards.T / away[:, None], -1.0, 1.0))
        return np.asarray(np.exp(-0.5 * (angle / width) ** 2) @ height)

    def level(points: FloatArray) -> FloatArray:
        radius = 0.65 + 0.3 * np.tanh(bumps(points))
        return np.asarray(np.linalg.norm(points, axis=1) - radius)

    return level


def _mug() -> Function:
    cup = without(cylinder(0.5, -0.65, 0.65), cylinder(0.4, -0.53, 0.8))
    handle = without(ring(0.3, 0.08, (0.55, 0.0, 0.0), axis=1), cylinder(0.45, -0.6, 0.6))
    return union(cup, handle)


def _table() -> Function:
    legs = [box(0.07, 0.07, 0.45, (x, y, -0.15)) for x in (-0.55, 0.55) for y in (-0.4, 0.4)]
    return union(box(0.65, 0.5, 0.07, (0.0, 0.0, 0.35)), *legs)


def _chair() -> Function:
    legs = [box(0.06, 0.06, 0.35, (x, y, -0.4)) for x in (-0.35, 0.35) for y in (-0.35, 0.35)]
    seat, back = box(0.42, 0.42, 0.06, (0.0, 0.0, -0.05)), box(0.06, 0.42, 0.4, (-0.36, 0.0, 0.35))
    return union(seat, back, *legs)


def _bracket() -> Function:
    plate = box(0.6, 0.4, 0.08, (0.0, 0.0, -0.4))
    wall = box(0.08, 0.4, 0.5, (-0.52, 0.0, 0.1))
    hole = box(0.15, 0.15, 0.3, (0.2, 0.0, -0.4))
    return without(union(plate, wall), hole)


_FAMILIES: dict[str, tuple[Callable[..., Function], dict[str, Any]]] = {
    "ball": (lambda: superquadric(0.8, 0.8, 0.8, 1.0, 1.0), {}),
    "box": (box, {"x": 0.5, "y": 0.4, "z": 0.3}),
    "bracket": (_bracket, {}),
    "chair": (_chair, {}),
    "cylinder": (
        lambda radius, height: cylinder(radius, -0.5 * height, 0.5 * height),
        {"radius": 0.5, "height": 1.2},
    ),
    "mug": (_mug, {}),
    "star": (star_shaped, {"seed": 0}),
    "superquadric": (superquadric, {"x": 0.7, "y": 0.5, "z": 0.5, "e1": 0.4, "e2": 0.4}),
    "table": (_table, {}),
    "torus": (ring, {"radius": 0.65, "thick": 0.25}),
    "two_boxes": (
        lambda gap: union(
            box(0.25, 0.4, 0.4, (-0.25 - 0.5 * gap, 0.0, 0.0)),
            box(0.25, 0.4, 0.4, (0.25 + 0.5 * gap, 0.0, 0.0)),
        ),
        {"gap": 0.3},
    ),
}
SOLIDS = tuple(_FAMILIES)
"""Names of the families of solids."""


def function_named(text: str) -> Function:
    """The function that `text`, `family` or `family:name=value,...`, describes, in units of the
    greatest radius.

    Raises:
        UnknownNameError: lists the families.
        SettingError: a parameter is not known, given twice or no number.
    """
    family, _, rest = text.partition(":")
    if family not in _FAMILIES:
        raise UnknownNameError("solid", family, _FAMILIES)
    build, usual = _FAMILIES[family]
    kinds = {name: type(value) for name, value in usual.items()}
    return build(**{**usual, **parameters_in(kinds, rest, text)})


@lru_cache(maxsize=4)  # planners and seeds of a sweep look at the same ones
def solid_named(text: str, radius: float) -> Mesh:
    """The mesh of such a solid in a ball of this `radius`, metres.

    Raises:
        UnknownNameError, SettingError: see :func:`function_named`.
        ContourError: nothing is inside.
    """
    function = function_named(text)
    step = 2.0 * _REACH / _COUNT
    axis = (np.arange(_COUNT) + 0.5) * step - _REACH
    places = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    values = function(places.reshape(-1, 3)).reshape(places.shape[:3])
    return level_set(values, axis[:1].repeat(3), step).moved(np.zeros(3), radius)
