"""Tables as text: every digit for programs, few for people, nothing taken for markup."""

from __future__ import annotations

import csv
import math

import pytest

from nbv_planner.report.tables import Column, MeanInterval, Table

COLUMNS = (
    Column("name", "Name"),
    Column("size", "size (m)", 2),
    Column("mean", "mean", 1, interval=True),
)


def table(*rows, note=""):
    return Table("sizes", "Sizes", note, COLUMNS, rows)


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_csv_gives_back_every_digit():
    value = 0.1 + 0.2
    (row,) = read(table(("a,b", value, MeanInterval(1 / 3, -2 / 3, 4 / 3, 5))).to_csv())
    assert row["name"] == "a,b"
    assert float(row["size"]) == value
    assert [float(row[name]) for name in ("mean", "mean_low", "mean_high")] == [
        1 / 3,
        -2 / 3,
        4 / 3,
    ]


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_what_is_missing_is_empty_for_programs_and_said_to_people(missing):
    made = table(("a", missing, MeanInterval(2.0, math.nan, math.nan, 1)))
    (row,) = read(made.to_csv())
    assert (row["size"], row["mean"], row["mean_low"]) == ("", "2.0", "")
    assert made.texts() == [["a", "N/A", "2.0"]]


@pytest.mark.parametrize("cell", [None, 2.5, 7])
def test_a_cell_without_an_interval_leaves_its_limits_empty_and_the_columns_behind_it_in_place(
    cell,
):
    made = Table(
        "t", "t", "", (Column("mean", "mean", 1, interval=True), Column("n", "n")), ((cell, 3),)
    )
    text = "" if cell is None else str(cell)
    assert read(made.to_csv()) == [{"mean": text, "mean_low": "", "mean_high": "", "n": "3"}]
    assert made.to_json() == [{"mean": cell, "mean_low": None, "mean_high": None, "n": 3}]
    assert made.texts() == [["N/A" if cell is None else str(cell), "3"]]


def test_people_read_rounded_numbers_with_their_interval():
    made = table(
        ("a", 1.005001, MeanInterval(2.26, 1.0, 3.55, 4)),
        ("b", -0.001, MeanInterval(0.0, -0.04, 0.04, 4)),
    )
    assert made.texts() == [["a", "1.01", "2.3 [1.0, 3.5]"], ["b", "0.00", "0.0 [0.0, 0.0]"]]


def test_markdown_has_a_rule_that_puts_numbers_to_the_right_and_escapes_names():
    text = table(("a|b_*\n<i>", 1.0, None), note="less | more").to_markdown()
    lines = text.splitlines()
    assert lines[0] == "## Sizes"
    assert lines[3] == "| :--- | ---: | ---: |"
    assert lines[4] == r"| a\|b\_\* \<i> | 1.00 | N/A |"
    assert lines[-1] == r"less \| more"
    assert "| greedy_oracle |" in table(("greedy_oracle", 1.0, None)).to_markdown()  # to be copied


def test_words_stand_in_for_names():
    made = Table(
        "t",
        "t",
        "",
        (Column("figure", "figure", words={"rec": "coverage (%)"}),),
        (("rec",), ("other",)),
    )
    assert made.texts() == [["coverage (%)"], ["other"]]
    assert made.to_csv() == "figure\nrec\nother\n"


def test_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="sizes: a row has 2 cells, must have 3"):
        table(("a", 1.0))
