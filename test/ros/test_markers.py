"""Markers: what they hold, that they are complete, and that nothing is drawn on the far side of the
centre.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief
from hypothesis import given
from hypothesis import strategies as st
from views import at

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from ros_world import header, over_the_wire, view_pose
from visualization_msgs.msg import Marker

from nbv_planner.episode.messages import Candidates
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.planning.view_space import FreeViewSpace, ViewSpaceSettings
from nbv_planner.report import colors
from nbv_planner.ros.io.markers import PARTS, SceneContent, decimated, scene_markers
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()
POSE = view_pose(1.0)
CANDIDATES = Candidates(
    *polar_to_cartesian(np.arange(8) * 0.7, 10.0),
    np.arange(8) * 0.7,
    np.array([0.0, 1.0, 2.0, 3.0, np.nan, -np.inf, 4.0, 5.0]),
    np.zeros(8),
    np.array([True, True, True, True, True, True, True, False]),
)
HITS = np.column_stack(polar_to_cartesian(np.linspace(0.0, 6.0, 30), 5.0))
FULL = SceneContent(SCENE, wavy_belief(1), HITS, POSE, view_pose(2.0), CANDIDATES)

_ANNULUS = FreeViewSpace.annulus(ViewSpaceSettings(view_space="annulus"), SCENE).candidates
FREE = dataclasses.replace(
    FULL,
    candidates=Candidates(
        *_ANNULUS.position.T,
        _ANNULUS.view_angle,
        np.sin(3.0 * _ANNULUS.view_angle) - _ANNULUS.turn**2,
        np.zeros(len(_ANNULUS)),
        np.ones(len(_ANNULUS), dtype=bool),
        None,
        _ANNULUS.turn,
    ),
)


FENCED = dataclasses.replace(
    FREE, ground=ground_of(GroundSettings(no_go_polygons="8,2 11,2 11,6"), 20.0)
)


def markers(content: SceneContent) -> dict[str, Marker]:
    array = over_the_wire(scene_markers(content, header("object", 7)))
    return {marker.ns: marker for marker in array.markers}


def corners(marker: Marker) -> np.ndarray:
    """Triangles, shape (T, 3, 2)."""
    return np.array([(p.x, p.y) for p in marker.points]).reshape(-1, 3, 2)


def areas(triangles: np.ndarray) -> np.ndarray:
    """Signed areas, positive when counter-clockwise."""
    a, b = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    return 0.5 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


def test_every_part_is_there_once_in_the_object_frame_with_stable_ids():
    array = scene_markers(FENCED, header("object", 7)).markers
    assert [marker.ns for marker in array] == list(PARTS)
    assert {(marker.id, marker.action, marker.header.frame_id) for marker in array} == {
        (0, Marker.ADD, "object")
    }
    assert {marker.pose.orientation.w for marker in array} == {1.0}


def test_what_is_barred_is_edged_and_the_way_to_the_goal_leads_around_it():
    assert markers(FREE)["barred"].action == Marker.DELETE
    ground = ground_of(GroundSettings(no_go_polygons="7,2 12,2 12,6 7,6", robot_radius=0.3), 20.0)
    start, goal = view_pose(0.0), view_pose(1.0)
    content = dataclasses.replace(
        FULL, belief=belief_of(3.0, 4.0), pose=start, goal=goal, ground=ground
    )
    found = markers(content)
    way, edge = (np.array([(p.x, p.y) for p in found[name].points]) for name in ("path", "barred"))
    believed = ground.with_object(content.belief.angle, content.belief.upper, SCENE.radius_max)
    assert np.hypot(*np.diff(way, axis=0).T).sum() > 1.05 * np.hypot(
        start.x - goal.x, start.y - goal.y
    )
    assert not believed.zones(*way.T).any()
    side = ground.map.resolution
    assert believed.zones(*edge.T).all()
    free = [
        believed.zones(*(edge + side * np.array(step)).T) == 0
        for step in ((1, 0), (-1, 0), (0, 1), (0, -1))
    ]
    diagonal = [
        believed.zones(*(edge + side * np.array(step)).T) == 0
        for step in ((1, 1), (-1, -1), (-1, 1), (1, -1))
    ]
    assert np.any(free + diagonal, axis=0).all()


def test_bodies_are_lines_fainter_where_they_are_a_guess_and_the_ground_around_them_is_barred():
    half = HITS[HITS[:, 1] > 0.0]
    number = np.zeros(len(half), dtype=int)
    cells = VolumeSurface.blank(VolumeForm()).adding(Hits(half, number + 0.05, 2.0 * half, number))
    found = markers(dataclasses.replace(FENCED, belief=cells))
    assert (found["band"].action, found["barred"].action) == (Marker.DELETE, Marker.ADD)
    assert found["mean"].type == Marker.LINE_LIST
    ends = np.array([(p.x, p.y) for p in found["mean"].points]).reshape(-1, 2, 2)
    bodies = cells.likeliest.bodies
    assert len(ends) == sum(len(body.points) for body in bodies)
    assert np.hypot(*np.diff(ends, axis=1)[:, 0].T).max() < 2.0 * VolumeForm().lattice.cell
    shades = [(one.r, one.g, one.b) for one in found["mean"].colors[::2]]
    paler = np.array(shades) - colors.rgb(colors.MEAN)
    seen = np.abs(paler).max(axis=1) < 1e-6
    assert 0 < seen.sum() == sum(body.measured.sum() for body in bodies) < len(seen)
    assert (paler[~seen] > 0.1).all()
    # RViz blends the whole list by one of its opacities.
    assert {one.a for one in found["mean"].colors} == {1.0}
    blank = dataclasses.replace(FENCED, belief=VolumeSurface.blank(VolumeForm()))
    assert markers(blank)["mean"].action == Marker.DELETE


def test_counts():
    found = markers(FULL)
    assert len(found["band"].points) == 400 * 6
    assert len(found["mean"].points) == 401
    assert len(found["hits"].points) == 30
    assert len(found["candidates"].points) == len(found["candidates"].colors) == 8
    assert len(found["goal"].points) == 2
    for name in ("cone", "band"):
        assert len(found[name].points) % 3 == 0
    assert len(found["cone"].colors) == len(found["cone"].points)


def test_size_does_not_grow_with_the_grid():
    belief = belief_of(4.0, 5.0, size=100_000)
    found = markers(dataclasses.replace(FULL, belief=belief))
    assert len(found["band"].points) == 500 * 6
    assert len(found["mean"].points) == 501


@pytest.mark.parametrize("part", [f.name for f in dataclasses.fields(SceneContent)][1:])
def test_what_is_not_known_is_deleted(part):
    known = markers(dataclasses.replace(FENCED, **{part: None}))
    deleted = {name for name, m in known.items() if m.action == m.DELETE}
    expected = {
        "belief": {"band", "mean", "barred"},
        "pose": {"cone", "path"},
        "goal": {"goal", "path"},
        "ground": {"barred"},
    }.get(part, {part})
    assert deleted == expected


def test_no_hits_yet_is_a_deletion():
    assert markers(dataclasses.replace(FULL, hits=np.empty((0, 2))))["hits"].action == Marker.DELETE


@given(st.integers(0, 10_000), st.floats(-20.0, 6.0))
def test_band_has_the_area_of_the_ring(seed, shift):
    """Also where the lower bound is negative: it then lies at the centre."""
    belief = wavy_belief(seed, size=90)
    belief = dataclasses.replace(
        belief, lower=belief.lower - 6.0 + shift, upper=belief.upper - 6.0 + shift
    )
    area = areas(corners(markers(dataclasses.replace(FULL, belief=belief))["band"]))
    step = 2.0 * np.pi / 90

    def polygon(radius):
        radius = np.maximum(radius, 0.0)
        return 0.5 * np.sin(step) * float(radius @ np.roll(radius, -1))

    assert area.sum() == pytest.approx(polygon(belief.upper) - polygon(belief.lower), abs=1e-9)


def test_negative_lower_bound_fills_to_the_centre_and_not_beyond():
    band = corners(markers(dataclasses.replace(FULL, belief=belief_of(-3.0, 2.0, size=60)))["band"])
    angle = np.arctan2(band[..., 1], band[..., 0])
    radius = np.hypot(band[..., 0], band[..., 1])
    assert areas(band).min() >= 0.0
    assert areas(band).sum() == pytest.approx(60 * 0.5 * 4.0 * np.sin(2.0 * np.pi / 60))
    assert radius.max() == pytest.approx(2.0)
    # Each triangle stays in its own sector.
    for triangle, far in zip(angle, radius > 0.0, strict=True):
        turned = np.angle(np.exp(1j * (triangle[far] - triangle[far][0])))
        assert np.ptp(turned) <= 2.0 * np.pi / 60 + 1e-9


def test_every_number_is_finite_also_where_utilities_are_not():
    for marker in markers(FENCED).values():
        numbers = [(p.x, p.y, p.z) for p in marker.points] + [
            (c.r, c.g, c.b, c.a) for c in marker.colors
        ]
        assert all(np.isfinite(row).all() for row in numbers)
        assert marker.scale.x > 0.0
        assert 0.0 < marker.color.a <= 1.0


def test_candidates_are_coloured_by_utility_and_grey_where_there_is_none():
    found = [(c.r, c.g, c.b) for c in markers(FULL)["candidates"].colors]
    grey = pytest.approx(colors.rgb(colors.FAINT), abs=1e-6)
    assert [rgb == grey for rgb in found] == [False, False, False, False, True, True, False, True]
    lightness = [
        0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (found[i] for i in (0, 1, 2, 3, 6))
    ]
    assert lightness == sorted(lightness)
    assert lightness[-1] - lightness[0] > 0.5


def test_free_candidates_are_one_sphere_at_each_position_and_a_path_leads_to_the_goal():
    found = markers(FREE)
    assert len(found["candidates"].points) == len(found["candidates"].colors) == 6 * 48
    path = np.array([(p.x, p.y) for p in found["path"].points])
    assert path[0] == pytest.approx((POSE.x, POSE.y))
    assert path[-1] == pytest.approx((FREE.goal.x, FREE.goal.y))
    assert np.hypot(*path.T).min() > 0.99 * SCENE.radius_max
    assert markers(FULL)["path"].action == Marker.DELETE
    assert markers(dataclasses.replace(FREE, goal=None))["path"].action == Marker.DELETE


def test_cone_stands_at_the_pose_and_goal_at_the_goal():
    found = markers(FULL)
    assert corners(found["cone"])[0, 0] == pytest.approx((POSE.x, POSE.y))
    reach = np.hypot(*(corners(found["cone"])[:-1, 1] - (POSE.x, POSE.y)).T)
    assert reach == pytest.approx(SCENE.range_max)
    start, end = found["goal"].points
    assert np.hypot(start.x, start.y) == pytest.approx(SCENE.view_distance)
    assert np.hypot(end.x, end.y) < SCENE.view_distance
    assert start.x * end.y == pytest.approx(start.y * end.x)


@pytest.mark.parametrize(("number", "kept"), [(0, 0), (10, 10), (11, 6), (40, 10), (41, 6)])
def test_thinned_measurements_stay_spread(number, kept):
    angle = np.linspace(0.0, 6.0, number)
    found = decimated(np.column_stack([angle, angle + 1.0]), 10)[:, 0]
    assert len(found) == kept
    assert set(found) <= set(angle)
    if number > 10:
        assert np.diff(found).max() == pytest.approx(np.diff(found).min())


# The topic, on a real node.


def test_mapper_publishes_markers_only_while_somebody_listens(world):
    from geometry_msgs.msg import PoseStamped
    from ros_world import pose_msg
    from visualization_msgs.msg import MarkerArray

    from nbv_planner.ros.core import qos
    from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

    mapper = world.start(SurfaceMapperNode)
    built = []
    publisher = mapper.output.markers._publisher
    mapper.output.markers._publisher = Counting(publisher, built)
    say = world.speaker(PoseStamped, "camera_pose")
    say(pose_msg(POSE))
    world.spin_until(lambda: mapper.output.markers._content.pose, "the pose")
    world.spin_some()
    assert built == []

    heard = world.listen(MarkerArray, "markers", qos.latched())
    world.spin_until(lambda: heard, "markers for the one who joins late")
    actions = {m.ns: m.action for m in heard[-1].markers}
    assert actions["cone"] == Marker.ADD
    assert actions["band"] == actions["candidates"] == Marker.DELETE
    number = len(built)
    world.spin_some()
    assert len(built) == number  # nothing new, nothing sent


class Counting:
    """Passes on to a publisher, and counts."""

    def __init__(self, publisher, built):
        self._publisher, self._built = publisher, built

    def get_subscription_count(self):
        return self._publisher.get_subscription_count()

    def publish(self, msg):
        self._built.append(msg)
        self._publisher.publish(msg)


def test_candidates_are_listened_to_while_somebody_asks_for_markers(world):
    """They come after every view; a mapper that shows nothing has no use for them."""
    from visualization_msgs.msg import MarkerArray

    from nbv_planner.ros.core import qos
    from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

    mapper = world.start(SurfaceMapperNode, grid_size=120)

    def listens() -> bool:
        return "/nbv_planner/candidates" in {
            subscription.topic_name for subscription in mapper.subscriptions
        }

    world.spin_some()
    assert not listens()
    for _ in range(2):
        heard: list[MarkerArray] = []
        subscription = world.peer.create_subscription(
            MarkerArray, "markers", heard.append, qos.latched()
        )
        world.spin_until(listens, "its ear for candidates")
        world.peer.destroy_subscription(subscription)
        world.spin_until(lambda: not listens(), "the end of it")


@pytest.mark.parametrize(
    ("most", "size", "parts"), [(5000, 900, 14), (10, 3, 20), (10, 35, 4), (7, 1, 40), (1, 2, 3)]
)
def test_hits_are_thinned_however_they_come(most, size, parts):
    found, expected = np.empty((0, 2)), np.empty((2, 0))
    for k in range(parts):
        part = np.array([np.full(size, 0.01 * k), np.arange(1.0, 1.0 + size)])
        found = decimated(np.concatenate([found, part.T]), most)
        expected = np.concatenate([expected, part], axis=1)
        while expected.shape[1] > most:
            expected = expected[:, ::2]
        np.testing.assert_array_equal(found.T, expected)


def test_markers_of_an_episode_and_their_deletion_on_reset(world):
    from geometry_msgs.msg import PoseStamped
    from ros_world import pose_msg
    from sensor_msgs.msg import LaserScan, PointCloud2
    from std_srvs.srv import Trigger
    from visualization_msgs.msg import MarkerArray

    from nbv_planner.ros.core import qos
    from nbv_planner.ros.io import conversions
    from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
    from nbv_planner.world.objects import parse_object
    from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

    camera = SimulatedCamera(
        parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=21)
    )
    world.start(SurfaceMapperNode, grid_size=120)
    heard = world.listen(MarkerArray, "markers", qos.latched())
    say = {
        name: world.speaker(kind, name, profile)
        for kind, name, profile in (
            (PoseStamped, "goal_pose", None),
            (PoseStamped, "camera_pose", None),
            (LaserScan, "scan", None),
            (PointCloud2, "nbv_planner/candidates", qos.latched()),
        )
    }
    angle, cost = np.arange(8) * 0.7, np.zeros(8)
    views, utilities = Poses.from_polar(angle, np.linspace(9.0, 12.0, 8), cost), np.sin(angle)
    decision = conversions.Decision(
        at(1.0), 0.3, 0.3, 2.0, 0.1, views, utilities, cost, cost != 0.0
    )
    say["nbv_planner/candidates"](conversions.candidates_to_msg(decision, header("object", 5)))
    say["goal_pose"](pose_msg(POSE, 5))
    say["camera_pose"](pose_msg(POSE, 10))
    say["scan"](conversions.scan_to_msg(camera.scan(POSE, 1, 0), header("camera", 10)))

    def complete():
        return heard and all(
            marker.action == Marker.ADD for marker in heard[-1].markers if marker.ns != "barred"
        )

    world.spin_until(complete, "every part")
    assert len({m.ns: m for m in heard[-1].markers}["hits"].points) > 5

    assert world.call(Trigger, "surface_mapper/reset").success

    def forgotten():
        deleted = {m.ns for m in heard[-1].markers if m.action == Marker.DELETE}
        return deleted == {"hits", "cone", "goal", "candidates", "path", "barred"}

    world.spin_until(forgotten, "the deletions")
