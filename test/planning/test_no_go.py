"""Candidate views on a ground: which are barred and why, how far the way is, and goals that are
withdrawn.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from beliefs import belief_of
from views import at, circle

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import (
    CircleViewSpace,
    Exclusion,
    ViewSpaceSettings,
    excluded_numbers,
    excluded_text,
    path_length_through,
    set_ground,
    zones_text,
)
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings, State
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

EAST = "9,-1 12,-1 12,1 9,1"
SECOND = 1_000_000_000


def space(polygons: str = "", num_views: int = 8, **given):
    views = circle(ViewSpaceSettings(num_views=num_views))
    set_ground(views, GroundSettings(no_go_polygons=polygons, **given))
    return views


def test_without_any_setting_the_circle_has_no_ground():
    assert space().ground is None
    assert space(EAST).ground is not None
    assert space(robot_radius=0.1).ground is not None


def test_a_candidate_in_a_polygon_is_barred_and_counted_in_words():
    excluded = space(EAST).excluded(0.0)
    assert excluded.tolist() == [Exclusion.POLYGON, 0, 0, 0, 0, 0, 0, 0]
    assert excluded_numbers(excluded)["excluded_polygon"] == 1
    assert excluded_text(excluded) == "1 in a no-go polygon"
    assert "excluded_object" not in excluded_numbers(excluded)


def test_a_candidate_that_the_object_may_reach_is_barred_by_the_upper_bound():
    views = space(robot_radius=0.5)
    belief = belief_of(
        3.0, lambda grid: np.where(np.abs(np.angle(np.exp(1j * grid))) < 0.5, 9.5, 5.0)
    )
    views.update(belief, None, 20.0)
    assert views.excluded(0.0).tolist() == [Exclusion.OBJECT, 0, 0, 0, 0, 0, 0, 0]
    views.update(belief, None, 8.0)
    # of the same belief
    assert views.excluded(0.0).tolist() == [Exclusion.OBJECT, 0, 0, 0, 0, 0, 0, 0]
    views.update(belief_of(3.0, 9.5), None, 8.0)
    assert not views.excluded(0.0).any()


def test_the_way_is_that_of_the_ground_and_nearest_that_of_the_circle():
    views = space(robot_radius=0.5, num_views=4)
    # nothing is known of the object
    assert views.ground_path_length(at(0.0), views.candidates)[2] == pytest.approx(20.0)
    views.update(belief_of(3.0, 4.2), at(0.0), 8.0)
    disc = views.ground.disc
    around = 2.0 * math.sqrt(100.0 - disc**2) + disc * (math.pi - 2.0 * math.acos(disc / 10.0))
    assert disc == pytest.approx(5.0, abs=1e-3)
    np.testing.assert_allclose(
        views.ground_path_length(at(0.0), views.candidates),
        [0.0, 200.0**0.5, around, 200.0**0.5],
        rtol=1e-9,
    )
    assert views.path_length(at(0.0), views.candidates)[2] == pytest.approx(10.0 * math.pi)
    assert path_length_through(views, [at(0.0), at(math.pi / 2), at(math.pi)]) == pytest.approx(
        2.0 * 200.0**0.5
    )


def test_what_is_cut_off_from_where_the_camera_stands_is_barred_and_blamed():
    views = circle(ViewSpaceSettings(num_views=8))
    settings = GroundSettings(no_go_polygons="-30,4 30,4 30,5 -30,5")  # beyond both ends of the map
    views.ground = ground_of(
        settings, 10.0, OccupancyMap(np.zeros((300, 300), np.int8), 0.1, -15.0, -15.0)
    )
    views.update(belief_of(2.0, 3.0), at(math.pi / 2), 8.0)
    assert np.flatnonzero(views.excluded(0.0) == 0).tolist() == [1, 2, 3]
    assert (views.excluded(0.0)[[0, 4, 5, 6, 7]] == Exclusion.CUT_OFF).all()
    assert zones_text(views) == "of 8 candidates 5 cut off by polygon 1"
    views.update(belief_of(2.0, 3.0), at(1.5 * math.pi), 8.0)
    assert (views.excluded(0.0)[[1, 2, 3]] == Exclusion.CUT_OFF).all()
    # A way that has been driven is as long as it was, whatever is between by now.
    assert path_length_through(views, [at(0.0), at(math.pi / 2)]) == pytest.approx(5.0 * math.pi)


def session(views, **settings) -> PlannerCore:
    greedy = planner_named(PlannerSettings(planner="greedy", objective="UP"), Scene(), views)
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=0))
    waits = SessionSettings(wait_for_start=False, goal_subscribers=0, **settings)
    return PlannerCore(greedy, monitor, ArrivalSettings(settle_time=0.0), waits)


def wide_at(angle: float, reach: float = 8.0):
    return belief_of(
        5.0, lambda grid: np.where(np.abs(np.angle(np.exp(1j * (grid - angle)))) < 0.5, reach, 6.5)
    )


def feed(run: PlannerCore, belief, stamp: int, pose: CameraPose | None = None) -> None:
    run.inputs.belief, run.inputs.belief_stamp = belief, stamp
    if pose is not None:
        run.inputs.pose, run.inputs.pose_stamp = pose, stamp


def test_a_goal_that_the_map_comes_to_bar_is_withdrawn_with_its_reason_and_another_is_asked_for():
    views = space("-60,-60 -59,-60 -59,-59")
    run = session(views)
    feed(run, wide_at(0.0), 0, at(math.pi))
    first = events.update(run, 0)
    assert first.decision.view_angle == 0.0
    assert events.update(run, SECOND) is None
    run.planner.views.ground = ground_of(GroundSettings(no_go_polygons=EAST), 10.0)
    second = events.update(run, 2 * SECOND)
    assert second.decision.view_angle != 0.0
    assert run.episode.withdrawn_views == 1
    assert (
        run.episode.withdrawal == "withdrew the view at x 10 m, y 0 m: it is now in a no-go polygon"
    )
    assert run.episode.unreached_views == 0
    assert second.decision.excluded[0] == Exclusion.POLYGON


def test_a_goal_that_the_object_may_have_come_to_reach_is_withdrawn_unless_the_camera_has_arrived():
    def under_way(arrived: bool) -> PlannerCore:
        run = session(circle(ViewSpaceSettings(num_views=8)))
        run.planner.views.ground = ground_of(GroundSettings(robot_radius=2.5), 10.0)
        feed(run, wide_at(0.0, 7.0), -3, at(math.pi))
        assert events.update(run, 0).decision.view_angle == 0.0
        if arrived:
            run.inputs.pose, run.inputs.pose_stamp = at(0.0), SECOND
            events.update(run, SECOND)
        feed(run, wide_at(0.0, 7.9), -2)  # without a scan from the goal
        events.update(run, 2 * SECOND)
        return run

    run = under_way(arrived=False)
    why = run.episode.withdrawal.rpartition(" is now ")[2]
    assert (run.episode.withdrawn_views, why) == (1, "where the object may be")
    run = under_way(arrived=True)
    assert (run.episode.withdrawn_views, run.episode.goal.decision.view_angle, run.state) == (
        0,
        0.0,
        State.MEASURING,
    )


def test_nowhere_to_go_names_the_zone_to_blame():
    run = session(space("-50,-50 50,-50 50,50 -50,50"))
    feed(run, wide_at(0.0), 0, at(0.0))
    assert events.update(run, 0) is None
    assert run.episode.termination.reason is TerminationReason.NO_REACHABLE_VIEW
    assert run.episode.termination.figures["excluded_polygon"] == 8.0
    said = "of 8 candidates 8 in polygon 1; the robot stands at x 10 m, y 0 m, in a no-go polygon"
    assert said in run.episode.termination.detail


def run_of(**groups) -> Simulation:
    simulation = Simulation(
        EpisodeConfig(planner=PlannerSettings(planner="greedy", objective="U"), **groups)
    )
    list(islice(simulation.run(), 12))
    return simulation


def test_a_simulated_episode_never_goes_into_a_polygon():
    simulation = run_of(
        ground=GroundSettings(no_go_polygons="8,-6 14,-6 14,6 8,6", robot_radius=0.2)
    )
    views = Poses.of([step.view for step in simulation.judge.steps])
    x, y = views.position.T
    assert len(views) > 5
    assert not ((x > 7.8) & (np.abs(y) < 6.2)).any()


def test_the_thesis_protocol_has_no_robot():
    with pytest.raises(SettingError, match="the thesis protocol has no robot"):
        Simulation(EpisodeConfig(protocol="thesis", ground=GroundSettings(robot_radius=0.5)))


def test_a_ground_about_a_centre_that_was_found_is_the_same_ground():
    views = CircleViewSpace(ViewSpaceSettings(num_views=8), 10.0, centre=(2.0, 0.0))
    set_ground(views, GroundSettings(no_go_polygons="11,-1 14,-1 14,1 11,1"))
    assert views.excluded(0.0).tolist() == [Exclusion.POLYGON, 0, 0, 0, 0, 0, 0, 0]
