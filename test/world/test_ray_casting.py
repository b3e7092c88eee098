"""The ray caster against a brute-force oracle: every beam with every edge."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams

NUDGE = 1e-9  # radians by which rounding may turn a beam


def contour_of(vertices) -> Contour:
    return Contour(
        np.array([v[0] for v in vertices], float), np.array([v[1] for v in vertices], float)
    )


@st.composite
def star_shaped(draw) -> list[tuple[float, float]]:
    """Vertices in angular order around the origin: 3..60, from round to spiky, in either
    direction.
    """
    n = draw(st.integers(3, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    style = draw(st.sampled_from(["rough", "spikes", "round", "steps", "tiny edges"]))
    gaps = rng.uniform(0.2, 1.0, n) if style != "tiny edges" else 10.0 ** rng.uniform(-6, 0, n)
    if n < 6 or style == "tiny edges":
        gaps = np.minimum(gaps / gaps.sum(), 0.45)
    angles = np.cumsum(gaps / gaps.sum() * 2 * math.pi) + rng.uniform(0, 2 * math.pi)
    radii = {
        "rough": rng.uniform(2.0, 8.0, n),
        "spikes": np.where(np.arange(n) % 2 == 0, 8.0, rng.uniform(0.5, 2.5, n)),
        "round": 5.0 + 1e-3 * rng.normal(size=n),
        "steps": rng.choice([3.0, 6.0], n),
        "tiny edges": rng.uniform(4.0, 6.0, n),
    }[style]
    vertices = [
        (float(r * math.cos(a)), float(r * math.sin(a))) for a, r in zip(angles, radii, strict=True)
    ]
    return vertices[::-1] if draw(st.booleans()) else vertices


@st.composite
def poses(draw, vertices) -> CameraPose:
    """On the view circle, anywhere outside, inside, or exactly in line with an edge."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["circle", "outside", "inside", "in line"]))
    if kind == "circle":
        return CameraPose.from_polar(rng.uniform(0, 2 * math.pi), 10.0)
    if kind == "outside":
        distance, direction = rng.uniform(8.1, 15.0), rng.uniform(0, 2 * math.pi)
        x, y = distance * math.cos(direction), distance * math.sin(direction)
        yaw = direction + math.pi + rng.uniform(-0.5, 0.5)
    elif kind == "inside":
        x, y, yaw = *rng.uniform(-0.2, 0.2, 2), rng.uniform(-10.0, 10.0)
    else:
        k = int(rng.integers(len(vertices)))
        (ax, ay), (bx, by) = vertices[k], vertices[(k + 1) % len(vertices)]
        size = math.hypot(bx - ax, by - ay)
        assume(size > 1e-3)
        back = rng.uniform(0.5, 9.0) / size
        x, y = ax - back * (bx - ax), ay - back * (by - ay)
        yaw = math.atan2(by - ay, bx - ax) + rng.choice([0.0, rng.uniform(-0.3, 0.3)])
    return CameraPose(float(x), float(y), float(yaw))


def beams_for(vertices, pose: CameraPose, rng) -> np.ndarray:
    """Rising bearings: spread over a field of view, and aimed exactly at vertices and along
    edges.
    """
    aimed = [math.atan2(*reversed([float(c) for c in pose.to_camera(*v)])) for v in vertices]
    rng.shuffle(aimed)
    spread = np.linspace(-0.6, 0.6, 9)
    return np.unique(
        np.concatenate([spread, rng.uniform(-1.5, 1.5, 4), [b for b in aimed if abs(b) < 1.5][:8]])
    )


