"""Surface mapper and planner alongside any simulator, whose topics may have other names."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    return description("simulator.yaml", PLANNING, ["scan", "camera_pose", "goal_pose"])
