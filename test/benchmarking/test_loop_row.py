"""Figures of the loop over DDS become flat rows."""

from __future__ import annotations

import json

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from benchmarks.loop import loop_row

FIGURES = {
    "rate_hz": 40.0,
    "mapped": float("nan"),
    "scan_to_goal_ms": {"median": 5.0, "p99": 12.0},
    "update_ms": {},
    "nodes": {
        "surface_mapper": {"rss_start_mb": 100.0, "rss_end_mb": 100.5},
        "nbv_planner": {"rss_start_mb": 90.0, "rss_end_mb": 89.0},
    },
}


def test_nested_figures_get_dotted_names_and_growth():
    row = loop_row(FIGURES)
    assert row["scan_to_goal_ms.p99"] == 12.0
    assert row["nodes.surface_mapper.rss_growth_mb"] == 0.5
    assert row["nodes.nbv_planner.rss_growth_mb"] == -1.0
    assert row["mapped"] is None
    assert not any(isinstance(value, dict) for value in row.values())
    json.dumps(row, allow_nan=False)
