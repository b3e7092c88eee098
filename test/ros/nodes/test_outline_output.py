"""Node surface_mapper: outline and map, as topics and as files, while it runs, at DONE and at its end."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels")
pytest.importorskip("nav_msgs", reason="needs nav_msgs")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PolygonStamped
from nav_msgs.msg import OccupancyGrid
from std_srvs.srv import Trigger
from test_surface_mapper import GRID, HERE, MS, SCENE, THERE, Feed, stamp_of

from nbv_planner.episode.messages import belief_from_msg
from nbv_planner.report.take_home import FREE, OCCUPIED, UNKNOWN, Outline
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions, outline_output
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.objects.true_shapes import load_contour

FILES = {"outline.csv", "outline.geojson", "outline.dxf", "map.yaml", "map.pgm"}


def mapped(world, **parameters):
    """A mapper with one view, and its feed."""
    mapper = world.start(SurfaceMapperNode, grid_size=GRID, **parameters)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE)
    world.spin_until(lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface")
    return mapper, feed


def status(state: str):
    values = {"state": state, "views": 1, **({"reason": "MAX_VIEWS", "detail": "."} if state == "DONE" else {})}
    return conversions.status_message("nbv_planner: status", DiagnosticStatus.OK, state, values)


def test_outline_and_map_are_those_of_the_surface_and_reach_late_subscribers(world):
    _, feed = mapped(world)
    outlines = world.listen(PolygonStamped, "surface_mapper/outline", qos.latched())
    maps = world.listen(OccupancyGrid, "surface_mapper/map", qos.latched())
    world.spin_until(lambda: outlines and maps, "outline and map")
    belief = belief_from_msg(feed.surfaces[-1])
    outline = Outline.of(belief, SCENE)
    points = np.array([(point.x, point.y) for point in outlines[-1].polygon.points])
    np.testing.assert_allclose(points, np.array(outline.points(outline.radius)), atol=1e-5)
    assert {outlines[-1].header.frame_id, maps[-1].header.frame_id} == {"object"}
    assert stamp_of(outlines[-1]) == stamp_of(maps[-1]) == 110 * MS
    info = maps[-1].info
    cells = np.array(maps[-1].data).reshape(info.height, info.width)
    assert set(np.unique(cells)) == {FREE, OCCUPIED, UNKNOWN}

    def at(x: float, y: float) -> int:
        column, row = (int((v - corner) / info.resolution) for v, corner in (
            (x, info.origin.position.x), (y, info.origin.position.y)))
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
    assert "nav_msgs is not installed: no map on ~/map" in capfd.readouterr().err
    assert not [publisher for publisher in mapper.publishers if publisher.topic_name == "/surface_mapper/map"]
    assert world.call(Trigger, "surface_mapper/write_outline").success
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_when_the_planner_is_done_the_files_are_written_and_named(world, tmp_path, capfd):
    _, feed = mapped(world, outline_folder=str(tmp_path / "new" / "here"))
    send = world.speaker(DiagnosticStatus, "nbv_planner/status", qos.latched())
    send(status("MOVING"))
    world.spin_some()
    assert not (tmp_path / "new").exists()
    send(status("DONE"))
    folder = tmp_path / "new" / "here"
    world.spin_until(lambda: (folder / "map.yaml").exists(), "the files")
    said = capfd.readouterr().err
    for name in FILES:
        assert str(folder / name) in said
    assert f"{GRID} points, " in said
    assert "m wide there (median)" in said
    outline = Outline.of(belief_from_msg(feed.surfaces[-1]), SCENE)
    np.testing.assert_allclose(load_contour(folder / "outline.csv")[1], outline.radius, atol=1e-5)
    assert yaml.safe_load((folder / "map.yaml").read_text())["image"] == "map.pgm"
    assert json.loads((folder / "outline.geojson").read_text())["features"]
    before = (folder / "outline.csv").stat().st_mtime_ns
    send(status("DONE"))
    world.spin_some()
    assert (folder / "outline.csv").stat().st_mtime_ns == before


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
    ("folder", "words"), [("", "outline_folder"), ("file/below", "is not written to")], ids=["none", "file in the way"]
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
