"""While a long update or decision is under way, services, parameters and status go on; no scan is
lost or doubled.
"""

from __future__ import annotations

import threading

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import wavy_belief
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.parameter_client import AsyncParameterClient
from ros_world import as_received, header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import SetBool, Trigger

from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.planning.planners import Planner
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.star2d.mapper import SurfaceMapper
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
MS = 1_000_000


class Gate:
    """Makes a method last until it is let go."""

    def __init__(self, monkeypatch, cls: type, name: str) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        real = getattr(cls, name)

        def held(*args, **kwargs):
            self.entered.set()
            self.open.wait()
            return real(*args, **kwargs)

        monkeypatch.setattr(cls, name, held)


@pytest.fixture
def gate(monkeypatch):
    made = []

    def make(cls: type, name: str) -> Gate:
        made.append(Gate(monkeypatch, cls, name))
        return made[-1]

    yield make
    for one in made:
        one.open.set()


class Camera:
    """Publishes scans with their poses, and hears the surfaces."""

    def __init__(self, world, beams: int = 31) -> None:
        self.world = world
        self.camera = SimulatedCamera(
            parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=beams)
        )
        self.surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
        self.send_scan, self.send_pose = (
            world.speaker(LaserScan, "scan"),
            world.speaker(PoseStamped, "camera_pose"),
        )
        self.sent = 0

    def at(self, number: int) -> tuple[CameraPose, Scan]:
        pose = view_pose(0.37 * number)
        return pose, self.camera.scan(pose, number)

    def measured(self, number: int) -> Hits:
        pose, scan = self.at(number)
        return scan_to_hits(scan, as_received(pose), SCENE, MeasurementSettings()).hits

    def take(self, number: int, mapper: SurfaceMapperNode) -> None:
        """Take scans all around the object, each heard before the next."""
        for _ in range(number):
            self.sent += 1
            (pose, scan), before = self.at(self.sent), mapper.core.matcher.matches
            self.send_scan(conversions.scan_to_msg(scan, header("camera", self.sent * MS)))
            self.send_pose(pose_msg(pose, self.sent * MS))
            self.world.spin_until(
                lambda b=before: mapper.core.matcher.matches > b, "the scan to be heard"
            )


def stamp_of(msg: PointCloud2) -> int:
    return to_nanoseconds(msg.header.stamp)


def parameter_of(world, node, name: str):
    client = AsyncParameterClient(world.peer, node.get_name())
    world.spin_until(client.services_are_ready, "the parameter services")
    (value,) = world.result(client.get_parameters([name]), "the parameter").values
    return value


def numbers(world, mapper, *names: str) -> list[int]:
    values = world.diagnosis(mapper).values
    return [int(values[name]) for name in names]


# --- the mapper


def test_parameters_diagnostics_and_reset_answer_while_an_update_is_under_way(world, gate):
    mapper = world.start(SurfaceMapperNode, grid_size=100, robust=False, integrate="always")
    camera, update = Camera(world), gate(SurfaceMapper, "belief")
    camera.take(1, mapper)
    update.entered.wait()
    assert parameter_of(world, mapper, "grid_size").integer_value == 100
    assert numbers(world, mapper, "scans", "updates") == [0, 0]
    assert world.call(Trigger, "surface_mapper/reset").success
    assert camera.surfaces == []  # so all of that came before the end of the update
    assert mapper.worker.pending == 1
    update.open.set()
    world.spin_until(lambda: camera.surfaces, "the prior")
    prior = belief_from_msg(camera.surfaces[0])
    assert prior.hits.sum() == 0  # the update that the reset overtook is not heard of
    world.spin_until(lambda: mapper.worker.pending == 0, "the worker to rest")
    world.spin_some()
    assert len(camera.surfaces) == 1
    assert numbers(world, mapper, "scans", "measurements") == [0, 0]


def test_a_slow_dense_update_holds_up_no_service(world):
    mapper = world.start(
        SurfaceMapperNode, robust=False, integrate="always", solver="dense", grid_size=200
    )
    camera = Camera(world, beams=2500)
    # now the service has been found
    assert parameter_of(world, mapper, "grid_size").integer_value == 200
    camera.take(1, mapper)
    assert parameter_of(world, mapper, "solver").string_value == "dense"
    assert mapper.worker.pending == 1  # the answer came before the end of the update
    world.spin_until(lambda: camera.surfaces, "the surface")
    assert numbers(world, mapper, "scans") == [1]


def test_no_update_is_computed_in_the_thread_that_answers(world, monkeypatch):
    threads, belief = [], SurfaceMapper.belief

    def noted(mapper):
        threads.append(threading.get_ident())
        return belief(mapper)

    monkeypatch.setattr(SurfaceMapper, "belief", noted)
    mapper = world.start(SurfaceMapperNode, robust=False, integrate="always", grid_size=50)
    camera = Camera(world, beams=11)
    for number in range(1, 4):
        camera.take(1, mapper)
        world.spin_until(lambda n=number: len(camera.surfaces) == n, "the surface")
    assert len(threads) == 3
    assert threading.get_ident() not in threads


