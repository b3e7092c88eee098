"""One run of a fault campaign: the real three processes over DDS, with what goes wrong in it."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np
from rclpy.executors import SingleThreadedExecutor

from nbv_planner.config_files import Parameters, dump_parameters
from nbv_planner.episode_config import EpisodeConfig, config_from_parameters
from nbv_planner.errors import NbvPlannerError, StateFileError
from nbv_planner.evaluation.surface_error import TrueSurfaceComparison
from nbv_planner.faults.campaign import Campaign, Run
from nbv_planner.faults.kinds import ClockJump, Kill, Stall
from nbv_planner.faults.moments import Moment, moments_of
from nbv_planner.faults.outcome import NO_END, NODE_DIED, Outcome, Recovery
from nbv_planner.node_settings import NODE_SETTINGS, DepthCameraParameters
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.ros.fault_relay import FaultRelay, remappings_of, tampered_topics
from nbv_planner.ros.own_context import ros_of_its_own
from nbv_planner.ros.runner import NodeProcesses, free_domain_id, isolated_environment
from nbv_planner.saving import STATE_FILES
from nbv_planner.state.state_file import SavedState, read_state
from nbv_planner.visibility import observe

_MAP, _SESSION = STATE_FILES["surface_mapper"][1], STATE_FILES["nbv_planner"][1]
# What the nodes say on /diagnostics once a second is waited for at the end, seconds.
_LAST_WORDS = 1.3
# Seconds between two looks for strangers on the domain.
_LOOK_AROUND = 0.1
# What is heard so soon after a kill was said before it, seconds.
_UNDER_WAY = 0.3


def run_faults(run: Run, campaign: Campaign, episode_seconds: float, folder: Path) -> Outcome:
    """Run an episode with the faults of `run`.

    Args:
        run: the run.
        campaign: what it belongs to.
        episode_seconds: time that an episode takes without faults.
        folder: for parameters, logs and the nodes' state files; must be empty.

    Returns:
        What became of it.

    Raises:
        DomainTakenError: somebody else's nodes took part.
    """
    parameters = _parameters(run, campaign, folder)
    file = folder / "parameters.yaml"
    file.write_text(dump_parameters(parameters), encoding="utf-8")
    domain = free_domain_id()
    # Shared memory of killed processes would stay behind; UDP leaves nothing.
    environment = {**isolated_environment(domain), "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}
    os.environ.update(environment)
    with ros_of_its_own(domain):
        executor, relay = SingleThreadedExecutor(), FaultRelay(run)
        executor.add_node(relay)
        moments = moments_of(run, episode_seconds, campaign.time_limit)
        with NodeProcesses(file, folder / "logs", environment, remappings=remappings_of(run)) as nodes:
            course = _Course(run, campaign, relay, nodes, executor)
            recoveries = course.follow(moments)
        return _outcome(run, parameters, relay, recoveries, folder, course.died)


def _parameters(run: Run, campaign: Campaign, folder: Path) -> Parameters:
    """Parameters of the nodes, with state files in `folder`."""
    given = campaign.parameters_of(run.case)
    parameters: Parameters = {node: dict(given.get(node, {})) for node in NODE_SETTINGS}
    for node, (name, file) in STATE_FILES.items():
        parameters[node].update({name: str((folder / file).resolve()), "episode": run.slug})
    # The relay listens to the goals too; where it stands between, the planner does not see the camera.
    others = {"wait_for_start": True, "goal_subscribers": 2 if "goal_pose" in tampered_topics(run) else 3}
    parameters["nbv_planner"].update(others)
    if any(isinstance(fault, ClockJump) for fault in run.case.faults):
        for values in parameters.values():
            values["use_sim_time"] = True
    return parameters


class _Course:
    """Follows a run from the start to the end."""

    def __init__(
        self, run: Run, campaign: Campaign, relay: FaultRelay, nodes: NodeProcesses, executor: SingleThreadedExecutor
    ) -> None:
        self._run, self._limit, self._relay, self._nodes, self._executor = (
            run, campaign.time_limit, relay, nodes, executor
        )
        self._open: list[tuple[Recovery, int]] = []
        self._recoveries: list[Recovery] = []
        self._down: dict[str, float] = {}
        self.died = ""
        self._look_at = 0.0

    def follow(self, moments: list[Moment]) -> list[Recovery]:
        """Let everything happen at its moment, until the episode has ended or takes too long."""
        relay, begun, waiting = self._relay, time.monotonic(), list(moments)
        while relay.state != "DONE" and not self.died and time.monotonic() - begun < self._limit:
            self._executor.spin_once(timeout_sec=0.01)
            relay.start_when_ready()
            self._check_alone()
            elapsed = relay.elapsed
            while waiting and elapsed is not None and waiting[0].at <= elapsed:
                self._happen(waiting.pop(0), elapsed)
            self._revive()
            self._close(elapsed)
        self._wind_up()
        return self._all()

    def _happen(self, moment: Moment, elapsed: float) -> None:
        fault = moment.fault
        if isinstance(fault, Kill):
            self._relay.happened["kill"] += 1
            self._nodes.signal(fault.node, signal.SIGKILL)
            self._down[fault.node] = time.monotonic() + fault.down
            self._open.append((Recovery(fault.node, elapsed, self._relay.state, None), self._relay.views))
        elif isinstance(fault, Stall):
            self._relay.happened["stall"] += not moment.resume
            self._nodes.signal(fault.node, signal.SIGCONT if moment.resume else signal.SIGSTOP)
        elif isinstance(fault, ClockJump):
            self._relay.jump(fault.seconds)

    def _revive(self) -> None:
        """Start a killed node again; one that has ended by itself is a finding."""
        for node, due in list(self._down.items()):
            if time.monotonic() >= due:
                del self._down[node]
                self._relay.restarted(node)
                self._nodes.start(node)
        if not self._down:
            try:
                self._nodes.check()
            except NbvPlannerError as error:
                self.died = str(error)

    def _check_alone(self) -> None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_AROUND
            self._relay.check_alone(Counter(recovery.node for recovery in self._all()))

    def _all(self) -> list[Recovery]:
        return [*self._recoveries, *(recovery for recovery, _ in self._open)]

    def _close(self, elapsed: float | None) -> None:
        """Note who has recovered: a view has counted since, or the episode has ended."""
        now, still_open = elapsed or 0.0, []
        for recovery, views in self._open:
            if now - recovery.at < _UNDER_WAY:
                still_open.append((recovery, self._relay.views))
            elif recovery.node not in self._down and (self._relay.views > views or self._relay.state == "DONE"):
                self._recoveries.append(dataclasses.replace(recovery, seconds=now - recovery.at))
            else:
                still_open.append((recovery, views))
        self._open = still_open

    def _wind_up(self) -> None:
        """Let the nodes say their last words."""
        end = time.monotonic() + _LAST_WORDS
        self._relay.ended = self._relay.elapsed or 0.0
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.02)
        self._look_at = 0.0
        self._check_alone()


def _outcome(
    run: Run, parameters: Parameters, relay: FaultRelay, recoveries: list[Recovery], folder: Path, died: str
) -> Outcome:
    shape = parameters["depth_camera"].get("object", DepthCameraParameters().object)
    config = config_from_parameters(parameters, object=shape, protocol="sensor")
    session, surface = _saved(folder / _SESSION, "planning session"), _saved(folder / _MAP, "surface map")
    visited = tuple(session.values["visited"]) if session else ()
    coverage, rmse = _judged(config, visited, relay)
    reason = relay.words.partition(":")[0] if relay.state == "DONE" else NODE_DIED if died else NO_END
    return Outcome(
        case=run.case.name, number=run.number, seed=run.seed,
        reason=reason, detail=died or relay.words, seconds=relay.ended,
        visited=visited, map_views=int(surface.values["views"]) if surface else 0, goals=len(relay.goals),
        lost_views=int(session.values["lost_views"]) if session else 0, coverage=coverage, rmse=rmse,
        digest=relay.digest, starts=relay.starts, recoveries=tuple(recoveries), happened=dict(relay.happened),
        drops=relay.drops,
    )


def _saved(path: Path, kind: str) -> SavedState | None:
    try:
        return read_state(path, kind)
    except StateFileError as error:
        if error.reason != "missing":
            raise NbvPlannerError(str(error)) from error
        return None


def _judged(config: EpisodeConfig, visited: tuple[float, ...], relay: FaultRelay) -> tuple[float, float | None]:
    """Fraction of the true surface points seen from the views, and the error of the last surface."""
    shape = parse_object(config.object, config.scene)
    points = surface_points(shape, config.scene.pixel_size)
    seen = observe(points.angle, points.radius, np.array(visited), config.scene)
    error = None if relay.belief is None else TrueSurfaceComparison(shape).error_of(relay.belief).rmse
    return float(seen.any(axis=0).mean()) if visited else 0.0, error
