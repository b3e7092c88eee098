"""The printed figures, and ours beside them."""

from __future__ import annotations

import pytest
from hand_made import REFERENCE, compared, episode

from nbv_bench.experiments.summary.thesis_tables import (
    PUBLISHED_NOT_REACHED,
    compared_with_thesis,
    published_means,
    published_table,
)
from nbv_planner.world.objects import OBJECT_SETS

PLANNERS = list(PUBLISHED_NOT_REACHED)


def episodes(planners, objects=OBJECT_SETS["thesis"]):
    return [
        episode(p, shape, views=4, views_95=4, regret=9.5) for shape in objects for p in planners
    ]


def by_key(table):
    return {row[:3]: row[3:] for row in table.rows}


def test_printed_tables_are_whole():
    first, second = published_table("table_7_1"), published_table("table_7_2")
    assert list(first.index) == [(planner, "all") for planner in PLANNERS]
    assert len(second) == len(PLANNERS) * 4
    assert first["t95_rel_percent"].iloc[3] == 129.0
    assert list(second.loc[("UP", "polygon"), ["t95_rel_percent", "avg_individual_regret"]]) == [
        158.0,
        19.94,
    ]
    assert sum(PUBLISHED_NOT_REACHED.values()) == 9


def test_difference_is_ours_less_the_published_figure():
    found = by_key(compared_with_thesis(compared(episodes(PLANNERS))))
    assert found["CSW", "all", "t95_rel_percent"] == (
        pytest.approx(100.0),
        127.0,
        pytest.approx(-27.0),
    )
    assert found["UP", "polygon", "avg_individual_regret"] == (
        pytest.approx(9.5),
        19.94,
        pytest.approx(9.5 - 19.94),
    )
    assert found["I", "all", "not_reached"] == (0, 5, -5)
    assert found["I", "flower", "rank_nbv"][1] == 4.7
    assert ("I", "flower", "not_reached") not in found


def test_ranks_among_other_planners_are_not_compared():
    table = compared_with_thesis(compared(episodes([REFERENCE, "U", "mine"])))
    keys = by_key(table)
    assert {planner for planner, _, _ in keys} == {REFERENCE, "U"}
    assert not {figure for _, _, figure in keys} & {"rank_rec", "rank_nbv"}
    assert "Ranks are compared only" in table.note


@pytest.mark.parametrize(
    "objects", [OBJECT_SETS["thesis"][:-1], (*OBJECT_SETS["thesis"], "ellipse:a=3,b=3")]
)
def test_other_objects_are_not_compared(objects):
    assert compared_with_thesis(compared(episodes(PLANNERS, objects))) is None


def test_printed_means_of_the_planners_that_have_run():
    cases = compared(episodes([REFERENCE, "U"]))
    assert published_means(cases, "avg_individual_regret") == {REFERENCE: 0.0, "U": 11.91}
    assert published_means(compared(episodes(["U"], ["square:width=4"])), "t95_rel_percent") == {}
