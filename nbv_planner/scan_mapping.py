"""Conditioning the surface model on scans: the same for the node and for a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from nbv_planner.camera import MeasurementSettings, scan_to_measurements
from nbv_planner.scan_matching import MatchedScan
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceMapper


@dataclass(frozen=True, eq=False)
class MappedScans:
    """What was mapped.

    Attributes:
        views: number of views that are new.
        measurements: the returns that count.
        dropped: number of beams left out, by reason.
    """

    views: int
    measurements: Measurements
    dropped: Counter[str]


def map_scans(
    mapper: SurfaceMapper, scans: Sequence[MatchedScan], newest_view: int, scene: Scene, settings: MeasurementSettings
) -> MappedScans:
    """Condition `mapper` on scans, those of a view at once.

    Args:
        mapper: the surface model, which changes.
        scans: in the order in which they were taken.
        newest_view: number of the newest view of which it holds a scan.
        scene: bounds of the radius and of the range.
        settings: how returns become measurements.
    """
    views, dropped, hits = 0, Counter[str](), list[Measurements]()
    for view, of_view in groupby(scans, key=lambda match: match.view):
        found = [scan_to_measurements(match.scan, match.pose, scene, settings) for match in of_view]
        new = Measurements.together([one.measurements for one in found])
        mapper.add(new, same_view=view <= newest_view, free=[one.free for one in found])
        hits.append(new)
        views += view > newest_view
        for one in found:
            dropped.update(one.dropped)
    return MappedScans(views, Measurements.together(hits), dropped)
