"""The topics by which the nodes know each other, without ROS: what is recorded, and found again in a bag."""

from __future__ import annotations

from dataclasses import dataclass

SCAN = "scan"
CAMERA_POSE = "camera_pose"
GOAL_POSE = "goal_pose"
SURFACE = "surface"
CANDIDATES = "nbv_planner/candidates"
ITERATION = "nbv_planner/iteration"
STATUS = "nbv_planner/status"
GROUND_TRUTH = "ground_truth/surface"
RUN_INFO = "run_info"
DIAGNOSTICS = "/diagnostics"

LASER_SCAN = "sensor_msgs/msg/LaserScan"
POINT_CLOUD = "sensor_msgs/msg/PointCloud2"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
DIAGNOSTIC_STATUS = "diagnostic_msgs/msg/DiagnosticStatus"
DIAGNOSTIC_ARRAY = "diagnostic_msgs/msg/DiagnosticArray"
STRING = "std_msgs/msg/String"


@dataclass(frozen=True)
class RecordedTopic:
    """A topic that is recorded.

    Attributes:
        name: relative to the namespace of the nodes; an absolute one is the same in every namespace.
        type: message type.
        latched: whether who joins late gets the last messages (transient local).
        depth: messages that a recorder asks for, or that wait for it.
    """

    name: str
    type: str
    latched: bool = False
    depth: int = 1000

    def full_name(self, namespace: str) -> str:
        """Name in a namespace, which may be empty."""
        prefix = namespace.strip("/")
        return self.name if self.name.startswith("/") else f"/{prefix}/{self.name}" if prefix else f"/{self.name}"


RECORDED_TOPICS = (
    RecordedTopic(SCAN, LASER_SCAN),
    RecordedTopic(CAMERA_POSE, POSE_STAMPED),
    RecordedTopic(GOAL_POSE, POSE_STAMPED),
    RecordedTopic(SURFACE, POINT_CLOUD, latched=True, depth=100),
    RecordedTopic(CANDIDATES, POINT_CLOUD, latched=True, depth=100),
    RecordedTopic(ITERATION, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(STATUS, DIAGNOSTIC_STATUS, latched=True, depth=100),
    RecordedTopic(GROUND_TRUTH, POINT_CLOUD, latched=True, depth=1),
    RecordedTopic(RUN_INFO, STRING, latched=True, depth=10),
    RecordedTopic(DIAGNOSTICS, DIAGNOSTIC_ARRAY),
)
"""Everything from which an episode can be understood afterwards."""
