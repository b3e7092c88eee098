"""Where ROS is installed and nothing by pip, bags are read by the message classes of ROS."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import messages, write

import nbv_planner

# None among the modules is one that cannot be found.
COMMAND = "import sys; from nbv_planner.cli.main import main; sys.exit(main(sys.argv[1:]))"
WITHOUT = f"import sys; sys.modules['rosbags'] = None; {COMMAND}"


def run(code: str, *arguments: str, code_expected: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(nbv_planner.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code_expected, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_bag_is_analysed_and_replayed_as_with_rosbags(tmp_path):
    bag = str(write(tmp_path / "bag", messages()))
    for name, code in (("with", COMMAND), ("without", WITHOUT)):
        run(code, "analyze", bag, "--no-figures", "--out", str(tmp_path / name))
        said = run(code, "bag", "replay", bag, "--out", str(tmp_path / f"{name}_replay"))
        assert "all 4 decisions are the same" in said
    for file in ("views.csv", "outline.csv", "tables/views.csv"):
        with_it, without = ((tmp_path / name / file) for name in ("with", "without"))
        if with_it.exists():
            assert with_it.read_bytes() == without.read_bytes(), file
    assert (tmp_path / "with" / "views.csv").exists()


def test_what_writes_a_bag_says_what_does_it_without(tmp_path):
    bag = str(write(tmp_path / "bag", messages()))
    said = run(WITHOUT, "bag", "reindex", bag, "--out", str(tmp_path / "copy"), code_expected=2)
    assert "recording needs rosbags; or use ros2 bag record" in said
    assert not (tmp_path / "copy").exists()
