"""A ROS graph for one test: nodes under test and the test's own node, spun in one thread until
something holds.
"""

from __future__ import annotations

import gc
import importlib
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import Header, String

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.node_processes import free_domain_id, isolated_environment
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import RangeNoise

# Far longer than anything takes: it ends a test that would hang, and says nothing about speed.
PATIENCE = 120.0


def over_the_wire(msg: Any) -> Any:
    """The message as a subscriber gets it."""
    return deserialize_message(serialize_message(msg), type(msg))


def header(frame: str, stamp: int = 0) -> Header:
    return Header(stamp=conversions.to_stamp(stamp), frame_id=frame)


def parameter_list(values: dict[str, Any]) -> list[Parameter]:
    return [Parameter(name, value=value) for name, value in values.items()]


# By node: what a simulation has in place of the defaults, which are for a robot.
SIMULATED = {
    "NbvPlannerNode": {"wait_for_start": False, "settle_time": 0.0},
    "SurfaceMapperNode": {"scans_per_view": 1, "settle_time": 0.0},
}

# A managed node keeps its DDS participant until it is collected, and with 38 in a process none
# finds another any more.
_COLLECTED_AT_ONCE = 8


class World:
    """Context, domain and executor of one test; use as a context manager.

    Attributes:
        peer: the test's own node.
    """

    ended = 0

    def __init__(self, domain: int | None = None) -> None:
        self.domain = free_domain_id() if domain is None else domain
        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=self.domain)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.nodes: list[Node] = []
        self.peer = self._add(Node("peer", context=self.context, use_global_arguments=False))
        self._diagnoses: list[tuple[int, DiagnosticStatus]] = []
        self.peer.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 100)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        self.executor.shutdown(timeout_sec=1.0)
        for node in reversed(self.nodes):
            node.destroy_node()
        self.context.try_shutdown()
        World.ended += 1
        if World.ended % _COLLECTED_AT_ONCE == 0:
            gc.collect()

    def _add(self, node: Node) -> Node:
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def _on_diagnostics(self, msg: DiagnosticArray) -> None:
        stamp = to_nanoseconds(msg.header.stamp)
        self._diagnoses.extend((stamp, status) for status in msg.status)

    def start(
        self,
        create: type[Node],
        *,
        cli_args: list[str] | None = None,
        simulated: bool = True,
        **parameters: Any,
    ) -> Any:
        """Start a node under test with parameters, over those of a simulation or the defaults."""
        parameters = {
            **(SIMULATED.get(getattr(create, "__name__", ""), {}) if simulated else {}),
            **parameters,
        }
        return self._add(
            create(
                context=self.context,
                cli_args=cli_args,
                parameter_overrides=parameter_list(parameters),
            )
        )

    def end(self, node: Node) -> None:
        """End a node under test."""
        self.executor.remove_node(node)
        self.nodes.remove(node)
        node.destroy_node()

    def spin_until(
        self, condition: Callable[[], Any], what: str, *, timeout: float = PATIENCE
    ) -> Any:
        """Spin until `condition` gives something true, and return that; fail with `what` if it
        never does.
        """
        deadline = time.monotonic() + timeout
        while not (result := condition()):
            assert time.monotonic() < deadline, f"waited {timeout:g} s in vain for {what}"
            self.executor.spin_once(timeout_sec=0.02)
        return result

    def spin_some(self, times: int = 25) -> None:
        """Spin a little while, for what must not happen in it."""
        for _ in range(times):
            self.executor.spin_once(timeout_sec=0.01)

    def listen(self, kind: type, topic: str, profile: Any = None) -> list[Any]:
        """Subscribe; returns the list that messages are put into."""
        heard: list[Any] = []
        self.peer.create_subscription(kind, topic, heard.append, profile or qos.reliable(100))
        return heard

    def speaker(self, kind: type, topic: str, profile: Any = None) -> Callable[[Any], None]:
        """Publisher of a topic as a function, that has found its subscriber."""
        publisher = self.peer.create_publisher(kind, topic, profile or qos.reliable(100))
        self.spin_until(publisher.get_subscription_count, f"a subscriber of {topic}")
        return publisher.publish

    def mapper(self) -> Callable[..., None]:
        """Publisher of surfaces, each with what the mapper says of it: nothing learned, but for
        what is given.
        """
        say = self.speaker(String, "surface_info", qos.latched())
        send = self.speaker(PointCloud2, "surface", qos.latched())

        def publish(cloud: PointCloud2, **known: Any) -> None:
            nothing = {"prior": PriorSettings(), "sensor": {}, "declared": RangeNoise(0.2, 0.0)}
            say(
                String(
                    data=SurfaceInfo(
                        to_nanoseconds(cloud.header.stamp), **{**nothing, **known}
                    ).text
                )
            )
            send(cloud)

        return publish

    def surfaces(self) -> Callable[[], SurfaceBelief]:
        """The newest belief of a mapper, with what it says of it; waits for it."""
        clouds, infos = (
            self.listen(PointCloud2, "surface", qos.latched(10)),
            dict[int, SurfaceInfo](),
        )
        self.peer.create_subscription(
            String,
            "surface_info",
            lambda msg: infos.update({(i := info_from_text(msg.data)).stamp: i}),
            qos.latched(10),
        )

        def newest() -> SurfaceBelief:
            def there() -> bool:
                return bool(clouds) and to_nanoseconds(clouds[-1].header.stamp) in infos

            self.spin_until(there, "a surface with its surface_info")
            return infos[to_nanoseconds(clouds[-1].header.stamp)].applied(
                belief_from_msg(clouds[-1])
            )

        return newest

    def result(self, future: Any, what: str) -> Any:
        self.spin_until(future.done, what)
        return future.result()

    def call(self, kind: type, name: str, **fields: Any) -> Any:
        """Call a service."""
        client = self.peer.create_client(kind, name)
        self.spin_until(client.service_is_ready, f"the service {name}")
        return self.result(client.call_async(kind.Request(**fields)), f"an answer from {name}")

    def set_parameters(self, node: Node, **values: Any) -> list[Any]:
        """Set parameters of a node through its service."""
        client = AsyncParameterClient(self.peer, node.get_name())
        self.spin_until(client.services_are_ready, "the parameter services")
        return self.result(
            client.set_parameters(parameter_list(values)), "an answer to set_parameters"
        ).results

    def diagnosis(self, node: Any) -> SimpleNamespace:
        """What the node says on /diagnostics now: level, message, values."""
        name, since = node.get_fully_qualified_name().lstrip("/"), node.now_ns()
        node.publish_diagnostics()

        def latest() -> DiagnosticStatus | None:
            found = [
                status
                for stamp, status in self._diagnoses
                if status.name == name and stamp >= since
            ]
            return found[-1] if found else None

        status = self.spin_until(latest, f"diagnostics of {name}")
        return SimpleNamespace(
            level=status.level, message=status.message, values=status_values(status)
        )

    def drops(self, node: Any) -> dict[str, int]:
        """What the node says on /diagnostics that it dropped, by reason."""
        values = self.diagnosis(node).values
        return {
            key.removeprefix("dropped."): int(n)
            for key, n in values.items()
            if key.startswith("dropped.")
        }


