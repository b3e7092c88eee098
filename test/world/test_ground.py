"""The ground: what bars a place, how long the way around it is, which zone is to blame, and maps
from files.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label

from campaigns.grounds import judged, random_case
from nbv_planner.errors import ConfigFileError, InputRejectedError, SettingError
from nbv_planner.world.ground.footprint import Footprint
from nbv_planner.world.ground.grid_ground import GridGround, ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap, load_map
from nbv_planner.world.ground.zones import Ground, GroundSettings, Zone, along, path_length
from nbv_planner.world.pose import CameraPose

TWO_PI = 2.0 * math.pi
ANGLE = np.arange(200) * (TWO_PI / 200)
HERE = CameraPose(-10.0, -10.0, 0.0)


def grid(text: str, *, side: float = 1.0, **given) -> Ground:
    """Ground whose map is drawn in squares of ten by ten cells: # occupied, ? unknown, . free; y =
    0 is below.
    """
    values = {"#": 100, "?": -1, ".": 0}
    cells = np.array(
        [[values[mark] for mark in line] for line in text.split()[::-1]], dtype=np.int8
    )
    fine = np.kron(cells, np.ones((10, 10), np.int8))
    return ground_of(GroundSettings(**given), 10.0, OccupancyMap(fine, 0.1 * side))


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_no_goal_and_no_path_is_too_near_to_anything_and_nothing_far_is_barred(first):
    """The full campaign: python -m campaigns ground --cases 100000."""
    outcomes = []
    for seed in range(first, first + 30):
        rng = np.random.default_rng(seed)
        outcomes.append(judged(random_case(rng), rng))
    assert [fault for outcome in outcomes for fault in outcome.faults] == []
    assert (
        min(
            sum(o.goals for o in outcomes),
            sum(o.barred for o in outcomes),
            sum(o.paths for o in outcomes),
        )
        > 10
    )


def test_the_campaign_sees_goals_in_what_the_ground_does_not_bar(monkeypatch):
    monkeypatch.setattr(
        GridGround, "reachable", lambda self, start, x, y: np.zeros(len(x), dtype=np.uint8)
    )
    faults = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        faults += judged(random_case(rng), rng).faults
    assert {
        name
        for name in ("map", "polygon", "object")
        if any(f"to the {name}" in fault for fault in faults)
    } == {
        "map",
        "polygon",
        "object",
    }


def random_cells(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((14, 17)) < rng.uniform(0.0, 0.45), 100, 0)
    cells[3, 4] = 0
    return cells.astype(np.int8)


def eight_neighbours(cells: np.ndarray, start: tuple[int, int]) -> np.ndarray:
    """Shortest lengths between centres by steps to eight neighbours that cut no corner, cells; by
    hand.
    """
    best = np.full(cells.shape, np.inf)
    queue = [(0.0, start)]
    while queue:
        length, (row, column) = heapq.heappop(queue)
        if length >= best[row, column]:
            continue
        best[row, column] = length
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                r, c = row + i, column + j
                inside = 0 <= r < cells.shape[0] and 0 <= c < cells.shape[1]
                if (i or j) and inside and not (cells[r, c] or cells[row, c] or cells[r, column]):
                    heapq.heappush(queue, (length + math.hypot(i, j), (r, c)))
    return best


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_lengths_are_between_straight_and_those_of_eight_neighbours_and_inf_without_a_path(
    seed,
):
    cells = random_cells(seed)
    ground = ground_of(GroundSettings(), 10.0, OccupancyMap(cells, 0.5))
    row, column = (values.ravel() for values in np.indices(cells.shape))
    x, y = 0.5 * (column + 0.5), 0.5 * (row + 0.5)
    lengths = ground.lengths((2.25, 1.75), x, y)
    expected = 0.5 * eight_neighbours(cells, (3, 4)).ravel()
    parts, _ = label(cells == 0)
    np.testing.assert_array_equal(np.isfinite(lengths), parts.ravel() == parts[3, 4])
    reached = np.isfinite(lengths)
    assert (lengths[reached] <= expected[reached] + 1e-9).all()
    assert (lengths[reached] >= np.hypot(x - 2.25, y - 1.75)[reached] - 1e-9).all()


def disc_length(start, end, disc: float) -> float:
    """Around a disc, by a polygon of many corners and every choice of where to leave the straight
    line.
    """
    turns = np.linspace(0.0, TWO_PI, 4001)
    rim = disc * np.exp(1j * turns)
    a, b = complex(*start), complex(*end)

    def clear(p, q):
        part = np.clip(
            -np.real(p * np.conj(q - p)) / np.maximum(np.abs(q - p) ** 2, 1e-12), 0.0, 1.0
        )
        return np.abs(p + part * (q - p)) >= disc * (1.0 - 1e-6)

    if clear(a, b):
        return abs(a - b)
    first, last = np.flatnonzero(clear(a, rim)), np.flatnonzero(clear(rim, b))
    arc = np.abs(np.angle(rim[first][:, None] / rim[last][None])) * disc
    return float((np.abs(a - rim[first])[:, None] + arc + np.abs(rim[last] - b)[None]).min())


@given(
    first=st.tuples(st.floats(0.0, TWO_PI), st.floats(4.5, 20.0)),
    last=st.tuples(st.floats(0.0, TWO_PI), st.floats(4.5, 20.0)),
)
@settings(max_examples=40, deadline=None)
def test_around_a_disc_the_length_is_the_shortest_one_and_the_path_has_it(first, last):
    ground = ground_of(GroundSettings(clearance=0.5), 20.0).with_object(ANGLE, np.full(200, 3.0))
    start, end = ((away * math.cos(angle), away * math.sin(angle)) for angle, away in (first, last))
    (length,) = ground.lengths(start, [end[0]], [end[1]])
    assert length == pytest.approx(disc_length(start, end, ground.disc), rel=1e-5, abs=1e-6)
    path = ground.path(start, end)
    assert path_length(path) == pytest.approx(length, rel=2e-4, abs=1e-9)
    assert (
        np.hypot(*np.array([along(path, s) for s in np.linspace(0.0, length, 50)]).T).min()
        >= ground.disc - 1e-9
    )


def test_cells_and_closed_form_agree_about_an_object_alone():
    upper = 4.0 + np.cos(2.0 * ANGLE)
    given_settings = GroundSettings(robot_radius=0.4)
    plain = ground_of(given_settings, 12.0).with_object(ANGLE, upper)
    raster = ground_of(
        given_settings, 12.0, OccupancyMap(np.zeros((300, 300), np.int8), 0.1, -15.0, -15.0)
    ).with_object(ANGLE, upper)
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-12.0, 12.0, (2, 400))
    # A cell is barred as a whole: by two diagonals at most.
    differ = plain.zones(x, y) != raster.zones(x, y)
    away = Footprint(ANGLE, upper).distance(x, y)
    assert (np.abs(away - plain.margin)[differ] < 0.3).all()
    far = np.hypot(x, y) > 6.5
    one, other = (ground.lengths((9.0, 0.0), x[far], y[far]) for ground in (plain, raster))
    assert (other < 1.05 * one).all()
    assert (other > 0.9 * one).all()  # the disc is larger than the oval


def test_what_bars_a_place_is_named_and_several_may():
    ground = grid(
        "..... .#... ..... ..?.. .....", no_go_polygons="0,0 1.5,0 1.5,1.5 0,1.5", robot_radius=0.5
    )
    ground = ground.with_object(ANGLE, np.full(200, 0.2))
    at = {
        (1.5, 3.5): Zone.MAP,
        (4.5, 4.5): 0,
        (1.5, 1.5): Zone.MAP | Zone.POLYGON,
        (9.0, 1.0): Zone.MAP,
    }
    at[0.2, 0.2] = Zone.POLYGON | Zone.OBJECT
    found = ground.zones(*np.array(list(at)).T)
    assert found.tolist() == [int(zone) for zone in at.values()]


def test_unknown_cells_and_the_threshold_are_the_users_choice():
    cells = np.array([[-1, 40, 64, 65, 100]], dtype=np.int8)
    x, y = np.arange(5) + 0.5, np.full(5, 0.5)

    def barred(**given):
        return (
            ground_of(GroundSettings(**given), 1.0, OccupancyMap(cells, 1.0)).zones(x, y) != 0
        ).tolist()

    assert barred() == [True, False, False, True, True]
    assert barred(unknown_is_blocked=False) == [False, False, False, True, True]
    assert barred(occupied_threshold=40) == [True, True, True, True, True]


def test_a_place_cut_off_is_told_with_what_cuts_it_off():
    drawn = ".#... .#... .#... .#... .#..."
    walled = grid(drawn)
    assert walled.reachable((0.5, 0.5), np.array([0.5, 3.5]), np.array([3.5, 3.5])).tolist() == [
        0,
        Zone.CUT_OFF,
    ]
    assert (
        walled.zones_text((0.5, 0.5), np.array([1.5, 3.5, 4.5]), np.array([1.5, 3.5, 1.0]))
        == "1 not free in the map, or outside of it, 2 cut off by the map"
    )
    fenced = grid(
        drawn.replace("#", "."),
        no_go_polygons="; 1.2,-1 1.8,-1 1.8,9 1.2,9; 3.1,0.1 3.2,0.1 3.2,0.2",
    )
    words = fenced.zones_text(
        (0.5, 0.5), np.array([1.5, 3.15, 4.5, 0.4]), np.array([1.5, 0.15, 4.0, 4.0])
    )
    assert words == "2 in polygons 2, 3, 1 cut off by polygon 2"
    both = grid(drawn, no_go_polygons="2.2,-1 2.8,-1 2.8,9 2.2,9")
    assert (
        both.zones_text((0.5, 0.5), np.array([4.5]), np.array([0.5]))
        == "1 cut off by several zones together"
    )


def test_a_robot_in_a_zone_is_told_so_and_gets_out_by_the_nearest_free_cell():
    ground = grid("##... ##... ##... ##... ##...")
    start = (0.5, 2.4)
    assert (
        ground.start_text(start)
        == "the robot stands at x 0.5 m, y 2.4 m, not free in the map, or outside of it; the way"
        " out leads to x 2.05 m, y 2.35 m, 1.55 m away"
    )
    assert ground.lengths(start, [4.5], [2.5])[0] == pytest.approx(
        math.dist(start, (2.05, 2.35)) + math.dist((2.05, 2.35), (4.5, 2.5))
    )
    np.testing.assert_allclose(ground.path(start, (4.5, 2.5)), [start, (2.05, 2.35), (4.5, 2.5)])
    assert ground.start_text((3.5, 3.5)) == ""
    closed = grid("## ##")
    assert np.isinf(closed.lengths((0.5, 0.5), [1.5], [1.5])).all()
    assert closed.path((0.5, 0.5), (1.5, 1.5)).shape == (0, 2)
    inside = ground_of(GroundSettings(), 10.0).with_object(ANGLE, np.full(200, 3.0))
    assert math.hypot(*inside.nearest_free((1.0, 1.0))) == pytest.approx(3.3, abs=0.03)


def test_a_turned_map_bars_the_same_places():
    cells = np.zeros((20, 30), dtype=np.int8)
    cells[5, 7] = 100
    for yaw in (0.0, 0.5, -2.0):
        map_ = OccupancyMap(cells, 0.5, 1.0, -2.0, yaw)
        ((x, y),) = map_.to_metres([7.5], [5.5])
        turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
        expected = (1.0, -2.0) + turn @ (3.75, 2.75)
        assert (x, y) == pytest.approx(tuple(expected))
        ground = ground_of(GroundSettings(), 1.0, map_)
        assert ground.zones([x, x + 0.8], [y, y]).tolist() == [Zone.MAP, 0]
        moved = ground.seen_from(3.0, 1.0)
        assert moved.zones([x - 3.0, x - 2.2], [y - 1.0, y - 1.0]).tolist() == [Zone.MAP, 0]


def test_obstacles_hide_what_is_behind_them_and_the_object_hides_itself_nothing():
    cells = np.zeros((200, 200), dtype=np.int8)
    cells[:, 150] = 100  # a wall at x = 5
    cells[95:105, 95:105] = 100  # the object, which the map has seen, too
    ground = ground_of(GroundSettings(), 10.0, OccupancyMap(cells, 0.1, -10.0, -10.0)).with_object(
        ANGLE, np.full(200, 1.0)
    )
    x, y = np.array([9.0, -9.0]), np.array([0.05, 0.05])
    direction = np.array([[math.pi, 0.0, 0.75 * math.pi], [0.0, math.pi, 0.5]])
    found = ground.sight(x, y, direction)
    expected = [[3.9, math.inf, 3.9 * math.sqrt(2.0)], [14.0, math.inf, 14.0 / math.cos(0.5)]]
    np.testing.assert_allclose(found, expected, atol=0.12)
    assert np.isinf(ground_of(GroundSettings(), 10.0).sight(x, y, direction)).all()
    contour = np.array([0.0, math.pi]), np.array([0.8, 0.8])
    assert ground.hidden(x, y, *contour).tolist() == [[True, True], [False, False]]


def test_a_footprint_holds_the_radius_between_its_angles_and_is_not_much_wider():
    rng = np.random.default_rng(0)
    for _ in range(20):
        radius = np.where(rng.random(200) < 0.5, 2.0, 6.0)
        footprint = Footprint(ANGLE, radius)
        angle = rng.uniform(0.0, TWO_PI, 500)
        first = np.floor(angle / (TWO_PI / 200)).astype(int)
        reach = np.maximum(radius[first], radius[(first + 1) % 200]) * (1.0 - 1e-9)
        assert footprint.holds(reach * np.cos(angle), reach * np.sin(angle)).all()
    far = Footprint(ANGLE, np.full(200, 3.0)).distance(np.array([10.0, 0.0]), np.array([0.0, 3.5]))
    assert far == pytest.approx([7.0, 0.5], abs=2e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2 3,4", "polygon 1 has 2 corners, must have 3 or more"),
        ("1,2 3,4 5,6; 1,2 3,x 5,6", "corner 2 of polygon 2 is '3,x', must be x,y"),
        ("1,2 3,4 5", "corner 3 of polygon 1 is '5', must be x,y"),
        ("1,2 3,4 nan,6", "corner 3 of polygon 1 is 'nan,6'"),
        ("1,2 3,4 1e9,6", "corner 3 of polygon 1 is '1e9,6'"),
    ],
)
def test_polygons_that_are_none_are_refused(text, words):
    with pytest.raises(SettingError, match=words):
        GroundSettings(no_go_polygons=text)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"frame": ""}, "frame"),
        ({"resolution": 0.0}, "resolution"),
        ({"resolution": -0.1}, "resolution"),
        ({"resolution": math.nan}, "resolution"),
        ({"resolution": math.inf}, "resolution"),
        ({"width": 5}, "size"),
        ({"data": []}, "size"),
        ({"data": [], "width": 0, "height": 0}, "size"),
        ({"origin": CameraPose(math.nan, 0.0, 0.0)}, "origin"),
        ({"data": [0] * 5 + [101]}, "data"),
        ({"data": [0] * 5 + [-2]}, "data"),
        ({"data": [0] * 5 + [300]}, "data"),
    ],
)
def test_a_message_that_is_no_map_is_refused_with_its_reason(changed, reason):
    values = {
        "data": [0] * 6,
        "width": 3,
        "height": 2,
        "resolution": 0.1,
        "origin": HERE,
        "frame": "object",
    }
    assert OccupancyMap.of_message(**values).cells.shape == (2, 3)
    with pytest.raises(InputRejectedError) as error:
        OccupancyMap.of_message(**{**values, **changed})
    assert error.value.reason == reason


YAML = (
    "image: map.pgm\nresolution: 0.5\norigin: [-1, -2, 0.3]\nnegate: 0\noccupied_thresh:"
    " 0.65\nfree_thresh: 0.25\n"
)
PIXELS = [[255, 0, 128], [10, 70, 95]]


def map_file(folder, text: str = YAML, image: bytes | None = None):
    plain = b"P2\n# made by hand\n3 2 # width and height\n255\n" + b"\n".join(
        b" ".join(b"%d" % pixel for pixel in row) for row in PIXELS
    )
    (folder / "map.pgm").write_bytes(plain if image is None else image)
    (folder / "map.yaml").write_text(text, encoding="utf-8")
    return folder / "map.yaml"


@pytest.mark.parametrize(
    "image",
    [
        None,
        b"P5 3 2 255\n" + np.array(PIXELS, np.uint8).tobytes(),
        b"P5\n3 2\n65535\n" + (257 * np.array(PIXELS)).astype(">u2").tobytes(),
    ],
)
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        # 1 - 10/255 = 0.961, 1 - 70/255 = 0.725, 1 - 95/255 = 0.627, 1 - 128/255 = 0.498; the first
        # row is the top.
        ("", [[100, 100, -1], [0, 100, -1]]),
        ("mode: trinary\n", [[100, 100, -1], [0, 100, -1]]),
        ("mode: scale\n", [[100, 100, 94], [0, 100, 62]]),
        ("mode: raw\n", [[10, 70, 95], [-1, 0, -1]]),
    ],
)
def test_a_map_file_is_read_as_map_server_does(tmp_path, image, more, expected):
    found = load_map(map_file(tmp_path, YAML + more, image))
    assert found.cells.tolist() == expected
    assert (found.resolution, found.x, found.y, found.yaw) == (0.5, -1.0, -2.0, 0.3)


def test_negate_turns_the_brightness_around(tmp_path):
    found = load_map(map_file(tmp_path, YAML.replace("negate: 0", "negate: 1")))
    assert found.cells.tolist() == [[0, -1, -1], [100, 0, -1]]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("resolution: 0.5", "resolution: 0", r"map.yaml, line 2: resolution: 0 must be > 0 m"),
        ("resolution: 0.5", "resolution: .nan", r"line 2: resolution: nan must be a finite number"),
        (
            "resolution: 0.5",
            "resolution: [1]",
            r"line 2: resolution: \[1\] must be a finite number",
        ),
        ("[-1, -2, 0.3]", "[-1, -2]", r"line 3: origin: \[-1, -2\] must be 3 finite numbers"),
        ("[-1, -2, 0.3]", "[-1, x, 0]", r"line 3: origin: 'x' must be a finite number"),
        (
            "free_thresh: 0.25",
            "free_thresh: 0.7",
            r"line 6: free_thresh: 0.7 must be below occupied_thresh",
        ),
        ("negate: 0\n", "", r"map.yaml: negate is missing; a map needs image"),
        (
            "negate: 0\n",
            "negate: 0\nmode: tri\n",
            r"line 5: mode: unknown mode 'tri'.*did you mean trinary",
        ),
        ("image: map.pgm", "image: other.pgm", r"cannot read the image .*other.pgm: No such file"),
        ("image: map.pgm\n", "image: [\n", r"cannot read .*map.yaml"),
    ],
)
def test_what_is_wrong_in_a_map_file_is_said_with_its_line(tmp_path, old, new, words):
    with pytest.raises(ConfigFileError, match=words):
        load_map(map_file(tmp_path, YAML.replace(old, new)))


@pytest.mark.parametrize(
    "name", ['"a\\0b"', '"\\ud800"', "[1]", "''", "2024-02-31", "/dev/zero", "&a [*a]"]
)
def test_an_image_that_is_none_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(ConfigFileError, match=r"map.yaml, line 1|cannot read the image") as caught:
        load_map(map_file(tmp_path, YAML.replace("map.pgm", name)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (b"\x89PNG", r"map.pgm line 1: must be a PGM image"),
        (b"P2 3 2 255\n1 2 3\n4 5", "must hold 3 x 2 pixels"),
        (b"P2 3 2 255\n1 2 3\n4 x 6", "map.pgm line 3: 'x' is not a pixel value"),
        (b"P2 3 2 255\n1 2 3\n4 5 256", "pixels of 0 to 255; has 6, the largest 256"),
        (b"P5 3 2 255\n12345", "must hold 3 x 2 pixels"),
        (b"P5 0 2 255\n", "has 0 x 2 pixels"),
        (b"P5 99999 99999 255\n", "99999 x 99999 pixels"),
        (b"P2 1 1 255\n" + b"9" * 5000, "is not a pixel value$"),
        (b"P5 " + b"9" * 5000 + b" 2 255\n", "must be a PGM image"),
        (b"P5 " + b" " * 10**6 + b"3 2 255\n", "must be a PGM image"),
        (b"P2 3 2 255\n1 2 3\n4 5 \xff\x00", "is not a pixel value$"),
        (b"P5 2 2 99999999\n", "of at most 65535"),
    ],
)
def test_what_is_wrong_in_an_image_is_said(tmp_path, image, words):
    with pytest.raises(ConfigFileError, match=words):
        load_map(map_file(tmp_path, image=image))
