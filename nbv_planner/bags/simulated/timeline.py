"""What the nodes would have sent in a simulated episode, with the times at which it would have come."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from nbv_planner.bags.simulated import messages
from nbv_planner.bags.storage.raw import RawMessage, Topic
from nbv_planner.camera import CameraPose
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.evaluation.records import Step, versions
from nbv_planner.node_settings import NODE_SETTINGS
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.planning.termination import Termination
from nbv_planner.settings import settings_of
from nbv_planner.simulated_camera import SimulatedCamera
from nbv_planner.topics import (
    CAMERA_POSE,
    CANDIDATES,
    DIAGNOSTICS,
    GOAL_POSE,
    GROUND_TRUTH,
    ITERATION,
    RECORDED_TOPICS,
    RUN_INFO,
    SCAN,
    STATUS,
    SURFACE,
)

# Begin of every simulated recording; any time would do.
_BEGIN = 1_700_000_000_000_000_000
_MILLISECOND = 1_000_000
# Scans of one standing camera repeat after so many, which saves most of the time of making an hour of them.
_DISTINCT_SCANS = 16


@dataclass(frozen=True)
class Pace:
    """How long a simulated recording takes.

    Attributes:
        scan_rate: scans and poses per second.
        seconds_per_view: how long the camera stands at each view.
        namespace: namespace of the nodes, empty or beginning with a slash.
    """

    scan_rate: float = 10.0
    seconds_per_view: float = 0.5
    namespace: str = ""


class Timeline:
    """The messages of a simulated episode in the order of their times."""

    def __init__(self, config: EpisodeConfig, steps: list[Step], termination: Termination, pace: Pace) -> None:
        """Take a finished episode in the sensor protocol."""
        self._config, self._steps, self._termination, self._pace = config, steps, termination, pace
        shape = parse_object(config.object, config.scene)
        self._points = surface_points(shape, config.scene.pixel_size)
        self._camera = SimulatedCamera(shape, config.scene, config.sensor)
        self._topics = {
            topic.name: Topic(topic.full_name(pace.namespace), topic.type) for topic in RECORDED_TOPICS
        }
        self._period = round(1e9 / pace.scan_rate)
        self._surface_stamp = 0

    def messages(self) -> Iterator[RawMessage]:
        """Give every message."""
        now, space = _BEGIN, self._pace.namespace.lstrip("/")
        node = f"{space}/" if space else ""
        yield self._message(RUN_INFO, now, messages.text_bytes(self._run_info()))
        yield self._message(GROUND_TRUTH, now, messages.contour_bytes(self._points.angle, self._points.radius, now))
        yield self._said(now, "WAITING", 0)
        yield from self._stands(now, self._config.motion.initial_view_angle, 0)
        now += round(self._pace.seconds_per_view * 1e9)
        for number, step in enumerate(self._steps, start=1):
            yield from self._decision(now, number, step)
            yield from self._stands(now + 2 * _MILLISECOND, step.view_angle, number, step)
            values = {"dropped.beam.outside_bounds": 0, "views": number}
            yield self._message(DIAGNOSTICS, now, messages.diagnostics_bytes(f"{node}surface_mapper", values, now))
            now += round(self._pace.seconds_per_view * 1e9) + 4 * _MILLISECOND
        yield self._said(now, "DONE", len(self._steps), ended=True)

    def _message(self, name: str, time: int, data: bytes) -> RawMessage:
        return RawMessage(self._topics[name], time, data)

    def _decision(self, now: int, number: int, step: Step) -> Iterator[RawMessage]:
        """What the planner says when it has decided."""
        yield self._said(now, "PLANNING", number - 1)
        values: dict[str, object] = {
            "round": number, "goal_stamp": now, "view_angle": step.view_angle, "utility": step.objective_value,
            "planning_milliseconds": step.milliseconds, "surface_stamp": self._surface_stamp,
        }
        distance = self._config.scene.view_distance
        candidates = messages.candidates_bytes(step.candidates, step.utilities, distance, now)
        goal = CameraPose.on_view_circle(step.view_angle, distance)
        yield self._message(CANDIDATES, now, candidates)
        yield self._message(ITERATION, now, messages.status_bytes("nbv_planner: iteration", values))
        yield self._message(GOAL_POSE, now, messages.pose_bytes(goal, now))
        yield self._said(now, "MEASURING", number - 1)

    def _stands(self, begin: int, view_angle: float, number: int, step: Step | None = None) -> Iterator[RawMessage]:
        """Scans and poses of a camera that stands, and the surface after the first scan of a view."""
        pose = CameraPose.on_view_circle(view_angle, self._config.scene.view_distance)
        count = max(1, round(self._pace.seconds_per_view * self._pace.scan_rate))
        scans = [self._camera.scan(pose, number, scan) for scan in range(min(count, _DISTINCT_SCANS))]
        for index in range(count):
            stamp = begin + index * self._period
            yield self._message(SCAN, stamp, messages.scan_bytes(scans[index % len(scans)], stamp))
            yield self._message(CAMERA_POSE, stamp, messages.pose_bytes(pose, stamp))
            if index == 0 and step is not None:
                self._surface_stamp = stamp
                yield self._message(SURFACE, stamp + _MILLISECOND, messages.surface_bytes(step.belief, stamp))

    def _said(self, now: int, state: str, views: int, *, ended: bool = False) -> RawMessage:
        values: dict[str, object] = {"state": state, "views": views, "coverage_estimate": 0.0, "elapsed": 0.0}
        if ended:
            reason = self._termination
            values = {**reason.figures, **values, "reason": reason.reason.value, "detail": reason.detail}
        return self._message(STATUS, now, messages.status_bytes("nbv_planner: status", values))

    def _run_info(self) -> str:
        nodes = {name: _parameters(self._config, name) for name in NODE_SETTINGS}
        return yaml.safe_dump({"versions": versions(), "nodes": nodes, "nodes_not_found_yet": []}, sort_keys=False)


def _parameters(config: EpisodeConfig, node: str) -> dict[str, Any]:
    """Parameters of a node as the configuration has them, else their defaults."""
    groups = {type(group): group for group in vars(config).values() if dataclasses.is_dataclass(group)}
    found: dict[str, Any] = {}
    for cls in NODE_SETTINGS[node]:
        group = groups.get(cls) or cls()
        found.update({name: _plain(getattr(group, name)) for name, _, _ in settings_of(cls)})
    if node == "depth_camera":
        found["object"] = config.object
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
