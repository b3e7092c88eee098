"""Tables of a replay."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nbv_planner.bags.replay.replay import ReplayedDecision
from nbv_planner.reports.table import Column, Table

_COLUMNS = (
    Column("view", "view"),
    Column("angle_deg", "recorded, °", 2),
    Column("replayed_deg", "replayed, °", 2),
    Column("same", "same view"),
    Column("utility_gap", "utility apart", 9),
    Column("belief_gap", "belief apart, m", 9),
    Column("new_points", "new points, recorded"),
    Column("replayed_new_points", "new points, replayed"),
)
_NOTE = (
    "Each decision is made again from the belief that the recorded scans give, the views before it being the recorded "
    "ones. "
)
_TRUTH = "New points: what each of both views would have seen for the first time, of the true object in the bag."
_NO_TRUTH = "What a view that was not taken would have seen is not known: the bag carries no true object."


def replay_table(decisions: Sequence[ReplayedDecision], *, changed: bool = False) -> Table:
    """Decision by decision: what was recorded, and what came out.

    Args:
        decisions: the decisions.
        changed: whether something was changed on purpose: then utilities have nothing to be compared with.
    """
    rows = tuple(
        (
            number, math.degrees(one.recorded.view_angle),
            None if one.choice.view_angle is None else math.degrees(one.choice.view_angle),
            "no" if one.choice.differs else "yes", None if changed else one.utility_gap, one.belief_gap, one.new_points,
            one.choice.new_points,
        )
        for number, one in enumerate(decisions, start=1)
    )
    known = any(one.new_points is not None for one in decisions)
    return Table("replay", "Decisions, recorded and replayed", _NOTE + (_TRUTH if known else _NO_TRUTH), _COLUMNS, rows)


def greatest(values: Sequence[float | None]) -> float | None:
    """The greatest of those that are known."""
    return max((value for value in values if value is not None), default=None)
