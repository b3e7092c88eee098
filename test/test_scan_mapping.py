"""Scans of one view are mapped together and count as one view, however they come in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nbv_planner.camera import CameraPose, MeasurementSettings, scan_to_measurements
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.objects import parse_object
from nbv_planner.scan_mapping import map_scans
from nbv_planner.scan_matching import MatchedScan
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.surface import MapperSettings, SurfaceMapper

SCENE, SETTINGS = Scene(), MeasurementSettings()
CAMERA = SimulatedCamera(parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=21))


def mapper() -> SurfaceMapper:
    return SurfaceMapper(KernelSettings().build(), MapperSettings(grid_size=60))


def scan(view: int, number: int = 0) -> MatchedScan:
    pose = CameraPose.on_view_circle(1.3 * view, SCENE.view_distance)
    return MatchedScan(100 * view + number, CAMERA.scan(pose, view, number), pose, view=view)


def test_a_scan_gives_what_its_measurements_give():
    mine, plain = mapper(), mapper()
    assert map_scans(mine, [scan(1)], -1, SCENE, SETTINGS).views == 1
    plain.add(scan_to_measurements(scan(1).scan, scan(1).pose, SCENE, SETTINGS).measurements)
    assert mine.belief().mean == pytest.approx(plain.belief().mean, abs=0.0)


def test_scans_of_several_views_count_each_view_once():
    views = map_scans(mapper(), [scan(1), scan(1, 1), scan(2), scan(2, 1)], -1, SCENE, SETTINGS).views
    assert views == 2
    views = map_scans(mapper(), [scan(1, 2), scan(2)], 1, SCENE, SETTINGS).views
    assert views == 1


def test_scans_of_a_view_see_the_surface_that_all_of_them_give():
    together, apart = mapper(), mapper()
    map_scans(together, [scan(1), scan(1, 1)], -1, SCENE, SETTINGS)
    map_scans(apart, [scan(1)], -1, SCENE, SETTINGS)
    map_scans(apart, [scan(1, 1)], 1, SCENE, SETTINGS)
    assert np.array_equal(together.belief().hits, apart.belief().hits)
    assert not np.array_equal(together.belief().mean, apart.belief().mean)  # slopes came from another preview


def test_beams_left_out_are_counted_over_all_scans():
    bad = scan(1)
    ranges = bad.scan.ranges.copy()
    ranges[:3] = np.nan
    bad = dataclasses.replace(bad, scan=dataclasses.replace(bad.scan, ranges=ranges))
    dropped = map_scans(mapper(), [bad, bad], -1, SCENE, SETTINGS).dropped
    assert dropped["nan"] == 6
