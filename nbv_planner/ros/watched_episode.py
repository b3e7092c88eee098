"""One episode with the three nodes as separate processes, watched to its end."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from nbv_planner.bags.writer import BagWriter
from nbv_planner.episode.log import READERS_IN_SPACE, EpisodeLog, incomplete
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    GOAL_POSE,
    GROUND_TRUTH,
    RECORDED_TOPICS,
    SCAN,
    STATUS,
    SURFACE,
    SURFACE_INFO,
    RecordedTopic,
)
from nbv_planner.episode.records import Step
from nbv_planner.episode.solid.solid_episode import SolidJudge, SolidView
from nbv_planner.errors import NbvPlannerError
from nbv_planner.geometry import ORIGIN, Point
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.io.listener import EpisodeListener
from nbv_planner.ros.io.recorder import BagRecorder
from nbv_planner.ros.node_processes import NodeProcesses, isolated_environment
from nbv_planner.session.questions import State
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.scene import Scene

# Seconds without an answer after which the planner is asked to start again.
_ASKED_AGAIN = 3.0


class Monitor(EpisodeListener):
    """Subscribes to the nodes of one episode, and starts it once all of them are connected.

    Discovery may take seconds. With the planner's `wait_for_start` set and :meth:`start_when_ready`
    called alternately with spinning, no message of the episode is missed. Goals are not subscribed
    to: a planner that waits for their subscribers waits for the camera.
    """

    def __init__(
        self, log: EpisodeLog, needed: Collection[str], without: Collection[str] = ()
    ) -> None:
        """Take the topics that have been heard once the nodes are connected."""
        super().__init__("episode_monitor", log, qos.reliable, without=(GOAL_POSE, *without))
        self._needed = set(needed)
        # Last of all: a planner that has found this client has found the subscriptions above.
        self._start = self.create_client(Trigger, "nbv_planner/start")
        self._answer: Any = None
        self._ask_again = -math.inf

    def start_when_ready(self) -> None:
        """Start the episode, as soon as every node is connected.

        A planner that has not discovered this client yet does not hear it, so it is asked until it
        answers; a start that is repeated changes nothing.
        """
        answered = self._answer is not None and self._answer.done()
        if answered or time.monotonic() < self._ask_again or not self._needed <= self.log.received:
            return
        if self._start.service_is_ready():
            self._ask_again = time.monotonic() + _ASKED_AGAIN
            self._answer = self._start.call_async(Trigger.Request())

    @property
    def state(self) -> tuple[str, str]:
        """The planner's state and message, as last received."""
        status = self.log.status
        return ("", "") if status is None else (status.state, status.message)

    @property
    def views(self) -> int:
        """Number of views that the planner has reported."""
        return 0 if self.log.status is None else self.log.status.views

    @property
    def known(self) -> int:
        """Number of views that can be passed on, including those that it has not reported."""
        return self.views

    @property
    def complete(self) -> bool:
        """Whether the episode has ended and all its views are known."""
        raise NotImplementedError

    def pass_on(self, views: int) -> None:
        """Pass on each of the first `views` views once it is known."""
        raise NotImplementedError

    @property
    def termination(self) -> Termination | None:
        """Why the episode ended, once it has."""
        return self.log.termination


