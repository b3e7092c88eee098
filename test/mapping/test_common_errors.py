"""Errors that all views share are found from their overlap, and what is left of them widens the
band.
"""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.wiring import mapper_and_planner, scan_mapping
from nbv_planner.geometry import angle_difference, cartesian_to_polar, polar_to_cartesian
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.star2d.belief import CommonErrors, SurfaceBelief, uniform_grid
from nbv_planner.star2d.common_errors import AccuracySettings, Crossings, corrected, posterior
from nbv_planner.star2d.overlap import ContourPolyline, ViewData
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

STD, RADIUS, DISTANCE, SIZE = 0.1, 5.0, 13.0, 720
DECLARED = AccuracySettings(
    accuracy=True, range_offset_std=0.2, mount_std=0.04, bearing_scale_std=0.0
)
NONE = dataclasses.replace(
    DECLARED,
    range_offset_std=0.0,
    range_scale_std=0.0,
    bearing_offset_std=0.0,
    mount_std=0.0,
    time_skew_std=0.0,
)
# A sensor on a side of a robot that drives past the object, on straight ways: its heading stays.
SPEED = 0.5


def contour(angle):
    return RADIUS + 0.5 * np.cos(3.0 * angle)


def view_of(
    direction, seed, hits=80, offset=0.0, left=0.0, turn=0.0, correlation=0.0, noise=STD
) -> ViewData:
    """Noisy hits within 0.8 rad of a direction: ranges too long, hits to the left, or noise shared
    by neighbours.
    """
    random = np.random.default_rng([seed, int(1000 * direction)])
    angle = np.sort(direction + random.uniform(-0.8, 0.8, hits))
    error = noise * random.standard_normal(hits)
    for beam in range(1, hits):
        error[beam] = correlation * error[beam - 1] + math.sqrt(1.0 - correlation**2) * error[beam]
    pose = CameraPose.from_polar(direction, DISTANCE)
    x, y = polar_to_cartesian(angle, contour(angle))
    far = np.hypot(x - pose.x, y - pose.y)
    along_x, along_y = (x - pose.x) / far, (y - pose.y) / far
    x, y = (
        x + (offset + error) * along_x - left * along_y,
        y + (offset + error) * along_y + left * along_x,
    )
    cos, sin = math.cos(turn), math.sin(turn)
    points = np.stack([cos * x - sin * y, sin * x + cos * y, np.full(hits, STD)])
    place = cos * pose.x - sin * pose.y, sin * pose.x + cos * pose.y, pose.yaw + turn
    return ViewData(np.array(place), points, np.empty((2, 0)))


def of_driving(
    view: ViewData, speed: float, turn: float = 0.0, late: float = 0.0, wide: float = 0.0
) -> ViewData:
    """The view of a camera that drives to its left and turns, its scan stamped too late, its
    bearings too wide.
    """
    x, y, yaw = view.pose
    angle, far = (
        np.arctan2(view.hits[1] - y, view.hits[0] - x),
        np.hypot(view.hits[0] - x, view.hits[1] - y),
    )
    rate = np.array([-speed * math.sin(yaw), speed * math.cos(yaw), turn])
    x, y, told = view.pose + late * rate
    angle = told + (1.0 + wide) * angle_difference(angle, yaw)
    hits = np.stack([x + far * np.cos(angle), y + far * np.sin(angle), view.hits[2]])
    return ViewData(np.array([x, y, told]), hits, view.rays, rate)


def driven(seed=0, speed=SPEED, turn=0.0, **errors) -> list[ViewData]:
    """Views from all around, every second one on the way back."""
    return [
        of_driving(view, way * speed, way * turn, **errors)
        for way in (1.0, -1.0)
        for view in around(seed=2 * seed + (way > 0.0), hits=160)
    ]


def around(count=12, seed=0, **errors):
    return [
        view_of(direction, seed, **errors)
        for direction in np.arange(count) * (2.0 * math.pi / count)
    ]


def believed(views, turn=0.0) -> SurfaceBelief:
    """A contour through the hits, as a mapper gives it: the true one, moved by how far they are off
    it nearby.
    """
    grid = uniform_grid(SIZE)
    x, y = np.concatenate([view.hits[:2] for view in views], axis=1)
    angle, radius = cartesian_to_polar(x, y)
    weight = np.exp(40.0 * (np.cos(grid[:, np.newaxis] - angle) - 1.0))
    off = weight @ (radius - contour(angle - turn)) / weight.sum(axis=1)
    mean, std = contour(grid - turn) + off, np.full(SIZE, 0.03)
    return SurfaceBelief(
        grid, mean, std, mean - 2.0 * std, mean + 2.0 * std, np.zeros(SIZE, dtype=int)
    )


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
    off = (
        slopes @ random.normal(size=5)
        + 3.0 * random.normal(size=cells)[cell]
        + 0.1 * random.normal(size=60)
    )
    # One regression with a column for each cell, whose constants have no prior.
    design = np.column_stack(
        [np.eye(cells)[cell][:, np.bincount(cell, minlength=cells) > 0], slopes]
    )
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
        posterior(slopes, noise, cell)[1]
        for noise in (random.normal(size=400), random.normal(size=20)[cell])
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
    assert common.summary.startswith("ranges are ")
    assert ("long" if offset > 0.0 else "short") in common.summary
    assert common.summary.endswith(", by 12 views")


