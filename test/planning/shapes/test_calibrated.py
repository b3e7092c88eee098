"""The coverage of drawn shapes, corrected by what was recorded."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.certificate import (
    CURVES,
    FEATURES,
    CoverageCalibration,
    calibration_for,
    evidence,
    logit,
)
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_coverage import surface_density

GRID = uniform_grid(360)
EVIDENCE = st.fixed_dictionaries({name: st.floats(-10.0, 10.0) for name in FEATURES})
SHIPPED = calibration_for("points")


def wavy(size: float, waves: int, height: float) -> Shapes:
    return Shapes(GRID, size * (5.0 + height * np.sin(waves * GRID))[None])


def evidence_of_walk(shapes, pixel_size, grades, near, covered):
    """The same, grid angle by grid angle."""
    total, count = (
        dict.fromkeys(("covered", "hidden", "grazed", "slope", "near"), 0.0),
        len(shapes.radius),
    )
    ratios, shares = [], []
    for s, radius in enumerate(shapes.radius):
        corner = [
            (r * math.cos(a), r * math.sin(a)) for a, r in zip(shapes.angle, radius, strict=True)
        ]

        def length(points):
            return [
                abs(x - points[i - 1][0]) + abs(y - points[i - 1][1])
                for i, (x, y) in enumerate(points)
            ]

        steps = length(corner)
        shares.append(0.0)
        ratios.append(sum(steps) / sum(length(corner[::6])))
        for i, r in enumerate(radius):
            part = 0.5 * (steps[i] + steps[(i + 1) % len(steps)]) / sum(steps) / count
            rise = abs(radius[(i + 1) % len(radius)] - radius[i - 1]) / (2.0 * TWO_PI / len(radius))
            shares[-1] += part * count * covered[s, i]
            total["covered"] += part * covered[s, i]
            total["near"] += part * near[s, i]
            total["hidden"] += part * (grades[s, i] == 0)
            total["grazed"] += part * (grades[s, i] == 1)
            total["slope"] += part * min(rise / r, 5.0)
    return {
        "coverage": float(logit(total["covered"])),
        "fine": math.log(np.mean(ratios) - 1.0 + 0.005),
        "hidden": math.log(total["hidden"] + 0.002),
        "grazed": math.log(total["grazed"] + 0.002),
        "slope": total["slope"],
        "near": float(logit(total["near"])),
        "sure": float(logit(np.quantile(shares, 0.05))),
    }


def test_evidence_is_that_of_a_walk_along_each_shape():
    rng = np.random.default_rng(3)
    shapes = Shapes(GRID, rng.uniform(2.0, 8.0, (3, 360)))
    grades, near, covered = rng.integers(0, 3, (3, 360)), rng.random((3, 360)), rng.random((3, 360))
    found = evidence(shapes, surface_density(shapes, 0.1), 0.1, grades, near, covered)
    assert found == pytest.approx(evidence_of_walk(shapes, 0.1, grades, near, covered))
    assert tuple(found) == FEATURES


@given(st.floats(0.01, 100.0), st.integers(0, 40), st.floats(0.0, 1.0))
def test_evidence_has_no_scale(size, waves, height):
    covered = np.full((1, 360), 0.7)
    both = []
    for scale in (1.0, size):
        shapes = wavy(scale, waves, height)
        points = surface_density(shapes, 0.1 * scale)
        both.append(
            evidence(shapes, points, 0.1 * scale, np.ones((1, 360), dtype=int), covered, covered)
        )
    assert both[0] == pytest.approx(both[1], rel=1e-6, abs=1e-6)


def test_fine_structure_tells_rough_from_smooth():
    covered = np.ones((1, 360))
    fine = [
        evidence(shapes, surface_density(shapes, 0.1), 0.1, np.full((1, 360), 2), covered, covered)[
            "fine"
        ]
        for shapes in (wavy(1.0, 3, 0.2), wavy(1.0, 40, 0.2))
    ]
    assert fine[0] + 1.0 < fine[1]


@given(EVIDENCE, st.floats(0.5, 0.99))
def test_an_interval_holds_its_estimate(found, target):
    median, lower, upper, probability = SHIPPED.estimate(found, target)
    assert 0.0 <= lower <= median <= upper <= 1.0
    assert 0.0 <= probability < 1.0


@given(EVIDENCE, st.floats(0.0, 10.0), st.floats(0.0, 0.4))
def test_more_covered_shapes_and_a_lower_target_never_say_less(found, more, less):
    better = {**found, "coverage": found["coverage"] + more, "sure": found["sure"] + more}
    (median, *_, low), (raised, *_, high) = (
        SHIPPED.estimate(found, 0.95),
        SHIPPED.estimate(better, 0.95 - less),
    )
    assert raised >= median
    assert high >= low


def table(**changed) -> CoverageCalibration:
    known = {
        "level": 0.95,
        "features": ("coverage",),
        "within": [[-6.0, 6.0]],
        "coefficients": {"lower": [-1.0, 1.0], "median": [0.0, 1.0], "upper": [1.0, 1.0]},
        "edges": [0.0],
        "lowered": [0.0, 2.0],
        "raised": [0.0, 2.0],
        "claims": [[0.0, 0.8], [1.0, 0.96]],
    }
    return CoverageCalibration(**{**known, **changed})


def test_ends_move_by_the_class_of_the_evidence():
    smooth, rough = ({"coverage": 1.0, "fine": fine, "sure": 1.0} for fine in (-1.0, 1.0))
    expected = [1.0 / (1.0 + math.exp(-value)) for value in (1.0, 0.0, 2.0, -2.0, 4.0)]
    assert table().estimate(smooth, 0.9)[:3] == pytest.approx(expected[:3])
    assert table().estimate(rough, 0.9)[1:3] == pytest.approx(expected[3:])


def test_a_claim_is_as_probable_as_such_claims_have_held():
    for score, held in ((-0.01, 0.0), (0.0, 0.8), (0.5, 0.88), (1.0, 0.96), (2.0, 0.96)):
        found = {"coverage": 0.0, "fine": -1.0, "sure": float(logit(0.9)) + score}
        assert table().estimate(found, 0.9)[3] == pytest.approx(held)
        assert table(claims=[]).estimate(found, 0.9)[3] == 0.0, "nothing is claimed"


def test_evidence_beyond_that_of_the_episodes_counts_as_at_its_bounds():
    at, beyond = ({"coverage": value, "fine": -1.0} for value in (6.0, 60.0))
    assert table().curve("median", at) == table().curve("median", beyond)


@pytest.mark.parametrize("target", ["points", "completeness"])
def test_the_shipped_table_is_whole(target):
    shipped = calibration_for(target)
    assert shipped.features[0] == "coverage"
    assert set(shipped.features) <= set(FEATURES)
    assert set(shipped.coefficients) == set(CURVES)
    assert all(len(values) == len(shipped.features) + 1 for values in shipped.coefficients.values())
    assert all(values[1] >= 0.0 for values in shipped.coefficients.values()), (
        "an estimate rises with the shapes'"
    )
    assert len({len(shipped.edges) + 1, *map(len, (shipped.lowered, shipped.raised))}) == 1
    pairs = [*shipped.claims]
    assert (
        pairs == sorted(pairs, key=lambda pair: pair[0]) == sorted(pairs, key=lambda pair: pair[1])
    )
    assert dataclasses.replace(shipped, level=0.9) != shipped


def test_a_target_without_calibration_is_refused():
    with pytest.raises(
        SettingError, match="there is no calibration for hulls, of completeness, points"
    ):
        calibration_for("hulls")
