"""What every member behind the seam must do, and a toy member, a box with a slot, through planner
and monitor.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pytest
from beliefs import belief_of, with_evidence

from nbv_planner.episode.judge import Judge
from nbv_planner.episode.records import Step
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.objectives import EXPECTED, ExpectedMarginalCoverage, Situation
from nbv_planner.planning.planners import (
    DecisionSettings,
    GreedyPlanner,
    RolloutPlanner,
    TourPlanner,
)
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
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.robust import RobustMapper
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.surface.coverage import POINTS, CoverageEstimate, CoverageTarget, PointSet
from nbv_planner.surface.seam import Hits, Hypotheses
from nbv_planner.volume.grid import FREE
from nbv_planner.volume.volume_surface import VolumeForm, VolumeModel, VolumeSurface
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import FreeRays, Scan
from nbv_planner.world.scene import BeamScene

SCENE = BeamScene(range_max=12.0)
AIM = CoverageTarget("length", 0.3)


def boundary(depth: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle, outward normal and length of the elements of a box of 6 m by 4 m with a slot of 1 m
    in its top.
    """
    corners = np.array(
        [
            (-3.0, -2.0),
            (3.0, -2.0),
            (3.0, 2.0),
            (0.5, 2.0),
            (0.5, 2.0 - depth),
            (-0.5, 2.0 - depth),
            (-0.5, 2.0),
            (-3.0, 2.0),
        ]
    )
    points, normals, size = [], [], []
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        number = 8
        part = (np.arange(number) + 0.5)[:, None] / number
        points.append(start + part * (end - start))
        along = (end - start) / np.linalg.norm(end - start)
        normals.append(np.tile([along[1], -along[0]], (number, 1)))
        size.append(np.full(number, np.linalg.norm(end - start) / number))
    return np.concatenate(points), np.concatenate(normals), np.concatenate(size)


@dataclass(frozen=True, eq=False)
class Box:
    """A member: a box whose slot is 1, 2 or 3 m deep; not star-shaped about its centre, and without
    a radius.
    """

    hits: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    shift: tuple[float, float] = (0.0, 0.0)
    turn: float = 0.0
    checks: tuple = ()
    drawable = True
    finite = True
    centre = (0.0, 0.0)

    @property
    def count(self) -> int:
        return len(self.hits)

    @property
    def by_noise(self) -> Box:
        return self

    def _placed(self, vectors: np.ndarray, shift=(0.0, 0.0)) -> np.ndarray:
        cos, sin = math.cos(self.turn), math.sin(self.turn)
        return vectors @ np.array([[cos, sin], [-sin, cos]]) + np.array(shift)

    @cached_property
    def elements(self):
        return [boundary(depth) for depth in (1.0, 2.0, 3.0)]

    def adding(self, hits, free=(), *, same_view=False) -> Box:
        return replace(self, hits=np.concatenate([self.hits, hits.points]))

    def hypotheses(self, aim, count, seed) -> Hypotheses:
        points = self._placed(np.stack([one[0] for one in self.elements]), self.shift)
        apart = np.linalg.norm(points[:, :, None] - self.hits, axis=-1).min(axis=2, initial=np.inf)
        normals = self._placed(np.stack([one[1] for one in self.elements]))
        return Hypotheses(
            points,
            normals,
            np.stack([one[2] for one in self.elements]),
            (apart <= 0.5).astype(float),
        )

    def outline(self):
        drawn = self.hypotheses(AIM, 3, 0)
        middle = Hypotheses(
            *(values[1:2] for values in (drawn.points, drawn.normals, drawn.size, drawn.seen))
        )
        return middle, np.full(len(middle.points[0]), 0.1)

    def visible(self, hypotheses, poses, scene, ground=None) -> np.ndarray:
        found = np.zeros(
            (len(hypotheses.points), len(poses), hypotheses.points.shape[1]), dtype=bool
        )
        for shape, (points, normals) in enumerate(
            zip(hypotheses.points, hypotheses.normals, strict=True)
        ):
            for view, pose in enumerate(poses):
                ahead, left = pose.to_camera(*points.T)
                bearing, distance = np.arctan2(left, ahead), np.hypot(ahead, left)
                order = np.argsort(bearing)
                half = 0.5 * hypotheses.size[shape][:, None] * normals[:, ::-1] * [-1.0, 1.0]
                met = cast_segments(points - half, points + half, pose, bearing[order])
                seen = np.zeros(len(points), dtype=bool)
                seen[order] = met >= distance[order] - 1e-6
                found[shape, view] = seen & scene.in_cone(bearing, distance)
                if ground is not None:
                    at = np.array([pose.x]), np.array([pose.y])
                    around = np.arctan2(points[:, 1], points[:, 0]), np.hypot(*points.T)
                    found[shape, view] &= ~ground.hidden(*at, *around)[0]
        return found

    def measured(self, tolerance: float, regions=None) -> float:
        mean, _ = self.outline()
        return float((mean.seen * mean.size).sum() / mean.size.sum())

    def keep_off(self, ground, most):
        return ground