def test_hits_to_the_left_are_found():
    _, common = found(around(left=-0.15))
    assert common.significant.tolist() == [False, True, False, False]
    assert common.summary.startswith("hits lie 0.")
    assert "to the right" in common.summary


def within(values, stds, truth) -> bool:
    """Whether most intervals of two standard deviations hold the truth, and their middles are about
    it on average.
    """
    values, stds = np.array(values), np.array(stds)
    inside = np.mean(np.abs(values - truth) < 2.0 * stds)
    return bool(inside >= 0.75 and abs(values.mean() - truth) < 2.0 * stds.mean())


@pytest.mark.parametrize("wide", [-0.02, 0.02])
def test_bearings_that_are_too_wide_or_narrow_are_found(wide):
    settings = dataclasses.replace(DECLARED, bearing_scale_std=0.02)
    commons = [found(driven(seed, speed=0.0, wide=wide), settings)[1] for seed in range(8)]
    assert within([one.value[2] for one in commons], [one.std[2] for one in commons], wide)
    words = [one.summary for one in commons if one.significant[2]]
    assert words
    for said in words:
        assert re.search(
            rf"bearings are \d\.\d ± 0\.\d % {'wide' if wide > 0.0 else 'narrow'}\b", said
        )


@pytest.mark.parametrize("late", [-0.1, 0.1])
def test_scans_that_are_late_or_early_are_found_by_a_camera_that_drives(late):
    settings = dataclasses.replace(DECLARED, time_skew_std=0.1)
    commons = [found(driven(seed, late=late), settings)[1] for seed in range(8)]
    assert within([one.value[3] for one in commons], [one.std[3] for one in commons], late)
    assert all(one.significant[3] for one in commons)
    way = "late" if late > 0.0 else "early"
    for one in commons:
        assert re.search(rf"scans are 0\.\d+ ± 0\.0\d+ s {way}, by 24 views", one.summary)


