"""What the pictures of the benchmark show, chosen from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nbv_planner.benchmarking.record import Measured, full_rows
from nbv_planner.plotting.growth import GrowthPanel, draw_growth
from nbv_planner.plotting.sweep.layout import Figure

_GRID, _VIEWS, _MEASUREMENTS = 1000, 100, 1500
_DENSE, _PLAIN, _ONE_VIEW = "dense, ν = 3/2", "one beam at a time", "one shape and view at a time"

Rows = list[dict[str, Any]]
Curves = dict[str, tuple[list[float], list[float]]]


def draw_pictures(measured: Measured) -> dict[str, Figure]:
    """Draw each measured part over whose sizes something grows; by file name without ending."""
    draw: dict[str, Callable[[Rows], Figure]] = {
        "mapper": _mapper, "objectives": _objectives, "shapes": _shapes, "camera": _camera,
    }
    rows = full_rows(measured)
    return {f"bench_{name}": draw[name](rows[name]) for name in draw if rows.get(name)}


def _curves(rows: Iterable[dict[str, Any]], label: Callable[[dict[str, Any]], str], x: str, y: str) -> Curves:
    """Ordinates `y` over abscissae `x` by label, rising; rows without a value are left out."""
    curves: Curves = {}
    for row in sorted(rows, key=lambda row: float(row[x])):
        if row[y] is not None:
            xs, ys = curves.setdefault(label(row), ([], []))
            xs.append(row[x])
            ys.append(row[y])
    return curves


def _mapper(rows: Rows) -> Figure:
    def ours(row: dict[str, Any]) -> str:
        return f"ν = {row['smoothness']}"

    by_number = sorted((row for row in rows if row["grid"] == _GRID), key=lambda row: str(row["smoothness"]))
    usual = [row for row in rows if row["smoothness"] == "3/2"]
    by_grid = [row for row in usual if row["measurements"] == _MEASUREMENTS]
    same_grid = [row for row in usual if row["grid"] == _GRID]

    def times(own: Rows, others: Rows, x: str) -> Curves:
        return (
            _curves(own, ours, x, "update")
            | _curves(others, lambda row: _DENSE, x, "dense_update")
            | _curves(others, lambda row: "scikit-learn, ν = 3/2", x, "scikit_learn")
        )

    number = "number of measurements n"
    return draw_growth([
        GrowthPanel(f"update, M = {_GRID}", number, "processor time (ms)", times(by_number, same_grid, "measurements")),
        GrowthPanel(f"held, M = {_GRID}", number, "memory (MB)", _curves(by_number, ours, "measurements", "megabytes")),
        GrowthPanel(
            f"update, n = {_MEASUREMENTS}", "grid angles M", "processor time (ms)", times(by_grid, by_grid, "grid")
        ),
    ], _DENSE)


def _objectives(rows: Rows) -> Figure:
    def name(row: dict[str, Any]) -> str:
        return str(row["objective"])

    panels = [
        GrowthPanel(title, xlabel, "processor time (ms)", _curves(
            [row for row in rows if row[fixed] == value], name, x, "evaluate_ms"
        ))
        for title, xlabel, fixed, value, x in (
            (f"all candidates, M = {_GRID}", "candidate views", "grid", _GRID, "views"),
            (f"{_VIEWS} candidates", "grid angles M", "views", _VIEWS, "grid"),
        )
    ]
    return draw_growth(panels)


def _shapes(rows: Rows) -> Figure:
    taken = max(row["taken"] for row in rows)
    emc = [row for row in rows if (row["planner"], row["taken"]) == ("EMC", taken)]
    curves = _curves(emc, lambda row: "all at once", "views", "decide_ms")
    plain = _curves(emc, lambda row: _ONE_VIEW, "views", "reference_ms")
    return draw_growth([
        GrowthPanel(f"EMC, decision after {taken} views", "candidate views", "processor time (ms)", curves | plain)
    ], _ONE_VIEW)


def _camera(rows: Rows) -> Figure:
    curves = _curves(rows, lambda row: "all at once", "beams", "cast_ms")
    plain = _curves(rows, lambda row: _PLAIN, "beams", "reference_ms")
    return draw_growth([
        GrowthPanel("scan of 4000 vertices", "beams", "processor time (ms)", curves | plain)
    ], _PLAIN)
