"""What the mapper does with scans that wait for it, and with a result that comes too late."""

from __future__ import annotations

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.wiring import mapper_core
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.session.mapper_core import MapperCore
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

CAMERA = SimulatedCamera(
    parse_object("polygon:star", Scene()), Scene(), SensorSettings(num_beams=21)
)


def after_scans(*stamps: int) -> MapperCore:
    """A mapper of each scan whatever the goal, before which those of these stamps wait."""
    matching = MatchingSettings(integrate="always", queue_size=3)
    config = configure(grid_size=60, robust=False)
    core = mapper_core(config, matching, ArrivalSettings(), PriorSettings(), ())
    pose = CameraPose.from_polar(0.0, 10.0)
    for stamp in sorted(stamps):
        core.pose(stamp, pose)
    for stamp in stamps:
        core.scan(stamp, CAMERA.scan(pose, 1, stamp), "camera")
    return core


def test_a_surface_has_the_stamp_of_its_newest_scan_in_whatever_order_they_came():
    core = after_scans(20, 30, 10)
    assert core.take(core.job()())
    assert (core.known.progress.stamp, core.known.progress.scans) == (30, 3)


def test_of_more_scans_than_may_wait_the_oldest_are_dropped_and_said():
    core = after_scans(10, 20, 30, 40, 50)
    assert [match.stamp for match in core.job().scans] == [30, 40, 50]
    said = [message.text for message in core.messages if message.reason == "scan.backlog"]
    assert [text.partition(":")[0] for text in said] == ["the scan at 10 ns", "the scan at 20 ns"]


def test_a_result_that_is_of_before_a_reset_is_discarded():
    core = after_scans(10)
    job = core.job()
    core.reset()
    assert not core.take(job())
    assert core.known.mapper.model.count == core.updates == 0
    assert core.take(core.job()())
