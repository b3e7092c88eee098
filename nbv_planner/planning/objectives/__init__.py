"""The objectives by id."""

from __future__ import annotations

from typing import Any

from nbv_planner.errors import SettingError
from nbv_planner.planning.objectives.area import (
    Confidence,
    ConfidenceSimple,
    ConfidenceSimplePolar,
    ConfidenceSimpleWeighted,
    Intersection,
    Uncertainty,
    UncertaintyPolar,
)
from nbv_planner.planning.objectives.expected_coverage import ExpectedMarginalCoverage
from nbv_planner.planning.objectives.objective import REQUIREMENTS, Objective, ObjectiveInfo, values_of
from nbv_planner.planning.objectives.observed import (
    ObservedConfidenceLower,
    ObservedConfidenceUpper,
    ObservedSurface,
    ObservedSurfaceMarginal,
    TrueOutline,
    TrueSurface,
)
from nbv_planner.planning.objectives.pixels import ConfidenceSimpleNumber, IntersectionOcclusionAware
from nbv_planner.settings import Plugins
from nbv_planner.star2d.shapes.completeness import CoverageTarget
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, ShapeSettings

_FROM_BELIEF = (
    IntersectionOcclusionAware, Intersection, Confidence, ConfidenceSimple, ConfidenceSimpleNumber,
    ConfidenceSimplePolar, ConfidenceSimpleWeighted, Uncertainty, UncertaintyPolar, ObservedConfidenceLower,
    ObservedConfidenceUpper,
)
OBJECTIVES: dict[str, type[Objective]] = {cls.info.id: cls for cls in _FROM_BELIEF}
"""Objectives that depend on the band of the belief alone, by id."""

TRUTH_OBJECTIVES = {cls.info.id: cls for cls in (ObservedSurface, ObservedSurfaceMarginal)}
"""Objectives that know the object, by id; only a simulation can offer them."""

EXPECTED, OMNISCIENT = ExpectedMarginalCoverage.info.id, ObservedSurfaceMarginal.info.id
"""Ids of the objective on posterior shapes, and of the greedy reference that knows the object."""

OBJECTIVE_INFO: dict[str, ObjectiveInfo] = {
    cls.info.id: cls.info
    for cls in (*_FROM_BELIEF, ExpectedMarginalCoverage, ObservedSurface, ObservedSurfaceMarginal)
}
"""What is known about each objective, by id; those that know the object come last."""


def _no_objective(name: str, cls: Any) -> str:
    if not isinstance(getattr(cls, "info", None), ObjectiveInfo) or cls.info.id != name or cls.info.needs_truth:
        return f"must have info = ObjectiveInfo({name!r}, ...), without needs_truth"
    return "" if hasattr(cls, "evaluate") else "must have a method evaluate(belief, scene, views)"


OBJECTIVE_PLUGINS = Plugins("objective", OBJECTIVE_INFO, _no_objective)
"""Objectives of other packages; an entry point has the id as its name."""


def known_objectives() -> dict[str, ObjectiveInfo]:
    """What is known about each objective, by id; those of other packages come last."""
    return {**OBJECTIVE_INFO, **{name: plugin.cls.info for name, plugin in OBJECTIVE_PLUGINS.usable.items()}}


def objective_named(
    name: str, truth: TrueSurface | None = None, *, setting: str = "objective",
    expected: ExpectedMarginalCoverage | None = None, settings: object = None,
) -> Objective:
    """Build the objective with id `name`.

    `truth` is the true surface, for objectives that need it, `expected` is EMC, None for EMC with the default prior and
    settings; an error message names the objective as `setting`. One of another package takes its own from `settings`.

    Raises:
        UnknownNameError: lists the known ids.
        SettingError: it needs the true surface and there is none, or that of another package is broken.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]()
    if name == EXPECTED:
        default = ShapeSettings()
        return expected or ExpectedMarginalCoverage(shape_sampler(default, Prior()), CoverageTarget.of(default))
    if name not in TRUTH_OBJECTIVES:
        return OBJECTIVE_PLUGINS.named(name).build(settings)  # type: ignore[no-any-return]
    if truth is None:
        raise SettingError(f"{setting}: {name} needs the true object, which no robot has")
    return TRUTH_OBJECTIVES[name](truth)


__all__ = [
    "EXPECTED", "OBJECTIVES", "OBJECTIVE_INFO", "OBJECTIVE_PLUGINS", "OMNISCIENT", "REQUIREMENTS", "TRUTH_OBJECTIVES",
    "ExpectedMarginalCoverage", "Objective", "ObjectiveInfo", "TrueOutline", "TrueSurface", "known_objectives",
    "objective_named", "values_of",
]
