"""Real outlines: inside the bounds, with corners and concavities, and their sources named beside
them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import nbv_planner.world.objects
from nbv_planner.errors import ContourError, UnknownNameError
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.world.objects import Polygon, parse_object, surface_points
from nbv_planner.world.objects.text import OUTLINES
from nbv_planner.world.scene import Scene

SCENE = Scene()
REAL_NAMES = tuple(OUTLINES["real"])
README = (Path(nbv_planner.world.objects.__file__).parent / "contours" / "README.md").read_text(
    encoding="utf-8"
)
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"\| `(\w+)` \| (\d+) \| ([\d.]+) \| ([\d.]+) % \|", README)
}


@pytest.mark.parametrize("name", REAL_NAMES)
def test_outline_fills_the_bounds_and_is_the_one_described(name):
    shape = parse_object(f"real:{name}", SCENE)
    assert isinstance(shape, Polygon)
    radii = np.array(shape.radii)
    assert radii.max() == pytest.approx(0.97 * SCENE.radius_max, abs=1e-4)
    assert SCENE.radius_min <= shape.radius(np.linspace(0, 2 * np.pi, 20_001)).min()
    vertices, ratio, _ = ROWS[name]
    assert len(radii) == int(vertices)
    assert radii.min() / radii.max() == pytest.approx(float(ratio), abs=0.005)
    assert len(surface_points(shape, SCENE.pixel_size)) > 250


@pytest.mark.parametrize("name", REAL_NAMES)
def test_outline_has_concavities_and_no_symmetry(name):
    shape = parse_object(f"real:{name}", SCENE)
    corner = np.column_stack(polar_to_cartesian(shape.corners(), shape.radius(shape.corners())))
    side = np.roll(corner, -1, axis=0) - corner
    turn = side[:, 0] * np.roll(side[:, 1], -1) - side[:, 1] * np.roll(side[:, 0], -1)
    assert np.count_nonzero(turn < 0.0) > 10
    angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    radius = shape.radius(angle)
    assert min(np.abs(radius - np.roll(radius, 720 // n)).max() for n in range(2, 9)) > 0.5


def test_readme_lists_every_outline_and_names_the_licences():
    assert list(ROWS) == list(REAL_NAMES)
    assert "public domain" in README
    assert "CC0" in README


def test_outline_scales_with_the_scene_and_is_refused_where_it_does_not_fit():
    small = parse_object("real:horse", Scene(radius_min=0.5, radius_max=2.0))
    np.testing.assert_allclose(4.0 * np.array(small.radii), parse_object("real:horse", SCENE).radii)
    with pytest.raises(ContourError, match=r"real:horse: radius .* \[4, 8\] m"):
        parse_object("real:horse", Scene(radius_min=4.0))


@pytest.mark.parametrize("text", ["real:atlantis", "real:", "real", "real:../real/horse"])
def test_unknown_outline_lists_the_known_ones(text):
    with pytest.raises(UnknownNameError, match="hawaii, horse, iceland"):
        parse_object(text, SCENE)
