"""What the shipped layouts of RViz and Foxglove show: topics, types, values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def rviz(name: str) -> dict:
    """A layout of RViz."""
    return yaml.safe_load((ROOT / "rviz" / f"{name}.rviz").read_text(encoding="utf-8"))


def foxglove(name: str) -> dict:
    """A layout of Foxglove."""
    return json.loads((ROOT / "config" / "foxglove" / f"{name}.json").read_text(encoding="utf-8"))


MANAGER = rviz("nbv_planner")["Visualization Manager"]
DISPLAYS = {display["Name"]: display for display in MANAGER["Displays"] if "Topic" in display}
PANELS = foxglove("nbv_planner")["configById"]
SHOWS = {
    "MarkerArray": "visualization_msgs/msg/MarkerArray",
    "Pose": "geometry_msgs/msg/PoseStamped",
    "PointCloud2": "sensor_msgs/msg/PointCloud2",
    "LaserScan": "sensor_msgs/msg/LaserScan",
}
LIVE_ONLY = {"/markers", "/surface_mapper/deviation_markers"}
"""Shown while nodes run; made from what is recorded, so not recorded."""


def kind_of(display: dict) -> str:
    """Type of the messages that a display of RViz takes."""
    return SHOWS[display["Class"].removeprefix("rviz_default_plugins/")]


def plotted(panel: dict) -> list[tuple[str, str]]:
    """Topic and key of each curve of a plot."""
    found = [
        re.fullmatch(r'(/[\w/]+)\.values\[:\]\{key=="(\w+)"\}\.value', path["value"])
        for path in panel["paths"]
    ]
    return [match.groups() for match in found]
