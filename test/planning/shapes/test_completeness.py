"""Completeness at a resolution: against all pairs of points, and what it must be on shapes whose
distance is known.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from beliefs import belief_of, left_to_see, with_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from views import views_at

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.geometry import TWO_PI, polar_to_cartesian
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.certificate import CoverageCertificate
from nbv_planner.star2d.shapes.completeness import (
    SAMPLES,
    MeasuredContour,
    covered_cells,
    near_part,
    near_parts,
)
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, Shapes
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.surface.checks import Check, Level
from nbv_planner.surface.coverage import POINTS, CoverageTarget, PointSet
from nbv_planner.thesis import TrueSurface
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import Scene

SCENE = Scene()
PIXEL = SCENE.pixel_size
GRID = uniform_grid(360)


def within(places, points, tau):
    """Which places lie within τ of one of the points."""
    return (
        PointSet(places, np.ones(len(places))).distance_from(PointSet(points, np.ones(len(points))))
        <= tau
    )


def measured(radius, hits=1, size=1000, half=0.0):
    """Belief in a contour (metres, or a function of the angle), which was measured where there are
    hits.
    """
    contour = radius if callable(radius) else lambda _: radius
    band = (lambda angle: contour(angle) - half), (lambda angle: contour(angle) + half)
    return with_evidence(belief_of(*band, size=size, hits=hits))


def on_circle(radius, count=2000):
    return np.stack(polar_to_cartesian(uniform_grid(count), np.full(count, radius)), axis=1)


def wavy(seed, count=1, size=360):
    rng = np.random.default_rng(seed)
    waves = rng.normal(size=(count, 6, 1)) * np.cos(
        np.arange(1, 7)[:, None] * uniform_grid(size) + rng.uniform(0, 6)
    )
    return np.clip(5.0 + 0.5 * waves.sum(axis=1), 2.0, 8.0)


def some(seed):
    """A wavy belief with measurements on a few stretches."""
    hits = np.convolve(np.random.default_rng(seed).normal(size=1000), np.ones(60), "same") > 0.0
    return measured(lambda _: wavy(seed, size=1000)[0], hits=hits.astype(int))


@settings(max_examples=30)
@given(st.integers(0, 1000), st.floats(0.02, 2.0))
def test_all_pairs_of_points_give_the_same(seed, tau):
    rng = np.random.default_rng(seed)
    places, points = rng.uniform(-2, 2, (40, 2)), rng.uniform(-2, 2, (seed % 30, 2))
    distance = np.hypot(*(places[:, None] - points).T).min(axis=0, initial=np.inf)
    np.testing.assert_array_equal(within(places, points, tau), distance <= tau)


def test_a_distance_of_the_resolution_itself_is_within_it():
    assert within(np.array([[0.25, 0.0]]), np.zeros((1, 2)), 0.25).tolist() == [True]


def test_concentric_circles_agree_from_the_difference_of_their_radii_on():
    belief, outer = measured(5.0), on_circle(5.3)
    for tau, wanted in ((0.29, 0.0), (0.31, 1.0)):
        contour = MeasuredContour.of(belief, PIXEL, tau)
        assert within(outer, contour.points, tau).mean() == wanted
        assert contour.part(within(contour.points, outer, tau)) == wanted


def test_what_is_measured_without_error_is_complete_at_any_resolution():
    angle = uniform_grid(1000)
    belief = measured(lambda _: wavy(3, size=1000)[0])
    outline = np.stack(polar_to_cartesian(angle, wavy(3, size=1000)[0]), axis=1)
    for tau in (0.001, 0.05, 1.0):
        contour = MeasuredContour.of(belief, PIXEL, tau)
        assert within(outline, contour.points, tau).all()
        assert contour.part(within(contour.points, outline, max(tau, 0.05))) == 1.0


def test_nothing_is_complete_without_a_measurement():
    contour = MeasuredContour.of(measured(5.0, hits=0), PIXEL, 0.3)
    assert len(contour.points) == 0
    assert not within(on_circle(5.0), contour.points, 0.3).any()
    assert np.isnan(contour.part(within(contour.points, on_circle(5.0), 0.3)))


def test_half_a_circle_is_complete_up_to_the_resolution_beyond_its_ends():
    half = measured(5.0, hits=lambda angle: (angle < np.pi).astype(int))
    for tau in (0.1, 0.3, 1.0):
        contour = MeasuredContour.of(half, PIXEL, tau)
        beyond = 2.0 * 2.0 * np.arcsin(tau / 10.0) / TWO_PI
        assert within(on_circle(5.0), contour.points, tau).mean() == pytest.approx(
            0.5 + beyond, abs=0.002
        )
        assert contour.length.sum() == pytest.approx(5.0 * np.pi, rel=0.01)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(1, 999))
def test_turning_everything_changes_nothing_and_a_coarser_resolution_never_takes_away(seed, turn):
    belief, outline = some(seed), wavy(seed + 1, size=1000)[0]
    turned = dataclasses.replace(
        belief, mean=np.roll(belief.mean, turn), hits=np.roll(belief.hits, turn), evidence=None
    )
    before = (0.0, 0.0)
    for tau in (0.1, 0.3, 0.6):
        found = []
        for each, radius in ((belief, outline), (turned, np.roll(outline, turn))):
            points = np.stack(polar_to_cartesian(belief.angle, radius), axis=1)
            contour = MeasuredContour.of(each, PIXEL, tau)
            accuracy = contour.part(within(contour.points, points, tau))
            found.append((within(points, contour.points, tau).mean(), accuracy))
        np.testing.assert_allclose(*found, atol=2e-3)
        assert np.isnan(found[0][1]) or (np.array(found[0]) >= np.array(before) - 2e-3).all()
        before = found[0]


def test_a_gap_that_no_beam_has_met_is_no_part_of_the_measured_surface():
    """Its ends are 1 m apart: with the contour drawn across it the middle would be complete."""
    belief = measured(5.0, hits=lambda angle: (np.abs(angle - np.pi) > 0.1).astype(int))
    middle = np.array([[-5.0, 0.0]])
    assert not within(middle, MeasuredContour.of(belief, PIXEL, 0.3).points, 0.3).any()
    assert within(middle, MeasuredContour.of(measured(5.0), PIXEL, 0.3).points, 0.3).all()


def test_the_points_are_where_the_belief_is_in_the_object_frame():
    there = dataclasses.replace(measured(5.0), centre=(1.0, -2.0))
    assert within(
        on_circle(5.0) + np.array([1.0, -2.0]), MeasuredContour.of(there, PIXEL, 0.1).points, 0.1
    ).all()


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.15, 0.3, 0.8]))
def test_a_plain_search_finds_the_same_part_of_each_shape(seed, tau):
    belief, shapes = some(seed), Shapes(GRID, wavy(seed + 1, count=3))
    found = near_part(shapes, belief, SCENE, tau)
    points = MeasuredContour.of(belief, PIXEL, tau).points
    for k in np.random.default_rng(seed).integers(0, 360, 12):
        for s in range(3):
            r = shapes.radius[s]
            ends = 0.5 * (r[k] + r[k - 1]), r[k], 0.5 * (r[k] + r[(k + 1) % 360])
            along = np.linspace(min(ends), max(ends), 50)
            places = np.stack(polar_to_cartesian(GRID[k], along), axis=1)
            close = [within(places, points, reach).mean() for reach in (tau * 0.85, tau * 1.15)]
            # else the steps of the radius decide
            if close[0] == close[1] and close[0] in (0.0, 1.0):
                assert found[s, k] == close[0]


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.15, 0.3, 0.8]), st.sampled_from([0.0, 2.0, 5.0]))
def test_circles_are_near_where_a_plain_search_says_so_the_centre_in_the_measured_surface_or_not(
    seed, tau, x
):
    belief = dataclasses.replace(some(seed), centre=(x, 0.0))
    # middles of the steps of a radius
    steps = (np.arange(0, int(SCENE.radius_max * 8 / tau), 3) + 0.5) * tau / 8
    found = near_part(Shapes(GRID, np.repeat(steps[:, None], 360, axis=1)), belief, SCENE, tau)
    points = MeasuredContour.of(belief, PIXEL, tau).points - belief.centre
    places = np.stack(polar_to_cartesian(GRID, steps[:, None]), axis=2).reshape(-1, 2)
    less, more = (
        within(places, points, tau * (1.0 + off)).reshape(found.shape) for off in (-1e-9, 1e-9)
    )
    np.testing.assert_array_equal(found[less == more], less[less == more])


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(0.05, 1.0), st.integers(1, 20))
def test_a_view_covers_what_is_near_to_what_it_sees(seed, tau, views):
    shapes = Shapes(GRID, wavy(seed, count=2))
    visible = visible_cells(shapes, views_at(np.arange(views) * 0.3), SCENE)
    found = covered_cells(visible, shapes, tau)
    for s in range(2):
        points = np.stack(polar_to_cartesian(GRID, shapes.radius[s]), axis=1)
        for v in range(views):
            # Along the contour: what is near across a gap further around the circle may count, too.
            wanted = within(points, points[visible[s, v]], tau)
            np.testing.assert_array_equal(found[s, v], wanted)


def test_the_settings_name_the_target():
    assert CoverageTarget.of(PlannerSettings(target="points")) == POINTS
    aim = CoverageTarget("length", 0.5, RangeNoise(0.2, 0.0))
    assert CoverageTarget.of(PlannerSettings(completeness_tau=0.5)) == aim
    assert (
        CoverageTarget("length", 0.3).summary == "the outline within 0.3 m of the measured surface"
    )


def noisy(score, level=Level.NOTED):
    return (Check("noise", score, 1.3, level),)


def test_the_resolution_follows_the_noise_that_the_mapper_has_found():
    derived = CoverageTarget.of(PlannerSettings(completeness_tau=0.3, noise_std=0.2, seen_std=0.25))
    found = derived.with_checks(SCENE.pixel_size, noisy(2.0))
    assert (found.tau, found.noise.noise_std, found.seen_std) == pytest.approx((0.5, 0.4, 0.25))
    asked = CoverageTarget.of(PlannerSettings(completeness_tau=0.45, noise_std=0.2))
    assert asked.with_checks(SCENE.pixel_size, noisy(2.0)).tau == 0.45
    for nothing in ((), noisy(2.0, Level.GOOD), noisy(2.0, Level.FAILED), noisy(0.2)):
        assert derived.with_checks(SCENE.pixel_size, nothing) is derived


def test_the_certificate_claims_the_resolution_that_the_noise_allows():
    certificate = CoverageCertificate(
        Circle(), SCENE, 0.95, CoverageTarget("length", 0.3, RangeNoise(0.2, 0.0))
    )
    belief = dataclasses.replace(measured(5.2), checks=noisy(3.0))
    assert certificate.estimate(measured(5.2), views_at([]), 0.05).mean == 0.0
    estimate = certificate.estimate(belief, views_at([]), 0.05)
    assert (estimate.mean, estimate.tau) == pytest.approx((1.0, 0.7))


def test_looks_fix_less_where_the_noise_is_larger():
    shapes, views = Circle().draw(measured(5.0), SCENE), views_at([0.0])
    target = CoverageTarget("length", 0.4, RangeNoise(0.02, 0.02), 0.15)
    quiet = measured(5.0, hits=0)
    seen, worse = (
        left_to_see(target, shapes, views_at([]), views, SCENE, one).gains().mean()
        for one in (quiet, dataclasses.replace(quiet, checks=noisy(1.5)))
    )
    assert seen > worse == 0.0


class Circle:
    """Sampler of one circle, many times."""

    def draw(self, belief, scene) -> Shapes:
        return Shapes(GRID, np.full((20, 360), 5.0))


def test_the_certificate_judges_the_completeness_whatever_the_views():
    half = measured(5.0, hits=lambda angle: (angle < np.pi).astype(int))
    certificate = CoverageCertificate(Circle(), SCENE, 0.95, CoverageTarget("length", 0.3))
    everywhere = views_at(np.arange(20) * TWO_PI / 20)
    for views in (everywhere, views_at([])):
        estimate = certificate.estimate(half, views, 0.05)
        # half of τ
        assert estimate.mean == pytest.approx(0.5 + 4.0 * np.arcsin(0.015) / TWO_PI, abs=0.005)
        assert (estimate.tau, estimate.target.name) == (0.3, "completeness")
    assert certificate.judged(measured(5.0, hits=0), everywhere)[0] == pytest.approx(np.zeros(20))


def test_a_covered_outline_is_claimed_in_its_own_words():
    certificate = CoverageCertificate(Circle(), SCENE, 0.95, CoverageTarget("length", 0.3))
    ended = TerminationMonitor(TerminationSettings(), certificate).after_view(
        measured(5.0, half=1.0), 0.0
    )
    assert ended is not None
    assert ended.reason is TerminationReason.COVERED
    assert (
        ended.detail
        == "at least 95.0% of the outline is within 0.3 m of the measured surface in 100.0% of the"
        " posterior shapes"
    )
    assert ended.figures["completeness_tau"] == 0.3


def test_the_planner_that_knows_the_object_covers_what_is_near_to_what_it_sees():
    angle, radius, views = uniform_grid(500), wavy(2, size=500)[0], np.arange(7) * 0.9
    points = np.stack(polar_to_cartesian(angle, radius), axis=1)
    seen, covered = (
        truth.observed(views, SCENE)
        for truth in (TrueSurface(angle, radius), TrueSurface(angle, radius, 0.4))
    )
    for v in range(7):
        np.testing.assert_array_equal(covered[v], within(points, points[seen[v]], 0.4))


def test_drawn_shapes_that_were_measured_all_around_are_complete():
    belief = measured(5.0)
    sampler = shape_sampler(PlannerSettings(shapes=10), Prior(), 0)
    near, sure = near_parts(sampler.draw(belief, SCENE), belief, SCENE, 0.3)
    assert (sure <= near).all()
    assert sure.mean(axis=1).min() > 0.99
    assert SAMPLES >= 4  # a sample is at most a quarter of the resolution from the next