def test_scans_that_come_during_an_update_are_mapped_together_and_each_once(world, gate):
    mapper = world.start(SurfaceMapperNode, grid_size=100, robust=False, integrate="always")
    camera, update = Camera(world), gate(SurfaceMapper, "belief")
    camera.take(1, mapper)
    update.entered.wait()
    camera.take(24, mapper)
    assert numbers(world, mapper, "scans", "scans_waiting") == [0, 24]
    update.open.set()
    world.spin_until(lambda: len(camera.surfaces) == 2, "both surfaces")
    assert numbers(world, mapper, "scans", "scans_waiting", "updates") == [25, 0, 2]
    stamps = [stamp_of(msg) for msg in camera.surfaces]
    assert stamps == [1 * MS, 25 * MS]
    assert numbers(world, mapper, "views") == [1]
    # no goal has been given in between: all of one view
    assert mapper.core.known.mapper.model.round == 2
    expected = sum(len(camera.measured(number)) for number in range(1, 26))
    assert belief_from_msg(camera.surfaces[-1]).hits.sum() == expected


def test_more_scans_than_may_wait_are_dropped_from_the_oldest_and_counted(world, gate):
    mapper = world.start(
        SurfaceMapperNode, grid_size=100, robust=False, integrate="always", queue_size=5
    )
    camera, update = Camera(world), gate(SurfaceMapper, "belief")
    camera.take(1, mapper)
    update.entered.wait()
    camera.take(11, mapper)
    update.open.set()
    world.spin_until(lambda: len(camera.surfaces) == 2, "both surfaces")
    assert numbers(world, mapper, "scans", "scans_waiting", "dropped.scan.backlog") == [6, 0, 6]
    assert camera.sent == 12
    assert stamp_of(camera.surfaces[-1]) == 12 * MS


def test_a_long_stream_with_calls_in_between_loses_and_repeats_no_scan(world):
    mapper = world.start(SurfaceMapperNode, grid_size=100, robust=False, integrate="always")
    camera = Camera(world)
    client = AsyncParameterClient(world.peer, mapper.get_name())
    world.spin_until(client.services_are_ready, "the parameter services")
    answers = []
    for _ in range(40):
        answers.append(client.get_parameters(["grid_size"]))
        camera.take(5, mapper)
    world.spin_until(lambda: numbers(world, mapper, "scans") == [200], "all scans to be mapped")
    world.spin_until(lambda: all(answer.done() for answer in answers), "all answers")
    world.spin_until(lambda: stamp_of(camera.surfaces[-1]) == 200 * MS, "the last surface")
    expected = sum(len(camera.measured(number)) for number in range(1, 201))
    assert belief_from_msg(camera.surfaces[-1]).hits.sum() == expected
    assert numbers(world, mapper, "measurements") == [expected]
    stamps = [stamp_of(msg) for msg in camera.surfaces]
    assert stamps == sorted(set(stamps))
    assert not [reason for reason in mapper.drops if reason.startswith("scan")]


# --- the planner


class Inputs:
    """A mapper and a robot that stand still."""

    def __init__(self, world) -> None:
        self.goals = world.listen(PoseStamped, "goal_pose")
        world.listen(PoseStamped, "goal_pose")
        self.statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        send_pose = world.speaker(PoseStamped, "camera_pose")
        send_surface = world.mapper()
        send_pose(pose_msg(view_pose(0.0), 1))
        send_surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))

    @property
    def states(self) -> list[str]:
        return [status_values(msg)["state"] for msg in self.statuses]


def test_pause_parameters_and_status_answer_while_a_decision_is_made(world, gate):
    decision = gate(Planner, "decide")
    planner = world.start(NbvPlannerNode, objective="U", certify=False, num_views=20)
    inputs = Inputs(world)
    world.spin_until(decision.entered.is_set, "the decision to begin")
    world.spin_until(lambda: inputs.states[-1:] == ["PLANNING"], "the status")
    assert parameter_of(world, planner, "num_views").integer_value == 20
    assert world.set_parameters(planner, max_views=7)[0].successful
    answer = world.call(SetBool, "nbv_planner/pause", data=True)
    assert (answer.success, answer.message) == (True, "PAUSED")
    world.spin_until(lambda: inputs.states[-1:] == ["PAUSED"], "the status")
    assert planner.worker.pending == 1  # all of that came before the decision
    decision.open.set()
    world.spin_until(lambda: planner.worker.pending == 0, "the decision")
    world.spin_some()
    assert inputs.goals == []  # made, but overtaken by the pause
    assert world.call(SetBool, "nbv_planner/pause", data=False).success
    world.spin_until(lambda: inputs.goals, "the goal")


def test_a_reset_throws_the_decision_under_way_away_and_asks_again(world, gate):
    decision = gate(Planner, "decide")
    planner = world.start(NbvPlannerNode, objective="U", certify=False, num_views=20)
    inputs = Inputs(world)
    world.spin_until(decision.entered.is_set, "the decision to begin")
    decision.entered.clear()
    assert world.call(Trigger, "nbv_planner/reset").success
    assert planner.worker.pending == 1
    decision.open.set()
    world.spin_until(lambda: inputs.goals, "the goal")
    assert decision.entered.is_set()  # decided a second time
    world.spin_some()
    assert len(inputs.goals) == 1


def test_plan_once_holds_up_no_other_service(world, gate):
    decision = gate(Planner, "decide")
    planner = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, wait_for_start=True
    )
    Inputs(world)
    world.spin_until(lambda: planner.core.inputs.belief is not None, "the surface")
    client = world.peer.create_client(Trigger, "nbv_planner/plan_once")
    world.spin_until(client.service_is_ready, "the service")
    asked = client.call_async(Trigger.Request())
    world.spin_until(decision.entered.is_set, "the decision to begin")
    assert world.call(SetBool, "nbv_planner/pause", data=True).message == "PAUSED"
    assert parameter_of(world, planner, "num_views").integer_value == 20
    assert not asked.done()
    decision.open.set()
    assert world.result(asked, "the answer").message.startswith("view_angle: ")
