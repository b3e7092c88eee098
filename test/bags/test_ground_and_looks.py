"""A bag holds the map that the planner went by, and what was seen on the way counts, as in the
simulated episode.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import recorded
from simulated_bags import text_bytes

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.bags.bag_pictures import draw_pictures
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.replay import replay
from nbv_planner.episode.messages import GROUND
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.occupancy_map import load_map
from nbv_planner.world.ground.zones import GroundSettings

HALL = str(Path(__file__).parents[2] / "examples" / "hall" / "map.yaml")
IN_HALL = dataclasses.replace(
    recorded.CONFIG, ground=GroundSettings(ground_map=HALL, robot_radius=0.4)
)
ON_THE_WAY = dataclasses.replace(
    recorded.CONFIG, planner=PlannerSettings(planner="greedy", objective="U", look_every=1.0)
)


def analysed(tmp_path, config, messages=None):
    bag = Bag(
        recorded.write(
            tmp_path / "bag", recorded.messages(config) if messages is None else messages
        )
    )
    return bag, analyse(bag)


def summary(analysis) -> dict[str, str]:
    return dict(next(table for table in analysis_tables(analysis) if table.name == "summary").rows)


def test_what_was_seen_on_the_way_counts_as_in_the_simulation(tmp_path):
    simulation, _ = recorded.finished(ON_THE_WAY)
    _, analysis = analysed(tmp_path, ON_THE_WAY)
    assert analysis.coverage == [view.coverage for view in simulation.judge.views]
    assert summary(analysis)["looks on the way"] == str(
        sum(len(step.passed) for step in simulation.judge.steps)
    )
    at_views = [view.coverage for view in recorded.finished()[0].judge.views]
    assert analysis.coverage[1] > at_views[1]


def test_scans_between_views_do_not_count_where_the_mapper_leaves_them_out(tmp_path):
    as_recorded = recorded.messages(ON_THE_WAY)
    (told,) = (decode(message).data for message in as_recorded if message.topic.name == "/run_info")
    edited = [
        (
            message._replace(
                data=text_bytes(told.replace("integrate: always", "integrate: at_view"))
            )
            if message.topic.name == "/run_info"
            else message
        )
        for message in as_recorded
    ]
    _, analysis = analysed(tmp_path, ON_THE_WAY, edited)
    assert summary(analysis)["looks on the way"] == "0"
    assert analysis.coverage[1] < recorded.finished(ON_THE_WAY)[0].judge.views[1].coverage


def test_a_bag_with_a_map_is_analysed_drawn_and_replayed_by_it_alone(tmp_path, monkeypatch):
    simulation, _ = recorded.finished(IN_HALL)
    recording = recorded.messages(IN_HALL)
    monkeypatch.setattr(
        "nbv_planner.world.ground.grid_ground.load_map", lambda path: pytest.fail(f"reads {path}")
    )
    bag, analysis = analysed(tmp_path, IN_HALL, recording)
    ground = analysis.recording.log.ground()
    assert isinstance(ground, GridGround)
    assert np.array_equal(ground.map.cells, load_map(HALL).cells)
    assert [view.travelled for view in analysis.judge.views] == pytest.approx(
        [view.travelled for view in simulation.judge.views], abs=0.05
    )
    picture = next(iter(draw_pictures(analysis)))
    (tmp_path / "p.png").write_bytes(picture.png)
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert not any(one.choice.differs for one in decisions)


def test_without_a_map_the_picture_has_none_and_no_file_of_the_bag_is_read(tmp_path, monkeypatch):
    without = [
        message for message in recorded.messages(IN_HALL) if not message.topic.name.endswith(GROUND)
    ]
    monkeypatch.setattr(
        "nbv_planner.world.ground.grid_ground.load_map", lambda path: pytest.fail(f"reads {path}")
    )
    _, analysis = analysed(tmp_path, IN_HALL, without)
    assert not isinstance(analysis.recording.log.ground(), GridGround)
    assert len(analysis.views) == len(recorded.finished(IN_HALL)[0].judge.views)
