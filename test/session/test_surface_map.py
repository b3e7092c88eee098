"""A map that is made again from its journal is the same to the last bit, and goes on the same."""

from __future__ import annotations

import json
import time
from functools import partial

import numpy as np
import pytest

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.errors import StateFileError
from nbv_planner.geometry import PoseCovariance
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.session.journal import Journal
from nbv_planner.session.mapper_core import MapperCore, MapperSetup
from nbv_planner.session.surface_map import (
    COMPACTED_FITS,
    KIND,
    Batch,
    Progress,
    batch_record,
    map_from_records,
    map_record,
)
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.true_outlines import parse_outlines
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

CAMERA = SimulatedCamera(
    parse_object("polygon:star", Scene()), Scene(), SensorSettings(num_beams=61)
)
KINDS = {
    "robust": {},
    "small window": {"window": 100},
    "plain": {"robust": False},
    "unknown": {"scene": "unknown"},
    "dense": {"robust": False, "solver": "dense"},
    "any outline": {"object": "letter:S"},
    "any outline, found": {"object": "letter:C", "scene": "unknown"},
}


class Mapper:
    """A core that maps views around the object, and what its journal holds."""

    def __init__(self, beams: int = 61, object: str = "", **settings):
        config = configure(**{"grid_size": 200, **settings})
        self.setup = MapperSetup(
            config.scene,
            config.measurement.noise,
            config.measurement.radius_margin,
            config.search,
            40,
            frozenset(),
            PriorSettings(),
            partial(scan_mapping, config),
        )
        self.core = MapperCore(self.setup, ScanMatcher(MatchingSettings(), ArrivalSettings()))
        self.camera = CAMERA
        if object or beams != 61:
            shape = parse_outlines(object or "polygon:star", Scene())
            self.camera = SimulatedCamera(shape, Scene(), SensorSettings(num_beams=beams))
        self.records: list = []

    def view(self, number: int, scans: int = 2) -> bytes:
        pose = CameraPose.from_polar(0.7 * number, 10.0)
        if number % 3 == 1:
            pose = CameraPose(
                pose.x, pose.y, pose.yaw, PoseCovariance(1e-4, 0.0, 1e-4, 0.0, 0.0, 1e-5)
            )
        for k in range(scans):
            scan = self.camera.scan(pose, number, k)
            self.core.waiting.append(
                MatchedScan(10 * number + k, scan, pose, number, "camera", (0.1, 0.0, 0.2))
            )
        update = self.core.job()()
        assert self.core.take(update)
        records, anew = update.records()
        self.records = [*([] if anew else self.records), *json.loads(json.dumps(records))]
        return bits(update.belief)

    def again(self, records=None):
        known = map_from_records(
            self.records if records is None else records,
            self.setup.build(),
        )
        other = Mapper.__new__(Mapper)
        other.__dict__.update(vars(self))
        other.core, other.records = (
            MapperCore(self.setup, ScanMatcher(MatchingSettings(), ArrivalSettings())),
            [],
        )
        other.core.resume(known)
        return other


def bits(belief) -> bytes:
    if isinstance(belief, VolumeSurface):
        columns = [belief.cells.state, *map(np.ravel, belief.cells.hits.state.values())]
    else:
        columns = [
            belief.mean,
            belief.std,
            belief.lower,
            belief.upper,
            belief.hits.astype(float),
            *belief.evidence.rows,
        ]
    scores = [
        number
        for check in belief.checks
        for number in (check.score, check.limit, float(check.level))
    ]
    return np.concatenate([*columns, scores, belief.centre]).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_comes_back_bit_for_bit_and_goes_on_the_same(kind):
    mapper = Mapper(**KINDS[kind])
    for number in range(7):
        published = mapper.view(number)
    other = mapper.again()
    assert bits(other.core.known.belief) == published
    other.core.ask()
    assert bits(other.core.job()().belief) == published
    assert vars(other.core.known.progress) == vars(mapper.core.known.progress)
    for number in range(7, 10):
        assert other.view(number) == mapper.view(number)


