"""Surface mapper and planner alongside Nav2: poses from transforms, goals to bt_navigator."""

from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from nbv_planner.ros.launch import PLANNING, description

PLACE = {
    "map_frame": ("map", "Frame in which the position of the object is given."),
    "object_frame": ("object", "Frame of the object; as in params_file."),
    "object_x": ("0.0", "Position of the object's centre, metres."),
    "object_y": ("0.0", "Position of the object's centre, metres."),
    "object_yaw": ("0.0", "Heading of the object's frame, radians."),
}
OPTIONS = {
    "--x": "object_x",
    "--y": "object_y",
    "--yaw": "object_yaw",
    "--frame-id": "map_frame",
    "--child-frame-id": "object_frame",
}


def generate_launch_description() -> LaunchDescription:
    words = [
        word for option, name in OPTIONS.items() for word in (option, LaunchConfiguration(name))
    ]
    transform = Node(
        package="tf2_ros",
        executable="static_transform_publisher",
        name="object_place",
        output="screen",
        arguments=words,
    )
    return description(
        "nav2.yaml", PLANNING, ["scan", "goal_pose"], arguments=PLACE, beside=[transform]
    )
