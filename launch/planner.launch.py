"""Surface mapper and planner on a real robot, which brings its own camera and motion."""

from launch import LaunchDescription
from nbv_planner.ros.launch_support import description


def generate_launch_description() -> LaunchDescription:
    return description("robot.yaml", ["surface_mapper", "nbv_planner"])