def check_against_oracle(vertices, pose: CameraPose, bearings: np.ndarray) -> None:
    """Equal where the answer is stable under a nudge of the beam, else between the answers to
    either side.

    A beam at a corner or along an edge is turned by rounding, and both the oracle and the caster
    are at its mercy.
    """
    got = cast_beams(contour_of(vertices), pose, bearings)
    assert got.shape == bearings.shape
    assert not np.isnan(got).any()
    for bearing, value in zip(bearings, got, strict=True):
        direction = pose.yaw + float(bearing)
        left, *near, right = (
            oracles.first_crossing(vertices, pose.x, pose.y, direction + turn)
            for turn in (-2.0 * NUDGE, -NUDGE, 0.0, NUDGE, 2.0 * NUDGE)
        )
        # At a corner an edge goes on from the nudged beam to the beam itself.
        steps = near[0] - left, near[-1] - right
        goes_on = [
            end + step for end, step in zip(near[::2], steps, strict=True) if abs(step) < 1e-5
        ]
        low, high = min(near + goes_on), max(near + goes_on)
        slack = 1e-9 * (1.0 + (low if math.isfinite(low) else 0.0))
        if math.isfinite(high) and high - low < 1e-5:  # both sides hit the same edge
            slack += high - low
        assert low - slack <= value <= high + slack, (bearing, value, near)


@settings(max_examples=1000)
@given(st.data())
def test_first_crossings_equal_brute_force_on_random_contours(data):
    vertices = data.draw(star_shaped())
    pose = data.draw(poses(vertices))
    assume(oracles.distance_to(vertices, pose.x, pose.y) > 1e-3)
    check_against_oracle(vertices, pose, beams_for(vertices, pose, np.random.default_rng(0)))


@settings(max_examples=100)
@given(star_shaped(), st.floats(-0.2, 0.2), st.floats(-0.2, 0.2), st.floats(-7.0, 7.0))
def test_no_beam_leaks_out_of_a_closed_contour(vertices, x, y, yaw):
    """From inside every beam returns, also those aimed exactly at the vertices, all the way
    round.
    """
    assume(oracles.encloses(vertices, x, y))
    assume(oracles.distance_to(vertices, x, y) > 1e-3)
    pose = CameraPose(x, y, yaw)
    aimed = [math.atan2(*reversed([float(c) for c in pose.to_camera(*v)])) for v in vertices]
    bearings = np.unique(np.concatenate([np.linspace(-math.pi, math.pi, 33), aimed]))
    assert np.isfinite(cast_beams(contour_of(vertices), pose, bearings)).all()
    check_against_oracle(vertices, pose, bearings)


SQUARE = [(2.0, -2.0), (2.0, 2.0), (-2.0, 2.0), (-2.0, -2.0)]
EAST = CameraPose(-10.0, 0.0, 0.0)  # stands at x = -10 and looks along +x


@pytest.mark.parametrize(
    "vertices", [SQUARE, SQUARE[::-1], SQUARE[1:] + SQUARE[:1], [*SQUARE, SQUARE[0]]]
)
def test_square_is_hit_on_its_face_whatever_the_order_of_its_vertices(vertices):
    bearings = np.arctan2([-2.5, -1.0, 0.0, 1.0, 2.5], 8.0)
    expected = [math.inf, math.hypot(8, 1), 8.0, math.hypot(8, 1), math.inf]
    np.testing.assert_allclose(
        cast_beams(contour_of(vertices), EAST, bearings), expected, rtol=1e-12
    )


def test_corner_that_points_at_the_camera_is_hit_exactly():
    diamond = [(3.0, 0.0), (0.0, 3.0), (-3.0, 0.0), (0.0, -3.0)]
    for view in (0.0, math.pi / 2, math.pi, 3 * math.pi / 2):
        ranges = cast_beams(
            contour_of(diamond), CameraPose.from_polar(view, 10.0), np.array([-1e-3, 0.0, 1e-3])
        )
        assert ranges[1] == pytest.approx(7.0, abs=1e-9)
        assert ranges[0] == pytest.approx(ranges[2])
        assert ranges[0] > ranges[1]


def test_beam_at_a_notch_between_two_edges_does_not_pass_through():
    notched = [(-3.0, -2.0), (-1.0, 0.0), (-3.0, 2.0), (3.0, 2.0), (3.0, -2.0)]
    assert cast_beams(contour_of(notched), EAST, np.array([0.0]))[0] == pytest.approx(9.0, abs=1e-9)


