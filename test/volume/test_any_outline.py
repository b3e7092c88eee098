"""True objects of any outline: what they hold, what is seen of them, and what files may say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nbv_planner.errors import ContourError, NbvPlannerError, SettingError
from nbv_planner.volume.bodies.outline_truth import OutlineTruth
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.true_outlines import FORMS, Outlines, parse_outlines
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import BeamScene, Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = BeamScene()
CIRCLE = Poses.on_circle(np.arange(100) * (2.0 * np.pi / 100), 10.0)
SQUARES = "x,y\n-4,-1\n-2,-1\n-2,1\n-4,1\n\n2,-1\n4,-1\n4,1\n2,1\n"


def box(left: float, low: float, right: float, high: float) -> np.ndarray:
    return np.array([(left, low), (right, low), (right, high), (left, high)], dtype=float)


def written(folder, text: str) -> str:
    path = folder / "outline.csv"
    path.write_text(text, encoding="utf-8")
    return f"file:{path}"


@pytest.mark.parametrize("name", FORMS)
def test_shipped_outlines_fit_the_scene_and_are_no_object_of_a_radius(name):
    shape = parse_outlines(name, Scene())
    reach = max(np.hypot(*loop.T).max() for loop in shape.loops)
    assert reach == pytest.approx(0.65 * 8.0)
    assert 5.0 < shape.sampled(0.05)[1].sum() < 120.0
    with pytest.raises(SettingError, match="surface_model auto or volume"):
        parse_object(name, Scene())


def test_overlapping_polygons_are_one_body_whose_outline_is_that_of_the_union():
    """Two boxes that cross: a plus. Its outline is twelve edges of known lengths."""
    shape = Outlines("plus", [box(-3, -1, 3, 1), box(-1, -3, 1, 3)])
    points, length = shape.sampled(0.01)
    assert length.sum() == pytest.approx(24.0, abs=0.05)
    x, y = np.abs(points.T)
    assert ((np.maximum(x, y) <= 3.0 + 1e-9) & (np.minimum(x, y) <= 1.0 + 1e-9)).all()
    assert not ((x < 1.0 - 1e-9) & (y < 1.0 - 1e-9)).any()
    held = shape.holds(np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0)]))
    assert held.sum(axis=0).tolist() == [2, 1, 0]


def test_one_body_hides_another_one_and_what_no_view_sees_is_no_part_of_the_truth():
    shape = Outlines("two", [box(-1, -1, 1, 1), box(4, -3, 5, 3)])
    points, _ = shape.sampled(0.1)
    seen = shape.visible(points, Poses.of([CameraPose(10.0, 0.0, math.pi)]), SCENE)[0]
    assert (points[seen][:, 0] > 4.9).all(), "the wall hides the box behind it"
    ring = Outlines("ring", [box(-3, 1, 3, 2), box(-3, -2, 3, -1), box(-3, -2, -2, 2),
                             box(2, -2, 3, 2)])  # fmt: skip
    truth = OutlineTruth(ring, SCENE, CIRCLE, VolumeSurface.measured_points)
    points = truth.outline(0.05).points
    inside = (np.abs(points[:, 0]) < 1.99) & (np.abs(points[:, 1]) < 0.99)
    assert not inside.any()
    assert len(points) > 300
    assert len(truth) == len(truth.points.angle)
    assert truth.visible(CIRCLE).any(axis=0).all()


def test_the_camera_meets_the_nearest_of_several_bodies():
    shape = Outlines("two", [box(-1, -1, 1, 1), box(4, -3, 5, 3)])
    camera = SimulatedCamera(shape, SCENE, SensorSettings(noise_std=0.0, num_beams=3))
    right, left = (
        camera.exact_ranges(CameraPose.from_polar(angle, 10.0)) for angle in (0.0, math.pi)
    )
    assert right[1] == pytest.approx(5.0)
    assert left[1] == pytest.approx(9.0)


def test_a_file_holds_several_outlines_with_an_empty_line_between(tmp_path):
    shape = parse_outlines(written(tmp_path, SQUARES), Scene())
    assert [len(loop) for loop in shape.loops] == [4, 4]
    assert shape.sampled(0.01)[1].sum() == pytest.approx(16.0)
    cm = parse_outlines(written(tmp_path, SQUARES) + ",unit=cm,origin=auto", Scene())
    assert max(np.abs(loop).max() for loop in cm.loops) == pytest.approx(0.04)
    polar = written(tmp_path, "phi,r\n0,2\n1.5708,2\n3.1416,2\n4.7124,2\n")
    np.testing.assert_allclose(
        parse_outlines(polar, Scene()).loops[0],
        [(2, 0), (0, 2), (-2, 0), (0, -2)],
        atol=1e-4,
    )
    closed = written(tmp_path, "x,y\n-1,-1\n1,-1\n1,-1\n1,1\n-1,1\n-1,-1\n")
    assert len(parse_outlines(closed, Scene()).loops[0]) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x,y\n-1,-1\n1,1\n1,-1\n-1,1\n", "crosses itself, behind line 2 and behind line 4"),
        (
            "x,y\n-1,-1\n9,0\n1,1\n",
            "line 3: outline 1 is 9 m from the origin; must be within radius_max, 8 m",
        ),
        ("x,y\n0,0\n1,0\n1,1\n\n2,2\n3,3\n", "line 6: outline 2, which begins there, has 2"),
        ("x,y\n" + "\n\n".join("0,0\n1,0\n0,1" for _ in range(51)) + "\n", "51 outlines"),
        ("x,y\n0,0\n1,zero\n1,1\n", "line 3: needs two numbers"),
        ("x,y\n0,0\n1,0\n1,1\n\n-1,-1\n0,0\n2,2\n", "line 6: outline 2, .* lie on a line"),
        ("a,b\n0,0\n1,1\n", "must be the header"),
    ],
)
def test_a_file_that_is_no_outline_ends_in_one_line_that_says_where(tmp_path, text, says):
    with pytest.raises(ContourError, match=says) as caught:
        parse_outlines(written(tmp_path, text), Scene())
    assert "\n" not in str(caught.value)


def test_what_no_camera_sees_is_left_out_or_does_not_count_and_that_is_said(tmp_path):
    """Outlines in others and repeats; the inside of a ring of four walls, 12 m, and a
    side of the box outside, which would have to be looked at from too far away, 1 m of 36 m.
    """
    walls = [(-3, 1, 3, 2), (-3, -2, 3, -1), (-3, -2, -2, 2), (2, -2, 3, 2)]
    boxes = [
        box(*sides) for sides in (*walls, walls[0], (-2.5, 1.2, 2.5, 1.8), (-0.5, -7, 0.5, -6))
    ]
    lines = "\n\n".join("\n".join(f"{x:g},{y:g}" for x, y in one) for one in boxes)
    shape = parse_outlines(written(tmp_path, f"x,y\n{lines}\n"), Scene())
    assert len(shape.loops) == 5
    truth = OutlineTruth(shape, SCENE, CIRCLE, VolumeSurface.measured_points)
    of_file, hidden = truth.remarks
    assert of_file.endswith("left out, as no camera sees them: outlines within others: 2")
    length = shape.sampled(0.05)[1].sum()
    assert length == pytest.approx(20.0 + 12.0 + 4.0, abs=0.2)
    assert float(hidden.split("%")[0]) == pytest.approx(100 * 13.0 / length, abs=1.0)
    assert (
        OutlineTruth(Outlines("box", [box(-1, -1, 1, 1)]), SCENE, CIRCLE, truth.measured).remarks
        == []
    )


def test_star_shaped_objects_are_outlines_too_and_unknown_names_are_named():
    shape = parse_outlines("ellipse:a=6,b=4", Scene())
    assert np.hypot(*shape.loops[0].T).max() == pytest.approx(6.0)
    with pytest.raises(NbvPlannerError, match="letter:Q"):
        parse_outlines("letter:Q", Scene())
