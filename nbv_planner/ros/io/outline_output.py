"""What the mapper gives away: the outline as polygon, the map as occupancy grid, and both as files."""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point32, PolygonStamped
from numpy.typing import NDArray
from std_msgs.msg import Header

from nbv_planner.episode.messages import STATUS, status_from_msg
from nbv_planner.errors import reason
from nbv_planner.geometry import BoolArray
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_measurements
from nbv_planner.report.take_home import MapGrid, Outline
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.session.questions import State
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.system import at_home
from nbv_planner.world.scale import rescaled
from nbv_planner.world.scene import Scene

try:
    from nav_msgs.msg import OccupancyGrid
except ImportError:  # everything else works without it
    OccupancyGrid = None


def outline_to_msg(outline: Outline, header: Header) -> PolygonStamped:
    """Build a PolygonStamped of the mean contour; whether a point was measured is in the files and in `surface`."""
    msg = PolygonStamped(header=header)
    msg.polygon.points = [Point32(x=x, y=y, z=0.0) for x, y in outline.points(outline.radius)]
    return msg


def map_to_msg(cells: NDArray[np.int8], grid: MapGrid, header: Header) -> OccupancyGrid:
    """Build an OccupancyGrid of the values of cells, rows by rising y."""
    msg = OccupancyGrid(header=header)
    msg.info.map_load_time = header.stamp
    msg.info.resolution = grid.resolution
    msg.info.height, msg.info.width = cells.shape
    msg.info.origin.position.x, msg.info.origin.position.y = grid.origin
    msg.info.origin.orientation.w = 1.0
    msg.data = array.array("b", cells.tobytes())
    return msg


# Seconds between two looks for something new to publish, and scans whose free space is added at each; more where those
# of before may have to be added anew.
_PERIOD, _SCANS, _SCANS_ANEW = 1.0, 20, 100


