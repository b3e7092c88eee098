"""Growth is drawn as it was measured."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")

from benchmarks.bench import GrowthPanel, draw_growth
from nbv_planner.report.figures.style import png_bytes


def panel(**curves) -> GrowthPanel:
    return GrowthPanel("a title", "n", "ms", curves)


def test_panels_show_the_values_on_logarithmic_axes_with_one_look_per_label():
    fast, slow = ([100, 1000], [1.0, 1.1]), ([100, 1000, 10_000], [1.0, 40.0, 900.0])
    figure = draw_growth([panel(fast=fast, slow=slow), panel(slow=slow)], "slow")
    panels = [axes for part in figure.subfigs for axes in part.axes]
    assert len(panels) == 2
    for axes in panels:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = {line.get_label(): line for line in panels[0].lines}
    np.testing.assert_array_equal(lines["slow"].get_data(), slow)
    (again,) = panels[1].lines
    assert again.get_color() == lines["slow"].get_color() != lines["fast"].get_color()
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_axes_of_few_decades_have_plain_numbers():
    figure = draw_growth([panel(a=([500, 4096], [2.0, 7.0]))])
    (axes,) = [axes for part in figure.subfigs for axes in part.axes]
    figure.canvas.draw()
    texts = {label.get_text() for label in axes.get_xticklabels()}
    assert {"500", "1000", "2000"} <= texts
