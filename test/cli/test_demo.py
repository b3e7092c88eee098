"""`nbv-planner demo` for real: three processes over DDS, from the command line to the results
folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import time

import command
import pytest

from nbv_planner.cli.demo import lead
from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import load_parameters, shared_file

HAS_ROS = importlib.util.find_spec("rclpy") is not None
needs_ros = pytest.mark.skipif(
    not HAS_ROS, reason="rclpy is not installed; make test brings the wheels"
)
SHIPPED = shared_file("config/simulation.yaml")
LONG = """\
/**/nbv_planner:
  ros__parameters: {stall_views: 0, max_views: 0}
/**/depth_camera: {ros__parameters: {angular_speed: 3.0}}
"""


def record(folder) -> dict:
    return json.loads((folder / "episode.json").read_text(encoding="utf-8"))


def node_pids(said: str) -> dict[str, int]:
    names = r"depth_camera|surface_mapper|nbv_planner"
    return {name: int(pid) for name, pid in re.findall(rf"\b({names}) (\d+)", said)}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def assert_all_ended(pids: dict[str, int]) -> None:
    assert set(pids) == {"depth_camera", "surface_mapper", "nbv_planner"}
    deadline = time.monotonic() + 60.0
    while any(map(is_alive, pids.values())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [name for name, pid in pids.items() if is_alive(pid)]


@pytest.mark.skipif(HAS_ROS, reason="rclpy is installed, so the demo finds it")
def test_without_ros_the_demo_says_what_to_install(here, capsys):
    assert main(["demo", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(word in said.err for word in ("rclpy", "pip install '.[ros]'", "simulate"))
    assert list(here.iterdir()) == []


def test_the_demo_leads_the_nodes_whatever_its_file_says():
    parameters = {
        "depth_camera": {"autostart": False},
        "surface_mapper": {},
        "nbv_planner": {"wait_for_start": False},
    }
    lead(parameters)
    assert parameters == {
        "depth_camera": {},
        "surface_mapper": {},
        "nbv_planner": {"wait_for_start": True},
    }


@needs_ros
def test_demo_runs_to_its_end_and_takes_the_views_of_the_simulation(
    tmp_path, monkeypatch, fast_file, capsys
):
    options = [
        "--object",
        "square:width=8",
        "--objective",
        "UP",
        "--seed",
        "5",
        "--params-file",
        fast_file,
    ]
    options += ["--set", "noise_std=0.15"]
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *options, "--out", "demo"]) == 0
    said = capsys.readouterr().out
    assert_all_ended(node_pids(said))
    assert {path.name for path in tmp_path.iterdir()} == {"demo"}
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "beliefs.npz",
        "episode.json",
        "logs",
        "outline.csv",
        "outline.dxf",
        "outline.geojson",
        "parameters.yaml",
        "reconstruction.gif",
        "reconstruction.png",
        "views.csv",
    }
    assert {"depth_camera.log", "surface_mapper.log", "nbv_planner.log"} <= {
        path.name for path in (tmp_path / "demo" / "logs").iterdir()
    }
    parameters = load_parameters(tmp_path / "demo" / "parameters.yaml")
    named = {"num_beams": 61, "object": "square:width=8", "seed": 5, "noise_std": 0.15}
    assert parameters["depth_camera"] == {**load_parameters(SHIPPED)["depth_camera"], **named}
    assert parameters["surface_mapper"]["noise_std"] == 0.15
    assert parameters["nbv_planner"]["objective"] == "UP"

    assert main(["simulate", *options, "--out", "simulation"]) == 0
    real, simulated = record(tmp_path / "demo"), record(tmp_path / "simulation")
    assert set(real) == set(simulated)
    assert real["termination"] == simulated["termination"]
    assert real["metrics"] == simulated["metrics"]
    assert real["config"] == simulated["config"]
    for a, b in zip(real["views"], simulated["views"], strict=True):
        assert (a["angle"], a["new_points"]) == (
            pytest.approx(b["angle"], abs=1e-12),
            b["new_points"],
        )
        assert a["objective_value"] == pytest.approx(b["objective_value"], rel=1e-6)
    for number, view in enumerate(real["views"], start=1):
        assert re.search(rf"^ +{number} .*{view['completeness']:.1%}", said, re.MULTILINE), said


@needs_ros
def test_two_ctrl_c_end_the_demo_cleanly_and_keep_what_was_seen(tmp_path):
    """Also in a folder in which lies what would pass for a library."""
    (tmp_path / "long.yaml").write_text(LONG)
    (tmp_path / "yaml.py").write_text("raise ImportError\n")
    process = command.start(["demo", "--params-file", "long.yaml", "--out", "demo"], tmp_path)
    said = command.read_until(process, "2 ")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 130, said + rest
    assert "ending, please wait" in rest
    assert "Traceback" not in rest
    assert_all_ended(node_pids(said))
    found = record(tmp_path / "demo")
    assert (found["termination"]["reason"], found["termination"]["detail"]) == ("STOPPED", "Ctrl-C")
    assert len(found["views"]) >= 2
    assert (tmp_path / "demo" / "reconstruction.png").stat().st_size > 0
    for log in (tmp_path / "demo" / "logs").glob("*.log"):
        assert "Traceback" not in log.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"demo", "long.yaml", "yaml.py"}


@needs_ros
def test_sigterm_keeps_the_same_though_nobody_reads_any_more_and_ends_the_bag(tmp_path):
    """As with `| tee`, which the signal ends too."""
    (tmp_path / "long.yaml").write_text(LONG)
    options = ["--no-figures", "--params-file", "long.yaml", "--out", "demo", "--record"]
    process = command.start(["demo", *options], tmp_path)
    said = command.read_until(process, "2 ")
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    assert process.wait(timeout=180) == 143
    assert_all_ended(node_pids(said))
    found = record(tmp_path / "demo")
    assert (found["termination"]["reason"], found["termination"]["detail"]) == (
        "STOPPED",
        "SIGTERM",
    )
    assert len(found["views"]) >= 2
    assert (tmp_path / "demo" / "bag" / "metadata.yaml").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"demo", "long.yaml"}


@needs_ros
def test_node_that_dies_ends_the_demo_as_failed(tmp_path):
    (tmp_path / "long.yaml").write_text(LONG)
    process = command.start(
        ["demo", "--no-figures", "--params-file", "long.yaml", "--out", "demo"], tmp_path
    )
    said = command.read_until(process, "1 ")
    os.kill(node_pids(said)["surface_mapper"], signal.SIGKILL)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 1, said + rest
    assert_all_ended(node_pids(said))
    ended = record(tmp_path / "demo")["termination"]
    assert ended["reason"] == "FAILED"
    assert "surface_mapper" in ended["detail"]
    assert "-9" in ended["detail"]


@needs_ros
def test_node_that_dies_is_started_again_on_request_and_no_view_is_lost(tmp_path):
    (tmp_path / "short.yaml").write_text(LONG.replace("max_views: 0", "max_views: 4"))
    options = ["--no-figures", "--params-file", "short.yaml", "--out", "demo", "--respawn"]
    process = command.start(["demo", *options], tmp_path)
    said = command.read_until(process, "1 ")
    os.kill(node_pids(said)["surface_mapper"], signal.SIGKILL)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 0, said + rest
    episode = record(tmp_path / "demo")
    assert episode["termination"]["reason"] == "MAX_VIEWS"
    assert len(episode["views"]) == 4
    assert "resumed from" in (tmp_path / "demo" / "logs" / "surface_mapper.log").read_text()
    assert "state" not in (tmp_path / "demo" / "parameters.yaml").read_text()
