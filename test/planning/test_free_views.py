"""A view space off the view circle: a list of poses at different distances that do not look at the
centre.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from journaled import restarted
from oracles import signed
from views import at, circle

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import objective_named, planner_named
from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.objectives import ObjectiveInfo
from nbv_planner.planning.planners import GreedyPlanner, RandomPlanner, UniformPlanner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import Exclusion, ViewSpace, path_length_through
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings, State
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.thesis import TwoPhasePlanner
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import BeamScene, Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.world.visibility import observe

SCENE, SECOND = BeamScene(range_max=14.0), 1_000_000_000
POSES = [
    CameraPose(
        (9.0 + number % 4) * math.cos(0.7 * number),
        (9.0 + number % 4) * math.sin(0.7 * number),
        0.7 * number + math.pi + 0.1 * (number % 3 - 1),
    )
    for number in range(9)
]


class FreePoses(ViewSpace):
    """Any poses, from one to another in a straight line."""

    def __init__(self, poses: list[CameraPose]) -> None:
        super().__init__(Poses.of(list(poses)))

    def path_length(self, start: CameraPose, ends: Poses) -> np.ndarray:
        x, y = ends.position.T
        return np.hypot(x - start.x, y - start.y)


class WidestAhead:
    """Width of the band nearest to the camera; works from anywhere."""

    info = ObjectiveInfo("WA", "widest_ahead", "nnynnn")

    def evaluate(self, situation) -> np.ndarray:
        angle, lower, upper = situation.surface.band()
        return np.interp(situation.views.view_angle, angle, upper - lower)


class Robot:
    """Simulated camera and mapper about a session, in one process."""

    def __init__(self, cls=GreedyPlanner, blocked: int | None = None, **settings) -> None:
        self.space, self.blocked = FreePoses(POSES), blocked
        planner = cls(
            WidestAhead(), SCENE, self.space, PlannerSettings(**{"travel_weight": 0.01, **settings})
        )
        monitor = TerminationMonitor(TerminationSettings(max_views=6, stall_views=0))
        waits = SessionSettings(
            wait_for_start=False,
            goal_subscribers=0,
            goal_timeout=5.0,
            goal_retries=0,
            return_home=True,
            home_angle=2.9,
        )
        self.session = PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), waits)
        self.camera = SimulatedCamera(
            parse_object("ellipse:a=6,b=4", SCENE), SCENE, SensorSettings()
        )
        self.mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=200))
        checks = ModelChecks(SCENE, MeasurementSettings().noise, CheckSettings())
        self.mapping = ScanMapping(self.mapper, SCENE, MeasurementSettings(), checks)
        self.matcher = ScanMatcher(
            MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.0)
        )
        self.pose, self.matches, self.now, self.surface = POSES[0], [], SECOND, 0

    def step(self) -> None:
        """The camera jumps to the goal, unless that is blocked; everybody hears of what it sees
        there.
        """
        session = self.session
        session.inputs.pose, session.inputs.pose_stamp = self.pose, self.now
        events.take_surface(session, self.mapper.belief(), self.surface)
        target = events.update(session, self.now)
        if target is not None:
            self.matcher.set_goal(target.stamp, target.pose)
        self.now += SECOND
        aim = session.episode.target
        if aim is not None and (
            self.blocked is None or aim.pose != self.space.candidates[self.blocked]
        ):
            self.pose = aim.pose
        self.matcher.add_pose(self.now, self.pose)
        self.matcher.add_scan(self.now, self.camera.scan(self.pose, len(session.episode.visited)))
        found = self.matcher.take()
        if found:
            self.mapping.add(found, -1)
            self.matches += found
            self.surface = self.now

    def run(self) -> PlannerCore:
        for _ in range(80):
            if self.session.state is State.DONE:
                return self.session
            self.step()
        pytest.fail(f"still {self.session.state.value}")


def test_candidates_are_the_poses_that_were_given():
    for pose, view in zip(POSES, (pose for pose in POSES), strict=True):
        assert (view.x, view.y) == pytest.approx((pose.x, pose.y))
        assert signed(view.yaw - pose.yaw) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("cls", [GreedyPlanner, UniformPlanner, RandomPlanner])
def test_an_episode_goes_from_pose_to_pose_to_its_end(cls):
    robot = Robot(cls)
    run = robot.run()
    assert run.episode.termination.reason is TerminationReason.MAX_VIEWS
    assert len(set(run.episode.visited)) == len(run.episode.visited) == 6
    candidates = [robot.space.candidates[number] for number in range(len(POSES))]
    assert set(run.episode.visited) <= set(candidates)
    # Each scan counts with the pose that it was taken from, and measures the surface.
    assert tuple(match.pose for match in robot.matches[:6]) == run.episode.visited
    hits = robot.mapper.measurements
    radius = parse_object("ellipse:a=6,b=4", SCENE).radius(hits.angle)
    assert np.median(np.abs(hits.radius - radius)) < 0.4
    trips = [math.hypot(b.x - a.x, b.y - a.y) for a, b in pairwise(run.episode.visited)]
    assert path_length_through(run.planner.views, run.episode.visited) == pytest.approx(sum(trips))
    # Home is the candidate nearest to the angle.
    assert "back at the home view" in run.episode.termination.detail
    assert robot.pose == candidates[4]


def test_a_view_that_is_not_reached_is_left_out_and_no_other_one():
    free = Robot().run()
    blocked = Robot().space.nearest(free.episode.visited[1])
    robot = Robot(blocked=blocked)
    run = robot.run()
    assert (run.episode.unreached_views, len(run.episode.visited)) == (1, 6)
    assert set(robot.space.unreachable) == {blocked}
    assert free.episode.visited[1] not in run.episode.visited


def test_its_state_is_restored_with_goal_and_views():
    robot = Robot()
    while len(robot.session.episode.visited) < 2 or robot.session.episode.goal is None:
        robot.step()
    other = restarted(robot.session, Robot().session)
    assert np.array_equal(
        Poses.of(other.episode.visited).polar, Poses.of(robot.session.episode.visited).polar
    )
    goal, mine = other.episode.goal, robot.session.episode.goal
    assert goal.pose == mine.pose
    assert goal.decision.margin == mine.decision.margin
    views = [
        [one.view, *map(one.candidates.__getitem__, range(4))]
        for one in (goal.decision, mine.decision)
    ]
    assert np.array_equal(*(Poses.of(poses).polar for poses in views))


def test_what_needs_the_circle_is_refused_elsewhere():
    space, scene = FreePoses(POSES), SCENE
    with pytest.raises(
        SettingError, match="objective IOA: needs candidate views on the view circle of 10 m"
    ):
        planner_named(PlannerSettings(planner="greedy"), scene, space)
    with pytest.raises(SettingError, match="planner hybrid: needs"):
        planner_named(PlannerSettings(planner="hybrid"), scene, space)
    with pytest.raises(SettingError, match="planner two_phase: needs"):
        TwoPhasePlanner(objective_named("CS"), WidestAhead(), scene, space, PlannerSettings())
    with pytest.raises(
        SettingError, match="objective I: needs candidate views on the view circle of 12 m"
    ):
        planner_named(
            PlannerSettings(planner="greedy", objective="I"), Scene(view_distance=12.0), circle()
        )


def test_a_revisit_is_judged_by_the_way_to_it():
    space = FreePoses(
        [CameraPose(10.0, 0.0, 3.0), CameraPose(10.0, 0.5, 3.0), CameraPose(12.0, 0.0, 3.0)]
    )
    taken = space.candidates[0]
    assert space.excluded(0.0, [taken], 0.1).tolist() == [Exclusion.REVISIT, Exclusion.REVISIT, 0]
    assert not space.excluded(0.0, [taken], 0.0).any()


def test_views_see_from_where_they_stand():
    """A view at another distance sees what it does on a circle of that distance; one that is
    turned, a part of it.
    """
    points = surface_points(parse_object("polygon:star", SCENE), 0.1)
    near = observe(points.angle, points.radius, [1.3], Scene(view_distance=9.0))[0]
    free = observe(
        points.angle, points.radius, Poses.of([CameraPose.from_polar(1.3, 9.0)]), Scene()
    )[0]
    np.testing.assert_array_equal(free, near)
    wide = observe(points.angle, points.radius, [1.3], Scene(field_of_view=3.0))[0]
    for turn in (-0.5, 0.1, 0.4):
        view = CameraPose.from_polar(1.3, 10.0, turn)
        x, y = view.to_camera(
            points.radius * np.cos(points.angle), points.radius * np.sin(points.angle)
        )
        inside = np.abs(np.arctan2(y, x)) <= 0.5 * Scene().field_of_view
        seen = observe(points.angle, points.radius, Poses.of([view]), Scene())[0]
        np.testing.assert_array_equal(seen, wide & inside)
    assert at(1.3) == CameraPose.from_polar(1.3, 10.0)


def test_a_judge_adds_up_what_is_seen_and_travelled():
    shape, space = parse_object("ellipse:a=6,b=4", SCENE), FreePoses(POSES)
    judge = EpisodeJudge(StarTruth(surface_points(shape, 0.1), SCENE, shape), space)
    records = [judge.add_view(space.candidates[number], 0.0, 0.0, None) for number in (0, 3, 6)]
    assert records[-1].coverage > records[0].coverage > 0.0
    assert records[-1].travelled == pytest.approx(
        sum(
            math.hypot(b.x - a.x, b.y - a.y)
            for a, b in ((POSES[0], POSES[3]), (POSES[3], POSES[6]))
        )
    )
    assert all(record.greedy_gain >= record.new_points for record in records)
