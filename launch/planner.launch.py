"""Surface mapper and planner on a real robot, with its own camera and motion stack."""

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description


def generate_launch_description() -> LaunchDescription:
    topics = [
        "scan",
        "camera_pose",
        "goal_pose",
        "/tf",
        "/tf_static",
        "image",
        "camera_info",
        "points",
        "echoes",
    ]
    return description("robot.yaml", PLANNING, topics)
