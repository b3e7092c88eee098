"""Node surface_mapper: outline and map, as topics and as files, while it runs, at DONE and at its
end.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("nav_msgs", reason="needs nav_msgs")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PolygonStamped
from nav_msgs.msg import OccupancyGrid
from scipy.spatial import cKDTree
from std_msgs.msg import String
from std_srvs.srv import Trigger
from test_surface_mapper import GRID, HERE, MS, SCENE, THERE, Feed, stamp_of
from visualization_msgs.msg import Marker, MarkerArray

from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import polar_to_cartesian, wrap_angle
from nbv_planner.report.map_grid import FREE, OCCUPIED, UNKNOWN
from nbv_planner.report.take_home import MeasuredOutline
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions, outline_output
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.volume.contours import area
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.contour_files import load_contour
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.objects.true_outlines import parse_outlines
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

FILES = {"outline.csv", "outline.geojson", "outline.dxf", "map.yaml", "map.pgm"}


def mapped(world, **parameters):
    """A mapper with one view, and its feed."""
    mapper = world.start(SurfaceMapperNode, grid_size=GRID, **parameters)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    return mapper, feed


def status(state: str):
    values = {
        "state": state,
        "views": 1,
        **({"reason": "MAX_VIEWS", "detail": "."} if state == "DONE" else {}),
    }
    return conversions.status_message("nbv_planner: status", DiagnosticStatus.OK, state, values)


def test_outline_and_map_are_those_of_the_surface_and_reach_late_subscribers(world):
    _, feed = mapped(world)
    outlines = world.listen(PolygonStamped, "surface_mapper/outline", qos.latched())
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())
    world.spin_until(lambda: outlines and maps, "outline and map")
    belief = belief_from_msg(feed.surfaces[-1])
    outline = MeasuredOutline.of(belief, SCENE)
    points = np.array([(point.x, point.y) for point in outlines[-1].polygon.points])
    np.testing.assert_allclose(points, np.array(outline.points(outline.radius)), atol=1e-5)
    assert {outlines[-1].header.frame_id, maps[-1].header.frame_id} == {"object"}
    assert stamp_of(outlines[-1]) == stamp_of(maps[-1]) == 110 * MS
    info = maps[-1].info
    cells = np.array(maps[-1].data).reshape(info.height, info.width)
    assert set(np.unique(cells)) == {FREE, OCCUPIED, UNKNOWN}

    def at(x: float, y: float) -> int:
        column, row = (
            int((v - corner) / info.resolution)
            for v, corner in ((x, info.origin.position.x), (y, info.origin.position.y))
        )
        return int(cells[row, column])

    assert at(0.9 * HERE.x, 0.9 * HERE.y) == FREE
    assert at(0.0, 0.0) == UNKNOWN
    assert at(-0.9 * HERE.x, -0.9 * HERE.y) == UNKNOWN  # behind
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 1)
    world.spin_until(lambda: stamp_of(maps[-1]) == 210 * MS, "the map of both views")
    both = np.array(maps[-1].data).reshape(info.height, info.width)
    assert (both == FREE).sum() > 1.3 * (cells == FREE).sum()


def test_a_reset_mapper_gives_no_old_map(world):
    _, feed = mapped(world)
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())
    world.spin_until(lambda: maps, "the map")
    world.call(Trigger, "surface_mapper/reset")
    world.spin_until(lambda: stamp_of(maps[-1]) == 0, "the map of the prior")
    assert set(maps[-1].data) == {UNKNOWN}
    feed.goal(300 * MS, THERE)


def test_without_nav_msgs_the_mapper_works_and_says_so(world, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(outline_output, "OccupancyGrid", None)
    mapper, _ = mapped(world, outline_folder=str(tmp_path))
    outlines = world.listen(PolygonStamped, "surface_mapper/outline", qos.latched())
    world.spin_until(lambda: outlines, "the outline")
    assert "nav_msgs is not installed: ~/map is not published" in capfd.readouterr().err
    assert not [
        publisher
        for publisher in mapper.publishers
        if publisher.topic_name == "/surface_mapper/map"
    ]
    assert world.call(Trigger, "surface_mapper/write_outline").success
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_when_the_planner_is_done_the_files_are_written_and_named(world, tmp_path, capfd):
    mapper, feed = mapped(world, outline_folder=str(tmp_path / "new" / "here"))
    send = world.speaker(DiagnosticStatus, "nbv_planner/status", qos.latched())
    send(status("MOVING"))
    world.spin_some()
    assert not (tmp_path / "new").exists()
    send(status("DONE"))
    folder = tmp_path / "new" / "here"
    world.spin_until(lambda: not mapper.output.outline._unwritten, "the files")
    said = capfd.readouterr().err
    for name in FILES:
        assert str(folder / name) in said
    assert f"{GRID} points, " in said
    assert "m wide there (median)" in said
    outline = MeasuredOutline.of(belief_from_msg(feed.surfaces[-1]), SCENE)
    np.testing.assert_allclose(load_contour(folder / "outline.csv")[1], outline.radius, atol=1e-5)
    assert yaml.safe_load((folder / "map.yaml").read_text())["image"] == "map.pgm"
    assert json.loads((folder / "outline.geojson").read_text())["features"]
    before = (folder / "outline.csv").stat().st_mtime_ns
    send(status("DONE"))
    world.spin_some()
    assert (folder / "outline.csv").stat().st_mtime_ns == before


@pytest.fixture
def star(tmp_path):
    """The outline of the true object."""
    angle = 2.0 * np.pi / 360 * np.arange(360)
    radius = parse_object("polygon:star", SCENE).radius(angle)
    file = tmp_path / "part.csv"
    rows = np.stack(polar_to_cartesian(angle, radius), axis=1)
    file.write_text("x,y\n" + "".join(f"{x:.6f},{y:.6f}\n" for x, y in rows.tolist()))
    return file


def is_seen(line):
    """Which ends of the edges of an outline near what was known are not paled."""
    return np.array([min(color.r, color.g, color.b) < 0.9 for color in line.colors])


def test_deviations_from_what_was_known_are_shown_in_words_and_along_the_outline(world, star):
    _, feed = mapped(world, prior_outline=f"{star},tolerance=3", prior_place_std=[0.01, 0.01])
    words = world.listen(String, "surface_mapper/deviation", qos.latched())
    arrays = world.listen(MarkerArray, "surface_mapper/deviation_markers", qos.latched())
    world.spin_until(lambda: words and arrays, "the deviations")
    assert "of the outline seen" in words[-1].data
    assert "PASS at 3 m, as far as it was seen" in words[-1].data
    clear, line, *texts = arrays[-1].markers
    assert (clear.action, line.type, texts) == (Marker.DELETEALL, Marker.LINE_LIST, [])
    assert stamp_of(line) == 110 * MS
    assert len(line.points) == len(line.colors) > 1000
    seen = is_seen(line)
    places = np.array([(point.x, point.y) for point in line.points])
    towards = places @ [HERE.x, HERE.y] > 0.0
    assert 0.04 < seen.mean() < 0.6
    assert towards[seen].mean() > 0.95
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 1)
    world.spin_until(lambda: stamp_of(arrays[-1].markers[1]) == 210 * MS, "both views")
    assert is_seen(arrays[-1].markers[1]).mean() > seen.mean()


def test_a_stretch_that_differs_has_its_mean_as_text_and_the_files_are_written_at_done(
    world, tmp_path
):
    file = tmp_path / "larger.csv"
    angle = 2.0 * np.pi / 360 * np.arange(360)
    radius = parse_object("polygon:star", SCENE).radius(angle)
    ahead = np.arctan2(HERE.y, HERE.x)
    radius += 1.0 * (np.abs(wrap_angle(angle - ahead)) < 0.2)
    rows = np.stack(polar_to_cartesian(angle, radius), axis=1)
    file.write_text("x,y\n" + "".join(f"{x:.6f},{y:.6f}\n" for x, y in rows.tolist()))
    folder = tmp_path / "here"
    given = {"prior_outline": f"{file},tolerance=0.05", "prior_place_std": [0.01, 0.01]}
    mapper, _ = mapped(world, outline_folder=str(folder), **given)
    arrays = world.listen(MarkerArray, "surface_mapper/deviation_markers", qos.latched())
    world.spin_until(lambda: arrays, "the deviations")
    text = arrays[-1].markers[2]
    assert text.type == Marker.TEXT_VIEW_FACING
    assert -1.1 < float(text.text.removesuffix(" m")) < -0.2  # the nearest place counts
    world.speaker(DiagnosticStatus, "nbv_planner/status", qos.latched())(status("DONE"))
    world.spin_until(lambda: not mapper.output.outline._unwritten, "the files")
    assert {file.name for file in folder.iterdir()} == FILES | {"deviation.csv", "deviation.png"}
    head = (folder / "deviation.csv").read_text().partition("\n")[0]
    assert "FAIL at 0.05 m" in head


def test_after_a_restart_the_deviations_say_that_they_are_of_the_views_since(world, tmp_path, star):
    given = {"map_file": str(tmp_path / "map.jsonl"), "prior_outline": str(star)}
    mapper, _ = mapped(world, **given)
    world.end(mapper)
    world.start(SurfaceMapperNode, grid_size=GRID, **given)
    feed = Feed(world)
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 1)
    words = world.listen(String, "surface_mapper/deviation", qos.latched())
    world.spin_until(lambda: words and "outline seen" in words[-1].data, "the deviations")
    assert words[-1].data.endswith("from the views since the restart only")


def test_a_mapper_that_is_ended_before_the_episode_leaves_its_outline(world, tmp_path):
    mapper, _ = mapped(world, outline_folder=str(tmp_path))
    world.end(mapper)
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_a_mapper_that_measured_nothing_leaves_no_file(world, tmp_path):
    mapper = world.start(SurfaceMapperNode, grid_size=GRID, outline_folder=str(tmp_path))
    feed = Feed(world)
    feed.pair(10 * MS, HERE)
    feed.surface(1)
    world.end(mapper)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "words"),
    [("", "outline_folder"), ("file/below", "cannot write the outline to")],
    ids=["none", "file in the way"],
)
def test_what_cannot_be_written_is_answered_with_the_reason(world, tmp_path, folder, words):
    (tmp_path / "file").write_text("")
    mapper, _ = mapped(world, outline_folder=folder and str(tmp_path / folder))
    answer = world.call(Trigger, "surface_mapper/write_outline")
    assert not answer.success
    assert words in answer.message
    world.end(mapper)  # says it again, and ends


def test_before_the_first_scan_there_is_no_outline(world, tmp_path):
    world.start(SurfaceMapperNode, grid_size=GRID, outline_folder=str(tmp_path))
    answer = world.call(Trigger, "surface_mapper/write_outline")
    assert (answer.success, answer.message) == (False, "no surface yet: no scan has been mapped")


def test_an_unusable_status_is_counted_and_writes_nothing(world, tmp_path):
    mapper, _ = mapped(world, outline_folder=str(tmp_path))
    send = world.speaker(DiagnosticStatus, "nbv_planner/status", qos.latched())
    send(DiagnosticStatus(message="nonsense"))
    world.spin_until(lambda: world.drops(mapper).get("nbv_planner/status.status"), "the drop")
    assert list(tmp_path.iterdir()) == []


def place_of(msg: OccupancyGrid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the cells, and coordinates x and y of their centres, metres."""
    info, corner = msg.info, msg.info.origin.position
    x, y = np.meshgrid(
        *(v + (np.arange(info.width) + 0.5) * info.resolution for v in (corner.x, corner.y))
    )
    return np.array(msg.data).reshape(info.height, info.width), x, y


