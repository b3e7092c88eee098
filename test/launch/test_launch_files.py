"""The launch files, with the real launch and launch_ros: what they describe, and that they run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; make test brings the wheels")
pytest.importorskip(
    "launch_ros", reason="launch_ros is not on PyPI: these tests run where ROS 2 is installed"
)

import yaml
from launch_ros.actions import Node
from launched import ROOT, described, files_of, nodes, parameters

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.planning.objectives import EXPECTED, TRUTH_OBJECTIVES
from nbv_planner.planning.planners import PLANNERS
from nbv_planner.thesis import OBJECTIVES

NODES = {
    "simulation": ["depth_camera", "surface_mapper", "nbv_planner"],
    "planner": ["surface_mapper", "nbv_planner"],
}
COMMON = {
    "params_file",
    "namespace",
    "use_sim_time",
    "log_level",
    "objective",
    "planner",
    "exit_when_done",
    "rviz",
    "enclave",
    "radius_max",
    "view_distance",
    "noise_std",
    "max_views",
    "view_space",
    "map",
    "respawn",
    "state_folder",
    "episode",
    "outline_folder",
    "prior_outline",
}
SIMULATED = {"object", "seed", "world"}


@pytest.mark.parametrize("name", NODES)
def test_every_argument_is_described(name):
    arguments = {argument.name: argument for argument in described(name).get_launch_arguments()}
    assert set(arguments) >= COMMON | (SIMULATED if name == "simulation" else set())
    assert name == "simulation" or not SIMULATED & set(arguments)
    for argument in arguments.values():
        assert argument.description.endswith(".")
        assert argument.default_value is not None  # every argument may be left out


@pytest.mark.parametrize("name", NODES)
def test_every_objective_and_planner_is_described(name):
    """Also those that know the true object, with where they may be used."""
    arguments = {
        argument.name: argument.description for argument in described(name).get_launch_arguments()
    }
    words = set(re.findall(r"\w+", arguments["objective"]))
    assert words >= {*OBJECTIVES, EXPECTED, *TRUTH_OBJECTIVES, "OS", "OSM", "simulate"}
    assert set(re.findall(r"\w+", arguments["planner"])) >= set(PLANNERS)


@pytest.mark.parametrize("name", NODES)
def test_nodes_get_the_parameter_file_and_little_else_by_default(name):
    found = nodes(name)
    assert list(found) == NODES[name]
    for executable, node in found.items():
        files, overrides = files_of(node), parameters(node)
        assert [Path(file).name for file in files[:-1]] == [
            "robot.yaml" if name == "planner" else "simulation.yaml"
        ]
        assert Path(files[0]).is_file()
        folder = overrides.pop("outline_folder", "")
        assert (
            re.fullmatch(r"launch_\d{8}_\d{6}", Path(folder).name)
            if executable == "surface_mapper"
            else not folder
        )
        assert overrides == {"use_sim_time": False}
        assert node.node_package == "nbv_planner"
        assert node.node_name == f"/{executable}"


def test_arguments_reach_the_nodes_they_are_for():
    found = nodes(
        "simulation",
        namespace="arm",
        object="ellipse:a=6,b=4",
        objective="U",
        planner="greedy",
        seed="3",
        use_sim_time="true",
        exit_when_done="true",
        radius_max="0.1",
        noise_std="0.001",
        max_views="7",
        view_space="annulus",
        outline_folder="/tmp/out",
        prior_outline="/tmp/below/outline.csv",
    )
    said = {executable: parameters(node) for executable, node in found.items()}
    assert said == {
        "depth_camera": {
            "use_sim_time": True,
            "object": "ellipse:a=6,b=4",
            "seed": 3,
            "radius_max": 0.1,
            "noise_std": 0.001,
        },
        "surface_mapper": {
            "use_sim_time": True,
            "radius_max": 0.1,
            "noise_std": 0.001,
            "outline_folder": "/tmp/out",
            "prior_outline": "/tmp/below/outline.csv",
        },
        "nbv_planner": {
            "use_sim_time": True,
            "objective": "U",
            "planner": "greedy",
            "exit_when_done": True,
            "radius_max": 0.1,
            "max_views": 7,
            "view_space": "annulus",
        },
    }
    assert all(node.node_name == f"/arm/{executable}" for executable, node in found.items())


def test_files_of_map_and_world_reach_all_that_know_them_as_whole_paths(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = nodes("simulation", map="hall/map.yaml", world="world.yaml")
    said = {executable: parameters(node) for executable, node in found.items()}
    assert [values["ground_map"] for values in said.values()] == 3 * [
        str(tmp_path / "hall" / "map.yaml")
    ]
    worlds = {executable: values.get("world_file") for executable, values in said.items()}
    assert worlds == {
        "depth_camera": str(tmp_path / "world.yaml"),
        "surface_mapper": None,
        "nbv_planner": None,
    }


@pytest.mark.parametrize(
    "given", [{"view_space": "annulus"}, {"max_views": "7"}, {"noise_std": "0.1"}]
)
def test_an_argument_that_chooses_no_planner_leaves_that_of_the_file(given):
    assert "planner" not in parameters(nodes("simulation", **given)["nbv_planner"])
    assert (
        parameters(nodes("simulation", objective="U", **given)["nbv_planner"])["planner"]
        == "greedy"
    )


def test_every_node_gets_an_enclave_of_its_own_when_asked_for():
    def words(node: Node) -> list[str]:
        return [
            "".join(part.text for part in token)
            for token in node.cmd
            if all(hasattr(p, "text") for p in token)
        ]

    assert not any("--enclave" in words(node) for node in nodes("simulation").values())
    for executable, node in nodes("simulation", enclave="/robot/").items():
        found = words(node)
        assert found[found.index("--enclave") + 1] == f"/robot/{executable}"
        assert found.index("--ros-args") < found.index("--enclave")


def values_of(file: str, section: str = "/**") -> dict:
    return yaml.safe_load(Path(file).read_text())[section]["ros__parameters"]


@pytest.mark.parametrize("name", NODES)
def test_another_parameter_file_is_laid_over_the_shipped_one(tmp_path, name):
    """Whose values stand under `/**`, so that every section of the later file wins."""
    file = tmp_path / "mine.yaml"
    file.write_text("nbv_planner: {ros__parameters: {max_views: 3}}\n")
    shipped = str(ROOT / "config" / ("robot.yaml" if name == "planner" else "simulation.yaml"))
    for node in nodes(name, params_file=str(file)).values():
        first, second = files_of(node)[:-1]
        assert second == str(file)
        assert values_of(first) == values_of(shipped)


@pytest.mark.parametrize(
    ("text", "given", "planner"),
    [
        ("nbv_planner: {ros__parameters: {objective: U}}", {}, "greedy"),
        ("/**: {ros__parameters: {planner: hybrid}}", {}, "hybrid"),
        ("/**: {ros__parameters: {seed: 3}}", {"objective": "U"}, "greedy"),
        ("/**: {ros__parameters: {planner: uniform}}", {"objective": "U"}, "uniform"),
        ("amcl: {ros__parameters: {rate: 3}}", {}, "rollout"),
    ],
)
def test_the_planner_is_that_of_the_shipped_file_unless_the_file_or_the_arguments_choose_one(
    tmp_path, text, given, planner
):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    node = nodes("simulation", params_file=str(file), **given)["nbv_planner"]
    assert {**values_of(files_of(node)[0]), **parameters(node)}["planner"] == planner


def test_nodes_keep_their_state_in_a_folder_and_are_started_again_when_asked_for(tmp_path):
    plain = nodes("simulation")
    assert not any(node._ExecuteLocal__respawn for node in plain.values())
    found = nodes(
        "simulation", respawn="true", state_folder=str(tmp_path / "state"), episode="monday"
    )
    assert all(node._ExecuteLocal__respawn for node in found.values())
    folder = tmp_path / "state"
    assert folder.is_dir()
    said = {executable: parameters(node) for executable, node in found.items()}
    assert {values["episode"] for values in said.values()} == {"monday"}
    assert said["surface_mapper"]["map_file"] == str(folder / "map.jsonl")
    assert said["nbv_planner"]["state_file"] == str(folder / "session.jsonl")
    assert said["depth_camera"]["state_file"] == str(folder / "camera.jsonl")


def test_the_outline_goes_where_argument_or_file_say_or_nowhere(tmp_path):
    def folder(**given: str) -> object:
        return parameters(nodes("planner", **given)["surface_mapper"]).get("outline_folder")

    file = tmp_path / "mine.yaml"
    file.write_text("surface_mapper: {ros__parameters: {outline_folder: there}}\n")
    assert folder(outline_folder=str(tmp_path)) == str(tmp_path)
    assert folder(outline_folder="") is None
    assert folder(params_file=str(file)) is None  # as in the file
    assert folder(params_file=str(file), outline_folder=str(tmp_path)) == str(tmp_path)


def test_without_a_name_each_launch_is_an_episode_of_its_own(tmp_path):
    said = [parameters(node) for node in nodes("planner", state_folder=str(tmp_path)).values()]
    assert {values["episode"] for values in said} == {said[0]["episode"]}
    assert said[0]["episode"].startswith("launch ")


@pytest.mark.parametrize("name", NODES)
def test_rviz_starts_only_when_asked_for_and_in_the_namespace_of_the_nodes(name):
    assert "rviz2" not in nodes(name)
    found = nodes(name, rviz="true", namespace="arm", use_sim_time="true")
    assert list(found) == [*NODES[name], "rviz2"]
    rviz = found["rviz2"]
    assert rviz.node_package == "rviz2"
    assert rviz.node_name == "/arm/rviz"
    assert parameters(rviz) == {"use_sim_time": True}
    command = [part for token in rviz.cmd for part in (getattr(t, "text", "") for t in token)]
    config = command[command.index("--display-config") + 1]
    assert Path(config) == ROOT / "rviz" / "nbv_planner.rviz"
    assert rviz._ExecuteLocal__on_exit is None  # closing the window ends nothing else


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rviz": "yes"}, ["rviz", "yes", "true or false"]),
        ({"params_file": "/nowhere.yaml"}, ["params_file", "/nowhere.yaml"]),
        ({"use_sim_time": "maybe"}, ["use_sim_time", "maybe", "true or false"]),
        ({"exit_when_done": "1"}, ["exit_when_done", "1", "true or false"]),
        ({"respawn": "always"}, ["respawn", "always", "true or false"]),
        ({"seed": "one"}, ["seed", "one", "integer"]),
        ({"radius_max": "big"}, ["radius_max", "big", "a number"]),
        ({"room": "walls.yaml"}, ["room:= is now world:="]),
    ],
)
def test_wrong_argument_is_refused_by_name(given, words):
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        nodes("simulation", **given)
    assert [word for word in words if word not in str(caught.value)] == []


# For real: a process with the launch service starts the nodes of this checkout (fixtures in
# conftest.py).


def test_simulation_runs_in_a_namespace_and_ends_by_itself(launch, fast):
    process, output = launch(
        "simulation", fast, "exit_when_done:=true", "namespace:=arm", "object:=square:width=8"
    )
    code = process.wait(180)
    said = output.read_text()
    assert code == 0, said
    assert "DONE: MAX_VIEWS" in said
    assert said.count("process has finished cleanly") == 3
    assert "Traceback" not in said


def test_a_solid_is_reconstructed_and_written_in_the_end(launch, tmp_path):
    process, output = launch(
        "solid",
        "exit_when_done:=true",
        "max_views:=3",
        "object:=solid:box",
        f"outline_folder:={tmp_path}",
    )
    code = process.wait(180)
    said = output.read_text()
    assert code == 0, said
    assert re.search("DONE: (MAX_VIEWS|COVERED)", said), said
    assert "Traceback" not in said
    assert list(tmp_path.glob("*.stl")), said


def test_a_planner_of_an_installed_package_is_launched_by_its_name(
    launch, launch_environment, fast, tmp_path
):
    site = tmp_path / "site"
    shutil.copytree(ROOT / "examples" / "plugin", tmp_path / "source")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        site,
    ]
    subprocess.run([*pip, tmp_path / "source"], check=True, stdout=subprocess.DEVNULL)
    launch_environment["PYTHONPATH"] += f"{os.pathsep}{site}"
    file = Path(fast.partition(":=")[2])
    file.write_text(
        file.read_text() + "/nbv_planner: {ros__parameters: {farthest.travel_weight: 0.125}}\n"
    )
    bag = tmp_path / "bag"
    process, output = launch(
        "simulation",
        fast,
        "planner:=farthest",
        "exit_when_done:=true",
        "record:=true",
        f"bag_path:={bag}",
    )
    assert process.wait(180) == 0, output.read_text()
    told = [
        decode(message).data
        for message in Bag(bag).messages(lambda topic: topic.name == "/run_info")
    ]
    found = next(yaml.safe_load(text) for text in told if "planner: farthest" in text)
    assert "farthest.travel_weight: 0.125" in yaml.safe_dump(found), (
        "declared as a parameter of the node"
    )
    assert "DONE: MAX_VIEWS" in output.read_text()


def test_nodes_take_what_the_file_names_and_else_what_is_shipped(launch, tmp_path):
    """Also under `/**`, which to ROS alone is less than a node's own section in an earlier file."""
    file, state = tmp_path / "mine.yaml", tmp_path / "state"
    file.write_text(
        "/**: {ros__parameters: {num_views: 24, grid_size: 120, max_views: 2, num_beams: 61}}\n"
    )
    process, output = launch(
        "simulation",
        f"params_file:={file}",
        "exit_when_done:=true",
        "record:=true",
        f"state_folder:={state}",
        f"bag_path:={tmp_path / 'bag'}",
    )
    assert process.wait(180) == 0, output.read_text()
    found = analyse(Bag(tmp_path / "bag")).recording.log.parameters.nodes
    assert (found["nbv_planner"]["planner"], found["nbv_planner"]["certify"]) == ("rollout", True)
    assert (found["nbv_planner"]["num_views"], found["nbv_planner"]["max_views"]) == (24, 2)
    folder = Path(re.search(r"the outline is in (\S+)/outline\.csv, ", output.read_text())[1])
    assert {path.name for path in folder.iterdir()} == {
        "outline.csv",
        "outline.geojson",
        "outline.dxf",
        "map.yaml",
        "map.pgm",
    }
    assert (found["surface_mapper"]["grid_size"], found["surface_mapper"]["robust"]) == (120, True)
    assert found["depth_camera"]["num_beams"] == 61
    assert not list((tmp_path / "temporary").glob("shipped_*"))  # what the nodes were started with