def cast_segments(starts, ends, pose, bearings) -> np.ndarray:
    """Range of the first of some segments along each bearing, by the ray caster, one segment after
    the other.
    """
    ranges = np.full(len(bearings), np.inf)
    for start, end in zip(starts, ends, strict=True):
        segment = Contour(np.array([start[0], end[0]]), np.array([start[1], end[1]]))
        ranges = np.minimum(ranges, cast_beams(segment, pose, bearings))
    return ranges


class Counted:
    """Certificate of the toy: the part of its hypotheses that evidence has met."""

    target = 0.9

    def estimate(self, believed, taken, delta, margin=0.0) -> CoverageEstimate:
        drawn = believed.hypotheses(AIM, 3, 0)
        covered = (drawn.size * drawn.seen).sum(axis=1) / drawn.size.sum(axis=1)
        return CoverageEstimate.by_hypotheses(covered, self.target + margin, delta, AIM.tau)


def star(shift=(0.0, 0.0), turn: float = 0.0):
    """The other member: a wavy outline, moved and turned."""

    def mean(angle):
        return 5.0 + np.cos(3.0 * (angle - turn))

    belief = with_evidence(
        belief_of(lambda a: mean(a) - 0.2, lambda a: mean(a) + 0.2, size=360, hits=1)
    )
    return StarReader(SCENE)(replace(belief, centre=shift))


def volume(shift=(0.0, 0.0), turn: float = 0.0):
    """The member of any topology: hits from all around on the same outline, moved and turned."""
    angle = np.arange(720) * np.pi / 360.0
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    outline = (5.0 + np.cos(3.0 * angle))[:, None] * around
    cos, sin = math.cos(turn), math.sin(turn)
    axes = np.array([[cos, sin], [-sin, cos]])
    outline, origin = (one @ axes + np.array(shift) for one in (outline, 1.6 * outline))
    hits = Hits(outline, np.full(720, 0.01), origin, np.zeros(720, dtype=int))
    return VolumeSurface.blank(VolumeForm(radius=13.0)).adding(hits)


def box(shift=(0.0, 0.0), turn: float = 0.0):
    return Box(shift=shift, turn=turn)


def drawn_by(surface):
    """The likeliest surface: the same object however it is moved."""
    return surface.outline()[0]


VIEWS = Poses.from_polar(0.1 + np.arange(8) * 0.7, np.full(8, 10.0), np.linspace(-0.3, 0.3, 8))
MEMBERS = pytest.mark.parametrize("member", [star, box, volume])


def moved(views: Poses, shift, turn: float) -> Poses:
    return Poses.of(
        [CameraPose(0.0, 0.0, turn).then(view).relative_to(-shift[0], -shift[1]) for view in views]
    )


@MEMBERS
def test_what_is_visible_lies_in_field_and_range(member):
    surface = member()
    drawn = drawn_by(surface)
    visible = surface.visible(drawn, VIEWS, SCENE)
    assert visible.any(axis=2).all()
    for pose, seen in zip(VIEWS, visible[0], strict=True):
        x, y = pose.to_camera(*drawn.points[0][seen].T)
        assert (np.hypot(x, y) <= SCENE.range_max + 1e-9).all()
        assert (np.abs(np.arctan2(y, x)) <= 0.5 * SCENE.field_of_view + 1e-6).all()