# Half axes and place of an object that reaches to x = 8.7 m, and one that stands beside it.
LONG, AT, BESIDE = (7.5, 5.0), (1.2, 0.0), (4.0, -11.0, 1.5)
FOUND = {
    "scene": "unknown",
    "radius_max": 4.0,
    "noise_std": 0.1,
    "range_max": 20.0,
    "field_of_view": 1.2,
}


def look(feed: Feed, number: int, angle: float) -> None:
    """Have the mapper map a scan of the long object, from 14 m off its centre."""
    scene = Scene(range_max=20.0, field_of_view=1.2, view_distance=14.0)
    world = WorldSettings(*AT, *BESIDE)
    camera = SimulatedCamera(
        parse_object(f"ellipse:a={LONG[0]},b={LONG[1]}", scene), scene, SensorSettings(), world
    )
    x, y = (float(v) + at for v, at in zip(polar_to_cartesian(angle, 14.0), AT, strict=True))
    pose, stamp = CameraPose(x, y, angle + math.pi), number * 1000 * MS
    feed.goal(stamp, pose)
    feed.pose(stamp + MS, pose)
    feed.scan(stamp + MS, camera.scan(pose, number))
    feed.world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == stamp + MS, "the surface"
    )


def test_the_map_of_an_unknown_scene_holds_all_of_the_object_about_its_found_centre(
    world, tmp_path
):
    folder, file = tmp_path / "out", str(tmp_path / "map.jsonl")
    parameters = {
        **FOUND,
        "outline_folder": str(folder),
        "map_file": file,
        "grid_size": 360,
    }
    mapper, feed = world.start(SurfaceMapperNode, **parameters), Feed(world)
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())

    def newest(number: int) -> np.ndarray:
        """Cells of the map of that view, after a comparison with the truth."""
        world.spin_until(
            lambda: maps and stamp_of(maps[-1]) == number * 1000 * MS + MS, "the map", timeout=10
        )
        cells, x, y = place_of(maps[-1])
        radius = np.hypot((x - AT[0]) / LONG[0], (y - AT[1]) / LONG[1])
        other = np.hypot(x - BESIDE[0], y - BESIDE[1]) < BESIDE[2] - 0.5
        assert np.abs(radius[cells == OCCUPIED] - 1.0).max() < 0.2
        assert not (cells == FREE)[(radius < 0.9) | other].any()
        return cells

    for number in range(1, 9):
        look(feed, number, number * math.pi / 4)
    cells = newest(8)
    _, x, y = place_of(maps[-1])
    met = cells == OCCUPIED
    assert (x[met].min(), x[met].max(), y[met].min(), y[met].max()) == pytest.approx(
        (-6.3, 8.7, -5.0, 5.0), abs=0.4
    )
    around = np.hypot((x - AT[0]) / LONG[0], (y - AT[1]) / LONG[1])
    near = (around > 1.15) & (around < 1.35)
    assert (cells[near] == FREE).mean() > 0.95
    found = mapper.core.known.mapper.estimated_scene
    info = maps[-1].info
    middle = info.origin.position.x + 0.5 * info.width * info.resolution
    assert (middle, info.width * info.resolution) == pytest.approx(
        (found.x, 2 * found.view_distance), abs=0.2
    )
    assert world.call(Trigger, "surface_mapper/write_outline").success
    known = yaml.safe_load((folder / "map.yaml").read_text())
    assert known["origin"] == pytest.approx([info.origin.position.x, info.origin.position.y, 0.0])
    assert world.call(Trigger, "surface_mapper/save").success
    kept = Path(file).read_bytes()
    assert world.call(Trigger, "surface_mapper/reset").success
    world.spin_until(lambda: stamp_of(maps[-1]) == 0, "the map of the prior")
    assert set(maps[-1].data) == {UNKNOWN}
    look(feed, 9, 0.0)
    assert (newest(9) == OCCUPIED).sum() < 0.5 * met.sum()
    Path(file).write_bytes(kept)
    assert world.call(Trigger, "surface_mapper/load").success
    look(feed, 10, 0.3)
    again = newest(10)
    # the surface of before, and what is free since
    assert (again == OCCUPIED).sum() > 0.8 * met.sum()
    assert 0 < (again == FREE).sum() < 0.6 * (cells == FREE).sum()