_NODES = [f"nbv_planner.ros.nodes.{name}" for name in ("surface_mapper", "nbv_planner")]


def _run_main(module: str, words: list[str], environment: dict[str, str], output: Path) -> None:
    """Run `main()` of a module in this process, which has been made for it."""
    os.environ.clear()
    os.environ.update(environment)
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv = [module, *words]
    sys.exit(importlib.import_module(module).main())


class Processes:
    """Robot, mapper and planner of one episode as processes, all of which must run to the end of
    the test.

    A server that has loaded the nodes once forks them: each would be busy for a second with its
    imports alone. Two of them take 0.35 s of a core until they are heard: no more than it would
    take to `~/reset` nodes that all tests share, and no test finds what another one has left.
    """

    def __init__(self, world: World, output: Path) -> None:
        self._world, self._output = world, output
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(_NODES)
        self._started: list[Any] = []
        self._statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        self._iterations = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
        self._surfaces = world.listen(PointCloud2, "surface", qos.latched())

    def start(self, module: str, *arguments: str) -> None:
        environment = isolated_environment(self._world.domain)
        process = self._server.Process(
            target=_run_main, args=(module, list(arguments), environment, self._output)
        )
        process.start()
        self._started.append(process)

    def check(self) -> None:
        assert [process.exitcode for process in self._started] == [None] * len(self._started), (
            self._output.read_text()
        )

    def episode(self) -> SimpleNamespace:
        """What can be judged once the planner is done: its last status, the angles of the views,
        and the belief.
        """

        def end() -> dict[str, str] | None:
            self.check()
            values = status_values(self._statuses[-1]) if self._statuses else {}
            return values if values.get("state") == "DONE" else None

        ended = self._world.spin_until(end, "the end of the episode", timeout=240.0)
        number = int(ended["views"])
        self._world.spin_until(
            lambda: self._surfaces and len(self._iterations) >= number, "decisions and a surface"
        )
        decisions = map(status_values, self._iterations)
        angles = {int(values["round"]): float(values["view_angle"]) for values in decisions}
        views = [angles[round_] for round_ in range(1, number + 1)]
        return SimpleNamespace(end=ended, views=views, belief=belief_from_msg(self._surfaces[-1]))

    def end(self) -> None:
        try:
            self.check()
        finally:
            for process in self._started:
                process.terminate()
            for process in self._started:
                process.join(60)
                assert process.exitcode is not None


