"""The RViz configuration and the Foxglove layout name topics that the nodes publish, with types
they can show.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import wavy_belief
from layouts import DISPLAYS, MANAGER, PANELS, SHOWS, foxglove, kind_of, plotted, rviz
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from ros_world import header

from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.ros.core.graph import type_name, type_named

DURABILITY = {
    "Transient Local": DurabilityPolicy.TRANSIENT_LOCAL,
    "Volatile": DurabilityPolicy.VOLATILE,
}
RELIABILITY = {"Reliable": ReliabilityPolicy.RELIABLE, "Best Effort": ReliabilityPolicy.BEST_EFFORT}


REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.fixture
def nodes(world, tmp_path):
    """The three nodes, each with the name of its page in the reference."""
    from nbv_planner.ros.nodes.depth_camera import DepthCamera
    from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
    from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

    kinds = {"camera": DepthCamera, "mapper": SurfaceMapperNode, "planner": NbvPlannerNode}
    part = tmp_path / "part.csv"
    part.write_text("x,y\n5,0\n0,5\n-5,0\n0,-5\n")
    given = {"mapper": {"prior_outline": str(part)}}
    return {page: world.start(node, **given.get(page, {})) for page, node in kinds.items()}


@pytest.fixture
def published(nodes):
    """What the three nodes publish: topic -> (type, quality of service)."""
    publishers = [publisher for node in nodes.values() for publisher in node.publishers]
    found = {one.topic_name: (type_name(one.msg_type), one.qos_profile) for one in publishers}
    assert {"/ground_truth/surface", "/markers", "/run_info"} < set(found)
    return found


def test_every_rviz_display_shows_a_topic_of_ours_of_its_type(published):
    assert {display["Class"].split("/")[1] for display in DISPLAYS.values()} == set(SHOWS)
    for name, display in DISPLAYS.items():
        topic = display["Topic"]
        assert not topic["Value"].startswith("/"), f"{name}: must follow the namespace"
        kind, profile = published["/" + topic["Value"]]
        assert kind == kind_of(display), name
        # A subscriber that asks for more than is offered gets nothing; one that asks for less
        # misses what is latched.
        assert DURABILITY[topic["Durability Policy"]] == profile.durability, name
        assert RELIABILITY[topic["Reliability Policy"]] in (
            profile.reliability,
            ReliabilityPolicy.BEST_EFFORT,
        ), name


def test_rviz_looks_at_the_frame_of_the_markers_and_shows_every_part():
    from nbv_planner.episode.parameters import SurfaceMapperParameters
    from nbv_planner.ros.io.markers import PARTS

    assert MANAGER["Global Options"]["Fixed Frame"] == SurfaceMapperParameters().object_frame
    assert DISPLAYS["Markers"]["Namespaces"] == dict.fromkeys(PARTS, True)
    assert DISPLAYS["Scan"]["Enabled"]
    for display in MANAGER["Displays"]:
        assert display["Enabled"] == display["Value"]


def clouds(name: str) -> dict[str, set[str]]:
    """Fields that a cloud of a topic has whatever the surface is of, of a layout by its name."""
    from nbv_planner.clouds.cloud_fields import CANDIDATES_LAYOUT, CONTOUR_LAYOUT
    from nbv_planner.ros.io.conversions import surface_to_msg
    from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface

    forms = (VolumeForm(), form_in_space(0.25))
    cells = [VolumeSurface.blank(form) for form in forms]
    surfaces = {"nbv_planner": [wavy_belief(1), cells[0]], "solid": cells[1:]}[name]
    made = [surface_to_msg(one, header("object")) for one in surfaces]
    fields = [{field.name for field in msg.fields} for msg in made]
    return {
        "/surface": set.intersection(*fields),
        "/ground_truth/surface": {field for field, _ in CONTOUR_LAYOUT},
        "/nbv_planner/candidates": {field for field, _ in CANDIDATES_LAYOUT},
    }


@pytest.mark.parametrize("name", ["nbv_planner", "solid"])
def test_clouds_are_coloured_by_a_field_that_they_have(name):
    fields = clouds(name)
    shown = foxglove(name)["configById"]["3D!nbvWorld"]["topics"]
    assert {"/surface", "/nbv_planner/candidates"} <= set(shown)
    for topic in set(fields) & set(shown):
        # Without a field Foxglove takes one itself, and a flat colour is lost.
        assert shown[topic]["colorField"] in fields[topic], topic
    for display in rviz(name)["Visualization Manager"]["Displays"]:
        if "Channel Name" in display:
            assert display["Channel Name"] in fields["/" + display["Topic"]["Value"]]


@pytest.mark.parametrize("name", ["nbv_planner", "solid"])
def test_rviz_leaves_its_window_to_the_picture(name):
    layout = rviz(name)
    # The panel of the time is so wide that nothing of the picture was left.
    assert [panel["Class"] for panel in layout["Panels"]] == ["rviz_common/Displays"]
    window = layout["Window Geometry"]
    # RViz reads what is not there from a variable that nobody set.
    assert window["Hide Left Dock"] is window["Hide Right Dock"] is False
    assert window["Width"] >= 1200
    assert window["Height"] >= 800


def test_both_programs_look_at_the_plane_from_above_with_x_to_the_right():
    view, camera = MANAGER["Views"]["Current"], PANELS["3D!nbvWorld"]["cameraState"]
    assert view["Class"] == "rviz_default_plugins/TopDownOrtho"
    assert (camera["perspective"], camera["phi"]) == (False, 0)
    assert view["Angle"] == camera["thetaOffset"] == 0


def panels(layout) -> list[str]:
    """Names of the panels in a layout, a tree of halves."""
    if isinstance(layout, str):
        return [layout]
    assert layout["direction"] in ("row", "column")
    assert 0 < layout["splitPercentage"] < 100
    return panels(layout["first"]) + panels(layout["second"])


@pytest.mark.parametrize("name", ["nbv_planner", "solid"])
def test_foxglove_layout_holds_each_panel_once(name):
    layout = foxglove(name)
    assert sorted(panels(layout["layout"])) == sorted(layout["configById"])
    assert set(layout) == {
        "configById",
        "globalVariables",
        "userNodes",
        "playbackConfig",
        "layout",
    }
    kinds = {"3D", "Plot", "RawMessages", "DiagnosticSummary", *(["Image"] * (name == "solid"))}
    assert {panel.split("!")[0] for panel in layout["configById"]} == kinds


def test_foxglove_panels_show_topics_of_ours_of_types_they_can_show(published):
    world = PANELS["3D!nbvWorld"]
    for topic in world["topics"]:
        assert published[topic][0] in SHOWS.values(), topic
    for panel, kind in (
        ("nbvStatus", "diagnostic_msgs/msg/DiagnosticStatus"),
        ("nbvSurfaceInfo", "std_msgs/msg/String"),
    ):
        topic, _, field = PANELS[f"RawMessages!{panel}"]["topicPath"].partition(".")
        assert published[topic][0] == kind
        assert not field or hasattr(type_named(kind), field)
    assert (
        published[PANELS["DiagnosticSummary!nbvNodes"]["topicToRender"]][0]
        == "diagnostic_msgs/msg/DiagnosticArray"
    )


@pytest.mark.parametrize("panel", [name for name in PANELS if name.startswith("Plot")])
def test_foxglove_plots_follow_values_that_the_planner_says(world, panel):
    from diagnostic_msgs.msg import DiagnosticStatus

    from nbv_planner.episode.messages import status_values
    from nbv_planner.ros.core import qos
    from nbv_planner.ros.nodes.depth_camera import DepthCamera
    from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
    from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

    heard = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
    world.start(DepthCamera, num_beams=21)
    world.start(SurfaceMapperNode, grid_size=120)
    world.start(NbvPlannerNode, num_views=12, objective="U", certify=False)
    world.spin_until(lambda: heard, "a decision")
    values = status_values(heard[0])
    for topic, key in plotted(PANELS[panel]):
        assert topic == "/nbv_planner/iteration"
        float(values[key])


def rows(page: str, head: str) -> list[tuple[list[str], str, str]]:
    """Of each row of the table under that head: the names in its first cell, its second cell, all
    of it.
    """
    text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(rf"^\| {head}[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)[1]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [
        (re.findall(r"`([~\w/]+)`", first), second, " ".join(more))
        for first, second, *more in cells
    ]


def test_the_page_of_a_node_has_what_it_publishes_and_its_services(nodes):
    of_ros = {"/rosout", "/parameter_events"}
    common = {
        f"/{name}" if name[0] != "/" else name: kind for (name,), kind, _ in rows("nodes", "topic")
    }
    for page, node in nodes.items():
        found = {
            one.topic_name: type_name(one.msg_type).replace("/msg/", "/") for one in node.publishers
        }
        table = rows(page, "publishes")
        shown = {
            "/" + name.lstrip("/"): kind.partition(",")[0]
            for names, kind, _ in table
            for name in names
        }
        seldom = {
            "/" + name.lstrip("/")
            for names, _, more in table
            if re.search("only (if|w)", more)
            for name in names
        }
        own = {name: kind for name, kind in found.items() if name not in of_ros | set(common)}
        assert {name: shown.get(name) for name in own} == own, page
        assert set(shown) - set(own) <= seldom, page
    for page, node in list(nodes.items())[1:]:
        served = {
            one.srv_name for one in node.services if type_name(one.srv_type).startswith("std_srvs/")
        }
        assert {name for names, *_ in rows(page, "service") for name in names} == served, page
