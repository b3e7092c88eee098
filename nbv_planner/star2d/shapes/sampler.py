"""Shapes that the object may have, drawn from the posterior that the evidence gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray, wrap_angle
from nbv_planner.gp.grid_posterior import GridPosterior
from nbv_planner.gp.kernels import Kernel, KernelSettings, PeriodicMatern
from nbv_planner.gp.posterior import Posterior, posterior_on, trusted
from nbv_planner.settings import python_setting, setting
from nbv_planner.star2d.belief import Evidence, SurfaceBelief, nearest_cell, uniform_grid
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.shapes.learned_prior import LearnedPriorSettings
from nbv_planner.surface.coverage import TargetSettings
from nbv_planner.world.scene import Scene

# Angles of shapes from views that are held at once, at most.
_MOST_CELLS = 250_000_000


@dataclass(frozen=True)
class ShapeSettings(LearnedPriorSettings, TargetSettings):
    """How posterior shapes are drawn."""

    shape_prior: str = python_setting(
        "learned",
        "EMC, rollout: prior of the shapes: fixed (the mapper's), or learned (averaged over kernels"
        " and symmetries).",
        choices=("fixed", "learned"),
    )
    shape_grid: int = python_setting(
        360,
        "EMC, rollout: number of angles of a posterior shape.",
        ge=16,
        le=100_000,
    )
    edge_probability: float = python_setting(
        0.5,
        "learned: part of the shapes in which straight edges continue across what was not seen,"
        " until they meet.",
        ge=0.0,
        le=1.0,
    )
    edge_length: float = python_setting(
        1.0,
        "learned: least length of a measured stretch that counts as a straight edge.",
        unit="m",
        gt=0.0,
        scale="span",
    )
    free_space: bool = python_setting(
        True, "EMC, rollout: let beams that met nothing bound the shapes."
    )

    def check_size(self, views: int, name: str = "shapes") -> None:
        """Refuse what would need more than some gigabytes: 10 bytes for each angle of each shape
        and
        view, or 250 without.

        Raises:
            SettingError: names the request, the number of shapes by `name`, and what is allowed.
        """
        most = _MOST_CELLS // (self.shape_grid * max(views, 25))
        if self.shapes > most:
            raise SettingError(
                f"{name}: {self.shapes} with shape_grid {self.shape_grid} and {views} candidate"
                f" views must be <= {most}"
            )


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes of equal weight: radii, shape (S, M), metres, on a uniform grid of angles rising in
    [0, 2π).
    """

    angle: FloatArray
    radius: FloatArray


class ShapeSampler(Protocol):
    """Draws shapes that the object may have, given what is known."""

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes; the same belief gives the same ones.

        Raises:
            SettingError: the belief carries no evidence.
        """


@dataclass(frozen=True)
class Prior:
    """What is assumed about the surface before the first measurement: kernel of the radius, and its
    mean, metres.
    """

    kernel: Kernel = field(default_factory=PeriodicMatern)
    mean: float = MapperSettings().prior_mean


@dataclass(frozen=True)
class PriorSettings(KernelSettings):
    """The mapper's prior by the names of its parameters.

    Raises:
        SettingError: a value is out of range, or the periodisation does not exist for the kernel.
    """

    prior_mean: float = setting(
        MapperSettings().prior_mean,
        "Prior mean of the radius.",
        unit="m",
        gt=0.0,
        scale="mean radius",
    )

    def prior(self) -> Prior:
        """Build the prior."""
        return Prior(self.build(), self.prior_mean)


@dataclass(frozen=True, eq=False)
class PosteriorShapes:
    """Draw shapes from the Gaussian posterior, cut off where the object is known not to be.

    The same standard normals, from `seed`, serve every round (common random numbers), so that the
    shapes change with the evidence alone and decisions of one episode can be compared.
    """

    prior: Prior
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`ShapeSampler`."""
        grid = uniform_grid(self.settings.shape_grid)
        posterior = trusted(self._unconditioned.adding(*evidence_of(belief).measured), grid)
        assert not isinstance(posterior, GridPosterior)  # of another solver than auto
        normals = np.random.default_rng(self.seed).standard_normal(
            (self.settings.shapes, posterior.normals_per_sample)
        )
        radius = posterior.sample(normals)
        return shapes_within_bounds(radius, belief, scene, self.settings)

    @cached_property
    def _unconditioned(self) -> Posterior:
        grid = uniform_grid(self.settings.shape_grid)
        return posterior_on(grid, self.prior.kernel, self.prior.mean)


def evidence_of(belief: SurfaceBelief) -> Evidence:
    """The evidence of `belief`.

    Raises:
        SettingError: it carries none.
    """
    if belief.evidence is None:
        raise SettingError(
            "the surface carries no evidence (measurements by grid angle): EMC and rollout need it"
        )
    return belief.evidence


def shapes_within_bounds(
    radius: FloatArray, belief: SurfaceBelief, scene: Scene, settings: ShapeSettings
) -> Shapes:
    """Cut draws on the grid of the settings, shape (S, M), metres, off at the scene's bounds and at
    what was found free.

    Where the surface itself was measured, that is more informative than what is free. Cutting off
    is a heuristic in place of drawing again until nothing contradicts. Without `free_space`, only
    the bounds count.
    """
    angle = uniform_grid(settings.shape_grid)
    if settings.free_space:
        evidence = evidence_of(belief)
        free = np.where(np.isfinite(evidence.std), np.inf, evidence.free)
        radius = np.minimum(radius, free[nearest_cell(belief.angle, wrap_angle(angle))])
    return Shapes(angle, np.clip(radius, scene.radius_min, scene.radius_max))
