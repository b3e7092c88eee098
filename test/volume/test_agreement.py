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
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.surface.checks import Level
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.agreement import agreement, thin_walls
from nbv_planner.volume.grid import Merged
from nbv_planner.volume.solids import elements
from nbv_planner.volume.volume_surface import VolumeForm
from nbv_planner.world.pose import CameraPose, poses_in_plane

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
    cameras = poses_in_plane(np.zeros((9, 3)))
    found, off = agreement(none, lattice.cell, cameras, np.arange(9), np.ones((3, 9)))
    assert np.isnan([*found.scores(5.0), off]).all()


def faces_met(thickness: float, noise: float = 0.2, sides=(1.0, -1.0)) -> Merged:
    """Merged hits on the long faces of a wall along x, 6 m long, from cameras beyond each."""
    rng = np.random.default_rng(5)
    merged = Merged.none(2)
    for side in sides:
        for camera in (-4.0, 0.0, 4.0):
            x = rng.uniform(-3.0, 3.0, 60)
            origin = np.tile([camera, 9.0 * side], (60, 1))
            true = np.stack([x, np.full(60, 0.5 * side * thickness)], axis=1)
            beam = (true - origin) / np.linalg.norm(true - origin, axis=1)[:, None]
            points = true + rng.normal(0.0, noise, 60)[:, None] * beam
            merged = merged.adding(
                Hits(points, np.full(60, noise), origin, np.zeros(60, int)), LATTICE
            )
    return merged


LATTICE = VolumeForm(radius=8.0).lattice


@pytest.mark.parametrize("thickness", [0.02, 0.1])
def test_a_wall_thinner_than_the_noise_is_found_where_it_is(thickness):
    (wall,) = thin_walls(faces_met(thickness), LATTICE.cell)
    assert np.median(np.abs(wall[:, 1])) < 0.08
    assert np.abs(wall[:, 1]).max() < 0.4  # two deviations of a range, at the ends
    assert np.sort(wall[:, 0])[[0, -1]] == pytest.approx([-3.0, 3.0], abs=0.4)


@pytest.mark.parametrize(
    "hits",
    [
        faces_met(0.6),
        faces_met(0.4, noise=0.02),
        faces_met(0.1, sides=(1.0,)),
        Merged.none(2),
    ],
    ids=["thick", "exact", "one_side", "nothing"],
)
def test_where_two_sides_can_be_told_apart_or_one_was_met_no_wall_is_found(hits):
    assert thin_walls(hits, LATTICE.cell) == []


def test_a_sheet_is_covered_and_the_checks_say_where_it_cannot_be_told_apart(tmp_path):
    """It vanished from the surface, which a claim of what is left of it did not see."""
    place = tmp_path / "sheet.csv"
    place.write_text("x,y\n-4,-0.05\n4,-0.05\n4,0.05\n-4,0.05\n")
    episode = Simulation(configure(object=f"file:{place}", surface_model="volume"))
    record = episode.finish()
    assert record.termination.reason is TerminationReason.COVERED
    assert record.views[-1].completeness >= 0.95
    (found,) = (one for one in episode.steps[-1].belief.checks if one.name == "thin_walls")
    assert (found.level, found.score) == (Level.NOTED, 1.0)
    assert "both sides of a wall thinner than a cell or than the noise, at (" in found.summary


@pytest.mark.parametrize("object", ["letter:E", "two_boxes:gap=1"])
def test_of_thick_bodies_nothing_is_said_of_walls(object):
    scans = scans_of(object, 0)
    assert checks_of(scans)["thin_walls"].level is Level.GOOD
