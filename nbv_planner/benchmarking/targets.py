"""What the package means to reach, next to what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.benchmarking.growth import growth_rows
from nbv_planner.benchmarking.tables import Column
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS

Rows = Sequence[dict[str, Any]]

_CLOSED_FORM = {"I", "C", "CS", "CSP", "CSW", "U", "UP"}
_MANY = 1_000_000
_WHILE_S, _LONG_S = 60.0, 600.0

TARGET_COLUMNS = (
    Column("target", "target"), Column("bound", "bound"), Column("worst", "worst measured"), Column("met", "met"),
)


@dataclass(frozen=True)
class Target:
    """A bound on the worst of some measured values.

    Attributes:
        part: part of the benchmark that measures it.
        text: what is bounded, with its unit.
        bound: the bound.
        values: all values that it holds for; none if the rows do not say.
        at_least: whether it is a lower bound.
    """

    part: str
    text: str
    bound: float
    values: Callable[[Rows], list[float]]
    at_least: bool = False

    def row(self, rows: Rows) -> dict[str, Any] | None:
        """Compare; None if there is nothing to compare."""
        values = self.values(rows)
        if not values:
            return None
        worst = min(values) if self.at_least else max(values)
        met = worst >= self.bound if self.at_least else worst <= self.bound
        sign = "≥" if self.at_least else "≤"
        return {"target": self.text, "bound": f"{sign} {self.bound:g}", "worst": float(worst), "met": met}


def target_rows(rows: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """Compare all targets with the rows by part; those that were not measured are left out."""
    compared = (target.row(rows[target.part]) for target in TARGETS if target.part in rows)
    return [row for row in compared if row is not None]


def _values(key: str, **where: Any) -> Callable[[Rows], list[float]]:
    """Values under `key` of the rows in which all of `where` hold."""
    def values(rows: Rows) -> list[float]:
        chosen = (row for row in rows if all(row[name] == value for name, value in where.items()))
        return [row[key] for row in chosen if row.get(key) is not None]

    return values


def _growth(key: str, smoothness: str) -> Callable[[Rows], list[float]]:
    return lambda rows: [
        row[key] for row in growth_rows(rows) if row["smoothness"] == smoothness and row["to"] >= _MANY
    ]


def _samples_per_update(rows: Rows) -> list[float]:
    return [row["samples"] / row["update"] for row in rows]


def _of_objectives(key: str, closed_form: bool) -> Callable[[Rows], list[float]]:
    """Of 100 candidates on 1000 grid angles: of the closed forms, or of IOA."""
    chosen = _CLOSED_FORM if closed_form else {"IOA"}
    return lambda rows: [
        row[key] for row in rows if row["objective"] in chosen and (row["views"], row["grid"]) == (100, 1000)
    ]


def _whole_table(rows: Rows) -> list[float]:
    return [row["wall_s"] for row in rows if row["objects"] * row["planners"] == 22 * 7]


def _loop(key: str, least_s: float) -> Callable[[Rows], list[float]]:
    return lambda rows: [
        row[key] for row in rows
        if row["rate_hz"] == 40.0 and row["duration_s"] >= least_s and row.get(key) is not None
    ]


TARGETS = (
    *(Target("mapper", f"ν = {nu}: update at n = 1500, M = 1000: dense time to ours", 100.0,
             _values("ratio", smoothness=nu, measurements=1500, grid=1000), at_least=True) for nu in MATERN_SMOOTHNESS),
    *(Target("mapper", f"ν = {nu}: time of an update from n = 10³ to 10⁶: log–log slope", 0.05,
             _growth("update", nu)) for nu in MATERN_SMOOTHNESS),
    *(Target("mapper", f"ν = {nu}: memory from n = 10³ to 10⁶: log–log slope", 0.05,
             _growth("megabytes", nu)) for nu in MATERN_SMOOTHNESS),
    Target("mapper", "64 joint samples: time in updates", 5.0, _samples_per_update),
    Target("mapper", "mean and standard deviation: difference from dense, m", 1e-6, _values("difference")),
    Target("objectives", "closed forms, 100 candidates: one-at-a-time time to ours", 100.0,
           _of_objectives("ratio", True), at_least=True),
    Target("objectives", "IOA, 100 candidates: one-at-a-time time to ours", 20.0,
           _of_objectives("ratio", False), at_least=True),
    Target("objectives", "decision by a closed form, 100 candidates, ms", 1.0, _of_objectives("decide_ms", True)),
    Target("objectives", "decision by IOA, 100 candidates, ms", 10.0, _of_objectives("decide_ms", False)),
    *(Target("shapes", f"decision by {planner}, 100 candidates, 32 shapes, ms", bound,
             _values("decide_ms", planner=planner, views=100, shapes=32))
      for planner, bound in (("EMC", 40.0), ("rollout", 100.0))),
    Target("camera", "scan of 640 beams, 4000 vertices, ms", 1.0, _values("cast_ms", beams=640)),
    Target("table", "the thesis's table with 2 workers, wall time, s", 60.0, _whole_table),
    Target("loop", "scan in to goal out at 40 Hz: 99th percentile, ms", 20.0,
           _loop("scan_in_to_goal_ms.p99", _WHILE_S)),
    Target("loop", "status, pause and parameter calls at 40 Hz: 99th percentile, ms", 100.0,
           _loop("call_ms.all.p99", _WHILE_S)),
    Target("loop", "memory of the mapper at 40 Hz: growth in 10 minutes, MB", 1.0,
           _loop("nodes.surface_mapper.rss_growth_mb", _LONG_S)),
)
"""All targets."""
