"""Planners of a sweep that are the same but for one number: what is varied, and which of them belong together."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

_FEWEST = 3
"""Planners that make a series; of two it would be a guess what is varied."""


@dataclasses.dataclass(frozen=True)
class Series:
    """Planners that differ in one number.

    Attributes:
        name: the parameter that is varied.
        planners: labels of the planners by its value, rising.
    """

    name: str
    planners: Mapping[float, str]


def series_around(sweep: Mapping[str, Any]) -> dict[str, list[Series]]:
    """Find the series of at least three planners, those with a planner in common together.

    Args:
        sweep: a sweep in plain values, as :meth:`nbv_planner.experiments.sweep.Sweep.as_dict` gives it.

    Returns:
        The series by the planner that all of them hold; a series of its own by its first one in the sweep.
    """
    labels, centres = list(sweep["planners"]), dict[str, list[Series]]()
    for series in _all_series(sweep):
        own = sorted(series.planners.values(), key=labels.index)
        centre = next((label for label in own if label in centres), None)
        centres.setdefault(centre or own[0], []).append(series)
    return centres


def _all_series(sweep: Mapping[str, Any]) -> Iterator[Series]:
    """Every series, by parameter in the order of the settings."""
    parameters = {label: _parameters(sweep, label) for label in sweep["planners"]}
    found: dict[tuple[str, str], dict[float, str]] = defaultdict(dict)
    for label, values in parameters.items():
        for name, value in values.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                others = json.dumps({key: other for key, other in values.items() if key != name}, sort_keys=True)
                found[name, others].setdefault(value, label)
    for (name, _), planners in found.items():
        if len(planners) >= _FEWEST:
            yield Series(name.rpartition(".")[2], dict(sorted(planners.items())))


def _parameters(sweep: Mapping[str, Any], label: str) -> dict[str, Any]:
    """All settings of one planner, its own in place of those of the sweep, by group and name."""
    planner = sweep["planners"][label]
    own = planner.get("settings", {})
    values = {name: value for name, value in planner.items() if name != "settings"}
    for group, fields in sweep["settings"].items():
        if isinstance(fields, dict):
            values |= {f"{group}.{name}": value for name, value in {**fields, **own.get(group, {})}.items()}
    return values
