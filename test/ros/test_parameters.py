"""Parameters: declared once with unit, range and description; bad ones stop a node at start with a
message.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import ReliabilityPolicy
from ros_world import PATIENCE

from nbv_planner.episode.parameter_files import dump_parameters, shared_file
from nbv_planner.episode.parameters import NODE_SETTINGS, parameters_of
from nbv_planner.errors import NbvPlannerError, SettingError
from nbv_planner.ros.core.running import run_node
from nbv_planner.ros.node_processes import isolated_environment
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

NODES = {
    "depth_camera": DepthCamera,
    "surface_mapper": SurfaceMapperNode,
    "nbv_planner": NbvPlannerNode,
}
ROS_OWN = {"use_sim_time", "start_type_description_service"}
TYPES = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
    tuple: Parameter.Type.DOUBLE_ARRAY,
}


def declared(name: str):
    """But those of plug-ins, of which the defaults name none."""
    known = parameters_of(NODE_SETTINGS[name])
    return [(key, *entry) for key, entry in known.items() if "." not in key]


def plain(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", NODES)
def test_every_parameter_is_described_with_its_unit_type_range_and_default(world, name):
    node = world.start(NODES[name], simulated=False)
    for key, default, meta in declared(name):
        found, parameter = node.describe_parameter(key), node.get_parameter(key)
        assert meta.description
        follows = f" If not given, in proportion to {meta.scale}." if meta.scale else ""
        assert (
            found.description
            == meta.description + (f" [{meta.unit}]" if meta.unit else "") + follows
        )
        assert found.additional_constraints.startswith(meta.allowed())
        fixed = "fixed at start" if meta.start_only else "fixed while the node is configured"
        assert (fixed in found.additional_constraints) is meta.read_only
        assert found.read_only is meta.start_only
        assert found.type == TYPES[type(default)].value
        assert (parameter.type_, plain(parameter.value)) == (TYPES[type(default)], plain(default))
        ranges = {float: found.floating_point_range, int: found.integer_range}.get(
            type(default), []
        )
        if type(default) in (int, float) and (meta.minimum is not None or meta.maximum is not None):
            (bounds,) = ranges
            assert meta.minimum is None or bounds.from_value == meta.minimum
            assert meta.maximum is None or bounds.to_value == meta.maximum
        else:
            assert len(ranges) == 0


def test_of_plug_ins_those_in_use_are_declared_and_those_that_are_given(world):
    node = world.start(NODES["nbv_planner"], planner="design", **{"frontier.radius": 1.5})
    names = {
        name
        for name in node.get_parameters_by_prefix("")
        if "." in name and not name.startswith("qos_")
    }
    assert names == {"design.criterion", "design.grid", "frontier.radius"}


@pytest.mark.parametrize("name", NODES)
def test_nothing_is_declared_that_the_settings_do_not_know(world, name):
    node = world.start(NODES[name])
    known = {key for key, _, _ in declared(name)} | ROS_OWN
    names = set(node.get_parameters_by_prefix(""))
    assert {
        key for key in names if not key.startswith("qos_overrides.")
    } - ROS_OWN == known - ROS_OWN
    assert len(known - ROS_OWN) <= 60


@pytest.mark.parametrize("name", NODES)
def test_descriptions_are_seen_from_outside_after_a_value_was_given(world, name):
    node = world.start(NODES[name], view_distance=12)
    client = AsyncParameterClient(world.peer, name)
    world.spin_until(client.services_are_ready, "the parameter services")
    answer = world.result(client.describe_parameters(["view_distance"]), "descriptions")
    (found,) = answer.descriptors
    assert (
        found.description
        == "Distance of the camera from the centre on the view circle: give the distance at which"
        " your robot can drive around the object. [m] If not given, in proportion to"
        " radius_max."
    )
    assert found.floating_point_range[0].from_value == 1e-5
    assert (
        found.additional_constraints == ">= 1e-05 and <= 1e+07; fixed while the node is configured"
    )
    assert node.scene.view_distance == 12.0


@pytest.mark.parametrize("name", NODES)
def test_every_topic_of_the_node_can_have_its_qos_overridden(world, name):
    node = world.start(NODES[name])
    given = {
        key.removeprefix("qos_overrides.")
        for key in node.get_parameters_by_prefix("")
        if "qos_over" in key
    }
    by_rclpy = {"/rosout", "/parameter_events", "/clock", f"/{name}/transition_event"}
    for publisher in node.publishers:
        assert (
            publisher.topic_name in by_rclpy or f"{publisher.topic_name}.publisher.depth" in given
        )
    for subscription in node.subscriptions:
        assert (
            subscription.topic_name in by_rclpy
            or f"{subscription.topic_name}.subscription.depth" in given
        )


def test_qos_overrides_are_applied(world):
    reliability = {"qos_overrides./scan.publisher.reliability": "best_effort"}
    camera = world.start(DepthCamera, **reliability, **{"qos_overrides./scan.publisher.depth": 3})
    mapper = world.start(
        SurfaceMapperNode, **{"qos_overrides./scan.subscription.reliability": "reliable"}
    )
    (offered,) = [
        publisher.qos_profile for publisher in camera.publishers if publisher.topic_name == "/scan"
    ]
    (wanted,) = [heard.qos_profile for heard in mapper.subscriptions if heard.topic_name == "/scan"]
    assert (offered.reliability, offered.depth) == (ReliabilityPolicy.BEST_EFFORT, 3)
    assert wanted.reliability == ReliabilityPolicy.RELIABLE


@pytest.mark.parametrize(
    ("name", "given", "texts"),
    [
        (
            "surface_mapper",
            {"lenght_scale": 0.2},
            ["unknown parameter 'lenght_scale'", "known:", "length_scale"],
        ),
        (
            "depth_camera",
            {"objective": "IOA"},
            ["unknown parameter 'objective'", "known:", "object_frame"],
        ),
        ("nbv_planner", {"a.b": 1}, ["unknown parameter 'a.b'"]),
        (
            "surface_mapper",
            {"length_scale": -1.0},
            ["length_scale: -1.0 is out of range", ">= 0.001 and <= 100 rad"],
        ),
        (
            "depth_camera",
            {"scan_rate": 0.0},
            ["scan_rate: 0.0 is out of range", ">= 1e-09 and <= 1000 Hz"],
        ),
        ("depth_camera", {"num_beams": 0}, ["num_beams: 0 is out of range", ">= 2"]),
        (
            "depth_camera",
            {"field_of_view": 3.2},
            ["field_of_view: 3.2 is out of range", ">= 0.0001 and < 3.14159 rad"],
        ),
        ("nbv_planner", {"num_views": 0}, ["num_views: 0 is out of range", ">= 1"]),
        (
            "nbv_planner",
            {"goal_timeout": float("inf")},
            ["goal_timeout: inf is not a finite number", ">= 1e-09 and <= 1e+09 s"],
        ),
        (
            "surface_mapper",
            {"noise_std": float("nan")},
            ["noise_std: nan is not a finite", ">= 1e-12 and <= 1e+06 m"],
        ),
        (
            "surface_mapper",
            {"length_scale": "wide"},
            ["length_scale: 'wide' is text, expected a number"],
        ),
        (
            "surface_mapper",
            {"grid_size": 100.0},
            ["grid_size: 100.0 is a number with a fraction, expected an integer"],
        ),
        (
            "surface_mapper",
            {"grid_size": True},
            ["grid_size: True is true or false, expected an integer"],
        ),
        (
            "nbv_planner",
            {"wait_for_start": 1},
            ["wait_for_start: 1 is an integer, expected true or false"],
        ),
        ("nbv_planner", {"objective": 5}, ["objective: 5 is an integer, expected a string"]),
        (
            "nbv_planner",
            {"allowed_arcs": 1.0},
            ["allowed_arcs: 1.0 is a number with", "expected a list of numbers"],
        ),
        (
            "nbv_planner",
            {"allowed_arcs": [0.0, 1.0, 2.0]},
            ["allowed_arcs: has 3 angles, must be pairs"],
        ),
        (
            "nbv_planner",
            {"objective": "XYZ"},
            ["objective: 'XYZ' is not known", "one of", "IOA", "UP"],
        ),
        (
            "nbv_planner",
            {"objective": "OSM"},
            ["objective: OSM needs the true object, which no robot has"],
        ),
        (
            "nbv_planner",
            {"planner": "best"},
            ["planner: 'best' is not known", "one of greedy, two_phase"],
        ),
        (
            "nbv_planner",
            {"first_candidate": 100},
            [
                "first_candidate is not a parameter any more: Python API only,"
                " PlannerSettings.first_"
            ],
        ),
        (
            "nbv_planner",
            {"noise_std": 0.1},
            ["noise_std belongs to surface_mapper, from which nbv_planner takes it: set it there"],
        ),
        (
            "surface_mapper",
            {"smoothness": "rough"},
            ["smoothness: 'rough' is not a number", "1/2, 3/2, 5/2"],
        ),
        (
            "surface_mapper",
            {"smoothness": "0.8"},
            ["periodisation: sum needs smoothness 1/2", "warp, approximate"],
        ),
        ("surface_mapper", {"kernel": "rbf"}, ["periodisation: sum has no closed form for rbf"]),
        (
            "surface_mapper",
            {"confidence": "schedule"},
            ["confidence is not a parameter any more: Python API only, MapperSettings.confidence"],
        ),
        (
            "surface_mapper",
            {"integrate": "never"},
            ["integrate: 'never' is not known", "one of at_view, always"],
        ),
        ("surface_mapper", {"prior_mean": 9.0}, ["prior_mean: 9.0 m must be within [2, 8] m"]),
        (
            "nbv_planner",
            {"view_distance": 8.0},
            ["view_distance: 8.0 puts the camera inside the object's bound"],
        ),
        ("depth_camera", {"object": "banana"}, ["banana"]),
        (
            "depth_camera",
            {"use_sim_time": "yes"},
            ["use_sim_time: 'yes' is not allowed; must be true or false"],
        ),
        (
            "depth_camera",
            {"qos_overrides./scan.publisher.depth": "many"},
            ["scan.publisher.depth: 'many'", ">= 0"],
        ),
        (
            "depth_camera",
            {"qos_overrides./scan.publisher.depth": -3},
            ["scan.publisher.depth: -3 is not allowed"],
        ),
        (
            "depth_camera",
            {"qos_overrides./scan.publisher.reliability": "sometimes"},
            ["scan.publisher.reliability: 'sometimes'", "one of reliable, best_effort"],
        ),
        (
            "depth_camera",
            {"qos_overrides./scan.publisher.durability": "volatile"},
            [
                "scan.publisher.durability: 'durability' cannot be overridden",
                "depth, history, reliability",
            ],
        ),
    ],
)
def test_a_parameter_that_is_not_allowed_stops_the_node_with_a_message(world, name, given, texts):
    with pytest.raises(NbvPlannerError) as caught:
        world.start(NODES[name], **given)
    message = str(caught.value)
    for text in texts:
        assert text in message
    if "banana" not in message and "prior_mean" not in message:
        assert isinstance(caught.value, SettingError)
        assert message.startswith(f"{name}: ")
    assert "\n" not in message


@pytest.mark.parametrize(
    "arguments", [["-p", "view_distance:=12"], ["-p", "depth_camera:view_distance:=12"]]
)
def test_an_integer_is_taken_where_a_real_number_is_meant(world, arguments):
    node = world.start(DepthCamera, cli_args=["--ros-args", *arguments, "-p", "noise_std:=0"])
    assert (node.get_parameter("view_distance").type_, node.scene.view_distance) == (
        Parameter.Type.DOUBLE,
        12.0,
    )
    assert node.get_parameter("noise_std").value == 0.0


def test_a_list_of_integers_is_taken_where_real_numbers_are_meant(world):
    node = world.start(NbvPlannerNode, cli_args=["--ros-args", "-p", "allowed_arcs:=[0, 3]"])
    assert node.get_parameter("allowed_arcs").type_ is Parameter.Type.DOUBLE_ARRAY
    assert list(node.get_parameter("allowed_arcs").value) == [0.0, 3.0]
    views = node.core.planner.views
    assert views.allowed(views.candidates).sum() == 48


def test_parameters_come_from_a_file_by_node_name_or_for_all(world, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(
        "/**:\n  ros__parameters:\n    view_distance: 11.0\n"
        "/**/surface_mapper:\n  ros__parameters:\n    length_scale: 0.3\n    use_sim_time: false\n"
        "nbv_planner:\n  ros__parameters:\n    max_views: 7\n"
    )
    arguments = ["--ros-args", "--params-file", str(file)]
    mapper, planner = (
        world.start(cls, cli_args=arguments) for cls in (SurfaceMapperNode, NbvPlannerNode)
    )
    assert (mapper.scene.view_distance, mapper.get_parameter("length_scale").value) == (11.0, 0.3)
    assert (planner.scene.view_distance, planner.core.monitor.settings.max_views) == (11.0, 7)


SHIPPED = str(shared_file("config/robot.yaml"))


@pytest.mark.parametrize("name", ["surface_mapper", "nbv_planner"])
def test_the_command_line_replaces_what_a_shipped_file_says(world, name):
    arguments = [
        "--ros-args",
        "--params-file",
        SHIPPED,
        "-p",
        "settle_time:=2.0",
        "-p",
        "input_timeout:=9.0",
    ]
    node = world.start(NODES[name], cli_args=arguments, simulated=False)
    assert [node.get_parameter(one).value for one in ("settle_time", "input_timeout")] == [2.0, 9.0]


@pytest.mark.parametrize(
    ("rule", "section", "behind", "used"),
    [
        ("goal_timeout:=10.0", "/**/nbv_planner", True, False),
        ("goal_timeout:=10.0", "/**/nbv_planner", False, False),
        ("goal_timeout:=10.0", "/**", True, True),
        ("goal_timeout:=10.0", "/**", False, False),
        ("nbv_planner:goal_timeout:=10.0", "/**/nbv_planner", True, True),
    ],
)
def test_a_value_of_the_command_line_that_ros_does_not_take_is_named_with_what_it_takes(
    world, tmp_path, capfd, rule, section, behind, used
):
    file = tmp_path / "p.yaml"
    file.write_text(
        f"/**: {{ros__parameters: {{max_views: 7}}}}\n{section}: {{ros__parameters: {{goal_timeout:"
        " 60.0}}\n"
        if section != "/**"
        else "/**: {ros__parameters: {max_views: 7, goal_timeout: 60.0}}\n"
    )
    rules = (
        ["--params-file", str(file), "-p", rule]
        if behind
        else ["-p", rule, "--params-file", str(file)]
    )
    node = world.start(
        NbvPlannerNode, cli_args=["--ros-args", *rules, "-p", "nbv_planner:stall_views:=3"]
    )
    said, value = capfd.readouterr().err, rule.rpartition("=")[2]
    assert node.get_parameter("goal_timeout").value == (10.0 if used else 60.0)
    words = f"goal_timeout: {value} of the command line is not used but 60.0 of {file}"
    assert (words in said, "is not used" in said) == (not used, not used)


def test_the_planner_of_a_robot_waits_for_its_start_however_it_was_started(world, tmp_path):
    """By hand, with what `init` writes or nothing: no goal before ~/start."""
    file = tmp_path / "p.yaml"
    file.write_text("/**: {ros__parameters: {radius_max: 2.0}}\n")
    for arguments in ([], ["--params-file", str(file)], ["--params-file", SHIPPED]):
        planner = world.start(NbvPlannerNode, cli_args=["--ros-args", *arguments], simulated=False)
        assert (planner.core.episode.started, planner.core.settings.wait_for_start) == (False, True)
        world.end(planner)


def test_what_is_there_for_all_nodes_is_taken_by_those_that_have_it(world, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**:\n  ros__parameters:\n    num_beams: 9\n    grid_size: 99\n")
    arguments = ["--ros-args", "--params-file", str(file)]
    camera, mapper, planner = (world.start(cls, cli_args=arguments) for cls in NODES.values())
    assert (camera.get_parameter("num_beams").value, mapper.get_parameter("grid_size").value) == (
        9,
        99,
    )
    names = ("num_beams", "grid_size")
    assert [
        name for node in (camera, mapper, planner) for name in names if node.has_parameter(name)
    ] == list(names)


@pytest.mark.parametrize("section", ["surface_mapper", "/**"])
def test_what_no_node_or_another_one_has_is_refused(world, tmp_path, section):
    file, name = tmp_path / "p.yaml", {"/**": "num_beems"}.get(section, "num_beams")
    file.write_text(f"{section}:\n  ros__parameters:\n    {name}: 9\n")
    with pytest.raises(SettingError, match=f"unknown parameter '{name}'"):
        world.start(SurfaceMapperNode, cli_args=["--ros-args", "--params-file", str(file)])


def test_namespaces_may_be_nested_in_a_file(world, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**:\n  depth_camera:\n    ros__parameters:\n      num_beams: 9\n")
    world.start(DepthCamera, cli_args=["--ros-args", "--params-file", str(file)])


def test_an_override_of_the_quality_of_service_survives_being_written_to_a_file(world, tmp_path):
    name, file = "qos_overrides./scan.publisher.depth", tmp_path / "p.yaml"
    file.write_text(dump_parameters({"depth_camera": {name: 77}}))
    node = world.start(DepthCamera, cli_args=["--ros-args", "--params-file", str(file)])
    assert node.get_parameter(name).value == 77


def test_a_change_at_run_time_is_applied(world):
    node = world.start(NbvPlannerNode)
    (answer,) = world.set_parameters(node, max_views=7)
    assert answer.successful, answer.reason
    results = world.set_parameters(node, goal_timeout=3.0, travel_weight=0.5, band_tolerance=0.4)
    assert all(result.successful for result in results), results
    assert node.core.monitor.settings.max_views == 7
    assert node.core.monitor.settings.band_tolerance == 0.4
    assert node.core.settings.goal_timeout == 3.0
    assert node.core.planner.settings.travel_weight == 0.5
    assert node.get_parameter("max_views").value == 7


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "objective",
            "UP",
            "objective: is fixed while the node is configured; clean the node up, set it",
        ),
        ("view_distance", 12.0, "view_distance: is fixed while the node is configured"),
        ("max_views", -1, "max_views"),
        (
            "goal_timeout",
            0.0,
            "Parameter goal_timeout out of range Min: 1e-09, Max: 1000000000.0, value: 0.0",
        ),
        ("goal_timeout", -1.0, "goal_timeout"),
        ("goal_timeout", float("nan"), "goal_timeout"),
        ("max_duration", -1.5, "max_duration"),
        ("max_views", 2.5, "Wrong parameter type"),
        ("learn_speeds", "yes", "Wrong parameter type"),
        ("no_such_parameter", 1, "undeclared parameter"),
    ],
)
def test_a_change_at_run_time_that_is_not_allowed_is_refused_with_a_reason(
    world, name, value, reason
):
    node = world.start(NbvPlannerNode)
    before = node.core.monitor.settings, node.core.settings, node.core.planner.settings
    (answer,) = world.set_parameters(node, **{name: value})
    assert not answer.successful
    assert reason in answer.reason
    assert (node.core.monitor.settings, node.core.settings, node.core.planner.settings) == before


def test_changes_asked_for_together_are_applied_all_or_none(world):
    node = world.start(NbvPlannerNode)
    together = [Parameter("max_views", value=3), Parameter("goal_timeout", value=0.0)]
    answer = node.set_parameters_atomically(together)
    assert not answer.successful
    assert "goal_timeout out of range Min: 1e-09" in answer.reason
    assert (node.core.monitor.settings.max_views, node.core.settings.goal_timeout) == (40, 60.0)
    assert node.get_parameter("max_views").value == 40


@pytest.mark.parametrize("cls", [DepthCamera, SurfaceMapperNode])
def test_camera_and_mapper_refuse_any_change_at_run_time(world, cls):
    node = world.start(cls)
    for key, default, meta in declared(node.get_name()):
        (answer,) = node.set_parameters([Parameter(key, value=plain(default))])
        assert not answer.successful
        expected = (
            "read-only" if meta.start_only else f"{key}: is fixed while the node is configured"
        )
        assert expected in answer.reason


# --- the same as a process


def run_process(world, node: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nbv_planner.ros.executables", node, "--ros-args", *arguments],
        env={**os.environ, **isolated_environment(world.domain)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_process_with_a_bad_value_ends_with_code_2_and_one_line(world):
    done = run_process(world, "surface_mapper", "-p", "length_scale:=-1.0")
    assert done.returncode == 2
    assert (
        done.stderr
        == "error: surface_mapper: length_scale: -1.0 is out of range; must be >= 0.001 and <= 100"
        " rad\n"
    )


# --- run by its executable, as far as that goes in this process


@pytest.fixture
def run(world, monkeypatch, capfd, handlers):
    """Return what runs a node with the arguments of a command line; gives its exit code and what it
    said.
    """

    def in_this_process(create, *arguments: str) -> tuple[int, str]:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(world.domain))
        monkeypatch.setattr("sys.argv", ["node", "--ros-args", *arguments])
        code = run_node(create)
        return code, capfd.readouterr().err

    return in_this_process


def test_an_unknown_parameter_in_its_file_ends_a_node_with_code_2_and_one_line(run, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**:\n  ros__parameters:\n    objektive: IOA\n")
    code, said = run(NbvPlannerNode, "--params-file", str(file))
    assert code == 2
    (line,) = said.splitlines()
    assert line.startswith(
        f"error: nbv_planner: {file}: unknown parameter 'objektive'; known: allowed_arcs, annulus_"
    )


def test_transforms_of_a_camera_without_a_name_are_refused_and_not_waited_for(run):
    code, said = run(NbvPlannerNode, "-p", "pose_source:=tf")
    assert code == 2
    assert said.endswith(
        "\nerror: nbv_planner: camera_frame: '' is not a frame; with pose_source: tf it must be"
        " that of the scans\n"
    )


def test_a_node_whose_section_is_misspelt_ends_with_code_2_and_says_what_was_meant(run, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**/surface_maper:\n  ros__parameters:\n    noise_std: 0.1\n")
    code, said = run(SurfaceMapperNode, "--params-file", str(file))
    assert code == 2
    assert (
        said == f"error: {file}: section '/**/surface_maper' does not apply to /surface_mapper; "
        "did you mean '/**/surface_mapper'?\n"
    )


def test_sections_of_nodes_that_do_not_exist_are_warned_about(world, tmp_path, capfd):
    file = tmp_path / "p.yaml"
    file.write_text(
        "/**/surface_mapper: {ros__parameters: {noise_std: 0.1}}\nmaper: {ros__parameters: {a:"
        " 1}}\n"
    )
    world.start(
        SurfaceMapperNode, cli_args=["--ros-args", "--params-file", str(file)], grid_size=100
    )
    assert (
        f"{file}: sections not used, since no node of this package has them: 'maper'"
        in capfd.readouterr().err
    )


@pytest.mark.parametrize(
    "text",
    ["depth_camera:\n  ros__parameters:\n    seed: [1, two\n", "depth_camera: 5\n", None],
    ids=["not YAML", "no parameters", "no file"],
)
def test_a_file_that_cannot_be_read_ends_a_node_with_code_2_and_names_it(run, tmp_path, text):
    file = tmp_path / "p.yaml"
    if text is not None:
        file.write_text(text)
    code, said = run(DepthCamera, "--params-file", str(file))
    assert code == 2
    assert "Traceback" not in said
    *of_rcl, line = said.splitlines()
    assert all("[rcl]" in other for other in of_rcl)  # what rcl itself logs
    assert line.startswith("error: ")
    assert str(file) in line


def test_a_bad_qos_override_ends_a_node_with_code_2_and_one_line(run):
    code, said = run(DepthCamera, "-p", "qos_overrides./scan.publisher.depth:=many")
    assert code == 2
    (line,) = said.splitlines()
    assert (
        line == "error: depth_camera: qos_overrides./scan.publisher.depth: 'many' is not allowed; "
        "must be an integer >= 0 and <= 2147483647"
    )
