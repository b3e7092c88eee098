"""Completeness, accuracy and Chamfer distance of outlines of any form, against plain distances from
their edges.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from beliefs import wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st
from views import circle

from nbv_planner.episode.judge import Judge, PointErrors, SampledContour, StarTruth
from nbv_planner.surface.coverage import PointSet
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

ELL = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 1.0], [1.0, 1.0], [1.0, 3.0], [0.0, 3.0]])
#: No point sees all of it: it is a star about none.
HOOK = np.array(
    [[0.0, 0.0], [5.0, 0.0], [5.0, 3.0], [4.0, 3.0], [4.0, 1.0], [1.0, 1.0], [1.0, 3.0], [0.0, 3.0]]
)
NOTHING = PointSet(np.empty((0, 2)), np.empty(0))


def edge_distance(points, corners, *, closed):
    """Distance of points from the nearest edge, by projection on each."""
    ends = list(zip(corners, np.roll(corners, -1, axis=0), strict=True))[: None if closed else -1]
    found = []
    for start, end in ends:
        along = np.clip(
            (points - start) @ (end - start) / ((end - start) @ (end - start)), 0.0, 1.0
        )
        found.append(np.hypot(*(points - start - along[:, None] * (end - start)).T))
    return np.min(found, axis=0)


def along(corners, number, *, closed):
    """Middles of pieces of edges, and the length of each."""
    places, lengths = [], []
    for start, end in list(zip(corners, np.roll(corners, -1, axis=0), strict=True))[
        : None if closed else -1
    ]:
        places.append(start + (np.arange(number)[:, None] + 0.5) / number * (end - start))
        lengths.append(np.full(number, math.dist(start, end) / number))
    return np.concatenate(places), np.concatenate(lengths)


@settings(max_examples=25)
@given(
    st.sampled_from([ELL, HOOK]),
    st.integers(1, 5),
    st.floats(-0.3, 0.3),
    st.sampled_from([0.05, 0.2, 0.6]),
)
def test_errors_of_a_measured_part_are_those_of_plain_distances(corners, edges, off, tau):
    """Some edges are measured, all off by the same step; their pieces are of unequal lengths."""
    part = corners[: edges + 1] + np.array([off, 0.5 * off])
    points, length = along(part, 400, closed=False)
    found = PointErrors.of(PointSet(points, length), SampledContour.of_vertices(corners, 6000), tau)
    true, weight = along(corners, 3000, closed=True)
    missed, away = (
        edge_distance(true, part, closed=False),
        edge_distance(points, corners, closed=True),
    )
    # where a distance is τ itself
    slack = 0.01 + np.average(np.abs(missed - tau) < 0.02, weights=weight)
    assert found.completeness == pytest.approx(np.average(missed <= tau, weights=weight), abs=slack)
    slack = 0.01 + np.average(np.abs(away - tau) < 0.02, weights=length)
    assert found.accuracy == pytest.approx(np.average(away <= tau, weights=length), abs=slack)
    wanted = 0.5 * (np.average(missed, weights=weight) + np.average(away, weights=length))
    assert found.chamfer == pytest.approx(wanted, abs=0.01)


def test_errors_by_hand():
    """A segment of 4 m measured 0.25 m beside its first half: beyond its end distances grow."""
    true, first = (
        PointSet(np.stack([x, np.full(len(x), y)], axis=1), np.ones(len(x)))
        for x, y in ((np.arange(0.005, 4.0, 0.01), 0.0), (np.arange(0.005, 2.0, 0.01), 0.25))
    )
    found = PointErrors.of(first, true, 0.25)
    assert found.accuracy == 1.0
    assert found.completeness == pytest.approx(0.5, abs=0.01)
    beyond = np.mean(np.hypot(np.arange(0.005, 2.0, 0.01), 0.25))
    assert found.chamfer == pytest.approx(0.5 * (0.25 + 0.5 * (0.25 + beyond)), abs=0.005)
    assert PointErrors.of(true, true, 0.0) == PointErrors(1.0, 1.0, 0.0)


def test_without_a_measurement_nothing_is_complete_and_no_distance_is_known():
    found = PointErrors.of(NOTHING, SampledContour.of_vertices(ELL, 100), 0.1)
    assert found.completeness == 0.0
    assert math.isnan(found.accuracy)
    assert math.isnan(found.chamfer)


class Half(StarTruth):
    """Half of the outline has been measured, and there is no radius to compare."""

    def measured(self, belief, tau):
        points = self.outline(tau / 10.0).points
        return PointSet(points[: len(points) // 2], np.ones(len(points) // 2))

    def errors(self, belief):
        return {}


def test_a_surface_without_a_radius_over_the_angle_is_judged_by_its_points_alone():
    scene = Scene(pixel_size=0.25)
    shape = parse_object("polygon:concave", scene)
    judge = Judge(Half(surface_points(shape, 0.25), scene, shape), circle(angles=np.arange(4.0)))
    record = judge.add_view(CameraPose.from_polar(0.0, 10.0), 1.0, 0.0, wavy_belief(1))
    assert (record.completeness, record.accuracy) == (pytest.approx(0.5, abs=0.05), 1.0)
    assert record.chamfer > 0.0
    assert np.isnan(
        [record.rmse, record.max_error, record.hausdorff, record.iou, record.band_coverage]
    ).all()
    assert judge.complete.mean() == record.completeness
    nothing = judge.add_view(CameraPose.from_polar(1.0, 10.0), 1.0, 0.0, None)
    assert np.isnan([nothing.rmse, nothing.completeness, nothing.chamfer]).all()
    assert len(Poses.of([record.pose])) == 1


@pytest.mark.parametrize("size", [2, 3])
def test_distances_are_those_of_all_pairs_in_any_dimension(size):
    rng = np.random.default_rng(size)
    one, other = (PointSet(rng.normal(size=(n, size)), rng.uniform(size=n)) for n in (40, 70))
    pairs = np.linalg.norm(one.points[:, None] - other.points, axis=2)
    np.testing.assert_allclose(one.distance_from(other), pairs.min(axis=1))
    np.testing.assert_allclose(other.distance_from(one), pairs.min(axis=0))
    assert one.mean(one.points[:, 0]) == pytest.approx(
        np.average(one.points[:, 0], weights=one.length)
    )
