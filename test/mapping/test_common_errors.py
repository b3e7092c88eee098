"""Errors that all views share are found from their overlap, and what is left of them widens the band."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.geometry import cartesian_to_polar, polar_to_cartesian
from nbv_planner.mapping.belief import CommonErrors, SurfaceBelief, uniform_grid
from nbv_planner.mapping.checks.common import AccuracySettings, corrected, posterior
from nbv_planner.mapping.checks.overlap import ViewData
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import View
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

STD, RADIUS, DISTANCE, SIZE = 0.1, 5.0, 13.0, 720
DECLARED = AccuracySettings(accuracy=True, range_offset_std=0.2, mount_std=0.04)
NONE = dataclasses.replace(
    DECLARED, range_offset_std=0.0, range_scale_std=0.0, bearing_offset_std=0.0, mount_std=0.0
)


def contour(angle):
    return RADIUS + 0.5 * np.cos(3.0 * angle)


def view_of(direction, seed, hits=80, offset=0.0, left=0.0, turn=0.0, correlation=0.0, noise=STD) -> ViewData:
    """Noisy hits within 0.8 rad of a direction: ranges too long, hits to the left, or noise shared by neighbours."""
    random = np.random.default_rng([seed, int(1000 * direction)])
    angle = np.sort(direction + random.uniform(-0.8, 0.8, hits))
    error = noise * random.standard_normal(hits)
    for beam in range(1, hits):
        error[beam] = correlation * error[beam - 1] + math.sqrt(1.0 - correlation**2) * error[beam]
    pose = View(direction, DISTANCE).pose
    x, y = polar_to_cartesian(angle, contour(angle))
    far = np.hypot(x - pose.x, y - pose.y)
    along_x, along_y = (x - pose.x) / far, (y - pose.y) / far
    x, y = x + (offset + error) * along_x - left * along_y, y + (offset + error) * along_y + left * along_x
    cos, sin = math.cos(turn), math.sin(turn)
    points = np.stack([cos * x - sin * y, sin * x + cos * y, np.full(hits, STD)])
    place = cos * pose.x - sin * pose.y, sin * pose.x + cos * pose.y, pose.yaw + turn
    return ViewData(np.array(place), points, np.empty((2, 0)))


def around(count=12, seed=0, **errors):
    return [view_of(direction, seed, **errors) for direction in np.arange(count) * (2.0 * math.pi / count)]


def believed(views, turn=0.0) -> SurfaceBelief:
    """A contour through the hits, as a mapper gives it: the true one, moved by how far they are off it nearby."""
    grid = uniform_grid(SIZE)
    x, y = np.concatenate([view.hits[:2] for view in views], axis=1)
    angle, radius = cartesian_to_polar(x, y)
    weight = np.exp(40.0 * (np.cos(grid[:, np.newaxis] - angle) - 1.0))
    off = weight @ (radius - contour(angle - turn)) / weight.sum(axis=1)
    mean, std = contour(grid - turn) + off, np.full(SIZE, 0.03)
    return SurfaceBelief(grid, mean, std, mean - 2.0 * std, mean + 2.0 * std, np.zeros(SIZE, dtype=int))


def found(views, settings=DECLARED, turn=0.0) -> tuple[SurfaceBelief, CommonErrors]:
    belief = corrected(believed(views, turn), views, STD, settings)
    assert belief.common is not None
    return belief, belief.common


def apart(slopes, off, cell):
    """Both less the means of their cells."""
    columns = np.column_stack([slopes, off])
    for one in np.unique(cell):
        columns[cell == one] -= columns[cell == one].mean(axis=0)
    return columns[:, :-1], columns[:, -1]


@given(seed=st.integers(0, 1000), cells=st.integers(1, 6))
def test_the_posterior_is_that_of_errors_and_surface_together(seed, cells):
    random = np.random.default_rng(seed)
    cell, slopes = random.integers(0, cells, 60), random.normal(size=(60, 5))
    off = slopes @ random.normal(size=5) + 3.0 * random.normal(size=cells)[cell] + 0.1 * random.normal(size=60)
    # One regression with a column for each cell, whose constants have no prior.
    design = np.column_stack([np.eye(cells)[cell][:, np.bincount(cell, minlength=cells) > 0], slopes])
    constants = design.shape[1] - 5
    covariance = np.linalg.inv(design.T @ design + np.diag([0.0] * constants + [1.0] * 5))
    mean, left = posterior(*apart(slopes, off, cell), cell)
    assert mean == pytest.approx((covariance @ design.T @ off)[constants:], rel=1e-6, abs=1e-9)
    assert left == pytest.approx(covariance[constants:, constants:], rel=1e-6, abs=1e-9)


@given(seed=st.integers(0, 1000), more=st.integers(1, 40))
def test_more_overlap_never_widens_what_is_left(seed, more):
    random = np.random.default_rng(seed)
    slopes = random.normal(size=(20 + more, 5))
    few, many = (posterior(slopes[:n], np.zeros(n), np.arange(n))[1] for n in (20, 20 + more))
    assert np.linalg.eigvalsh(few - many).min() > -1e-12


def test_cells_that_are_off_together_count_for_less():
    random = np.random.default_rng(0)
    slopes, cell = random.normal(size=(400, 5)), np.repeat(np.arange(20), 20)
    slopes = np.repeat(slopes[::20], 20, axis=0)
    alone, together = (
        posterior(slopes, noise, cell)[1] for noise in (random.normal(size=400), random.normal(size=20)[cell])
    )
    assert np.trace(together) > 2.0 * np.trace(alone)


def test_without_a_declared_error_the_belief_stays_the_same():
    views = around()
    belief = believed(views)
    assert corrected(belief, views, STD, NONE) is belief
    assert corrected(belief, views, STD, dataclasses.replace(DECLARED, accuracy=False)) is belief
    assert corrected(belief, [], STD, DECLARED) is belief


@pytest.mark.parametrize("offset", [-0.3, 0.2])
def test_ranges_that_are_too_long_or_short_are_found(offset):
    values, stds, inside, plain = [], [], [], []
    truth = contour(uniform_grid(SIZE))
    for seed in range(12):
        belief, common = found(around(seed=seed, offset=offset))
        values.append(common.value[0])
        stds.append(common.std[0])
        inside.append(np.mean((belief.lower <= truth) & (truth <= belief.upper)))
        plain.append(np.mean((belief.by_noise.lower <= truth) & (truth <= belief.by_noise.upper)))
    assert np.mean(np.abs(np.array(values) - offset) < 2.0 * np.array(stds)) >= 0.75
    assert abs(np.mean(values) - offset) < 0.05
    assert np.mean(plain) < 0.1
    assert np.mean(inside) > 0.9
    assert common.words.startswith("ranges are ")
    assert ("long" if offset > 0.0 else "short") in common.words
    assert common.words.endswith(", by 12 views")


def test_hits_to_the_left_are_found():
    _, common = found(around(left=-0.15))
    assert common.found.tolist() == [False, True]
    assert common.words.startswith("hits lie 0.")
    assert "to the right" in common.words


def test_honest_views_show_no_error():
    scores = [common.value / common.std for seed in range(40) for common in [found(around(seed=seed))[1]]]
    assert np.abs(scores).max() < 3.5
    assert np.mean(np.abs(scores) < 2.0) > 0.9


def test_what_no_view_contradicts_keeps_its_prior():
    belief, common = found([view_of(0.0, 0)])
    assert common.std == pytest.approx(common.prior)
    seen = np.cos(belief.angle) > math.cos(0.6)
    assert belief.common_std[seen].min() > 0.4 * common.prior[0]
    assert belief.mean == pytest.approx(belief.by_noise.mean)


def test_the_frame_does_not_matter():
    """Cells are ten degrees wide where hits are few, so that such a turn only renames them."""
    turn = math.radians(120.0)
    belief, common = found([view_of(place, 0, hits=9, offset=0.2) for place in (0.1, 0.9, 1.6, 2.4, 3.3, 4.1, 5.2)])
    turned, same = found(
        [view_of(place, 0, hits=9, offset=0.2, turn=turn) for place in (0.1, 0.9, 1.6, 2.4, 3.3, 4.1, 5.2)], turn=turn
    )
    assert same.value == pytest.approx(common.value, abs=1e-6)
    assert same.std == pytest.approx(common.std, abs=1e-6)
    assert np.roll(turned.std, -SIZE // 3) == pytest.approx(belief.std, abs=1e-6)


def test_noise_that_neighbouring_beams_share_widens_the_band():
    alone, shared = (
        np.mean([np.median(found(around(seed=seed, correlation=part))[0].std) for seed in range(4)])
        for part in (0.0, 0.9)
    )
    assert shared > 1.2 * alone


def test_the_message_carries_what_is_found():
    belief = found(around(offset=0.2))[0]
    sent = belief.as_transmitted()
    assert sent.common is not None
    assert sent.by_noise.mean == pytest.approx(np.asarray(belief.by_noise.mean, dtype=np.float32), abs=0.0)
    assert sent.common.words == belief.common.words


def test_the_planner_chooses_as_if_nothing_was_common_to_views():
    scene, camera = Scene(), SimulatedCamera(parse_object("polygon:star", Scene()), Scene(), SensorSettings())
    decisions = []
    for accuracy in (True, False):
        config = EpisodeConfig(
            planner=PlannerSettings(planner="greedy", objective="U"), accuracy=AccuracySettings(accuracy=accuracy)
        )
        mapping, planner = config.parts()
        for angle in (0.0, 0.5, 1.0, 2.0):
            pose = View(angle, scene.view_distance).pose
            mapping.add_view(camera.scan(pose, 1), pose)
        belief = mapping.belief().as_transmitted()
        assert (belief.common is not None) == accuracy
        decisions.append(planner.decide(belief))
    assert decisions[0].view == decisions[1].view
    assert np.array_equal(decisions[0].utilities, decisions[1].utilities)
