"""The numerical core under pytest-benchmark, to compare one commit with another on the same
machine.

    pip install -e '.[bench]'
    python -m pytest benchmarks/bench_core.py --benchmark-autosave
    python -m pytest benchmarks/bench_core.py --benchmark-compare

Ratios to the obvious implementations, growth, whole episodes and the loop over DDS:
`python -m benchmarks run`.
"""

from __future__ import annotations

import os

# before numpy: rounding and time must not depend on the number of threads
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pytest

from benchmarks.core import (
    VISITED,
    belief_after,
    fed_mapper,
    mapper_calls,
    measured_contour,
    star_scan,
)
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world.ray_casting import cast_beams
from nbv_planner.world.scene import Scene


def calls(smoothness, n):
    kernel, data = PeriodicMatern(smoothness=smoothness), measured_contour(n)
    return mapper_calls(kernel, 1000, data, fed_mapper(kernel, 1000, data))


@pytest.mark.parametrize("n", [1500, 100_000])
@pytest.mark.parametrize("smoothness", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("what", ["update", "samples"])
def test_mapper(benchmark, smoothness, n, what):
    benchmark(calls(smoothness, n)[what])


@pytest.mark.parametrize("what", ["dense_update", "scikit_learn"])
def test_mapper_the_obvious_way(benchmark, what):
    known = calls("3/2", 1500)
    if what not in known:
        pytest.skip("scikit-learn is not installed")
    benchmark(known[what])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objective(benchmark, name):
    belief = belief_after(VISITED, 1000)
    scene = Scene()
    views = CircleViewSpace(ViewSpaceSettings(), 10.0).angles
    values = benchmark(lambda: OBJECTIVES[name].values(belief, scene, views))
    assert np.isfinite(values).all()


def test_scan(benchmark):
    ranges = benchmark(cast_beams, *star_scan(640))
    assert np.isfinite(ranges).any()