def test_beam_along_an_edge_returns_its_near_end():
    """The lower edge of the box lies exactly on the beam."""
    box = [(-2.0, 0.0), (2.0, 0.0), (2.0, 3.0), (-2.0, 3.0)]
    assert cast_beams(contour_of(box), EAST, np.array([0.0]))[0] == pytest.approx(8.0, abs=1e-9)


def test_edge_seen_end_on_does_not_hide_that_the_beam_meets_the_next_face():
    """Beam along the tread of a step: it first touches the step's near corner."""
    stairs = [(-3.0, -2.0), (-3.0, 0.0), (-1.0, 0.0), (-1.0, 2.0), (3.0, 2.0), (3.0, -2.0)]
    ranges = cast_beams(contour_of(stairs), EAST, np.array([-1e-6, 0.0, 1e-6]))
    assert ranges[0] == pytest.approx(7.0, abs=1e-5)
    assert 7.0 - 1e-9 <= ranges[1] <= 9.0 + 1e-9
    assert ranges[2] == pytest.approx(9.0, abs=1e-5)


def test_spike_hides_what_lies_behind_it():
    spiked = [
        (-6.0, 0.5),
        (-2.0, 1.0),
        (-2.0, 4.0),
        (4.0, 4.0),
        (4.0, -4.0),
        (-2.0, -4.0),
        (-2.0, 0.0),
    ]
    bearing = math.atan2(0.5, 4.0)  # at the tip of the spike
    behind = cast_beams(
        contour_of(spiked), EAST, np.array([bearing - 1e-4, bearing, bearing + 1e-4])
    )
    assert behind[0] < 4.3
    assert behind[1] == pytest.approx(math.hypot(4.0, 0.5), abs=1e-9)


def test_contour_behind_the_camera_is_not_seen():
    looking_away = CameraPose(-10.0, 0.0, math.pi)
    assert np.isinf(cast_beams(contour_of(SQUARE), looking_away, np.linspace(-1.5, 1.5, 50))).all()


def test_edge_that_passes_behind_the_camera_is_hit_only_on_its_front_part():
    """The camera looks over its shoulder: the edge's ends have bearings on both sides of π."""
    big = [(-20.0, -1.0), (20.0, -1.0), (20.0, 30.0), (-20.0, 30.0)]
    ranges = cast_beams(
        contour_of(big), CameraPose(0.0, 0.0, math.pi / 2), np.linspace(-1.5, 1.5, 31)
    )
    expected = [
        oracles.first_crossing(big, 0.0, 0.0, math.pi / 2 + b) for b in np.linspace(-1.5, 1.5, 31)
    ]
    np.testing.assert_allclose(ranges, expected, rtol=1e-12)


def test_zero_length_edges_do_no_harm():
    doubled = [v for v in SQUARE for _ in range(3)]
    bearings = np.linspace(-0.3, 0.3, 61)
    np.testing.assert_allclose(
        cast_beams(contour_of(doubled), EAST, bearings),
        cast_beams(contour_of(SQUARE), EAST, bearings),
        rtol=1e-12,
    )


@pytest.mark.parametrize("turns", [-20, -1, 1, 3])
def test_yaw_may_be_any_number_of_turns(turns):
    bearings = np.linspace(-0.3, 0.3, 7) + 0.0123
    one = cast_beams(contour_of(SQUARE), CameraPose(-10.0, 0.3, 0.01), bearings)
    other = cast_beams(
        contour_of(SQUARE), CameraPose(-10.0, 0.3, 0.01 + 2 * math.pi * turns), bearings
    )
    np.testing.assert_allclose(other, one, rtol=1e-9)


def test_one_beam_and_many_beams():
    contour = contour_of(SQUARE)
    many = np.linspace(-0.3, 0.3, 5001)
    ranges = cast_beams(contour, EAST, many)
    for k in (0, 1234, 2500, 5000):
        np.testing.assert_array_equal(cast_beams(contour, EAST, many[k : k + 1]), ranges[k : k + 1])
