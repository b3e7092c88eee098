"""An episode on the three nodes as processes of their own, followed to its end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

from rclpy.executors import SingleThreadedExecutor

from nbv_planner.bags.writer import BagWriter
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import NbvPlannerError
from nbv_planner.evaluation.records import Step
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.ros.monitor import EpisodeMonitor
from nbv_planner.ros.own_context import ros_of_its_own
from nbv_planner.ros.recorder import BagRecorder
from nbv_planner.ros.runner import NodeProcesses, free_domain_id, isolated_environment
from nbv_planner.topics import RECORDED_TOPICS

# Silence of the planner after which its last status is told, and after which the run is given up, seconds.
_TELL_AFTER = 3.0
_GIVE_UP_AFTER = 120.0
# What the nodes say on /diagnostics once a second is recorded after the end too, seconds.
_LAST_WORDS = 1.2


class Audience(Protocol):
    """Who is told how an episode goes."""

    def started(self, domain: int, pids: dict[str, int]) -> None:
        """The nodes run, on ROS domain `domain`, with these process ids by name."""

    def took(self, step: Step, estimate: CoverageEstimate | None) -> None:
        """A view has been taken; `estimate` is the coverage by the posterior shapes after it, where they are asked."""

    def waits(self, status: str) -> None:
        """The planner has been silent for a while; `status` is what it said last."""


def run_episode(
    config: EpisodeConfig, parameter_file: Path, log_folder: Path, audience: Audience, bag: BagWriter | None = None,
    *, respawn: bool = False,
) -> Termination:
    """Start the nodes on a free domain, follow the episode, and end them.

    Args:
        config: tells how measurements are made from scans.
        parameter_file: parameters of the nodes, with `wait_for_start` switched on: the episode starts when all nodes
            are heard, so that none of it is missed.
        log_folder: where the nodes' output goes.
        audience: is told of every step.
        bag: takes everything that the nodes say, if there is one.
        respawn: whether a node that fails or is killed is started again.

    Returns:
        Why the planner ended; FAILED if a node ended before it or nothing came any more.
    """
    domain = free_domain_id()
    environment = isolated_environment(domain)
    os.environ.update(environment)
    with ros_of_its_own(domain), NodeProcesses(parameter_file, log_folder, environment, respawn=respawn) as nodes:
        audience.started(domain, nodes.pids)
        executor = SingleThreadedExecutor()
        # Before the monitor: a planner that has found the monitor has found the recorder.
        if bag is not None:
            executor.add_node(BagRecorder(bag, RECORDED_TOPICS))
        monitor = EpisodeMonitor(config.scene, config.measurement)
        executor.add_node(monitor)
        termination = _follow(monitor, executor, nodes, audience)
        if bag is not None:
            _spin(executor, _LAST_WORDS)
        return termination


def _spin(executor: SingleThreadedExecutor, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)


class _Teller:
    """Passes on each view once, with what the planner says of the coverage after it."""

    def __init__(self, monitor: EpisodeMonitor, audience: Audience) -> None:
        self._monitor, self._audience, self._told = monitor, audience, 0

    def tell(self, views: int) -> None:
        """Pass on the first `views` views, as far as they are complete."""
        for step in self._monitor.steps[self._told : views]:
            self._told += 1
            self._audience.took(step, self._monitor.estimates.get(self._told))


def _follow(
    monitor: EpisodeMonitor, executor: SingleThreadedExecutor, nodes: NodeProcesses, audience: Audience
) -> Termination:
    """Pass on the views, until the planner is done, a node ends, or nothing comes any more."""
    teller = _Teller(monitor, audience)
    try:
        return _to_the_end(monitor, executor, nodes, audience, teller)
    finally:
        teller.tell(len(monitor.steps))  # those of which the planner has not said anything, too


def _to_the_end(
    monitor: EpisodeMonitor, executor: SingleThreadedExecutor, nodes: NodeProcesses, audience: Audience, teller: _Teller
) -> Termination:
    heard, heard_at, told = ("", ""), time.monotonic(), False
    while not monitor.complete:
        executor.spin_once(timeout_sec=0.2)
        monitor.start_when_ready()
        teller.tell(monitor.views)
        if monitor.state != heard:
            heard, heard_at, told = monitor.state, time.monotonic(), False
        silence = time.monotonic() - heard_at
        if silence > _TELL_AFTER and not told:
            told = True
            audience.waits(heard[1] or "no status yet")
        if silence > _GIVE_UP_AFTER:
            return monitor.termination or _failed(f"no sign of progress for {silence:.0f} s; last status: {heard[1]}")
        try:
            nodes.check()
        except NbvPlannerError as error:
            return _failed(str(error))
    assert monitor.termination is not None
    return monitor.termination


def _failed(detail: str) -> Termination:
    return Termination(TerminationReason.FAILED, {}, detail)
