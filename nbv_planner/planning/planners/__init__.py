"""The planners by name."""

from __future__ import annotations

from nbv_planner.planning.objectives import ExpectedMarginalCoverage, TrueSurface, known_objectives, objective_named
from nbv_planner.planning.planners.hybrid import HybridPlanner
from nbv_planner.planning.planners.planner import PLANNER_PLUGINS, PLANNERS, Decision, Planner, PlannerSettings
from nbv_planner.planning.planners.plugged import Memory, PluggedPlanner
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.planners.simple import GreedyPlanner, RandomPlanner, TwoPhasePlanner, UniformPlanner
from nbv_planner.planning.planners.tour import TourPlanner
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.shapes.completeness import CoverageTarget
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.world.scene import Scene

_ONE_PHASE: dict[str, type[Planner]] = {"greedy": GreedyPlanner, "uniform": UniformPlanner, "random": RandomPlanner}

_ON_SHAPES = {"rollout": RolloutPlanner, "tour": TourPlanner, "hybrid": HybridPlanner}


def planner_named(
    settings: PlannerSettings, scene: Scene, views: ViewSpace, truth: TrueSurface | None = None,
    prior: Prior | None = None,
) -> Planner:
    """Build the planner that `settings` describe.

    `truth` is the true surface, for objectives that need it; only a simulation has it. `prior` is that of the posterior
    shapes, None for the default one.

    Raises:
        SettingError: an objective needs the true surface and there is none, or `first_candidate` is no candidate.
    """
    sampler = shape_sampler(settings, prior or Prior(), settings.planner_seed)
    expected = ExpectedMarginalCoverage(sampler, CoverageTarget.of(settings))
    if settings.planner in _ON_SHAPES:
        return _ON_SHAPES[settings.planner](expected, scene, views, settings)
    planner = _on_objective(settings, scene, views, truth, expected, prior or Prior())
    planner.expected = expected
    return planner


def _on_objective(
    settings: PlannerSettings, scene: Scene, views: ViewSpace, truth: TrueSurface | None,
    expected: ExpectedMarginalCoverage, prior: Prior,
) -> Planner:
    """The planner, unless it depends on posterior shapes by itself."""
    objective = objective_named(settings.objective, truth, expected=expected, settings=settings)
    if settings.planner == "two_phase":
        phase_one = objective_named(
            settings.phase_one_objective, truth, setting="phase_one_objective", expected=expected, settings=settings
        )
        return TwoPhasePlanner(phase_one, objective, scene, views, settings)
    if settings.planner in _ONE_PHASE:
        return _ONE_PHASE[settings.planner](objective, scene, views, settings)
    return PluggedPlanner(objective, scene, views, settings, prior)


def proof_of(settings: PlannerSettings) -> str:
    """What is known about the regret of a planner (thesis ch. 6)."""
    if settings.planner == "greedy":
        return known_objectives()[settings.objective].proof
    proved = settings.planner == "two_phase" and settings.label == "CS-U"
    return "sublinear regret proved" if proved else "not attempted"


def planner_names() -> tuple[str, ...]:
    """Names of the planners, also of the rivals and of those of other packages."""
    return (*PLANNERS, *PLANNER_PLUGINS.names)


__all__ = [
    "PLANNERS", "PLANNER_PLUGINS", "Decision", "Memory", "Planner", "PlannerSettings", "Prior", "planner_named",
    "planner_names", "proof_of",
]
