"""`python -m campaigns faults`: the three real processes, killed in the middle of an episode."""

from __future__ import annotations

import json

import pytest
from command import start

from campaigns.__main__ import main

SMALL = """\
time_limit: 60
parameters:
  all: {position_tolerance: 1.0e-6, heading_tolerance: 1.0e-7}
  depth_camera: {noise_std: 0.0, num_beams: 61, scan_rate: 20.0, angular_speed: 6.0}
  surface_mapper: {noise_std: 0.05, grid_size: 200, input_timeout: 2.0}
  nbv_planner: {objective: U, num_views: 40, max_views: 6, stall_views: 0, input_timeout: 2.0}
cases:
  kills:
    expect_reference: true
    faults:
      - {kind: kill, node: surface_mapper, at: 0.3}
      - {kind: kill, node: nbv_planner, at: 0.6}
      - {kind: kill, node: depth_camera, at: 0.9}
      - {kind: corrupt, topic: camera_pose, probability: 0.2}
"""


def test_three_kills_in_one_episode_change_neither_its_views_nor_its_surface(tmp_path):
    pytest.importorskip(
        "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
    )
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    process = start(["faults", "small.yaml", "--out", "out"], tmp_path, module="campaigns.__main__")
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert "2 of 2 runs without violations" in said
    account = json.loads((tmp_path / "out" / "faults.json").read_text(encoding="utf-8"))
    reference, kills = account["runs"]
    assert reference["reason"] == kills["reason"] == "MAX_VIEWS"
    assert (len(kills["visited"]), kills["visited"]) == (6, reference["visited"])
    assert kills["digest"] == reference["digest"]
    assert kills["happened"]["kill"] == 3
    assert all(recovery["seconds"] > 0.0 for recovery in kills["recoveries"])
    assert kills["happened"]["corrupt"] > 0
    assert (
        sum(
            number for reason, number in kills["drops"].items() if reason.startswith("camera_pose.")
        )
        > 0
    )
    assert (
        "| `kills` | 1 | 1 of 1; 1 same as reference |"
        in (tmp_path / "out" / "faults.md").read_text()
    )


def test_a_scenario_that_is_not_allowed_is_refused_with_file_and_line(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text(
        SMALL.replace("node: nbv_planner", "node: planner"), encoding="utf-8"
    )
    assert main(["faults", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert "bad.yaml, line 12" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
