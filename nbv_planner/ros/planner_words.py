"""What the planner says of itself: status, what it waits for, and why it goes where it goes."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus

from nbv_planner.planning.coverage import narrow_fraction
from nbv_planner.planning.exclusion import excluded_numbers
from nbv_planner.planning.goal import Goal
from nbv_planner.planning.session import PlanningSession, State, travel
from nbv_planner.ros.inputs import Inputs

# Where the planner's partners are: what is wrong there keeps the episode from going on.
_PARTNERS = ("surface", "camera_pose", "goal_pose")
_HINTS = {"surface": " (surface_mapper does once its own inputs are alive)"}


def status_words(session: PlanningSession, inputs: Inputs, now: int) -> tuple[bytes, str]:
    """Level and message of the status; a WARN says what is missing, lost or does not fit."""
    if session.termination is not None:
        return DiagnosticStatus.OK, f"{session.termination.reason.value}: {session.termination.detail}"
    level, words = _waiting_words(session, inputs, now)
    troubles = _troubles(session, inputs)
    more = [text for text in troubles if text not in words]
    return (DiagnosticStatus.WARN if troubles else level), "; ".join([words, *more])


def _waiting_words(session: PlanningSession, inputs: Inputs, now: int) -> tuple[bytes, str]:
    if session.overdue(now) is not None:
        limit = session.settings.input_timeout
        return DiagnosticStatus.WARN, f"{_awaited(session, inputs)}; nothing for more than {limit:g} s"
    number = len(session.visited) + 1
    messages = {
        State.PLANNING: "choosing the next view",
        State.MOVING: f"to view {number}" if session.ending is None else "to the home view",
        State.MEASURING: f"at view {number}, waiting for its surface",
        State.PAUSED: session.interruption or "paused by the operator",
    }
    return DiagnosticStatus.OK, messages.get(session.state) or _awaited(session, inputs)


def _awaited(session: PlanningSession, inputs: Inputs) -> str:
    """What the planner waits for, in words."""
    if session.state is State.MEASURING:
        return f"waiting for a surface with a scan of view {len(session.visited) + 1} on {inputs.described('surface')}"
    if not session.started:
        return "waiting for the service ~/start"
    words = [
        _too_few(session, inputs) if topic == "goal_pose" else "; ".join(inputs.missing(topic)) + _HINTS.get(topic, "")
        for topic in session.missing()
    ]
    return "waiting for " + "; ".join(words)


def _too_few(session: PlanningSession, inputs: Inputs) -> str:
    """Say who does not hear the goals."""
    found, wanted = session.inputs.subscribers, session.settings.goal_subscribers
    return "; ".join([
        f"{inputs.described('goal_pose')}: {found} of {wanted} subscribers ({session.inputs.hearers})",
        *inputs.problems("goal_pose"),
    ])


def _troubles(session: PlanningSession, inputs: Inputs) -> list[str]:
    """What was there and is lost, and what cannot work."""
    found = [*inputs.clock(), *inputs.problems(*_PARTNERS)]
    if session.inputs.pose is not None:
        found += inputs.missing("camera_pose")
    if session.inputs.belief is not None:
        found += inputs.gone("surface")
    few = session.inputs.subscribers < session.settings.goal_subscribers
    if few and (session.target is not None or session.visited):
        found.append(_too_few(session, inputs))
    return found


def status_values(session: PlanningSession, now: int) -> dict[str, object]:
    """Values of the status."""
    values: dict[str, object] = {
        "state": session.state.value, "views": len(session.visited), "coverage_estimate": session.coverage,
        "elapsed": session.elapsed(now), "lost_views": session.lost_views, "skipped_views": session.skipped_views,
        "unreached_views": session.unreached_views, **_certified(session),
    }
    if session.termination is None:
        return values
    ended = session.termination
    # What every status holds comes last: a figure of the same name (views) must not change its form.
    return {**ended.figures, **values, "reason": ended.reason.value, "detail": ended.detail}


def _certified(session: PlanningSession) -> dict[str, object]:
    """What the posterior shapes say of the coverage, after the newest view."""
    found = session.monitor.estimate
    if found is None:
        return {}
    return {
        "coverage_mean": found.mean, "coverage_lower": found.lower, "coverage_upper": found.upper,
        "coverage_probability": found.probability,
    }


def iteration_values(session: PlanningSession, goal: Goal, view_distance: float) -> dict[str, object]:
    """Why this view: utility, runner-up, margin, way, time, and the state of the surface before it."""
    decision = goal.decision
    return {
        "round": goal.round,
        "decided_by": decision.decided_by,
        "goal_stamp": goal.stamp,
        "view_angle": decision.view_angle,
        "utility": decision.utility,
        "score": decision.score,
        "runner_up": decision.runner_up,
        "margin": decision.margin,
        "cost": decision.utility - decision.score,
        "candidates": len(decision.candidates),
        "feasible_candidates": int(decision.feasible.sum()),
        **excluded_numbers(decision.excluded),
        "travel": travel(session.inputs.pose, goal, view_distance),
        "planning_milliseconds": goal.planning_milliseconds,
        "surface_stamp": goal.belief_stamp,
        "band_width_mean": float(goal.belief.width.mean()),
        "narrow_fraction": narrow_fraction(goal.belief, session.monitor.settings.band_tolerance),
        "coverage_estimate": session.monitor.coverage(goal.belief),
        **_certified(session),
    }
