"""Surface mapper and planner beside any simulator, whose topics may have other names."""

from launch import LaunchDescription
from nbv_planner.ros.launch_wirings import simulator_description


def generate_launch_description() -> LaunchDescription:
    return simulator_description()
