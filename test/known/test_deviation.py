"""Nominal against actual: distances from an outline, its place, what differs, and the verdict."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.known.best_fit import BestFit
from nbv_planner.known.deviation import Conformity, deviation_of
from nbv_planner.known.nominal import CELLS, Nominal
from nbv_planner.known.prior_outline import nominal_in_file
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.scene import Scene

NOISE = 0.1
PLACE = (0.4, 0.1)


def egg(count=900):
    angle = 2.0 * math.pi / count * np.arange(count)
    radius = 4.0 + 0.8 * np.cos(angle - 0.4) + 0.5 * np.sin(3.0 * angle)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


EGG = Nominal([egg()])
COMB = [(0, 0), (6, 0), (6, 4), (4, 4), (4, 1), (2, 1), (2, 4), (0, 4)]
TWO = [np.array(COMB, dtype=float), np.array([(8.0, 0.0), (8.0, 2.0), (10.0, 2.0), (10.0, 0.0)])]


def hits_on(points, normals, off=0.0, seed=0, noise=NOISE):
    """Hits of beams that come along the normal, `off` the outline, with noise."""
    way = off + noise * np.random.default_rng(seed).standard_normal(len(points))
    hit = points + np.reshape(way, (-1, 1)) * normals
    sigma = np.full(len(points), noise)
    return Hits(hit, sigma, points + 6.0 * normals, np.zeros(len(points), dtype=np.intp))


def bell(middle, height=3.0 * NOISE, wide=0.5):
    """Height of a bump over each cell of the egg."""
    away = np.hypot(*(EGG.points - EGG.points[middle]).T)
    return height * np.exp(-4.0 * math.log(2.0) * (away / wide) ** 2)


def moved(hits, place):
    """The hits of the outline displaced by `place`, turned about its middle first."""
    cos, sin = math.cos(place[2]), math.sin(place[2])
    turn = np.array([[cos, -sin], [sin, cos]])
    middle = EGG.points.mean(axis=0)
    points, origin = (
        (one - middle) @ turn.T + middle + place[:2] for one in (hits.points, hits.origin)
    )
    return dataclasses.replace(hits, points=points, origin=origin)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_distances_are_those_to_all_edges_with_the_sign_of_the_inside(seed):
    """The oracle goes through every edge and asks for even and odd crossings."""
    points = np.random.default_rng(seed).uniform((-2.0, -2.0), (12.0, 6.0), (40, 2))
    feet = Nominal(TWO).feet(points)
    least = np.full(len(points), np.inf)
    for loop in TWO:
        for begin, end in zip(loop, np.roll(loop, -1, axis=0), strict=True):
            along = end - begin
            part = np.clip((points - begin) @ along / (along @ along), 0.0, 1.0)
            away = np.hypot(*(points - begin - part[:, None] * along).T)
            least = np.minimum(least, away)
    inside = Outlines("", TWO).holds(points).any(axis=0)
    assert feet.distance == pytest.approx(np.where(inside, -least, least), abs=1e-9)
    back = points - feet.distance[:, None] * feet.outward
    assert np.abs(Nominal(TWO).feet(back).distance).max() < 1e-9
    step = 1e-6 * feet.outward
    rise = (Nominal(TWO).feet(points + step).distance - feet.distance) / 1e-6
    assert rise == pytest.approx(np.ones(len(points)), abs=1e-3)


def test_cells_are_of_equal_length_whatever_the_direction_of_the_corners():
    one, other = Nominal(TWO), Nominal([loop[::-1] for loop in TWO])
    for nominal in (one, other):
        assert nominal.length.sum() == pytest.approx(26.0 + 8.0)
        assert len(nominal.points) == pytest.approx(CELLS, abs=1)
        outside = nominal.points + 1e-3 * nominal.normals
        assert nominal.feet(outside).distance == pytest.approx(np.full(len(outside), 1e-3))
        assert (nominal.feet(nominal.points).cell == np.arange(len(outside))).all()


@pytest.mark.parametrize("place", [(0.3, -0.2, 0.08), (-0.4, 0.3, -0.1)])
def test_the_best_fit_finds_the_place_beside_a_part_that_is_unlike(place):
    off = np.where(np.arange(CELLS) < 120, 0.8, 0.0)
    hits = moved(hits_on(EGG.points, EGG.normals, off), place)
    found = BestFit.at(EGG, hits, PLACE).best().place
    assert found == pytest.approx(place, abs=0.05)


def test_of_objects_as_their_outline_about_one_in_twenty_has_a_false_stretch():
    rng = np.random.default_rng(5)
    wrong, holds, bands = 0, [], 0
    for seed in range(25):
        seen = rng.integers(CELLS, size=400)
        hits = moved(
            hits_on(EGG.points[seen], EGG.normals[seen], seed=seed),
            rng.normal(0.0, 0.5, 3) * [0.4, 0.4, 0.1],
        )
        found = deviation_of(EGG, hits, PLACE)
        wrong += bool(found.stretches)
        holds.append(((found.lower <= 0.0) & (found.upper >= 0.0))[found.seen].mean())
        bands += bool((np.abs(found.mean) <= found.band)[found.seen].all())
    assert wrong <= 4  # 5 % of 25 are 1.25; more than 4 happen once in 140
    assert np.mean(holds) >= 0.95
    assert bands >= 21


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bump_and_a_dent_are_found_where_they_are(sign):
    middle = 300
    hits = hits_on(EGG.points, EGG.normals, sign * bell(middle))
    found = deviation_of(EGG, moved(hits, (0.2, 0.1, 0.05)), PLACE)
    (stretch,) = found.stretches
    x, y = found.points[middle]
    assert math.hypot(stretch.x - x, stretch.y - y) < 0.2
    assert 0.3 < stretch.length < 1.2
    assert 0.1 < sign * stretch.mean < 0.3
    assert sign * stretch.greatest == pytest.approx(0.3, abs=0.15)
    assert found.significant[middle]
    assert found.significant.mean() < 0.06


def test_a_wrong_hit_alone_is_no_stretch():
    found = 0
    for seed in range(6):
        hits = hits_on(EGG.points, EGG.normals, seed=seed)
        points = hits.points.copy()
        points[40] += 2.0 * EGG.normals[40]  # 20 standard deviations
        found += bool(deviation_of(EGG, dataclasses.replace(hits, points=points), PLACE).stretches)
    assert found <= 2  # it counts as 3 standard deviations, beside what chance has there


def test_what_was_not_seen_is_not_known():
    half = slice(0, CELLS // 2)
    found = deviation_of(EGG, hits_on(EGG.points[half], EGG.normals[half]), PLACE)
    assert found.part_seen == pytest.approx(0.5, abs=0.03)
    assert not found.seen[CELLS // 2 + 20 : -20].any()
    none = deviation_of(EGG, Hits.none(), PLACE)
    assert not none.seen.any()
    assert none.verdict(1.0) is Conformity.UNDECIDED


def test_as_placed_a_displacement_is_a_deviation():
    hits = moved(hits_on(EGG.points, EGG.normals, noise=0.02), (0.3, 0.0, 0.0))
    placed = deviation_of(EGG, hits, PLACE, "placed")
    right = int(EGG.points[:, 0].argmax())
    assert placed.mean[right] == pytest.approx(0.3, abs=0.05)
    assert placed.stretches
    assert not placed.place.any()
    fitted = deviation_of(EGG, hits, PLACE)
    assert not fitted.stretches
    assert fitted.mean[right] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("height", [0.5, -0.5])
def test_the_verdict_is_undecided_between_what_is_surely_within_and_surely_beyond(height):
    hits = hits_on(EGG.points, EGG.normals, bell(300, height), noise=0.05)
    found = deviation_of(EGG, hits, PLACE)
    verdicts = [found.verdict(tolerance) for tolerance in np.linspace(0.01, 1.0, 100)]
    order = [Conformity.FAIL, Conformity.UNDECIDED, Conformity.PASS]
    places = [order.index(one) for one in verdicts]
    assert places == sorted(places)
    assert set(places) == {0, 1, 2}
    # the true deviation is 0.5 m: no less passes, no more fails
    assert verdicts[-1] is Conformity.PASS
    assert 0.15 < np.linspace(0.01, 1.0, 100)[places.index(1)] < 0.5
    assert np.linspace(0.01, 1.0, 100)[places.index(2)] > 0.5


def test_the_order_of_hits_does_not_matter():
    hits = hits_on(EGG.points, EGG.normals, bell(100))
    one, other = (
        deviation_of(EGG, hits.chosen(way), PLACE) for way in (slice(None), slice(None, None, -1))
    )
    assert one.mean == pytest.approx(other.mean, abs=1e-9)
    assert len(one.stretches) == len(other.stretches)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (1000.0 * egg(), "write unit=mm"),
        (egg() + np.array([20.0, 0.0]), "farther than radius_max"),
        (np.array([(4, 4), (-4, -4), (4, -4), (-4, 4)]), "crosses itself"),
    ],
)
def test_an_outline_that_cannot_be_one_of_the_object_is_refused_in_one_line(tmp_path, points, said):
    file = tmp_path / "part.csv"
    np.savetxt(file, points, delimiter=",", header="x,y", comments="")
    with pytest.raises(ValueError, match=said) as caught:
        nominal_in_file(str(file), Scene())
    assert str(caught.value).startswith("nominal: ")
    assert "\n" not in str(caught.value)


def test_any_outline_may_be_a_nominal_one(tmp_path):
    file = tmp_path / "comb.csv"
    np.savetxt(
        file, np.array(COMB) - np.array([3.0, 2.0]), delimiter=",", header="x,y", comments=""
    )
    nominal, (along, turn) = nominal_in_file(str(file), Scene())
    assert nominal.length.sum() == pytest.approx(26.0)
    assert along == pytest.approx(0.1 * np.hypot(*nominal.points.T).mean(), rel=0.2)
    assert turn == 0.1
