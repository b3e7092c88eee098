"""Pages hold animations; tables and pictures become files."""

from __future__ import annotations

import base64
import json

import pytest

from nbv_planner.report.page import (
    Animation,
    Picture,
    Section,
    render_page,
    write_json,
    write_pictures,
    write_tables,
)
from nbv_planner.report.tables import Column, MeanInterval, Table

TABLE = Table(
    "some",
    "Some <b>table</b>",
    "A note.",
    (Column("name", "name"), Column("value", "value", interval=True)),
    (
        ("a", MeanInterval(1.0, 0.5, float("nan"), 3)),
        ("b", MeanInterval(float("nan"), 0.0, 0.0, 0)),
    ),
)


def test_an_animation_is_part_of_the_page():
    page = render_page(
        "t", "l", [Section("s", "S", [Animation("<moving>", "cap & tion", b"GIF89a...")])]
    )
    assert f'src="data:image/gif;base64,{base64.b64encode(b"GIF89a...").decode()}"' in page
    assert "&lt;moving&gt;" in page
    assert "cap &amp; tion" in page


def test_tables_become_csv_markdown_and_json(tmp_path):
    write_tables(tmp_path / "tables", [TABLE])
    assert (
        tmp_path / "tables" / "some.csv"
    ).read_text() == "name,value,value_low,value_high\na,1.0,0.5,\nb,,0.0,0.0\n"
    assert (tmp_path / "tables" / "some.md").read_text() == TABLE.to_markdown()
    write_json(tmp_path / "t.json", [TABLE], more=1)
    assert json.loads((tmp_path / "t.json").read_text()) == {
        "more": 1,
        "tables": {
            "some": [
                {"name": "a", "value": 1.0, "value_low": 0.5, "value_high": None},
                {"name": "b", "value": None, "value_low": 0.0, "value_high": 0.0},
            ]
        },
    }


@pytest.mark.parametrize("number", [0, 2])
def test_pictures_become_two_files_each(tmp_path, number):
    write_pictures(
        tmp_path / "figures", [Picture(str(i), "t", "c", b"png", b"svg") for i in range(number)]
    )
    assert (tmp_path / "figures").exists() == bool(number)
    assert len(list(tmp_path.glob("figures/*"))) == 2 * number