def pose_msg(pose: CameraPose, stamp: int = 0, frame: str = "object") -> PoseStamped:
    return conversions.pose_to_msg(pose, header(frame, stamp))


def as_received(pose: CameraPose) -> CameraPose:
    """The pose after its way through a quaternion."""
    return pose_from_msg(over_the_wire(pose_msg(pose)))


def view_pose(angle: float, distance: float = 10.0) -> CameraPose:
    return CameraPose.from_polar(angle, distance)


def bent(msg: Any, **changes: Any) -> Any:
    """A copy of a message with fields changed; `a__b` is field b of field a."""
    copy = over_the_wire(msg)
    for path, value in changes.items():
        *parents, name = path.split("__")
        owner = copy
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, name, value)
    return copy


def clockwise(scan: LaserScan) -> LaserScan:
    """The same scan from a sensor that is mounted upside down: its beams come in falling angles."""
    return bent(
        scan,
        angle_min=scan.angle_max,
        angle_max=scan.angle_min,
        angle_increment=-scan.angle_increment,
        ranges=scan.ranges[::-1],
    )


NAN, INF = math.nan, math.inf


def malformed_poses(good: PoseStamped) -> dict[str, tuple[str, PoseStamped]]:
    """Poses that cannot be used: what is wrong -> (reason it is counted under, message)."""
    q = "pose__orientation__"
    return {
        "x is NaN": ("not_finite", bent(good, pose__position__x=NAN)),
        "y is infinite": ("not_finite", bent(good, pose__position__y=INF)),
        "z is minus infinity": ("not_finite", bent(good, pose__position__z=-INF)),
        "orientation is NaN": ("not_finite", bent(good, **{q + "w": NAN})),
        "orientation is infinite": ("not_finite", bent(good, **{q + "z": INF})),
        "orientation is zero": ("quaternion", bent(good, **{q + "z": 0.0, q + "w": 0.0})),
        "orientation is too long": ("quaternion", bent(good, **{q + "z": 1.0, q + "w": 1.0})),
        "orientation is huge": ("quaternion", bent(good, **{q + "x": 1e200, q + "w": -1e308})),
        "camera looks up": (
            "tilted",
            bent(good, **{q + "y": -(0.5**0.5), q + "z": 0.0, q + "w": 0.5**0.5}),
        ),
        "optical frame": (
            "tilted",
            bent(good, **{q + "x": -0.5, q + "y": 0.5, q + "z": -0.5, q + "w": 0.5}),
        ),
        "wrong frame": ("frame", bent(good, header__frame_id="map")),
        "no frame": ("frame", bent(good, header__frame_id="")),
    }


def malformed_scans(good: LaserScan) -> dict[str, tuple[str, LaserScan]]:
    """Scans that cannot be used: what is wrong -> (reason it is counted under, message)."""
    ranges = good.ranges
    return {
        "no ranges": ("empty", bent(good, ranges=[])),
        "too few ranges": ("wrong_length", bent(good, ranges=ranges[:-3])),
        "too many ranges": ("wrong_length", bent(good, ranges=[*ranges, 5.0, 5.0, 5.0])),
        "increment is zero": ("increment", bent(good, angle_increment=0.0)),
        "increment leads away from angle_max": (
            "wrong_length",
            bent(good, angle_increment=-good.angle_increment),
        ),
        "increment is NaN": ("header_not_finite", bent(good, angle_increment=NAN)),
        "increment is infinite": ("header_not_finite", bent(good, angle_increment=INF)),
        "more than a turn": ("increment", bent(good, angle_increment=1.0)),
        "angle_min is NaN": ("header_not_finite", bent(good, angle_min=NAN)),
        "angle_max is NaN": ("header_not_finite", bent(good, angle_max=NAN)),
        "angle_max is infinite": ("header_not_finite", bent(good, angle_max=INF)),
        "range_max is NaN": ("header_not_finite", bent(good, range_max=NAN)),
        "range_max is minus infinity": ("range_limits", bent(good, range_max=-INF)),
        "range_min is NaN": ("header_not_finite", bent(good, range_min=NAN)),
        "range_min is negative": ("range_limits", bent(good, range_min=-1.0)),
        "range limits are crossed": ("range_limits", bent(good, range_min=11.0)),
        "wrong frame": ("frame", bent(good, header__frame_id="base_link")),
    }
