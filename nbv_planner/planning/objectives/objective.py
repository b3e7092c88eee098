"""What an objective is, and what is known about each (thesis ch. 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nbv_planner.geometry import FloatArray
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

REQUIREMENTS = (
    "upper bound", "closed form", "real-world information", "marginal information", "FOV information",
    "occlusion information",
)
"""The thesis's requirements R1–R6 on objectives."""


@dataclass(frozen=True)
class ObjectiveInfo:
    """What is known about an objective apart from how it is computed."""

    id: str  #: short name used in parameters and tables, for example `IOA`.
    name: str  #: long name, for example `intersection_occlusion_aware`.
    #: fulfilment of each of :data:`REQUIREMENTS`, one letter each: y yes, o partly, n no; empty: not judged.
    requirements: str = ""
    proof: str = "not attempted"  #: status of its regret bound in the thesis (ch. 6).
    needs_truth: bool = False  #: whether it can only be computed knowing the object.
    caveat: str = ""  #: what was found to be wrong with that, if anything.
    #: whether it takes angles on the view circle, as all of the thesis do, or else views anywhere.
    needs_circle: bool = True


class Objective(Protocol):
    """One value per candidate view: predicted gain, in world pixels (or surface points)."""

    @property
    def info(self) -> ObjectiveInfo:
        """Identity, requirements and proof status."""

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: Any) -> FloatArray:
        """Evaluate all V candidates at once for what is believed about the surface; returns shape (V,).

        If the objective `needs_circle`, `views` are view angles, shape (V,), radians; else :class:`Poses`.
        """


def values_of(objective: Objective, belief: SurfaceBelief, scene: Scene, views: Poses) -> FloatArray:
    """Value of the objective at each view, shape (V,), given as the objective takes them."""
    return objective.evaluate(belief, scene, views.view_angle if objective.info.needs_circle else views)
