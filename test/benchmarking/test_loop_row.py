"""Figures of the loop over DDS become flat rows."""

from __future__ import annotations

import json
import sys

import pytest

from nbv_planner.benchmarking.loop import dds_loop_rows, loop_row
from nbv_planner.errors import RosUnavailableError

FIGURES = {
    "rate_hz": 40.0, "mapped": float("nan"), "scan_to_goal_ms": {"median": 5.0, "p99": 12.0}, "update_ms": {},
    "nodes": {"surface_mapper": {"rss_start_mb": 100.0, "rss_end_mb": 100.5}, "nbv_planner": {
        "rss_start_mb": 90.0, "rss_end_mb": 89.0}},
}


def test_nested_figures_get_dotted_names_and_growth():
    row = loop_row(FIGURES)
    assert row["scan_to_goal_ms.p99"] == 12.0
    assert row["nodes.surface_mapper.rss_growth_mb"] == 0.5
    assert row["nodes.nbv_planner.rss_growth_mb"] == -1.0
    assert row["mapped"] is None
    assert not any(isinstance(value, dict) for value in row.values())
    json.dumps(row, allow_nan=False)


def test_without_ros_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy.executors", None)
    monkeypatch.delitem(sys.modules, "nbv_planner.ros.loop_benchmark", raising=False)
    with pytest.raises(RosUnavailableError, match=r"source a ROS 2 installation.*the other parts need no ROS"):
        dds_loop_rows((10.0,), 1.0, 0.0)
