"""In space: markers of what is known, and layouts that name topics of the nodes in space."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from layouts import foxglove, rviz
from ros_world import header
from visualization_msgs.msg import Marker

from nbv_planner.episode.messages import Candidates
from nbv_planner.episode.solid.solid_results import mean_surface
from nbv_planner.episode.solid.solid_settings import SolidScene
from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.report import colors
from nbv_planner.ros.core.graph import type_name
from nbv_planner.ros.io.markers import SceneContent
from nbv_planner.ros.nodes.solid_camera import SolidCamera
from nbv_planner.ros.nodes.solid_mapper import SolidMapper, frustum, solid_markers
from nbv_planner.ros.nodes.solid_planner import SolidPlanner
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera, seen_in
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.scan import RangeNoise

SENSOR = DepthSensor(columns=32, rows=24, range_max=2.0)
SCENE = SolidScene(radius_max=0.25, view_distance=0.425).seen_by(SENSOR)
POSES = on_sphere(7, 0.425)
SHOWN = {
    "MarkerArray": "visualization_msgs/msg/MarkerArray",
    "Pose": "geometry_msgs/msg/PoseStamped",
    "PoseArray": "geometry_msgs/msg/PoseArray",
    "PointCloud2": "sensor_msgs/msg/PointCloud2",
    "Image": "sensor_msgs/msg/Image",
}


def surface_after(views):
    noise = RangeNoise(0.0, 0.004)
    camera = SimulatedDepthCamera(solid_named("box", 0.25), SENSOR, noise)
    known = VolumeSurface.blank(form_in_space(0.25))
    for number in range(views):
        place = POSES.position[number], POSES.rotation[number]
        scan = camera.scan(*place, np.random.default_rng(number))
        hits, free = seen_in(scan, *place, noise, number)
        known = known.adding(hits, [free])
    return known


@pytest.fixture(scope="module")
def surface():
    return surface_after(2)


def places(marker):
    return np.array([(one.x, one.y, one.z) for one in marker.points])


def test_a_solid_is_triangles_points_cameras_and_candidates_by_value(surface):
    x, y, z = POSES.position.T
    utility = np.arange(7.0)
    offered = Candidates(x, y, np.zeros(7), utility, 0.0 * x, utility != 2.0, z=z)
    content = SceneContent(SCENE, surface, None, POSES[0], POSES[1], offered)
    made = {one.ns: one for one in solid_markers(content, header("object", 5)).markers}
    assert list(made) == ["surface", "hits", "camera", "goal", "candidates"]
    mesh = mean_surface(surface)
    triangles = made["surface"]
    assert triangles.type == Marker.TRIANGLE_LIST
    np.testing.assert_allclose(places(triangles), mesh.vertices[mesh.faces.ravel()])
    near = surface.cells.near(mesh.vertices[mesh.faces.ravel()], 0.05 * 0.25)
    assert 0.1 < near.mean() < 0.9
    blue = colors.rgb(colors.MEAN)
    seen = [np.allclose((one.r, one.g, one.b), blue) for one in triangles.colors]
    assert seen == near.tolist()
    np.testing.assert_allclose(places(made["hits"]), surface.cells.hits.mean)
    np.testing.assert_allclose(places(made["candidates"]), POSES.position)
    shades = [(one.r, one.g, one.b) for one in made["candidates"].colors]
    np.testing.assert_allclose(shades, colors.utility_colors(utility, utility != 2.0), atol=1e-6)
    corners = frustum(POSES[0], SCENE)
    np.testing.assert_allclose(corners[0], POSES.position[0])
    inside = SENSOR.sees(0.999 * (corners[1:] - corners[0]) @ POSES.rotation[0])
    assert inside.all()
    assert len(made["camera"].points) == 16


def test_the_mean_surface_is_built_once_for_all_poses_of_the_camera(surface):
    def triangles(known, pose, stamp):
        content = SceneContent(SCENE, known, None, POSES[pose])
        return solid_markers(content, header("object", stamp)).markers[0]

    first = triangles(surface, 0, 5)
    again = triangles(surface, 1, 7)
    assert again is first
    assert again.header.stamp.nanosec == 7
    assert triangles(surface_after(1), 1, 7) is not first


def test_what_is_not_known_is_deleted():
    blank = VolumeSurface.blank(form_in_space(0.25))
    made = solid_markers(SceneContent(SCENE, blank), header("object", 5)).markers
    assert {one.action for one in made} == {Marker.DELETE}


def test_layouts_show_topics_of_the_nodes_in_space_of_their_types(world):
    given = {"radius_max": 0.25}
    kinds = (SolidCamera, SolidMapper, SolidPlanner)
    publishers = [one for kind in kinds for one in world.start(kind, **given).publishers]
    published = {one.topic_name: type_name(one.msg_type) for one in publishers}
    displays = rviz("solid")["Visualization Manager"]["Displays"]
    for display in (one for one in displays if "Topic" in one):
        kind = SHOWN[display["Class"].removeprefix("rviz_default_plugins/")]
        assert published["/" + display["Topic"]["Value"]] == kind, display["Name"]
    (markers,) = (one for one in displays if one["Name"] == "Markers")
    names = [one.ns for one in solid_markers(SceneContent(SCENE), header("object", 5)).markers]
    assert markers["Namespaces"] == dict.fromkeys(names, True)
    panels = foxglove("solid")["configById"]
    image = panels["Image!nbvDepth"]["imageMode"]["imageTopic"]
    assert published[image] == SHOWN["Image"]
    assert set(panels["3D!nbvWorld"]["topics"]) <= set(published)
