"""Which pixels lie in the band, and in whose cones: what is looked up against what is computed for
every pixel.
"""

from __future__ import annotations

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.geometry import CircleInterpolation
from nbv_planner.thesis import world_pixels as cone_pixels
from nbv_planner.thesis.world_pixels import cone_reach, pixels_in_band, ranges, world_pixels
from nbv_planner.world.scene import Scene

TWO_PI = 2 * np.pi
GRIDS = {
    "open": np.arange(90) * (TWO_PI / 90),
    "closed": np.linspace(0.0, TWO_PI, 90),
    "shifted": 0.3 + np.arange(40) * (TWO_PI / 40),
}


def in_band(belief, reach, pixel_size):
    """Which world pixels lie in the band, each of them tested."""
    pixels = world_pixels(reach, pixel_size)
    at_pixels = CircleInterpolation.at(belief.angle, pixels.angle)
    return (at_pixels(belief.lower) <= pixels.radius) & (pixels.radius <= at_pixels(belief.upper))


@pytest.mark.parametrize("grid", GRIDS)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(-3.0, 12.0), st.floats(0.0, 9.0))
def test_pixels_in_the_band_are_those_found_one_by_one(grid, seed, middle, spread):
    """Bounds may be negative, beyond the world, or equal; the widest bands hold all pixels."""
    angle, rng = GRIDS[grid], np.random.default_rng(seed)
    lower = middle + spread * rng.normal(size=len(angle))
    upper = lower + rng.choice([0.0, 0.1, 4.0], len(angle)) * rng.random(len(angle))
    belief = belief_of(lambda _: lower, lambda _: upper, grid=angle)
    np.testing.assert_array_equal(
        pixels_in_band(belief, 9.0, 0.25), np.flatnonzero(in_band(belief, 9.0, 0.25))
    )


def test_a_pixel_on_a_bound_is_in_the_band():
    radius = np.unique(world_pixels(9.0, 0.25).radius)[40]
    belief = belief_of(radius, radius)
    found = pixels_in_band(belief, 9.0, 0.25)
    np.testing.assert_array_equal(found, np.flatnonzero(world_pixels(9.0, 0.25).radius == radius))


def test_ranges_count_up_from_each_beginning():
    np.testing.assert_array_equal(
        ranges(np.array([3, 7, 0, 5]), np.array([2, 0, 3, 1])), [3, 4, 0, 1, 2, 5]
    )
    assert len(ranges(np.array([4]), np.array([0]))) == 0


@pytest.mark.parametrize("scene", [Scene(pixel_size=0.3), Scene(range_max=14.0, pixel_size=0.5)])
def test_kept_cones_hold_the_same_pixels_as_those_found_anew(scene, monkeypatch):
    views = np.arange(60) * (TWO_PI / 60)
    band = pixels_in_band(wavy_belief(2), cone_reach(scene), scene.pixel_size)
    monkeypatch.setattr(cone_pixels, "_BLOCK_PAIRS", 1 << 12)
    kept = list(cone_pixels.band_in_cones(scene, views, band))
    monkeypatch.setattr(cone_pixels, "_MOST_KEPT", 0)
    anew = list(cone_pixels.band_in_cones(scene, views, band))
    assert len(kept) == len(anew) > 1
    for (part, pixels), (same_part, same) in zip(kept, anew, strict=True):
        assert part.start == same_part.start
        for name in ("key", "distance", "edges"):
            np.testing.assert_array_equal(getattr(pixels, name), getattr(same, name))
