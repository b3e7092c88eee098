"""Coverage judged by posterior shapes, and the end of an episode that rests on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from beliefs import belief_of, with_common, with_evidence
from episodes import end_of
from hypothesis import given, settings
from hypothesis import strategies as st
from views import all_at, views_at

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import termination_monitor
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.certificate import (
    CURVES,
    CoverageCalibration,
    CoverageCertificate,
    calibration_for,
    logit,
)
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, Shapes
from nbv_planner.star2d.shapes.shape_coverage import surface_density
from nbv_planner.star2d.shapes.shape_visibility import grades_of_sight
from nbv_planner.surface.coverage import CoverageEstimate, CoverageTarget
from nbv_planner.world.scene import Scene

SCENE = Scene()
GRID = uniform_grid(360)
GRAZING = 0.2


class Circles:
    """Sampler of circles, given their radii."""

    def __init__(self, *radii: float) -> None:
        self.shapes = Shapes(GRID, np.repeat(np.array(radii)[:, None], 360, axis=1))

    def draw(self, belief, scene) -> Shapes:
        return self.shapes


def measured(radius, hits=1):
    """Belief in a contour (metres), which was measured where there are hits."""
    return with_evidence(
        belief_of(lambda _: radius - 0.1, lambda _: radius + 0.1, size=360, hits=hits)
    )


NOWHERE, EVERYWHERE = measured(5.0, hits=0), measured(5.0)
TURN = np.arange(20) * TWO_PI / 20


def square_radius(angle):
    """Radius of a square of half width 4 m, a corner at 45 degrees."""
    return 4.0 / np.cos(np.mod(angle + np.pi / 4, np.pi / 2) - np.pi / 4)


def part_seen(radius: float) -> float:
    """Part of a circle seen from one view: the cone's edge cuts it at 17.5 degrees, or its own
    tangent hides it.
    """
    bearing = min(0.5 * SCENE.field_of_view, np.arcsin(radius / SCENE.view_distance))
    half = np.pi - bearing - (np.pi - np.arcsin(SCENE.view_distance * np.sin(bearing) / radius))
    return half / np.pi


def test_coverage_is_what_was_measured_of_each_shape():
    found = []
    for radius in (5.0, 2.5):
        half = np.pi * part_seen(radius)
        hits = np.minimum(GRID % np.pi, -GRID % np.pi) <= half  # about both ends of the x axis
        belief = measured(radius, hits=hits.astype(int))
        found += [
            *CoverageCertificate(Circles(radius), SCENE, 0.95).judged(
                belief, views_at([0.0, np.pi])
            )[0]
        ]
    # Both views look along an axis, about which |dx| + |dy| is spread as on the whole circle by
    # symmetry.
    expected = [2.0 * crossings_within(np.pi * part_seen(radius)) for radius in (5.0, 2.5)]
    np.testing.assert_allclose(found, expected, atol=0.012)


class Drawn:
    """Sampler of the given shapes, radii (S, 360)."""

    def __init__(self, *radii) -> None:
        self.shapes = Shapes(GRID, np.stack(radii))

    def draw(self, belief, scene) -> Shapes:
        return self.shapes


WIDE = Scene(field_of_view=1.5)


def seen_as(grade: int, shape, taken):
    """Part of the points that the best view sees as well as `grade`, and the grades and points of
    each grid angle.
    """
    shapes = Shapes(GRID, shape[None])
    grades, points = (
        grades_of_sight(shapes, taken, WIDE, GRAZING)[0],
        surface_density(shapes, WIDE.pixel_size)[0],
    )
    return points[grades >= grade].sum() / points.sum(), grades, points


def test_a_wall_that_views_only_graze_is_covered_as_far_as_it_was_measured():
    """Round body with a tooth from 4 m to 6 m: the view straight at it grazes its walls."""
    shape = np.clip(6.0 - 2.0 * (np.abs(GRID - np.pi) - 0.2) / 0.4, 4.0, 6.0)
    view, wall = views_at([np.pi]), (shape > 4.0) & (shape < 6.0)
    certificate = CoverageCertificate(Drawn(shape), WIDE, 0.95)
    most, grades, points = seen_as(1, shape, view)
    grazed = points[wall & (grades == 1)].sum() / points.sum()
    assert grazed > 0.05
    whole = certificate.judged(measured(shape, hits=(grades > 0).astype(int)), view)[0][0]
    assert whole == pytest.approx(most, abs=0.005)
    bare = certificate.judged(measured(shape, hits=np.where(wall, 0, grades > 0)), view)[0][0]
    assert bare == pytest.approx(most - points[wall & (grades > 0)].sum() / points.sum(), abs=0.005)


@pytest.mark.parametrize(
    ("measurement", "least_grade"),
    [("within two pixels", 2), ("within a pixel", 1), ("upon it", 0)],
    ids=["seen well and measured in the region", "or grazed and measured nearby", "or measured"],
)
def test_what_is_seen_worse_has_to_be_measured_nearer(measurement, least_grade):
    ellipse, taken = (
        24.0 / np.hypot(4.0 * np.cos(GRID), 6.0 * np.sin(GRID)),
        views_at(TURN[[0, 3, 5]]),
    )
    away = {"within two pixels": 2.4, "within a pixel": 1.0, "upon it": 0.0}[measurement]
    radius = ellipse + away * WIDE.pixel_size
    found = CoverageCertificate(Drawn(ellipse), WIDE, 0.95).judged(measured(radius), taken)[0][0]
    expected = [seen_as(grade, ellipse, taken)[0] for grade in (0, 1, 2)]
    assert expected[0] == 1.0
    assert expected[2] < expected[1] < 0.9
    assert found == pytest.approx(expected[least_grade])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_neither_a_view_more_nor_a_measurement_more_covers_less(seed, count):
    rng = np.random.default_rng(seed)
    shape = np.clip(
        5.0 + rng.normal(size=(3, 6)) @ np.cos(np.arange(1, 7)[:, None] * GRID + 1.0), 2.0, 8.0
    )
    taken = rng.uniform(0.0, TWO_PI, count)
    begin, length, shorter = rng.uniform(0.0, TWO_PI), *np.sort(rng.uniform(0.0, TWO_PI, 2))[::-1]
    certificate = CoverageCertificate(Drawn(*shape), SCENE, 0.95)

    def covered(arc, views):
        hits = ((GRID - begin) % TWO_PI <= arc).astype(int)
        return certificate.judged(measured(shape.mean(axis=0), hits=hits), views_at(views))[0]

    least = covered(shorter, taken[:-1])
    assert (least >= 0.0).all()
    assert (covered(shorter, taken) >= least - 1e-12).all()
    assert (covered(length, taken[:-1]) >= least - 1e-12).all()
    assert (covered(length, taken) <= 1.0 + 1e-12).all()


def crossings_within(half: float) -> float:
    """Part of a circle's pixel crossings within `half` of the x axis on one side of it, by plain
    summation.
    """
    angle = np.linspace(-np.pi, np.pi, 100_001)
    weight = np.abs(np.sin(angle)) + np.abs(np.cos(angle))
    return float(weight[np.abs(angle) <= half].sum() / weight.sum())


def test_estimate_holds_mean_interval_and_probability():
    certificate = CoverageCertificate(Circles(*np.linspace(4.5, 5.5, 101)), SCENE, 0.9)
    belief = measured(5.0, hits=(GRID < 0.93 * TWO_PI).astype(int))
    covered = certificate.judged(belief, views_at(TURN))[0]
    found = certificate.estimate(belief, views_at(TURN), 0.1)
    assert 0.0 < found.probability < 1.0
    assert found.mean == pytest.approx(covered.mean())
    assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(covered, [0.05, 0.95])))
    assert found.probability == np.mean(covered >= 0.9)
    assert (
        certificate.estimate(belief, views_at(TURN), 0.1, margin=0.05).probability
        < found.probability
    )


def test_what_is_common_to_views_is_no_certainty_of_the_outline():
    aim = CoverageTarget("length", 0.3)
    certificate = CoverageCertificate(Circles(*[5.0] * 200), SCENE, 0.95, aim)
    sure, unsure, vague = (
        certificate.estimate(with_common(EVERYWHERE, std), views_at(TURN), 0.1).probability
        for std in (1e-6, 0.15, 0.3)
    )
    assert sure == 1.0
    # Part of the errors that are less than tau.
    assert unsure == pytest.approx(0.954, abs=0.02)
    assert vague == pytest.approx(0.683, abs=0.02)


def test_nothing_is_covered_before_the_first_measurement_and_all_after_many():
    certificate = CoverageCertificate(Circles(4.95, 5.05), SCENE, 1.0)
    for taken in (views_at([]), views_at(TURN)):
        assert certificate.estimate(NOWHERE, taken, 0.05).mean == 0.0
    assert certificate.estimate(EVERYWHERE, views_at(TURN), 0.05, margin=0.5).probability == 1.0


@pytest.mark.parametrize(("part", "ends"), [(0.9, False), (1.0, True)])
def test_an_episode_ends_when_enough_shapes_are_covered(part, ends):
    limits = TerminationSettings(certify=True, band_tolerance=0.1)
    monitor = TerminationMonitor(limits, CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95))
    ended = monitor.after_view(
        measured(5.0, hits=(part * TWO_PI > GRID).astype(int)), 1.0, all_at(TURN)
    )
    assert (monitor.estimate.mean >= 0.95) == ends
    assert (ended is not None) == ends
    if ends:
        assert ended.reason is TerminationReason.COVERED
        assert ended.figures["probability"] == 1.0
        assert "95.0% of the surface has been seen in 100.0%" in ended.detail


def test_covered_is_reported_rather_than_a_limit_reached_by_the_same_view():
    limits = TerminationSettings(certify=True, band_tolerance=0.1, max_views=1, max_duration=0.5)
    monitor = TerminationMonitor(limits, CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95))
    assert monitor.after_view(EVERYWHERE, 1.0, all_at(TURN)).reason is TerminationReason.COVERED


def test_the_estimate_is_that_after_the_last_view_whatever_ended_the_episode():
    limits = TerminationSettings(certify=True, certificate_margin=0.04, band_tolerance=1.0)
    monitor = TerminationMonitor(limits, CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95))
    ended = monitor.after_view(
        measured(5.0, hits=(0.96 * TWO_PI > GRID).astype(int)), 1.0, all_at(TURN)
    )
    assert ended.reason is TerminationReason.BAND_NARROW
    assert 0.95 < monitor.estimate.mean < 0.99
    assert monitor.estimate.probability == 0.0


def test_where_the_band_is_narrow_too_covered_is_the_reason():
    """It says more: what was seen, and by how many shapes."""
    limits = TerminationSettings(certify=True, band_tolerance=1.0)
    covered = TerminationMonitor(limits, CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95))
    assert covered.after_view(EVERYWHERE, 1.0, all_at(TURN)).reason is TerminationReason.COVERED
    alone = TerminationMonitor(TerminationSettings(certify=False, band_tolerance=1.0))
    assert alone.after_view(EVERYWHERE, 1.0, all_at(TURN)).reason is TerminationReason.BAND_NARROW


def test_a_calibrated_estimate_is_that_of_its_table():
    plain = CoverageCertificate(Circles(4.9, 5.1), SCENE, 0.95)
    found = plain.judged(EVERYWHERE, views_at(TURN))[1]
    calibration = dataclasses.replace(calibration_for("points"), level=0.9)
    certificate = dataclasses.replace(plain, calibration=calibration)
    estimate = certificate.estimate(EVERYWHERE, views_at(TURN), 0.05)
    median, lower, upper, probability = calibration.estimate(found, 0.95)
    assert estimate == CoverageEstimate(median, lower, upper, probability, 0.9)
    assert f"(90%: {100 * lower:.0f} to {100 * upper:.0f})" in estimate.summary


def test_an_end_without_a_claim_says_what_is_known():
    limits = TerminationSettings(certify=True, band_tolerance=1e-9, max_views=1)
    withheld = dataclasses.replace(calibration_for("points"), claims=[])
    certificate = CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95, calibration=withheld)
    monitor = TerminationMonitor(limits, certificate)
    ended = monitor.after_view(EVERYWHERE, 1.0, all_at(TURN))
    assert ended.reason is TerminationReason.MAX_VIEWS
    assert ended.detail == f"1 views taken; estimated coverage {monitor.estimate.summary}"


@pytest.mark.parametrize(("lower", "ends"), [(0.85, False), (0.95, True)])
def test_a_narrow_band_ends_nothing_where_much_may_be_missing(lower, ends):
    """At most twice what the target leaves: the lower end of the interval is at least 90 % for 95
    %.
    """
    coefficients = {
        name: [float(logit(part))] for name, part in zip(CURVES, (lower, 0.97, 0.99), strict=True)
    }
    table = CoverageCalibration(0.95, (), (), coefficients, (), (0.0,), (0.0,), ())
    certificate = CoverageCertificate(Circles(*[5.0] * 20), SCENE, 0.95, calibration=table)
    monitor = TerminationMonitor(TerminationSettings(certify=True, band_tolerance=1.0), certificate)
    ended = monitor.after_view(EVERYWHERE, 1.0, all_at(TURN))
    assert (ended is not None) == ends
    if ended is not None:
        assert ended.reason is TerminationReason.BAND_NARROW
        assert ended.detail.endswith(
            "at least 95.0% cannot be claimed; estimated coverage 97.0% (95%: 95 to 99)"
        )


@pytest.mark.parametrize("calibrate", [True, False])
def test_calibration_can_be_switched_off(calibrate):
    limits = TerminationSettings(certify=True, calibrate=calibrate)
    for target in ("points", "completeness"):
        certificate = termination_monitor(
            limits, PlannerSettings(target=target), SCENE, Prior()
        ).certificate
        assert (certificate.calibration is calibration_for(target)) == calibrate


def test_shapes_of_the_certificate_are_others_than_the_planners_and_repeat():
    planner = PlannerSettings(planner="greedy", objective="EMC", shapes=20)
    limits = TerminationSettings(certify=True, certificate_shapes=20)
    belief = with_evidence(
        belief_of(4.0, 6.0, size=360, hits=lambda angle: (angle < 2.0).astype(int))
    )

    def drawn():
        return (
            termination_monitor(limits, planner, SCENE, Prior())
            .certificate.sampler.draw(belief, SCENE)
            .radius
        )

    np.testing.assert_array_equal(drawn(), drawn())
    assert not np.array_equal(drawn(), shape_sampler(planner, Prior()).draw(belief, SCENE).radius)
    assert (
        termination_monitor(TerminationSettings(certify=False), planner, SCENE, Prior()).certificate
        is None
    )


def test_shapes_of_the_certificate_are_smooth():
    square = belief_of(
        lambda angle: square_radius(angle) - 0.1,
        lambda angle: square_radius(angle) + 0.1,
        size=360,
        hits=lambda angle: ((angle < 0.5) | (angle > 1.1)).astype(int),
    )
    limits = TerminationSettings(certify=True, certificate_shapes=20)

    def drawn(probability):
        planner = PlannerSettings(
            planner="greedy", objective="EMC", shapes=20, edge_probability=probability
        )
        certificate = termination_monitor(limits, planner, SCENE, Prior()).certificate
        samplers = certificate.sampler, shape_sampler(planner, Prior())
        return [sampler.draw(with_evidence(square), SCENE).radius for sampler in samplers]

    (judged, planned), (smooth, smooth_planned) = drawn(1.0), drawn(0.0)
    assert not np.array_equal(planned, smooth_planned)
    np.testing.assert_array_equal(judged, smooth)


@pytest.mark.parametrize(
    "planner", [{"planner": "rollout", "shapes": 8}, {"planner": "greedy", "objective": "U"}]
)
def test_a_simulated_episode_ends_covered(planner):
    config = EpisodeConfig(
        object="square:width=4",
        planner=PlannerSettings(**planner),
        termination=TerminationSettings(
            certify=True, band_tolerance=0.01, stall_views=0, max_views=20
        ),
    )
    simulation = Simulation(config)
    assert end_of(simulation).reason is TerminationReason.COVERED
    assert simulation.judge.coverage >= 0.95


@pytest.mark.parametrize(
    "bad",
    [
        {"certificate_delta": 0.0},
        {"certificate_delta": 1.0},
        {"certificate_shapes": 19},
        {"certificate_margin": -0.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        TerminationSettings(**bad)