@MEMBERS
@pytest.mark.parametrize(
    ("shift", "turn"), [((3.0, -2.0), 0.0), ((0.0, 0.0), math.radians(40.0)), ((1.0, 5.0), 2.0)]
)
def test_a_rigid_motion_of_scene_and_poses_changes_nothing(member, shift, turn):
    """Angles of star2d turn by whole steps of its grid. Cells of the volume stay: it is width."""
    turn = round(turn / math.radians(1.0)) * math.radians(1.0)
    plain, other = member(), member(shift, turn)
    looks = ((plain, VIEWS), (other, moved(VIEWS, shift, turn)))
    found = [one.visible(drawn_by(one), views, SCENE)[0] for one, views in looks]
    if member is volume:
        widths = [
            across(drawn_by(one), views, seen)
            for (one, views), seen in zip(looks, found, strict=True)
        ]
        np.testing.assert_allclose(*widths, atol=4.0 * plain.form.lattice.cell)
    else:  # an element at an edge of the field or behind a tip
        np.testing.assert_allclose(*(seen.sum(axis=1) for seen in found), atol=2)


def across(drawn, views: Poses, seen: np.ndarray) -> np.ndarray:
    """Length across the beams of what each view sees: a cell moves a silhouette by no more, however
    flat the wall.
    """
    beams = views.position[:, None] - drawn.points
    cosine = (beams * drawn.normals).sum(axis=2) / np.linalg.norm(beams, axis=2)
    return (drawn.size * cosine * seen).sum(axis=1)


@MEMBERS
def test_an_obstacle_less_hides_nothing(member):
    """One of two blocks beside the object goes."""
    surface = member()
    drawn = drawn_by(surface)
    none, one, two = (
        surface.visible(drawn, VIEWS, SCENE, ground) for ground in (None, blocked(1), blocked(2))
    )
    assert not (two & ~one).any()
    assert not (one & ~none).any()
    assert two.sum() < one.sum() < none.sum()


def blocked(number: int):
    """A hall of 40 m with blocks of 1 m in sight of the views."""
    cells = np.zeros((400, 400), dtype=np.int8)
    for view in range(number):
        x, y = (0.85 * VIEWS.position[view] * 10 + 200).astype(int)
        cells[y - 5 : y + 5, x - 5 : x + 5] = 100
    return ground_of(GroundSettings(), 19.0, OccupancyMap(cells, 0.1, -20.0, -20.0))


def test_the_walk_equals_the_ray_caster_on_star_shapes():
    surface = star()
    drawn = drawn_by(surface)
    points = drawn.points[0]
    contour, visible = Contour(*points.T), surface.visible(drawn, VIEWS, SCENE)[0]
    for pose, seen in zip(VIEWS, visible, strict=True):
        x, y = pose.to_camera(*points.T)
        bearing, distance = np.arctan2(y, x), np.hypot(x, y)
        order = np.argsort(bearing)
        met = np.empty(len(points))
        met[order] = cast_beams(contour, pose, bearing[order])
        expected = (met >= distance - 0.02) & SCENE.in_cone(bearing, distance)
        assert np.count_nonzero(seen != expected) <= 4, (
            "points beside a tip are as little sure as the tip"
        )


@MEMBERS
def test_a_hit_more_never_lowers_what_is_seen(member):
    """The hypothesis is the same before and after; hits lie on it."""
    surface = member()
    before = surface.hypotheses(POINTS, 3, 0)
    place, normal = before.points[0, 10], before.normals[0, 10]
    hit = Hits(place[None], np.array([0.05]), (place + 5.0 * normal)[None], np.zeros(1, dtype=int))
    after = surface.adding(hit)
    assert after.measured(1.0) >= surface.measured(1.0) - 1e-9
    if member is star:
        assert (after.met(before.shapes, POINTS).seen >= before.seen - 1e-9).all()
    elif member is volume:
        assert (after.met(before, POINTS.tau).seen >= before.seen).all()
    else:
        assert (after.hypotheses(POINTS, 3, 0).seen >= before.seen).all()


