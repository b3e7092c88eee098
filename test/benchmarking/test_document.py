"""Tables in the document come from the results, and nothing else in it changes."""

from __future__ import annotations

import json

import pytest

from benchmarks.bench import (
    DOCUMENT_FILE,
    RECORD_FILE,
    Column,
    line,
    markdown,
    number_text,
    prepare_folder,
    read_document,
    read_record,
    updated,
    write_record,
)
from benchmarks.measure import machine
from nbv_planner.errors import ResultsError

CAMERA = {"beams": 640, "vertices": 4000, "cast_ms": 0.5, "reference_ms": 20.0, "ratio": 40.0}


def measured(**parts):
    return {
        name: {"machine": machine(), "quick": True, "seconds": 1.0, "rows": rows}
        for name, rows in parts.items()
    }


def test_machine_is_described_without_its_name():
    found = machine()
    assert found["cores"] >= 1
    assert found["load"] >= 0.0
    assert {"python", "numpy", "scipy"} <= set(found["versions"])
    assert found["cpu"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (False, "no"),
        (1_000_000, "1000000"),
        ("3/2", "3/2"),
        (0.012345, "0.0123"),
        (123.456, "123"),
        (1234.5, "1234"),
        (12345.6, "12346"),
        (2.27e-13, "2.27e-13"),
        (0.0, "0"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number_text(value) == text


def test_tables_show_a_dash_where_a_row_has_no_value():
    columns = (Column("a", "name"), Column("b", "time ms"))
    rows = [{"a": "x", "b": 1.0}, {"a": "y"}]
    assert markdown(columns, rows) == "| name | time ms |\n| :--- | ---: |\n| x | 1 |\n| y | – |"
    assert [len(text) for text in (line(columns), line(columns, rows[0]))] == [20, 20]


def test_a_new_document_has_a_section_per_part_and_is_stable():
    results = measured(camera=[CAMERA])
    document = updated("", results)
    assert document.startswith("# Performance\n\n## Targets\n")
    assert "| 640 | 4000 | 0.5 | 20 | 40 |" in document
    assert "| scan of 640 beams, 4000 vertices, ms | ≤ 1 | 0.5 | yes |" in document
    assert "quick sizes" in document
    assert updated(document, results) == document


def test_only_the_text_between_the_markers_changes():
    document = (
        "# Mine\n\nbefore\n<!-- bench:camera:begin -->\nold\n<!-- bench:camera:end -->\nafter \\1\n"
    )
    renewed = updated(document, measured(camera=[CAMERA]))
    head, _, tail = renewed.partition("<!-- bench:camera:begin -->")
    assert head == "# Mine\n\nbefore\n"
    assert tail.partition("<!-- bench:camera:end -->")[2].startswith("\nafter \\1\n\n## Targets")
    assert "old" not in renewed


def test_a_document_that_shows_some_tables_alone_gets_no_others():
    camera = "<!-- bench:camera:begin -->\n<!-- bench:camera:end -->\n"
    document = f"# Mine\n<!-- bench:only these tables -->\n{camera}"
    renewed = updated(document, measured(camera=[CAMERA]))
    assert "| 640 | 4000 | 0.5 | 20 | 40 |" in renewed
    assert "Targets" not in renewed


def test_results_are_read_back_with_growth_and_targets_beside_them(tmp_path):
    results = measured(camera=[CAMERA])
    prepare_folder(tmp_path / "new" / "folder")
    write_record(tmp_path / "new" / "folder", results)
    content = json.loads((tmp_path / "new" / "folder" / RECORD_FILE).read_text())
    assert content["targets"] == [
        {
            "target": "scan of 640 beams, 4000 vertices, ms",
            "bound": "≤ 1",
            "worst": 0.5,
            "met": True,
        }
    ]
    assert read_record(tmp_path / "new" / "folder") == results
    assert read_record(tmp_path) == {}


@pytest.mark.parametrize(
    "content", ["{}", "[", '{"format": "other", "format_version": 1, "parts": {}}', "3"]
)
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    (tmp_path / RECORD_FILE).write_text(content)
    with pytest.raises(ResultsError, match="not a result of python -m benchmarks run"):
        read_record(tmp_path)


def test_a_document_without_markers_is_refused(tmp_path):
    assert read_document(tmp_path) == ""
    (tmp_path / DOCUMENT_FILE).write_text("# Somebody's thoughts\n")
    with pytest.raises(ResultsError, match="no marker"):
        read_document(tmp_path)
