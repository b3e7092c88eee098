"""What an objective is, and what is known about each (thesis ch. 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nbv_planner.geometry import FloatArray
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

REQUIREMENTS = (
    "upper bound",
    "closed form",
    "real-world information",
    "marginal information",
    "FOV information",
    "occlusion information",
)
"""The thesis's requirements R1–R6 on objectives."""


@dataclass(frozen=True)
class ObjectiveInfo:
    """What is known about an objective apart from how it is computed.

    Attributes:
        id: short name used in parameters and tables, for example `IOA`.
        name: long name, for example `intersection_occlusion_aware`.
        requirements: fulfilment of R1–R6, one letter each: y yes, o partly, n no.
        proof: what the thesis says about its regret (ch. 6).
        needs_truth: whether it can only be computed knowing the object.
        caveat: what was found to be wrong with that, empty if nothing.
    """

    id: str
    name: str
    requirements: str
    proof: str
    needs_truth: bool = False
    caveat: str = ""


class Objective(Protocol):
    """One value per candidate view: how much it promises to reveal, in world pixels (or surface points)."""

    @property
    def info(self) -> ObjectiveInfo:
        """Identity, requirements and proof status."""
        ...

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Evaluate all candidate `views` (shape (V,), radians) at once; returns shape (V,)."""
        ...
