"""Objects from GeoJSON and DXF, of one outline or several, star-shaped or not; what is refused."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import ContourError, NbvPlannerError, SettingError
from nbv_planner.report.take_home import MeasuredOutline
from nbv_planner.world.objects import Polygon, origin_text, parse_object, surface_points
from nbv_planner.world.objects.contour_files import read_outlines
from nbv_planner.world.objects.true_outlines import (
    Outlines,
    parse_outlines,
    true_object,
)
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
BOX = [[-4.0, -3.0], [4.0, -3.0], [4.0, 3.0], [-4.0, 3.0]]
ELL = [[-4.0, -4.0], [4.0, -4.0], [4.0, -2.0], [-2.0, -2.0], [-2.0, 4.0], [-4.0, 4.0]]
SMALL = [[1.0, 1.0], [3.0, 1.0], [3.0, 3.0], [1.0, 3.0]]
HOLE = [[0.5, 0.5], [1.0, 0.5], [1.0, 1.0]]


def written(folder, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return f"file:{folder / name}"


def geojson(folder, content: object) -> str:
    return written(folder, "part.geojson", json.dumps(content))


def closed(ring: list[list[float]]) -> list[list[float]]:
    return [*ring, ring[0]]


def feature(kind: str, coordinates: object, **properties: object) -> dict[str, object]:
    shape = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties, "geometry": shape}


def collection(*features: object) -> dict[str, object]:
    return {"type": "FeatureCollection", "features": list(features)}


def dxf(folder, *entities: list[tuple[int, object]]) -> str:
    codes = [(0, "SECTION"), (2, "ENTITIES"), *(code for one in entities for code in one)]
    codes += [(0, "ENDSEC"), (0, "EOF")]
    return written(folder, "part.dxf", "".join(f"{code:3}\n{value}\n" for code, value in codes))


def polyline(ring: list[list[float]], flag: int = 1) -> list[tuple[int, object]]:
    places = [code for x, y in ring for code in ((10, x), (20, y))]
    return [(0, "LWPOLYLINE"), (8, "0"), (90, len(ring)), (70, flag), *places]


def line(start: list[float], end: list[float]) -> list[tuple[int, object]]:
    return [(0, "LINE"), (8, "0"), (10, start[0]), (20, start[1]), (30, 0.0), (11, end[0]),
            (21, end[1]), (31, 0.0)]  # fmt: skip


def old_polyline(ring: list[list[float]]) -> list[tuple[int, object]]:
    corners = [
        code for x, y in ring for code in ((0, "VERTEX"), (8, "0"), (10, x), (20, y), (30, 0.0))
    ]
    return [(0, "POLYLINE"), (8, "0"), (66, 1), (70, 1), (10, 0.0), (20, 0.0), (30, 0.0), *corners,
            (0, "SEQEND"), (8, "0")]  # fmt: skip


def same_polygon(found: np.ndarray, ring: list[list[float]]) -> bool:
    """Whether the corners are the same, from any of them on, in either direction."""
    for way in (np.array(ring), np.array(ring)[::-1]):
        for turn in range(len(ring)):
            if len(found) == len(ring) and np.allclose(np.roll(way, turn, axis=0), found):
                return True
    return False


@pytest.mark.parametrize(
    "content",
    [
        {"type": "Polygon", "coordinates": [closed(ELL)]},
        feature("Polygon", [closed(ELL)], name="part"),
        collection(feature("LineString", closed(ELL))),
        collection(feature("LineString", ELL)),
        collection(feature("MultiLineString", [ELL[:4], ELL[3:]])),
        collection(feature("LineString", [*ELL[4:], ELL[0]]), feature("LineString", ELL[:5][::-1])),
        {"type": "GeometryCollection",
         "geometries": [{"type": "MultiPolygon", "coordinates": [[closed(ELL)]]}]},
        collection(feature("Polygon", [[[x, y, 7.0] for x, y in closed(ELL)]])),
        collection(feature("Polygon", [[corner for corner in closed(ELL) for _ in range(2)]])),
    ],
)  # fmt: skip
def test_an_outline_in_geojson_in_whichever_form(tmp_path, content):
    shape = true_object(geojson(tmp_path, content), SCENE)
    assert isinstance(shape, Outlines)
    assert len(shape.loops) == 1
    assert same_polygon(shape.loops[0], ELL)


def test_several_polygons_are_several_outlines_and_holes_are_left_out_and_counted(tmp_path):
    far = [[x - 5.0, y] for x, y in SMALL]
    content = collection(feature("MultiPolygon", [[closed(ELL), closed(HOLE)], [closed(SMALL)]]),
                         feature("Polygon", [closed(far)]))  # fmt: skip
    shape = true_object(geojson(tmp_path, content), SCENE)
    assert isinstance(shape, Outlines)
    assert shape.remark.endswith("left out, as no camera sees them: holes: 1")
    assert [same_polygon(*pair) for pair in zip(shape.loops, (ELL, SMALL, far), strict=True)] == [
        True
    ] * 3
    cm = parse_outlines(geojson(tmp_path, content) + ",unit=cm", SCENE)
    np.testing.assert_allclose(cm.loops[0], 0.01 * np.array(shape.loops[0]))


@pytest.mark.parametrize(
    "entities",
    [
        [polyline(ELL)],
        [polyline(ELL, 0)],
        [polyline(closed(ELL), 0)],
        [old_polyline(ELL)],
        [line(*pair) for pair in pairwise(closed(ELL))],
        # in any order and direction, rounded
        [line(closed(ELL)[i + 1], ELL[i]) for i in (3, 1)]
        + [line(ELL[i], [x + 1e-5 for x in closed(ELL)[i + 1]]) for i in (0, 5, 2, 4)],
        [polyline(ELL[:4], 0), line(ELL[4], ELL[3]), polyline([*ELL[4:], ELL[0]], 0)],
        [[(0, "TEXT"), (8, "0"), (10, 0.0), (20, 0.0), (1, "a part")], polyline(ELL)],
    ],
)
def test_an_outline_in_dxf_in_whichever_form(tmp_path, entities):
    shape = true_object(dxf(tmp_path, *entities), SCENE)
    assert isinstance(shape, Outlines)
    assert len(shape.loops) == 1
    assert np.allclose(np.sort(shape.loops[0], axis=0), np.sort(np.array(ELL), axis=0), atol=1e-4)
    assert same_polygon(np.round(shape.loops[0], 3), ELL)


def test_two_squares_that_touch_at_a_corner_stay_two(tmp_path):
    squares = [[[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]],
               [[2.0, 2.0], [4.0, 2.0], [4.0, 4.0], [2.0, 4.0]]]  # fmt: skip
    shape = true_object(dxf(tmp_path, *(polyline(closed(one), 0) for one in squares)), SCENE)
    assert [same_polygon(*pair) for pair in zip(shape.loops, squares, strict=True)] == [True, True]


@pytest.mark.parametrize("kind", ["geojson", "dxf", "csv"])
def test_a_file_of_one_star_shaped_polygon_is_the_same_object_as_ever(tmp_path, kind):
    as_csv = written(tmp_path, "c.csv", "x,y\n" + "".join(f"{x},{y}\n" for x, y in BOX))
    expected = parse_object(as_csv, SCENE)
    text = {
        "csv": as_csv,
        "geojson": geojson(tmp_path, feature("Polygon", [closed(BOX), closed(HOLE)])),
        "dxf": dxf(tmp_path, polyline(BOX)),
    }[kind]
    shape = true_object(text, SCENE)
    assert isinstance(shape, Polygon)
    assert shape == expected == parse_object(text, SCENE)
    with pytest.raises(ContourError, match="radius_min"):
        true_object(text + ",unit=cm", SCENE)


def test_what_the_package_writes_is_read_back_without_band_and_stretches(tmp_path):
    angle = np.arange(90) * (2.0 * math.pi / 90)
    radius = 5.0 + np.cos(3.0 * angle)
    seen = angle < 4.0
    outline = MeasuredOutline(angle, radius, radius - 0.1, radius + 0.1, seen)
    assert {len(read_outlines(path)) for path in outline.write(tmp_path)} == {1}
    for kind in ("csv", "geojson", "dxf"):
        shape = true_object(f"file:{tmp_path / 'outline'}.{kind}", SCENE)
        np.testing.assert_allclose(shape.radius(angle), radius, rtol=1e-8)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (collection(feature("Polygon", [closed(BOX)]), feature("Point", [1.0, 2.0])),
         "feature 2 is not GeoJSON of LineString, Polygon"),
        (collection(feature("Polygon", [closed(BOX)]), feature("Polygon", [[[1.0, "a"]]])),
         "feature 2 is not GeoJSON"),
        (collection(feature("Polygon", [[[0.0, 0.0], [1e999, 0.0], [1.0, 1.0]]])), "feature 1"),
        (collection(), "holds no outline"),
        ([1, 2], "is not GeoJSON"),
        (collection(feature("Polygon", [closed(BOX)]),
                    feature("Polygon", [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]])),
         "outline 2 crosses itself, behind feature 2 point 1 and behind feature 2 point 3"),
        (collection(feature("Polygon", [closed(ELL)]), feature("LineString", [[0, 0], [1, 1]])),
         "feature 2 point 1: outline 2, which begins there, has 2 different points"),
        (collection(*(feature("Polygon", [closed(SMALL)]) for _ in range(300))), "300 outlines"),
        (collection(feature("Polygon", [closed(ELL)]),
                    feature("Polygon", [[[9.0, 0.0], [5.0, 1.0], [5.0, 0.0]]])),
         "feature 2 point 1: outline 2 is 9 m from the origin; must be within radius_max, 8 m"),
    ],
)  # fmt: skip
def test_geojson_that_is_no_outline_ends_in_one_line_that_names_file_and_feature(
    tmp_path, content, says
):
    refused(geojson(tmp_path, content), says)


@pytest.mark.parametrize(
    ("entities", "says"),
    [
        ([polyline(ELL), [(0, "CIRCLE"), (10, 0.0), (20, 0.0), (40, 1.0)]],
         "line 38: CIRCLE is a curve or a block"),
        ([[*polyline(ELL), (42, 0.5)]], "line 6: LWPOLYLINE is a curve or a block"),
        ([[(0, "LINE"), (10, "one"), (20, 0.0)]], "line 7: must be an ASCII DXF"),
        ([[(0, "LINE"), (10, "nan"), (20, 0.0)]], "is not finite"),
        ([[(0, "TEXT"), (1, "nothing")]], "holds no outline"),
        ([polyline(ELL), polyline([[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 2.0]])],
         "outline 2 crosses itself, behind line 46 and behind line 54"),
        ([line([0.0, 0.0], [1.0, 0.0])], "line 10: outline 1, which begins there, has 2"),
    ],
)  # fmt: skip
def test_dxf_that_is_no_outline_ends_in_one_line_that_names_file_and_line(tmp_path, entities, says):
    refused(dxf(tmp_path, *entities), says)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("part.dxf", b"AutoCAD Binary DXF\r\n\x1a\x00\x00\x00", "must be an ASCII DXF"),
        ("part.dxf", b"  0\nSECTION\n  2\nENTITIES\n", "does not end with EOF"),
        ("part.geojson", b"\xff\xfe{", "is not GeoJSON"),
        ("part.json", b"[" * 100_000, "is not GeoJSON"),
        ("part.geojson", b"", "is not GeoJSON"),
    ],
)
def test_a_broken_drawing_ends_in_one_line(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    refused(f"file:{tmp_path / name}", says)


def refused(text: str, says: str) -> None:
    for parse in (true_object, parse_outlines):
        with pytest.raises(ContourError, match=says) as caught:
            parse(text, SCENE)
        assert "\n" not in str(caught.value)
        assert "part." in str(caught.value)


def test_a_drawing_of_several_outlines_is_no_object_with_a_radius(tmp_path):
    text = dxf(tmp_path, polyline(BOX), polyline(SMALL))
    with pytest.raises(ContourError, match="holds 2 outlines"):
        parse_object(text, SCENE)


def test_the_origin_of_outlines_is_their_middle_if_no_point_sees_all(tmp_path):
    text = geojson(tmp_path, collection(*(feature("Polygon", [closed(one)]) for one in
                                          (SMALL, [[x + 3.0, y] for x, y in SMALL]))))  # fmt: skip
    assert "the middle of all outlines" in origin_text(text + ",origin=auto")
    assert origin_text(text) == ""
    shape = true_object(text + ",origin=auto", SCENE)
    points = np.concatenate(shape.loops)
    np.testing.assert_allclose(points.min(axis=0) + points.max(axis=0), 0.0, atol=1e-12)


def test_an_empty_line_within_one_star_shaped_contour_is_one_contour_and_a_comment_no_end(tmp_path):
    half = "x,y\n-4,-3\n4,-3\n\n4,3\n-4,3\n"
    assert isinstance(true_object(written(tmp_path, "a.csv", half), SCENE), Polygon)
    several = "x,y\n-4,-3\n-2,-3\n# a comment\n-2,3\n-4,3\n\n4,3\n4,-3\n2,-3\n2,3\n"
    shape = true_object(written(tmp_path, "b.csv", several), SCENE)
    assert [len(loop) for loop in shape.loops] == [4, 4]


# --- families ------------------------------------------------------------------------------------


def test_families_have_parameters_that_change_what_they_say():
    gaps = []
    for text in ("two_boxes", "two_boxes:gap=2.3", "two_boxes:gap=1"):
        box, bent = parse_outlines(text, SCENE).loops
        width = np.ptp(box[:, 0])
        gaps.append(3.0 * (bent[:, 0].min() - box[:, 0].max()) / width)
    np.testing.assert_allclose(gaps, [2.3, 2.3, 1.0])
    for teeth in (1, 4, 7):
        (loop,) = parse_outlines(f"comb:teeth={teeth}", SCENE).loops
        assert len(loop) == 4 * teeth
        low = loop[:, 1] < loop[:, 1].min() + 1e-9
        assert low.sum() == 2 * teeth
        width = np.diff(np.sort(loop[low, 0]))
        np.testing.assert_allclose(width[::2], width[0])
    same = parse_outlines("comb:teeth=4", SCENE), parse_outlines("comb", SCENE)
    np.testing.assert_array_equal(same[0].loops[0], same[1].loops[0])
    for text in ("chair:leg=3,back=8", "horseshoe:leg=1", "mug:handle=4"):
        reach = max(np.hypot(*loop.T).max() for loop in parse_outlines(text, SCENE).loops)
        assert reach == pytest.approx(0.65 * 8.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("comb:tooth=5", "'tooth'.*teeth"),
        ("comb:teeth=many", "teeth='many' is not a number"),
        ("comb:teeth=0", "teeth=0 must be from 0.01 to 100; as drawn it is 4"),
        ("two_boxes:gap=nan", "gap=nan must be from"),
        ("two_boxes:gap=1,gap=2", "gap is given twice"),
        ("letter:Q", "letter:C"),
        ("letter", "letter:C"),
        ("letter:C,size=2", "letter:C"),
        ("outline:nothing", "outline:axe"),
    ],
)
def test_a_family_says_what_it_allows(text, says):
    with pytest.raises(NbvPlannerError, match=says) as caught:
        true_object(text, SCENE)
    assert "\n" not in str(caught.value)
    with pytest.raises(SettingError, match="surface_model auto or volume"):
        parse_object(text, SCENE)


# --- the camera ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    radii=st.lists(st.floats(2.0, 8.0), min_size=3, max_size=14),
    view=st.floats(0.0, 6.28),
    away=st.floats(8.5, 14.0),
    width=st.sampled_from([0.0, 0.05]),
)
def test_a_star_shaped_polygon_gives_the_same_ranges_as_outlines(radii, view, away, width):
    star = Polygon.equally_spaced(tuple(radii))
    corners = np.stack([star.radius(star.corners()) * np.cos(star.corners()),
                        star.radius(star.corners()) * np.sin(star.corners())], axis=1)  # fmt: skip
    sensor = SensorSettings(num_beams=41, noise_std=0.0, beam_width=width)
    pose = CameraPose.from_polar(view, away)
    one, other = (
        SimulatedCamera(shape, SCENE, sensor).exact_ranges(pose)
        for shape in (star, Outlines("star", [corners]))
    )
    met = np.isfinite(one) & np.isfinite(other)
    # a beam along an edge or past a corner may meet either side of it
    assert (np.isfinite(one) == np.isfinite(other)).mean() > 0.9
    assert (np.abs(one[met] - other[met]) < 1e-3).mean() > 0.9
    assert np.median(np.abs(one[met] - other[met])) < 1e-6 if met.any() else True


def test_points_of_outlines_go_around_each_of_them():
    shape = parse_outlines("two_boxes", SCENE)
    points = surface_points(shape, 0.1)
    assert points.outline.tolist() == sorted(points.outline.tolist())
    again = Outlines.through(points, "again")
    assert len(again.loops) == 2
    for loop, corners in zip(again.loops, shape.loops, strict=True):
        gaps = np.hypot(*(loop[:, None] - corners).T).min(axis=1)
        np.testing.assert_allclose(gaps, 0.0, atol=1e-9)
        assert np.hypot(*(loop - np.roll(loop, 1, axis=0)).T).max() < 0.1 + 1e-9
