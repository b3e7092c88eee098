"""The listener hears the real nodes, also when it starts late, and survives what cannot be used."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import (
    bent,
    header,
    malformed_poses,
    malformed_scans,
    over_the_wire,
    pose_msg,
    view_pose,
)
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import String

from nbv_planner.clouds.surface_messages import contour_from_msg
from nbv_planner.episode.messages import (
    ITERATION,
    STATUS,
    decision_from_values,
    status_from_msg,
)
from nbv_planner.episode.run_info import parameters_from_msg
from nbv_planner.errors import InputRejectedError
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.listener import EpisodeListener, listening
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.view.live import LiveEpisode, taken_views, true_coverage
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.objects import SurfacePoints, parse_object, surface_points
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
STAR = parse_object("polygon:star", SCENE)
POINTS = surface_points(STAR, SCENE.pixel_size)


def start_nodes(world) -> None:
    world.start(DepthCamera, num_beams=61, object="polygon:star")
    world.start(SurfaceMapperNode, grid_size=120)
    world.start(NbvPlannerNode, num_views=24, max_views=3, objective="U", certify=False)


def listener(world, live: LiveEpisode) -> EpisodeListener:
    return world._add(
        EpisodeListener("listener", live, context=world.context, use_global_arguments=False)
    )


def done(live: LiveEpisode) -> bool:
    status = live.view().status
    return status is not None and status.state == "DONE"


def test_episode_of_real_nodes(world):
    live = LiveEpisode()
    listener(world, live)
    start_nodes(world)
    world.spin_until(lambda: done(live) and not live.view().waits_for, "the end")
    world.spin_until(lambda: len(live.view().last_hits), "the last hits")
    world.spin_until(lambda: "star" in live.view().title, "the parameters of all nodes")
    view = live.view()
    assert view.title == "polygon:star · greedy · U"
    assert view.status.termination.reason.value == "MAX_VIEWS"
    assert [logged.decision.round for logged in view.views] == [1, 2, 3]
    assert all(len(logged.candidates.angle) == 24 for logged in view.views)
    assert len(view.earlier_hits) > 10
    assert view.goal is not None
    assert view.goal.view_angle == pytest.approx(
        view.views[-1].decision.view_angle % 6.283185307, abs=1e-6
    )
    assert len(true_coverage(view)) == 4
    assert len(view.truth) == len(POINTS)


def test_started_late_it_hears_what_is_latched(world):
    heard = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched())
    start_nodes(world)
    world.spin_until(lambda: heard and "MAX_VIEWS" in heard[-1].message, "the end")
    live = LiveEpisode()
    listener(world, live)
    world.spin_until(
        lambda: done(live) and not live.view().waits_for and live.view().truth, "what is latched"
    )
    world.spin_until(
        lambda: len(live.view().views) == 3 and live.view().views[-1].candidates is not None,
        "all decisions",
    )
    view = live.view()
    assert len(taken_views(view)) == 3
    assert view.belief.hits.sum() > 10
    assert len(true_coverage(view)) == 4


def test_a_thread_listens_in_a_namespace_and_ends(world):
    live = LiveEpisode()
    with listening(live, "arm", world.domain):
        publisher = world.peer.create_publisher(PoseStamped, "/arm/camera_pose", qos.reliable())
        world.spin_until(publisher.get_subscription_count, "the listener")
        # Again and again: the subscription is of best effort.
        world.spin_until(
            lambda: publisher.publish(pose_msg(view_pose(1.0), 5)) or live.view().pose, "the pose"
        )
    assert live.view().pose.view_angle == pytest.approx(1.0)


def test_what_cannot_be_used_is_left_out_and_the_rest_goes_on(world):
    live = LiveEpisode()
    node = listener(world, live)
    camera = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=21))
    scan = conversions.scan_to_msg(camera.scan(view_pose(1.0), 1, 0), header("camera", 10))
    poses = world.speaker(PoseStamped, "camera_pose")
    scans = world.speaker(LaserScan, "scan")
    info = world.speaker(String, "run_info", qos.latched())
    bad = [
        ("camera_pose", poses, *entry)
        for entry in malformed_poses(pose_msg(view_pose(1.0))).values()
    ]
    bad += [("scan", scans, *entry) for entry in malformed_scans(scan).values()]
    for text in (
        "",
        "[",
        "nodes: 3",
        "nodes: {nbv_planner: {radius_min: -1.0}}",
        "a" * (1 << 21),
        "{[: :",
    ):
        bad.append(("run_info", info, "run_info", String(data=text)))
    for topic, say, reason, msg in bad:
        if reason != "frame":  # the viewer does not know which frame is meant
            node._rejected.clear()
            # Again and again: the subscription is of best effort.
            said = partial(
                lambda say, msg, name: say(msg) or name in node._rejected,
                say,
                msg,
                f"{topic} {reason}",
            )
            world.spin_until(said, f"{topic}: {reason}")
    assert len(live.view().waits_for) == 5
    world.spin_until(lambda: poses(pose_msg(view_pose(2.0), 6)) or live.view().pose, "a good pose")


def test_scene_and_title_come_from_run_info():
    text = (
        "nodes: {nbv_planner: {radius_min: 1.0, range_max: 12.0, objective: U, planner: greedy},"
        " surface_mapper: {noise_std: 0.4}, depth_camera: {object: 'square:width=8'}}"
    )
    live = LiveEpisode()
    live.take("run_info", String(data=text))
    assert (live.scene, live.measurement.noise_std) == (Scene(radius_min=1.0, range_max=12.0), 0.4)
    assert live.view().title == "square:width=8 · greedy · U"
    assert (
        parameters_from_msg(String(data="nodes: {nbv_planner: {objective: U}}")).title
        == "greedy · U"
    )


def test_poses_of_what_carries_the_camera_are_shown_as_those_of_the_camera(world):
    live = LiveEpisode()
    listener(world, live)
    poses, info = (
        world.speaker(PoseStamped, "camera_pose"),
        world.speaker(String, "run_info", qos.latched()),
    )
    info(String(data="nodes: {surface_mapper: {mount_x: 0.5, mount_yaw: 1.0}}"))
    carried = PoseSettings(mount_x=0.5, mount_yaw=1.0)
    expected = carried.camera(view_pose(2.0))

    def shown() -> bool:
        poses(pose_msg(view_pose(2.0), 6))
        pose = live.view().pose
        return pose is not None and (pose.x, pose.y) == pytest.approx((expected.x, expected.y))

    world.spin_until(shown, "the camera")


@pytest.mark.parametrize(
    "key", ["round", "goal_stamp", "view_angle", "utility", "coverage_estimate"]
)
@pytest.mark.parametrize("value", [None, "x", ""])
def test_iteration_without_a_usable_value_is_refused(key, value):
    values = {
        "round": 1,
        "goal_stamp": 5,
        "view_angle": 1.0,
        "utility": 2.0,
        "runner_up": float("nan"),
        "margin": 0.1,
        "planning_milliseconds": 1.0,
        "coverage_estimate": 0.0,
    }
    good = conversions.status_message("i", DiagnosticStatus.OK, "", values)
    live = LiveEpisode()
    live.take(ITERATION, over_the_wire(good))
    changed = {
        k: v
        for k, v in {**values, "round": 2, "goal_stamp": 9, key: value}.items()
        if v is not None
    }
    if key == "coverage_estimate" and value is None:
        assert np.isnan(
            decision_from_values({k: str(v) for k, v in changed.items()}).coverage_estimate
        )
        return
    with pytest.raises(InputRejectedError):
        live.take(ITERATION, conversions.status_message("i", DiagnosticStatus.OK, "", changed))
    assert [logged.decision.round for logged in live.view().views] == [1]


SAID = {"state": "MOVING", "views": 2, "coverage_estimate": 0.25, "elapsed": 1.0}
CERTIFIED = {
    "coverage_mean": 0.5,
    "coverage_lower": 0.4,
    "coverage_upper": 0.75,
    "coverage_probability": 0.0,
}


@pytest.mark.parametrize(
    ("more", "estimate", "interval"),
    [({}, 0.25, None), (CERTIFIED, 0.5, (0.4, 0.75))],
    ids=["by the band", "by posterior shapes"],
)
def test_coverage_is_that_of_the_posterior_shapes_where_they_are_asked(more, estimate, interval):
    found = status_from_msg(
        conversions.status_message("s", DiagnosticStatus.OK, "m", {**SAID, **more})
    )
    certified = found.estimate and (found.estimate.lower, found.estimate.upper)
    assert (found.coverage_estimate, certified) == (estimate, interval)
    values = {
        "round": 1,
        "goal_stamp": 5,
        "view_angle": 1.0,
        "utility": 2.0,
        "runner_up": 0.0,
        "margin": 0.1,
        "planning_milliseconds": 1.0,
        "coverage_estimate": 0.25,
        **more,
    }
    decided = decision_from_values({key: str(value) for key, value in values.items()})
    assert (decided.coverage_estimate, decided.estimate) == (estimate, found.estimate)


@pytest.mark.parametrize(
    ("said", "level"), [({}, 0.95), ({"coverage_level": 0.8}, 0.8)], ids=["not given", "given"]
)
def test_the_level_of_the_interval_is_that_of_the_message(said, level):
    found = status_from_msg(
        conversions.status_message("s", DiagnosticStatus.OK, "m", {**SAID, **CERTIFIED, **said})
    )
    assert found.estimate.summary == f"50.0% ({level:.0%}: 40 to 75)"


@pytest.mark.parametrize("value", ["x", float("nan"), 1.5])
def test_a_status_with_an_unusable_estimate_counts_without_it(value):
    values = {**SAID, **CERTIFIED, "coverage_lower": value}
    live = LiveEpisode()
    with pytest.raises(InputRejectedError, match="estimated coverage"):
        live.take(STATUS, conversions.status_message("s", DiagnosticStatus.OK, "m", values))
    status = live.view().status
    assert (status.state, status.coverage_estimate, status.estimate) == ("MOVING", 0.25, None)


def test_truth_reads_back_and_a_bad_one_is_refused():
    good = conversions.contour_to_msg(POINTS, header("object"))
    found = contour_from_msg(over_the_wire(good))
    np.testing.assert_allclose(found.radius, POINTS.radius, rtol=1e-6)
    for angle, radius in (
        (POINTS.angle[::-1], POINTS.radius),
        (POINTS.angle, -POINTS.radius),
        (POINTS.angle, POINTS.radius * np.nan),
        (POINTS.angle[:2], POINTS.radius[:2]),
    ):
        with pytest.raises(InputRejectedError):
            contour_from_msg(
                conversions.contour_to_msg(SurfacePoints(angle, radius), header("object"))
            )
    with pytest.raises(InputRejectedError):
        contour_from_msg(bent(good, data=good.data[:-1]))
    with pytest.raises(InputRejectedError):
        contour_from_msg(PointCloud2())
