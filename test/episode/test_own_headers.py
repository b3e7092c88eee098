"""An episode with a driver that states as `range_max` the largest range in that scan."""

from __future__ import annotations

import dataclasses

import numpy as np

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.wiring import mapper_and_planner, planner_named, termination_monitor
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scale import SensorHeaders
from nbv_planner.world.scan import Scan
from nbv_planner.world.simulated_camera import SimulatedCamera

CONFIG = EpisodeConfig(object="ellipse:a=8,b=2")


def as_that_driver_sends_it(scan: Scan) -> Scan:
    return dataclasses.replace(
        scan, range_max=float(np.max(scan.ranges, where=np.isfinite(scan.ranges), initial=0.0))
    )


def ended(headers_read: int) -> tuple[Termination | None, float]:
    """How an episode ends that begins at the tip, and the greatest range in use; later headers are
    not read.
    """
    scene, headers, visited = CONFIG.scene, SensorHeaders(), list[CameraPose]()
    current = CameraPose.from_polar(0.0, scene.view_distance)
    camera = SimulatedCamera(parse_object(CONFIG.object, scene), scene, CONFIG.sensor)
    mapping, planner = mapper_and_planner(CONFIG)
    monitor, end = (
        termination_monitor(CONFIG.termination, CONFIG.planner, scene, CONFIG.prior),
        None,
    )
    while end is None:
        scan = as_that_driver_sends_it(camera.scan(current, len(visited)))
        if len(visited) < headers_read:
            headers = headers.after(scan)
            seen = dataclasses.replace(scene, **headers.widest.in_scene(scene)[0])
            mapping.use(seen)
            planner = planner_named(CONFIG.planner, seen, planner.views, prior=CONFIG.prior)
        mapping.add([MatchedScan(len(visited), scan, current, len(visited))], len(visited) - 1)
        visited.append(current)
        belief = mapping.belief().as_transmitted()
        assert not [
            check
            for check in belief.checks
            if check.name in ("field_of_view", "range") and check.level
        ]
        end = monitor.after_view(belief, 0.0, visited)
        planner.update(belief, current)
        current = planner.decide(
            belief, current_view=current, visited=visited, overlapping=monitor.in_doubt
        ).view
    return end, seen.range_max


def test_later_headers_widen_what_the_first_one_said_and_the_episode_ends_covered():
    end, far = ended(headers_read=100)
    assert end.reason is TerminationReason.COVERED
    assert far > 9.0


def test_with_the_first_header_for_ever_it_would_stall():
    end, far = ended(headers_read=1)
    assert end.reason is TerminationReason.STALLED
    assert far < 4.0
