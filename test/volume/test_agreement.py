"""Views that do not fit together are found on outlines of any form, and those that do are not
accused.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.surface.checks import Level
from nbv_planner.volume.agreement import agreement
from nbv_planner.volume.solids import elements
from nbv_planner.volume.volume_surface import VolumeForm
from nbv_planner.world.pose import CameraPose

VIEWS = 12


def scans_of(object: str, seed: int, noise: float = 0.2) -> list[MatchedScan]:
    """Scans from all around an object."""
    episode = Simulation(configure(object=object, seed=seed, noise_std=noise))
    distance = episode.config.scene.view_distance
    poses = [CameraPose.from_polar(2.0 * np.pi * n / VIEWS, distance) for n in range(VIEWS)]
    return [
        MatchedScan(number, episode.look(pose, number).scan, pose, view=number)
        for number, pose in enumerate(poses)
    ]


def checks_of(scans, noise: float = 0.2) -> dict:
    made = scan_mapping(configure(surface_model="volume", noise_std=noise))
    made.add(scans, -1)
    return {check.name: check for check in made.belief().checks}


def displaced(scan: MatchedScan, x: float, y: float) -> MatchedScan:
    pose = scan.pose
    return dataclasses.replace(scan, pose=CameraPose(pose.x + x, pose.y + y, pose.yaw))


@pytest.mark.parametrize("object", ["letter:C", "two_boxes", "chair"])
@pytest.mark.parametrize(("seed", "noise"), [(1, 0.2), (2, 0.2), (1, 0.02), (2, 0.005)])
def test_views_of_one_object_fit_together(object, seed, noise):
    """Also where noise is less than a cell, 0.13 m: what it is made of is no misfit."""
    checks = checks_of(scans_of(object, seed, noise), noise)
    assert checks["overlap"].level is checks["bias"].level is Level.GOOD
    assert checks["outliers"].score < 0.02


@pytest.mark.parametrize("object", ["letter:C", "two_boxes"])
def test_an_object_that_is_moved_on_the_way_does_not_fit(object):
    scans = scans_of(object, 1)
    half = VIEWS // 2
    moved = [*scans[:half], *(displaced(scan, 0.5, 0.3) for scan in scans[half:])]
    assert checks_of(moved)["overlap"].level is Level.FAILED


def test_a_camera_that_sits_elsewhere_than_said_displaces_all_views_alike():
    scans = [
        dataclasses.replace(scan, pose=scan.pose.then(CameraPose(0.0, 0.4, 0.0)))
        for scan in scans_of("letter:C", 1)
    ]
    checks = checks_of(scans)
    assert Level.FAILED in (checks["bias"].level, checks["overlap"].level)


def test_with_too_few_views_nothing_is_said_of_them():
    checks = checks_of(scans_of("letter:C", 1)[:2])
    assert checks["overlap"].level is checks["bias"].level is Level.UNTESTED


def test_nothing_is_compared_before_the_first_hit():
    assert scan_mapping(configure(surface_model="volume")).belief().checks == ()


def test_hits_that_make_no_body_are_compared_with_nothing():
    lattice = VolumeForm().lattice
    none = elements(lattice, np.zeros((1, len(lattice.centres)), dtype=bool), 10, 0)
    found, off = agreement(none, lattice.cell, np.zeros((9, 3)), np.arange(9), np.ones((3, 9)))
    assert np.isnan([*found.scores(5.0), off]).all()
