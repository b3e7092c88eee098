"""Files of a report: all of them or the old ones, and nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbv_bench.experiments.summary import contents
from nbv_bench.experiments.summary.contents import check_report_folder, write_report
from nbv_planner.errors import ResultsError
from nbv_planner.report.page import GENERATOR, Picture
from nbv_planner.report.tables import Column, Table

TABLE = Table("sizes", "Sizes", "", (Column("name", "Name"),), (("a",),))
PICTURE = Picture("curve", "Curve", "a curve", b"png", b"svg")
PAGE = f"<html>{GENERATOR}</html>"


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_table_and_picture_has_both_formats(tmp_path):
    write_report(tmp_path / "new" / "deep", [TABLE], [PICTURE], PAGE, bench=None)
    found = files(tmp_path / "new" / "deep")
    assert json.loads(found.pop("report.json")) == {
        "bench": None,
        "tables": {"sizes": TABLE.to_json()},
    }
    assert found == {
        "report.html": PAGE.encode(),
        "tables/sizes.csv": b"name\na\n",
        "tables/sizes.md": TABLE.to_markdown().encode(),
        "figures/curve.png": b"png",
        "figures/curve.svg": b"svg",
    }


def test_report_replaces_an_earlier_one_as_a_whole_and_keeps_the_sweep(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / "a.json").write_text("1")
    write_report(tmp_path, [TABLE], [PICTURE], PAGE)
    other = Table("other", "Other", "", TABLE.columns, TABLE.rows)
    write_report(tmp_path, [other], [], PAGE + "\n")
    assert set(files(tmp_path)) == {
        "manifest.json",
        "episodes/a.json",
        "report.html",
        "report.json",
        "tables/other.csv",
        "tables/other.md",
    }


def test_what_fails_leaves_the_earlier_report(tmp_path, monkeypatch):
    write_report(tmp_path / "r", [TABLE], [PICTURE], PAGE)
    before = files(tmp_path / "r")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(contents.Path, "write_bytes", full)
    with pytest.raises(ResultsError, match="No space left on device"):
        write_report(tmp_path / "r", [TABLE], [PICTURE], PAGE + "new")
    assert files(tmp_path / "r") == before


@pytest.mark.parametrize("name", ["thesis.tex", "report.html", "tables/mine.csv"])
def test_folder_with_something_else_is_refused(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(ResultsError, match="neither a sweep nor a report"):
        write_report(tmp_path, [TABLE], [], PAGE)
    assert files(tmp_path) == {name: b"precious"}


def test_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("precious")
    with pytest.raises(ResultsError, match="not a folder"):
        check_report_folder(tmp_path / "out")
    with pytest.raises(ResultsError, match="cannot write to"):
        write_report(tmp_path / "out" / "below", [TABLE], [], PAGE)
