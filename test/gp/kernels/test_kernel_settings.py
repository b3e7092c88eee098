"""Choosing a kernel by settings: every member is reachable, impossible combinations are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import (
    FiniteSum,
    KernelSettings,
    Matern,
    PeriodicMatern,
    Rbf,
    Truncated,
    Warped,
)
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements


def test_defaults_are_those_of_the_summed_kernel():
    assert KernelSettings().build() == PeriodicMatern()


@pytest.mark.parametrize(
    ("values", "kernel"),
    [
        (
            {"smoothness": "7/2", "length_scale": 0.3, "kernel_std": 1.0},
            PeriodicMatern("7/2", 0.3, 1.0),
        ),
        ({"periodisation": "none"}, Matern(1.5)),
        ({"periodisation": "none", "smoothness": "0.8"}, Matern(0.8)),
        ({"kernel": "rbf", "periodisation": "none", "length_scale": 0.4}, Rbf(0.4)),
        ({"kernel": "rbf", "periodisation": "warp"}, Warped(Rbf())),
        ({"periodisation": "warp", "smoothness": "2"}, Warped(Matern(2.0))),
        ({"periodisation": "approximate", "kappa": 3}, FiniteSum(Matern(1.5), 3)),
        (
            {"periodisation": "truncate", "cut_start": 1.0, "cut_end": 3.0},
            Truncated(Matern(1.5), 1.0, 3.0),
        ),
        ({"periodisation": "truncate"}, Truncated(Matern(1.5), math.pi, 2 * math.pi)),
    ],
)
def test_settings_build_their_kernel(values, kernel):
    assert KernelSettings(**values).build() == kernel


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"kernel": "rbf"},
            ["periodisation", "sum", "rbf", "warp", "approximate", "truncate", "none"],
        ),
        ({"smoothness": "0.8"}, ["periodisation", "sum", "0.8", "7/2", "warp"]),
        ({"smoothness": "0", "periodisation": "warp"}, ["smoothness", "'0'", "> 0"]),
        (
            {"smoothness": "rough", "kernel": "rbf", "periodisation": "warp"},
            ["smoothness", "'rough'"],
        ),
        ({"periodisation": "truncate", "cut_start": 7.0}, ["cut_start", "7.0", "cut_end"]),
        ({"periodisation": "fold"}, ["periodisation", "'fold'", "truncate"]),
        ({"kernel": "cubic"}, ["kernel", "'cubic'", "matern", "rbf"]),
        ({"kappa": -1}, ["kappa", "-1", ">= 0"]),
    ],
)
def test_impossible_combinations_are_refused(values, words):
    with pytest.raises(SettingError) as caught:
        KernelSettings(**values)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "solver"),
    [
        ({}, "fast"),
        ({"smoothness": "5/2"}, "fast"),
        ({"smoothness": "7/2"}, "dense"),
        ({"periodisation": "warp"}, "dense"),
        ({"kernel": "rbf", "periodisation": "approximate"}, "dense"),
    ],
)
def test_mapper_says_which_solution_a_kernel_gets(values, solver):
    mapper = SurfaceMapper(KernelSettings(**values).build(), MapperSettings(grid_size=64))
    mapper.add(Measurements(np.array([1.0, 2.0]), np.array([5.0, 6.0]), np.array([0.1, 0.1])))
    belief = mapper.belief()
    assert mapper.solver == solver
    assert abs(float(belief.interpolate(belief.mean, 2.0)) - 6.0) < 0.2