class BoxModel:
    """What conditions the toy on measurements, as a mapping asks for it."""

    solver, refits_all = "box", True

    def __init__(self) -> None:
        self.box = Box()

    @property
    def count(self) -> int:
        return len(self.box.hits)

    @property
    def points(self) -> np.ndarray:
        return self.box.hits

    def take(self, hits, free=(), *, same_view=False, last=True) -> None:
        self.box = self.box.adding(hits, free, same_view=same_view)

    def belief(self) -> Box:
        return self.box

    def copy(self) -> BoxModel:
        twin = BoxModel()
        twin.box = self.box
        return twin

    def reset(self) -> None:
        self.box = Box()

    def state(self):
        return {"hits": self.box.hits}

    def restore(self, state) -> None:
        self.box = Box(state["hits"])


MODELS = pytest.mark.parametrize(
    "model",
    [
        lambda: SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=360)),
        lambda: RobustMapper(PeriodicMatern(), MapperSettings(grid_size=360), RobustSettings()),
        BoxModel,
        lambda: VolumeModel(VolumeForm()),
    ],
    ids=["star2d", "robust", "box", "volume"],
)


def hits_at(angle, radius=5.0, turn: float = 0.0) -> tuple[Hits, FreeRays]:
    """Hits of a camera at 10 m that looks at the origin, and the rays that they are on; all turned
    about the origin.
    """
    angle = np.asarray(angle, dtype=float) + turn
    points = np.stack(polar_to_cartesian(angle, np.full(len(angle), radius)), axis=1)
    origin = np.array(polar_to_cartesian(turn, 10.0))
    beam = points - origin
    length = np.linalg.norm(beam, axis=1)
    number = len(angle)
    rays = FreeRays(origin, beam / length[:, None], length - 0.3, np.ones(number, dtype=bool))
    return (
        Hits(
            points, np.full(number, 0.1), np.tile(origin, (number, 1)), np.zeros(number, dtype=int)
        ),
        rays,
    )


@MODELS
def test_a_hit_more_never_lowers_what_a_model_has_measured(model):
    known = model()
    hits, rays = hits_at(np.linspace(-0.4, 0.4, 20))
    known.take(hits, [rays])
    before, count = known.belief(), known.count
    more, ray = hits_at([0.42])
    known.take(more, [ray], same_view=True)
    assert known.count == count + 1
    assert known.belief().measured(1.0) >= before.measured(1.0) - 1e-9
    np.testing.assert_allclose(np.linalg.norm(known.points, axis=1), 5.0, atol=0.1)


@MODELS
@pytest.mark.parametrize("steps", [90, -47])
def test_a_model_of_turned_hits_and_rays_is_the_model_turned(model, steps):
    """By whole steps of the grid of star2d; hits and free space are in the object frame and nothing
    else.
    """
    plain, turned = model(), model()
    for one, turn in ((plain, 0.0), (turned, math.radians(steps))):
        hits, rays = hits_at(np.linspace(-0.4, 0.4, 20), turn=turn)
        one.take(hits, [rays])
    cos, sin = math.cos(math.radians(steps)), math.sin(math.radians(steps))
    axes = np.array([[cos, sin], [-sin, cos]])
    if isinstance(plain, BoxModel):
        np.testing.assert_allclose(turned.points, plain.points @ axes, atol=1e-9)
        return
    if isinstance(plain, VolumeModel):  # cells do not turn: what was merged of hits does as a whole
        whole = [one.belief().cells.hits.points.sum(axis=0) for one in (plain, turned)]
        np.testing.assert_allclose(whole[1], whole[0] @ axes, atol=1e-6)
        free = [(one.belief().cells.state == FREE).sum() for one in (plain, turned)]
        assert abs(free[1] - free[0]) < 0.1 * (free[0] - VolumeForm().lattice.outside.sum())
        return
    for of in (lambda b: b.mean, lambda b: b.std, lambda b: b.evidence.free):
        np.testing.assert_allclose(
            of(turned.belief()), np.roll(of(plain.belief()), steps), atol=1e-6
        )


