"""Surface mapper, planner and turntable: a fixed sensor, and a table that turns the object."""

from launch import LaunchDescription
from nbv_planner.ros.launch_wirings import turntable_description


def generate_launch_description() -> LaunchDescription:
    return turntable_description()