def test_the_map_has_the_range_that_the_header_of_the_scans_says(world):
    world.start(SurfaceMapperNode, grid_size=GRID)
    feed = Feed(world)
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())
    feed.goal(100 * MS, HERE)
    feed.pose(110 * MS, HERE)
    feed.scan(110 * MS, Scan(-0.3, 0.01, np.full(61, np.inf), 0.05, 15.0))
    world.spin_until(lambda: maps and stamp_of(maps[-1]) == 110 * MS, "the map")
    cells, x, y = place_of(maps[-1])
    distance = np.hypot(x - HERE.x, y - HERE.y)[cells == FREE]
    assert distance.max() == pytest.approx(15.0 - 3 * 0.2, abs=0.15)


SPREAD = Scene(field_of_view=1.0)
ALL = 8


def bodies_from(feed: Feed, name: str, numbers: range) -> None:
    """Have the mapper map scans of an object of any outline, of some of the views all around."""
    camera = Simulation(configure(object=name, field_of_view=1.0))
    for number in numbers:
        pose = CameraPose.from_polar(number * math.tau / ALL, 10.0)
        stamp = (number + 1) * 1000 * MS
        feed.goal(stamp, pose)
        feed.pose(stamp + MS, pose)
        feed.scan(stamp + MS, camera.look(pose).scan)
        feed.world.spin_until(
            lambda stamp=stamp: feed.surfaces and stamp_of(feed.surfaces[-1]) == stamp + MS,
            "the surface",
        )


