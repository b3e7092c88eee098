"""A room around the simulated object: walls and obstacles that end beams, and a robot that drives
around them.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.errors import ConfigFileError
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.measurements import PolarRays, polar
from nbv_planner.world.ground.zones import GroundSettings, path_length
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.room import WorldSettings, load_room
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import Drive, SensorSettings, SimulatedCamera

SCENE = Scene(range_max=40.0, field_of_view=math.radians(70.0))
ROUND = parse_object("ellipse:a=4,b=4", SCENE)
CLEAN = SensorSettings(num_beams=61, noise_std=0.0)


@pytest.fixture
def room(tmp_path):
    def write(text: str) -> WorldSettings:
        (tmp_path / "room.yaml").write_text(text, encoding="utf-8")
        return WorldSettings(room_file=str(tmp_path / "room.yaml"))

    return write


def camera(world: WorldSettings | None = None) -> SimulatedCamera:
    return SimulatedCamera(ROUND, SCENE, CLEAN, world)


def test_a_beam_ends_at_the_first_of_object_wall_polygon_and_circle(room):
    world = room(
        "room:\n- wall: [[-15, -30], [-15, 30]]\n- polygon: [[5, 1], [6, 1], [6, 2], [5, 2]]\n-"
        " circle: [7, -2, 0.5]\n"
    )
    view = CameraPose.from_polar(0.0, 10.0)
    alone, inside = camera().exact_ranges(view), camera(world).exact_ranges(view)
    bearings = camera().bearings
    x, y = view.to_world(bearings, inside)
    hits_wall = np.isclose(x, -15.0)
    hits_box = (x > 5.0 - 1e-9) & (x < 6.0 + 1e-9) & (y > 1.0 - 1e-9) & (y < 2.0 + 1e-9)
    hits_disc = np.abs(np.hypot(x - 7.0, y + 2.0) - 0.5) < 1e-3
    on_object = np.isclose(inside, alone) & np.isfinite(alone)
    assert (hits_wall ^ hits_box ^ hits_disc ^ on_object).all()
    assert min(hits_wall.sum(), hits_box.sum(), hits_disc.sum(), on_object.sum()) > 2
    assert (inside <= alone).all()


def test_the_room_stands_in_the_object_frame_wherever_the_object_is(room):
    world = room("room:\n- wall: [[-15, -30], [-15, 30]]\n")
    moved = WorldSettings(object_x=1.0, object_y=0.5, room_file=world.room_file)
    view = CameraPose(9.0, 9.0, math.pi)
    assert camera(world).exact_ranges(view)[30] == pytest.approx(24.0)
    assert camera(moved).exact_ranges(view)[30] == pytest.approx(24.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("walls: []\n", "line 1: unknown section 'walls'"),
        ("bias: {}\n", "room.yaml: must hold 'room:'"),
        ("room: 3\n", "line 1: room: must be a list"),
        ("room:\n- wall: [[1, 2]]\n", "line 2: wall: must be 2 or more points"),
        (
            "room:\n- wall: [[1, 2], [3, 4]]\n- polygon: [[1, 2], [3, .nan], [4, 4]]\n",
            "line 3: polygon: nan must be a finite number",
        ),
        ("room:\n- circle: [1, 2, -1]\n", "line 2: circle: radius -1 must be > 0 m"),
        (
            "room:\n- box: [1, 2]\n",
            "line 2: box: a form of a room must be one of wall, polygon, circle",
        ),
        ("room:\n- 7\n", "line 2: must be a mapping"),
        ("room: [\n", "cannot read"),
    ],
)
def test_what_is_wrong_in_a_room_is_said_with_its_line(room, text, words):
    with pytest.raises(ConfigFileError, match=words):
        load_room(room(text).room_file)


def test_a_room_that_is_not_there_is_said_by_its_name(tmp_path):
    with pytest.raises(ConfigFileError, match=r"cannot read .*none.yaml: No such file"):
        load_room(tmp_path / "none.yaml")


def measured(world: WorldSettings):
    view = CameraPose.from_polar(0.0, 10.0)
    return view, scan_to_hits(
        camera(world).scan(view, 1), view, SCENE, MeasurementSettings(noise_std=0.01)
    )


def test_a_wall_behind_the_object_proves_as_much_as_empty_space_as_far_as_it(room):
    _, empty = measured(WorldSettings())
    _, walled = measured(room("room:\n- wall: [[-15, -30], [-15, 30]]\n"))
    angle = np.linspace(0.0, 2.0 * math.pi, 200)
    # the bound of the object, which the wall is behind
    reach = PolarRays.of(empty.free).bound(angle) < 8.0
    assert reach.any()
    bounds = (PolarRays.of(found.free).bound(angle)[reach] for found in (walled, empty))
    np.testing.assert_allclose(*bounds)
    assert walled.dropped["outside_bounds"] > 5
    np.testing.assert_array_equal(polar(walled.hits).radius, polar(empty.hits).radius)


def test_nothing_is_known_behind_an_obstacle_in_front_of_the_object(room):
    _, found = measured(room("room:\n- wall: [[9.5, -3], [9.5, 3]]\n"))
    assert len(found.hits) == 0
    assert not np.isfinite(
        PolarRays.of(found.free).bound(np.linspace(0.0, 2.0 * math.pi, 100))
    ).any()


def test_one_far_return_alone_among_hits_is_an_outlier_and_proves_nothing():
    view = CameraPose.from_polar(0.0, 10.0)
    ranges = camera().exact_ranges(view)
    on = np.flatnonzero(np.isfinite(ranges))
    ranges[on[len(on) // 2]] = 25.0
    scan = Scan(
        camera().bearings[0],
        float(np.diff(camera().bearings)[0]),
        ranges.astype(np.float32),
        0.05,
        40.0,
    )
    found = scan_to_hits(scan, view, SCENE, MeasurementSettings(noise_std=0.01))
    assert found.dropped == {"outside_bounds": 1}
    rays = PolarRays.of(found.free)
    assert not (rays.length > 20.0).any() or (np.abs(rays.bearing[rays.length > 20.0]) > 1e-9).all()
    assert rays.bound(np.array([0.0]))[0] > 3.9


def test_the_robot_drives_around_the_object_and_arrives():
    drive = Drive(ROUND, GroundSettings(robot_radius=0.5, clearance=0.5), WorldSettings(), 10.0)
    start, goal = CameraPose.from_polar(0.0, 10.0), CameraPose.from_polar(math.pi, 10.0, 0.2)
    path = drive.set_out(start, goal)
    length = path_length(path)
    # Two tangents and an arc around a disc of 4 m and 1 m.
    disc = 5.0
    exact = 2.0 * math.sqrt(100.0 - disc**2) + disc * (math.pi - 2.0 * math.acos(disc / 10.0))
    assert length == pytest.approx(exact, rel=1e-3)
    places = [drive.view(s) for s in np.linspace(0.0, length, 400)]
    assert min(place.distance for place in places) >= disc - 1e-9
    steps = [math.dist((a.x, a.y), (b.x, b.y)) for a, b in pairwise(places)]
    assert max(steps) <= length / 399 + 1e-9
    assert [drive.view(length), drive.view(2.0 * length)] == [goal, goal]
    assert places[200].turn == pytest.approx(0.1, abs=1e-3)
    assert not camera().collides(path, 0.5)
    assert camera().collides(path, 1.5)


def test_it_drives_around_an_object_that_stands_elsewhere():
    world = WorldSettings(object_x=2.0)
    start, goal = (CameraPose.from_polar(angle, 10.0) for angle in (0.0, math.pi))
    path = Drive(ROUND, GroundSettings(), world, 12.0).set_out(start, goal)
    away = np.hypot(*(path[1:-1] - (2.0, 0.0)).T)
    assert away.min() >= 4.3 - 1e-6
    assert not SimulatedCamera(ROUND, SCENE, CLEAN, world).collides(path, 0.1)


def test_a_way_through_a_wall_or_the_object_is_a_collision(room):
    world = room("room:\n- wall: [[0, 6], [0, 20]]\n")
    wall = np.array([[9.0, 9.0], [-9.0, 9.0]])
    assert camera(world).collides(wall, 0.0)
    assert not camera(world).collides(wall[:, ::-1] * (1.0, -1.0), 0.0)
    assert camera().collides(np.array([[9.0, 0.0], [-9.0, 0.0]]), 0.0)
    # one side of the robot only
    assert camera(world).collides(np.array([[1.0, 21.0], [-1.0, 20.5]]), 0.9)


def test_to_a_goal_in_the_object_it_drives_straight():
    start, goal = CameraPose.from_polar(0.0, 10.0), CameraPose.from_polar(math.pi, 3.0)
    path = Drive(ROUND, GroundSettings(), WorldSettings(), 10.0).set_out(start, goal)
    np.testing.assert_allclose(path, [[10.0, 0.0], [-3.0, 0.0]], atol=1e-9)
    assert camera().collides(path, 0.0)


def test_beams_that_end_on_an_obstacle_within_the_margin_of_the_bounds_are_not_the_object(
    room, tmp_path
):
    """An obstacle at 8.5 m: the returns count up to 9 m, radius_max and its margin."""
    config = EpisodeConfig(object="ellipse:a=4,b=4", scene=SCENE, sensor=CLEAN)
    world = room("room:\n- polygon: [[8.3, 0.5], [8.7, 0.5], [8.7, 2], [8.3, 2]]\n")
    cells = np.zeros((400, 400), dtype=np.uint8)
    cells[210:240, 366:374] = 100  # the same obstacle
    cells[160:240, 160:240] = 100  # and the object, as a map has it, too
    (tmp_path / "map.pgm").write_bytes(b"P5 400 400 255\n" + cells[::-1].tobytes())
    (tmp_path / "map.yaml").write_text(
        "image: map.pgm\nresolution: 0.05\norigin: [-10, -10, 0]\nnegate: 0\noccupied_thresh:"
        " 0.65\nfree_thresh: 0.2\nmode: raw\n",
        encoding="utf-8",
    )
    view = CameraPose.from_polar(0.0, 10.0)
    match = MatchedScan(1, camera(world).scan(view, 1), view, view=1)

    def mapped(**ground):
        mapping = scan_mapping(dataclasses.replace(config, ground=GroundSettings(**ground)))
        return mapping.add([match], 0)

    without, known = mapped(), mapped(ground_map=str(tmp_path / "map.yaml"))
    on_obstacle = polar(without.hits).radius > 8.0
    assert on_obstacle.sum() > 3
    assert (polar(known.hits).radius < 4.1).all()
    np.testing.assert_array_equal(
        polar(known.hits).radius, polar(without.hits).radius[~on_obstacle]
    )
    assert known.dropped["background"] == on_obstacle.sum() + without.dropped.get("background", 0)


@pytest.mark.parametrize(("beyond", "free"), [(1, False), (2, False), (3, True), (5, True)])
def test_a_lone_beam_or_two_that_end_behind_the_object_are_outliers_and_free_nothing(beyond, free):
    ranges = np.full(21, 6.0)
    ranges[8 : 8 + beyond] = 25.0
    scan = Scan(-0.1, 0.01, ranges, 0.1, 40.0)
    pose = CameraPose.from_polar(0.0, SCENE.view_distance)
    found = scan_to_hits(scan, pose, SCENE, MeasurementSettings())
    assert len(found.hits) == 21 - beyond
    assert found.dropped == {"outside_bounds": beyond}
    assert (~found.free.of_hit).sum() == (beyond if free else 0)
