r"""Outlines of any form, or a mesh, that are known beforehand: their signed distance, and where
they lie.

What is known is the mean of an implicit surface, :math:`φ_0(x) = f(d(T_β^{-1} x))`, with the signed
distance d to it, negative inside, displaced by :math:`β = (Δx, Δy, Δθ)`, about its middle; in space
β has three lengths and a rotation vector, or the turn about the vertical axis alone. Hits lie where
it is 0, so the likeliest β minimises

.. math::
    \sum_i ρ\Big(\frac{d(T_β^{-1} x_i)^2}{s^2 + σ_i^2}\Big) \frac{1}{m} + β^\top B^{-1} β,
    \qquad ρ(z) = \frac{z}{1 + z / 9},

with the deviation s, the noise σ and m neighbours of a hit that tell the same: by Gauss-Newton
steps from a wide s to its own (graduated non-convexity; Blake and Zisserman 1987), from several
turns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from nbv_planner.files.plain_values import deflated, inflated
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.known.known_outline import KnownOutline, Stds, plain_stds, stds_in
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.scene import EstimatedScene

Beforehand = tuple[KnownOutline | None, "KnownForm | None"]
"""What is known of the radius, and of cells."""
# Values along a side of the lattice, and how far it reaches, in radii of the scene.
_COUNT, _REACH = 192, 1.5
# Distance of points of the outline, in steps of the lattice.
_SPACING = 0.25
# Near a surface φ rises less steeply than the distance: by what, up to which distance, radii.
_SLOPE, _STEP = 0.67, 0.02
# From wide to narrow, and turns to begin with, in the deviation of the turn.
_NARROWING = (8.0, 4.0, 2.0, 1.0, 1.0, 1.0)
_TURNS = (-1.2, 1.2)
_FAR = 9.0
# Displacement for a derivative, radii and radians.
_SMALL = 1e-3
MOST_SIDE = 64
"""Distances of a mesh along a side of its cube, at most."""
# Distances of a mesh are sent in so many steps, which are finer near the surface.
_STEPS = 127


@dataclass(frozen=True, eq=False)
class Place:
    """Where a form lies."""

    likeliest: FloatArray  #: displacement β, shape (B,).
    covariance: FloatArray  #: of β, shape (B, B), by Laplace's method.
    #: log of the part of what was probable before that is left about it.
    log_part: float

    def draws(self, count: int, seed: int) -> FloatArray:
        """Displacements, shape (count, B)."""
        normal = np.random.default_rng([seed, 5]).standard_normal((count, len(self.likeliest)))
        return np.asarray(self.likeliest + normal @ np.linalg.cholesky(self.covariance).T)


@dataclass(frozen=True, eq=False)
class KnownForm(ABC):
    """A form in D dimensions by its signed distance, and how far it can be trusted."""

    radius: float  #: greatest radius of an object, metres.
    std: float  #: standard deviation of the object's distance from it, metres.
    place_std: tuple[float, float]  #: of its displacement, metres, and turn, radians.

    @property
    @abstractmethod
    def distance(self) -> FloatArray:
        """Signed distance on a lattice, D axes from x on, metres."""

    @property
    @abstractmethod
    def lattice(self) -> tuple[FloatArray, float]:
        """First point, shape (D,), and step of that, metres."""

    @property
    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Plain values for a message, see :func:`known_form`."""

    @property
    @abstractmethod
    def lengths(self) -> BoolArray:
        """Which numbers of a displacement are lengths, shape (B,); the others are turns."""

    @abstractmethod
    def back(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """Points (n, D) where they would be if the form were displaced by the `place`, (B,), in the
        frame of the form.
        """

    @property
    def place_variance(self) -> FloatArray:
        """Variance of the displacement β before the first measurement, shape (B,)."""
        along, turn = self.place_std
        return np.where(self.lengths, along, turn) ** 2

    def signed(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """Signed distance, metres, of points (n, D), metres, to the form displaced by `place`,
        (B,): shape (n,); beyond the lattice that of its border and the way to it.
        """
        start, step = self.lattice
        index = (self.back(points, place) - start) / step
        inside = np.clip(index, 0.0, len(self.distance) - 1.0)
        distance = ndimage.map_coordinates(self.distance, inside.T, order=1, mode="nearest")
        return np.asarray(distance + step * np.linalg.norm(index - inside, axis=1))

    def level(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """Mean of φ at points (n, D), in radii: both axes."""
        away = self.signed(points * self.radius, place) / self.radius
        size = np.abs(away)
        return np.asarray(np.sign(away) * np.maximum(_SLOPE * size, size - _STEP))

    def placed(self, hits: FloatArray, noise: FloatArray, same: float) -> Place:
        """The displacement, for hits (n, D), of a `noise`, (n,), metres, of which `same` neighbours
        tell the same.
        """
        if not len(hits):
            return Place(np.zeros(len(self.lengths)), np.diag(self.place_variance), 0.0)
        starts = [np.zeros(len(self.lengths))]
        for axis in np.flatnonzero(~self.lengths):
            alone = self.place_std[1] * (np.arange(len(self.lengths)) == axis)
            starts += [turn * alone for turn in _TURNS]
        fits = [self._from(start, hits, noise, same) for start in starts]
        place, information, _ = min(fits, key=lambda one: one[2])
        left = -float(np.linalg.slogdet(information * self.place_variance)[1])
        log = 0.5 * (left - float((place**2 / self.place_variance).sum()))
        return Place(place, np.linalg.inv(information), log)

    def _from(
        self, place: FloatArray, hits: FloatArray, noise: FloatArray, same: float
    ) -> tuple[FloatArray, FloatArray, float]:
        information = np.diag(1.0 / self.place_variance)
        limit = 4.0 * np.sqrt(self.place_variance)
        for factor in _NARROWING:
            variance = (factor * self.std) ** 2 + noise**2
            off = self.signed(hits, place)
            ratio = off**2 / variance
            weight = (1.0 + ratio / _FAR) ** -2 / (variance * same)
            step = _SMALL * np.where(self.lengths, self.radius, 1.0)
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


@dataclass(frozen=True, eq=False)
class KnownSolid(KnownForm):
    """Outlines in the plane."""

    loops: tuple[FloatArray, ...]  #: corners of each, shape (n, 2), metres.

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
            **plain_stds(self),
            "loops": [" ".join(f"{one:.6g}" for one in loop.ravel()) for loop in self.loops],
        }

    def within(self, radius: float, x: float = 0.0, y: float = 0.0) -> KnownSolid:
        """The same for objects up to a `radius`, displaced by so much, metres; rounded as a message
        carries it.
        """
        moved = tuple(loop + np.array([x, y]) for loop in self.loops)
        return known_solid(KnownSolid(radius, self.std, self.place_std, moved).plain, radius)

    @property
    def lattice(self) -> tuple[FloatArray, float]:
        """See :class:`KnownForm`."""
        reach = _REACH * self.radius
        return np.array([-reach, -reach]), 2.0 * reach / (_COUNT - 1)

    @property
    def lengths(self) -> BoolArray:
        """See :class:`KnownForm`."""
        return np.array([True, True, False])

    def back(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """See :class:`KnownForm`."""
        cos, sin = math.cos(place[2]), math.sin(place[2])
        turn = np.array([[cos, -sin], [sin, cos]])
        return np.asarray((points - self.middle - place[:2]) @ turn + self.middle)


@dataclass(frozen=True, eq=False)
class KnownMesh(KnownForm):
    """A solid in space, by distances in a cube about its middle."""

    grid: FloatArray  #: signed distance, shape (N, N, N), metres.
    start: tuple[float, float, float]  #: first point of the cube, metres.
    step: float  #: of the cube, metres.
    upright: bool  #: whether it is turned about the vertical axis alone.

    @property
    def distance(self) -> FloatArray:
        """See :class:`KnownForm`."""
        return self.grid

    @property
    def lattice(self) -> tuple[FloatArray, float]:
        """See :class:`KnownForm`."""
        return np.array(self.start), self.step

    @property
    def lengths(self) -> BoolArray:
        """See :class:`KnownForm`."""
        return np.arange(4 if self.upright else 6) < 3

    def back(self, points: FloatArray, place: FloatArray) -> FloatArray:
        """See :class:`KnownForm`."""
        middle = np.array(self.start) + 0.5 * self.step * (len(self.grid) - 1)
        vector = np.array([0.0, 0.0, place[3]]) if self.upright else place[3:]
        turn = Rotation.from_rotvec(vector).as_matrix()
        return np.asarray((points - middle - place[:3]) @ turn + middle)

    @property
    def plain(self) -> dict[str, Any]:
        """Plain values for a message, see :func:`known_form`: the root of each distance, as a
        difference from the one before along z.
        """
        most = float(np.abs(self.grid).max())
        root = np.sign(self.grid) * np.sqrt(np.abs(self.grid) / most)
        steps = np.rint(_STEPS * root).astype(np.int8)
        return {
            **plain_stds(self),
            "start": list(map(float, self.start)),
            "step": float(self.step),
            "upright": bool(self.upright),
            "count": len(self.grid),
            "most": most,
            "grid": deflated(np.diff(steps, axis=2, prepend=np.int8(0)).tobytes()),
        }


def about_estimate(known: Beforehand, estimated: EstimatedScene, *, adrift: bool) -> Beforehand:
    """The same about the centre of a scene that was found; what is `adrift` lies there."""
    outline, solid = known
    x, y = (estimated.x, estimated.y) if adrift else (0.0, 0.0)
    return (
        outline and outline.moved(x, y).about(estimated.x, estimated.y),
        (
            solid.within(estimated.radius_max, x - estimated.x, y - estimated.y)
            if isinstance(solid, KnownSolid)
            else None
        ),
    )


def known_solid(content: dict[str, Any], radius: float) -> KnownSolid:
    """Read what :attr:`KnownSolid.plain` gave, for objects up to a `radius`, metres; the newest are
    kept.

    Raises:
        ValueError: a value is not valid.
    """
    loops = tuple(map(str, content["loops"]))
    return _read(loops, float(radius), stds_in(content))


@lru_cache(maxsize=4)
def _read(loops: tuple[str, ...], radius: float, stds: Stds) -> KnownSolid:
    corners = tuple(np.array(loop.split(), dtype=float) for loop in loops)
    if not np.isfinite(np.concatenate([*corners, [radius]])).all():
        raise ValueError("prior_outline: corners must be finite")
    if not corners or any(len(one) % 2 or len(one) < 6 for one in corners):
        raise ValueError(
            "prior_outline: must have outlines of three corners at least, x and y each"
        )
    return KnownSolid(radius, *stds, tuple(one.reshape(-1, 2) for one in corners))


def known_form(content: dict[str, Any], radius: float) -> KnownForm:
    """Read what :attr:`KnownForm.plain` gave, of outlines or of a mesh.

    Raises:
        ValueError: a value is not valid.
    """
    if "loops" in content:
        return known_solid(content, radius)
    numbers = (radius, *map(float, [*content["start"], content["step"], content["most"]]))
    count, upright = int(content["count"]), bool(content["upright"])
    return _mesh(str(content["grid"]), numbers, count, upright, stds_in(content))


@lru_cache(maxsize=2)
def _mesh(
    grid: str, numbers: tuple[float, ...], count: int, upright: bool, stds: Stds
) -> KnownMesh:
    radius, x, y, z, step, most = numbers
    if not np.isfinite(numbers).all() or min(step, most) <= 0.0:
        raise ValueError("prior_outline: numbers must be finite and > 0")
    if not 2 <= count <= MOST_SIDE:
        raise ValueError(f"prior_outline: count is {count}, must be from 2 to {MOST_SIDE}")
    steps = inflated(grid, count**3, "prior_outline: grid")
    rows = np.frombuffer(steps, dtype=np.int8).reshape(count, count, count)
    root = np.cumsum(rows, axis=2, dtype=np.int8) / _STEPS
    values = np.sign(root) * root**2 * most
    return KnownMesh(radius, *stds, values, (x, y, z), step, upright)
