"""Pictures of recorded episodes show what they are given, under labels that can be told apart."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")

from nbv_planner.episode.records import ViewRecord
from nbv_planner.report.figures.recorded_figure import draw_accuracy, draw_coverage_overlay
from nbv_planner.report.figures.style import png_bytes, svg_bytes

CURVES = {
    "first $run$": [0.2, 0.6, 0.96],
    "second": [0.3, np.nan, 0.7, 0.9],
    "third (estimated)": [],
}


def lines(axes) -> dict[str, list[float]]:
    return {line.get_label(): [float(v) for v in line.get_ydata()] for line in axes.get_lines()}


def test_every_curve_is_drawn_from_zero_with_its_values():
    (axes,) = draw_coverage_overlay(CURVES).axes
    found = lines(axes)
    assert found[r"first \$run\$"] == pytest.approx([0.0, 20.0, 60.0, 96.0])
    assert found["second"] == pytest.approx([0.0, 30.0, np.nan, 70.0, 90.0], nan_ok=True)
    assert found["third (estimated)"] == [0.0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "95 %",
        r"first \$run\$",
        "second",
        "third (estimated)",
    ]


def test_many_curves_differ_in_colour_dash_or_mark():
    curves = {str(number): [0.1, 0.2] for number in range(20)}
    (axes,) = draw_coverage_overlay(curves).axes
    styles = {
        (line.get_color(), str(line.get_linestyle()), line.get_marker())
        for line in axes.get_lines()
        if line.get_label() in curves
    }
    assert len(styles) == 20


@pytest.mark.parametrize("number", [3, 8, 9, 28])
def test_names_of_many_curves_stand_below_and_leave_the_panel_its_height(number):
    figure = draw_coverage_overlay({f"planner {label}": [0.1, 0.2] for label in range(number)})
    (axes,) = figure.axes
    figure.canvas.draw()  # lays it out
    inside = axes.get_legend()
    assert (inside is None) == (number > 8)
    ((legend,),) = (
        [[inside]] if inside else [part.legends for part in figure.subfigs if part.legends]
    )
    assert {f"planner {label}" for label in range(number)} <= {
        text.get_text() for text in legend.get_texts()
    }
    assert axes.get_window_extent().height > 2.5 * figure.dpi
    room = figure.bbox.expanded(1.001, 1.001)
    assert all(
        room.containsx(x) and room.containsy(y) for x, y in legend.get_window_extent().corners()
    )


def view(rmse: float, new: int, best: int) -> ViewRecord:
    return ViewRecord(1, 0.0, new, 0.5, best, 1.0, 1.0, rmse=rmse, hausdorff=2.0 * rmse)


def test_errors_and_regret_are_drawn_view_by_view():
    errors, regrets = draw_accuracy([view(1.0, 5, 9), view(0.5, 3, 3)]).axes
    assert lines(errors) == {"RMSE": [1.0, 0.5], "Hausdorff distance": [2.0, 1.0]}
    heights = [bar.get_height() for bar in regrets.patches]
    assert heights == [9, 3, 5, 3]


def test_errors_that_are_not_known_leave_gaps():
    figure = draw_accuracy([view(np.nan, 5, 9), view(1.0, 5, 9)])
    assert len(figure.axes) == 2
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_errors_that_no_view_knows_have_no_panel():
    (regrets,) = draw_accuracy([view(np.nan, 5, 9)]).axes
    assert [bar.get_height() for bar in regrets.patches] == [9, 5]


@pytest.mark.parametrize(
    "draw", [lambda: draw_coverage_overlay(CURVES), lambda: draw_accuracy([view(1.0, 5, 9)])]
)
def test_files_are_the_same_every_time_and_not_empty(draw):
    assert svg_bytes(draw()) == svg_bytes(draw())
    pixels = png_bytes(draw())
    assert len(pixels) > 5000
