"""Executables of nodes that are called as if they were the command; no ROS is needed for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nbv_planner.ros import executables

NAMES = ("depth_camera", "surface_mapper", "nbv_planner", "turntable", "scan_maker")


def called(monkeypatch, name: str, *words: str) -> int | str | None:
    """Call the executable; gives its exit code."""
    monkeypatch.setattr(sys, "argv", [f"/opt/bin/{name}", *words])
    with pytest.raises(SystemExit) as ended:
        getattr(executables, name)()
    return ended.value.code


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["--ros-args", "-p", "a:=1", "--", "--help"]]
)
def test_help_says_that_it_is_a_node_and_names_the_command(monkeypatch, capsys, name, words):
    assert called(monkeypatch, name, *words) == 0
    said = capsys.readouterr()
    for word in (
        f"{name} is a ROS 2 node",
        f"ros2 run nbv_planner {name} --ros-args",
        "ros2 launch nbv_planner",
        "docs/reference/parameters.md",
        "nbv-planner --help",
    ):
        assert word in said.out, said.out
    assert said.err == ""
    assert len(said.out.splitlines()) <= 8


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["demo"], "demo"),
        (["--object", "star"], "--object"),
        (["-p", "a:=1"], "-p"),
        (["--ros-args", "-r", "__node:=n", "--", "demo"], "demo"),
    ],
)
def test_other_arguments_are_refused_with_code_2_and_the_command(monkeypatch, capsys, words, wrong):
    assert called(monkeypatch, "nbv_planner", *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"nbv_planner: error: unexpected argument {wrong!r}")
    assert said.err.count("\n") == 1
    assert "nbv-planner" in said.err
    assert "--ros-args" in said.err


def test_what_launch_gives_reaches_the_node(monkeypatch):
    words = ["--ros-args", "-r", "__node:=n", "--params-file", "--help", "-r", "__ns:=/a"]
    monkeypatch.setattr(executables, "_start", lambda name: sys.exit(f"started {name}"))
    assert called(monkeypatch, "nbv_planner", *words) == "started nbv_planner"
    assert called(monkeypatch, "nbv_planner") == "started nbv_planner"


def test_help_waits_for_nothing_and_loads_no_ros():
    script = (
        "import sys; sys.argv[1:] = ['--help']; sys.modules['rclpy'] = None\n"
        "from nbv_planner.ros.executables import nbv_planner; nbv_planner()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
