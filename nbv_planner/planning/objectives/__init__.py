"""The objectives by id."""

from __future__ import annotations

from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.planning.objectives.base import REQUIREMENTS, Objective, ObjectiveInfo
from nbv_planner.planning.objectives.expected_coverage import ExpectedMarginalCoverage
from nbv_planner.planning.objectives.observation import ObservedConfidenceLower, ObservedConfidenceUpper
from nbv_planner.planning.objectives.occlusion import IntersectionOcclusionAware
from nbv_planner.planning.objectives.omniscient import ObservedSurface, ObservedSurfaceMarginal, TrueSurface
from nbv_planner.planning.objectives.pixel_count import ConfidenceSimpleNumber
from nbv_planner.planning.objectives.uncertainty import Uncertainty, UncertaintyPolar
from nbv_planner.planning.objectives.windowed import (
    Confidence,
    ConfidenceSimple,
    ConfidenceSimplePolar,
    ConfidenceSimpleWeighted,
    Intersection,
)
from nbv_planner.planning.shapes.choice import shape_sampler
from nbv_planner.planning.shapes.sampler import Prior
from nbv_planner.planning.shapes.settings import ShapeSettings

_FROM_BELIEF = (
    IntersectionOcclusionAware,
    Intersection,
    Confidence,
    ConfidenceSimple,
    ConfidenceSimpleNumber,
    ConfidenceSimplePolar,
    ConfidenceSimpleWeighted,
    Uncertainty,
    UncertaintyPolar,
    ObservedConfidenceLower,
    ObservedConfidenceUpper,
)
OBJECTIVES: dict[str, type[Objective]] = {cls.info.id: cls for cls in _FROM_BELIEF}
"""Objectives that need no knowledge of the object and no more of the belief than its band, by id."""

EXPECTED = ExpectedMarginalCoverage.info.id
"""Id of the objective that looks at posterior shapes."""

TRUTH_OBJECTIVES = {cls.info.id: cls for cls in (ObservedSurface, ObservedSurfaceMarginal)}
"""Objectives that know the object, by id; only a simulation can offer them."""

OMNISCIENT = ObservedSurfaceMarginal.info.id
"""Id of the greedy reference that knows the object."""

OBJECTIVE_INFO: dict[str, ObjectiveInfo] = {
    cls.info.id: cls.info
    for cls in (*_FROM_BELIEF, ExpectedMarginalCoverage, ObservedSurface, ObservedSurfaceMarginal)
}
"""What is known about each objective, by id; those that know the object come last."""


def objective_named(
    name: str, truth: TrueSurface | None = None, *, setting: str = "objective",
    expected: ExpectedMarginalCoverage | None = None,
) -> Objective:
    """Build the objective with id `name`.

    Args:
        name: its id.
        truth: the true surface, for objectives that need it.
        expected: what EMC is to be; None for EMC with the default prior and settings.
        setting: what to call the objective in an error message.

    Raises:
        UnknownNameError: lists the known ids.
        SettingError: it needs the true surface and there is none.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]()
    if name == EXPECTED:
        return expected or ExpectedMarginalCoverage(shape_sampler(ShapeSettings(), Prior()))
    if name not in TRUTH_OBJECTIVES:
        raise UnknownNameError("objective", name, OBJECTIVE_INFO)
    if truth is None:
        raise SettingError(f"{setting}: {name} needs the true object, which no robot has")
    return TRUTH_OBJECTIVES[name](truth)


__all__ = [
    "EXPECTED",
    "OBJECTIVES",
    "OBJECTIVE_INFO",
    "OMNISCIENT",
    "REQUIREMENTS",
    "TRUTH_OBJECTIVES",
    "ExpectedMarginalCoverage",
    "Objective",
    "ObjectiveInfo",
    "TrueSurface",
    "objective_named",
]
