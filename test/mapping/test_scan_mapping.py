"""Scans of one view are mapped together and count as one view, however they come in."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings, averaged, scan_to_hits, unlike
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import polar
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE, SETTINGS = Scene(), MeasurementSettings()
CAMERA = SimulatedCamera(parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=21))


def mapper() -> SurfaceMapper:
    return SurfaceMapper(KernelSettings().build(), MapperSettings(grid_size=600))


def mapping() -> ScanMapping:
    checks = ModelChecks(SCENE, SETTINGS.noise, CheckSettings(), AccuracySettings(accuracy=True))
    return ScanMapping(mapper(), SCENE, SETTINGS, checks)


def scan(view: int, number: int = 0) -> MatchedScan:
    pose = CameraPose.from_polar(1.3 * view, SCENE.view_distance)
    return MatchedScan(100 * view + number, CAMERA.scan(pose, view, number), pose, view=view)


def test_a_scan_gives_what_its_measurements_give():
    mine, plain = mapping(), mapper()
    assert mine.add([scan(1)], -1).views == 1
    plain.add(polar(scan_to_hits(scan(1).scan, scan(1).pose, SCENE, SETTINGS).hits))
    assert mine.belief().mean == pytest.approx(plain.belief().mean, abs=0.0)


def test_scans_of_several_views_count_each_view_once():
    views = mapping().add([scan(1), scan(1, 1), scan(2), scan(2, 1)], -1).views
    assert views == 2
    views = mapping().add([scan(1, 2), scan(2)], 1).views
    assert views == 1


def with_ranges(match: MatchedScan, ranges) -> MatchedScan:
    return dataclasses.replace(
        match, scan=dataclasses.replace(match.scan, ranges=np.asarray(ranges, dtype=float))
    )


def plain_average(columns: np.ndarray, noise_std: float) -> tuple[list[float], list[float]]:
    """Range and factor of the noise of each beam of scans (n, B) without a background, beam by
    beam.
    """
    ranges, factors = [], []
    for column in columns.T:
        hits = sorted(r for r in column if math.isfinite(r))
        misses = sum(r == math.inf for r in column)
        if not hits and not misses:
            ranges.append(column[0])
            factors.append(1.0)
        elif len(hits) < misses:
            ranges.append(math.inf)
            factors.append(1.0)
        else:
            middle = hits[(len(hits) - 1) // 2]
            near = [r for r in hits if abs(r - middle) <= 4.0 * noise_std]
            ranges.append(sum(near) / len(near))
            factors.append(len(near) ** -0.5)
    return ranges, factors


RANGE = st.one_of(st.floats(1.0, 9.0), st.sampled_from([4.0, 4.1, math.inf, math.nan]))


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(RANGE, min_size=5, max_size=5), min_size=n, max_size=n)
    )
)
def test_scans_from_one_place_are_averaged_beam_by_beam(rows):
    columns, noise = np.array(rows), RangeNoise(0.2, 0.0)
    first = with_ranges(scan(1), columns[0])
    found = averaged([with_ranges(first, row) for row in columns], noise)
    assert len(found) == 1
    whole, factor = found[0]
    ranges, factors = (columns[0], np.ones(5)) if len(columns) == 1 else plain_average(columns, 0.2)
    assert whole.scan.ranges == pytest.approx(ranges, nan_ok=True)
    assert factor == pytest.approx(factors)
    assert (whole.pose.x, whole.pose.y) == pytest.approx((first.pose.x, first.pose.y))
    assert whole.pose.yaw == pytest.approx(first.pose.yaw)
    again, same = averaged([with_ranges(first, row) for row in columns[::-1]], noise)[0]
    told = ~np.isnan(columns).all(axis=0)
    assert again.scan.ranges[told] == pytest.approx(whole.scan.ranges[told])
    assert same == pytest.approx(factor)


def test_scans_from_places_further_apart_than_the_noise_stay_apart():
    noise, here = SETTINGS.noise, scan(1)
    moved = [
        dataclasses.replace(here, pose=dataclasses.replace(here.pose, x=here.pose.x + by))
        for by in (0.1, 0.3)
    ]
    turned = dataclasses.replace(here, pose=dataclasses.replace(here.pose, yaw=here.pose.yaw + 0.2))
    fewer = with_ranges(here, here.scan.ranges[:-3])
    assert len(averaged([here, moved[0]], noise)) == 1
    assert averaged([here, moved[0]], noise)[0][0].pose.x == pytest.approx(here.pose.x + 0.05)
    for other in (moved[1], turned, fewer):
        assert [one for one, _ in averaged([here, here, other, here], noise)][1] is other
        assert len(averaged([here, here, other, here], noise)) == 3
        assert unlike([here, here, other, here], noise) == 2 * (other is fewer)


def with_header(match: MatchedScan, **header) -> MatchedScan:
    return dataclasses.replace(match, scan=dataclasses.replace(match.scan, **header))


def test_scans_whose_number_of_beams_differs_by_one_are_averaged_beam_by_beam():
    here = with_ranges(scan(1), np.linspace(4.0, 6.0, 21))
    first, last = here.scan.ranges[:-1], here.scan.ranges[1:]
    later = with_header(
        here, angle_min=here.scan.angle_min + here.scan.angle_increment, ranges=last + 0.2
    )
    finer = with_header(
        here,
        angle_increment=here.scan.angle_increment * 20.0 / 21.0,
        ranges=np.linspace(4.0, 6.0, 22),
    )
    whole, factor = averaged([here, with_ranges(here, first + 0.1), later], SETTINGS.noise)[0]
    assert whole.scan.ranges == pytest.approx(
        np.concatenate([[4.05], here.scan.ranges[1:-1] + 0.1, [6.1]]), abs=1e-12
    )
    assert factor == pytest.approx([2**-0.5, *[3**-0.5] * 19, 2**-0.5])
    assert len(averaged([here, finer, here], SETTINGS.noise)) == 1
    mapped = mapping().add([dataclasses.replace(one, view=1) for one in (here, finer, later)], -1)
    assert mapped.unlike == 0
    assert len(mapped.hits) <= 21
    coarser = with_header(here, angle_increment=2.0 * here.scan.angle_increment)
    assert mapping().add([here, coarser], -1).unlike == 1
    sparse = with_header(coarser, ranges=here.scan.ranges[::2])  # between the same ends
    assert mapping().add([here, sparse], -1).unlike == 1


def test_scans_of_different_greatest_range_are_averaged_and_a_short_miss_tells_nothing_beyond():
    near = with_header(
        with_ranges(scan(1), [4.0, 9.0, np.inf, np.inf, 0.01]), range_max=6.0, range_min=0.05
    )
    far = with_header(
        with_ranges(scan(1), [4.2, 8.0, 9.0, np.inf, 4.0]), range_max=10.0, range_min=0.0
    )
    whole, factor = averaged([near, far, near], SETTINGS.noise)[0]
    assert whole.scan.range_max == 10.0
    assert whole.scan.ranges == pytest.approx([12.2 / 3.0, 8.0, 9.0, np.inf, 4.0])
    assert factor == pytest.approx([3**-0.5, 1.0, 1.0, 1.0, 1.0])
    unknown = with_header(far, range_max=math.inf)
    assert averaged([near, unknown], SETTINGS.noise)[0][0].scan.range_max == math.inf


def test_a_driver_that_states_its_largest_range_sees_as_much_from_nine_scans_as_another():
    pose, shape = (
        CameraPose.from_polar(1.0, SCENE.view_distance),
        parse_object("ellipse:a=6,b=4", SCENE),
    )
    camera = SimulatedCamera(shape, SCENE, SensorSettings())
    plain = [MatchedScan(n, camera.scan(pose, 1, n), pose, view=1) for n in range(9)]
    own = [
        with_header(one, range_max=float(one.scan.ranges[np.isfinite(one.scan.ranges)].max()))
        for one in plain
    ]
    expected, found = (averaged(scans, SETTINGS.noise) for scans in (plain, own))
    assert len(expected) == len(found) == 1
    assert found[0][1] == pytest.approx(expected[0][1])
    assert found[0][0].scan.ranges == pytest.approx(expected[0][0].scan.ranges)


def test_what_lies_behind_the_object_is_averaged_apart_from_it():
    rows = np.array([[4.0, 4.0, 9.0], [4.1, 9.0, 9.2], [4.2, 9.1, 4.0]])
    matches = [dataclasses.replace(with_ranges(scan(1), row), background=row > 8.0) for row in rows]
    whole, factor = averaged(matches, SETTINGS.noise)[0]
    assert whole.scan.ranges == pytest.approx([4.1, 9.05, 9.1])
    assert whole.background.tolist() == [False, True, True]
    assert factor == pytest.approx([3**-0.5, 2**-0.5, 2**-0.5])


def test_several_scans_of_a_view_see_what_one_without_noise_sees():
    """Mapped one by one, hits that noise moves along the beams lie in the gaps behind the tips that
    they pass.
    """
    shape = parse_object("real:iceland", SCENE)
    noisy, exact = (
        SimulatedCamera(shape, SCENE, SensorSettings(noise_std=std)) for std in (0.2, 0.0)
    )

    def seen(*steps: list[MatchedScan]) -> int:
        model = mapping()
        for number, scans in enumerate(steps):
            model.add(scans, min(number, 1))
        return int(seen_stretches(model.belief(), SCENE.pixel_size).sum())

    more = {"one": 0, "averaged": 0, "one by one": 0}
    for angle in (0.3, 1.2, 2.0, 3.3):
        pose = CameraPose.from_polar(angle, SCENE.view_distance)
        scans = [MatchedScan(n, noisy.scan(pose, 1, n), pose, view=1) for n in range(9)]
        truth = seen([MatchedScan(0, exact.scan(pose, 1), pose, view=1)])
        more["one"] += seen(scans[:1]) - truth
        more["averaged"] += seen(scans) - truth
        more["one by one"] += seen(*([match] for match in scans)) - truth
    assert abs(more["averaged"]) < 0.5 * more["one"]
    assert more["one by one"] > 1.5 * more["one"]


def test_beams_are_left_out_and_counted_where_no_scan_of_the_place_has_them():
    bad = scan(1)
    ranges = bad.scan.ranges.copy()
    ranges[:3] = np.nan
    bad = with_ranges(bad, ranges)
    assert mapping().add([bad, bad], -1).dropped["nan"] == 3
    assert mapping().add([bad, scan(1, 1)], -1).dropped["nan"] == 0


def test_noise_larger_than_declared_is_used_unless_that_is_switched_off():
    """The second differences of the ranges show it, from the first scan on."""
    loud = SimulatedCamera(
        parse_object("ellipse:a=6,b=4", SCENE), SCENE, SensorSettings(noise_std=0.6)
    )
    match = MatchedScan(1, loud.scan(scan(1).pose, 1), scan(1).pose, view=1)
    found = [
        ScanMapping(
            mapper(),
            SCENE,
            SETTINGS,
            ModelChecks(SCENE, SETTINGS.noise, CheckSettings(adapt_noise=adapt)),
        )
        .add([match], 0)
        .hits.sigma.mean()
        for adapt in (True, False)
    ]
    assert found == pytest.approx([0.6, 0.2], rel=0.2)
    assert found[1] == SETTINGS.noise_std


def test_a_mapping_is_copied_saved_and_restored_whole():
    whole, twin = mapping(), mapping()
    moving = [dataclasses.replace(scan(view), rate=(0.5, -0.3 * view, 0.1)) for view in range(8)]
    whole.add(moving, -1)
    before = whole.belief()
    twin.restore(whole.state())
    other = whole.copy()
    other.add([scan(9)], 8)
    assert np.array_equal(whole.belief().mean, before.mean)
    for one in (twin, whole):
        one.add([scan(9)], 8)
    after, restored = whole.belief(), twin.belief()
    assert np.array_equal(restored.mean, after.mean)
    assert after.checks
    assert repr(restored.checks) == repr(after.checks)  # bit for bit; NaN is not equal to itself
    for name in ("value", "std", "prior"):
        assert np.array_equal(getattr(restored.common, name), getattr(after.common, name))
    assert np.array_equal(restored.by_noise.std, after.by_noise.std)
    assert (after.std > after.by_noise.std).all()
    assert restored.common.std[3] < restored.common.prior[3]
