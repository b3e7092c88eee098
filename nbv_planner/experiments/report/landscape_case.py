"""The episode at which the objectives are looked at, and what they say there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nbv_planner.evaluation.landscapes import Landscape, objective_landscapes
from nbv_planner.experiments.report.cases import Trial, trial_of
from nbv_planner.experiments.report.comparison import ComparedCase
from nbv_planner.experiments.report.rerun import rerun
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES, TrueSurface
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.settings import from_mapping

_RANKING_PLANNERS = ("greedy", "two_phase")


def ranking_objectives(planners: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Ids of the objectives by which the planners of a sweep choose, those that know the object left out."""
    settings = [from_mapping(PlannerSettings, values) for values in planners.values()]
    used = [name for s in settings if s.planner in _RANKING_PLANNERS for name in s.used_objectives]
    return [name for name in dict.fromkeys(used) if name not in TRUTH_OBJECTIVES]


def landscape_episode(
    episodes: Sequence[Mapping[str, Any]], cases: Sequence[ComparedCase], reference: str | None
) -> Mapping[str, Any] | None:
    """Choose an episode in which much can be seen: the best one on the trial with the largest regret.

    Args:
        episodes: all episodes.
        cases: the cases to choose from.
        reference: label of the omniscient greedy planner, which is not chosen.

    Returns:
        The episode with the least regret on the trial with the greatest mean regret; None if no planner but the
        reference has taken two views.
    """
    regrets: dict[Trial, list[tuple[float, str]]] = defaultdict(list)
    for c in cases:
        if c.case.planner != reference and c.case.views >= 2 and c.case.regret is not None:
            regrets[c.case.trial].append((c.case.regret, c.case.planner))
    if not regrets:
        return None
    hardest = max(regrets, key=lambda trial: float(np.mean([regret for regret, _ in regrets[trial]])))
    planner = min(regrets[hardest])[1]
    return next(e for e in episodes if trial_of(e) == hardest and e["case"]["planner"] == planner)


def episode_landscapes(episode: Mapping[str, Any], objectives: Sequence[str]) -> list[list[Landscape]]:
    """Run an episode again and evaluate objectives at its second decision, at that for T95 (or the last), and between.

    Args:
        episode: an episode with two views at least.
        objectives: ids of the objectives.

    Returns:
        For each decision one landscape per objective.

    Raises:
        NbvPlannerError: it cannot be run again as it was, see :func:`.rerun.rerun`.
    """
    judge = rerun(episode).judge
    truth = TrueSurface(judge.points.angle, judge.points.radius)
    last = max(2, int(judge.metrics()["T95"] or len(judge.steps)))
    decisions = sorted({2, (last + 2) // 2, last})
    return [objective_landscapes(judge.steps, objectives, number, truth, judge.scene) for number in decisions]
