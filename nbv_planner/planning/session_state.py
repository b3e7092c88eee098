"""The parts of a planning session as plain values and arrays, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.camera import CameraPose
from nbv_planner.errors import StateFileError
from nbv_planner.planning.goal import Goal
from nbv_planner.planning.planners import Decision
from nbv_planner.planning.planners.account import Round
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.surface import SurfaceBelief

Values = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]

_DECIDED = ("view_angle", "utility", "score", "runner_up", "margin")
_BY_CANDIDATE = ("candidates", "utilities", "costs", "excluded")
_BELIEVED = ("angle", "mean", "std", "lower", "upper")


def goal_state(goal: Goal | None) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
    """A goal as plain values and arrays; None and no arrays if there is none."""
    if goal is None:
        return None, {}
    decision, belief = goal.decision, goal.belief
    arrays = {f"goal_{name}": getattr(decision, name) for name in _BY_CANDIDATE}
    # Numbers that may be NaN, which JSON does not know.
    arrays["goal_decision"] = np.array([getattr(decision, name) for name in _DECIDED])
    arrays["goal_belief"] = np.stack([getattr(belief, name) for name in _BELIEVED])
    arrays["goal_belief_hits"] = belief.hits
    values = {
        "pose": [goal.pose.x, goal.pose.y, goal.pose.yaw], "stamp": goal.stamp, "round": goal.round,
        "planning_milliseconds": goal.planning_milliseconds, "belief_stamp": goal.belief_stamp,
        "decided_by": decision.decided_by,
    }
    return values, arrays


def goal_from_state(values: Values | None, arrays: Arrays) -> Goal | None:
    """The goal that :func:`goal_state` described.

    Raises:
        StateFileError: `content`: it is none.
    """
    if values is None:
        return None
    decided, believed = arrays["goal_decision"], arrays["goal_belief"]
    columns: dict[str, Any] = {name: arrays[f"goal_{name}"] for name in _BY_CANDIDATE}
    lengths = {column.shape for column in columns.values()}
    if decided.shape != (len(_DECIDED),) or believed.ndim != 2 or len(lengths) != 1:
        raise content_error("goal: its arrays do not fit together")
    if not (np.isfinite(decided[:2]).all() and np.isfinite(believed).all()):
        raise content_error("goal: holds a value that is not finite")
    numbers = dict(zip(_DECIDED, decided.tolist(), strict=True))
    decision = Decision(**numbers, **columns, decided_by=str(values["decided_by"]))
    belief = SurfaceBelief(**dict(zip(_BELIEVED, believed, strict=True)), hits=arrays["goal_belief_hits"])
    x, y, yaw = (finite("goal: pose", value) for value in values["pose"])
    pose = CameraPose(x, y, yaw)
    return Goal(
        pose, whole("goal: stamp", values["stamp"]), decision, whole("goal: round", values["round"]),
        finite("goal: planning_milliseconds", values["planning_milliseconds"]), belief,
        whole("goal: belief_stamp", values["belief_stamp"]),
    )


def termination_state(termination: Termination | None) -> dict[str, Any] | None:
    """A termination as plain values, None if there is none."""
    if termination is None:
        return None
    return {"reason": termination.reason.value, "figures": termination.figures, "detail": termination.detail}


def termination_from_state(values: Values | None) -> Termination | None:
    """The termination that :func:`termination_state` described."""
    if values is None:
        return None
    figures = {str(name): finite(f"termination: {name}", value) for name, value in values["figures"].items()}
    return Termination(TerminationReason(values["reason"]), figures, str(values["detail"]))


def rounds_state(rounds: Sequence[Round | None]) -> list[list[float] | None]:
    """Rounds of an account as plain values: best and taken, or None where nothing is known."""
    return [None if entry is None else [entry.best, entry.taken] for entry in rounds]


def rounds_from_state(values: Any, views: int) -> list[Round | None]:
    """The rounds that :func:`rounds_state` described, one for each of a number of `views`.

    Raises:
        StateFileError: `content`: they are none; no view is worth less than nothing or more than the best.
    """
    if not isinstance(values, list) or len(values) != views:
        raise content_error(f"account: must be a list of {views} rounds, one for each view taken and for the goal")
    return [None if entry is None else _round_from_state(entry) for entry in values]


def _round_from_state(values: Any) -> Round:
    if not isinstance(values, list) or len(values) != 2:
        raise content_error(f"account: {values!r} must be two numbers, best and taken, or null")
    best, taken = (finite("account", value) for value in values)
    if not 0.0 <= taken <= best:
        raise content_error(f"account: taken {taken} must be between 0 and best {best}")
    return Round(best, taken)


def content_error(detail: str) -> StateFileError:
    """Error for content that no session can have."""
    return StateFileError("content", detail)


def finite(name: str, value: Any) -> float:
    """Return `value` as a float.

    Raises:
        StateFileError: `content`: it is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise content_error(f"{name}: {value!r} must be a finite number")
    return float(value)


def whole(name: str, value: Any) -> int:
    """Return `value`.

    Raises:
        StateFileError: `content`: it is no integer.
    """
    if type(value) is not int:
        raise content_error(f"{name}: {value!r} must be an integer")
    return value


def truth(name: str, value: Any) -> bool:
    """Return `value`.

    Raises:
        StateFileError: `content`: it is neither true nor false.
    """
    if type(value) is not bool:
        raise content_error(f"{name}: {value!r} must be true or false")
    return value
