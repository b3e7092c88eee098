"""Coverage curves of many episodes together."""

from __future__ import annotations

import numpy as np

from nbv_bench.statistics import coverage_band


def test_curves_begin_at_nothing_and_keep_what_they_ended_with():
    band = coverage_band([[0.4, 1.0], [0.2, 0.4, 0.6]], 4)
    np.testing.assert_allclose(band.mean, [0.0, 0.3, 0.7, 0.8, 0.8])


def test_band_holds_the_middle_of_the_episodes():
    curves = [[value / 10] for value in range(11)]
    band = coverage_band(curves, 1)
    np.testing.assert_allclose((band.low[1], band.high[1]), (0.1, 0.9))
    assert np.all((band.low <= band.mean) & (band.mean <= band.high))


def test_views_beyond_the_last_one_wanted_are_left_out():
    assert len(coverage_band([[0.1, 0.2, 0.3]], 2).mean) == 3


def test_episode_without_views_has_seen_nothing():
    np.testing.assert_array_equal(coverage_band([[]], 2).high, [0.0, 0.0, 0.0])
