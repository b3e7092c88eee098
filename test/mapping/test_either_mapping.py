"""The radius holds until the scans show that it does not; then there are cells of all scans so
far.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.mapping.either_mapping import EitherMapping
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose

VIEWS = 5


def mapping(model: str) -> EitherMapping:
    return scan_mapping(configure(surface_model=model))


def scans_of(object: str) -> list[MatchedScan]:
    """Scans from places around an object, one a view."""
    camera = Simulation(configure(object=object))
    angles = 2.0 * np.pi * np.arange(VIEWS) / VIEWS
    poses = [CameraPose.from_polar(angle, camera.config.scene.view_distance) for angle in angles]
    return [
        MatchedScan(number, camera.look(pose).scan, pose, view=number)
        for number, pose in enumerate(poses)
    ]


@pytest.fixture(scope="module")
def around():
    return {object: scans_of(object) for object in ("polygon:star", "letter:C")}


def mapped(model: str, scans: list[MatchedScan]) -> EitherMapping:
    made = mapping(model)
    for number, scan in enumerate(scans):
        made.add([scan], number - 1)
    return made


def test_where_each_direction_has_one_surface_the_belief_is_that_of_the_radius(around):
    scans = around["polygon:star"]
    either, radius = (mapped(model, scans).belief() for model in ("auto", "radius"))
    assert isinstance(either, SurfaceBelief)
    for name in ("mean", "std", "lower", "upper", "hits"):
        np.testing.assert_array_equal(getattr(either, name), getattr(radius, name))
    assert either.checks == radius.checks


def test_where_it_has_several_the_cells_hold_all_scans_so_far(around):
    scans = around["letter:C"]
    either, cells = (mapped(model, scans) for model in ("auto", "volume"))
    assert either.any_outline
    found, wanted = either.belief(), cells.belief()
    assert isinstance(found, VolumeSurface)
    assert found.count == wanted.count > 100
    for name, array in wanted.cells.hits.state.items():
        np.testing.assert_array_equal(found.cells.hits.state[name], array)
    np.testing.assert_array_equal(found.cells.state, wanted.cells.state)


def test_the_number_of_measurements_does_not_fall_when_the_radius_is_given_up(around):
    made = mapping("auto")
    counts = []
    for number, scan in enumerate(around["letter:C"]):
        made.add([scan], number - 1)
        counts.append(made.belief().count)
    assert (np.diff(counts) > 0).all()


@pytest.mark.parametrize("object", ["polygon:star", "letter:C"])
def test_a_restored_mapping_goes_on_as_the_one_that_was_saved(around, object):
    *before, newest = around[object]
    saved = mapped("auto", before)
    restored = mapping("auto")
    restored.restore(saved.state())
    assert restored.any_outline == saved.any_outline == (object == "letter:C")
    add = partial(EitherMapping.add, scans=[newest], newest_view=VIEWS - 2)
    for one in (saved, restored):
        add(one)
    for name, array in saved.state().items():
        np.testing.assert_array_equal(restored.state()[name], array, err_msg=name)


def test_a_copy_goes_its_own_way_and_a_reset_begins_with_the_radius(around):
    scans = around["letter:C"]
    made = mapping("auto")
    made.add([scans[0]], -1, last=False)
    twin = made.copy()
    for number, scan in enumerate(scans[1:], start=1):
        twin.add([scan], number - 1)
    assert (made.any_outline, twin.any_outline) == (False, True)
    assert made.belief().count < twin.belief().count
    twin.reset()
    assert not twin.any_outline
    assert isinstance(twin.belief(), SurfaceBelief)
    assert twin.belief().count == 0


def test_calls_that_are_not_the_last_judge_nothing(around):
    made = mapping("auto")
    for number, scan in enumerate(around["letter:C"]):
        made.add([scan], number - 1, last=False)
    assert not made.any_outline


def test_star_shaped_objects_have_the_episode_of_the_radius():
    either, radius = (
        Simulation(configure(object="random:bumps:12", surface_model=model, max_views=6)).finish()
        for model in ("auto", "radius")
    )
    assert [view.angle for view in either.views] == [view.angle for view in radius.views]
    assert [view.rmse for view in either.views] == [view.rmse for view in radius.views]
