"""Each family draws what its name says, checked on properties of the figure itself."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.geometry import angle_difference, polar_to_cartesian
from nbv_planner.world.objects.random_shapes import (
    ANGLES,
    RandomSource,
    bumps,
    ellipse,
    flower,
    fourier,
    gp,
    irregular,
    notches,
    rectangle,
    regular,
    superellipse,
)
from nbv_planner.world.objects.surface_points import surface_points

SEEDS = range(8)
BETWEEN = np.linspace(0.0, 2.0 * np.pi, 9973)


def rng(seed: int, name: str = "test") -> RandomSource:
    return RandomSource(name, seed, 0)


def vertices(polygon) -> np.ndarray:
    return np.column_stack(polar_to_cartesian(polygon.corners(), polygon.radius(polygon.corners())))


@pytest.mark.parametrize("seed", SEEDS)
def test_ellipse_lies_on_a_conic_off_the_origin(seed):
    x, y = polar_to_cartesian(BETWEEN, ellipse(rng(seed), 2.0, 8.0).radius(BETWEEN))
    terms = np.column_stack([x**2, x * y, y**2, x, y])
    conic, *_ = np.linalg.lstsq(terms, np.ones_like(x), rcond=None)
    np.testing.assert_allclose(terms @ conic, 1.0, atol=1e-5)
    assert 4.0 * conic[0] * conic[2] > conic[1] ** 2  # an ellipse, no other conic
    assert np.abs(conic[3:]).max() > 1e-3
    assert abs(conic[1]) > 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_flower_has_one_harmonic_and_its_phase_turns_it(seed):
    spectrum = np.abs(np.fft.rfft(flower(rng(seed), 2.0, 8.0).radius(ANGLES)))[1:]
    assert np.sort(spectrum)[-2] < 1e-9 * spectrum.max()
    assert 2 <= 1 + spectrum.argmax() <= 9


@pytest.mark.parametrize("seed", SEEDS)
def test_superellipse_is_the_same_from_the_other_side_and_smooth(seed):
    shape = superellipse(rng(seed), 2.0, 8.0)
    np.testing.assert_allclose(shape.radius(BETWEEN), shape.radius(BETWEEN + np.pi), atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_fourier_shape_has_ten_harmonics_and_stays_inside(seed):
    radius = fourier(rng(seed), 2.0, 8.0).radius(ANGLES)
    spectrum = np.abs(np.fft.rfft(radius))
    assert spectrum[11:].max() < 1e-8 * spectrum.max()
    assert np.count_nonzero(spectrum[1:11] > 1e-6 * spectrum.max()) == 10
    assert 2.0 < radius.min() < radius.max() < 8.0


def test_bumps_go_outwards_and_inwards():
    depths = [
        radius - np.median(radius)
        for radius in (bumps(rng(s), 2.0, 8.0).radius(ANGLES) for s in range(30))
    ]
    assert sum(depth.max() > 0.5 for depth in depths) > 10
    assert sum(depth.min() < -0.5 for depth in depths) > 10


def test_gp_samples_have_the_middle_as_their_mean():
    radii = np.array([gp(rng(seed), 2.0, 8.0).radius(ANGLES[::64]) for seed in range(200)])
    assert radii.mean() == pytest.approx(5.0, abs=0.15)
    assert 0.5 < radii.std() < 1.3


@pytest.mark.parametrize("seed", SEEDS)
def test_rectangle_has_right_angles_and_its_centre_is_off_the_origin(seed):
    corner = vertices(rectangle(rng(seed), 2.0, 8.0))
    side = np.roll(corner, -1, axis=0) - corner
    assert len(corner) == 4
    np.testing.assert_allclose(np.sum(side * np.roll(side, -1, axis=0), axis=1), 0.0, atol=1e-9)
    assert np.hypot(*corner.mean(axis=0)) > 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_regular_polygon_looks_the_same_when_turned_by_a_vertex(seed):
    shape = regular(rng(seed), 2.0, 8.0)
    count = len(shape.corners())
    assert 3 <= count <= 10
    np.testing.assert_allclose(
        shape.radius(BETWEEN), shape.radius(BETWEEN + 2 * np.pi / count), atol=1e-9
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_irregular_polygon_has_vertices_anywhere_between_the_bounds(seed):
    shape = irregular(rng(seed), 2.0, 8.0)
    gap = np.diff(np.append(shape.corners(), shape.corners()[0] + 2 * np.pi))
    assert 4 <= len(gap) <= 12
    assert 0.0 < gap.min() < gap.max() < np.pi
    assert np.ptp(shape.radii) > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_notches_have_two_levels_with_steep_flanks_between(seed):
    shape = notches(rng(seed), 2.0, 8.0)
    levels, radius = np.unique(shape.radii), shape.radius(BETWEEN)
    assert len(levels) == 2
    on_level = np.abs(radius[:, None] - levels).min(axis=1) < 0.01 * levels[1]
    assert 0.75 < on_level.mean() < 1.0
    steps = np.count_nonzero(np.array(shape.radii) != np.roll(shape.radii, -1))
    assert steps in range(4, 13, 2)
    assert np.abs(angle_difference(shape.corners(), np.roll(shape.corners(), 1))).max() < 0.2501


def test_spline_between_the_samples_is_the_formula():
    """A flower is known in between: what the spline adds is far below a pixel."""
    shape = flower(rng(4), 2.0, 8.0)
    wave = np.fft.rfft(shape.radius(ANGLES)) / len(ANGLES)
    n = 1 + int(np.abs(wave[1:]).argmax())
    exact = wave[0].real + 2.0 * (wave[n] * np.exp(1j * n * BETWEEN)).real
    np.testing.assert_allclose(shape.radius(BETWEEN), exact, atol=1e-8)
    assert len(surface_points(shape, 0.1)) > 200
