"""The examples of docs/extend.md run, and every surface model behaves as the protocol says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.star2d.common_errors import AccuracySettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.star2d.robust import mapper_for
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
PAGE = Path(__file__).parents[1] / "docs" / "extend.md"
EXAMPLES = PAGE.parents[1] / "examples" / "own_parts.py"


@pytest.fixture(scope="module")
def names():
    """What the examples of the page define."""
    return runpy.run_path(str(EXAMPLES))


def test_each_example_defines_what_it_is_about(names):
    about = {
        "Poses",
        "Beside",
        "Cosines",
        "NearestHit",
        "Oblique",
        "ObliqueScene",
    }
    assert about <= set(names)


def test_files_that_the_page_names_exist():
    text = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:nbv_planner/|planning/|gp/|world/|mapping/)[\w/]+\.py)`", text)
    root = PAGE.parents[1]
    missing = [
        name
        for name in named
        if not (root / name).exists() and not (root / "nbv_planner" / name).exists()
    ]
    assert [name for name in missing if not name.endswith("yours.py")] == []


@pytest.fixture(params=["gaussian process", "robust", "example"])
def model(request, names):
    """Each surface model in turn: those of the package, and the one of the page."""
    if request.param == "example":
        return names["NearestHit"]()
    settings = RobustSettings(robust=request.param == "robust")
    return mapper_for(KernelSettings().build(), MapperSettings(grid_size=360), settings)


def some(seed: int) -> Hits:
    rng = np.random.default_rng(seed)
    points = np.stack(
        polar_to_cartesian(rng.uniform(0.0, 6.28, 40), 5.0 + rng.uniform(0.0, 1.0, 40)), axis=1
    )
    return Hits(points, np.full(40, 0.2), 2.0 * points, np.full(40, seed))


def test_a_surface_model_counts_and_forgets(model):
    model.take(some(0))
    model.take(some(1), same_view=True)
    assert model.count == 80
    assert len(model.points) <= 80
    assert isinstance(model.solver, str)
    assert isinstance(model.refits_all, bool)
    model.reset()
    assert model.count == 0


def test_hits_of_a_scan_come_through_the_mapping_to_the_model(model):
    """In the object frame: each is next to one of the points that the model keeps."""
    view, sensor = CameraPose.from_polar(0.3, SCENE.view_distance), SensorSettings(num_beams=31)
    scan = SimulatedCamera(parse_object("square:width=8", SCENE), SCENE, sensor).scan(view, 1)
    checks = ModelChecks(
        SCENE, RangeNoise(0.2, 0.0), CheckSettings(checks=False), AccuracySettings(accuracy=False)
    )
    mapping = ScanMapping(model, SCENE, MeasurementSettings(), checks)
    hits = mapping.add_view(scan, view).hits
    assert model.count == len(hits) > 10
    apart = np.linalg.norm(hits.points[:, None] - model.points, axis=-1).min(axis=1)
    # neighbours may be merged, and the robust model moves them by the noise
    assert apart.max() < 3 * 0.2
    assert mapping.belief().count >= 0


def test_a_belief_never_changes_and_a_copy_is_independent(model):
    model.take(some(0))
    before, other = model.belief(), model.copy()
    kept = before.mean.copy()
    other.take(some(1))
    np.testing.assert_array_equal(before.mean, kept)
    np.testing.assert_array_equal(model.belief().mean, kept)
    assert (model.count, other.count) == (40, 80)


def test_a_restored_model_believes_the_same_bit_for_bit(model):
    model.take(some(0))
    blank = model.copy()
    blank.reset()
    blank.restore(model.state())
    for name in ("mean", "std", "lower", "upper", "hits"):
        np.testing.assert_array_equal(getattr(blank.belief(), name), getattr(model.belief(), name))