class OutlineOutput:
    """Publishes outline and map while there are subscribers, and writes the files.

    The files are written when the planner says that the episode is done, on request, and when the node ends with a
    surface that is not in them. What is free is collected from the scans since the node was started or reset: it is
    not in the saved map. The map is about the centre of the belief; when that, the scene, or what is background
    changes, what is free is collected anew.
    """

    def __init__(self, node: BaseNode, scene: Scene, measurement: MeasurementSettings, frame: str, folder: str) -> None:
        """Open the topics of `node`; outline and map are given in `frame`, files written to `folder` unless empty.

        The lengths of `measurement` are in proportion to the object of `scene`.
        """
        self._node, self._scene, self._measurement, self._frame = node, scene, measurement, frame
        self.folder = at_home(folder) if folder else None  #: where files are written, None for nowhere.
        self._grid = MapGrid(scene)
        self._publishers = {"outline": node.advertise(PolygonStamped, "~/outline", qos.latched())}
        if OccupancyGrid is None:
            node.get_logger().warning("nav_msgs is not installed: no map on ~/map; the file map.yaml needs none")
        else:
            self._publishers["map"] = node.advertise(OccupancyGrid, "~/map", qos.latched())
        self._done = False
        if self.folder is not None:
            node.listen(DiagnosticStatus, STATUS, self._on_status, qos.latched())
        self.reset()
        node.create_timer(_PERIOD, self.publish)

    def reset(self) -> None:
        """Forget surface and free space."""
        self._belief: SurfaceBelief | None = None
        self._written: SurfaceBelief | None = None
        self._stamp = 0
        self._scans: list[MatchedScan] = []
        self._begin(self._grid)
        self._sent: dict[str, tuple[object, int]] = {}

    def _begin(self, grid: MapGrid) -> None:
        """Start a map of which no cell has been swept."""
        self._grid, self._next = grid, 0
        self._swept = np.zeros((grid.size, grid.size), dtype=bool)

    def show(
        self, belief: SurfaceBelief, stamp: int, scans: Sequence[MatchedScan], scene: Scene,
        background: Sequence[BoolArray] | None = None,
    ) -> None:
        """Take over the newest belief.

        Args:
            belief: about its centre.
            stamp: time of its newest scan, nanoseconds.
            scans: those that are new in it, in the frame of the outline.
            scene: the one about its centre.
            background: which beams of each scan up to the newest have met something else, shape (B,) each; None if
                the centre and the object are known, so that no scan is needed twice.
        """
        self._belief, self._stamp = belief, stamp
        before, grid = self._scans, MapGrid(scene, belief.centre)
        self._scans = [*before, *scans]
        if background is not None:
            masks = background[len(background) - len(self._scans) :]
            self._scans = [
                dataclasses.replace(match, background=mask) for match, mask in zip(self._scans, masks, strict=True)
            ]
        self._again = background is not None
        pairs = zip(before, self._scans, strict=False)
        if grid != self._grid or not all(np.array_equal(old.background, now.background) for old, now in pairs):
            self._begin(grid)

    def publish(self) -> None:
        """Publish what is new to each topic's subscribers, or to new ones; an inactive node publishes nothing."""
        if self._belief is None or not self._node.active:
            return
        self._sweep()
        for name, publisher in self._publishers.items():
            listeners, (known, before) = publisher.get_subscription_count(), self._sent.get(name, (None, 0))
            if listeners > before or (listeners and known is not self._belief):
                publisher.publish(self._message(name))
                known = self._belief
            self._sent[name] = known, listeners

    def _message(self, name: str) -> PolygonStamped | OccupancyGrid:
        header = self._node.header(self._frame, self._stamp)
        if name == "outline":
            return outline_to_msg(Outline.of(self._belief, self._grid.scene, self._frame), header)
        return map_to_msg(self._grid.occupancy(self._belief, self._swept), self._grid, header)

    def _sweep(self) -> None:
        """Add the free space of the scans that have come since the last time; of many, that of every second, ..."""
        scene, new = self._grid.scene, self._scans[self._next :]
        measurement = rescaled(self._measurement, self._scene, scene)
        for match in new[:: 1 + len(new) // (_SCANS_ANEW if self._again else _SCANS)]:
            pose = match.pose.relative_to(*self._grid.centre)
            found = scan_to_measurements(match.scan, pose, scene, measurement, background=match.background)
            self._swept |= self._grid.swept(found.free, match.scan.angle_increment)
        if not self._again:
            self._scans = []
        self._next = len(self._scans)

    def _on_status(self, msg: DiagnosticStatus) -> None:
        """Write the files once each time that an episode ends."""
        before, self._done = self._done, status_from_msg(msg).state == State.DONE.value
        if self._done and not before:
            self.write_unwritten()

    def write_unwritten(self) -> None:
        """Write the files if there is a measured surface that they do not hold, and log which."""
        belief = self._belief
        if self.folder is None or belief is None or belief is self._written or not belief.hits.any():
            return
        try:
            self._node.get_logger().info(self.write())
        except ValueError as error:
            self._node.get_logger().error(str(error))

    def write(self) -> str:
        """Write the files; returns their paths, and how good the outline is.

        Raises:
            ValueError: no folder is named, there is no surface yet, or the folder cannot be written.
        """
        if self.folder is None:
            raise ValueError("no folder is named: start the node with the parameter outline_folder")
        if self._belief is None:
            raise ValueError("no surface yet: no scan has been mapped")
        self._sweep()
        outline = Outline.of(self._belief, self._grid.scene, self._frame)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            files = outline.write(self.folder)
            files += self._grid.write(self.folder, self._grid.occupancy(self._belief, self._swept))
        except OSError as error:
            raise ValueError(f"the outline is not written to {self.folder}: {reason(error)}") from error
        self._written = self._belief
        return f"the outline is in {', '.join(map(str, files))}: {outline.words}"
