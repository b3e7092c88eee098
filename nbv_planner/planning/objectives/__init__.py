"""The objectives by id."""

from nbv_planner.errors import UnknownNameError
from nbv_planner.planning.objectives.base import REQUIREMENTS, Objective, ObjectiveInfo
from nbv_planner.planning.objectives.occlusion import IntersectionOcclusionAware
from nbv_planner.planning.objectives.omniscient import ObservedSurfaceMarginal
from nbv_planner.planning.objectives.uncertainty import Uncertainty, UncertaintyPolar
from nbv_planner.planning.objectives.windowed import ConfidenceSimpleWeighted, Intersection

_CLASSES = (
    IntersectionOcclusionAware,
    Intersection,
    ConfidenceSimpleWeighted,
    Uncertainty,
    UncertaintyPolar,
)
OBJECTIVES: dict[str, type[Objective]] = {cls.info.id: cls for cls in _CLASSES}
"""Objectives that need no knowledge of the object, by id."""

OMNISCIENT = ObservedSurfaceMarginal.info.id
"""Id of the greedy reference that knows the object; only a simulation can offer it."""


def objective_named(name: str) -> Objective:
    """Build the objective with id `name`.

    Raises:
        UnknownNameError: lists the known ids.
    """
    if name not in OBJECTIVES:
        raise UnknownNameError("objective", name, OBJECTIVES)
    return OBJECTIVES[name]()


__all__ = [
    "OBJECTIVES",
    "OMNISCIENT",
    "REQUIREMENTS",
    "Objective",
    "ObjectiveInfo",
    "ObservedSurfaceMarginal",
    "objective_named",
]
