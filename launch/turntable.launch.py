"""Surface mapper, planner and turntable: a fixed sensor, and a table that turns the object."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    return description(
        "turntable.yaml", ["turntable", *PLANNING], ["scan", "joint_states", "joint_command"]
    )
