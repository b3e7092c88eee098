"""The rollout planner: the fewest views to go, over all shapes."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from beliefs import wavy_belief, with_evidence
from views import circle, views_at

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Situation
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.surface.coverage import ShapeCoverage
from nbv_planner.world.scene import Scene

SCENE = Scene()
BELIEF = with_evidence(wavy_belief(3, size=200))


class Given(ExpectedMarginalCoverage):
    """EMC of sets given by hand: for each shape, the cells that each view sees."""

    def __init__(self, sets, weight) -> None:
        super().__init__()
        visible = np.zeros((len(sets), len(sets[0]), weight.shape[1]), dtype=np.float32)
        for shape, views in enumerate(sets):
            for view, cells in enumerate(views):
                visible[shape, view, cells] = 1.0
        self.given = ShapeCoverage(visible, weight.astype(np.float32), weight.sum(axis=1))

    def coverage(self, situation):
        return self.given


def random_sets(seed: int, shapes=5, views=6, cells=10):
    rng = np.random.default_rng(seed)
    sets = [
        [list(np.flatnonzero(rng.random(cells) < 0.35)) for _ in range(views)]
        for _ in range(shapes)
    ]
    return sets, rng.integers(1, 6, (shapes, cells)).astype(float)


def rollout(objective, num=6, views=None, **changes) -> RolloutPlanner:
    settings = PlannerSettings(**{"planner": "rollout", "revisit_radius": 0.0, **changes})
    return RolloutPlanner(
        objective, SCENE, circle(views or ViewSpaceSettings(num_views=num)), settings
    )


@pytest.mark.parametrize("seed", range(12))
def test_it_takes_the_view_from_which_the_fewest_are_left_on_average(seed):
    sets, weight = random_sets(seed)
    target = 0.9
    decision = rollout(Given(sets, weight), target_coverage=target).decide(BELIEF)
    mean = [
        np.mean(
            [
                oracles.greedy_views(of, w, target * sum(w), first)
                for of, w in zip(sets, weight, strict=True)
            ]
        )
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
    assert objective.evaluate(None).argmax() == 0


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
        np.mean(
            [
                oracles.greedy_views(of, w, 0.95 * sum(w), first)
                for of, w in zip(alone, weight, strict=True)
            ]
        )
        for first in range(3)
    ]
    chosen = [0, 4, 5].index(
        int(np.flatnonzero(decision.candidates.view_angle == decision.view_angle)[0])
    )
    assert mean[chosen] == pytest.approx(min(mean), abs=1e-6)


def test_at_the_deadline_the_shapes_done_so_far_decide(monkeypatch):
    """A clock that always strikes: the first block of shapes alone is looked ahead on."""
    sets, weight = random_sets(7, shapes=9)
    ticks = iter(range(1000))
    monkeypatch.setattr(
        "nbv_planner.planning.planners.rollout.time.perf_counter", lambda: float(next(ticks))
    )
    decision = rollout(Given(sets, weight), deadline=0.5).decide(BELIEF)
    mean = [
        np.mean(
            [
                oracles.greedy_views(of, w, 0.95 * sum(w), f)
                for of, w in zip(sets[:4], weight[:4], strict=True)
            ]
        )
        for f in range(6)
    ]
    (chosen,) = np.flatnonzero(decision.candidates.view_angle == decision.view_angle)
    assert mean[chosen] == pytest.approx(min(mean), abs=1e-6)


def drawn(**changes) -> RolloutPlanner:
    chosen = PlannerSettings(
        **{"planner": "rollout", "shapes": 6, "deadline": 600.0, "revisit_radius": 0.0, **changes}
    )
    return planner_named(chosen, SCENE, circle(ViewSpaceSettings(num_views=24)))


@pytest.mark.parametrize("seed", range(6))
def test_a_refined_view_leaves_the_fewest_views_among_those_around_the_best_candidate(seed):
    """Each of them as a 25th candidate: once taken it adds nothing, so that the others complete the
    cover.
    """
    belief = with_evidence(wavy_belief(seed, size=200))
    coarse, fine = drawn().decide(belief), drawn(refine=True).decide(belief)
    around = coarse.view_angle + np.linspace(-0.5, 0.5, 11) * 2 * np.pi / 24

    def to_go(angle):
        views = views_at(np.append(coarse.candidates.view_angle, angle % (2 * np.pi)))
        coverage = drawn()._objective.coverage(Situation(drawn()._reader(belief), SCENE, views))
        return [
            oracles.greedy_views(
                [np.flatnonzero(view) for view in visible], unseen, sum(unseen) - 0.05 * points, 24
            )
            for visible, unseen, points in zip(
                coverage.visible, coverage.unseen, coverage.points, strict=True
            )
        ]

    mean = [np.mean(to_go(angle)) for angle in (coarse.view_angle, *around)]
    chosen = [coarse.view_angle, *around][int(np.argmin(np.round(mean, 6)))]
    assert abs(oracles.signed(fine.view_angle - chosen)) < 1e-9
    values, _ = drawn().evaluate(belief, views_at([fine.view_angle]))
    assert fine.utility == pytest.approx(values[0])


@pytest.mark.parametrize("planner", ["rollout", "greedy"])
def test_a_first_candidate_that_was_asked_for_is_not_refined(planner):
    """For some of the candidates there would be a better view nearby."""
    belief = with_evidence(wavy_belief(0, size=200))
    for number in range(0, 24, 3):
        told = drawn(
            planner=planner, objective="EMC", shapes=12, refine=True, first_candidate=number
        ).decide(belief)
        assert told.view_angle == told.candidates.view_angle[number]


def test_refinement_waits_for_nothing_after_the_deadline(monkeypatch):
    ticks = iter(range(1000))
    coarse = drawn(shapes=4).decide(BELIEF)
    monkeypatch.setattr(
        "nbv_planner.planning.planners.rollout.time.perf_counter", lambda: float(next(ticks))
    )
    assert drawn(shapes=4, refine=True, deadline=0.5).decide(BELIEF).view_angle == coarse.view_angle


@pytest.mark.parametrize("changes", [{"planner": "rollout"}, {"objective": "EMC"}])
def test_the_seed_alone_decides_and_is_part_of_the_settings(changes):
    views = ViewSpaceSettings(num_views=40)
    one, same, other = (
        planner_named(
            PlannerSettings(**changes, planner_seed=seed, deadline=60.0), SCENE, circle(views)
        ).decide(BELIEF)
        for seed in (0, 0, 5)
    )
    np.testing.assert_array_equal(one.utilities, same.utilities)
    assert one.view_angle == same.view_angle
    assert (one.utilities != other.utilities).any()
