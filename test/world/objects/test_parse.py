"""Objects written as text, and what is said about wrong ones."""

from __future__ import annotations

import math

import pytest

from nbv_planner.errors import ContourError, NbvPlannerError, SettingError, UnknownNameError
from nbv_planner.world.objects import (
    NAMED_POLYGONS,
    OBJECT_FORMS,
    Ellipse,
    Flower,
    Polygon,
    Spline,
    Square,
    parse_object,
)
from nbv_planner.world.scene import Scene

SCENE = Scene()


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("ellipse:a=6,b=4", Ellipse(6.0, 4.0)),
        ("ellipse:b=3.5,a=7", Ellipse(7.0, 3.5)),
        ("flower:frequency=5,amplitude=1", Flower(5, 1.0, 5.0)),
        ("square:width=8", Square(8.0)),
        *((f"polygon:{name}", polygon) for name, polygon in NAMED_POLYGONS.items()),
        *NAMED_POLYGONS.items(),
    ],
)
def test_object_is_built_from_text(text, shape):
    assert parse_object(text, SCENE) == shape


def test_flower_oscillates_around_the_middle_of_the_scene_unless_told_otherwise():
    scene = Scene(radius_min=1.0, radius_max=4.0)
    assert parse_object("flower:frequency=3,amplitude=1", scene) == Flower(3, 1.0, 2.5)
    assert parse_object("flower:frequency=3,amplitude=1,mean=2", scene) == Flower(3, 1.0, 2.0)


def contour_file(tmp_path, text: str):
    path = tmp_path / "contour.csv"
    path.write_text(text)
    return path


def test_file_has_straight_edges_and_spline_is_smooth(tmp_path):
    path = contour_file(tmp_path, "x,y\n5,0\n0,5\n-5,0\n0,-5\n")
    straight, smooth = parse_object(f"file:{path}", SCENE), parse_object(f"spline:{path}", SCENE)
    assert isinstance(straight, Polygon)
    assert isinstance(smooth, Spline)
    assert float(straight.radius(math.pi / 4)) == pytest.approx(5 / math.sqrt(2))
    assert float(smooth.radius(math.pi / 4)) == pytest.approx(5.0)


@pytest.mark.parametrize("text", ["elipse:a=6,b=4", "", ":", "cube", "ellipse a=6"])
def test_unknown_object_lists_the_known_forms(text):
    with pytest.raises(UnknownNameError) as caught:
        parse_object(text, SCENE)
    assert all(form.split(":")[0] in str(caught.value) for form in OBJECT_FORMS)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, NbvPlannerError)


@pytest.mark.parametrize("text", ["polygon:hexagon", "polygon:", "polygon"])
def test_unknown_polygon_lists_the_known_ones(text):
    with pytest.raises(UnknownNameError) as caught:
        parse_object(text, SCENE)
    assert all(name in str(caught.value) for name in NAMED_POLYGONS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ellipse:a=6,c=4", ["'c'", "a", "b", "ellipse:a=6,c=4"]),
        ("ellipse:a", ["a"]),
        ("ellipse:a=,b=4", ["a"]),
        ("ellipse:a=six,b=4", ["a", "six"]),
        ("ellipse:a=nan,b=4", ["a", "nan"]),
        ("ellipse:a=-6,b=4", ["a", "-6"]),
        ("flower:frequency=2.5,amplitude=1", ["frequency", "2.5"]),
        ("flower:frequency=0,amplitude=1", ["frequency"]),
        ("square:width=inf", ["width", "inf"]),
        ("square:size=8", ["size", "width"]),
    ],
)
def test_wrong_parameter_is_named_with_what_is_allowed(text, words):
    with pytest.raises(SettingError) as caught:
        parse_object(text, SCENE)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ellipse:a=6", ["'ellipse:a=6'", "b is missing", "ellipse:a=6,b=4"]),
        ("ellipse:b=4,", ["a is missing"]),
        ("ellipse", ["'ellipse'", "a, b are missing", "ellipse:a=6,b=4"]),
        ("ellipse:", ["a, b are missing"]),
        ("flower:frequency=3", ["amplitude is missing", "flower:frequency=5,amplitude=1"]),
        ("flower:mean=4", ["frequency, amplitude are missing"]),
        ("square", ["width is missing", "square:width=8"]),
        ("file", ["path is missing", "file:contour.csv"]),
        ("spline:", ["path is missing", "spline:contour.csv"]),
    ],
)
def test_a_missing_value_is_named_with_a_complete_example(text, words):
    with pytest.raises(SettingError) as caught:
        parse_object(text, SCENE)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["ellipse:a=9,b=4", "ellipse:a=6,b=1", "flower:frequency=2,amplitude=4", "square:width=12"],
)
def test_object_that_leaves_the_bounds_is_refused_with_the_place_and_the_bounds(text):
    with pytest.raises(ContourError) as caught:
        parse_object(text, SCENE)
    message = str(caught.value)
    assert all(word in message for word in (text, "2", "8"))
    assert any(word in message for word in ("angle", "φ", "phi", "rad"))
    assert "\n" not in message


def test_objects_exactly_on_the_bounds_are_accepted():
    for text in (
        "ellipse:a=8,b=2",
        "square:width=4",
        "flower:frequency=8,amplitude=3",
        "polygon:star",
    ):
        parse_object(text, SCENE)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(SettingError, match="a"):
        parse_object("ellipse:a=6,a=7,b=4", SCENE)
