"""Episodes made by hand, with numbers that can be checked on paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from nbv_bench.experiments.results import SweepResults
from nbv_bench.statistics import compare_cases

REFERENCE = "greedy_oracle"


def episode(
    planner: str,
    shape: str = "one",
    *,
    views: int = 4,
    views_95: int | None = 3,
    rec: float = 1.0,
    regret: float = 0.0,
    protocol: str = "thesis",
    seed: int = 0,
    more: dict[str, Any] | None = None,
    **last: float,
) -> dict[str, Any]:
    """Content of an episode's file, as far as the report reads it."""
    view = {
        "angle": 0.5,
        "new_points": 10,
        "coverage": rec,
        "milliseconds": 2.0,
        "rmse": 0.1,
        **last,
    }
    return {
        "case": {
            "planner": planner,
            "object": shape,
            "object_class": shape.partition(":")[0],
            "protocol": protocol,
            "seed": seed,
        },
        "metrics": {
            "T": views,
            "T95": views_95,
            "rec": rec,
            "mean_individual_regret": regret,
            **(more or {}),
        },
        "views": [dict(view) for _ in range(views)],
        "termination": {"reason": "MAX_VIEWS"},
    }


def compared(episodes: list[dict[str, Any]], reference: str | None = REFERENCE) -> pd.DataFrame:
    return compare_cases(episodes, reference)


def sweep_of(episodes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A manifest's sweep that holds all episodes, in the order of their first occurrence."""

    def values(key: str) -> list[Any]:
        return list(dict.fromkeys(e["case"][key] for e in episodes))

    settings = {
        p: {
            "planner": "greedy",
            "objective": "OSM" if p == REFERENCE else "U",
            "phase_one_objective": "CS",
        }
        for p in values("planner")
    }
    return {
        "name": "by hand",
        "objects": values("object"),
        "planners": settings,
        "protocols": values("protocol"),
        "seeds": sorted(values("seed")),
        "settings": {},
        **more,
    }


def results(
    episodes: list[dict[str, Any]], sweep: dict[str, Any], failures: Iterable[dict[str, Any]] = ()
) -> SweepResults:
    manifest = {"sweep": sweep, "versions": {"numpy": "1.2.3"}, "cases": 10}
    return SweepResults(manifest, {"episode": episodes}, list(failures))


def rows(table) -> dict[str, dict[str, Any]]:
    """Rows by what stands in the first column."""
    names = [column.name for column in table.columns]
    return {row[0]: dict(zip(names, row, strict=True)) for row in table.rows}
