"""Outlines of any form that are known: their signed distance, and where they lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.known.known_solid import KnownSolid, known_solid
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.world.objects.true_outlines import parse_outlines
from nbv_planner.world.scene import Scene

SCENE = Scene()
ANGLE = TWO_PI / 720 * np.arange(720)
RING = 4.0 * np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1)
ROUND = KnownSolid(8.0, 0.1, (0.5, 0.1), (RING,))
LETTER = KnownSolid(8.0, 0.1, (0.5, 0.1), tuple(parse_outlines("letter:C", SCENE).loops))
STILL = np.zeros(3)


@given(st.floats(-9.0, 9.0), st.floats(-9.0, 9.0))
@settings(max_examples=50, deadline=None)
def test_the_distance_to_a_circle_is_that_to_its_centre_less_its_radius(x, y):
    found = float(ROUND.signed(np.array([[x, y]]), STILL)[0])
    assert found == pytest.approx(math.hypot(x, y) - 4.0, abs=0.1)


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-3.0, 3.0))
@settings(max_examples=30, deadline=None)
def test_corners_that_are_displaced_as_the_outline_lie_on_it(x, y, turn):
    corners = LETTER.loops[0] - LETTER.middle
    cos, sin = math.cos(turn), math.sin(turn)
    moved = corners @ np.array([[cos, sin], [-sin, cos]]) + LETTER.middle + [x, y]
    assert np.abs(LETTER.signed(moved, np.array([x, y, turn]))).max() < 0.1


def test_two_bodies_are_both_inside_and_the_gap_is_not():
    two = KnownSolid(8.0, 0.1, (0.5, 0.1), (RING * 0.4 + [3.0, 0.0], RING * 0.4 - [3.0, 0.0]))
    inside = two.signed(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.0]]), STILL)
    assert inside == pytest.approx([-1.6, -1.6, 1.4], abs=0.1)


def test_a_single_noisy_hit_moves_the_outline_as_far_as_its_place_is_doubted():
    """Along x alone, to 0.5 m: as the mean of two numbers by their precisions."""
    place = ROUND.placed(np.array([[4.3, 0.0]]), np.array([0.5]), 1.0)
    part = 0.5**2 / (0.5**2 + 0.1**2 + 0.5**2)
    assert place.likeliest == pytest.approx([0.3 * part, 0.0, 0.0], abs=0.01)
    assert place.covariance[0, 0] == pytest.approx(0.5**2 * (1.0 - part), rel=0.05)


@pytest.mark.parametrize("part", [0.3, 1.0])
def test_the_place_is_found_from_a_part_of_the_outline(part):
    rng = np.random.default_rng(0)
    true = np.array([0.4, -0.3, 0.12])
    points, _ = parse_outlines("letter:C", SCENE).sampled(0.3)
    points = points[: round(part * len(points))] - LETTER.middle
    cos, sin = math.cos(true[2]), math.sin(true[2])
    hits = points @ np.array([[cos, sin], [-sin, cos]]) + LETTER.middle + true[:2]
    hits = hits + 0.05 * rng.standard_normal(hits.shape)
    place = LETTER.placed(hits, np.full(len(hits), 0.05), 1.0)
    deviation = np.sqrt(np.diag(place.covariance))
    assert np.abs(place.likeliest - true).max() < 0.15
    assert (np.abs(place.likeliest - true) < 4.0 * deviation).all()
    assert place.log_part < 0.0
    drawn = place.draws(4000, 0)
    assert np.cov(drawn.T) == pytest.approx(place.covariance, abs=0.1 * deviation.max() ** 2)


def test_without_hits_the_place_is_as_declared():
    place = LETTER.placed(np.empty((0, 2)), np.empty(0), 1.0)
    assert place.likeliest.tolist() == [0.0, 0.0, 0.0]
    assert np.diag(place.covariance) == pytest.approx(LETTER.place_variance)
    assert place.log_part == 0.0


def test_a_message_carries_it():
    again = known_solid(LETTER.plain, 8.0)
    assert known_solid(again.plain, 8.0) is again  # it is not computed twice
    assert again.loops[0] == pytest.approx(LETTER.loops[0], rel=1e-5, abs=1e-5)
    for name, value in (
        ("std", 0.0),
        ("place_std", [1.0, math.inf]),
        ("loops", []),
        ("loops", ["1 2 3 4"]),
        ("loops", ["1 2 3 4 5 6 7"]),
    ):
        with pytest.raises(ValueError, match="prior_outline"):
            known_solid({**LETTER.plain, name: value}, 8.0)


def written(path, loops):
    rows = ["\n".join(f"{x!r},{y!r}" for x, y in loop.tolist()) for loop in loops]
    path.write_text("x,y\n" + "\n\n".join(rows) + "\n")
    return str(path)


def test_the_outlines_of_a_file_of_several_bodies_are_read(tmp_path):
    loops = parse_outlines("two_boxes", SCENE).loops
    name = written(tmp_path / "two.csv", loops)
    found = PriorOutlineSettings(prior_outline=name).known_solid(SCENE)
    assert [len(one) for one in found.loops] == [len(one) for one in loops]
    assert PriorOutlineSettings().known_solid(SCENE) is None
    small = written(tmp_path / "small.csv", [0.001 * loop for loop in loops])
    with pytest.raises(SettingError, match="times that would fit"):
        PriorOutlineSettings(prior_outline=small).known_solid(SCENE)
    with pytest.raises(SettingError, match="prior_outline"):
        PriorOutlineSettings(prior_outline=str(tmp_path / "none.csv")).known_solid(SCENE)
