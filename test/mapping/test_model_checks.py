"""A world that differs from the declared one is found out from its scans; an honest one is not
suspected.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from beliefs import belief_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.star2d.belief import CommonErrors, SurfaceBelief, uniform_grid
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.model_checks import (
    ModelChecks,
    beyond_bounds,
    covered_parts,
    scan_noise_ratio,
    through_parts,
)
from nbv_planner.star2d.overlap import ContourPolyline, ViewData
from nbv_planner.surface.checks import (
    KINDS,
    Check,
    CheckSettings,
    Level,
    check_text,
    failed_checks,
    forbidding,
    untested,
)
from nbv_planner.surface.displacement import in_rows
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera, sampled_contour

SCENE, DECLARED = Scene(), MeasurementSettings()
ONLY_THEN = ("any_outline", "thin_walls", "prior_outline")  # once there is something to say
STDS = [one.name for one in dataclasses.fields(AccuracySettings) if one.name.endswith("_std")]
ROUND = [2.0 * math.pi * k / 12 for k in range(12)] + [
    2.0 * math.pi * (k + 0.5) / 12 for k in range(0, 12, 2)
]


@pytest.mark.parametrize(("reach", "part"), [(5.3, 0.0), (5.7, 1.0)])
def test_beams_go_through_the_object_from_three_standard_deviations_inside_on(reach, part):
    """A circle of 5 m known to 0.1 m, so that what is within 4.8 m is surely inside; noise 0.1 m,
    a camera at 10 m.
    """
    outline = ContourPolyline(belief_of(4.8, 5.2), 0.1)
    rays = np.stack([math.pi + np.linspace(-0.01, 0.01, 9), np.full(9, reach)])
    hits = np.array([[4.9], [0.0], [0.1]])
    view = ViewData(np.array([10.0, 0.0, math.pi]), hits, rays)
    assert through_parts([view], outline) == [part]


class World:
    """A true object before a true sensor, which takes a scan of what stands at a pose."""

    def __init__(
        self, contour: Contour | str = "polygon:star", seed: int = 0, noise: float = 0.2
    ) -> None:
        known = isinstance(contour, str)
        self.contour = sampled_contour(parse_object(contour, SCENE)) if known else contour
        self.noise, self.random = noise, np.random.default_rng(seed)
        self.bearings = np.linspace(-0.5, 0.5, 121) * SCENE.field_of_view

    def scan(self, pose: CameraPose, view: int) -> Scan:
        return self.seen_from(pose)

    def seen_from(self, pose: CameraPose) -> Scan:
        ranges = cast_beams(
            self.contour, pose, self.bearings
        ) + self.noise * self.random.standard_normal(121)
        ranges[~(ranges <= SCENE.range_max)] = np.inf
        return self.with_ranges(ranges)

    def with_ranges(self, ranges: np.ndarray) -> Scan:
        step = self.bearings[1] - self.bearings[0]
        return Scan(
            self.bearings[0], step, ranges.astype(np.float32), SCENE.range_min, SCENE.range_max
        )


class Drifting(World):
    """It stands 10 cm further off at each view."""

    def scan(self, pose, view):
        return self.seen_from(dataclasses.replace(pose, x=pose.x + 0.1 * view))


class Moving(World):
    """The object moves by 1 m after the fourth view."""

    def scan(self, pose, view):
        return self.seen_from(dataclasses.replace(pose, x=pose.x + (view > 4)))


class Turned(World):
    """The sensor sits turned by 3 degrees on its carrier."""

    def scan(self, pose, view):
        return self.seen_from(dataclasses.replace(pose, yaw=pose.yaw + 0.05))


class Mirrored(World):
    """Its beams come in reverse order."""

    def scan(self, pose, view):
        return self.with_ranges(self.seen_from(pose).ranges[::-1])


class Frozen(World):
    """It returns its first scan for ever."""

    def scan(self, pose, view):
        self.first = getattr(self, "first", None) or self.seen_from(pose)
        return self.first


class Dead(World):
    """It returns one range."""

    def scan(self, pose, view):
        return self.with_ranges(np.full(121, 7.0))


class Blind(World):
    """No beam returns."""

    def scan(self, pose, view):
        return self.with_ranges(np.full(121, np.inf))


class Narrow(World):
    """Only the middle third of its beams is valid."""

    def scan(self, pose, view):
        ranges = self.seen_from(pose).ranges.copy()
        ranges[:40] = ranges[81:] = np.nan
        return self.with_ranges(ranges)


class Covered(World):
    """After the fourth view a cable hangs before a third of its beams."""

    def scan(self, pose, view):
        ranges = self.seen_from(pose).ranges.copy()
        if view > 4:
            ranges[:40] = 0.5 * SCENE.range_min
        return self.with_ranges(ranges)


class Cropped(World):
    """After the fourth view its driver sends half of the beams."""

    def scan(self, pose, view):
        scan, keep = self.seen_from(pose), slice(30, 91) if view > 4 else slice(None)
        return dataclasses.replace(scan, angle_min=scan.bearings[keep][0], ranges=scan.ranges[keep])


class Short(World):
    """After the fourth view its driver is in a mode of 6 m, and says so."""

    def scan(self, pose, view):
        scan = self.seen_from(pose)
        return dataclasses.replace(scan, range_max=6.0) if view > 4 else scan


class Dirty(World):
    """One return in ten lies anywhere."""

    def scan(self, pose, view):
        ranges = self.seen_from(pose).ranges.copy()
        wrong = np.isfinite(ranges) & (self.random.random(121) < 0.1)
        ranges[wrong] = self.random.uniform(0.1, 10.0, wrong.sum())
        return self.with_ranges(ranges)


def closed(*corners: tuple[float, float]) -> Contour:
    """A polygon of any form."""
    x, y = np.array(corners).T
    return Contour(x, y)


LETTER_C = closed(
    *((7 * math.cos(a), 7 * math.sin(a)) for a in np.linspace(0.6, 2 * math.pi - 0.6, 200)),
    *((4 * math.cos(a), 4 * math.sin(a)) for a in np.linspace(2 * math.pi - 0.6, 0.6, 200)),
)
# About the point from which all of it is seen, in its corner, and a square about a point as far
# off.
LETTER_L = closed((-1.2, -1.2), (6.8, -1.2), (6.8, 1.2), (1.2, 1.2), (1.2, 6.8), (-1.2, 6.8))
BESIDE = closed((-1.2, -1.2), (5.0, -1.2), (5.0, 5.0), (-1.2, 5.0))
LETTER_T = closed((-6, 2), (-1.5, 2), (-1.5, -6), (1.5, -6), (1.5, 2), (6, 2), (6, 5), (-6, 5))


def mapped(
    world: World, views=ROUND, *, robust: bool = False, heights=(0.0,), accuracy=None, **limits
) -> ScanMapping:
    checks = ModelChecks(SCENE, DECLARED.noise, CheckSettings(**limits), accuracy, robust=robust)
    mapping = ScanMapping(
        SurfaceMapper(KernelSettings().build(), MapperSettings()), SCENE, DECLARED, checks
    )
    for number, angle in enumerate(views, start=1):
        level = CameraPose.from_polar(angle, SCENE.view_distance)
        pose = dataclasses.replace(level, height=heights[number % len(heights)])
        mapping.add([MatchedScan(number, world.scan(pose, number), pose, number)], number - 1)
        mapping.belief()
    return mapping


def found(world: World, views=ROUND, **limits) -> dict[str, Check]:
    return {check.name: check for check in mapped(world, views, **limits).belief().checks}


@pytest.mark.parametrize(
    ("contour", "lacking"),
    [
        ("polygon:star", []),
        ("ellipse:a=6,b=4", []),
        ("flower:frequency=8,amplitude=2", ["accuracy"]),
        ("real:iceland", []),
    ],
)
def test_an_honest_world_passes_all_checks(contour, lacking):
    checks = found(World(contour))
    assert [name for name, check in checks.items() if check.level] == lacking
    assert all(check.level is Level.UNTESTED for check in checks.values() if check.level)
    assert list(checks) == [kind.name for kind in KINDS if kind.name not in ONLY_THEN]
    assert all(check.summary for check in checks.values())


@pytest.mark.parametrize(
    ("world", "name", "views"),
    [
        (Drifting(), "overlap", ROUND),
        (Moving(), "overlap", ROUND),
        (Mirrored(), "overlap", ROUND),
        (Turned(), "bias", ROUND),
        (Frozen(), "alive", ROUND[:4]),
        (Dead(), "alive", ROUND[:3]),
        (Blind(), "alive", ROUND[:3]),
        (World(LETTER_C), "star_shape", ROUND[:4]),
        (World(LETTER_T), "star_shape", ROUND),
        (Dirty(), "outliers", ROUND),
        (World(closed((-9, -5), (9, -5), (9, 5), (-9, 5))), "bounds", ROUND),
    ],
)
def test_a_world_that_differs_is_found_out(world, name, views):
    check = found(world, views)[name]
    assert check.level is Level.FAILED
    assert check.score > check.limit


def test_the_same_scan_twice_is_no_frozen_sensor_where_the_camera_did_not_move():
    assert found(Frozen(), [1.0, 1.0, 1.0, 1.0])["alive"].level is Level.GOOD


def test_noise_is_noted_where_it_is_used_and_fails_where_not():
    assert found(World(noise=0.6), ROUND[:3])["noise"].level is Level.NOTED
    check = found(World(noise=0.6), ROUND[:3], adapt_noise=False)["noise"]
    assert check.level is Level.FAILED
    assert check.score == pytest.approx(3.0, rel=0.2)


def test_noise_that_differs_is_told_with_the_lines_for_the_parameter_file():
    (check,) = (
        one for one in mapped(World(noise=0.04), ROUND[:3]).belief().checks if one.name == "noise"
    )
    check = dataclasses.replace(check, score=0.2)
    assert (
        check_text(check, RangeNoise(0.2, 0.0))
        == "the noise of the ranges is 0.2 times the declared one: set the noise in the parameter"
        " file to what was found (noise_std: 0.04)"
    )
    assert check_text(check, RangeNoise(0.05, 0.02)).endswith(
        "(noise_std: 0.01, noise_std_per_metre: 0.004)"
    )
    good = dataclasses.replace(check, level=Level.GOOD)
    assert check_text(good, RangeNoise(0.2, 0.0)) == "the noise is the declared one"


def test_the_checks_use_smaller_noise_down_to_a_part_of_the_declared_one():
    class Pushed(World):
        """The object is pushed by 10 cm after the fourth view."""

        def scan(self, pose, view):
            return self.seen_from(dataclasses.replace(pose, x=pose.x + 0.1 * (view > 4)))

    small, declared = (mapped(Pushed(noise=noise), ROUND).belief().checks for noise in (0.04, 0.2))
    assert "overlap" in [check.name for check in failed_checks(small)]
    assert "overlap" not in [check.name for check in failed_checks(declared)]
    mapping = mapped(World(noise=0.04), ROUND)
    assert mapping.checks.noise_shown == 0.5
    assert failed_checks(mapping.belief().checks) == ()
    assert mapped(World(noise=0.115), ROUND).checks.noise_shown == pytest.approx(0.6, abs=0.06)
    assert mapped(World(noise=0.6), ROUND[:6]).checks.noise_shown == 1.0


def test_what_has_too_little_data_is_not_tested():
    checks = found(World(), ROUND[:3])
    assert {name for name, check in checks.items() if check.level is Level.UNTESTED} == {
        "overlap",
        "bias",
        "accuracy",
    }
    assert checks["overlap"].summary == "not tested yet: whether the views fit together"
    assert [check.name for check in forbidding(checks.values(), 5)] == ["overlap"]
    assert [check.name for check in forbidding(checks.values(), 6)] == ["overlap", "bias"]
    assert [check.name for check in untested(checks.values())] == ["overlap", "bias", "accuracy"]
    assert not checks["overlap"].level.speaks


@pytest.mark.parametrize(
    ("which", "value", "std", "level"),
    [
        (0, 0.0, 0.2, Level.GOOD),
        (0, -0.09, 0.2, Level.GOOD),
        (0, 0.11, 0.2, Level.UNTESTED),
        (0, 0.0, 0.31, Level.UNTESTED),
        (0, 0.0, math.inf, Level.UNTESTED),
        (0, -0.35, 0.2, Level.UNTESTED),
        (0, 0.25, 0.04, Level.NOTED),
        (0, 0.28, 0.04, Level.UNTESTED),
        (0, 0.35, 0.1, Level.FAILED),
        (1, 0.1, 0.15, Level.GOOD),
        (1, 0.2, 0.15, Level.UNTESTED),
        (1, 0.25, 0.05, Level.FAILED),
        (1, 0.5, 0.15, Level.UNTESTED),
        (3, 0.0, math.inf, Level.GOOD),
    ],
)
def test_an_error_common_to_views_is_not_tested_while_one_beyond_the_limit_is_likely(
    which, value, std, level
):
    """By the views alone; declared are 0.2 m along the beams and 0.1 m beside them, and 1.5 times
    that is the limit.
    """
    prior = np.array([0.2, 0.1, 0.0, 0.02])
    views = np.where(np.arange(4) == which, [[value], [std]], [[0.0], [0.01]])
    with np.errstate(divide="ignore"):
        weight = prior**2 / (prior**2 + views[1] ** 2)  # of the views against the prior
        left = (prior**-2.0 + views[1] ** -2.0) ** -0.5
    mapping = mapped(World(), ROUND[:2])
    belief = mapping.model.belief()
    without = np.stack([belief.mean, belief.std, belief.lower, belief.upper])
    common = CommonErrors(weight * views[0], left, prior, 9)
    known = np.isfinite(views[1]) & (prior > 0.0)
    assert common.alone[1][known] == pytest.approx(views[1][known])
    assert common.alone[0][known] == pytest.approx(views[0][known])
    nothing = ~np.isfinite(views[1])
    assert (common.alone[1][nothing] > 1e4 * prior[nothing]).all()
    judged = mapping.checks.judge(dataclasses.replace(belief, common=common, without=without))
    checks = {check.name: check for check in judged}
    assert checks["accuracy"].level is level
    assert math.isnan(checks["accuracy"].score) == (level is Level.UNTESTED)


def test_noise_smaller_than_declared_is_noted_and_nothing_is_adapted_to_it():
    for limits in ({}, {"adapt_noise": False}):
        check = found(World(noise=0.04), ROUND[:3], **limits)["noise"]
        assert check.level is Level.NOTED
        assert check.score < check.limit == 1.0 / CheckSettings().noise_limit
        assert check.summary.startswith("the noise of the ranges is 0.2 times the declared one")
    assert "noise" not in found(World(noise=0.04), ROUND[:3], noise_limit=0.0)
    scan = World(noise=0.04).seen_from(CameraPose.from_polar(0.0, SCENE.view_distance))
    checks = ModelChecks(SCENE, DECLARED.noise, CheckSettings())
    checks.scanned(scan, CameraPose.from_polar(0.0, SCENE.view_distance), new_view=True)
    assert checks.noise < 0.4
    assert checks.noise_factor == 1.0


@pytest.mark.parametrize(("contour", "level"), [(LETTER_L, Level.GOOD), (BESIDE, Level.NOTED)])
def test_the_origin_is_to_be_corrected_only_where_another_one_sees_the_whole(contour, level):
    assert found(World(contour))["centre"].level is level


def test_a_narrower_sensor_is_noted_or_refused():
    check = found(Narrow(), ROUND[:2])["field_of_view"]
    assert check.level is Level.NOTED
    assert check.score == pytest.approx(0.65, abs=0.02)
    assert (
        found(Narrow(), ROUND[:2], sensor_mismatch="refuse")["field_of_view"].level is Level.FAILED
    )


@pytest.mark.parametrize(
    ("world", "name", "lacking"),
    [
        (Covered(), "field_of_view", 0.33),
        (Cropped(), "field_of_view", 0.48),
        (Short(), "range", 0.4),
    ],
)
def test_a_sensor_that_sees_less_from_some_view_on_is_noticed_three_views_later(
    world, name, lacking
):
    assert found(world, ROUND[:4])[name].level is Level.GOOD
    assert found(world, ROUND[:6])[name].level is Level.GOOD  # one view may look past all surfaces
    check = found(world, ROUND[:7])[name]
    assert check.level is Level.NOTED
    assert check.score == pytest.approx(lacking, abs=0.02)
    assert found(world, ROUND[:7], sensor_mismatch="refuse")[name].level is Level.FAILED
    after, again = mapped(world, ROUND[:7]), mapped(World(), ROUND[:1])
    again.restore(after.state())
    assert repr(again.belief().checks) == repr(after.belief().checks)


def test_a_range_that_differs_from_view_to_view_is_none_of_the_sensor():
    class Own(World):
        def scan(self, pose, view):
            return dataclasses.replace(self.seen_from(pose), range_max=10.0 - view)

    assert found(Own(), ROUND[:7])["range"].score == pytest.approx(0.1)


def test_outliers_are_only_noted_where_the_mapper_finds_them_itself():
    assert mapped(Dirty(), robust=True).belief().checks[3] == dataclasses.replace(
        mapped(Dirty()).belief().checks[3], level=Level.NOTED
    )


@pytest.mark.parametrize(
    ("heights", "part"), [((1.0, 1.2), 0.12), ((3.0,), 0.3), ((-1.0, 1.0), 0.2), ((0.0,), 0.0)]
)
def test_a_camera_off_the_plane_or_of_changing_height_fails(heights, part):
    check = found(World(), ROUND[:2], heights=heights)["plane"]
    assert check.score == pytest.approx(part)
    assert check.level is (Level.FAILED if part > 0.15 else Level.GOOD)


def test_checks_can_be_switched_off_one_by_one_and_all_together():
    assert "overlap" not in found(World(), ROUND[:3], overlap_limit=0.0)
    assert found(World(), ROUND[:3], checks=False) == {}
    limits = {"overlap_limit": 0.0, "bias_limit": 0.0, "accuracy_limit": 0.0}
    assert untested(found(World(), ROUND[:3], **limits).values()) == ()
    off = found(World(), ROUND[:3], accuracy=AccuracySettings(accuracy=False))
    nothing = found(World(), ROUND[:3], accuracy=AccuracySettings(**dict.fromkeys(STDS, 0.0)))
    assert off["accuracy"].level is nothing["accuracy"].level is Level.GOOD
    assert failed_checks(mapped(Mirrored()).belief().checks)


@settings(max_examples=30, deadline=None)
@given(std=st.floats(1e-3, 1.0), seed=st.integers(0, 100))
def test_the_noise_is_measured_whatever_the_scale(std, seed):
    noise = std * np.random.default_rng(seed).standard_normal(400)
    bearings = np.linspace(-0.3, 0.3, 400)
    scan = Scan(-0.3, bearings[1] - bearings[0], 5.0 + bearings**2 + noise, 0.0, 10.0)
    number, ratio = scan_noise_ratio(scan, RangeNoise(std, 0.0))
    assert number == 398
    assert ratio == pytest.approx(1.0, abs=0.35)


def test_the_noise_of_a_scan_without_neighbours_is_not_known():
    ranges = np.where(np.arange(20) % 2 == 0, 5.0, np.inf)
    assert scan_noise_ratio(Scan(-0.1, 0.01, ranges, 0.0, 10.0), RangeNoise(0.2, 0.0)) == (0, 1.0)


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 5))
def test_rows_are_those_of_groupby(values, least):
    runs = [(key, len(list(group))) for key, group in itertools.groupby(values)]
    expected = [key and length >= least for key, length in runs for _ in range(length)]
    assert in_rows(np.array(values, dtype=bool), least).tolist() == expected


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 2.0), st.integers(2, 6), st.floats(0.0, 6.28), st.floats(-0.6, 0.6))
def test_the_nearest_point_of_a_contour_is_that_of_brute_force(amplitude, frequency, angle, off):
    grid = uniform_grid(1000)
    radius = 5.0 + 0.5 * amplitude * np.cos(frequency * grid)
    belief = SurfaceBelief(
        grid, radius, np.full(1000, 0.1), radius, radius, np.ones(1000, dtype=np.uint32)
    )
    at = 5.0 + 0.5 * amplitude * np.cos(frequency * angle) + off
    x, y = polar_to_cartesian(np.array([angle]), np.array([at]))
    fine = uniform_grid(20_000)
    line = polar_to_cartesian(fine, 5.0 + 0.5 * amplitude * np.cos(frequency * fine))
    exact = np.hypot(line[0] - x, line[1] - y).min()
    distance, normal = ContourPolyline(belief, 0.2).nearest(x, y)
    assert abs(distance[0]) == pytest.approx(exact, abs=0.04)
    assert distance[0] * off >= -0.04
    assert np.hypot(*normal[:, 0]) == pytest.approx(1.0, abs=0.1)
    assert normal[0, 0] * math.cos(angle) + normal[1, 0] * math.sin(angle) > 0.0


def test_only_a_surface_that_goes_on_beyond_the_bounds_counts():
    pose = CameraPose.from_polar(0.0, SCENE.view_distance)
    wide = World(closed((-3, -9), (6, -9), (6, 9), (-3, 9)), noise=0.0)
    wide.bearings = np.linspace(-1.2, 1.2, 121)
    assert beyond_bounds(wide.seen_from(pose), pose, SCENE, DECLARED.noise) > 10
    behind = World(closed((-3, -3), (3, -3), (3, 3), (-3, 3)), noise=0.0).seen_from(pose)
    # a wall behind the object
    ranges = np.where(np.isfinite(behind.ranges), behind.ranges, 19.0).astype(np.float32)
    assert (
        beyond_bounds(dataclasses.replace(behind, ranges=ranges), pose, SCENE, DECLARED.noise) == 0
    )


def test_the_covered_part_is_that_of_field_and_range():
    whole = World().seen_from(CameraPose.from_polar(0.0, 10.0))
    assert covered_parts(whole, SCENE) == (1.0, 1.0)
    assert covered_parts(dataclasses.replace(whole, range_max=6.0), SCENE) == pytest.approx(
        (1.0, 0.6)
    )
    wide = dataclasses.replace(whole, angle_min=-math.pi, angle_increment=2.0 * math.pi / 120)
    assert covered_parts(wide, SCENE) == (1.0, 1.0)
    around = dataclasses.replace(wide, angle_min=0.0)  # ahead are its first and its last beams
    assert covered_parts(around, SCENE) == (1.0, 1.0)
    left = dataclasses.replace(wide, angle_min=0.0, angle_increment=math.pi / 120)
    assert covered_parts(left, SCENE)[0] == pytest.approx(
        0.5, abs=math.pi / 120 / SCENE.field_of_view + 1e-9
    )
    away = dataclasses.replace(whole, angle_min=math.pi - 0.3)
    assert covered_parts(away, SCENE) == (0.0, 0.0)
    assert covered_parts(dataclasses.replace(whole, range_max=math.inf), SCENE) == (1.0, 1.0)
    assert covered_parts(dataclasses.replace(whole, ranges=np.full(121, np.nan)), SCENE) == (
        0.0,
        0.0,
    )


def test_a_damaged_state_is_refused_and_changes_nothing():
    mapping = mapped(World(), ROUND[:3])
    before = mapping.belief()
    for name in (
        "check_pose_0",
        "check_hits_1",
        "check_rays_2",
        "check_rate_0",
        "check_sights",
        "check_counts",
    ):
        with pytest.raises(MeasurementError, match="check"):
            mapping.restore({**mapping.state(), name: mapping.state()[name][:-1]})
    with pytest.raises(MeasurementError, match="check_rate_1: holds a value that is not finite"):
        mapping.restore({**mapping.state(), "check_rate_1": np.full(3, math.nan)})
    assert repr(mapping.belief().checks) == repr(before.checks)  # NaN is not equal to itself


def test_the_simulated_camera_is_honest():
    """The declared noise is that of the simulated camera, dropouts and all."""
    camera = SimulatedCamera(
        parse_object("polygon:concave", SCENE), SCENE, SensorSettings(dropout_probability=0.2)
    )
    assert [check for check in found(camera).values() if check.level] == []
