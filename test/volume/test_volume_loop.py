"""The implicit surface from scans to the end of an episode, by what every surface goes through."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nbv_planner.episode.judge import Judge
from nbv_planner.episode.records import Step
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.objectives import EXPECTED, ExpectedMarginalCoverage
from nbv_planner.planning.planners import DecisionSettings, RolloutPlanner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.report.figures.episode_content import episode_frames
from nbv_planner.report.figures.episode_figure import draw_figure
from nbv_planner.session import events
from nbv_planner.session.journal import from_records, to_record
from nbv_planner.session.loop import views
from nbv_planner.session.mapper_core import MapperCore, MapperSetup
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.session.surface_map import map_from_records
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.surface.coverage import CoverageTarget, PointSet
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.volume_surface import (
    VolumeCertificate,
    VolumeForm,
    VolumeModel,
    VolumeSurface,
)
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings, Zone
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import BeamScene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = BeamScene(radius_min=0.1)
AIM = CoverageTarget("length", 0.3)
MEASUREMENT = MeasurementSettings(noise_std=0.1)
U = Contour(
    np.array([-4, 4, 4, 2.2, 2.2, -2.2, -2.2, -4.0]), np.array([-4, -4, 4, 4, 0.6, 0.6, 4, 4])
)


def mapping() -> ScanMapping:
    checks = ModelChecks(
        SCENE, MEASUREMENT.noise, CheckSettings(checks=False), AccuracySettings(accuracy=False)
    )
    return ScanMapping(VolumeModel(VolumeForm()), SCENE, MEASUREMENT, checks)


def camera() -> SimulatedCamera:
    return SimulatedCamera(U, SCENE, SensorSettings(noise_std=0.1))


def outline_of_u(spacing: float) -> PointSet:
    corners = np.stack([U.x, U.y], axis=1)
    points, length = [], []
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        number = math.ceil(math.dist(start, end) / spacing)
        part = (np.arange(number) + 0.5)[:, None] / number
        points.append(start + part * (end - start))
        length.append(np.full(number, math.dist(start, end) / number))
    return PointSet(np.concatenate(points), np.concatenate(length))


def inside_u(points: np.ndarray) -> np.ndarray:
    x, y = points.T
    return (np.abs(x) < 4.0) & (np.abs(y) < 4.0) & ~((np.abs(x) < 2.2) & (y > 0.6))


def test_a_u_is_mapped_from_scans_by_the_core_of_the_mapper_and_restored_from_its_journal():
    setup = MapperSetup(
        SCENE,
        MEASUREMENT.noise,
        MEASUREMENT.radius_margin,
        SearchSettings(),
        20,
        frozenset({"field_of_view", "range_min", "range_max"}),
        None,
        mapping,
    )
    matcher = ScanMatcher(MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.0))
    core, sensor, records = MapperCore(setup, matcher), camera(), []
    for number in range(1, 13):
        stamp, pose = number * 10**9, CameraPose.from_polar(0.1 + 0.524 * number, 10.0)
        core.goal(stamp, pose)
        for moment in (1, 3):
            core.pose(stamp + moment, pose)
        core.scan(stamp + 2, sensor.scan(pose, number), "camera")
        core.pose(stamp + 4, pose)
        while (job := core.job()) is not None:
            update = job()
            assert core.take(update)
            more, whole = update.records()
            records = more if whole else [*records, *more]
    believed = core.known.belief
    assert isinstance(believed, VolumeSurface)
    assert core.known.progress.views == 12
    assert believed.count > 400
    assert believed.measured(0.3) > 0.9
    body = inside_u(believed.form.lattice.centres)
    for solid in believed.solids(4, 0):
        assert np.mean(solid & body) > 0.9 * np.mean(solid | body)
    read = json.loads(json.dumps(records))
    again = map_from_records(read, mapping())
    np.testing.assert_array_equal(again.belief.cells.state, believed.cells.state)
    np.testing.assert_array_equal(again.belief.solids(4, 0), believed.solids(4, 0))


@dataclass
class Truth:
    """The U as the judge knows it: points alone."""

    points: PointSet = field(default_factory=lambda: outline_of_u(0.1))

    def __len__(self) -> int:
        return len(self.points.points)

    def visible(self, poses: Poses) -> np.ndarray:
        found = np.zeros((len(poses), len(self)), dtype=bool)
        for seen, pose in zip(found, poses, strict=True):
            x, y = pose.to_camera(*self.points.points.T)
            bearing, distance = np.arctan2(y, x), np.hypot(x, y)
            order = np.argsort(bearing)
            met = np.empty(len(x))
            met[order] = cast_beams(U, pose, bearing[order])
            seen[:] = (met >= distance - 1e-6) & SCENE.in_cone(bearing, distance)
        return found

    def outline(self, spacing: float) -> PointSet:
        return outline_of_u(spacing)

    def measured(self, belief, tau) -> PointSet:
        mean, _ = belief.outline()
        met = mean.seen[0] * mean.size[0] > 0.0
        return PointSet(mean.points[0][met], mean.size[0][met])

    def errors(self, belief):
        return {}

    def calibration(self, belief):
        return None


@dataclass
class World:
    """A camera that is at its goal at once, and the mapping of its scans."""

    known: ScanMapping = field(default_factory=mapping)
    sensor: SimulatedCamera = field(default_factory=camera)
    new: Hits = field(default_factory=Hits.none)
    time: int = 0
    number: int = 0

    def now(self) -> int:
        self.time += 10**9
        return self.time

    def scan(self, goal):
        self.number += 1
        scan = self.sensor.scan(goal.pose, self.number)
        return [MatchedScan(self.number, scan, goal.pose, view=self.number)]

    def map(self, scans) -> VolumeSurface:
        self.new = self.known.add(scans, self.number - 1).hits
        return self.known.belief()


def test_a_u_goes_through_loop_journal_judge_and_picture():
    space = CircleViewSpace(ViewSpaceSettings(num_views=60), SCENE.view_distance)
    settings = DecisionSettings(planner="rollout", objective=EXPECTED, deadline=60.0)
    planner = RolloutPlanner(ExpectedMarginalCoverage(AIM, 16, 0), SCENE, space, settings)
    certificate = VolumeCertificate(SCENE, AIM, space.candidates, 0.9)
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=40), certificate)
    alone = SessionSettings(wait_for_start=False, goal_subscribers=0)
    world = World()
    core = PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), alone)
    core.inputs.pose = CameraPose.from_polar(0.0, 10.0)
    first = [MatchedScan(0, camera().scan(core.inputs.pose, 0), core.inputs.pose)]
    events.take_surface(core, world.map(first), 0)
    judge, taken = Judge(Truth(), space, tau=AIM.tau), []
    for goal in views(core, world):
        taken.append(goal.pose)
        one = goal.decision
        belief = world.known.belief()
        values = (one.utility, one.candidates, one.utilities, belief, world.new, 1.0)
        judge.add(Step(goal.pose, *values))
    ended = core.episode.termination
    assert ended.reason is TerminationReason.COVERED
    assert 3 <= len(taken) < 20
    told = json.loads(json.dumps([to_record(fact, 0) for fact in core.facts]))
    again, _ = from_records(told)
    assert again.termination.reason is ended.reason
    assert [(pose.x, pose.y) for pose in again.visited] == [(pose.x, pose.y) for pose in taken]
    last = judge.views[-1]
    assert last.completeness > 0.85
    assert last.accuracy > 0.98
    assert last.completeness > judge.views[0].completeness
    assert math.isnan(last.rmse)
    record = judge.record({}, 0, Termination(TerminationReason.COVERED, {}, "done"))
    assert record.calibration is None
    figure = draw_figure(episode_frames(judge.steps, judge.views, None, SCENE, "a U")[-1])
    assert len(figure.axes) == 3, "no panel of the radius"
    drawn = [line for line in figure.axes[0].lines if line.get_label() in ("mean", "guess")]
    edges = {
        (line.get_label(), *map(tuple, pair))
        for line in drawn
        for pair in pairwise(line.get_xydata())
    }
    bodies = judge.steps[-1].belief.likeliest.bodies
    assert len(edges) == sum(len(body.points) for body in bodies), "each edge once"
    measured = sum(label == "mean" for label, *_ in edges)
    assert measured == sum(body.measured.sum() for body in bodies)
    world_lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    number = sum(len(step.hits) for step in judge.steps)
    assert len(world_lines["hits"]) + len(world_lines["hits of the last view"]) == number


def kept_off(known: ScanMapping) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the cells of a ground of 40 m, and which of them the object may occupy."""
    empty = OccupancyMap(np.zeros((400, 400), dtype=np.int8), 0.1, -20.0, -20.0)
    ground = known.belief().keep_off(ground_of(GroundSettings(), 19.0, empty), 8.0)
    axis = (np.arange(400) + 0.5) * 0.1 - 20.0
    places = np.stack(np.meshgrid(axis, axis), axis=-1)
    return places, ground.cells & np.uint8(Zone.OBJECT) != 0


def test_what_the_object_may_occupy_is_kept_off_the_ground():
    """All of the ball before a hit; later what some sample holds, and the true object is in it."""
    known = mapping()
    places, barred = kept_off(known)
    assert barred[np.hypot(*places.T).T < 7.9].all()
    whole, inner = barred.sum(), inside_u(places.reshape(-1, 2)).reshape(barred.shape)
    sensor = camera()
    for number, angle in enumerate((1.57, 3.14, 4.71, 0.0), start=1):
        pose = CameraPose.from_polar(angle, 10.0)
        known.add_view(sensor.scan(pose, number), pose)
    places, barred = kept_off(known)
    assert barred.sum() < 0.9 * whole
    assert (inner & ~barred).sum() < 0.01 * inner.sum()
    x, y = known.belief().cells.hits.mean.T
    column, row = ((one + 20.0) / 0.1 for one in (x, y))
    assert barred[row.astype(int), column.astype(int)].all()
