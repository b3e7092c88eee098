"""Where ROS is installed and nothing by pip, bags are read by the message classes of ROS."""

from __future__ import annotations

import json
import os
import re
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
from nbv_planner.cli.main import main

# None among the modules is one that cannot be found.
WITHOUT = """
import json, sys
sys.modules["rosbags"] = None
from nbv_planner.cli.main import main
for words in json.load(sys.stdin):
    print("ended with", main(words), flush=True)
"""


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """Return a bag; the results of what is done with it lie beside it."""
    return write(tmp_path_factory.mktemp("both") / "bag", messages())


def commands(bag, name):
    """What is done with the bag, with and without."""
    place = str(bag.parent / name)
    return [
        ["analyze", str(bag), "--no-figures", "--out", place],
        ["bag", "replay", str(bag), "--out", f"{place}_replay"],
    ]


@pytest.fixture(scope="module")
def without(bag):
    """What a process that has no rosbags says of the bag, command by command."""
    reindex = ["bag", "reindex", str(bag), "--out", str(bag.parent / "copy")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        env={**os.environ, "PYTHONPATH": str(Path(nbv_planner.__file__).parents[1])},
        input=json.dumps([*commands(bag, "without"), reindex]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return re.split(r"ended with (\d)\n", done.stdout)


def test_a_bag_is_analysed_and_replayed_as_with_rosbags(bag, without, capsys):
    assert (without[1], without[3]) == ("0", "0"), without
    assert "all 4 decisions are the same" in without[2]
    assert [main(words) for words in commands(bag, "with")] == [0, 0]
    assert "all 4 decisions are the same" in capsys.readouterr().out
    for file in ("views.csv", "outline.csv", "tables/views.csv"):
        with_it, alone = ((bag.parent / name / file) for name in ("with", "without"))
        if with_it.exists():
            assert with_it.read_bytes() == alone.read_bytes(), file
    assert (bag.parent / "with" / "views.csv").exists()


def test_what_writes_a_bag_says_what_does_it_without(bag, without):
    assert without[5] == "2", without
    assert "recording needs rosbags; or use ros2 bag record" in without[4]
    assert not (bag.parent / "copy").exists()