class EpisodeMonitor(Monitor):
    """Makes the steps of an episode in the plane from what its nodes say."""

    def __init__(
        self,
        scene: Scene,
        measurement: MeasurementSettings,
        placed: Point = ORIGIN,
        took: Callable[[Step, CoverageEstimate | None], None] = lambda *_: None,
    ) -> None:
        """Take scene and measurement as the nodes have them, where the object is, and who is told
        of each view, with the coverage by the posterior shapes after it, if that is estimated.
        """
        needed = (SCAN, CAMERA_POSE, SURFACE, SURFACE_INFO, STATUS)
        super().__init__(EpisodeLog(), needed, without=(GROUND_TRUTH,))
        self._scene = scene
        self._measurement = measurement
        self._placed, self._took = placed, took
        self._round = 0
        self.steps: list[Step] = []  #: the steps that are complete so far, in order.
        self._done: set[int] = set()
        #: the planner's coverage estimate by number of views; None if it does not use shapes.
        self.estimates: dict[int, CoverageEstimate | None] = {}
        self._passed_on = 0

    @property
    def known(self) -> int:
        """See :attr:`Monitor.known`."""
        return len(self.steps)

    @property
    def complete(self) -> bool:
        """See :attr:`Monitor.complete`."""
        return self.termination is not None and self.known >= self.views

    def pass_on(self, views: int) -> None:
        """See :meth:`Monitor.pass_on`."""
        for step in self.steps[self._passed_on : views]:
            self._passed_on += 1
            self._took(step, self.estimates.get(self._passed_on))

    def _on_message(self, topic: str, msg: Any) -> None:
        super()._on_message(topic, msg)
        if topic == STATUS and self.log.status is not None:
            self.estimates[self.views] = self.log.status.estimate
        # The surface of a restarted mapper may have been replaced by the next one before discovery
        # and is then never received: the next one is used instead.
        views = self.log.views
        for number, view in enumerate(views):
            if view.decision.goal_stamp in self._done:
                continue
            belief = next((each.belief for each in views[number:] if each.belief is not None), None)
            step = replace(view, belief=belief).step(self._scene, self._measurement, self._placed)
            if step is None:
                return
            self._done.add(view.decision.goal_stamp)
            if view.decision.round == self._round:  # the one before did not count: an approach
                self.steps.pop()
            self._round = view.decision.round
            self.steps.append(step)


# Seconds without a change of the planner's status after which it is shown, and after which the run
# is aborted.
_REPORT_AFTER, _GIVE_UP_AFTER = 3.0, 180.0
# The same once the planner is done: its messages stay available, but discovery may take seconds.
_DONE_AFTER = 10.0


# Seconds after the end during which /diagnostics, published once a second, are still recorded.
_LAST_WORDS = 1.2


def _last_words(executor: SingleThreadedExecutor, monitor: Monitor, nodes: Collection[str]) -> None:
    """Record /diagnostics once more, and run_info until it has the parameters of all nodes."""
    _spin(executor, _LAST_WORDS)
    end = time.monotonic() + _DONE_AFTER
    while time.monotonic() < end:
        known = monitor.log.parameters
        if known is not None and set(nodes) <= set(known.nodes):
            return
        executor.spin_once(timeout_sec=0.05)


def watch(
    monitor_of: Callable[[], Monitor],
    parameter_file: Path,
    log_folder: Path,
    started: Callable[[int, dict[str, int]], None],
    waits: Callable[[str], None],
    *,
    domain: int,
    respawn: bool,
    ended: Callable[[], bool],
    bag: BagWriter | None,
    topics: Sequence[RecordedTopic] = RECORDED_TOPICS,
    robot: Sequence[str] = (),
) -> Termination | None:
    """Start the nodes on a ROS `domain`, monitor the episode, and end them.

    The parameter file has `wait_for_start` set: the episode starts when all nodes are connected, so
    that no message is missed.

    Args:
        monitor_of: makes what passes the views on.
        parameter_file: of all nodes.
        log_folder: for their output.
        started: is told the domain, and the process ids of the nodes by name.
        waits: is told what came last when nothing has been received for a while.
        domain: id of the ROS domain.
        respawn: whether a node that fails or is killed is restarted.
        ended: called five times a second, says whether to end before the planner does.
        bag: records the `topics` of the nodes, if given.
        topics: those of the nodes.
        robot: the command of a program that is run in place of the camera, if given.

    Returns:
        Why the planner ended; FAILED if a node ended before it or messages stopped; None if
        `ended`.
    """
    environment = isolated_environment(domain)
    os.environ.update(environment)
    instead = {"depth_camera": robot} if robot else {}
    nodes = NodeProcesses(parameter_file, log_folder, environment, respawn=respawn, instead=instead)
    with separate_context(domain) as executor, nodes:
        started(domain, nodes.pids)
        # Before the monitor: a planner that has found the monitor has found the recorder.
        if bag is not None:
            executor.add_node(BagRecorder(bag, topics))
        monitor = monitor_of()
        executor.add_node(monitor)
        try:
            termination = _follow(monitor, executor, nodes, waits, ended)
        finally:
            monitor.pass_on(monitor.known)
        if bag is not None:
            _last_words(executor, monitor, nodes.pids.keys() - instead.keys())
        return termination


