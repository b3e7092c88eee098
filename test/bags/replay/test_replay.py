"""Replay: the recorded scans and poses lead to the recorded decisions; another choice shows where it would differ."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import CONFIG, finished, messages, write

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.bag import Bag
from nbv_planner.bags.replay.replay import replay
from nbv_planner.bags.replay.tables import replay_table
from nbv_planner.errors import BagError
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.surface import MapperSettings

SIMULATION, _ = finished()


def replayed(path, **changes):
    bag = Bag(path)
    analysis = analyse(bag)
    parameters = analysis.recording.parameters
    nodes = {name: {**values, **changes.get(name, {})} for name, values in parameters.nodes.items()}
    return replay(bag, analysis, dataclasses.replace(parameters, nodes=nodes))


def test_the_same_decisions_come_out(bag_path):
    decisions = replayed(bag_path)
    assert [one.choice.view_angle for one in decisions] == [step.view_angle for step in SIMULATION.judge.steps]
    assert not any(one.choice.differs for one in decisions)
    assert [one.new_points for one in decisions] == [view.new_points for view in SIMULATION.judge.views]
    assert max(one.utility_gap for one in decisions) < 1e-4  # ranges were recorded in single precision
    assert max(one.belief_gap for one in decisions[1:]) < 1e-5
    assert decisions[0].belief_gap is None  # the prior


def test_the_same_decisions_come_out_after_a_conversion_by_somebody_else(bag_path, tmp_path):
    to = "sqlite3" if next(bag_path.glob("*.mcap"), None) else "mcap"
    subprocess.run(
        [sys.executable, "-m", "rosbags.convert", "--src", str(bag_path), "--dst", str(tmp_path / "other"),
         "--dst-storage", to], check=True, capture_output=True,
    )  # fmt: skip
    assert replayed(tmp_path / "other") == replayed(bag_path)


CONFIGS = {
    "travel": dataclasses.replace(CONFIG, planner=PlannerSettings(objective="IOA", travel_weight=0.5)),
    "two_phase": dataclasses.replace(CONFIG, planner=PlannerSettings(planner="two_phase", objective="U")),
    "random": dataclasses.replace(CONFIG, planner=PlannerSettings(planner="random", planner_seed=7)),
    "schedule": dataclasses.replace(CONFIG, mapper=MapperSettings(grid_size=90, confidence_scale=1.0)),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_planner_is_replayed_to_the_same_decisions(tmp_path, name):
    decisions = replayed(write(tmp_path / "bag", messages(CONFIGS[name])))
    assert len(decisions) >= 3
    assert not any(one.choice.differs for one in decisions)


def test_a_changed_scan_is_noticed(tmp_path):
    """The check can fail: with the scans of one view gone, later decisions rest on another belief."""
    recorded = messages()
    goals = [m.time for m in recorded if m.topic.name == "/goal_pose"]
    lost = [m for m in recorded if not (m.topic.name == "/scan" and goals[0] <= m.time < goals[1])]
    decisions = replayed(write(tmp_path / "bag", lost))
    assert any(one.choice.differs or (one.belief_gap or 0.0) > 0.01 or (one.utility_gap or 0.0) > 0.01
               for one in decisions[1:])  # fmt: skip


def test_another_objective_is_asked_from_the_same_beliefs(bag_path):
    decisions = replayed(bag_path, nbv_planner={"objective": "IOA"})
    assert any(one.choice.differs for one in decisions)
    assert max(one.belief_gap for one in decisions[1:]) < 1e-5
    expected = [step.view_angle for step in SIMULATION.judge.steps]
    assert [one.recorded.view_angle for one in decisions] == expected
    judge = SIMULATION.judge
    fresh = dataclasses.replace(judge, steps=[], views=[])
    for one, step in zip(decisions, judge.steps, strict=True):
        assert one.choice.new_points == int(fresh.new_points(one.choice.view_angle).sum())
        fresh.add(step)


def test_another_mapper_gives_other_beliefs(bag_path):
    decisions = replayed(bag_path, surface_mapper={"length_scale": 0.6})
    assert max(one.belief_gap for one in decisions[1:]) > 0.01


def test_without_true_object_outcomes_of_other_views_are_not_known(tmp_path):
    recorded = [m for m in messages() if m.topic.name != "/ground_truth/surface"]
    path = write(tmp_path / "bag", [_without_camera(m) for m in recorded])
    bag = Bag(path)
    analysis = analyse(bag)
    assert analysis.truth is None
    decisions = replay(bag, analysis, analysis.recording.parameters)
    assert {one.new_points for one in decisions} | {one.choice.new_points for one in decisions} == {None}
    assert not any(one.choice.differs for one in decisions)
    assert "not known" in replay_table(decisions).note


def _without_camera(message):
    import yaml

    from nbv_planner.bags.decoding import decode
    from nbv_planner.bags.simulated.messages import text_bytes

    if message.topic.name != "/run_info":
        return message
    content = yaml.safe_load(decode(message).data)
    del content["nodes"]["depth_camera"]
    return message._replace(data=text_bytes(yaml.safe_dump(content)))


def test_a_goal_that_was_given_up_is_unreachable_for_the_replay_too(tmp_path):
    """Recorded: the first goal of round 2 was not reached; a planner that did not know would choose it again."""
    from nbv_planner.bags.simulated.messages import status_bytes

    recorded = messages()
    second = next(m for m in recorded if m.topic.name == "/nbv_planner/iteration" and _round(m) == 2)
    best = SIMULATION.judge.steps[1].view_angle
    given_up = status_bytes("i", {**_values(second), "goal_stamp": str(int(_values(second)["goal_stamp"]) - 1000)})
    place = recorded.index(second)
    bag = Bag(write(tmp_path / "bag", [*recorded[:place], second._replace(data=given_up), *recorded[place:]]))
    analysis = analyse(bag)
    assert len(analysis.recording.assembly.given_up) == 1
    decisions = replay(bag, analysis, analysis.recording.parameters)
    assert decisions[1].recorded.view_angle == best
    assert decisions[1].choice.differs  # that view is marked unreachable now


def _values(message) -> dict[str, str]:
    from nbv_planner.bags.decoding import decode
    from nbv_planner.message_values import status_values

    return status_values(decode(message))


def _round(message) -> int:
    return int(_values(message)["round"])


@pytest.mark.parametrize("name", ["/scan", "/camera_pose", "/nbv_planner/iteration"])
def test_a_bag_that_cannot_be_replayed_says_why(tmp_path, name):
    path = write(tmp_path / "bag", [m for m in messages() if m.topic.name != name])
    with pytest.raises(BagError, match=rf"cannot be replayed: {name[1:]} is not in it"):
        replayed(path)


def test_table_shows_both_choices(bag_path):
    table = replay_table(replayed(bag_path))
    assert table.column("same") == ["yes"] * 4
    assert table.column("angle_deg") == table.column("replayed_deg")
