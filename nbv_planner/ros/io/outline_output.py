"""Results of the mapper: the outline as polygon, the map as occupancy grid, deviations from what
was known, and all as files.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Point32, PolygonStamped
from numpy.typing import NDArray
from std_msgs.msg import Header, String
from visualization_msgs.msg import MarkerArray

from nbv_planner.episode.log import Surface
from nbv_planner.geometry import BoolArray
from nbv_planner.known.deviation_report import DEVIATION_FILE, DeviationReport, Wanted, wanted
from nbv_planner.mapping.either_mapping import scene_of
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.report.map_grid import MapGrid
from nbv_planner.report.take_home import OutlineFiles, outline_of
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.io.conversions import to_stamp
from nbv_planner.ros.io.markers import deviation_markers
from nbv_planner.ros.result_files import ResultFiles
from nbv_planner.surface.seam import Hits
from nbv_planner.world.scale import rescaled
from nbv_planner.world.scene import Scene

try:
    from nav_msgs.msg import OccupancyGrid
except ImportError:  # everything else works without it
    OccupancyGrid = None


def outline_to_msg(outline: OutlineFiles, header: Header) -> PolygonStamped:
    """Build a PolygonStamped of the mean contour, of several bodies of that of the largest area;
    the others, and whether a point was measured, are in the files and in `surface`.
    """
    msg = PolygonStamped(header=header)
    for _, places in outline.rings[:1]:
        msg.polygon.points = [Point32(x=x, y=y, z=0.0) for x, y in places]
    return msg


def map_to_msg(cells: NDArray[np.int8], grid: MapGrid, header: Header) -> OccupancyGrid:
    """Build an OccupancyGrid of the values of cells, rows by rising y."""
    msg = OccupancyGrid(header=header)
    info = msg.info
    corner = info.origin
    info.map_load_time = header.stamp
    info.resolution = grid.resolution
    info.height, info.width = cells.shape
    corner.position.x, corner.position.y = grid.origin
    corner.orientation.w = 1.0
    msg.data = array.array("b", cells.tobytes())
    return msg


# Seconds between two looks for something new to publish, and scans whose free space is added at
# each; more where those of before may have to be added again.
_PERIOD, _SCANS, _SCANS_AGAIN = 1.0, 20, 100


@dataclass(frozen=True, eq=False)
class _Work:
    """Scans whose free space is to be added to a map, with all that this depends on, so that it
    may be done in another thread.
    """

    space: _FreeSpace  #: a copy, to which nothing is added.
    belief: Surface
    stamp: int
    frame: str
    measurement: MeasurementSettings
    wanted: Wanted | None  #: what the object is compared with.

    @cached_property
    def report(self) -> DeviationReport | None:
        """How the object differs from what was known."""
        if self.wanted is None:
            return None
        wanted = replace(self.wanted, remark=self.space.remark)
        return wanted.compared(Hits.together(self.space.hits))

    @cached_property
    def swept(self) -> BoolArray:
        """The free space of the map, with that of the scans."""
        swept = self.space.swept.copy()
        grid = self.space.grid
        scans = self.space.new
        most = _SCANS_AGAIN if self.space.again else _SCANS
        for match in scans[:: 1 + len(scans) // most]:  # of too many every second, third, ... one
            pose = match.pose.relative_to(*grid.centre)
            found = scan_to_hits(
                match.scan,
                pose,
                scene_of(self.belief, grid.scene),
                self.measurement,
                background=match.background,
            )
            swept |= grid.swept(found.free, match.scan.angle_increment)
        return swept

    @property
    def outline(self) -> OutlineFiles:
        """The outline of the surface."""
        return outline_of(self.belief, self.space.grid.scene, self.frame)

    @property
    def cells(self) -> NDArray[np.int8]:
        """Values of the cells of the map."""
        return self.space.grid.occupancy(self.belief, self.swept)

    def messages(self, names: Sequence[str]) -> dict[str, Any]:
        """The messages of the topics `names`; the free space is added whichever these are."""
        header = Header(stamp=to_stamp(self.stamp), frame_id=self.frame)
        grid, cells = self.space.grid, self.cells
        made = {
            "outline": lambda: outline_to_msg(self.outline, header),
            "map": lambda: map_to_msg(cells, grid, header),
            "deviation": lambda: String(data=self.report.summary),
            "deviation_markers": lambda: deviation_markers(
                self.report.deviation, grid.scene, header
            ),
        }
        return {name: made[name]() for name in names}

    def write(self, folder: Path) -> str:
        """Write the files; returns their paths and how good the outline is."""
        outline = self.outline
        files = [*outline.write(folder), *self.space.grid.write(folder, self.cells)]
        words = outline.summary
        if self.report is not None:
            self.report.write(folder)
            files += [folder / DEVIATION_FILE, *_drawn(folder, self.report)]
            words += f"; deviation: {self.report.summary}"
        return f"the outline is in {', '.join(map(str, files))}: {words}"


def _drawn(folder: Path, report: DeviationReport) -> Sequence[Path]:
    """The picture of deviations, if it can be drawn."""
    try:
        from nbv_planner.report.figures.recorded_figure import write_deviation
        from nbv_planner.report.figures.style import figure_style
    except ImportError:  # matplotlib is an extra
        return ()
    with figure_style():
        return write_deviation(folder, report)


class _FreeSpace:
    """The cells of a map that the scans so far show to be free, and what they have hit."""

    def __init__(self, grid: MapGrid, remark: str = "") -> None:
        """Start without scans; `remark` is what is to be said of those before."""
        self.remark, self.hits = remark, list[Hits]()
        self._scans: list[MatchedScan] = []
        self.again = False
        self._begin(grid)

    def _begin(self, grid: MapGrid) -> None:
        """Start an empty map; a result for the map before it will be discarded."""
        self.grid = grid
        self._next = 0
        self._episode = object()
        self._turn = 0
        self.swept = np.zeros((grid.size, grid.size), dtype=bool)

    def add(
        self, scans: Sequence[MatchedScan], grid: MapGrid, background: Sequence[BoolArray] | None
    ) -> None:
        """Add scans, see :meth:`OutlineOutput.show`; the map is on the `grid` from now on."""
        before = self._scans
        self._scans = [*before, *scans]
        if background is not None:
            masks = background[len(background) - len(self._scans) :]
            self._scans = [
                replace(match, background=mask)
                for match, mask in zip(self._scans, masks, strict=True)
            ]
        self.again = background is not None
        pairs = zip(before, self._scans, strict=False)
        if grid != self.grid or not all(
            np.array_equal(old.background, now.background) for old, now in pairs
        ):
            self._begin(grid)

    @property
    def new(self) -> list[MatchedScan]:
        """The scans that have not been added to the map."""
        return self._scans[self._next :]

    def take(self, work: _Work) -> bool:
        """Use the free space of work that is done if it belongs to this map and is new; returns
        whether it belongs to this map.
        """
        before = work.space
        if before._episode is not self._episode or before._turn != self._turn:
            return before._episode is self._episode
        self._turn += 1
        self.swept, self._next = work.swept, self._next + len(before.new)
        if not self.again:
            self._scans = self.new
            self._next = 0
        return True


class OutlineOutput(ResultFiles):
    """Publishes outline, map and deviations while there are subscribers, and writes the files.

    Free space is collected from the scans since the node was started or reset; it is not saved with
    the map of the surface. The grid has the centre of the belief in its middle; when that, the
    scene, or what is background changes, the free space is collected again from all scans.
    """

    def __init__(self, node: BaseNode) -> None:
        """Open the topics of `node`; deviations only where the object is to be compared."""
        config, frame = node.config, node.parameters.object_frame
        scene = config.scene
        nominal = wanted(None, config.known, scene, "fitted", config.outline.tolerance)
        self._work_of = partial(_Work, frame=frame, wanted=nominal)
        self._measurement_of = partial(rescaled, config.measurement, scene)
        self._space = _FreeSpace(MapGrid(scene))
        self._publishers = {"outline": node.advertise(PolygonStamped, "~/outline", qos.latched())}
        if OccupancyGrid is None:
            node.get_logger().warning(
                "nav_msgs is not installed: ~/map is not published; map.yaml is still written"
            )
        else:
            self._publishers["map"] = node.advertise(OccupancyGrid, "~/map", qos.latched())
        if nominal is not None:
            for name, kind in (("deviation", String), ("deviation_markers", MarkerArray)):
                self._publishers[name] = node.advertise(kind, f"~/{name}", qos.latched())
        super().__init__(node)
        node.create_timer(_PERIOD, self.publish)

    def reset(self) -> None:
        """Discard surface and free space."""
        super().reset()
        self._space = _FreeSpace(self._space.grid)
        self._sent: dict[str, tuple[object, int]] = {}

    def resume(self) -> None:
        """Go on from a map, whose hits are not known one by one."""
        self._space = _FreeSpace(self._space.grid, "from the views since the restart only")

    def add_hits(self, hits: Hits, *, again: bool) -> None:
        """Compare with more hits, in the frame of the outline; with `again` all of those before are
        among them.
        """
        if "deviation" in self._publishers:
            self._space.hits = [*([] if again else self._space.hits), hits]

    def show(
        self,
        belief: Surface,
        stamp: int,
        scans: Sequence[MatchedScan],
        scene: Scene,
        background: Sequence[BoolArray] | None = None,
    ) -> None:
        """Set the newest belief.

        Args:
            belief: about its centre.
            stamp: time of its newest scan, nanoseconds.
            scans: those that are new in it, in the frame of the outline.
            scene: the one about its centre.
            background: which beams of each scan up to the newest have met something else, shape
                (B,) each; None if the centre and the object are known, so that no scan is needed
                twice.
        """
        self._belief, self._stamp = belief, stamp
        self._space.add(scans, MapGrid(scene, belief.centre), background)

    def publish(self) -> None:
        """Publish what is new to each topic's subscribers, or to new ones; an inactive node
        publishes nothing.
        """
        if self._belief is None or not self._node.active or self._files.pending:
            return
        due = []
        for name, publisher in self._publishers.items():
            listeners = publisher.get_subscription_count()
            known, before = self._sent.get(name, (None, 0))
            if listeners > before or (listeners and known is not self._belief):
                due.append(name)
                known = self._belief
            self._sent[name] = known, listeners
        if due or self._space.new:
            work = self._work()
            self._files.submit(partial(work.messages, due), partial(self._publish, work))

    def _publish(self, work: _Work, made: Mapping[str, Any]) -> None:
        if self._space.take(work) and self._node.active:
            for name, message in made.items():
                self._publishers[name].publish(message)

    def _work(self) -> _Work:
        assert self._belief is not None
        measurement = self._measurement_of(self._space.grid.scene)
        return self._work_of(copy(self._space), self._belief, self._stamp, measurement=measurement)

    def _writer(self) -> Callable[[Path], str]:
        """See :meth:`.ResultFiles._writer`."""
        return self._work().write