def slot_scan(pose: CameraPose) -> Scan:
    """What a camera at `pose` measures of the box whose slot is 2 m deep."""
    points, normals, size = boundary(2.0)
    half = 0.5 * size[:, None] * normals[:, ::-1] * [-1.0, 1.0]
    bearings = np.linspace(-0.4, 0.4, 81)
    ranges = cast_segments(points - half, points + half, pose, bearings)
    return Scan(-0.4, 0.01, ranges, 0.05, 12.0)


def test_a_box_with_a_slot_is_mapped_from_scans_by_the_core_of_the_mapper():
    """Scans, poses and a goal in, the belief of the toy out; its hits are on the box, in the slot
    too.
    """
    measurement = MeasurementSettings(noise_std=0.01)
    checks = ModelChecks(
        SCENE, measurement.noise, CheckSettings(checks=False), AccuracySettings(accuracy=False)
    )
    setup = MapperSetup(
        SCENE,
        measurement.noise,
        measurement.radius_margin,
        SearchSettings(),
        20,
        frozenset({"field_of_view", "range_min", "range_max"}),
        None,
        lambda: ScanMapping(BoxModel(), SCENE, measurement, checks),
    )
    core = MapperCore(
        setup, ScanMatcher(MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.0))
    )
    for number in range(1, 9):
        stamp, pose = number * 10**9, CameraPose.from_polar(0.1 + 0.785 * number, 10.0)
        core.goal(stamp, pose)
        for moment in (1, 3):
            core.pose(stamp + moment, pose)
        core.scan(stamp + 2, slot_scan(pose), "camera")
        core.pose(stamp + 4, pose)
        while (job := core.job()) is not None:
            assert core.take(job())
    believed = core.known.belief
    assert core.known.progress.views == 8
    assert isinstance(believed, Box)
    x, y = believed.hits.T
    assert len(x) > 200
    on_edge = (np.abs(np.abs(x) - 3.0) < 0.01) | (np.abs(np.abs(y) - 2.0) < 0.01)
    in_slot = (np.abs(x) < 0.51) & (y > -0.01)
    assert (on_edge | in_slot).all()
    assert (in_slot & ~on_edge).any()
    assert believed.measured(1.0) > 0.8


@pytest.mark.parametrize("kind", [GreedyPlanner, RolloutPlanner, TourPlanner])
def test_a_box_with_a_slot_is_planned_and_ended_without_a_change_elsewhere(kind):
    space = CircleViewSpace(ViewSpaceSettings(num_views=24), SCENE.view_distance)
    names = {GreedyPlanner: "greedy", RolloutPlanner: "rollout", TourPlanner: "tour"}
    settings = DecisionSettings(planner=names[kind], objective=EXPECTED, deadline=60.0)
    planner = kind(ExpectedMarginalCoverage(AIM, 3, 0), SCENE, space, settings)
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=20), Counted())
    surface, visited, ended = Box(), [], None
    while ended is None:
        decision = planner.decide(surface, visited=visited)
        assert decision is not None
        visited.append(decision.view)
        truth = surface.hypotheses(AIM, 3, 0)
        seen = surface.visible(truth, Poses.of([decision.view]), SCENE)[1, 0]
        points = truth.points[1][seen]
        surface = surface.adding(
            Hits(points, np.full(len(points), 0.01), np.zeros_like(points), np.zeros(len(points)))
        )
        ended = monitor.after_view(surface, 0.0, visited)
    assert ended.reason in (TerminationReason.COVERED, TerminationReason.MAX_VIEWS)
    assert len(visited) < 20
    value = ExpectedMarginalCoverage(AIM, 3, 0).evaluate(
        Situation(surface, SCENE, space.candidates, Poses.of(visited))
    )
    assert value.max() < 5.0


