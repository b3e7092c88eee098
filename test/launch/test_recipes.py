"""The launch commands of examples/ as they stand, each with its robot: whole episodes."""

from __future__ import annotations

import re
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

from nbv_planner.system import python_command

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "test" / "ros"))


def command(recipe: str) -> list[str]:
    """Arguments of the launch command of a README, with the file by its full name."""
    text = (ROOT / "examples" / recipe / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(
        r"^ros2 launch nbv_planner planner.launch.py ((?:.*\\\n)*.*)$", text, re.MULTILINE
    )
    return found.replace("\\\n", " ").replace("params_file:=", f"params_file:={ROOT}/").split()


@pytest.mark.parametrize(
    ("recipe", "robot", "needs"),
    [
        ("depth_camera_robot", "depth", "launch_ros"),
        ("lidar_robot", "lidar_tf", "tf2_ros"),
    ],
)
def test_the_command_of_the_recipe_reconstructs_the_object(
    launch, launch_environment, recipe, robot, needs, tmp_path
):
    pytest.importorskip(needs, reason="tf2_ros is not on PyPI: this runs where ROS 2 is installed")
    file = tmp_path / "start.yaml"
    # The recipe itself, which waits for ~/start on a robot.
    text = (ROOT / "examples" / recipe / "params.yaml").read_text()
    file.write_text(text + "    wait_for_start: false\n")
    arguments = [word for word in command(recipe) if not word.startswith("params_file")]
    with (tmp_path / "robot.txt").open("wb") as output:
        rover = subprocess.Popen(
            [*python_command("other_robots"), robot],
            env=launch_environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    try:
        process, output = launch(
            "planner", f"params_file:={file}", *arguments, "exit_when_done:=true"
        )
        deadline = time.monotonic() + 300
        while process.poll() is None:
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.2)
    finally:
        rover.send_signal(signal.SIGTERM)
        rover.wait(60)
    said = output.read_text()
    assert process.returncode == 0, said
    assert re.search(r"DONE: (COVERED|BAND_NARROW)", said), said
    assert "Traceback" not in said
