"""Scans of one view are mapped together and count as one view, however they come in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.checks import CheckSettings
from nbv_planner.mapping.checks.model_checks import ModelChecks
from nbv_planner.mapping.mapper import MapperSettings, SurfaceMapper
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MeasurementSettings, ScanMapping, scan_to_measurements
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import View
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE, SETTINGS = Scene(), MeasurementSettings()
CAMERA = SimulatedCamera(parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=21))


def mapper() -> SurfaceMapper:
    return SurfaceMapper(KernelSettings().build(), MapperSettings(grid_size=60))


def mapping() -> ScanMapping:
    return ScanMapping(mapper(), SCENE, SETTINGS, ModelChecks(SCENE, SETTINGS.noise, CheckSettings()))


def scan(view: int, number: int = 0) -> MatchedScan:
    pose = View(1.3 * view, SCENE.view_distance).pose
    return MatchedScan(100 * view + number, CAMERA.scan(pose, view, number), pose, view=view)


def test_a_scan_gives_what_its_measurements_give():
    mine, plain = mapping(), mapper()
    assert mine.add([scan(1)], -1).views == 1
    plain.add(scan_to_measurements(scan(1).scan, scan(1).pose, SCENE, SETTINGS).measurements)
    assert mine.belief().mean == pytest.approx(plain.belief().mean, abs=0.0)


def test_scans_of_several_views_count_each_view_once():
    views = mapping().add([scan(1), scan(1, 1), scan(2), scan(2, 1)], -1).views
    assert views == 2
    views = mapping().add([scan(1, 2), scan(2)], 1).views
    assert views == 1


def test_scans_of_a_view_see_the_surface_that_all_of_them_give():
    together, apart = mapping(), mapping()
    together.add([scan(1), scan(1, 1)], -1)
    apart.add([scan(1)], -1)
    apart.add([scan(1, 1)], 1)
    assert np.array_equal(together.belief().hits, apart.belief().hits)
    assert not np.array_equal(together.belief().mean, apart.belief().mean)  # slopes came from another preview


def test_beams_left_out_are_counted_over_all_scans():
    bad = scan(1)
    ranges = bad.scan.ranges.copy()
    ranges[:3] = np.nan
    bad = dataclasses.replace(bad, scan=dataclasses.replace(bad.scan, ranges=ranges))
    dropped = mapping().add([bad, bad], -1).dropped
    assert dropped["nan"] == 6


def test_noise_larger_than_declared_is_used_unless_that_is_switched_off():
    """The second differences of the ranges show it, from the first scan on."""
    loud = SimulatedCamera(parse_object("ellipse:a=6,b=4", SCENE), SCENE, SensorSettings(noise_std=0.6))
    match = MatchedScan(1, loud.scan(scan(1).pose, 1), scan(1).pose, view=1)
    found = [
        ScanMapping(mapper(), SCENE, SETTINGS, ModelChecks(SCENE, SETTINGS.noise, CheckSettings(adapt_noise=adapt)))
        .add([match], 0).measurements.std.mean() for adapt in (True, False)
    ]
    assert found == pytest.approx([0.6, 0.2], rel=0.2)
    assert found[1] == SETTINGS.noise_std


def test_a_mapping_is_copied_saved_and_restored_whole():
    whole, twin = mapping(), mapping()
    whole.add([scan(view) for view in range(8)], -1)
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
