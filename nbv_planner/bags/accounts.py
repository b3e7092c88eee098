"""Accounts of a recording: time by state, drops by reason, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from nbv_planner.bags.recording import Recording
from nbv_planner.evaluation.assembly import ViewEvidence
from nbv_planner.topics import CAMERA_POSE, DIAGNOSTICS, ITERATION, STATUS

_DROPPED = "dropped."
_WITHOUT = {
    ITERATION: f"predicted utilities and times of decisions: {ITERATION} is not in the bag (views: from goal_pose)",
    STATUS: f"time by phase: {STATUS} is not in the bag",
    DIAGNOSTICS: f"drops by reason: {DIAGNOSTICS} is not in the bag",
    CAMERA_POSE: f"length of the way driven: {CAMERA_POSE} is not in the bag",
}


def seconds_by_state(recording: Recording) -> dict[str, float]:
    """Seconds in each state, from its message to the next one, by the time of arrival."""
    seconds: dict[str, float] = defaultdict(float)
    for (begin, state), (end, _) in zip(recording.states, recording.states[1:], strict=False):
        seconds[state] += max(0, end - begin) * 1e-9
    return dict(seconds)


def drops(recording: Recording) -> dict[tuple[str, str], int]:
    """Numbers by node and reason, as each node said last."""
    found = {}
    for node, values in recording.diagnostics.items():
        for key, value in values.items():
            if key.startswith(_DROPPED) and value.isascii() and value.isdigit() and len(value) < 19:
                found[node, key.removeprefix(_DROPPED)] = int(value)
    return found


def missing(recording: Recording, views: Sequence[ViewEvidence]) -> list[str]:
    """What cannot be said because it was not recorded."""
    found = [_WITHOUT[name] for name in recording.topics.missing if name in _WITHOUT]
    if not views:
        found.append("everything about views: the bag holds no decision and no goal")
    rounds = {view.decision.round for view in views if view.decision.round > 0}
    last = max(rounds, default=0)
    if len(rounds) < last:
        found.append(
            f"{last - len(rounds)} of {last} decisions are not in the bag, and neither are their views: coverage and "
            "regret are those of the others"
        )
    for what, number in (
        ("surface", sum(view.belief is None for view in views)),
        ("candidates", sum(view.candidates is None for view in views)),
        ("scan or camera pose", sum(view.scan is None or view.pose is None for view in views)),
    ):
        if number > 0:
            found.append(f"{number} of {len(views)} views are without their {what}")
    if recording.termination is None:
        found.append("why the episode ended: no status says so")
    return found


def remark_lines(remarks: Counter[str]) -> list[str]:
    """Every remark, with the number of times if it is not one."""
    return [text if number == 1 else f"{text} ({number} times)" for text, number in remarks.items()]