def test_a_surface_that_goes_on_with_cells_gives_outlines_of_all_bodies(world, tmp_path):
    """There is no band until a reset; map and files agree with the true boxes."""
    mapper = world.start(
        SurfaceMapperNode, grid_size=GRID, field_of_view=1.0, outline_folder=str(tmp_path)
    )
    feed = Feed(world)
    outlines = world.listen(PolygonStamped, "surface_mapper/outline", qos.latched())
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())
    markers = world.listen(MarkerArray, "markers", qos.latched())

    def shown(name: str) -> Marker:
        return {one.ns: one for one in markers[-1].markers}[name] if markers else Marker(action=-1)

    bodies_from(feed, "two_boxes", range(ALL))
    assert mapper.core.known.mapper.any_outline
    last = stamp_of(feed.surfaces[-1])
    both = (maps, outlines)
    world.spin_until(lambda: all(some and stamp_of(some[-1]) == last for some in both), "the map")
    world.spin_until(lambda: shown("mean").type == Marker.LINE_LIST, "lines")
    assert shown("band").action == Marker.DELETE
    boxes = parse_outlines("two_boxes", SPREAD)
    polygon = np.array([(point.x, point.y) for point in outlines[-1].polygon.points])
    large = max(abs(area(loop)) for loop in boxes.loops)
    assert area(polygon) == pytest.approx(large, rel=0.25)
    lines = np.array([(point.x, point.y) for point in shown("mean").points]).reshape(-1, 2, 2)
    away, _ = cKDTree(lines.mean(axis=1)).query(boxes.sampled(0.05)[0])
    assert np.median(away) < 0.15, "both boxes are drawn"
    assert len(shown("mean").colors) == len(shown("mean").points)
    cells, x, y = place_of(maps[-1])
    places = np.stack([x, y], axis=-1)
    off, _ = cKDTree(boxes.sampled(0.05)[0]).query(places)
    assert off[cells == OCCUPIED].max() < 1.0
    inside = boxes.holds(places.reshape(-1, 2)).any(axis=0).reshape(x.shape)
    assert not (cells == FREE)[inside & (off > 0.4)].any()
    outside = ~inside & (off > 1.5) & (np.hypot(x, y) < 5.5)
    assert (cells[outside] == FREE).mean() > 0.9
    assert world.call(Trigger, "surface_mapper/write_outline").success
    assert {file.name for file in tmp_path.iterdir()} == FILES
    again = parse_outlines(f"file:{tmp_path / 'outline.csv'}", SPREAD)
    np.testing.assert_allclose(again.loops[0], polygon, atol=1e-5)
    assert world.call(Trigger, "surface_mapper/reset").success
    world.spin_until(lambda: shown("mean").type == Marker.LINE_STRIP, "the prior's mean")
    assert shown("band").action == Marker.ADD
