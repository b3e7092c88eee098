"""Views of a depth camera that do not fit together are found, and those that do are not accused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_mapping import SolidMapping, SpaceChecks
from nbv_planner.episode.solid.solid_settings import SolidConfig, SolidScene, SpaceMapperParameters
from nbv_planner.errors import MeasurementError
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.surface.checks import Level
from nbv_planner.surface.displacement import _of_cameras, _sums
from nbv_planner.volume.agreement import _levers
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import RangeNoise

RADIUS, SENSOR, NOISE = 0.25, DepthSensor(), RangeNoise(0.0, 0.004)
SCENE = SolidScene(radius_max=RADIUS, view_distance=1.7 * RADIUS).seen_by(SENSOR)
VIEWS = on_sphere(12, 1.7 * RADIUS)


def turned(degrees):
    return Rotation.from_rotvec(np.radians(degrees)).as_matrix()


def honest(position, rotation, scan, number):
    return position, rotation, scan


def aside(position, rotation, scan, number):
    """The camera sits 3 cm to the left of where it is said to."""
    return position + rotation @ [0.0, 0.03, 0.0], rotation, scan


def askew(position, rotation, scan, number):
    """It looks 5 degrees to the left."""
    return position, rotation @ turned([0.0, 0.0, 5.0]), scan


def scaled(position, rotation, scan, number):
    return position, rotation, dataclasses.replace(scan, ranges=1.1 * scan.ranges)


def drifting(position, rotation, scan, number):
    return position + np.array([0.004, 0.004, 0.0]) * number, rotation, scan


def looked(camera, pose, number, lie, seed=0):
    """The scan of a view, as one tells of it who lies so."""
    position, rotation = Poses.of([pose]).position[0], Poses.of([pose]).rotation[0]
    scan = camera.scan(position, rotation, np.random.default_rng([seed, number]))
    position, rotation, scan = lie(position, rotation, scan, number)
    return MatchedScan(number, scan, CameraPose.in_space(position, rotation), view=number)


def blank():
    return SolidMapping(SCENE, NOISE, SpaceMapperParameters().bounds)


def mapped(object, lie, seed=0, views=12):
    camera = SimulatedDepthCamera(solid_named(object, RADIUS), SENSOR, NOISE)
    mapping = blank()
    for number in range(views):
        mapping.add([looked(camera, VIEWS[number], number, lie, seed)], number - 1)
    return mapping


def checks_of(mapping):
    return {check.name: check for check in mapping.belief().checks}


@pytest.mark.parametrize("object", ["box", "torus", "mug", "bracket", "chair"])
def test_views_of_one_solid_fit_together(object):
    checks = checks_of(mapped(object, honest))
    assert list(checks) == ["outliers", "overlap", "bias"]
    assert {check.level for check in checks.values()} == {Level.GOOD}


@pytest.mark.parametrize("object", ["box", "bracket"])
@pytest.mark.parametrize("lie", [aside, askew, scaled])
def test_views_with_a_hand_eye_error_or_a_wrong_scale_do_not_fit(object, lie):
    checks = checks_of(mapped(object, lie))
    assert Level.FAILED in (checks["bias"].level, checks["overlap"].level)


@pytest.mark.parametrize("object", ["box", "bracket"])
def test_views_of_a_camera_that_drifts_do_not_fit(object):
    assert checks_of(mapped(object, drifting))["overlap"].level is Level.FAILED


def test_with_too_few_views_nothing_is_said_and_nothing_before_the_first_hit():
    assert blank().belief().checks == ()
    checks = checks_of(mapped("box", honest, views=2))
    assert checks["overlap"].level is checks["bias"].level is Level.UNTESTED


def test_what_is_kept_of_views_is_restored_and_what_is_none_is_refused():
    mapping = mapped("box", aside, views=7)
    other, state = blank(), mapping.state()
    other.restore(state)
    assert other.belief().checks == mapping.belief().checks != ()
    twin = mapping.copy()
    twin.reset()
    assert twin.belief().checks == ()
    assert len(mapping.state()["check_places"]) == 7
    for name, wrong in (
        ("check_places", state["check_places"][:3]),
        ("check_views", state["check_views"] + 1),
        ("check_hits", -state["check_hits"]),
        ("check_axes", state["check_axes"] * np.nan),
    ):
        checks = SpaceChecks()
        with pytest.raises(MeasurementError):
            checks.restore(state | {name: wrong})
        assert len(checks.state()["check_views"]) == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_hits_move_with_a_camera_as_the_derivatives_say(seed, dimension):
    rng = np.random.default_rng(seed)
    views = 7
    cameras = (
        on_sphere(views, 2.0)
        if dimension == 3
        else Poses.on_circle(rng.uniform(0.0, 2.0 * np.pi, views), 2.0)
    )
    points, normals = rng.normal(0.0, 0.5, (2, views, dimension))
    by = np.concatenate([normals, _levers(points, normals)], axis=1)
    numbers, size = by.shape[1], np.arange(views)
    off = rng.normal(0.0, 1.0, views)
    sums = _sums(by, off, size, np.ones(views, dtype=bool), views)[:, None]
    found = _of_cameras(sums, cameras.position, cameras.rotation)[:, 0]
    slope = np.empty((views, numbers))
    for axis, error in enumerate(1e-6 * np.eye(numbers)):
        moved = displaced(cameras, points, error), displaced(cameras, points, -error)
        slope[:, axis] = ((moved[0] - moved[1]) * normals).sum(axis=1) / 2e-6
    expected = np.concatenate(
        [
            np.stack([np.ones(views), off], axis=1),
            slope,
            slope * off[:, None],
            (slope[:, :, None] * slope[:, None]).reshape(views, -1),
        ],
        axis=1,
    )
    assert found == pytest.approx(expected, abs=1e-6)


def displaced(cameras, points, error):
    """Where the hit of each camera is said to be if place and attitude of all are off."""
    dimension = points.shape[1]
    turn = error[dimension:] if dimension == 3 else [0.0, 0.0, *error[dimension:]]
    wrong = Rotation.from_rotvec(turn).as_matrix()[:dimension, :dimension]
    local = np.einsum("vij,vi->vj", cameras.rotation, points - cameras.position)
    local = local @ wrong.T + error[:dimension]
    return cameras.position + np.einsum("vij,vj->vi", cameras.rotation, local)


class Told(SolidEpisode):
    """An episode whose mapper hears of each view what a lie makes of it."""

    def __init__(self, config, lie):
        super().__init__(config)
        scene = config.scene.seen_by(config.sensor)
        self.mapping = SolidMapping(scene, config.noise.ranges, SpaceMapperParameters().bounds)
        self.lie = lie

    def scan(self, goal):
        number = len(self.judge.views)
        return [looked(self._camera, goal.pose, number, self.lie, self.judge.config.camera.seed)]

    def map(self, scans):
        self.mapping.add(scans, scans[0].view - 1)
        self.model = self.mapping.model
        return self.mapping.belief()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "reason"),
    [(honest, TerminationReason.COVERED), (scaled, TerminationReason.DOUBTFUL)],
)
def test_what_ends_covered_in_an_honest_world_ends_doubtful_in_one_that_lies(lie, reason):
    values = {"radius_max": RADIUS, "object": "solid:bracket", "planner": "greedy"}
    values |= {"num_views": 40, "max_views": 16, "doubt_views": 1}
    config = SolidConfig.of({"nodes": values})
    episode = Told(config, lie)
    views = [view.pose for view in episode.run()]
    assert episode.termination.reason is reason
    if lie is honest:
        plain = SolidEpisode(SolidConfig.of({"nodes": {**values, "max_views": 3}}))
        assert views[:3] == [view.pose for view in plain.run()]
    else:
        assert "cannot be confirmed" in episode.termination.detail
