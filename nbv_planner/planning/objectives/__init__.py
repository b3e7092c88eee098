"""The objectives: what is known of each by id, the contract, and EMC; those of the thesis are in
its own room.
"""

from __future__ import annotations

import inspect
from typing import Any

from nbv_planner.planning.objectives.objective import (
    EXPECTED,
    OBJECTIVE_INFO,
    OMNISCIENT,
    REQUIREMENTS,
    TRUTH_OBJECTIVES,
    ExpectedMarginalCoverage,
    Ledger,
    Objective,
    ObjectiveInfo,
    Situation,
)
from nbv_planner.settings import Plugins


def _no_objective(name: str, cls: Any) -> str:
    if (
        not isinstance(getattr(cls, "info", None), ObjectiveInfo)
        or cls.info.id != name
        or cls.info.needs_truth
    ):
        return f"must have info = ObjectiveInfo({name!r}, ...), without needs_truth"
    return wrong_contract(cls, "evaluate")


def wrong_contract(cls: Any, method: str) -> str:
    """Why a class has no method of one situation; empty if it has."""
    given = (
        tuple(inspect.signature(getattr(cls(), method)).parameters) if hasattr(cls, method) else ()
    )
    if len(given) == 1:
        return ""
    before = (
        f", not {method}({', '.join(given)}) of version 1: docs/how_to/migrate.md says how"
        if given
        else ""
    )
    return f"must have a method {method}(situation){before}"


OBJECTIVE_PLUGINS = Plugins("objective", OBJECTIVE_INFO, _no_objective)
"""Objectives of other packages; an entry point has the id as its name."""


def known_objectives() -> dict[str, ObjectiveInfo]:
    """What is known about each objective, by id; those of other packages come last."""
    return {
        **OBJECTIVE_INFO,
        **{name: plugin.cls.info for name, plugin in OBJECTIVE_PLUGINS.usable.items()},
    }


__all__ = [
    "EXPECTED",
    "OBJECTIVE_INFO",
    "OBJECTIVE_PLUGINS",
    "OMNISCIENT",
    "REQUIREMENTS",
    "TRUTH_OBJECTIVES",
    "ExpectedMarginalCoverage",
    "Ledger",
    "Objective",
    "ObjectiveInfo",
    "Situation",
    "known_objectives",
    "wrong_contract",
]