def _spin(executor: SingleThreadedExecutor, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)


def _follow(
    monitor: Monitor,
    executor: SingleThreadedExecutor,
    nodes: NodeProcesses,
    waits: Callable[[str], None],
    ended: Callable[[], bool],
) -> Termination | None:
    """Pass on the views until the planner is done and all of them are complete, a node ends, or
    messages stop; `waits` is told what came last when nothing has come for a while.
    """
    status = ("", "")
    changed_at = time.monotonic()
    reported = False
    while not monitor.complete:
        if ended():
            return None
        executor.spin_once(timeout_sec=0.2)
        monitor.start_when_ready()
        monitor.pass_on(monitor.views)
        if monitor.state != status:
            status = monitor.state
            changed_at = time.monotonic()
            reported = False
        silence = time.monotonic() - changed_at
        if silence > _REPORT_AFTER and not reported:
            reported = True
            waits(f"planner: {status[1] or 'no status yet'}")
        if silence > (_GIVE_UP_AFTER if monitor.termination is None else _DONE_AFTER):
            for missing in incomplete(monitor.log.views):
                waits(f"the recording ends early: {missing}")
            detail = f"no sign of progress for {silence:.0f} s; last status: {status[1]}"
            return monitor.termination or Termination(TerminationReason.FAILED, {}, detail)
        try:
            nodes.check()
        except NbvPlannerError as error:
            return Termination(TerminationReason.FAILED, {}, str(error))
    return monitor.termination


class SolidMonitor(Monitor):
    """Judges the views of an episode in space from what its nodes say."""

    def __init__(self, judge: SolidJudge, took: Callable[[SolidView], None]) -> None:
        """Take the judge of the views, and who is told of each."""
        log = EpisodeLog()
        log.readers = READERS_IN_SPACE
        super().__init__(log, (SURFACE, CAMERA_POSE, STATUS))
        self._judge, self._took = judge, took

    @property
    def complete(self) -> bool:
        """See :attr:`Monitor.complete`."""
        return self.termination is not None and len(self._judge.views) >= self.views

    def _on_message(self, topic: str, msg: Any) -> None:
        super()._on_message(topic, msg)
        self.pass_on(self.views)

    def pass_on(self, views: int) -> None:
        """Judge the views that the planner has counted, once their surfaces are here.

        A surface that the next one has replaced before it was received never comes: that one is
        used instead. Candidates likewise, without which a view is judged, too.
        """
        while (number := len(self._judge.views)) < views:
            status, known = self.log.status, self.log.views
            newest = views == number + 1
            if newest and status.state == State.PLANNING.value:
                return  # what is estimated after it is not known yet
            mine = [n for n, one in enumerate(known) if one.decision.round == number + 1]
            later = known[mine[-1] :] if mine else []
            belief = next((one.belief for one in later if one.belief is not None), None)
            if belief is None or all(one.candidates is None for one in later):
                return
            decision, candidates = later[0].decision, later[0].candidates
            if candidates is not None:
                self._judge.gains = candidates.places, candidates.utility
            pose = decision.view(self.log.scene.view_distance)
            estimate = status.estimate if newest else None
            self._took(
                self._judge.add(pose, belief, estimate, decision.utility, decision.milliseconds)
            )
