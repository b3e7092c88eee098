"""The planners that know no member of the surface; wiring builds those and others by their
names.
"""

from __future__ import annotations

from nbv_planner.planning.objectives import known_objectives
from nbv_planner.planning.planners.decision_settings import (
    PLANNER_PLUGINS,
    PLANNERS,
    DecisionSettings,
)
from nbv_planner.planning.planners.planner import OVERLAP, Decision, Planner
from nbv_planner.planning.planners.plugged import Memory, PluggedPlanner
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.planners.simple import GreedyPlanner, RandomPlanner, UniformPlanner
from nbv_planner.planning.planners.tour import TourPlanner


def proof_of(settings: DecisionSettings) -> str:
    """What is known about the regret of a planner (thesis ch. 6)."""
    if settings.planner == "greedy":
        return known_objectives()[settings.objective].proof
    proved = settings.planner == "two_phase" and settings.label == "CS-U"
    return "sublinear regret proved" if proved else "not attempted"


def planner_names() -> tuple[str, ...]:
    """Names of the planners, also of the rivals and of those of other packages."""
    return (*PLANNERS, *PLANNER_PLUGINS.names)


__all__ = [
    "OVERLAP",
    "PLANNERS",
    "PLANNER_PLUGINS",
    "Decision",
    "DecisionSettings",
    "GreedyPlanner",
    "Memory",
    "Planner",
    "PluggedPlanner",
    "RandomPlanner",
    "RolloutPlanner",
    "TourPlanner",
    "UniformPlanner",
    "planner_names",
    "proof_of",
]
