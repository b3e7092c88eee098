"""The rollout planner: the fewest views to go, over all shapes."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from beliefs import wavy_belief, with_evidence
from views import circle

from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners import PlannerSettings, planner_named
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.shapes.shape_coverage import ShapeCoverage
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.world.scene import Scene

SCENE = Scene()
BELIEF = with_evidence(wavy_belief(3, size=200))


class Given(ExpectedMarginalCoverage):
    """EMC of sets given by hand: for each shape, the cells that each view sees."""

    def __init__(self, sets, weight) -> None:
        super().__init__(None)
        visible = np.zeros((len(sets), len(sets[0]), weight.shape[1]), dtype=np.float32)
        for shape, views in enumerate(sets):
            for view, cells in enumerate(views):
                visible[shape, view, cells] = 1.0
        self.given = ShapeCoverage(visible, weight.astype(np.float32), weight.sum(axis=1))

    def coverage(self, belief, scene, views):
        return self.given


def random_sets(seed: int, shapes=5, views=6, cells=10):
    rng = np.random.default_rng(seed)
    sets = [[list(np.flatnonzero(rng.random(cells) < 0.35)) for _ in range(views)] for _ in range(shapes)]
    return sets, rng.integers(1, 6, (shapes, cells)).astype(float)


def rollout(objective, num=6, views=None, **changes) -> RolloutPlanner:
    settings = PlannerSettings(**{"planner": "rollout", "revisit_radius": 0.0, **changes})
    return RolloutPlanner(objective, SCENE, circle(views or ViewSpaceSettings(num_views=num)), settings)


@pytest.mark.parametrize("seed", range(12))
def test_it_takes_the_view_from_which_the_fewest_are_left_on_average(seed):
    sets, weight = random_sets(seed)
    target = 0.9
    decision = rollout(Given(sets, weight), target_coverage=target).decide(BELIEF)
    mean = [
        np.mean([oracles.greedy_views(of, w, target * sum(w), first) for of, w in zip(sets, weight, strict=True)])
        for first in range(6)
    ]
    (chosen,) = np.flatnonzero(decision.candidates.view_angle == decision.view_angle)
    assert mean[chosen] == pytest.approx(min(mean), abs=1e-6)
    equal = [view for view in range(6) if mean[view] < min(mean) + 1e-9]
    assert decision.utility == pytest.approx(max(decision.utilities[equal]))


def test_it_looks_further_than_greedy():
    """Greedy takes the middle, and needs three views; the two sides are enough."""
    sets = [[[1, 2, 3, 4], [0, 1, 2], [3, 4, 5]]]
    objective = Given(sets, np.ones((1, 6)))
    assert rollout(objective, num=3, target_coverage=1.0).decide(BELIEF).view_angle > 0.0
    assert objective.evaluate(BELIEF, SCENE, np.zeros(3)).argmax() == 0


def test_equal_views_to_go_leave_it_to_the_gain():
    sets = [[[0], [1, 2, 3], [0]]]
    decision = rollout(Given(sets, np.ones((1, 4))), num=3, target_coverage=1.0).decide(BELIEF)
    assert decision.utility == 3.0


def test_only_the_first_views_of_largest_gain_are_looked_ahead_from():
    sets, weight = random_sets(4)
    decision = rollout(Given(sets, weight), first_views=1).decide(BELIEF)
    assert decision.utility == decision.utilities.max()
    assert np.isnan(decision.runner_up)


def test_views_that_may_not_be_chosen_complete_no_cover():
    sets, weight = random_sets(2)
    blocked = ViewSpaceSettings(num_views=6, blocked_arcs=(0.5, 3.5))
    decision = rollout(Given(sets, weight), views=blocked).decide(BELIEF)
    assert decision.feasible.tolist() == [True, False, False, False, True, True]
    alone = [[of[view] for view in (0, 4, 5)] for of in sets]
    mean = [
        np.mean([oracles.greedy_views(of, w, 0.95 * sum(w), first) for of, w in zip(alone, weight, strict=True)])
        for first in range(3)
    ]
    chosen = [0, 4, 5].index(int(np.flatnonzero(decision.candidates.view_angle == decision.view_angle)[0]))
    assert mean[chosen] == pytest.approx(min(mean), abs=1e-6)


def test_at_the_deadline_the_shapes_done_so_far_decide(monkeypatch):
    """A clock that always strikes: the first block of shapes alone is looked ahead on."""
    sets, weight = random_sets(7, shapes=9)
    ticks = iter(range(1000))
    monkeypatch.setattr("nbv_planner.planning.planners.rollout.time.perf_counter", lambda: float(next(ticks)))
    decision = rollout(Given(sets, weight), deadline=0.5).decide(BELIEF)
    mean = [
        np.mean([oracles.greedy_views(of, w, 0.95 * sum(w), f) for of, w in zip(sets[:4], weight[:4], strict=True)])
        for f in range(6)
    ]
    (chosen,) = np.flatnonzero(decision.candidates.view_angle == decision.view_angle)
    assert mean[chosen] == pytest.approx(min(mean), abs=1e-6)


@pytest.mark.parametrize("changes", [{"planner": "rollout"}, {"objective": "EMC"}])
def test_the_seed_alone_decides_and_is_part_of_the_settings(changes):
    views = ViewSpaceSettings(num_views=40)
    one, same, other = (
        planner_named(PlannerSettings(**changes, planner_seed=seed), SCENE, circle(views)).decide(BELIEF)
        for seed in (0, 0, 5)
    )
    np.testing.assert_array_equal(one.utilities, same.utilities)
    assert one.view_angle == same.view_angle
    assert (one.utilities != other.utilities).any()
