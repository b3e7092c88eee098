"""Random numbers: from the seed alone, and with the law that their name says."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.world.objects.random_shapes import RandomSource


def test_stream_hangs_on_name_seed_and_attempt_alone():
    streams = [
        RandomSource(*key).uniforms(5, 0.0, 1.0)
        for key in (("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 1, 1))
    ]
    np.testing.assert_array_equal(streams[0], RandomSource("a", 1, 0).uniforms(5, 0.0, 1.0))
    assert len({tuple(stream) for stream in streams}) == 4


def test_whole_numbers_include_both_ends_alike():
    rng = RandomSource("whole", 0, 0)
    counts = np.bincount([rng.whole(2, 5) for _ in range(4000)])
    assert not counts[:2].any()
    assert len(counts) == 6
    np.testing.assert_allclose(counts[2:], 1000, atol=120)


def test_normal_numbers_are_standard_normal():
    drawn = RandomSource("normal", 0, 0).normals(2, 20_000)
    assert drawn.shape == (2, 20_000)
    assert np.mean(drawn) == pytest.approx(0.0, abs=0.02)
    assert np.mean(drawn**2) == pytest.approx(1.0, abs=0.03)
    assert np.mean(drawn**4) == pytest.approx(3.0, abs=0.2)


def test_numbers_between_stay_there():
    rng = RandomSource("between", 3, 0)
    drawn = [rng.between(-2.0, 3.0) for _ in range(2000)]
    assert -2.0 <= min(drawn) < -1.9
    assert 2.9 < max(drawn) < 3.0
    assert all(0.0 <= rng.angle() < 2 * np.pi for _ in range(100))
