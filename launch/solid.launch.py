"""All three nodes in space: the simulated depth camera, the surface mapper and the planner."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    return description("space/solid.yaml", ["depth_camera", *PLANNING])
