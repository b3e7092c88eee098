"""A recorded bag, played by `ros2 bag play`, through surface mapper and planner again."""

from launch import LaunchDescription
from nbv_planner.ros.launch_support import replay_description


def generate_launch_description() -> LaunchDescription:
    return replay_description()
