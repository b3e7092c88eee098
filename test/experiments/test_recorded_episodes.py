"""Episodes of the thesis protocol, as recorded: a fast subset of the 22 objects, and the printed table itself."""

from __future__ import annotations

import pytest

from nbv_planner.episode_config import config_from_parameters
from nbv_planner.experiments.report.published import published_rows
from nbv_planner.experiments.sweep import thesis_objects
from nbv_planner.simulation import Simulation

RECORDED = [
    # objective, object, T, T95, mean individual regret
    ("U", "ellipse:a=5,b=5", 15, 11, 0.6),
    ("U", "square:width=6", 4, 4, 2.0),
    ("U", "flower:frequency=1,amplitude=2", 16, 13, 19.875),
    ("UP", "flower:frequency=5,amplitude=1", 13, 11, 167 / 13),
    ("UP", "polygon:concave", 16, 13, 18.625),
    ("CSW", "polygon:concave", 16, 15, 29.5625),
    ("I", "square:width=4", 4, 3, 9.5),
    ("IOA", "polygon:convex", 12, None, 19.0 + 1 / 6),  # one of the published N/A
    ("IOA", "flower:frequency=3,amplitude=2", 14, 12, 7.0),
    ("OSM", "polygon:star", 9, 7, 0.0),
]


@pytest.mark.parametrize(("objective", "shape", "views", "views_95", "regret"), RECORDED)
def test_thesis_episode_is_as_recorded(objective, shape, views, views_95, regret):
    assert shape in thesis_objects()
    config = config_from_parameters({"nbv_planner": {"objective": objective}}, object=shape, protocol="thesis")
    simulation = Simulation(config)
    for _ in simulation.run():
        pass
    metrics = simulation.judge.metrics()
    assert (metrics["T"], metrics["T95"]) == (views, views_95)
    assert metrics["mean_individual_regret"] == pytest.approx(regret)


@pytest.mark.parametrize(
    ("name", "t95", "t", "rec", "regret"), [("CSW", 127.0, 112.0, 99.0, 11.63), ("IOA", 127.0, 105.0, 98.0, 11.10)]
)
def test_published_rows_are_those_of_the_thesis(name, t95, t, rec, regret):
    (row,) = (row for row in published_rows("table_7_1") if row["algorithm"] == name)
    figures = (row[key] for key in ("t95_rel_percent", "t_rel_percent", "rec_percent", "avg_individual_regret"))
    assert tuple(figures) == (t95, t, rec, regret)
