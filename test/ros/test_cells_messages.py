"""A surface of cells comes back from its two messages as it was sent; what cannot be is refused."""

from __future__ import annotations

import base64
import dataclasses
import zlib

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import belief_of
from ros_world import header, over_the_wire
from simulated_bags import info_of

from nbv_planner.clouds.surface_messages import hits_from_msg, surface_from_msg
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.ros.io.conversions import belief_to_msg, surface_to_msg
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.volume.published import FreeCells, surface_of
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.scene import EstimatedScene

STAMP = 7
FOUND = EstimatedScene(1.5, -2.0, 1.0, 4.0, 6.0, 0.3, 2.5, views=2)


@pytest.fixture(scope="module")
def surface() -> VolumeSurface:
    episode = Simulation(configure(object="letter:C", surface_model="volume", max_views=3))
    episode.finish()
    return episode.belief


def sent(surface: VolumeSurface, **known):
    """Its messages, over the wire."""
    cloud = over_the_wire(surface_to_msg(surface, header("object", STAMP)))
    return cloud, info_of(surface, STAMP, **known).text


def test_planners_draw_the_same_from_what_comes_back(surface):
    cloud, text = sent(surface)
    found = info_from_text(text).applied(surface_from_msg(cloud))
    np.testing.assert_array_equal(found.cells.state, surface.cells.state)
    for name, array in surface.cells.hits.state.items():
        np.testing.assert_array_equal(found.cells.hits.state[name], array, err_msg=name)
    assert found.count == surface.count
    levels = [[(check.name, check.level) for check in each.checks] for each in (found, surface)]
    assert levels[0] == levels[1]
    one, other = (each.hypotheses(CoverageTarget(tau=0.3), 4, 0) for each in (found, surface))
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_array_equal(one.seen, other.seen)


def test_the_points_of_the_cloud_are_the_hits_in_the_object_frame(surface):
    moved = surface.seen_from(-FOUND.x, -FOUND.y)
    cloud, text = sent(moved, scene=FOUND)
    x = np.frombuffer(cloud.data, dtype="<f4").reshape(cloud.width, -1)[:, 0]
    np.testing.assert_allclose(x, surface.cells.hits.mean[:, 0] + FOUND.x, rtol=1e-5)
    found = info_from_text(text).applied(surface_from_msg(cloud))
    assert found.centre == (FOUND.x, FOUND.y) == moved.centre


def test_a_surface_without_a_hit_comes_back_too():
    blank = VolumeSurface.blank(VolumeForm())
    cloud, text = sent(blank)
    found = info_from_text(text).applied(surface_from_msg(cloud))
    assert not found.drawable
    np.testing.assert_array_equal(found.cells.state, blank.cells.state)


def test_in_space_there_is_a_third_dimension():
    blank = VolumeSurface.blank(VolumeForm(3, 1.0))
    hits = surface_of(blank.cells.hits, FreeCells.of(blank))
    assert hits.cells.hits.points.shape == (0, 3)


def test_messages_of_two_models_are_not_taken_together(surface):
    belief = belief_of(5.0, lambda grid: np.full(len(grid), 6.0), size=100)
    radius = surface_from_msg(belief_to_msg(belief, header("object", STAMP)))
    cloud, text = sent(surface)
    for info, received in (
        (info_from_text(text), radius),
        (info_from_text(info_of(belief, STAMP).text), surface_from_msg(cloud)),
    ):
        with pytest.raises(InputRejectedError, match="not of one model") as caught:
            info.applied(received)
        assert caught.value.reason == "cells"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda hits: dataclasses.replace(hits, key=hits.key[::-1]), "must rise"),
        (lambda hits: dataclasses.replace(hits, key=hits.key + 10**8), "be cells"),
        (lambda hits: dataclasses.replace(hits, weight=0.0 * hits.weight), "must be > 0"),
    ],
)
def test_hits_that_are_none_are_refused(surface, change, says):
    with pytest.raises(InputRejectedError, match=says):
        surface_of(change(surface.cells.hits), FreeCells.of(surface))


def test_a_number_that_is_not_finite_is_refused(surface):
    hits = dataclasses.replace(surface.cells.hits, weight=surface.cells.hits.weight * np.nan)
    cells = dataclasses.replace(surface.cells, hits=hits)
    cloud = surface_to_msg(dataclasses.replace(surface, cells=cells), header("object", STAMP))
    with pytest.raises(InputRejectedError, match="not finite"):
        hits_from_msg(cloud)


@pytest.mark.parametrize(
    "free",
    [
        "",
        "????",
        base64.b64encode(b"none").decode(),
        base64.b64encode(zlib.compress(b"x")).decode(),
    ],
)
def test_free_cells_that_are_none_are_refused(surface, free):
    known = dataclasses.replace(FreeCells.of(surface), free=free)
    with pytest.raises(InputRejectedError, match="free:"):
        surface_of(surface.cells.hits, known)


def test_a_small_text_that_would_unpack_to_much_is_refused_before_it_does(surface):
    bomb = base64.b64encode(zlib.compress(bytes(10**8))).decode()
    known = dataclasses.replace(FreeCells.of(surface), free=bomb)
    with pytest.raises(InputRejectedError, match="at least"):
        surface_of(surface.cells.hits, known)


@pytest.mark.parametrize(
    "change", [{"dimension": 4}, {"radius": 0.0}, {"radius": float("nan")}, {"count": -1}]
)
def test_a_lattice_that_is_none_is_refused(surface, change):
    info = info_of(surface, STAMP)
    cells = vars(info.cells) | change
    text = info.text.replace(
        f"dimension: {info.cells.dimension}\n  radius: {info.cells.radius}",
        f"dimension: {cells['dimension']}\n  radius: {cells['radius']}",
    ).replace(f"count: {info.cells.count}", f"count: {cells['count']}")
    with pytest.raises(InputRejectedError, match="surface_info cannot be read"):
        info_from_text(text.replace("radius: nan", "radius: .nan"))
