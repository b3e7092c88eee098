"""Shapes that the object may have, drawn from the posterior that the evidence gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.evidence import Evidence, nearest_cell
from nbv_planner.geometry import FloatArray, wrap_angle
from nbv_planner.gp.kernels import Kernel, PeriodicMatern
from nbv_planner.gp.posterior import Posterior, posterior_on, trusted
from nbv_planner.planning.shapes.settings import ShapeSettings
from nbv_planner.scene import Scene
from nbv_planner.surface import MapperSettings, SurfaceBelief, uniform_grid


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes of equal weight.

    Attributes:
        angle: grid, shape (M,), rising in [0, 2π), uniform, radians.
        radius: radius of each shape, shape (S, M), metres.
    """

    angle: FloatArray
    radius: FloatArray


class ShapeSampler(Protocol):
    """Draws shapes that the object may have, given what is known."""

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes; the same belief gives the same ones.

        Raises:
            SettingError: the belief does not say what it rests on.
        """
        ...


@dataclass(frozen=True)
class Prior:
    """What is assumed about the surface before the first measurement.

    Attributes:
        kernel: covariance function of the radius.
        mean: mean radius, metres.
    """

    kernel: Kernel = field(default_factory=PeriodicMatern)
    mean: float = MapperSettings().prior_mean


@dataclass(frozen=True, eq=False)
class PosteriorShapes:
    """Draw shapes from the Gaussian posterior, cut off where the object is known not to be.

    The same standard normals serve every round (common random numbers), so that the shapes change with the evidence
    alone and decisions of one episode can be compared.

    Attributes:
        prior: prior of the radius.
        settings: number of shapes and their grid.
        seed: seed of the standard normals.
    """

    prior: Prior
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`ShapeSampler`."""
        posterior = trusted(self._unconditioned.adding(*evidence_of(belief).measured), self._grid)
        radius = posterior.sample(self._normals(posterior.normals_per_sample))
        return Shapes(self._grid, within_bounds(radius, self._grid, belief, scene, self.settings.free_space))

    @cached_property
    def _grid(self) -> FloatArray:
        return uniform_grid(self.settings.shape_grid)

    @cached_property
    def _unconditioned(self) -> Posterior:
        return posterior_on(self._grid, self.prior.kernel, self.prior.mean)

    def _normals(self, size: int) -> FloatArray:
        """Standard normals, shape (S, size): the same at every call."""
        return np.random.default_rng(self.seed).standard_normal((self.settings.shapes, size))


def evidence_of(belief: SurfaceBelief) -> Evidence:
    """What `belief` rests on.

    Raises:
        SettingError: it does not say.
    """
    if belief.evidence is None:
        raise SettingError("the surface carries no evidence (measurements by grid angle): EMC and rollout need it")
    return belief.evidence


def within_bounds(
    radius: FloatArray, angle: FloatArray, belief: SurfaceBelief, scene: Scene, free_space: bool
) -> FloatArray:
    """Cut draws (S, M), metres, off at the bounds of the object and, with `free_space`, at what was found free.

    Where the surface itself was measured, that tells more than what is free. Cutting off is a heuristic in place of
    drawing again and again until nothing contradicts.

    Args:
        radius: draws, shape (S, M), metres.
        angle: their grid, shape (M,), radians.
        belief: holds the evidence.
        scene: bounds of the radius.
        free_space: whether to look at what was found free.
    """
    if free_space:
        evidence = evidence_of(belief)
        free = np.where(np.isfinite(evidence.std), np.inf, evidence.free)
        radius = np.minimum(radius, free[nearest_cell(belief.angle, wrap_angle(angle))])
    return np.asarray(np.clip(radius, scene.radius_min, scene.radius_max))
