"""All three nodes: the simulated depth camera, the surface mapper and the planner."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    return description("simulation.yaml", ["depth_camera", *PLANNING])
