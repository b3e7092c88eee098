"""Surface mapper and planner beside Nav2: poses from transforms, goals to bt_navigator."""

from launch import LaunchDescription
from nbv_planner.ros.launch_wirings import nav2_description


def generate_launch_description() -> LaunchDescription:
    return nav2_description()
