"""Contours from files: accepted forms, and errors that say where."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import ContourError, NbvPlannerError, SettingError
from nbv_planner.world.objects import Polygon, Spline, origin_text, parse_object
from nbv_planner.world.objects.contour_files import load_contour, seeing_point
from nbv_planner.world.objects.true_shapes import check_contour
from nbv_planner.world.scene import Scene

SCENE = Scene()
SQUARE_XY = "x,y\n3,3\n-3,3\n-3,-3\n3,-3\n"


def written(tmp_path, text: str):
    path = tmp_path / "c.csv"
    path.write_text(text)
    return path


def refused(tmp_path, text: str) -> str:
    path = written(tmp_path, text)
    with pytest.raises(ContourError) as caught:
        load_contour(path)
    message = str(caught.value)
    assert "c.csv" in message
    assert "\n" not in message
    assert isinstance(caught.value, NbvPlannerError)
    return message


def test_cartesian_file_gives_rising_polar_angles(tmp_path):
    angle, radius = load_contour(written(tmp_path, SQUARE_XY))
    np.testing.assert_allclose(angle, np.array([1, 3, 5, 7]) * math.pi / 4)
    np.testing.assert_allclose(radius, math.hypot(3, 3))


def test_polar_file_is_wrapped_and_ordered_from_any_start(tmp_path):
    angle, radius = load_contour(written(tmp_path, "phi,r\n-1.0,4\n0.5,5\n2.0,6\n3.5,7\n"))
    np.testing.assert_allclose(angle, [0.5, 2.0, 3.5, 2 * math.pi - 1.0])
    np.testing.assert_allclose(radius, [5, 6, 7, 4])


def test_clockwise_order_is_accepted(tmp_path):
    forward = load_contour(written(tmp_path, SQUARE_XY))
    backward = load_contour(written(tmp_path, "x,y\n3,-3\n-3,-3\n-3,3\n3,3\n"))
    np.testing.assert_allclose(backward, forward)


def test_repeated_closing_point_is_left_out(tmp_path):
    closed = load_contour(written(tmp_path, SQUARE_XY + "3,3\n"))
    np.testing.assert_allclose(closed, load_contour(written(tmp_path, SQUARE_XY)))
    polar = load_contour(written(tmp_path, "phi,r\n0,4\n1.5,5\n3,6\n4.5,7\n6.283185307179586,4\n"))
    np.testing.assert_allclose(polar[0], [0, 1.5, 3, 4.5])


def test_blanks_windows_line_ends_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes("\ufeffx, y\r\n3 , 3\r\n-3,3\r\n-3,-3\r\n\r\n3,-3\r\n".encode())
    np.testing.assert_allclose(load_contour(path), load_contour(written(tmp_path, SQUARE_XY)))


@pytest.mark.parametrize(
    "text",
    [
        SQUARE_XY.replace("-3,3\n", "-3,3\n-3,3\n"),  # a vertex twice
        SQUARE_XY + "3.0001,2.9999\n",  # a closing point off by rounding
        SQUARE_XY + "3,3\n3,3\n",
        SQUARE_XY + ",\n",
        SQUARE_XY + " , \n\n  \n",
        " ,\n" + SQUARE_XY,
    ],
)
def test_what_other_programs_leave_in_a_file_does_no_harm(tmp_path, text):
    np.testing.assert_allclose(
        load_contour(written(tmp_path, text)), load_contour(written(tmp_path, SQUARE_XY))
    )


@pytest.mark.parametrize("last", ["6.2832,4", "6.283,4.0", "6.28319,4"])
def test_angles_may_reach_a_rounded_turn(tmp_path, last):
    angle, radius = load_contour(written(tmp_path, f"phi,r\n0,4\n1.5,5\n3,6\n4.5,7\n{last}\n"))
    np.testing.assert_allclose(angle, [0, 1.5, 3, 4.5])
    np.testing.assert_allclose(radius, [4, 5, 6, 7])


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n3,5;3,5\n-3,5;3,5\n-3,5;-3,5\n",
        "x;y\n3,5;3,5\n-3,5;3,5\n",
        'x,y\n"3,5","3,5"\n"-3,5","3,5"\n',
        "x,y\n3,5,3,5\n-3,5,3,5\n-3,5,-3,5\n",
    ],
)
def test_a_decimal_comma_is_named(tmp_path, text):
    assert "numbers need a decimal point: 1.5, not 1,5" in refused(tmp_path, text)


def test_a_bad_row_without_a_decimal_comma_is_not_called_one(tmp_path):
    assert "decimal" not in refused(tmp_path, "x,y\n3,3\n-3,3,1\n-3,-3\n3,-3\n")


# Outlines of machines about the corner of their drawing; the centroid of the L and of the U lies
# outside of them.
L_SHAPE = [(0, 0), (8, 0), (8, 2), (2, 2), (2, 8), (0, 8)]
U_SHAPE = [(0, 0), (8, 0), (8, 8), (6, 8), (6, 2), (2, 2), (2, 8), (0, 8)]


def as_file(tmp_path, corners, by=(0.0, 0.0)) -> Path:
    return written(tmp_path, "x,y\n" + "".join(f"{x - by[0]},{y - by[1]}\n" for x, y in corners))


def area(angle, radius) -> float:
    return 0.5 * float(np.sum(radius * np.roll(radius, -1) * np.sin(np.roll(angle, -1) - angle)))


@pytest.mark.parametrize("by", [(0.0, 0.0), (4.0, 4.0), (100.0, -7.0), (2.72, 2.72), (7.0, 1.0)])
def test_an_l_is_told_the_point_from_which_all_of_it_is_seen(tmp_path, by):
    path = as_file(tmp_path, L_SHAPE, by)
    with pytest.raises(ContourError) as caught:
        load_contour(path)
    assert (
        f"all of it is seen from x = {1.0 - by[0]:.6g}, y = {1.0 - by[1]:.6g}: subtract these"
        in str(caught.value)
    )
    angle, radius = load_contour(path, file_origin=True)
    assert radius.min() == pytest.approx(2.0**0.5)
    assert area(angle, radius) == pytest.approx(28.0)
    moved = load_contour(as_file(tmp_path, L_SHAPE, (1.0, 1.0)))
    np.testing.assert_allclose((angle, radius), moved, atol=1e-9)


@pytest.mark.parametrize("by", [(0.0, 0.0), (4.0, 1.0), (4.0, 5.0)])
def test_of_a_u_it_is_said_that_there_is_no_such_point(tmp_path, by):
    path = as_file(tmp_path, U_SHAPE, by)
    for file_origin in (False, True):
        with pytest.raises(ContourError, match="there is no point from which all of it is seen"):
            load_contour(path, file_origin=file_origin)


@given(st.integers(0, 2**32), st.integers(4, 40), st.booleans())
def test_from_the_point_found_every_vertex_is_seen_in_order(seed, n, clockwise):
    rng = np.random.default_rng(seed)
    angle = (np.arange(n) + rng.uniform(-0.3, 0.3, n)) * 2 * math.pi / n
    radius, off = rng.uniform(2.0, 8.0, n), rng.normal(size=2) * 100.0
    x, y = (off[:, None] + radius * np.array([np.cos(angle), np.sin(angle)]))[
        :, :: -1 if clockwise else 1
    ]
    at = seeing_point(x, y)
    if at is None:  # the old centre is one such point, but too near to the line of an edge
        return
    turn = np.diff(np.unwrap(np.arctan2(np.append(y, y[0]) - at[1], np.append(x, x[0]) - at[0])))
    assert (turn < 0.0).all() if clockwise else (turn > 0.0).all()
    assert abs(turn.sum()) == pytest.approx(2 * math.pi)


def test_a_polygon_that_crosses_itself_is_seen_whole_from_no_point():
    assert seeing_point(np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 4.0, 0.0, 4.0])) is None
    turns = np.arange(10) * 4 * math.pi / 5  # a pentagram, twice round
    assert seeing_point(np.cos(turns), np.sin(turns)) is None
    assert seeing_point(np.array([0.0, 1.0, 2.0]), np.zeros(3)) is None


def test_the_origin_may_be_left_to_the_file_and_is_said(tmp_path):
    path = as_file(tmp_path, [(10 * x, 10 * y) for x, y in L_SHAPE])
    text, scene = (
        f"file:{path},unit=cm,origin=auto",
        Scene(radius_min=0.1, radius_max=0.8, view_distance=1.0),
    )
    shape = parse_object(text, scene)
    assert shape.radius(math.pi / 4) == pytest.approx(0.1 * 2**0.5)
    assert parse_object(f"file:{path},origin=auto,unit=cm", scene) == shape
    assert origin_text(text) == f"origin=auto: the origin is x = 10 cm, y = 10 cm of {path}"
    assert origin_text(f"file:{path}") == origin_text("ellipse:a=6,b=4") == ""
    with pytest.raises(SettingError, match="origin"):
        parse_object(f"file:{path},origin=middle", scene)


@pytest.mark.parametrize(
    ("low", "high", "said", "not_said"),
    [
        (
            2.0,
            9.0,
            (
                "set radius_min to 0.999, or give the unit of the file (unit=mm), or another origin"
                " (origin=auto)"
            ),
            "radius_max to",
        ),
        (0.9, 6.0, "set radius_max to 7.078, or give the unit", "radius_min to"),
        (2.0, 6.0, "set radius_min to 0.999 and set radius_max to 7.078", "must not"),
    ],
)
def test_the_bound_that_is_at_fault_is_named_with_a_value_that_fits(
    tmp_path, low, high, said, not_said
):
    path = as_file(tmp_path, L_SHAPE, (1.0, 1.0))
    with pytest.raises(ContourError) as caught:
        parse_object(f"file:{path}", Scene(radius_min=low, radius_max=high, view_distance=10.0))
    assert said in str(caught.value)
    assert not_said not in str(caught.value)
    parse_object(f"file:{path}", Scene(radius_min=0.999, radius_max=7.078, view_distance=10.0))


@given(st.integers(0, 2**32), st.integers(3, 50), st.booleans(), st.integers(0, 49))
def test_any_star_shaped_contour_comes_back_from_any_start_in_either_direction(
    seed, n, clockwise, start
):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(0.6, 1.0, n)
    angle = np.sort((np.cumsum(gaps) / gaps.sum() * 2 * math.pi) % (2 * math.pi))
    radius = rng.uniform(2.0, 8.0, n)
    order = np.roll(np.arange(n), start)[:: -1 if clockwise else 1]
    x, y = (radius * np.cos(angle)).tolist(), (radius * np.sin(angle)).tolist()
    rows = [f"{x[k]!r},{y[k]!r}" for k in order]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.csv"
        path.write_text("x,y\n" + "\n".join(rows) + "\n")
        got = load_contour(path)
    first = int(np.argmin(np.abs(np.exp(1j * angle) - np.exp(1j * got[0][0]))))
    assert np.abs(np.exp(1j * got[0]) - np.exp(1j * np.roll(angle, -first))).max() < 1e-12
    np.testing.assert_allclose(got[1], np.roll(radius, -first))
    assert (np.diff(got[0]) > 0).all()


@pytest.mark.parametrize("header", ["a,b", "x;y", "phi,radius", "1,2", ""])
def test_unknown_header_is_refused_with_the_known_ones(tmp_path, header):
    message = refused(tmp_path, f"{header}\n3,3\n-3,3\n-3,-3\n")
    assert "x,y" in message
    assert "phi,r" in message


def test_a_missing_header_is_asked_for_with_its_units(tmp_path):
    message = refused(tmp_path, "3,3\n-3,3\n-3,-3\n")
    assert (
        "first line is '3,3', must be the header 'x,y' (metres) or 'phi,r' (radians, metres)"
        in message
    )


@pytest.mark.parametrize(
    "text", ["x,y\n10,10\n14,10\n14,14\n10,14\n", "x,y\n10,14\n14,14\n14,10\n10,10\n10,14\n"]
)
def test_off_centre_contour_is_told_from_where_it_is_seen(tmp_path, text):
    message = refused(tmp_path, text)
    assert "the origin lies outside the contour" in message
    assert "all of it is seen from x = 12, y = 12: subtract these, or add ,origin=auto" in message


def test_degrees_are_recognised(tmp_path):
    for phi in ((0, 90, 180, 270), (-180, -60, 60), (360, 200, 100)):
        message = refused(tmp_path, "phi,r\n" + "".join(f"{degrees},5\n" for degrees in phi))
        assert "look like degrees, must be radians" in message
        assert str(max(phi) - min(phi)) in message


@pytest.mark.parametrize(
    ("row", "word"),
    [("nan,3", "nan"), ("3,inf", "inf"), ("three,3", "three"), ("3", "3"), ("3,3,3", "3")],
)
def test_a_bad_row_is_refused_with_its_line_number(tmp_path, row, word):
    message = refused(tmp_path, f"x,y\n3,3\n-3,3\n{row}\n3,-3\n")
    assert "4" in message.replace("c.csv", "")
    assert "line 4" in message or ":4" in message
    assert word in message


def test_line_numbers_count_blank_lines(tmp_path):
    message = refused(tmp_path, "x,y\n3,3\n\n-3,3\nnan,-3\n3,-3\n")
    assert "line 5" in message or ":5" in message


def test_contour_that_turns_back_is_refused_with_the_line(tmp_path):
    message = refused(tmp_path, "phi,r\n0,5\n1,5\n2,5\n1.5,6\n3,5\n4,5\n5,5\n")
    assert "star-shaped" in message
    assert "line 5" in message or ":5" in message


def test_clockwise_contour_that_turns_back_is_refused_with_the_line(tmp_path):
    message = refused(tmp_path, "phi,r\n6,5\n5,5\n4,5\n3,5\n3.5,6\n2,5\n1,5\n0,5\n")
    assert "star-shaped" in message
    assert "line 6" in message or ":6" in message


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n3,1\n5,1\n5,5\n3,5\n",  # the centre lies outside
        "phi,r\n0,5\n1,5\n2,5\n",  # a gap of more than π
        "phi,r\n0,5\n3,5\n6,5\n9,5\n12,5\n15,5\n18,5\n",  # goes round three times
        "phi,r\n0,5\n1,5\n1,6\n3,5\n5,5\n",  # a radial edge
    ],
)
def test_contour_that_is_not_star_shaped_around_the_centre_is_refused(tmp_path, text):
    message = refused(tmp_path, text)
    assert "star-shaped" in message or "centre" in message or "origin" in message, message


def test_last_point_at_the_first_angle_but_another_radius_is_not_silently_left_out(tmp_path):
    message = refused(tmp_path, "phi,r\n0,5\n1.5,5\n3,5\n4.5,5\n0,6\n")
    assert "line 6" in message or "line 2" in message


@pytest.mark.parametrize(
    "text", ["", "x,y\n", "x,y\n3,3\n", "x,y\n3,3\n-3,-3\n", "phi,r\n0,5\n2,5\n0,5\n"]
)
def test_too_few_points_are_refused(tmp_path, text):
    refused(tmp_path, text)


@pytest.mark.parametrize(
    "text", ["phi,r\n0,5\n1.5,-5\n3,5\n4.5,5\n", "phi,r\n0,5\n1.5,0\n3,5\n4.5,5\n"]
)
def test_a_radius_that_is_not_positive_is_refused_with_its_line(tmp_path, text):
    message = refused(tmp_path, text)
    assert "line 3" in message or ":3" in message


def test_a_point_at_the_centre_is_refused(tmp_path):
    message = refused(tmp_path, "x,y\n3,3\n-3,3\n0,0\n3,-3\n")
    assert "line 4" in message or ":4" in message


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "huge field"])
def test_file_that_cannot_be_read_is_a_contour_error(tmp_path, kind):
    path = tmp_path / "c.csv"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(bytes(range(128, 256)) * 3)
    elif kind == "huge field":  # more than the csv module takes
        path.write_text("x,y\n" + "1" * 200_000 + ",3\n")
    with pytest.raises(ContourError, match=r"c\.csv") as caught:
        load_contour(path)
    assert "\n" not in str(caught.value)
    assert not [word for word in ("Errno", "codec") if word in str(caught.value)]


def test_contour_file_that_leaves_the_bounds_is_refused_by_name(tmp_path):
    path = written(tmp_path, "x,y\n9,0\n0,5\n-5,0\n0,-5\n")
    with pytest.raises(ContourError) as caught:
        parse_object(f"file:{path}", SCENE)
    assert "c.csv" in str(caught.value)
    assert "8" in str(caught.value)


def test_spline_that_overshoots_between_its_points_is_refused(tmp_path):
    """All points lie inside the bounds; the curve between them does not."""
    path = written(tmp_path, "phi,r\n0,7.9\n0.3,7.9\n0.6,2.1\n2,2.1\n3,2.1\n4,2.1\n5,2.1\n")
    with pytest.raises(ContourError, match="must be within"):
        parse_object(f"spline:{path}", SCENE)


def test_an_edge_that_cuts_below_the_least_radius_is_refused():
    """Vertices inside the bounds, the chord between them passes at 5 cos(π/3) = 2.5 from the
    centre.
    """
    triangle = Polygon.equally_spaced((5.0, 5.0, 5.0))
    check_contour(triangle, 2.4, 8.0, "triangle")
    with pytest.raises(ContourError, match="triangle"):
        check_contour(triangle, 2.6, 8.0, "triangle")


def test_a_narrow_spike_beyond_the_bounds_is_found():
    spike = Polygon((0.0, 0.99999, 1.0, 1.00001, 3.0, 5.0), (5.0, 5.0, 8.5, 5.0, 5.0, 5.0))
    with pytest.raises(ContourError, match=r"8\.5"):
        check_contour(spike, 2.0, 8.0, "spike")


def test_a_shape_that_is_not_finite_is_refused():
    class Broken:
        def radius(self, angle):
            return np.where(np.abs(np.asarray(angle) - 2.0) < 0.01, np.nan, 5.0)

        def corners(self):
            return np.empty(0)

    with pytest.raises(ContourError, match="broken"):
        check_contour(Broken(), 2.0, 8.0, "broken")


def test_check_accepts_what_touches_the_bounds_up_to_rounding():
    check_contour(Spline((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), (8.0,) * 6), 2.0, 8.0, "circle")
