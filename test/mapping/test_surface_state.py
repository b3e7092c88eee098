"""What a mapper knows, as arrays and back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from measurement_sets import KINDS, sample

from nbv_planner.errors import MeasurementError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements, PolarRays

KERNELS = {
    "matern 1/2": KernelSettings(smoothness="1/2"),
    "matern 3/2": KernelSettings(),
    "matern 5/2": KernelSettings(smoothness="5/2"),
    "matern 7/2": KernelSettings(smoothness="7/2", length_scale=0.5),
    "rbf": KernelSettings(kernel="rbf", periodisation="warp", length_scale=0.5),
}
RAYS = [
    PolarRays(1.0, 10.0, np.array([-0.3, 0.3]), np.array([10.0, 9.0]), np.array([False, False]))
]


def mapper_for(kernel: str = "matern 3/2", solver: str = "auto") -> SurfaceMapper:
    return SurfaceMapper(KERNELS[kernel].build(), MapperSettings(grid_size=100, solver=solver))


def filled(mapper: SurfaceMapper, kind: str, sizes: list[int], noise: float = 0.1) -> SurfaceMapper:
    for seed, size in enumerate(sizes):
        tilt = np.random.default_rng(seed).uniform(-0.5, 0.5, size)
        mapper.add(Measurements(*sample(kind, size, noise, seed), tilt), free=RAYS)
    return mapper


def again(mapper: SurfaceMapper, kernel: str = "matern 3/2", solver: str = "auto") -> SurfaceMapper:
    other = mapper_for(kernel, solver)
    other.restore(mapper.state())
    return other


def assert_same_belief(one: SurfaceMapper, other: SurfaceMapper) -> None:
    beliefs = [dataclasses.asdict(mapper.belief()) for mapper in (one, other)]
    evidence = [belief.pop("evidence") for belief in beliefs]
    for first, second in (beliefs, evidence):
        for name in first:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert (one.count, one.round, one.solver) == (other.count, other.round, other.solver)


@pytest.mark.parametrize(
    ("kernel", "solver"),
    [
        *((kernel, solver) for kernel in KERNELS for solver in ("auto", "dense")),
        ("matern 3/2", "grid"),
    ],
)
def test_a_restored_mapper_believes_the_same_and_goes_on_the_same_bit_for_bit(kernel, solver):
    mapper = filled(mapper_for(kernel, solver), "mixed", [40, 1, 60])
    restored = again(mapper, kernel, solver)
    assert_same_belief(mapper, restored)
    for one in (mapper, restored):
        filled(one, "random", [30, 50])
    assert_same_belief(mapper, restored)


@pytest.mark.parametrize("kind", KINDS)
def test_any_set_of_angles_survives(kind):
    mapper = filled(mapper_for(), kind, [1, 80, 40])
    assert_same_belief(mapper, again(mapper))


def test_condensed_measurements_survive_and_condense_further_the_same():
    mapper = filled(mapper_for(), "mixed", [2000, 2000])
    restored = again(mapper)
    assert_same_belief(mapper, restored)
    assert mapper.solver == "condensed"
    for one in (mapper, restored):
        filled(one, "clustered", [500])
    assert_same_belief(mapper, restored)


def test_too_much_information_for_the_fast_solution_survives_too():
    mapper = filled(mapper_for(), "random", [50], noise=1e-6)
    assert_same_belief(mapper, again(mapper))
    assert mapper.solver == "dense"


def test_the_prior_survives():
    assert_same_belief(mapper_for(), again(mapper_for()))


def spoilt(name: str, change) -> dict:
    state = filled(mapper_for(), "random", [30]).state()
    value = state[name].copy()
    return {**state, name: change(value)}


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


SPOILT = {
    "NaN among the measurements": ("condensed", put((2, 3), np.nan)),
    "infinite angle": ("condensed", put((0, -1), np.inf)),
    "angles that fall": ("condensed", put((0, 0), 6.0)),
    "angle beyond the turn": ("condensed", put((0, -1), 7.0)),
    "negative angle": ("condensed", put((0, 0), -1.0)),
    "precision 0": ("condensed", put((1, 3), 0.0)),
    "negative spread": ("condensed", put((3, 3), -1.0)),
    "another number of rows": ("condensed", lambda array: array[:4]),
    "single precision": ("condensed", lambda array: array.astype(np.float32)),
    "too many angles": ("condensed", lambda array: np.repeat(array, 200, axis=1)),
    "fewer measurements than angles": ("condensed_totals", put(0, 3.0)),
    "half a measurement": ("condensed_totals", put(0, 30.5)),
    "neither exact nor not": ("condensed_totals", put(1, 0.5)),
    "NaN in a cell": ("forward", put((0, 0, 0), np.nan)),
    "a cell too few": ("likelihood", lambda array: array[..., 1:]),
    "NaN in the evidence": ("evidence", put((0, 3), np.nan)),
    "NaN in the bounds": ("evidence", put((3, 3), np.nan)),
    "negative deviation": ("evidence", put((2, 3), -1.0)),
    "evidence of another grid": ("evidence", lambda array: array[:, :50]),
    "hits of another grid": ("hits", lambda array: array[:50]),
    "hits of another type": ("hits", lambda array: array.astype(float)),
    "negative number of views": ("views", lambda _: np.array(-1)),
    "many numbers of views": ("views", lambda _: np.array([1, 2])),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_no_mapper_can_know_is_refused_and_changes_nothing(name):
    mapper = filled(mapper_for(), "sweep", [20])
    before = again(mapper)
    with pytest.raises(MeasurementError):
        mapper.restore(spoilt(*SPOILT[name]))
    assert_same_belief(mapper, before)


@pytest.mark.parametrize("name", sorted(filled(mapper_for(), "random", [3]).state()))
def test_a_missing_array_is_refused(name):
    state = filled(mapper_for(), "random", [30]).state()
    del state[name]
    with pytest.raises(MeasurementError):
        mapper_for().restore(state)


def test_a_dense_state_is_refused_where_it_does_not_fit():
    state = filled(mapper_for(solver="dense"), "random", [5]).state()
    with pytest.raises(MeasurementError, match="condensed: is missing"):
        mapper_for().restore(state)
    state["measured"][2, 1] = 0.0
    with pytest.raises(MeasurementError, match="must be > 0"):
        mapper_for(solver="dense").restore(state)
