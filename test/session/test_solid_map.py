"""The mapper's core in space: which scans count, and a journal that gives the same map to the last
bit.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from nbv_planner.episode.solid.solid_mapping import solid_mapper_core
from nbv_planner.episode.solid.solid_settings import (
    DepthNoise,
    SolidScene,
    SpaceMapperParameters,
)
from nbv_planner.errors import StateFileError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.session import surface_map
from nbv_planner.session.surface_map import map_from_records
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthSensor, SimulatedDepthCamera
from nbv_planner.volume.bodies.families import solid_named

SCENE = SolidScene(radius_max=0.25, view_distance=0.425)
SENSOR = DepthSensor(columns=32, rows=24, range_max=2.0)
NOISE = DepthNoise()
MATCHING, ARRIVAL = MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.0)
POSES = on_sphere(12, 0.425)


class Mapper:
    """A core that maps views around a mug, and what its journal holds."""

    def __init__(self, table: float = -1e6):
        self.table = table
        self.core = self.blank()
        self.records: list = []
        self.camera = SimulatedDepthCamera(solid_named("mug", 0.25), SENSOR, NOISE.ranges)

    def blank(self):
        box = SpaceMapperParameters(table_height=self.table).bounds
        return solid_mapper_core(SCENE, SENSOR, NOISE, box, MATCHING, ARRIVAL)

    def view(self, number: int, ranges=None) -> None:
        stamp, pose = number * 10**9, POSES[number]
        place = POSES.position[number], POSES.rotation[number]
        scan = self.camera.scan(*place, np.random.default_rng(number))
        self.core.goal(stamp, pose)
        self.core.pose(stamp + 1, pose)
        self.core.scan(stamp + 2, scan if ranges is None else DepthScan(SENSOR, ranges), "eye")
        self.core.pose(stamp + 3, pose)
        while (job := self.core.job()) is not None:
            update = job()
            records, anew = update.records()
            self.records = [*([] if anew else self.records), *json.loads(json.dumps(records))]
            assert self.core.take(update)

    def again(self, records=None):
        other = Mapper(self.table)
        blank = other.core.setup.build()
        known = map_from_records(self.records if records is None else records, blank)
        other.core.resume(known)
        other.records = list(self.records)
        return other

    @property
    def surface(self):
        return self.core.known.mapper.model.surface


def same(one, other):
    """Whether two surfaces are the same to the last bit."""
    names = ("key", "points", "beams", "weight", "number")
    hits = all(
        np.array_equal(getattr(one.cells.hits, name), getattr(other.cells.hits, name))
        for name in names
    )
    return hits and np.array_equal(one.cells.state, other.cells.state) and one.count == other.count


@pytest.mark.parametrize("killed", [1, 3])
def test_a_mapper_that_was_killed_has_the_same_map_and_goes_on_as_if_nothing_had_been(killed):
    mapper = Mapper()
    for number in range(killed):
        mapper.view(number)
    other = mapper.again()
    assert same(mapper.surface, other.surface)
    assert other.core.known.progress.views == killed
    assert other.core.matcher.state() == mapper.core.matcher.state()
    assert other.core.matcher.state().goal.attitude is not None
    for one in (mapper, other):
        one.view(killed)
    assert same(mapper.surface, other.surface)
    assert other.core.known.progress.views == killed + 1


def test_a_long_journal_holds_the_map_in_place_of_its_first_batches(monkeypatch):
    monkeypatch.setattr(surface_map, "COMPACTED", 3)
    mapper = Mapper()
    for number in range(6):
        mapper.view(number)
    assert "map" in mapper.records[0]
    assert sum("batch" in one for one in mapper.records) <= 3
    assert same(mapper.surface, mapper.again().surface)


def test_beams_that_are_not_of_the_object_are_counted_by_reason():
    mapper = Mapper(table=-0.02)
    ranges = mapper.camera.scan(
        POSES.position[3], POSES.rotation[3], np.random.default_rng(3)
    ).ranges
    ranges[:7], ranges[7:10], ranges[10:14] = np.nan, 0.01, 1.9
    mapper.view(3, ranges)
    drops = mapper.core.drops
    assert drops["beam.nan"] == 7
    assert drops["beam.too_close"] == 3
    assert drops["beam.outside_bounds"] > 4  # 4 behind the object, more below the table
    hits = mapper.surface.cells.hits.mean
    assert len(hits) > 20
    assert hits[:, 2].min() > -0.02 - 0.25 / 24.0


def saved_matching(record) -> dict:
    return record["batch"]["progress"]["matching"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda record: record["batch"]["scans"][0]["scan"].pop("ranges"), "scan"),
        (lambda record: record["batch"]["scene"].update(depth=3), "scene"),
        (lambda record: saved_matching(record).update(goal=[1, 2.0]), "goal"),
        (lambda record: saved_matching(record)["goal"].update(attitude=4 * [0.0]), "no pose"),
        (lambda record: saved_matching(record)["goal"].update(attitude=[1.0]), "attitude"),
    ],
)
def test_records_that_are_none_are_refused_in_one_line(damage, words):
    mapper = Mapper()
    mapper.view(0)
    record = next(one for one in mapper.records if "batch" in one)
    damage(record)
    with pytest.raises(StateFileError, match=words) as error:
        mapper.again([record])
    assert "\n" not in str(error.value)