class BoxTruth:
    """The box whose slot is 2 m deep, as the judge knows it: points alone."""

    def __init__(self) -> None:
        self.surface = Box()
        self.drawn = self.surface.hypotheses(AIM, 3, 0)

    def __len__(self) -> int:
        return self.drawn.points.shape[1]

    def visible(self, views):
        return self.surface.visible(self.drawn, views, SCENE)[1]

    def outline(self, spacing: float) -> PointSet:
        return PointSet(self.drawn.points[1], self.drawn.size[1])

    def measured(self, belief, tau) -> PointSet:
        return PointSet(belief.hits, np.ones(len(belief.hits)))

    def errors(self, belief):
        return {}

    def calibration(self, belief):
        return None


@dataclass
class World:
    """A camera that is at its goal at once, and a mapper of what it meets of the box whose slot is
    2 m deep.
    """

    surface: Box = field(default_factory=Box)
    new: Hits = field(default_factory=Hits.none)
    time: int = 0

    def now(self) -> int:
        self.time += 10**9
        return self.time

    def scan(self, goal):
        return [goal.pose]

    def map(self, scans) -> Box:
        drawn = self.surface.hypotheses(AIM, 3, 0)
        seen = self.surface.visible(drawn, Poses.of(scans), SCENE)[1, 0]
        points = drawn.points[1][seen]
        number = np.zeros(len(points))
        self.new = Hits(points, number + 0.01, np.zeros_like(points), number)
        self.surface = self.surface.adding(self.new)
        return self.surface


def test_a_box_with_a_slot_goes_through_loop_journal_judge_and_picture():
    space = CircleViewSpace(ViewSpaceSettings(num_views=24), SCENE.view_distance)
    settings = DecisionSettings(planner="rollout", objective=EXPECTED, deadline=60.0)
    planner = RolloutPlanner(ExpectedMarginalCoverage(AIM, 3, 0), SCENE, space, settings)
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=20), Counted())
    alone = SessionSettings(wait_for_start=False, goal_subscribers=0)
    core, world = PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), alone), World()
    core.inputs.pose = CameraPose.from_polar(0.0, 10.0)
    events.take_surface(core, world.surface, 0)
    judge, taken = Judge(BoxTruth(), space, tau=AIM.tau), []
    for goal in views(core, world):
        taken.append(goal.pose)
        one = goal.decision
        judge.add(
            Step(
                goal.pose, one.utility, one.candidates, one.utilities, world.surface, world.new, 1.0
            )
        )
    ended = core.episode.termination
    assert ended.reason is TerminationReason.COVERED
    assert list(core.episode.visited) == taken
    assert 2 <= len(taken) < 20
    assert core.episode.estimate.mean >= 0.9
    again, _ = from_records(json.loads(json.dumps([to_record(fact, 0) for fact in core.facts])))
    assert again.termination.reason is ended.reason
    assert [(pose.x, pose.y) for pose in again.visited] == [(pose.x, pose.y) for pose in taken]
    check_judged(judge)


def check_judged(judge: Judge) -> None:
    """What was measured is true, and nearly all; there are no errors of a radius. The figure shows
    every hit.
    """
    last = judge.views[-1]
    assert last.completeness == pytest.approx(
        judge.complete @ judge.outline.length / judge.outline.length.sum()
    )
    assert last.completeness > judge.views[0].completeness
    assert (last.accuracy, last.coverage > 0.8, math.isnan(last.rmse), math.isnan(last.iou)) == (
        1.0,
        True,
        True,
        True,
    )
    assert judge.seen.mean() == last.coverage
    record = judge.record({}, 0, Termination(TerminationReason.COVERED, {}, "done"))
    assert record.calibration is None
    figure = draw_figure(episode_frames(judge.steps, judge.views, None, SCENE, "a box")[-1])
    world = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    np.testing.assert_allclose(world["mean"], judge.steps[-1].belief.outline()[0].points[0])
    assert len(world["hits"]) + len(world["hits of the last view"]) == len(
        judge.steps[-1].belief.hits
    )
