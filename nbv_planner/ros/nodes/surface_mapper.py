"""Node `surface_mapper`: scans and camera poses in, surface belief out."""

from __future__ import annotations

import sys
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.camera import MeasurementSettings, scan_to_measurements
from nbv_planner.episode_config import check_prior_mean
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.node_settings import NODE_SETTINGS, SurfaceMapperParameters
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode, run_node
from nbv_planner.ros.parameters import read_settings
from nbv_planner.scan_matching import ArrivalSettings, MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.scene import Scene
from nbv_planner.surface import MapperSettings, SurfaceMapper


class SurfaceMapperNode(BaseNode):
    """Conditions the surface model on the scans that count and publishes the belief.

    The prior is published as soon as a first scan has found its pose: a planner that sees a surface knows that the
    mapper's inputs are alive.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Read the parameters and open the topics."""
        super().__init__("surface_mapper", NODE_SETTINGS["surface_mapper"], **kwargs)
        self.scene = read_settings(self, Scene)
        self.measurement = read_settings(self, MeasurementSettings)
        self.parameters = read_settings(self, SurfaceMapperParameters)
        mapper = read_settings(self, MapperSettings)
        check_prior_mean(mapper, self.scene)
        self.mapper = SurfaceMapper(read_settings(self, KernelSettings).build(), mapper)
        self.matcher = ScanMatcher(read_settings(self, MatchingSettings), read_settings(self, ArrivalSettings))
        self._heard: dict[str, int] = {}
        self._update_milliseconds = 0.0
        self._views = 0
        self._published = False
        self._open_topics()

    def _open_topics(self) -> None:
        override = {"qos_overriding_options": qos.overridable()}
        self._surface = self.create_publisher(PointCloud2, "surface", qos.latched(), **override)
        for kind, topic, callback, profile in (
            (LaserScan, "scan", self.on_scan, qos.sensor_data()),
            (PoseStamped, "camera_pose", self.on_pose, qos.reliable()),
            (PoseStamped, "goal_pose", self.on_goal, qos.reliable()),
        ):
            self.create_subscription(kind, topic, self.guarded(topic, callback), profile, **override)
        self.create_service(Trigger, "~/reset", self.on_reset)

    def on_scan(self, msg: LaserScan) -> None:
        """Take in a scan."""
        conversions.check_frame(msg.header, self.parameters.camera_frame)
        scan = conversions.scan_from_msg(msg)
        self._heard["scan"] = self.now_ns()
        self.matcher.add_scan(conversions.to_nanoseconds(msg.header.stamp), scan)
        self._integrate()

    def on_pose(self, msg: PoseStamped) -> None:
        """Take in a camera pose."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        pose = conversions.pose_from_msg(msg)
        self._heard["camera_pose"] = self.now_ns()
        self.matcher.add_pose(conversions.to_nanoseconds(msg.header.stamp), pose)
        self._integrate()

    def on_goal(self, msg: PoseStamped) -> None:
        """Take in the goal at which scans count."""
        conversions.check_frame(msg.header, self.parameters.object_frame)
        goal = conversions.pose_from_msg(msg)
        self.matcher.set_goal(conversions.to_nanoseconds(msg.header.stamp), goal)
        self._integrate()

    def on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Forget all measurements and publish the prior."""
        self.mapper.reset()
        self.matcher.reset()
        self._views = 0
        self._publish(self.now_ns())
        response.success, response.message = True, "all measurements forgotten"
        return response

    def _integrate(self) -> None:
        """Condition on the scans of the goal, if they are all there, and publish."""
        taken = self.matcher.take()
        if taken:
            started = time.perf_counter()
            for number, match in enumerate(taken):
                self._add(match, same_view=number > 0)
            self._views += 1
            self._publish(taken[-1].stamp)
            self._update_milliseconds = 1e3 * (time.perf_counter() - started)
            self.publish_diagnostics()
        elif not self._published and self.matcher.matches:
            self._publish(0)

    def _add(self, match: MatchedScan, *, same_view: bool) -> None:
        found = scan_to_measurements(match.scan, match.pose, self.scene, self.measurement)
        self.mapper.add(found.measurements, same_view=same_view)
        for reason, number in found.dropped.items():
            self.drop(f"beam.{reason}", f"{number} beams of the scan at {match.stamp} ns", number)

    def _publish(self, stamp_ns: int) -> None:
        """Publish the belief; its stamp is that of the newest scan in it; 0 for the first prior."""
        self._published = True
        header = self.header(self.parameters.object_frame, stamp_ns)
        self._surface.publish(conversions.belief_to_msg(self.mapper.belief(), header))

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Which input is missing, what was dropped, how long an update took."""
        self.drops.update(self.matcher.drops)
        self.matcher.drops.clear()
        values: dict[str, object] = {
            "measurements": len(self.mapper.measurements),
            "views": self._views,
            "update_milliseconds": self._update_milliseconds,
            "solver": self.mapper.solver,
        }
        missing = self.missing_inputs()
        if missing:
            return DiagnosticStatus.WARN, "waiting for " + "; ".join(missing), values
        return DiagnosticStatus.OK, "mapping", values

    def missing_inputs(self) -> list[str]:
        """Inputs that never came or have not come for `input_timeout`, in words."""
        missing = []
        for topic, kind in (("scan", "sensor_msgs/LaserScan"), ("camera_pose", "geometry_msgs/PoseStamped")):
            name = self.resolve_topic_name(topic)
            heard = self._heard.get(topic)
            if heard is None:
                missing.append(f"{name} ({kind}): nothing usable received yet")
            elif self.now_ns() - heard > self.parameters.input_timeout * 1e9:
                missing.append(f"{name} ({kind}): nothing for {(self.now_ns() - heard) * 1e-9:.1f} s")
        return missing


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_node(SurfaceMapperNode, args))


if __name__ == "__main__":
    main()
