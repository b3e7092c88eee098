"""How much of the declared noise measurements show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.star2d.shapes.learned_shapes import noise_level, noise_ratio


def noisy(count=300, noise=0.2, seed=0, width=2.0):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, width, count))
    std = rng.uniform(0.1, 0.4, count)
    return angle, 5.0 + np.cos(2.0 * angle) + noise / 0.2 * std * rng.standard_normal(count), std


def by_loop(angle, radius, std):
    """The definition, one triple after another."""
    found = []
    for i in range(1, len(angle) - 1):
        width = angle[i + 1] - angle[i - 1]
        if 0.0 < width <= 0.05:
            a = (angle[i + 1] - angle[i]) / width
            spread = (a * std[i - 1]) ** 2 + ((1.0 - a) * std[i + 1]) ** 2 + std[i] ** 2
            found.append(
                abs(a * radius[i - 1] + (1.0 - a) * radius[i + 1] - radius[i]) / np.sqrt(spread)
            )
    return np.median(found) / 0.6744897501960817


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_median_over_all_narrow_triples(seed):
    data = noisy(seed=seed)
    assert noise_ratio(*data) == pytest.approx(by_loop(*data), rel=1e-12)


@pytest.mark.parametrize("part", [0.05, 0.3, 1.0, 3.0])
def test_it_finds_the_part_of_the_noise_that_is_there(part):
    found = [noise_ratio(*noisy(noise=0.2 * part, seed=seed)) for seed in range(20)]
    assert np.mean(found) == pytest.approx(part, rel=0.05)
    assert np.std(found) < 0.15 * part


def test_corners_and_jumps_are_no_noise():
    angle = np.linspace(0.0, 2.0, 400)
    radius = 4.0 + np.abs(np.sin(3.0 * angle)) + (np.floor(3.0 * angle) % 2)
    assert noise_ratio(angle, radius, np.full(400, 0.2)) < 0.01


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100.0))
def test_neither_the_unit_nor_the_order_matters(seed, unit):
    angle, radius, std = noisy(seed=seed % 1000)
    order = np.random.default_rng(seed).permutation(len(angle))
    again = noise_ratio(angle[order], unit * radius[order], unit * std[order])
    assert again == pytest.approx(noise_ratio(angle, radius, std), rel=1e-9)


@pytest.mark.parametrize(("count", "width"), [(0, 1.0), (2, 0.01), (21, 0.2), (60, 6.0)])
def test_where_too_few_lie_close_together_the_declared_noise_stands(count, width):
    angle = np.linspace(0.0, width, count)
    assert noise_ratio(angle, np.full(count, 5.0), np.full(count, 0.2)) == 1.0


def test_repeated_angles_say_nothing():
    assert noise_ratio(np.full(50, 1.0), np.linspace(4.0, 5.0, 50), np.full(50, 0.2)) == 1.0


@pytest.mark.parametrize(
    ("part", "levels", "level"),
    [
        (0.05, (0.1, 0.3), 0.1),
        (0.05, (0.3, 0.1), 0.1),
        (0.2, (0.1, 0.3), 0.3),
        (0.9, (0.1, 0.3), 1.0),
        (2.0, (0.3,), 1.0),
    ],
)
def test_the_level_is_the_next_above(part, levels, level):
    assert noise_level(levels, *noisy(count=2000, noise=0.2 * part)) == level
