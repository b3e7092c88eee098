"""Closed outlines of the likeliest surface: against known shapes, and as geometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from scipy.spatial import cKDTree

from nbv_planner.surface.seam import Hits
from nbv_planner.volume.contours import area, closed_lines
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.objects.true_outlines import Outlines, parse_outlines
from nbv_planner.world.pose import Poses
from nbv_planner.world.ray_casting import cast_beams
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import BeamScene

SCENE = BeamScene()
FORM = VolumeForm()
SIGMA = 0.01
BEARINGS = np.linspace(-1.0, 1.0, 400) * math.radians(60.0)


def circle() -> Outlines:
    angle = np.arange(400) * (2.0 * math.pi / 400)
    return Outlines("circle", [4.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)])


def known(name: str) -> Outlines:
    return circle() if name == "circle" else parse_outlines(name, SCENE)


def dense(shape: Outlines, number: int = 40) -> VolumeSurface:
    """The surface after exact hits, close to each other, from all sides."""
    surface = VolumeSurface.blank(FORM)
    for pose in Poses.on_circle(np.arange(number) * 2.0 * np.pi / number, 10.0):
        at = np.array([pose.x, pose.y])
        ranges = np.min([cast_beams(contour, pose, BEARINGS) for contour in shape.contours], axis=0)
        beam = np.stack(pose.to_world(BEARINGS, np.ones(len(BEARINGS))), axis=1) - at
        met = np.isfinite(ranges)
        points = at + ranges[met, None] * beam[met]
        hits = Hits(
            points,
            np.full(met.sum(), SIGMA),
            np.tile(at, (met.sum(), 1)),
            np.zeros(met.sum(), dtype=int),
        )
        length = np.where(met, ranges - 3.0 * SIGMA, 20.0)
        surface = surface.adding(hits, [FreeRays(at, beam, length, met)])
    return surface


def along(loop: np.ndarray, spacing: float = 0.02) -> np.ndarray:
    """Points of a closed polygon, that close to each other."""
    ends = np.roll(loop, -1, axis=0)
    return np.concatenate(
        [
            np.linspace(start, end, 2 + int(math.dist(start, end) / spacing))
            for start, end in zip(loop, ends, strict=True)
        ]
    )


def crosses_itself(loops: list[np.ndarray]) -> bool:
    """Whether any two edges of closed polygons, not neighbours, meet."""
    start = np.concatenate(loops)
    end = np.concatenate([np.roll(loop, -1, axis=0) for loop in loops])
    way = end - start

    def side(points):
        away = points - start[:, None]
        return way[:, :1] * away[..., 1] - way[:, 1:] * away[..., 0]

    apart = side(start) * side(end) < 0.0
    return bool((apart & apart.T).any())


@pytest.mark.parametrize(
    ("name", "bodies"), [("circle", 1), ("letter:C", 1), ("two_boxes", 2), ("chair", 1)]
)
def test_dense_exact_hits_give_back_the_outline(name, bodies):
    shape = known(name)
    found = dense(shape).likeliest.bodies
    assert len(found) == bodies
    loops = [body.points for body in found]
    assert not crosses_itself(loops)
    sizes = [area(loop) for loop in loops]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == pytest.approx(sum(abs(area(loop)) for loop in shape.loops), rel=0.12)
    one, other = (np.concatenate([along(loop) for loop in some]) for some in (loops, shape.loops))
    for this, that in ((one, other), (other, one)):
        away, _ = cKDTree(this).query(that)
        assert away.max() < 2.0 * FORM.lattice.cell
        assert away.mean() < 0.4 * FORM.lattice.cell
    for body in found:
        assert body.measured.mean() > 0.97
        assert body.std[body.measured].max() <= SIGMA


def test_what_nobody_has_seen_is_a_guess_of_greater_deviation():
    (body,) = dense(circle(), 1).likeliest.bodies
    ahead = body.points[:, 0] > 3.0
    assert body.measured[ahead].mean() > 0.9
    assert not body.measured[body.points[:, 0] < 0.0].any()
    assert body.std[~body.measured].min() > 3.0 * body.std[body.measured].max()
    assert sum(len(run) - 1 for _, run in body.stretches) == len(body.points)


def test_the_outline_agrees_with_the_cells_of_the_likeliest_surface_and_moves_with_the_centre():
    surface = dense(parse_outlines("letter:C", SCENE), 3)
    inside = surface.likeliest.occupied(FORM.lattice.centres)
    drawn = Outlines("found", [body.points for body in surface.likeliest.bodies])
    np.testing.assert_array_equal(drawn.holds(FORM.lattice.centres).any(axis=0), inside)
    cells, _ = surface.outline()
    away, _ = cKDTree(np.concatenate([along(loop) for loop in drawn.loops])).query(cells.points[0])
    assert away.max() < FORM.lattice.cell
    moved, way = surface.seen_from(-2.0, 5.0), np.array([2.0, -5.0])
    np.testing.assert_allclose(moved.likeliest.bodies[0].points - way, drawn.loops[0])
    np.testing.assert_array_equal(moved.likeliest.occupied(FORM.lattice.centres + way), inside)


def test_before_the_first_hit_and_in_space_there_is_none():
    assert VolumeSurface.blank(FORM).likeliest.bodies == []
    hits = Hits(np.ones((1, 3)), np.full(1, 0.1), np.full((1, 3), 5.0), np.zeros(1, dtype=int))
    assert VolumeSurface.blank(VolumeForm(3)).adding(hits).likeliest.bodies == []


FIELDS = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).standard_normal((9, 9))
)


@given(FIELDS)
def test_lines_are_closed_do_not_cross_and_surround_each_part(inner):
    level = np.pad(inner, 1, constant_values=1.0)
    lines = closed_lines(level)
    assert not crosses_itself(lines)
    for line in lines:
        step = np.abs(np.roll(line, -1, axis=0) - line)
        assert step.max() <= 1.0  # from one side of a square to another, the last to the first
    parts = ndimage.label(level < 0.0)[1]
    holes = ndimage.label(level > 0.0, np.ones((3, 3)))[1] - 1
    assert [sum(area(line) > 0.0 for line in lines), sum(area(line) < 0.0 for line in lines)] == [
        parts,
        holes,
    ]
    even = Outlines("all", lines).holds(np.argwhere(level < np.inf).astype(float)).sum(axis=0) % 2
    np.testing.assert_array_equal(even == 1, level.reshape(-1) < 0.0)
