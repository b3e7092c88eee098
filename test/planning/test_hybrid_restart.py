"""The account of the hybrid planner survives the process: an episode goes on as if nobody had
died.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from journaled import records_of, restarted
from views import all_at, at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import StateFileError
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.session import events, targets
from nbv_planner.session.journal import from_records
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements, unseen_beyond
from nbv_planner.thesis.regret import RegretLedger, Round
from nbv_planner.world.objects import bisected_surface_points, parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

SCENE, SECOND, VIEWS = Scene(), 1_000_000_000, 9
TIGHT = {
    "hybrid_factor": 1.0,
    "hybrid_share": 1.0,
    "shapes": 2,
    "shape_grid": 90,
    "shape_prior": "fixed",
}
OBJECT = "polygon:star"


def session(**changes) -> PlannerCore:
    chosen = PlannerSettings(**{"planner": "hybrid", **TIGHT, **changes})
    planner = planner_named(chosen, SCENE, circle(ViewSpaceSettings(num_views=60)))
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=VIEWS))
    settings = SessionSettings(wait_for_start=False, goal_subscribers=0)
    return PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), settings)


class World:
    """Object, camera and mapper, which live on when the planner does not."""

    def __init__(self) -> None:
        points = bisected_surface_points(parse_object(OBJECT, SCENE), SCENE.pixel_size)
        self._angle, self._radius = points.angle, points.radius
        self._mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=200))
        self._clock = itertools.count(SECOND, SECOND)

    def now(self) -> int:
        return next(self._clock)

    def belief(self) -> SurfaceBelief:
        return self._mapper.belief().as_transmitted()

    def take(self, view: float) -> None:
        seen = observe(self._angle, self._radius, view, SCENE)[0]
        data = Measurements(self._angle[seen], self._radius[seen], np.full(seen.sum(), 0.1))
        self._mapper.add(data, free=[unseen_beyond(data.angle, data.radius, at(view), SCENE)])


def decide(run: PlannerCore, world: World):
    """The next goal; the camera stands where it may."""
    now = world.now()
    run.inputs.pose, run.inputs.pose_stamp = CameraPose.from_polar(0.0, SCENE.view_distance), now
    events.take_surface(run, world.belief(), now)
    return events.update(run, now)


def take(run: PlannerCore, world: World) -> None:
    """The camera goes to the present goal and the mapper maps it; the next decision is yet to
    come.
    """
    goal, now = run.episode.goal, world.now()
    world.take(goal.decision.view_angle)
    run.inputs.pose, run.inputs.pose_stamp = goal.pose, now
    events.take_surface(run, world.belief(), now)
    events.advance(run, now)
    assert run.episode.visited[-1] == goal.decision.view


def played(cut=lambda view, moment: False) -> list[tuple]:
    """All decisions of an episode; the planner is started again wherever `cut` says so."""
    run, world, decisions = session(), World(), []
    for view in range(VIEWS):
        decisions.append(plain(decide(run, world).decision))
        if cut(view, "under way"):
            run = restarted(run, session())
        take(run, world)
        if cut(view, "taken"):
            run = restarted(run, session())
    return decisions


def plain(decision) -> tuple:
    """The whole decision; arrays by their bytes."""
    values = [
        *{**vars(decision.candidates), **vars(decision), "candidates": None}.values(),
        decision.decided_by,
    ]
    return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)


@pytest.fixture(scope="module")
def uncut():
    return played()


def deciders(decisions) -> list[str]:
    return [decision[-1] for decision in decisions]


def test_the_settings_are_so_tight_that_both_decide(uncut):
    assert {"U", "rollout"} == set(deciders(uncut))


@pytest.mark.parametrize("moment", ["under way", "taken"])
@pytest.mark.parametrize("view", range(VIEWS - 1))
def test_cut_at_any_view_the_episode_goes_on_bit_for_bit(uncut, view, moment):
    assert played(lambda at, when: (at, when) == (view, moment)) == uncut


def test_cut_at_every_view_it_goes_on_bit_for_bit(uncut):
    assert played(lambda at, when: True) == uncut


def halfway() -> PlannerCore:
    """Two views taken, a third one under way."""
    run, world = session(), World()
    for _ in range(2):
        decide(run, world)
        take(run, world)
    decide(run, world)
    return run


def test_the_state_holds_a_round_for_each_view_and_for_the_goal_under_way():
    run = halfway()
    assert len(run.episode.rounds) == 3
    assert all(0.0 < played.taken <= played.best for played in run.episode.rounds)
    other = restarted(run, session())
    assert other.episode.rounds == run.episode.rounds
    other.planner.ledger.enter([], at(1.0), Round(5.0, 5.0))
    other.inputs = run.inputs
    assert targets.ask(other, 99).planner.ledger.rounds(other.episode.visited) == list(
        run.episode.rounds[:2]
    )


BAD = {
    "not a number": [10.0, None],
    "infinite": ["inf", 1.0],
    "negative": [10.0, -1.0],
    "text": ["10", "1"],
    "worth more than the best": [10.0, 11.0],
    "true": [True, False],
}


@pytest.mark.parametrize("name", BAD)
def test_a_round_that_cannot_be_is_refused(name):
    records = records_of(halfway())
    decided = next(record for record in records if record["fact"] == "Decided")
    decided["round"] = dict(zip(("best", "taken"), BAD[name], strict=True))
    with pytest.raises(StateFileError, match=r"fact .*round") as caught:
        from_records(records)
    assert caught.value.reason == "content"


def test_a_planner_without_an_account_has_no_rounds():
    run, world = session(planner="rollout"), World()
    decide(run, world)
    assert run.episode.rounds == (None,)


def test_restored_rounds_stand_beside_those_of_other_episodes():
    account = RegretLedger()
    account.enter([], at(1.0), Round(2.0, 1.0))
    account.restore(all_at([3.0, 4.0]), [Round(5.0, 4.0), None])
    assert account.rounds(all_at([1.0])) == [Round(2.0, 1.0)]
    assert account.rounds(all_at([3.0, 4.0])) == [Round(5.0, 4.0), None]
    with pytest.raises(ValueError, match="argument"):
        account.restore(all_at([3.0, 4.0]), [None])
