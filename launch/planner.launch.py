"""Surface mapper and planner on a real robot, with its own camera and motion stack."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    return description("robot.yaml", PLANNING)
