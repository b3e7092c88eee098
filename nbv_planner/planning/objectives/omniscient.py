r"""Objectives that know the object: OS and OSM, the *omniscient greedy* reference."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import observe


@dataclass(eq=False)
class TrueSurface:
    """The true surface points, handed in by a simulation; nothing in planning can reach them otherwise.

    Attributes:
        angle: shape (P,), rising, radians.
        radius: shape (P,), metres.
        seen: which have been seen so far, shape (P,); the simulation keeps it up to date.
    """

    angle: FloatArray
    radius: FloatArray
    seen: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        """Nothing has been seen."""
        self.seen = np.zeros(len(self.angle), dtype=bool)

    def observed(self, views: FloatArray, scene: Scene) -> BoolArray:
        """Which points each view sees, shape (V, P)."""
        return observe(self.angle, self.radius, views, scene)


class ObservedSurface:
    r"""OS: :math:`|o(θ)|`, surface points that a view sees, known ones included."""

    info = ObjectiveInfo("OS", "observed_surface", "ynynyy", "not attempted", needs_truth=True)

    def __init__(self, truth: TrueSurface) -> None:
        """Take the true surface."""
        self._truth = truth

    def evaluate(self, belief: SurfaceBelief | None, scene: Scene, views: FloatArray) -> FloatArray:
        """Count surface points per candidate view."""
        return np.asarray(self._truth.observed(views, scene).sum(axis=1), dtype=float)


class ObservedSurfaceMarginal:
    r"""OSM: :math:`|o(θ) \setminus o(θ_{1:t-1})|`, surface points not seen before."""

    info = ObjectiveInfo("OSM", "observed_surface_marginal", "ynyyyy", "greedy with full knowledge", needs_truth=True)

    def __init__(self, truth: TrueSurface) -> None:
        """Take the true surface."""
        self._truth = truth

    def evaluate(self, belief: SurfaceBelief | None, scene: Scene, views: FloatArray) -> FloatArray:
        """Count unseen surface points per candidate view."""
        new = self._truth.observed(views, scene) & ~self._truth.seen
        return np.asarray(new.sum(axis=1), dtype=float)
