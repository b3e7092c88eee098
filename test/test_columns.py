"""Columns of results are named in one table, with which records, files, tables and documents
agree.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import json
import math
from pathlib import Path

import pytest

import nbv_planner
from nbv_planner.episode.judge import PointErrors, SurfaceError
from nbv_planner.episode.records import (
    EpisodeRecord,
    Metric,
    ViewColumn,
    ViewRecord,
    episode_metrics,
    write_record,
)
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.report.tables import Column

ROOT = Path(nbv_planner.__file__).parent
TABLE = ROOT / "episode" / "records.py"
DOCUMENT = ROOT.parent / "docs" / "reference" / "columns.md"
VIEW = ViewRecord(1, 0.5, 10, 0.25, 12, 3.5, 1.25)
# Words that mean other things too: nobody may take a value or make a column by them.
EVERYDAY = {
    "accuracy",
    "angle",
    "completeness",
    "coverage",
    "distance",
    "number",
    "seconds",
    "surface_points",
    "turn",
}
NAMES = {*ViewColumn.__members__, *Metric.__members__} - {"T"}  # that of a TypeVar
# They show or keep what is known of views and episodes.
TAKERS = ("get", "getattr", "Column")
ROOMS = (
    "nbv_planner/episode",
    "nbv_planner/report",
    "nbv_planner/bags",
    "nbv_planner/cli",
    "nbv_bench",
)


def taken_by(tree: ast.AST) -> set[int]:
    """Which nodes are keys: in brackets, or the arguments of what takes a value or makes a column
    by a name.
    """
    found = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TAKERS:
            found |= {id(argument) for argument in node.args}
    return found


def spelt(source: str) -> set[str]:
    """Names of columns that stand as literal strings."""
    tree = ast.parse(source)
    keys = taken_by(tree)
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in NAMES
        and (node.value not in EVERYDAY or id(node) in keys)
    }


# Tables of their own with a column that is called like one of views, but is another.
OTHERS = {
    # of what was left out; after which a view was decided
    "bags/analysis_tables.py": {"number", "seconds"},
    "episode/simulation.py": {"completeness"},  # at which an episode ends
    # of views in space
    "episode/solid/solid_results.py": {"completeness", "milliseconds", "travelled", "weighted"},
    "nbv_bench/cli/optimum.py": {"surface_points"},
    "nbv_bench/optimum/least.py": {"surface_points"},
    "nbv_bench/optimum/optimum_problem.py": {"surface_points"},
    "nbv_bench/experiments/summary/runs.py": {"coverage"},  # of which kind it is
    "nbv_bench/experiments/summary/sweep_tables.py": {"number"},  # of objects
}


@pytest.mark.parametrize("room", ROOMS)
def test_no_other_module_spells_the_name_of_a_column(room):
    modules = {
        str(path.relative_to(ROOT.parent)).removeprefix("nbv_planner/"): path
        for path in (ROOT.parent / room).rglob("*.py")
        if path != TABLE
    }
    found = {
        name: names
        for name, path in modules.items()
        if (names := spelt(path.read_text(encoding="utf-8")) - OTHERS.get(name, set()))
    }
    assert found == {}


def test_a_spelt_name_would_be_found():
    assert spelt('x = view["coverage"]') == {"coverage"}
    assert spelt('x = view.get("angle", 0)') == {"angle"}
    assert spelt('x = [Column("rmse", "RMSE, m", 4)]') == {"rmse"}
    assert spelt('for name in ("rmse", "iou"): pass') == {"rmse", "iou"}
    assert spelt('x = {"coverage": 1.0, "t": TypeVar("T")}') == set()


def test_the_table_has_exactly_the_fields_of_a_record_and_the_metrics_of_an_episode():
    assert list(ViewColumn.__members__) == [field.name for field in dataclasses.fields(ViewRecord)]
    by_weight = dataclasses.replace(VIEW, weighted=0.5)
    assert {*episode_metrics([by_weight], 40), Metric.T0.name} == set(Metric.__members__)
    assert Metric.W95.name not in episode_metrics([VIEW], 40)
    for errors in (SurfaceError, PointErrors):
        assert {field.name for field in dataclasses.fields(errors)} <= set(ViewColumn.__members__)


def test_a_column_is_read_from_a_record_and_from_what_a_file_has_of_one():
    assert (ViewColumn.angle.of(VIEW), ViewColumn.angle.of({"angle": 2.0})) == (0.5, 2.0)
    assert math.isnan(ViewColumn.chamfer.of(VIEW))
    assert ViewColumn.chamfer.of({"angle": 2.0}) is None
    assert ViewColumn.new_points.each([VIEW, {"new_points": 3}]) == [10, 3]


def test_views_csv_has_the_columns_in_their_order_and_an_older_one_is_read_back_without_the_newest(
    tmp_path,
):
    views = (dataclasses.replace(VIEW, chamfer=0.5), VIEW)
    ended = Termination(TerminationReason.STOPPED, {}, "")
    write_record(
        tmp_path, EpisodeRecord({"object": "x"}, {}, 0, views, ended, episode_metrics(views, 40))
    )
    with (tmp_path / "views.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(ViewColumn.__members__)
    assert float(rows[0]["chamfer"]) == 0.5
    old, _ = json.loads((tmp_path / "episode.json").read_text(encoding="utf-8"))["views"]
    del old["chamfer"]
    known = {name: value for name, value in old.items() if value is not None}
    assert math.isnan(ViewRecord(**known).chamfer)


def test_a_column_of_a_table_is_called_and_rounded_as_the_table_says():
    column = Column.of(ViewColumn.rmse, interval=True)
    assert column.names == ["rmse", "rmse_low", "rmse_high"]
    assert (column.title, column.text(0.12345)) == ("RMSE (m)", "0.1235")
    assert Column.of(ViewColumn.iou).title == "IoU"


@pytest.mark.parametrize("columns", [ViewColumn, Metric])
def test_the_document_has_every_column_with_its_unit_and_what_it_is(columns):
    rows = [
        f"| `{one.name}` | {one.title} | {one.unit} | {one.what.replace('|', chr(92) + '|')} |"
        for one in columns
    ]
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8")
