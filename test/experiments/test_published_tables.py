"""The thesis's tables 7.1 and 7.2, printed digit by printed digit: all 22 objects and 7 planners
are run anew.
"""

from __future__ import annotations

import pytest

from nbv_bench.experiments.cases import run_case
from nbv_bench.experiments.compared_cases import compare_cases
from nbv_bench.experiments.summary.thesis_tables import compared_with_thesis
from nbv_bench.experiments.sweep_file import load_sweep

HALF_A_DIGIT = {
    "t95_rel_percent": 0.5,
    "t_rel_percent": 0.5,
    "rec_percent": 0.5,
    "avg_individual_regret": 0.005,
    "rank_rec": 0.05,
    "rank_nbv": 0.05,
    "not_reached": 0.0,
}
"""How far a figure may be from its printed one, which is rounded."""


@pytest.fixture(scope="module")
def compared():
    outcomes = [run_case(case) for case in load_sweep("thesis").cases()]
    assert not any(outcome.failed for outcome in outcomes)
    cases = compare_cases([outcome.content for outcome in outcomes], "greedy_oracle")
    table = compared_with_thesis(cases)
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("figure", HALF_A_DIGIT)
def test_every_printed_digit_is_reproduced(compared, figure):
    rows = [row for row in compared if row["figure"] == figure]
    classes = {row["object_class"] for row in rows}
    assert len({row["algorithm"] for row in rows}) == 7
    assert (
        classes >= {"all"}
        if figure in ("t_rel_percent", "rec_percent", "not_reached")
        else len(classes) == 5
    )
    wrong = [row for row in rows if abs(row["difference"]) > HALF_A_DIGIT[figure] + 1e-9]
    assert not wrong