def test_a_view_whose_scans_came_in_two_batches_is_one_view_again():
    mapper = Mapper(robust=False)
    for number in (0, 0, 1, 1):
        published = mapper.view(number, scans=1)
    other = mapper.again()
    assert other.core.known.mapper.model.round == mapper.core.known.mapper.model.round == 3
    assert bits(other.core.known.belief) == published


@pytest.mark.parametrize("kind", ["any outline", "any outline, found"])
def test_the_radius_is_given_up_for_cells_on_the_way(kind):
    mapper = Mapper(**KINDS[kind])
    found = []
    for number in range(6):
        mapper.view(number)
        found.append(mapper.core.known.mapper.any_outline)
    assert found == sorted(found)
    assert (found[0], found[-1]) == (False, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_compacted_journal_gives_the_same_map(kind):
    mapper = Mapper(**KINDS[kind])
    for number in range(5):
        mapper.view(number)
    whole = json.loads(json.dumps(map_record(mapper.core.known)))
    published = mapper.view(5)
    other = mapper.again([whole, mapper.records[-1]])
    assert bits(other.core.known.belief) == published
    assert other.core.known.batches == 1
    assert other.view(6) == mapper.view(6)


def test_where_each_batch_takes_a_fit_the_journal_holds_few_of_them():
    """So that a restart takes as many fits, and not one for each view (0.2 s with 721 beams)."""
    mapper = Mapper(**KINDS["small window"])
    lengths = []
    for number in range(30):
        published = mapper.view(number)
        lengths.append(sum("batch" in record for record in mapper.records))
    assert "map" in mapper.records[0]
    assert max(lengths) == COMPACTED_FITS
    other = mapper.again()
    assert bits(other.core.known.belief) == published
    assert other.core.known.batches == mapper.core.known.batches
    assert other.view(30) == mapper.view(30)


def test_an_empty_journal_is_an_empty_map():
    mapper = Mapper().again()
    assert mapper.core.known.progress.views == mapper.core.known.mapper.model.count == 0
    assert mapper.view(0) == Mapper().view(0)


def test_forty_views_are_mapped_again_in_the_time_of_a_few(tmp_path):
    """Where each takes 0.2 s as it comes, a restart takes 1.2 s, by the clock of the process, of
    the file as it is written; through: what is not known is judged anew.
    """
    mapper = Mapper(beams=181, grid_size=1000)
    journal = Journal(tmp_path / "map", KIND)
    for number in range(40):
        pose = CameraPose.from_polar(0.7 * number, 10.0)
        scans = tuple(
            MatchedScan(10 * number + k, mapper.camera.scan(pose, number, k), pose, number)
            for k in range(3)
        )
        progress = Progress(
            mapper.core.matcher.state(), 10 * number + 2, number, number + 1, 3 * number + 3
        )
        journal.append([batch_record(Batch(mapper.setup.scene, scans, progress, None, ()))])
    began = time.process_time()
    other = mapper.again(Journal(tmp_path / "map", KIND).read())
    restart = time.process_time() - began
    assert other.core.known.progress.views == 40
    assert other.core.known.mapper.model.round == 41
    began = time.process_time()
    for number in range(40, 43):
        other.view(number, scans=3)
    each = (time.process_time() - began) / 3.0
    assert restart < 10.0 * each


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda record: {"other": 1}, "line 2: is not a batch of scans"),
        (lambda record: {"batch": {**record["batch"], "scans": 3}}, "must be a list"),
        (lambda record: {"batch": {**record["batch"], "through": [0.5, "x"]}}, "through"),
        (
            lambda record: {
                "batch": {
                    **record["batch"],
                    "progress": {
                        **record["batch"]["progress"],
                        "matching": {"goal": None, "goals": -1, "taken": 0},
                    },
                }
            },
            "integers >= 0",
        ),
        (
            lambda record: {
                "batch": {
                    **record["batch"],
                    "progress": {**record["batch"]["progress"], "views": -3},
                }
            },
            "<",
        ),
    ],
)
def test_records_that_are_none_are_refused_in_one_line(damage, words):
    mapper = Mapper()
    mapper.view(0)
    with pytest.raises(StateFileError, match=words) as caught:
        mapper.again([damage(mapper.records[0])])
    assert (caught.value.reason, "\n" in str(caught.value)) == ("content", False)
