"""Stages are timed inside the program that is measured, which is left as it was."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import core
from benchmarks.core import (
    obvious_implementation,
    replaced,
    stage_times,
    thesis_planners,
    timed_episode,
)
from nbv_planner.episode import simulation
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world.simulated_camera import SensorSettings


class Worker:
    def slow(self, value):
        return value + 1

    def bad(self):
        raise KeyError("x")


class Child(Worker):
    pass


@pytest.fixture
def ticking(monkeypatch):
    """Processor time that goes on by one second with every look at it."""
    ticks = iter(range(1000))
    monkeypatch.setattr(core.time, "process_time", lambda: next(ticks))


def test_every_call_counts_also_one_that_raises(ticking):
    worker = Worker()
    with stage_times({"a": ((Worker, "slow"), (Worker, "bad")), "b": ()}) as milliseconds:
        assert worker.slow(1) == 2
        assert worker.slow(value=2) == 3
        with pytest.raises(KeyError):
            worker.bad()
    worker.slow(1)
    assert milliseconds == {"a": 3000.0, "b": 0.0}


def test_what_is_replaced_comes_back_as_it_was():
    before = Worker.slow
    with replaced([((Child, "slow"), lambda self, value: value / 0)]):
        assert Worker().slow(1) == 2
        with pytest.raises(ZeroDivisionError):
            Child().slow(1)
    assert Child().slow(1) == 2
    assert Worker.slow is before
    assert "slow" not in vars(Child)


def small(objective: str) -> EpisodeConfig:
    return EpisodeConfig(
        planner=PlannerSettings(planner="greedy", objective=objective),
        sensor=SensorSettings(num_beams=31),
        mapper=MapperSettings(grid_size=120),
        termination=TerminationSettings(max_views=3),
    )


def test_stages_are_parts_of_the_episode():
    times = timed_episode(small("U"))
    assert times["views"] == 3
    parts = [times[stage] for stage in ("scan", "map", "decide", "judge")]
    assert min(parts) > 0.0
    assert sum(parts) < times["episode"]


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_the_obvious_implementation_takes_the_same_views(objective):
    """Also a check that the plain objectives and the plain camera really take part."""

    def views() -> np.ndarray:
        running = simulation.Simulation(small(objective))
        running.finish()
        return np.array([step.view.view_angle for step in running.judge.steps])

    fast = views()
    with obvious_implementation():
        assert OBJECTIVES[objective].evaluate.__qualname__.startswith("_one_by_one")
        np.testing.assert_allclose(views(), fast, rtol=0.0, atol=1e-9)
    assert not OBJECTIVES[objective].evaluate.__qualname__.startswith("_one_by_one")


def test_the_planners_of_the_thesis_that_do_not_know_the_object():
    assert list(thesis_planners()) == ["CSW", "IOA", "I", "U", "UP", "CS-U"]