@pytest.mark.parametrize("late", [0.0, 0.1])
def test_the_skew_is_found_from_scans_and_poses_as_they_arrive(late):
    """The camera drives around the object at 0.5 m/s, facing it, once to either side; each scan is
    stamped late.
    """
    scene, config = (
        Scene(),
        EpisodeConfig(accuracy=AccuracySettings(accuracy=True, time_skew_std=0.1)),
    )
    camera = SimulatedCamera(parse_object("polygon:star", scene), scene, SensorSettings())
    mapping = scan_mapping(config)
    matcher = ScanMatcher(MatchingSettings(integrate="always", scans_per_view=1), ArrivalSettings())
    for number in range(1, 25):
        begin, way = number * 10**9, 1.0 if number % 2 else -1.0
        times = np.array([*np.arange(0.0, 0.6, 0.05), 0.5 - late])
        angles = math.pi / 6.0 * (number // 2) + way * SPEED / scene.view_distance * times
        places = [CameraPose.from_polar(angle, scene.view_distance) for angle in angles]
        matcher.set_goal(begin, places[0])
        for step, pose in enumerate(places[:-1]):
            matcher.add_pose(begin + step * 50_000_000, pose)
        matcher.add_scan(begin + 500_000_000, camera.scan(places[-1], number))
        mapping.add(matcher.take(), number - 1)
    common = mapping.belief().common
    assert common.views == 24
    assert abs(common.value[3] - late) < 2.0 * common.std[3] < 0.06
    assert ("s late" in common.summary) == (late > 0.0)


def test_columns_are_derivatives_of_the_hits_by_each_error():
    """Against views in which one error was made."""
    view = of_driving(view_of(0.3, 0, noise=0.0), SPEED, 0.2)
    view.hits[2] = 0.01  # how far the crossing of the contour is sought, in chords of it
    outline, step = ContourPolyline(believed(around(noise=0.0)), 0.01), 1e-5
    cos, sin = math.cos(view.pose[2]), math.sin(view.pose[2])
    beam = (view.hits[:2] - view.pose[:2, np.newaxis]) / np.hypot(
        *(view.hits[:2] - view.pose[:2, np.newaxis])
    )
    far = np.hypot(*(view.hits[:2] - view.pose[:2, np.newaxis]))
    across, zero = np.stack([-beam[1], beam[0]]) * far, np.zeros_like(far)
    bearing = angle_difference(np.arctan2(beam[1], beam[0]), view.pose[2])
    moves = [
        beam,
        beam * far,
        across,
        np.stack([zero + cos, zero + sin]),
        np.stack([zero - sin, zero + cos]),
    ]
    moves += [across * bearing, across * view.rate[2] + view.rate[:2, np.newaxis]]
    by = Crossings.of([view], outline).by
    for column, move in enumerate(moves):
        moved = (view.hits + sign * step * np.vstack([move, zero]) for sign in (1.0, -1.0))
        after, before = (
            Crossings.of([dataclasses.replace(view, hits=hits)], outline).off for hits in moved
        )
        assert by[:, column] == pytest.approx(
            (after - before) / (2.0 * step), abs=0.05 * np.abs(by[:, column]).max()
        )
    late, early = (
        of_driving(view_of(0.3, 0, noise=0.0), SPEED, 0.2, late=sign * step) for sign in (1.0, -1.0)
    )
    assert (late.hits - early.hits)[:2] / (2.0 * step) == pytest.approx(moves[6], abs=1e-6)
    wide, narrow = (
        of_driving(view_of(0.3, 0, noise=0.0), SPEED, 0.2, wide=sign * step) for sign in (1.0, -1.0)
    )
    assert (wide.hits - narrow.hits)[:2] / (2.0 * step) == pytest.approx(moves[5], abs=1e-6)


def test_what_tells_nothing_changes_nothing_of_the_others():
    """To the digit: the skew where no camera moves, and the scale of bearings that is known."""
    views, plain = around(offset=0.2), dataclasses.replace(DECLARED, time_skew_std=0.0)
    slopes = np.random.default_rng(0).normal(size=(200, 5))
    off, cluster = slopes @ np.ones(5), np.arange(200) // 4
    mean, covariance = posterior(slopes, off, cluster)
    more, wider = posterior(np.column_stack([slopes, np.zeros((200, 2))]), off, cluster)
    assert more.tolist() == [*mean, 0.0, 0.0]
    assert wider[:5, :5].tolist() == covariance.tolist()
    assert wider[5:].tolist() == np.eye(7)[5:].tolist()
    (belief, common), (same, also) = (
        found(views, settings)
        for settings in (plain, dataclasses.replace(plain, time_skew_std=0.02))
    )
    assert also.value.tolist() == common.value.tolist()
    assert also.std.tolist() == [*common.std[:3], 0.02]
    for name in ("mean", "std", "lower", "upper"):
        assert getattr(same, name).tolist() == getattr(belief, name).tolist()


def test_honest_views_show_no_error():
    scores = [
        common.value[:2] / common.std[:2]
        for seed in range(40)
        for common in [found(around(seed=seed))[1]]
    ]
    assert np.abs(scores).max() < 3.5
    assert np.mean(np.abs(scores) < 2.0) > 0.9


def test_honest_views_of_a_camera_that_drives_show_no_error():
    settings = dataclasses.replace(DECLARED, bearing_scale_std=0.02, time_skew_std=0.1)
    scores = [
        common.value / common.std
        for seed in range(20)
        for common in [found(driven(seed), settings)[1]]
    ]
    assert np.abs(scores).max() < 3.5
    assert np.mean(np.abs(scores) < 2.0, axis=0).min() >= 0.8


def test_what_no_view_contradicts_keeps_its_prior():
    belief, common = found([view_of(0.0, 0)])
    assert common.std == pytest.approx(common.prior)
    seen = np.cos(belief.angle) > math.cos(0.6)
    assert belief.common_std[seen].min() > 0.4 * common.prior[0]
    assert belief.mean == pytest.approx(belief.by_noise.mean)


def test_the_frame_does_not_matter():
    """Cells are ten degrees wide where hits are few, so that such a turn only renames them."""
    turn = math.radians(120.0)
    belief, common = found(
        [view_of(place, 0, hits=9, offset=0.2) for place in (0.1, 0.9, 1.6, 2.4, 3.3, 4.1, 5.2)]
    )
    turned, same = found(
        [
            view_of(place, 0, hits=9, offset=0.2, turn=turn)
            for place in (0.1, 0.9, 1.6, 2.4, 3.3, 4.1, 5.2)
        ],
        turn=turn,
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
    assert sent.by_noise.mean == pytest.approx(
        np.asarray(belief.by_noise.mean, dtype=np.float32), abs=0.0
    )
    assert sent.common.summary == belief.common.summary


def test_the_planner_chooses_as_if_nothing_was_common_to_views():
    scene, camera = (
        Scene(),
        SimulatedCamera(parse_object("polygon:star", Scene()), Scene(), SensorSettings()),
    )
    decisions = []
    for accuracy in (True, False):
        config = EpisodeConfig(
            planner=PlannerSettings(planner="greedy", objective="U"),
            accuracy=AccuracySettings(accuracy=accuracy),
        )
        mapping, planner = mapper_and_planner(config)
        for angle in (0.0, 0.5, 1.0, 2.0):
            pose = CameraPose.from_polar(angle, scene.view_distance)
            mapping.add_view(camera.scan(pose, 1), pose)
        belief = mapping.belief().as_transmitted()
        assert (belief.common is not None) == accuracy
        decisions.append(planner.decide(belief))
    assert decisions[0].view == decisions[1].view
    assert np.array_equal(decisions[0].utilities, decisions[1].utilities)
