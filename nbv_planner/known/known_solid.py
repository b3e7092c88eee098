r"""Outlines of any form that are known beforehand: their signed distance, and where they lie.

What is known is the mean of an implicit surface, :math:`φ_0(x) = f(d(T_β^{-1} x))`, with the signed
distance d to the outlines, negative inside, displaced by :math:`β = (Δx, Δy, Δθ)`, about the middle
of the outlines. Hits lie where it is 0, so the likeliest β minimises

.. math::
    \sum_i ρ\Big(\frac{d(T_β^{-1} x_i)^2}{s^2 + σ_i^2}\Big) \frac{1}{m} + β^\top B^{-1} β,
    \qquad ρ(z) = \frac{z}{1 + z / 9},

with the deviation s, the noise σ and m neighbours of a hit that tell the same: by Gauss-Newton
steps from a wide s to its own (graduated non-convexity; Blake and Zisserman 1987), from several
turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

from nbv_planner.geometry import FloatArray
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.scene import FoundScene

Beforehand = tuple[KnownOutline | None, "KnownSolid | None"]
"""What is known of the radius, and of cells."""
# Values along a side of the lattice, and how far it reaches, in radii of the scene.
_COUNT, _REACH = 192, 1.5
# Distance of points of the outline, in steps of the lattice.
_SPACING = 0.25
# Near a surface φ rises less steeply than the distance: by what, up to which distance, radii.
_SLOPE, _STEP = 0.67, 0.02
# From wide to narrow, and turns to begin with, in the deviation of the turn.
_NARROWING = (8.0, 4.0, 2.0, 1.0, 1.0, 1.0)
_TURNS = (0.0, -1.2, 1.2)
_FAR = 9.0
# Displacement for a derivative, radii and radians.
_SMALL = 1e-3


@dataclass(frozen=True, eq=False)
class Place:
    """Where outlines lie."""

    likeliest: FloatArray  #: displacement β, shape (3,).
    covariance: FloatArray  #: of β, shape (3, 3), by Laplace's method.
    #: log of the part of what was probable before that is left about it.
    log_part: float

    def draws(self, count: int, seed: int) -> FloatArray:
        """Displacements, shape (count, 3)."""
        normal = np.random.default_rng([seed, 5]).standard_normal((count, 3))
        return np.asarray(self.likeliest + normal @ np.linalg.cholesky(self.covariance).T)


@dataclass(frozen=True, eq=False)
class KnownSolid:
    """Outlines, and how far they can be trusted."""

    loops: tuple[FloatArray, ...]  #: corners of each, shape (n, 2), metres.
    radius: float  #: greatest radius of an object, metres.
    std: float  #: standard deviation of the object's distance from them, metres.
    place_std: tuple[float, float]  #: of their displacement, metres, and turn, radians.

    @cached_property
    def middle(self) -> FloatArray:
        """About which they are turned, shape (2,), metres."""
        corners = np.concatenate(self.loops)
        return np.asarray(0.5 * (corners.min(axis=0) + corners.max(axis=0)))

    @cached_property
    def distance(self) -> FloatArray:
        """Signed distance on a lattice about the origin, shape (192, 192), metres; x before y."""
        axis = _REACH * self.radius * np.linspace(-1.0, 1.0, _COUNT)
        points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)
        outlines = Outlines("", self.loops)
        corners, _ = outlines.sampled(_SPACING * (axis[1] - axis[0]))
        away, _ = cKDTree(corners).query(points)
        inside = outlines.holds(points).any(axis=0)
        return np.asarray(np.where(inside, -away, away).reshape(_COUNT, _COUNT))

    @property
    def plain(self) -> dict[str, Any]:
        """Plain values for a message, see :func:`known_solid`."""
        return {
            "std": float(self.std),
            "place_std": list(map(float, self.place_std)),
            "loops": [" ".join(f"{one:.6g}" for one in loop.ravel()) for loop in self.loops],
        }

    def within(self, radius: float, x: float = 0.0, y: float = 0.0) -> KnownSolid:
        """The same for objects up to a `radius`, displaced by so much, metres; rounded as a message
        carries it.
        """
        moved = tuple(loop + np.array([x, y]) for loop in self.loops)
        return known_solid(KnownSolid(moved, radius, self.std, self.place_std).plain, radius)

    @property
    def place_variance(self) -> FloatArray:
        """Variance of the displacement β before the first measurement, shape (3,)."""
        along, turn = self.place_std
        return np.array([along, along, turn]) ** 2

    def signed(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """Signed distance, metres, of points (n, 2), metres, to the outlines displaced by `place`,
        (3,): shape (n,).
        """
        cos, sin = math.cos(place[2]), math.sin(place[2])
        local = (points - self.middle - place[:2]) @ np.array([[cos, -sin], [sin, cos]])
        reach = _REACH * self.radius
        index = (local + self.middle + reach) * ((_COUNT - 1) / (2.0 * reach))
        return np.asarray(ndimage.map_coordinates(self.distance, index.T, order=1, mode="nearest"))

    def level(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """Mean of φ at points (n, 2), in radii: both axes."""
        away = self.signed(points * self.radius, place) / self.radius
        size = np.abs(away)
        return np.asarray(np.sign(away) * np.maximum(_SLOPE * size, size - _STEP))

    def placed(self, hits: FloatArray, noise: FloatArray, same: float) -> Place:
        """The displacement, for hits (n, 2), of a `noise`, (n,), metres, of which `same` neighbours
        tell the same.
        """
        if not len(hits):
            return Place(np.zeros(3), np.diag(self.place_variance), 0.0)
        found = [self._from(turn * self.place_std[1], hits, noise, same) for turn in _TURNS]
        place, information, _ = min(found, key=lambda one: one[2])
        left = -float(np.linalg.slogdet(information * self.place_variance)[1])
        log = 0.5 * (left - float((place**2 / self.place_variance).sum()))
        return Place(place, np.linalg.inv(information), log)

    def _from(
        self, turn: float, hits: FloatArray, noise: FloatArray, same: float
    ) -> tuple[FloatArray, FloatArray, float]:
        place = np.array([0.0, 0.0, turn])
        information = np.eye(3)
        limit = 4.0 * np.sqrt(self.place_variance)
        for factor in _NARROWING:
            variance = (factor * self.std) ** 2 + noise**2
            off = self.signed(hits, place)
            ratio = off**2 / variance
            weight = (1.0 + ratio / _FAR) ** -2 / (variance * same)
            step = np.array([_SMALL * self.radius, _SMALL * self.radius, _SMALL])
            by = np.stack(
                [
                    (self.signed(hits, place + one) - self.signed(hits, place - one)) / 2.0 / size
                    for one, size in zip(np.diag(step), step, strict=True)
                ],
                axis=1,
            )
            information = np.diag(1.0 / self.place_variance) + by.T @ (weight[:, None] * by)
            right = -by.T @ (weight * off) - place / self.place_variance
            moved = place + np.linalg.solve(information, right)
            place = np.clip(moved, -limit, limit)
        ratio = self.signed(hits, place) ** 2 / (self.std**2 + noise**2)
        cost = float((ratio / (1.0 + ratio / _FAR)).sum() / same)
        cost += float((place**2 / self.place_variance).sum())
        return place, information, cost


def about_found(known: Beforehand, found: FoundScene, *, adrift: bool) -> Beforehand:
    """The same about the centre of a scene that was found; what is `adrift` lies there."""
    outline, solid = known
    x, y = (found.x, found.y) if adrift else (0.0, 0.0)
    return (
        outline and outline.moved(x, y).about(found.x, found.y),
        solid and solid.within(found.radius_max, x - found.x, y - found.y),
    )


def known_solid(content: dict[str, Any], radius: float) -> KnownSolid:
    """Read what :attr:`KnownSolid.plain` gave, for objects up to a `radius`, metres; the newest are
    kept.

    Raises:
        ValueError: a value is none.
    """
    along, turn = map(float, content["place_std"])
    loops = tuple(map(str, content["loops"]))
    return _read(loops, float(radius), float(content["std"]), along, turn)


@lru_cache(maxsize=4)
def _read(
    loops: tuple[str, ...], radius: float, std: float, along: float, turn: float
) -> KnownSolid:
    corners = tuple(np.array(loop.split(), dtype=float) for loop in loops)
    numbers = np.concatenate([*corners, [std, along, turn]])
    if not np.isfinite(numbers).all() or min(std, along, turn) <= 0.0:
        raise ValueError("prior_outline: corners must be finite and deviations > 0")
    if not corners or any(len(one) % 2 or len(one) < 6 for one in corners):
        raise ValueError(
            "prior_outline: must have outlines of three corners at least, x and y each"
        )
    return KnownSolid(tuple(one.reshape(-1, 2) for one in corners), radius, std, (along, turn))
