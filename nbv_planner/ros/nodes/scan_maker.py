"""Node `scan_maker`: depth images, point clouds or scans of several echoes in, scans out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sensor_msgs.msg import CameraInfo, Image, LaserScan, MultiEchoLaserScan, PointCloud2
from std_msgs.msg import Header

from nbv_planner.clouds.sensor_messages import (
    depth_from_msg,
    pinhole_from_msg,
    points_from_msg,
    scan_from_msg,
)
from nbv_planner.episode.parameters import BESIDE
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.mapping.scan_making import ScanMakerSettings, scan_of_depth, scan_of_points
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.io import conversions
from nbv_planner.world.scan import Scan

# Messages that may wait for their conversion, that under way included.
_WAITING = 2


class ScanMakerNode(BaseNode):
    """Makes a scan of each message of the source, with the same stamp."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("scan_maker", BESIDE["scan_maker"], **kwargs)
        self.autostart()

    def configure(self) -> None:
        """Read the parameters and open the topics.

        Raises:
            SettingError: scans are received as they are.
        """
        self.settings = read_settings(self, ScanMakerSettings)
        self._camera: CameraInfo | None = None
        if self.settings.scan_source == "laser_scan":
            raise SettingError(
                f"{self.get_name()}: scan_source: laser_scan needs no scan_maker; take multi_echo,"
                " depth_image or point_cloud"
            )
        self._scan = self.advertise(LaserScan, "scan", qos.reliable())
        self._topics = {
            "multi_echo": {"echoes": (MultiEchoLaserScan, self.on_echoes)},
            "point_cloud": {"points": (PointCloud2, self.on_points)},
            "depth_image": {
                "camera_info": (CameraInfo, self.on_camera),
                "image": (Image, self.on_image),
            },
        }[self.settings.scan_source]
        for topic, (kind, callback) in self._topics.items():
            self.listen(kind, topic, callback, qos.sensor_data())

    def on_echoes(self, msg: MultiEchoLaserScan) -> None:
        """Publish the first return of each beam."""
        self._make("echoes", msg.header, partial(scan_from_msg, msg))

    def on_points(self, msg: PointCloud2) -> None:
        """Publish the nearest point of the band at each bearing."""
        optical = self.settings.optical(msg.header.frame_id)

        def scan() -> Scan:
            return scan_of_points(points_from_msg(msg), self.settings, optical=optical)

        self._make("points", msg.header, scan)

    def on_camera(self, msg: CameraInfo) -> None:
        """Receive focal lengths and principal point."""
        self._camera = msg

    def on_image(self, msg: Image) -> None:
        """Publish the nearest surface of the band at each bearing."""
        if (camera := self._camera) is None:
            raise InputRejectedError("no_camera_info", "no camera_info received yet")

        def scan() -> Scan:
            return scan_of_depth(depth_from_msg(msg), pinhole_from_msg(camera, msg), self.settings)

        self._make("image", msg.header, scan)

    def _make(self, topic: str, header: Header, make: Callable[[], Scan]) -> None:
        """Make a scan in the worker and publish it; what comes faster than that is left out."""
        if self.worker.pending >= _WAITING:
            raise InputRejectedError(
                "busy", f"{_WAITING} messages before it are still being converted"
            )

        def made() -> Scan | InputRejectedError:
            try:
                return make()
            except InputRejectedError as error:
                return error

        self.worker.submit(made, partial(self._publish, topic, header))

    def _publish(self, topic: str, header: Header, scan: Scan | InputRejectedError) -> None:
        if isinstance(scan, InputRejectedError):
            self.drop(f"{topic}.{scan.reason}", str(scan))
        elif self.active:
            header.frame_id = self.settings.frame(header.frame_id)
            self._scan.publish(conversions.scan_to_msg(scan, header))

    def doing(self) -> tuple[bytes, str]:
        """Which input is missing."""
        level, message = super().doing()
        missing = self.inputs.missing(*self._topics)
        return level, "waiting for " + "; ".join(missing) if missing else message
