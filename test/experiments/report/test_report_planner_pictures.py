"""The picture of the planners: what is drawn where there is no reference, and what N/A stands
for.
"""

from __future__ import annotations

import pytest
from hand_made import REFERENCE, episode, results, sweep_of

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")

from nbv_bench.experiments.summary import pictures
from nbv_bench.experiments.summary.sweep_report import sweep_report


@pytest.fixture
def drawn(monkeypatch):
    """The panels that are drawn, by their label, as they are given to the figure."""
    found, real = {}, pictures.draw.draw_dots

    def draw_dots(content, *more):
        found.update({panel.xlabel: panel for panel in content})
        return real(content, *more)

    monkeypatch.setattr(pictures.draw, "draw_dots", draw_dots)
    return found


def reported(episodes):
    return sweep_report(results(episodes, sweep_of(episodes)))


@pytest.mark.parametrize("known", [[], [episode(REFERENCE, views_95=None)]])
def test_without_a_reference_to_95_percent_the_number_of_views_is_drawn(drawn, known):
    report = reported(
        [*known, episode("A", views_95=3), episode("B", views_95=None), episode("C", views_95=6)]
    )
    picture = pictures.planner_picture(report, "thesis")
    dots = {dot.label: (dot.mean.mean, dot.note) for dot in drawn["T95 (views)"].dots}
    assert (dots["A"], dots["C"]) == ((3.0, ""), (6.0, ""))
    assert dots["B"][1] == "1 of 1 N/A"
    assert drawn["T95 (views)"].line is None
    assert "relative" not in picture.caption
    assert picture.caption.endswith("N/A: episodes that never reach 95 %.")
    assert pictures.paired_picture(report, "thesis") is not None
    assert "difference in T95 (views)" in drawn


def test_with_one_its_own_failures_are_named_among_the_reasons_for_a_missing_ratio(drawn):
    report = reported(
        [
            episode(REFERENCE, "a", views_95=3),
            episode(REFERENCE, "b", views_95=None),
            episode("A", "a", views_95=3),
            episode("A", "b", views_95=3),
        ]
    )
    picture = pictures.planner_picture(report, "thesis")
    assert [dot.note for dot in drawn["T95 / T95* (%)"].dots] == ["1 of 2 N/A", "1 of 2 N/A"]
    assert picture.caption.endswith(
        "N/A: episodes that never reach 95 %, or that have no reference that does."
    )
