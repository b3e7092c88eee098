"""The planner with a receding horizon, and the integer programme behind it."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pytest
import scipy.optimize
from beliefs import belief_of, wavy_belief, with_evidence
from views import circle

from nbv_planner.errors import DependencyError
from nbv_planner.planning import integer_programme
from nbv_planner.planning.planners import PlannerSettings, planner_named
from nbv_planner.planning.planners.rollout import fewest_views
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.world.scene import Scene

needs_milp = pytest.mark.skipif(not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming")
SCENE = Scene()
BELIEF = with_evidence(wavy_belief(3, size=200))


def seen_by(visible, weight, views) -> float:
    return float(weight[visible[list(views)].any(axis=0)].sum())


def best_by_trying(visible, weight, needed) -> tuple[int, float]:
    """Least number of views that see enough, and the most that as many see."""
    needed = min(needed, seen_by(visible, weight, range(len(visible))))
    for number in range(len(visible) + 1):
        most = max(seen_by(visible, weight, views) for views in itertools.combinations(range(len(visible)), number))
        if most >= needed - 1e-6:
            return number, most
    raise AssertionError


@needs_milp
@pytest.mark.parametrize("seed", range(25))
def test_no_set_of_fewer_views_sees_enough_and_none_of_as_many_sees_more(seed):
    rng = np.random.default_rng(seed)
    visible, weight = rng.random((7, 12)) < 0.3, rng.integers(0, 6, 12).astype(float)
    needed = float(rng.choice([0.5, 0.8, 0.95, 1.0])) * weight.sum()
    views = fewest_views(visible, weight, needed)
    assert (len(views), seen_by(visible, weight, views)) == pytest.approx(best_by_trying(visible, weight, needed))


@needs_milp
@pytest.mark.parametrize(("weight", "needed"), [(np.ones(4), 0.0), (np.ones(4), -3.0), (np.zeros(4), 2.0)])
def test_where_nothing_is_needed_or_to_be_seen_there_is_no_view(weight, needed):
    assert fewest_views(np.eye(4, dtype=bool), weight, needed) == ()


def test_without_a_plan_in_time_the_score_decides(monkeypatch):
    limits = []

    def late(*_, options, **__):
        limits.append(options["time_limit"])
        return types.SimpleNamespace(x=None, mip_dual_bound=None)

    monkeypatch.setattr(scipy.optimize, "milp", late, raising=False)
    monkeypatch.setattr(integer_programme, "milp_solver", lambda who: late)
    chosen = PlannerSettings(planner="horizon", deadline=0.25)
    decision = planner_named(chosen, SCENE, circle()).decide(BELIEF)
    assert decision.utility == decision.utilities.max()
    assert limits == [0.25]


@needs_milp
def test_it_plans_two_views_where_greedy_takes_three(monkeypatch):
    """The middle sees most and is no part of the best plan; of that the better view comes first."""
    visible = np.zeros((1, 3, 7), dtype=np.float32)
    for view, cells in enumerate([[1, 2, 3, 4], [0, 1, 2], [3, 4, 5, 6]]):
        visible[0, view, cells] = 1.0
    weight = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 0.4, 0.4]], dtype=np.float32)
    plan = planner_named(
        PlannerSettings(planner="horizon", target_coverage=1.0), SCENE, circle(ViewSpaceSettings(num_views=3))
    )
    given = types.SimpleNamespace(
        visible=visible, unseen=weight, points=weight.sum(axis=1), gains=lambda: (visible @ weight[:, :, None])[..., 0]
    )
    monkeypatch.setattr(plan, "_mean_coverage", lambda situation: given)
    decision = plan.decide(BELIEF)
    assert decision.view_angle == plan.views.angles[1]
    assert decision.runner_up == plan.views.angles[2]


@needs_milp
def test_views_that_may_not_be_taken_are_in_no_plan():
    views = ViewSpaceSettings(num_views=40, blocked_arcs=(1.0, 5.0))
    plan = planner_named(PlannerSettings(planner="horizon", shapes=2), SCENE, circle(views))
    decision = plan.decide(with_evidence(belief_of(4.5, 5.5)))
    assert decision.feasible[decision.candidates.view_angle == decision.view_angle]
    assert not 1.0 <= decision.runner_up <= 5.0


def test_old_scipy_is_named_when_the_planner_is_built(monkeypatch):
    monkeypatch.delattr(scipy.optimize, "milp", raising=False)
    with pytest.raises(DependencyError, match=r"planner horizon needs scipy >= 1.9 .* installed is"):
        planner_named(PlannerSettings(planner="horizon"), SCENE, circle())