@pytest.mark.parametrize(
    ("argument", "word"), [("object:=cube", "cube"), ("objective:=XYZ", "XYZ")]
)
def test_launch_that_should_end_by_itself_fails_with_the_node_that_fails(
    launch, fast, argument, word
):
    process, output = launch("simulation", fast, "exit_when_done:=true", argument)
    code = process.wait(180)
    said = output.read_text()
    assert code == 1, said
    assert word in said
    assert "exit code 2" in said


def test_a_killed_mapper_is_started_again_and_the_episode_goes_on(launch, fast, tmp_path):
    # leaves time to kill the mapper on the way
    with Path(fast.partition(":=")[2]).open("a") as file:
        file.write("/**/depth_camera: {ros__parameters: {angular_speed: 1.0}}\n")
    arguments = ("exit_when_done:=true", "respawn:=true", f"state_folder:={tmp_path / 'state'}")
    process, output = launch("simulation", fast, *arguments)
    deadline = time.monotonic() + 180
    while "to view 2" not in output.read_text():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.02)
    pids = re.findall(
        r"surface_mapper-\d+\]: process started with pid \[(\d+)\]", output.read_text()
    )
    os.kill(int(pids[0]), signal.SIGKILL)
    code = process.wait(180)
    said = output.read_text()
    assert code == 0, said
    assert len(re.findall(r"surface_mapper-\d+\]: process started", said)) == 2
    assert "resumed from" in said
    assert "DONE: MAX_VIEWS: 3 views taken" in said


@pytest.mark.parametrize("ends", ["true", "false"])
def test_a_node_that_refuses_its_parameters_is_not_started_over_and_over(launch, fast, ends):
    process, output = launch(
        "simulation", fast, f"exit_when_done:={ends}", "respawn:=true", "object:=cube"
    )
    assert process.wait(180) == 1, output.read_text()
    assert "refused its parameters" in output.read_text()


def test_ctrl_c_ends_everything_cleanly(launch):
    process, output = launch("simulation")
    deadline = time.monotonic() + 180
    while "MOVING: to view" not in output.read_text():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code = process.wait(180)
    said = output.read_text()
    assert code == 0, said
    assert said.count("process has finished cleanly") == 3
    assert "Traceback" not in said
