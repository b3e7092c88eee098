"""Cores that another process goes on with: their facts through the text of a journal."""

from __future__ import annotations

import json
from typing import Any

from nbv_planner.session.journal import from_records, to_record
from nbv_planner.session.planner_core import PlannerCore


def records_of(run: PlannerCore) -> list[Any]:
    """All facts of a core that keeps them, as a journal gives them back."""
    return json.loads(json.dumps([to_record(fact, 0) for fact in run.facts], allow_nan=False))


def restarted(run: PlannerCore, other: PlannerCore, facts: int | None = None) -> PlannerCore:
    """Let the `other` core, of another process, go on after the first `facts` of `run`, or all."""
    known = run.facts[:facts]
    other.resume(from_records(records_of(run)[:facts])[0])
    other.facts[:] = known
    return other
