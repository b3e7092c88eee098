"""What the thesis is about alone: objectives on the band, two phases, regret; they ask for star2d
and the circle.
"""

from __future__ import annotations

from nbv_planner.thesis.area import (
    BandObjective,
    Confidence,
    ConfidenceSimple,
    ConfidenceSimplePolar,
    ConfidenceSimpleWeighted,
    Intersection,
    Uncertainty,
    UncertaintyPolar,
)
from nbv_planner.thesis.hybrid import HybridPlanner, TwoPhasePlanner
from nbv_planner.thesis.observed import (
    ObservedConfidenceLower,
    ObservedConfidenceUpper,
    ObservedSurface,
    ObservedSurfaceMarginal,
    TrueSurface,
)
from nbv_planner.thesis.pixels import ConfidenceSimpleNumber, IntersectionOcclusionAware

OBJECTIVES: dict[str, type[BandObjective]] = {
    cls.info.id: cls
    for cls in (
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
}
"""Classes of the objectives that depend on the band of the belief alone, by id."""
KNOWING = {cls.info.id: cls for cls in (ObservedSurface, ObservedSurfaceMarginal)}
"""Classes of the objectives that know the object, by id."""

__all__ = [
    "KNOWING",
    "OBJECTIVES",
    "BandObjective",
    "HybridPlanner",
    "TrueSurface",
    "TwoPhasePlanner",
    "Uncertainty",
]
