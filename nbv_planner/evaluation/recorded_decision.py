"""What the planner says of its decisions and of its end, read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from nbv_planner.errors import InputRejectedError
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination, TerminationReason

STATUS_KEYS = {
    "state", "views", "coverage_estimate", "elapsed", "lost_views", "skipped_views", "unreached_views", "reason",
    "detail",
}
"""What every status holds, beside the figures of a termination."""

_CERTIFIED = ("coverage_mean", "coverage_lower", "coverage_upper", "coverage_probability")


@dataclass(frozen=True)
class RecordedDecision:
    """What `nbv_planner/iteration` says of a decision.

    Attributes:
        round: number of the view, from 1.
        goal_stamp: time of the decision, nanoseconds; names the goal.
        view_angle: where the camera was sent, radians.
        utility: value of the objective there.
        milliseconds: time that the decision took.
        surface_stamp: time of the newest scan in the belief from which it was made, nanoseconds; None if not said.
    """

    round: int
    goal_stamp: int
    view_angle: float
    utility: float
    milliseconds: float
    surface_stamp: int | None = None


def decision_from_values(values: Mapping[str, str]) -> RecordedDecision:
    """Read the values of an `iteration` message.

    Raises:
        InputRejectedError: reason `iteration`: a value is missing or is no number.
    """
    try:
        surface = values.get("surface_stamp")
        if not math.isfinite(float(values["view_angle"])):
            raise ValueError(f"view_angle is {values['view_angle']}")
        return RecordedDecision(
            int(values["round"]), int(values["goal_stamp"]), float(values["view_angle"]), float(values["utility"]),
            float(values["planning_milliseconds"]), None if surface is None else int(surface),
        )
    except (KeyError, ValueError) as error:
        raise InputRejectedError("iteration", f"the iteration has no usable value: {error}") from error


def termination_from_values(values: Mapping[str, str]) -> Termination | None:
    """Read why an episode ended from the values of a `status` message; None if it goes on.

    Raises:
        InputRejectedError: reason `status`: the reason is not known, or a figure is no number.
    """
    if "reason" not in values:
        return None
    try:
        figures = {key: float(value) for key, value in values.items() if key not in {*STATUS_KEYS, *_CERTIFIED}}
        reason = TerminationReason(values["reason"])
        if reason in (TerminationReason.MAX_VIEWS, TerminationReason.STOPPED):
            figures["views"] = float(values["views"])  # in every status, but a figure of these two only
    except (KeyError, ValueError) as error:
        raise InputRejectedError("status", f"the status has no usable value: {error}") from error
    return Termination(reason, figures, values.get("detail", ""))


def estimate_from_values(values: Mapping[str, str]) -> CoverageEstimate | None:
    """Read the coverage by the posterior shapes from a `status` or an `iteration`; None if it does not hold it.

    Raises:
        InputRejectedError: reason `status`: a part of it is missing, no number, or out of range.
    """
    if not any(name in values for name in _CERTIFIED):
        return None
    try:
        figures = [float(values[name]) for name in _CERTIFIED]
    except (KeyError, ValueError) as error:
        raise InputRejectedError("status", f"the estimated coverage is not usable: {error!r}") from error
    if not all(0.0 <= figure <= 1.0 for figure in figures):
        raise InputRejectedError("status", f"the estimated coverage holds {figures}, must be from 0 to 1")
    return CoverageEstimate(*figures)
