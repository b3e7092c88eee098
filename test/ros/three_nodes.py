"""Camera, mapper and planner as three processes, which `~/reset` makes as they were at first."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from episodes import end_of
from geometry_msgs.msg import PoseStamped
from ros_world import PATIENCE, World
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.episode.parameter_files import dump_parameters, load_parameters
from nbv_planner.episode.parameters import EpisodeConfig, config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.node_processes import (
    NODES,
    NodeProcesses,
    free_domain_id,
    isolated_environment,
)
from nbv_planner.ros.watched_episode import EpisodeMonitor

PARAMETERS = {
    "depth_camera": {
        "object": "polygon:star",
        "seed": 7,
        "num_beams": 61,
        "scan_rate": 20.0,
        "dropout_probability": 0.05,
        "outlier_probability": 0.02,
        "initial_view_angle": 1.0,
    },
    # As in a simulation: by default a robot stands for a while, and a view has more scans.
    "surface_mapper": {"grid_size": 300, "settle_time": 0.0, "scans_per_view": 1},
    # The monitor starts it once it hears all nodes.
    "nbv_planner": {
        "wait_for_start": True,
        "settle_time": 0.0,
        "objective": "U",
        "certify": False,
        "num_views": 60,
        "max_views": 5,
        "stall_views": 0,
        "travel_weight": 0.01,
    },
}


class ThreeNodes:
    """The processes, on a domain of their own; a context manager that ends them by SIGINT.

    Each must have run until then, and ends with code 0 and without a traceback.

    Attributes:
        domain: their ROS domain.
        config: the episode that a simulation of the same parameters runs.
    """

    def __init__(self, folder: Path, parameters: dict[str, Any] = PARAMETERS) -> None:
        file = folder / "parameters.yaml"
        file.write_text(dump_parameters(parameters), encoding="utf-8")
        self.domain = free_domain_id()
        self.config = config_from_parameters(
            load_parameters(file), object=parameters["depth_camera"]["object"], protocol="sensor"
        )
        self._folder, self._decisions = folder, 0
        self._nodes = NodeProcesses(file, folder, isolated_environment(self.domain))

    def __enter__(self) -> ThreeNodes:
        self._nodes.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._nodes.check()
        finally:
            self._nodes.stop()
        output = {name: (self._folder / f"{name}.log").read_text()[-2000:] for name in NODES}
        codes = {name: process.returncode for name, process in self._nodes._processes.items()}
        assert codes == dict.fromkeys(NODES, 0), output
        assert "Traceback" not in "".join(output.values()), output

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by node, all of which run.

        Raises:
            NbvPlannerError: one has ended.
        """
        self._nodes.check()
        return self._nodes.pids

    def reset(self) -> None:
        """Call `~/reset` of each node; the planner's last, which judges the start that follows by
        the poses after it.
        """
        initial = PARAMETERS["depth_camera"]["initial_view_angle"]
        with World(self.domain) as world:
            answered(world, "nbv_planner/stop")
            answered(world, "depth_camera/reset")
            poses = world.listen(PoseStamped, "camera_pose")
            world.spin_until(
                lambda: poses and pose_from_msg(poses[-1]).view_angle == pytest.approx(initial),
                "the camera to be back",
            )
            answered(world, "surface_mapper/reset")
            answered(world, "nbv_planner/reset")

    def episode(self) -> SimpleNamespace:
        """Start an episode and follow it to its end; gives its steps and why it ended."""
        measurement, placed = self.config.measurement, self.config.world.placed
        with separate_context(self.domain) as executor:
            monitor = EpisodeMonitor(self.config.scene, measurement, placed)
            executor.add_node(monitor)
            deadline = time.monotonic() + PATIENCE
            while not monitor.complete:
                self._nodes.check()
                assert time.monotonic() < deadline, f"waited in vain for the end; {monitor.state}"
                executor.spin_once(timeout_sec=0.05)
                # Decisions of earlier episodes are latched: among those of this one they would take
                # its surfaces.
                if len(monitor.log.earlier) + len(monitor.log.views) >= self._decisions:
                    monitor.start_when_ready()
        self._decisions += len(monitor.log.views)
        return SimpleNamespace(steps=monitor.steps, termination=monitor.termination)


def simulated_episode(config: EpisodeConfig) -> SimpleNamespace:
    """The same in this process, without ROS."""
    simulation = Simulation(config)
    ended = end_of(simulation)
    return SimpleNamespace(steps=simulation.judge.steps, termination=ended)


def views(episode) -> list[float]:
    """View angles of an episode."""
    return [step.view.view_angle for step in episode.steps]


def answered(world: World, service: str) -> None:
    """Call a service that may be called twice: a node that does not know this client yet does not
    hear it.
    """
    client = world.peer.create_client(Trigger, service)
    world.spin_until(client.service_is_ready, service)
    calls = [client.call_async(Trigger.Request())]
    again = time.monotonic() + 3.0

    def answer() -> Trigger.Response | None:
        nonlocal again
        if time.monotonic() > again:
            again += 3.0
            calls.append(client.call_async(Trigger.Request()))
        return next((call.result() for call in calls if call.done()), None)

    assert world.spin_until(answer, f"an answer from {service}").success
