"""The campaign of nominal against actual: the bumps that it makes, and what it counts."""

from __future__ import annotations

import numpy as np
import pytest

from campaigns.deviation_command import DeviationRow, _deviating, _outline, summary
from campaigns.running import rows_in
from nbv_planner.errors import ConfigFileError
from nbv_planner.world.scene import Scene


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bump_is_as_high_and_wide_as_it_says_and_nowhere_else(sign):
    scene = Scene()
    nominal = _outline("ellipse:a=6,b=4", scene)
    actual, place = _deviating(nominal, 0.6 * sign, scene, 0.2, np.random.default_rng(2))
    away = np.array([np.abs(nominal - one).min() for one in actual])
    assert away.max() == pytest.approx(0.6, abs=0.02)
    outside = np.abs(actual[away.argmax()]) > np.abs(nominal[np.abs(nominal - place).argmin()])
    assert outside == (sign > 0.0)
    over = np.abs(actual - place)[away > 0.3]
    assert 0.4 < 2.0 * np.sqrt(over.min() ** 2 - 0.3**2) < 0.6
    assert away[np.abs(actual - place) > 1.5].max() < 0.01


def test_the_summary_counts_each_kind_apart():
    def row(sign, detected=0, false=0, views=5, holds=0.96, band=1):
        return DeviationRow("a", 0, sign, views, detected, false, 0.9, holds, band)

    rows = [row(1, 1), row(1, views=0), row(-1, 0, 2, holds=0.92, band=0), row(0, false=1), row(0)]
    assert summary(rows) == [
        "bumps detected: 1 of 1",
        "dents detected: 0 of 1",
        "objects as their outline with a false stretch: 1 of 2",
        "the 95 % interval holds at 95.0% of the places seen, 90.0% of all",
        "the simultaneous one holds for 2 of 2 without a bump, for 1 of 2 with one",
    ]


def test_rows_of_another_version_are_refused_in_one_line(tmp_path):
    place = tmp_path / "rows.csv"
    place.write_text("object,draw,found\na,0,1\n")
    with pytest.raises(ConfigFileError, match=r"rows\.csv has the columns .*found.*detected") as e:
        rows_in(place, DeviationRow)
    assert "\n" not in str(e.value)
