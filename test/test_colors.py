"""Colours: told apart in grey print and with colour blindness, and defined for any utility."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nbv_planner.report import colors

NAMES = ("TRUTH", "MEAN", "BAND", "HIT", "LAST", "TARGET", "CAMERA", "FAINT")
# Projections of linear RGB onto what a dichromat sees (Viénot, Brettel and Mollon 1999), and grey.
DICHROMAT = {
    "protanope": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranope": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
    "nobody": np.eye(3),
}


def luminance(rgb) -> float:
    linear = np.asarray(rgb) ** 2.2
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("eye", DICHROMAT)
def test_colours_that_meet_in_a_picture_are_told_apart(eye):
    """Mean, hits, hits of the last view and truth lie on each other."""
    seen = {}
    for name in ("TRUTH", "MEAN", "HIT", "LAST"):
        linear = np.asarray(DICHROMAT[eye]) @ (np.array(colors.rgb(getattr(colors, name))) ** 2.2)
        seen[name] = np.clip(linear, 0.0, 1.0) ** (1 / 2.2)
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 0.15, (a, b)


def test_mean_hits_and_camera_differ_in_grey_print():
    grey = sorted(
        luminance(colors.rgb(getattr(colors, name))) for name in ("TRUTH", "MEAN", "LAST", "HIT")
    )
    assert np.diff(grey).min() > 0.04


@pytest.mark.parametrize("name", NAMES)
def test_rgb_reads_back(name):
    text = getattr(colors, name)
    assert "#" + "".join(f"{round(255 * part):02X}" for part in colors.rgb(text)) == text


UTILITIES = arrays(
    float, st.integers(1, 20), elements=st.floats(allow_nan=True, allow_infinity=True)
)


@given(UTILITIES, st.data())
def test_any_utility_has_a_colour(utility, data):
    feasible = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(utility), max_size=len(utility)))
    )
    found = colors.utility_colors(utility, feasible)
    assert found.shape == (len(utility), 3)
    assert np.isfinite(found).all()
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    grey = (found == colors.rgb(colors.FAINT)).all(axis=1)
    np.testing.assert_array_equal(grey, ~(feasible & np.isfinite(utility)))


def test_scale_rises_in_lightness_from_least_to_greatest():
    found = colors.utility_colors(np.linspace(-3.0, 8.0, 50), np.ones(50, dtype=bool))
    assert np.diff([luminance(rgb) for rgb in found]).min() > 0.0
    assert tuple(found[0]) == pytest.approx(colors.rgb("#00224E"))
    assert tuple(found[-1]) == pytest.approx(colors.rgb("#FEE838"))
