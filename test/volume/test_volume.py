"""The implicit surface against oracles of its own: dense regression, a brute-force walk, and bodies
that are known.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
from scipy.spatial import cKDTree

from nbv_planner.errors import MeasurementError, SettingError
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.objectives import EXPECTED, ExpectedMarginalCoverage
from nbv_planner.planning.planners import DecisionSettings, RolloutPlanner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.surface.coverage import CoverageTarget, PointSet
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.grid import FREE, HIT, UNKNOWN, Lattice
from nbv_planner.volume.implicit import ImplicitPrior, MaternTerm, Observations, Posterior
from nbv_planner.volume.solids import Sight, elements
from nbv_planner.volume.volume_surface import (
    VolumeCertificate,
    VolumeForm,
    VolumeModel,
    VolumeSurface,
)
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import BeamScene

SCENE = BeamScene()
AIM = CoverageTarget("length", 0.3)
U = np.array(
    [(-4, -4), (4, -4), (4, 4), (2.2, 4), (2.2, 0.6), (-2.2, 0.6), (-2.2, 4), (-4, 4)], dtype=float
)
BEARINGS = np.linspace(-1.0, 1.0, 121) * math.radians(17.5)


def rays_to(hits: Hits, away: np.ndarray, reach: float) -> FreeRays:
    """Free rays of hits from one place, three standard deviations short, and of misses."""
    beam = hits.points - hits.origin
    length = np.linalg.norm(beam, axis=1)
    clear = np.append(length - 3.0 * hits.sigma, np.full(len(away), reach))
    of_hit = np.arange(len(clear)) < len(hits)
    return FreeRays(hits.origin[0], np.concatenate([beam / length[:, None], away]), clear, of_hit)


def scanned(
    corners: np.ndarray, pose: CameraPose, rng, sigma: float
) -> tuple[Hits, list[FreeRays]]:
    """Hits and free rays of 121 beams on a polygon."""
    ranges = cast_beams(Contour(*corners.T), pose, BEARINGS)
    hit, at = ranges <= SCENE.range_max, np.array([pose.x, pose.y])
    noisy = ranges[hit] + sigma * rng.standard_normal(hit.sum())
    points = np.stack(pose.to_world(BEARINGS[hit], noisy), axis=1)
    away = np.stack(pose.to_world(BEARINGS[~hit], np.ones((~hit).sum())), axis=1) - at
    number = len(points)
    hits = Hits(
        points, np.full(number, sigma), np.tile(at, (number, 1)), np.zeros(number, dtype=int)
    )
    return hits, [rays_to(hits, away, SCENE.range_max)]


def mapped(number: int, sigma: float = 0.02) -> VolumeSurface:
    rng, surface = np.random.default_rng(3), VolumeSurface.blank(VolumeForm())
    for pose in Poses.on_circle(np.arange(number) * 2.0 * np.pi / number, 10.0):
        hits, free = scanned(U, pose, rng, sigma)
        surface = surface.adding(hits, free)
    return surface


def inside_u(points: np.ndarray) -> np.ndarray:
    x, y = points.T
    return (np.abs(x) < 4.0) & (np.abs(y) < 4.0) & ~((np.abs(x) < 2.2) & (y > 0.6))


def outline_of_u() -> np.ndarray:
    edges = np.roll(U, -1, axis=0) - U
    part = np.arange(0.0, 1.0, 0.005)[:, None]
    return np.concatenate([start + part * edge for start, edge in zip(U, edges, strict=True)])


def distance_of_u(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - outline_of_u()[None, ::4], axis=-1).min(axis=1)


@pytest.mark.parametrize("dimension", [2, 3])
def test_samples_have_the_moments_of_the_exact_posterior(dimension):
    """The oracle writes the kernel anew, and conditions by plain inverses."""

    def kernel(one, other):
        r = np.linalg.norm(one[:, None] - other[None], axis=-1)
        a, b = math.sqrt(5.0) * r / 0.7, math.sqrt(3.0) * r / 0.4
        return 0.09 * (1 + a + a * a / 3) * np.exp(-a) + 0.01 * (1 + b) * np.exp(-b) + 0.04

    terms = (MaternTerm(0.3, 0.7), MaternTerm(0.1, 0.4, rough=True))
    prior = ImplicitPrior(terms, constant=0.2, slope=0.8, middle=0.45)
    coarse = Lattice.around(dimension, 32 if dimension == 2 else 20, 8.0)
    rng = np.random.default_rng(5)
    at = rng.choice(len(coarse.centres), 12, replace=False)
    points = coarse.centres[at] / coarse.radius
    given = Observations(points, rng.normal(0.0, 0.2, 12), np.full(12, 0.15))
    where = np.zeros(len(coarse.centres), dtype=bool)
    where[np.append(at[:4], rng.choice(len(where), 11, replace=False))] = True
    places, count = coarse.centres[where] / coarse.radius, 3000
    gain = kernel(places, points) @ np.linalg.inv(kernel(points, points) + 0.15**2 * np.eye(12))
    level = 0.8 * (np.linalg.norm(places, axis=1) - 0.45)
    mean = level + gain @ (given.values - 0.8 * (np.linalg.norm(points, axis=1) - 0.45))
    covariance = kernel(places, places) - gain @ kernel(points, places)
    posterior = Posterior(prior, coarse, given)
    samples = posterior.samples(count, 1, where)
    assert np.isinf(samples[:, ~where]).all()
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(
        np.abs(samples[:, where].mean(axis=0) - mean), 5.0 * std / math.sqrt(count)
    )
    apart = np.abs(np.cov(samples[:, where].T) - covariance)
    assert (apart / np.outer(std, std)).max() < 5.0 * math.sqrt(2.0 / count)
    np.testing.assert_allclose(posterior.mean(coarse.centres[where]), mean, atol=1e-9)
    np.testing.assert_allclose(posterior.std(coarse.centres[where]), std, atol=1e-9)
    np.testing.assert_array_equal(samples, Posterior(prior, coarse, given).samples(count, 1, where))


def brute_visible(lattice: Lattice, solid: np.ndarray, cell: int, pose: CameraPose) -> float:
    """Part of 9 x 9 beams to places of a cell that come to it, by small steps through the solid."""
    at, spread = np.array([pose.x, pose.y]), np.linspace(-0.45, 0.45, 9) * lattice.cell
    aside = np.stack(np.meshgrid(spread, spread), axis=-1).reshape(-1, 2)
    free = 0
    for target in lattice.centres[cell] + aside:
        beam = target - at
        steps = np.linspace(0.0, 1.0, 700)[:, None]
        way = lattice.index(at + steps * beam)
        free += not (solid[way[way >= 0]] & (way[way >= 0] != cell)).any()
    return free / 81.0


def test_the_walk_of_all_solids_at_once_equals_a_brute_force_walk():
    """Seen is what a beam meets, or what is beside that. Cells of which only a sliver can be seen
    may differ.
    """
    lattice = Lattice.around(2, 48, 8.0)
    solids = np.stack(
        [inside_u(lattice.centres), np.linalg.norm(lattice.centres - (1.0, 0.5), axis=1) < 3.0]
    )
    drawn = elements(lattice, solids, 10_000, 0)
    poses = Poses.from_polar(
        np.array([0.3, 1.6, 4.0]), np.full(3, 10.0), np.array([0.0, 0.1, -0.1])
    )
    seen = Sight(lattice).visible(drawn, poses, SCENE)
    wrong, number = 0, 0

    @cache
    def met(solid, cell, view):
        return brute_visible(lattice, solids[solid], cell, poses[view])

    for solid in range(2):
        for view, pose in enumerate(poses):
            for element in np.flatnonzero(drawn.size[solid]):
                cell = drawn.cell[solid, element]
                x, y = pose.to_camera(*lattice.centres[cell])
                off, far = abs(math.atan2(y, x)), math.hypot(x, y)
                if (
                    abs(off - math.radians(17.5)) < lattice.cell / far
                    or abs(far - 10.0) < lattice.cell
                ):
                    continue
                own = met(solid, cell, view)
                cross = lattice.cell * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
                sides = lattice.index(lattice.centres[cell] + cross)
                sides = sides[solids[solid][sides]]
                part = max([own, *(met(solid, side, view) for side in sides)])
                inside = off < math.radians(17.5) and far < 10.0
                sliver = inside and 0.0 < part < 0.15
                wrong += bool(seen[solid, view, element]) != (part > 0.0 and inside) and not sliver
                number += 1
    assert number > 300
    assert wrong <= 0.02 * number


def test_beams_free_up_to_a_cell_before_their_return_and_nothing_behind():
    surface = VolumeSurface.blank(VolumeForm())
    hit = Hits(
        np.array([[2.0, 0.0]]), np.array([0.01]), np.array([[10.0, 0.0]]), np.zeros(1, dtype=int)
    )
    surface = surface.adding(hit, [rays_to(hit, np.empty((0, 2)), 0.0)])
    lattice, state = surface.form.lattice, surface.cells.state
    along = state[
        lattice.index(np.stack([np.linspace(-7.0, 7.0, 300), np.full(300, 1e-6)], axis=1))
    ]
    x = np.linspace(-7.0, 7.0, 300)
    assert (along[x > 2.0 + 2.0 * lattice.cell] == FREE).all()
    assert (along[x < 2.0 - lattice.cell] == UNKNOWN).all()
    assert not (along[np.abs(x - 2.0) < 0.9 * lattice.cell] == FREE).any()
    noisy = dataclasses.replace(hit, sigma=np.array([0.2]))
    rays = [rays_to(noisy, np.empty((0, 2)), 0.0)]
    state = VolumeSurface.blank(VolumeForm()).adding(noisy, rays).cells.state
    along = state[lattice.index(np.stack([x, np.full(300, 1e-6)], axis=1))]
    assert not (along[(x > 2.0) & (x < 2.6 - lattice.cell)] == FREE).any(), (
        "three standard deviations"
    )
    assert (along[x > 2.6 + lattice.cell] == FREE).all()
    assert state[lattice.index(np.array([2.0, 0.0]))] == HIT


def test_a_letter_is_reconstructed_and_known_free_space_is_never_solid():
    surface = mapped(24)
    lattice = surface.form.lattice
    solids = surface.solids(8, 0)
    assert not solids[:, surface.cells.state == FREE].any()
    wrong = (solids != inside_u(lattice.centres)) & (distance_of_u(lattice.centres) > lattice.cell)
    assert wrong.mean(axis=1).max() * (2.0 * lattice.half) ** 2 < 0.02 * 49.04, (
        "square metres of a U of 49"
    )
    assert surface.measured(0.3) > 0.9


# Thin feet and tips, and notches whose walls meet.
_X = (-3.0, 3.0, 3.0, 0.6, 0.6, 3.2, 3.2, 2.6, 0.6, 0.6, -0.6, -0.6, -3.0)
_Y = (-4.2, -4.2, -3.7, -3.7, -1.5, 3.2, 3.7, 3.7, 0.0, 4.2, 4.2, -3.7, -3.7)
K = np.stack([_X, _Y], axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_the_likeliest_outline_reaches_into_notches_and_out_to_tips(seed):
    """Noise 0.2 m, 14 views: less than 90 % with the prior of the samples, of each seed."""
    rng, surface = np.random.default_rng(seed), VolumeSurface.blank(VolumeForm())
    for pose in Poses.on_circle(np.arange(14) * 2.0 * np.pi / 14, 10.0):
        surface = surface.adding(*scanned(K, pose, rng, 0.2))
    edges = np.roll(K, -1, axis=0) - K
    part = np.arange(0.0, 1.0, 0.01)[:, None]
    points = np.concatenate([start + part * edge for start, edge in zip(K, edges, strict=True)])
    true = PointSet(points, np.repeat(np.linalg.norm(edges, axis=1), len(part)))
    measured = surface.measured_points(0.3)
    assert true.part(true.distance_from(measured) <= 0.3) > 0.9
    assert measured.part(measured.distance_from(true) <= 0.3) > 0.985


@pytest.mark.parametrize("body", ["sphere", "cube"])
def test_bodies_in_space_are_reconstructed_within_tau(body):
    """Beams from 26 sides, without noise; tau is a 20th of the radius of the ball, as in the
    design.
    """
    model, tau, rng = VolumeForm(dimension=3), 0.4, np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[(-1.0, 0.0, 1.0)] * 3), axis=-1).reshape(-1, 3)
    sides = [one / np.linalg.norm(one) for one in grid if one.any()]
    surface = VolumeSurface.blank(model)
    for side in sides:
        origin = 20.0 * side
        target = rng.uniform(-6.0, 6.0, (3000, 3))
        direction = (target - origin) / np.linalg.norm(target - origin, axis=1)[:, None]
        reach = reach_of(body, origin, direction)
        hit = np.isfinite(reach)
        at = np.tile(origin, (hit.sum(), 1))
        points = at + reach[hit, None] * direction[hit]
        hits = Hits(points, np.full(len(points), 0.02), at, np.zeros(len(points), dtype=int))
        surface = surface.adding(hits, [rays_to(hits, direction[~hit], 40.0)])
    sampled = surface.hypotheses(CoverageTarget("length", tau), 3, 0)
    face = surface.form.lattice.cell**2  # hypotheses count for faces
    for drawn, unit in ((sampled, face), (surface.outline()[0], 1.0)):
        for points, size in zip(drawn.points, drawn.size, strict=True):
            away = np.abs(distance_of(body, points[size > 0.0]))
            assert np.quantile(away, 0.99) < tau
        assert (unit * drawn.size.sum(axis=1) / area_of(body)).tolist() == pytest.approx(
            [1.0] * len(drawn.size), rel=0.15
        )
    assert surface.measured(tau) > 0.98


def reach_of(body, origin, direction):
    if body == "sphere":
        along = -direction @ origin
        square = along**2 - origin @ origin + 16.0
        return np.where(square > 0.0, along - np.sqrt(np.maximum(square, 0.0)), np.inf)
    with np.errstate(divide="ignore"):
        walls = (np.array([-1.0, 1.0])[:, None, None] * 3.0 - origin) / direction
    near, far = walls.min(axis=0).max(axis=1), walls.max(axis=0).min(axis=1)
    return np.where(near < far, near, np.inf)


def distance_of(body, points):
    if body == "sphere":
        return np.linalg.norm(points, axis=1) - 4.0
    beyond = np.abs(points) - 3.0
    return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)


def area_of(body):
    return 4.0 * np.pi * 16.0 if body == "sphere" else 216.0


def test_hits_are_merged_so_that_their_number_is_bounded():
    one, rng = mapped(8, 0.1), np.random.default_rng(1)
    pose = CameraPose.from_polar(0.3, 10.0)
    many = one
    for _ in range(40):
        many = many.adding(scanned(U, pose, rng, 0.1)[0])
    again = many
    for _ in range(40):
        again = again.adding(scanned(U, pose, rng, 0.1)[0])
    assert again.count > 1.8 * many.count - one.count
    assert len(again.cells.hits.key) < 1.2 * len(many.cells.hits.key)
    assert len(again.posterior.given.values) < 1.2 * len(many.posterior.given.values)
    assert again.cells.hits.number.sum() == again.count


def test_a_hit_more_never_lowers_what_is_seen_of_the_same_hypotheses():
    surface = mapped(4)
    drawn = surface.hypotheses(AIM, 4, 0)
    place = drawn.points[0, int(np.flatnonzero(drawn.seen[0] == 0.0)[0])]
    hit = Hits(place[None], np.array([0.02]), 2.0 * place[None], np.zeros(1, dtype=int))
    after = surface.adding(hit).met(drawn, AIM.tau)
    assert (after.seen >= drawn.seen).all()
    assert after.seen.sum() > drawn.seen.sum()


def test_a_mapper_copy_is_independent_and_surfaces_do_not_change():
    mapper = VolumeModel(VolumeForm())
    hits, free = scanned(U, CameraPose.from_polar(0.0, 10.0), np.random.default_rng(0), 0.1)
    mapper.take(hits, free)
    before, twin = mapper.belief(), mapper.copy()
    state = before.cells.state.copy()
    twin.take(scanned(U, CameraPose.from_polar(2.0, 10.0), np.random.default_rng(0), 0.1)[0])
    assert mapper.belief() is before
    np.testing.assert_array_equal(before.cells.state, state)
    assert twin.belief().count > before.count == len(hits)
    mapper.reset()
    assert not mapper.belief().drawable


def test_the_interval_of_the_estimate_is_wider_than_that_of_the_samples():
    """Its ends leave 2 and 0.3 of what those of the samples leave to be seen; a claim is asked for
    three times in a row.
    """
    surface, views = mapped(6), Poses.on_circle(np.arange(60) * 2.0 * np.pi / 60, 10.0)
    taken = Poses.on_circle(np.arange(6) * 2.0 * np.pi / 6, 10.0)
    drawn = surface.hypotheses(AIM, 20, 3)
    ever = surface.visible(drawn, views, SCENE, surely=True).any(axis=1)
    counts = ever | (drawn.seen > 0.0)
    met = drawn.reached(surface.visible(drawn, taken, SCENE, surely=True), AIM.tau)
    seen = 1.0 - (1.0 - drawn.seen) * 0.5 ** met.sum(axis=1)
    size = drawn.size * counts
    covered = (size * seen).sum(axis=1) / size.sum(axis=1)
    low, middle, high = np.quantile(covered, [0.05, 0.7, 0.95])
    certificate = VolumeCertificate(SCENE, AIM, views, middle, count=20, seed=3)
    found = certificate.estimate(surface, taken, 0.1)
    assert (found.lower, found.mean, found.upper) == pytest.approx(
        (max(1.0 - 2.0 * (1.0 - low), 0.0), covered.mean(), 1.0 - 0.3 * (1.0 - high))
    )
    assert found.probability == pytest.approx(np.mean(covered >= middle)) == pytest.approx(0.3)
    assert found.asked == 3
    assert 0.0 <= found.lower < found.mean < found.upper < 1.0


def test_what_is_surely_seen_is_near_enough_that_no_noise_moves_it_out_of_range():
    """Noise 0.1 m: up to 9.7 m of 10; most beams return up to 9.9 m."""
    surface, views = mapped(6, 0.1), Poses.on_circle(np.arange(60) * 2.0 * np.pi / 60, 10.0)
    drawn = surface.hypotheses(AIM, 8, 0)
    every, sure = (surface.visible(drawn, views, SCENE, surely=one) for one in (False, True))
    away = np.linalg.norm(drawn.points[:, None] - views.position[:, None], axis=-1)
    np.testing.assert_array_equal(sure, every & (away <= 9.7))
    assert 9.7 < away[every].max() <= 9.9
    assert sure.sum() < every.sum()


def test_before_a_hit_shapes_are_those_of_the_prior():
    surface = VolumeSurface.blank(VolumeForm())
    drawn, lattice = surface.hypotheses(AIM, 8, 0), surface.form.lattice
    assert not drawn.seen[drawn.size > 0.0].any()
    assert surface.measured(0.3) == 0.0
    solids = surface.solids(64, 0)
    area = solids.mean() * (2.0 * lattice.half) ** 2
    assert 0.1 < area / (math.pi * lattice.radius**2) < 0.6
    assert not solids[:, lattice.outside].any()


def test_bad_input_is_refused_in_one_line():
    surface = VolumeSurface.blank(VolumeForm())
    with pytest.raises(SettingError, match="in 2 or 3"):
        Lattice.around(4, 32, 1.0)
    hit = Hits(
        np.array([[1.0, 0.0]]), np.array([0.1]), np.array([[9.0, 0.0]]), np.zeros(1, dtype=int)
    )
    for bad, said in (
        (dataclasses.replace(hit, points=np.full((1, 2), np.nan)), "hit 0: from .* to .*nan"),
        (dataclasses.replace(hit, sigma=np.zeros(1)), "hit 0: .*deviation 0.0: must be"),
        (Hits.none(3), "hits are of shape"),
    ):
        with pytest.raises(MeasurementError, match=said):
            surface.adding(bad)
    with pytest.raises(MeasurementError, match="rays of 1 hits, must be of 0"):
        surface.adding(Hits.none(), [rays_to(hit, np.empty((0, 2)), 0.0)])


def test_a_restored_model_draws_the_same_shapes_and_refuses_what_is_no_state():
    known, again = VolumeModel(VolumeForm()), VolumeModel(VolumeForm())
    for angle in (0.0, 2.0):
        known.take(*scanned(U, CameraPose.from_polar(angle, 10.0), np.random.default_rng(0), 0.1))
    state = known.state()
    again.restore(state)
    assert again.count == known.count == known.belief().count
    np.testing.assert_array_equal(again.points, known.points)
    np.testing.assert_array_equal(again.belief().solids(4, 1), known.belief().solids(4, 1))
    for model in (known, again):
        more = scanned(U, CameraPose.from_polar(4.0, 10.0), np.random.default_rng(1), 0.1)
        model.take(*more)
    np.testing.assert_array_equal(again.belief().solids(4, 1), known.belief().solids(4, 1))
    wrong = {
        "cells": np.full_like(state["cells"], 7),
        "hit_cells": state["hit_cells"][::-1],
        "hit_weight": 0.0 * state["hit_weight"],
        "hit_points": np.full_like(state["hit_points"], np.nan),
        "hit_number": state["hit_number"][1:],
        "count": np.array(-1),
    }
    for name, values in wrong.items():
        with pytest.raises(MeasurementError):
            again.restore({**state, name: values})
    blank = VolumeModel(VolumeForm()).state()
    with pytest.raises(MeasurementError, match="does not say so"):
        again.restore({**state, "cells": blank["cells"]})
    np.testing.assert_array_equal(again.belief().solids(4, 1), known.belief().solids(4, 1))


def test_a_letter_is_planned_and_ended_by_planner_and_monitor():
    """What is claimed is true: at the end the whole outline has a hit within tau, noise
    included.
    """
    space = CircleViewSpace(ViewSpaceSettings(num_views=60), SCENE.view_distance)
    settings = DecisionSettings(planner="rollout", objective=EXPECTED, deadline=60.0)
    planner = RolloutPlanner(ExpectedMarginalCoverage(AIM, 16, 0), SCENE, space, settings)
    judge = VolumeCertificate(SCENE, AIM, space.candidates, 0.9)
    monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=40), judge)
    mapper, rng, visited, points, ended = (
        VolumeModel(VolumeForm()),
        np.random.default_rng(0),
        [],
        [],
        None,
    )
    view = CameraPose.from_polar(0.0, 10.0)
    while ended is None:
        visited.append(view)
        hits, free = scanned(U, view, rng, 0.1)
        points.append(hits.points)
        mapper.take(hits, free)
        ended = monitor.after_view(mapper.belief(), 0.0, visited)
        decision = planner.decide(mapper.belief(), visited=visited)
        assert decision is not None
        view = decision.view
    assert ended.reason is TerminationReason.COVERED
    length = np.repeat(np.linalg.norm(np.roll(U, -1, axis=0) - U, axis=1), 200)
    near = cKDTree(np.concatenate(points)).query(outline_of_u())[0] <= 0.3
    assert (length * near).sum() / length.sum() > 0.85
