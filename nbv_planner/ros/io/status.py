"""What the planner publishes about itself: status, reasons of a view, and `run_info`."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import ParameterEvent
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from std_msgs.msg import String

from nbv_planner.episode.messages import PACE, RECORDED_TOPICS
from nbv_planner.episode.parameters import packages_named
from nbv_planner.files.located_yaml import dumped
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.view_space import (
    excluded_numbers,
    excluded_text,
    path_length_through,
    start_text,
)
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.inputs import InputMonitor
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import plain_value
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io.conversions import status_message
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Ranking, State
from nbv_planner.session.state import Goal, behind_text, reach_text
from nbv_planner.session.targets import pace
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.checks import Level, failed, told
from nbv_planner.versions import versions

# Topics of mapper and robot: a problem there stops the episode.
_PARTNERS = ("surface", "surface_info", "camera_pose", "goal_pose")
_END_LEVELS = {
    TerminationReason.FAILED: DiagnosticStatus.ERROR,
    TerminationReason.DOUBTFUL: DiagnosticStatus.WARN,
}
# States between two views: too short for a log line or an update of /diagnostics.
_AT_WORK = {State.PLANNING, State.MOVING, State.MEASURING}
_PASSING = {State.PLANNING, State.MEASURING}
# Seconds by which a pose may be of a time before the goal that was given before it arrived.
_LATE = 1.0
# Seconds between two log lines about views: each costs half a millisecond.
_LINE_PERIOD = 0.5


def status_text(core: PlannerCore, inputs: InputMonitor, now: int) -> tuple[bytes, str]:
    """Level and message of the status; at WARN the message names what is missing, lost or
    incompatible, and the checks that failed.
    """
    ended = core.episode.termination
    if ended is not None:
        level = _END_LEVELS.get(ended.reason, DiagnosticStatus.OK)
        message = f"{ended.reason.value}: {ended.detail}"
        troubles = _doubts(core) if level == DiagnosticStatus.OK else []
    else:
        level, message = _waiting_text(core, inputs, now)
        troubles = [*_troubles(core, inputs), *_doubts(core)]
    more = [text for text in troubles if text not in message]
    return (DiagnosticStatus.WARN if troubles else level), "; ".join([message, *more])


def _waiting_text(core: PlannerCore, inputs: InputMonitor, now: int) -> tuple[bytes, str]:
    if core.overdue(now) is not None and core.episode.started:
        limit = core.settings.input_timeout
        return DiagnosticStatus.WARN, f"{_awaited(core, inputs)}; nothing for more than {limit:g} s"
    number = len(core.episode.visited) + 1
    messages = {
        State.PLANNING: "choosing the next view",
        State.MOVING: f"to view {number}" if core.episode.ending is None else "to the home view",
        State.MEASURING: f"at view {number}, waiting for its surface",
        State.PAUSED: core.episode.interruption or "paused by the operator",
    }
    return DiagnosticStatus.OK, messages.get(core.state) or _awaited(core, inputs)


def _awaited(core: PlannerCore, inputs: InputMonitor) -> str:
    if core.state is State.MEASURING:
        number = len(core.episode.visited) + 1
        return (
            f"waiting for a surface with a scan of view {number} on {inputs.described('surface')}"
        )
    if not core.episode.started:
        return "waiting for the service ~/start"
    awaited = [
        _too_few(core, inputs) if topic == "goal_pose" else _not_received(inputs, topic)
        for topic in core.missing()
    ]
    return "waiting for " + (
        "; ".join(awaited) or "enough camera poses for the checks before the first goal"
    )


def _not_received(inputs: InputMonitor, topic: str) -> str:
    """What is missing of an input of the planner; a surface takes two topics."""
    if topic != "surface":
        return "; ".join(inputs.missing(topic))
    missing = inputs.missing("surface", "surface_info") or [
        "a surface and a surface_info with the same stamp"
    ]
    return f"{'; '.join(missing)} (surface_mapper publishes both once its own inputs are alive)"


def _too_few(core: PlannerCore, inputs: InputMonitor) -> str:
    """Name missing subscribers of the goals, and a missing recorder."""
    recorder = core.settings.recorder
    if core.inputs.unrecorded:
        return (
            f"the recorder {recorder}, which has not subscribed to"
            f" {', '.join(core.inputs.unrecorded)} yet"
        )
    expected = core.inputs.expected_subscribers + (", and the recorder" if recorder else "")
    number = f"{core.inputs.subscribers} of {core.settings.goal_subscribers} subscribers"
    return "; ".join(
        [
            f"{inputs.described('goal_pose')}: {number} ({expected})",
            *inputs.problems("goal_pose"),
        ]
    )


def _doubts(core: PlannerCore) -> list[str]:
    """What the failed checks of the newest surface say, and that of the noise where it differs."""
    checks = () if core.inputs.belief is None else core.inputs.belief.checks
    noise = [check for check in checks if check.name == "noise" and check.level is Level.NOTED]
    return [told(check, core.planner.settings.noise) for check in (*failed(checks), *noise)]


def _troubles(core: PlannerCore, inputs: InputMonitor) -> list[str]:
    found = [*inputs.clock(), *inputs.problems(inputs.name, *_PARTNERS)]
    arrival, views = core.arrival, core.planner.views
    found += filter(
        None,
        [
            core.episode.refusal,
            views.indistinct(arrival.settings),
            arrival.standstill(core.episode),
            core.episode.remedy,
            reach_text(core.episode.reach),
        ],
    )
    if core.inputs.refused is not None:
        found.append(f"{core.inputs.refused[-1]}; ~/reset begins a new episode with it")
    if core.state is not State.MOVING and (standing := start_text(views)):
        found.append(standing)
    found += inputs.lost("camera_pose")
    found += inputs.gone("surface") or inputs.lost("mapper") or inputs.partners.troubles
    miss, target = core.episode.last_miss, core.episode.target
    if (
        miss is not None
        and core.state is State.MOVING
        and target is not None
        and target.stamp == miss.stamp
    ):
        found.append(str(miss))
    elif (behind := arrival.behind(core.episode, core.inputs)) > _LATE:
        found.append(behind_text(behind))
    under_way = core.episode.target is not None or core.episode.visited
    if under_way and core.inputs.unheard(core.settings.goal_subscribers):
        found.append(_too_few(core, inputs))
    return found


def status_values(core: PlannerCore, now: int) -> dict[str, object]:
    """Values of the status."""
    values: dict[str, object] = {
        "state": core.state.value,
        "views": len(core.episode.visited),
        "coverage_estimate": _coverage(core, core.inputs.belief),
        "elapsed": core.episode.elapsed(now),
        "lost_views": core.episode.lost_views,
        "skipped_views": core.episode.skipped_views,
        "unreached_views": core.episode.unreached_views,
        "last_miss": core.episode.last_miss or "",
        **_certified(core),
    }
    if core.episode.termination is None:
        return values
    ended = core.episode.termination
    # The values of every status come last: a value of the same name (views) must not change their
    # format.
    return {**ended.figures, **values, "reason": ended.reason.value, "detail": ended.detail}


def summary(core: PlannerCore, keeper: JournalKeeper, now: int) -> str:
    """Summary of the episode so far, and where it is saved, in one line."""
    found = core.episode.estimate
    coverage = f"{_coverage(core, core.inputs.belief):.1%} by the width of the band"
    if found is not None:
        coverage = f"{found.words} of {found.target.words} by the posterior shapes"
    lacking = "not saved: ~/save needs the parameter state_file, that of the mapper map_file"
    saved = f"saved to {keeper.path}" if keeper.path else lacking
    recorder = core.settings.recorder and f"; recorded by {core.settings.recorder}"
    return (
        f"{len(core.episode.visited)} views, coverage {coverage},"
        f" {core.episode.elapsed(now):.1f} s,"
        f" {path_length_through(core.planner.views, core.episode.visited):.1f} m between the views;"
        f" {saved}{recorder}"
    )


def _coverage(core: PlannerCore, belief: SurfaceBelief | None) -> float:
    """Estimated coverage: by the posterior shapes once they have evaluated a view, else by the
    width of the band.
    """
    found = core.episode.estimate
    if found is not None:
        return found.mean
    return 0.0 if belief is None else core.monitor.coverage(belief)


def _certified(core: PlannerCore) -> dict[str, object]:
    found = core.episode.estimate
    if found is None:
        return {}
    figures = {f"coverage_{name}": value for name, value in dataclasses.asdict(found).items()}
    return {**figures, "coverage_target": found.target.name}


def iteration_values(core: PlannerCore, goal: Goal, view_distance: float) -> dict[str, object]:
    """Why this view: utility, runner-up, margin, distance, time, and the state of the surface
    before it.
    """
    decision = goal.decision
    return {
        "round": goal.round,
        "decided_by": decision.decided_by,
        "goal_stamp": goal.stamp,
        "view_angle": decision.view_angle,
        **decision.view.off_circle(view_distance),
        "utility": decision.utility,
        "score": decision.score,
        "runner_up": decision.runner_up,
        "margin": decision.margin,
        "cost": decision.utility - decision.score,
        "candidates": len(decision.candidates),
        "feasible_candidates": int(decision.feasible.sum()),
        **excluded_numbers(decision.excluded),
        "planning_milliseconds": goal.planning_milliseconds,
        "surface_stamp": goal.belief_stamp,
        **goal.figures,
        **_certified(core),
    }


def plotted_values(core: PlannerCore, view_distance: float) -> dict[str, object]:
    """Numbers on `/diagnostics` for plotting tools, in addition to those of every status."""
    belief, goal = core.inputs.belief, core.episode.goal
    values: dict[str, object] = {
        "travelled": path_length_through(core.planner.views, core.episode.visited)
    }
    if core.episode.legs:
        last, learned = core.episode.legs[-1], pace(core)
        values |= {"leg_predicted": last.predicted, "leg_measured": last.travel + last.dwell}
        values |= {f"measured_{name}": getattr(learned, name) for name in PACE}
    if belief is not None:
        values["band_width_mean"] = float(belief.width.mean())
        values["narrow_fraction"] = belief.narrow_part(core.monitor.settings.band_tolerance)
    if goal is not None:
        values |= {"view_angle": goal.decision.view_angle, "utility": goal.decision.utility}
        values |= goal.decision.view.off_circle(view_distance)
        values["planning_milliseconds"] = goal.planning_milliseconds
    return values


def ranking_status(name: str, objective: str, found: Ranking | Exception) -> DiagnosticStatus:
    """Build the answer to a request for a ranking: the views in their order, or why there is
    none.
    """
    if isinstance(found, Exception):
        return status_message(name, DiagnosticStatus.ERROR, str(found), {})
    values: dict[str, object] = {"objective": objective, "views": len(found.views)}
    for index, angle in enumerate(found.views.view_angle.tolist()):
        row = {
            "utility": found.utilities[index],
            "cost": found.costs[index],
            "excluded": int(found.excluded[index]),
        }
        values |= {
            f"{index + 1}.{key}": value for key, value in {"view_angle": angle, **row}.items()
        }
    best = f"best: {values['1.view_angle']:.4f} rad, {objective} {values['1.utility']:.6g}"
    if found.excluded[0]:
        best = f"none may be chosen: {excluded_text(found.excluded)}"
    return status_message(
        name, DiagnosticStatus.OK, f"{best}; {len(found.views)} views ranked", values
    )


class StatusReport:
    """Publishes the status of the planner when it changes, and logs the important states."""

    def __init__(self, node: BaseNode, publisher: Any) -> None:
        """Take the node, the planner with its `core`, and its publisher of the status."""
        self._node, self._publisher = node, publisher
        self._last: tuple[State, str] | None = None
        self._line_at = -math.inf
        self._unreached = self._withdrawn = 0
        self._remedy = ""

    def text(self) -> tuple[bytes, str]:
        """Level and message."""
        node = self._node
        if node.active:
            return status_text(node.core, node.inputs, node.now_ns())
        return (
            DiagnosticStatus.WARN if node.failure is None else DiagnosticStatus.ERROR
        ), node.resting()

    def values(self) -> dict[str, object]:
        """State and numbers."""
        known: dict[str, object] = {"views": 0, "coverage_estimate": 0.0, "elapsed": 0.0}
        if self._node.core is not None:
            known = status_values(self._node.core, self._node.now_ns())
        return {**known, "state": self._state().value}

    def _state(self) -> State:
        if self._node.active:
            return self._node.core.state
        return State.PAUSED if self._node.configured else State.WAITING

    def publish(self, on_done: Callable[[], str]) -> None:
        """Publish what has changed; `on_done` is called at the end of the episode, and returns its
        summary.
        """
        node, state, (level, message) = self._node, self._state(), self.text()
        self._log_missed_view()
        if (state, message) == self._last:
            return
        before, self._last = self._last, (state, message)
        self._publisher.publish(
            status_message(f"{node.get_name()}: status", level, message, self.values())
        )
        done = state is State.DONE and on_done()
        if level == DiagnosticStatus.OK or done:
            self._log(
                state, f"{state.value}: {message}; {done}" if done else f"{state.value}: {message}"
            )
        if level != DiagnosticStatus.OK or not (before and {state, before[0]} <= _AT_WORK):
            node.publish_diagnostics()

    def _log(self, state: State, line: str) -> None:
        """Log the important states; the status has all of them."""
        now = time.monotonic()
        if state in _PASSING or (state in _AT_WORK and now - self._line_at < _LINE_PERIOD):
            self._node.get_logger().debug(line)
        else:
            self._line_at = now
            self._node.get_logger().info(line)

    def _log_missed_view(self) -> None:
        """Log that a view was not reached, or withdrawn; during a retry the status reports it."""
        core = self._node.core
        before, self._unreached = self._unreached, core.episode.unreached_views if core else 0
        if self._unreached > before and core.episode.last_miss is not None:
            self._node.get_logger().warning(
                f"view {len(core.episode.visited) + 1} {core.episode.last_miss}; left out, with its"
                f" neighbours, for {core.settings.unreachable_duration:g} s"
            )
        before, self._remedy = self._remedy, core.episode.remedy if core else ""
        if self._remedy and not before and core.episode.termination is None:
            self._node.get_logger().warning(self._remedy)
        before, self._withdrawn = self._withdrawn, core.episode.withdrawn_views if core else 0
        if self._withdrawn > before:
            self._node.get_logger().warning(core.episode.withdrawal)


class RunInfo:
    """Collects the parameters of the other nodes as they appear, tracks changes, and publishes
    them.
    """

    def __init__(self, node: BaseNode, others: Sequence[str]) -> None:
        """Start collecting; `others` are names of nodes in the same namespace."""
        self._node = node
        self._publisher = node.advertise(String, "run_info", qos.latched())
        own = {
            name: plain_value(parameter.value)
            for name, parameter in sorted(node.get_parameters_by_prefix("").items())
        }
        if "completeness_tau" in node.not_given(own):  # it follows from the noise of the mapper
            del own["completeness_tau"]
        self._known = {node.get_name(): own}
        self._others = tuple(others)
        # Two services only: every entity of a node costs time whenever it waits, and rclpy's own
        # client has six.
        self._clients = {
            name: (
                node.create_client(ListParameters, f"{name}/list_parameters"),
                node.create_client(GetParameters, f"{name}/get_parameters"),
            )
            for name in others
        }
        self._asked: set[str] = set()
        self._publish()
        node.create_subscription(
            ParameterEvent, "/parameter_events", self._on_event, qos_profile_parameter_events
        )
        self._timer = node.create_timer(0.5, self._ask)

    def _ask(self) -> None:
        """Request the parameter names of each new node; clients with an answer are destroyed."""
        for name, clients in list(self._clients.items()):
            if name in self._known:
                for client in self._clients.pop(name):
                    self._node.destroy_client(client)
            elif name not in self._asked and all(client.service_is_ready() for client in clients):
                self._asked.add(name)
                names = clients[0].call_async(ListParameters.Request())
                names.add_done_callback(lambda future, name=name: self._got_names(name, future))
        if not self._clients:
            self._timer.cancel()

    def _got_names(self, name: str, future: Any) -> None:
        names = sorted(future.result().result.names)

        def take(done: Any) -> None:
            values = map(plain_value, map(parameter_value_to_python, done.result().values))
            self._known[name] = dict(zip(names, values, strict=True))
            self._publish()

        self._clients[name][1].call_async(GetParameters.Request(names=names)).add_done_callback(
            take
        )

    def _on_event(self, event: ParameterEvent) -> None:
        """Receive a change at run time; before a node is queried, its answer will contain the
        change.
        """
        prefix = self._node.get_namespace().rstrip("/") + "/"
        known = self._known.get(event.node.removeprefix(prefix))
        changes = {
            changed.name: plain_value(parameter_value_to_python(changed.value))
            for changed in (*event.new_parameters, *event.changed_parameters)
        }
        if known is not None and {**known, **changes} != known:
            known.update(changes)
            self._publish()

    def _publish(self) -> None:
        missing = [name for name in self._others if name not in self._known]
        topics = {
            topic.name: self._node.resolve_topic_name(topic.name) for topic in RECORDED_TOPICS
        }
        named = {name: value for values in self._known.values() for name, value in values.items()}
        info = {
            "versions": versions(**packages_named(named)),
            "nodes": self._known,
            "nodes_not_found_yet": missing,
            "topics": topics,
        }
        self._publisher.publish(String(data=dumped(info)))
