"""In space: poses see of a solid what its beams meet, and an episode by EMC completes it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.seam import coverage_of
from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.depth_sensor import (
    DepthScene,
    DepthSensor,
    SimulatedDepthCamera,
    seen_in,
)
from nbv_planner.volume.bodies.families import function_named, solid_named
from nbv_planner.volume.grid import Lattice
from nbv_planner.volume.solids import Sight, elements
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.scan import RangeNoise

SCENE = DepthScene(
    radius_min=0.05,
    radius_max=1.0,
    view_distance=1.7,
    range_min=0.05,
    range_max=4.0,
    pixel_size=1.0 / 80.0,
    depth=DepthSensor(range_max=4.0),
)
NOISE, TAU = RangeNoise(0.0, 0.004), 0.05


def test_poses_see_the_elements_that_beams_to_them_meet_first():
    mesh = solid_named("mug", 1.0)
    lattice = Lattice.around(3, 48, 1.0)
    inside = function_named("mug")(lattice.centres) < 0.0
    drawn = elements(lattice, inside[None], 1500, 0)
    poses = on_sphere(5, 1.7)
    seen = Sight(lattice).visible(drawn, poses, SCENE)[0]
    middle = drawn.points[0] + 1.5 * lattice.cell * drawn.normals[0]
    agree = []
    for number, (position, rotation) in enumerate(zip(poses.position, poses.rotation, strict=True)):
        beam = middle - position
        length = np.linalg.norm(beam, axis=1)
        met, _ = cast(mesh, position, beam / length[:, None])
        cosine = -(beam * drawn.normals[0]).sum(axis=1) / length
        free = (met > length) & SCENE.depth.sees(beam @ rotation)
        clear = np.abs(cosine) > 0.3  # normals of cells are rough
        agree.append((seen[number] == (free & (cosine > 0.0)))[clear].mean())
    assert np.mean(agree) > 0.95
    assert 0.1 < seen.mean() < 0.5


@pytest.mark.release
def test_the_example_completes_a_mug(capsys):
    path = Path(__file__).parents[2] / "examples" / "solid" / "run.py"
    runpy.run_path(str(path))["run"]("mug")
    *_, before, last = capsys.readouterr().out.splitlines()
    complete, expected = (float(word[:-1]) for word in last.split() if word.endswith("%"))
    assert complete > 98.0
    assert expected >= 98.0
    assert last.startswith("view ")
    assert before.startswith("view ")


@pytest.mark.parametrize("family", ["chair"])
def test_a_solid_is_completed_by_views_that_are_chosen(family):
    mesh = solid_named(family, 1.0)
    camera = SimulatedDepthCamera(mesh, SCENE.depth, NOISE)
    views = on_sphere(40, 1.7)
    surface = VolumeSurface.blank(VolumeForm(dimension=3, radius=1.0))
    truth, _ = mesh.sample(2000)
    aim = CoverageTarget("length", TAU)
    rng = np.random.default_rng(0)
    taken = [0]
    parts = []
    for number in range(6):
        position, rotation = views.position[taken[-1]], views.rotation[taken[-1]]
        scan = camera.scan(position, rotation, rng)
        hits, free = seen_in(scan, position, rotation, NOISE, number)
        surface = surface.adding(hits, [free])
        drawn = surface.hypotheses(aim, 6, number)
        left = coverage_of(surface, drawn, aim, views.chosen(np.array(taken)), views, SCENE)
        taken.append(int(left.gains().mean(axis=0).argmax()))
        away, _ = cKDTree(surface.cells.hits.mean).query(truth)
        parts.append(float((away <= TAU).mean()))
    assert len(set(taken)) == len(taken)
    assert parts == sorted(parts)
    assert parts[0] < 0.5
    assert parts[-1] > 0.93
    estimated = 1.0 - left.unseen.sum(axis=1) / left.points
    assert estimated.mean() == pytest.approx(parts[-1], abs=0.06)
