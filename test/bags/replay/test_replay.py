"""Replay: the recorded scans and poses lead to the recorded decisions; another choice shows where
it would differ.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import yaml
from views import at

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import CONFIG, converted, finished, messages, write
from simulated_bags import surface_bytes, text_bytes
from tables import column

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.replay import replay
from nbv_planner.bags.replay.replayer import Replayer
from nbv_planner.cli.replay import replay_table
from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.log import EpisodeLog
from nbv_planner.episode.messages import SURFACE_INFO
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.wiring import scan_mapping
from nbv_planner.errors import BagError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.planning.planners import rollout as rollout_module
from nbv_planner.planning.view_space import Exclusion, ViewSpaceSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.regions import Arc, Regions
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.scan import RangeNoise

SIMULATION, _ = finished()


def replayed(path, **changes):
    bag = Bag(path)
    analysis = analyse(bag)
    parameters = analysis.recording.log.parameters
    nodes = {name: {**values, **changes.get(name, {})} for name, values in parameters.nodes.items()}
    return replay(bag, analysis, dataclasses.replace(parameters, nodes=nodes))


def test_the_same_decisions_come_out(bag_path):
    decisions = replayed(bag_path)
    expected = [step.view.view_angle for step in SIMULATION.judge.steps]
    assert [one.choice.view.view_angle for one in decisions] == expected
    assert not any(one.choice.differs for one in decisions)
    assert [one.new_points for one in decisions] == [
        view.new_points for view in SIMULATION.judge.views
    ]
    # ranges were recorded in single precision
    assert max(one.utility_gap for one in decisions) < 1e-4
    assert max(one.belief_gap for one in decisions[1:]) < 1e-5
    assert decisions[0].belief_gap is None  # the prior


def test_the_same_decisions_come_out_after_a_conversion_by_somebody_else(bag_path, tmp_path):
    to = "sqlite3" if next(bag_path.glob("*.mcap"), None) else "mcap"
    assert replayed(converted(bag_path, tmp_path / "other", to)) == replayed(bag_path)


CONFIGS = {
    "travel": dataclasses.replace(
        CONFIG,
        planner=PlannerSettings(planner="greedy", objective="IOA", travel_weight=0.5),
    ),
    "two_phase": dataclasses.replace(
        CONFIG, planner=PlannerSettings(planner="two_phase", objective="U")
    ),
    "random": dataclasses.replace(
        CONFIG, planner=PlannerSettings(planner="random", planner_seed=7)
    ),
    "prior": dataclasses.replace(
        CONFIG,
        planner=PlannerSettings(
            planner="greedy", objective="EMC", shape_prior="fixed", shapes=8, shape_grid=90
        ),
        kernel=KernelSettings(length_scale=0.6, kernel_std=0.5),
        mapper=MapperSettings(grid_size=90, prior_mean=4.0),
    ),
    "schedule": dataclasses.replace(
        CONFIG, mapper=MapperSettings(grid_size=90, confidence_scale=1.0)
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_planner_is_replayed_to_the_same_decisions(tmp_path, name):
    decisions = replayed(write(tmp_path / "bag", messages(CONFIGS[name])))
    assert len(decisions) >= 3
    assert not any(one.choice.differs for one in decisions)


def test_a_known_outline_is_replayed_from_the_bag_though_its_file_is_gone(tmp_path):
    file = tmp_path / "part.csv"
    file.write_text("x,y\n4,-4\n4,4\n-4,4\n-4,-4\n")
    config = dataclasses.replace(
        CONFIG,
        planner=PlannerSettings(planner="rollout", shapes=8, shape_grid=90),
        outline=PriorOutlineSettings(prior_outline=str(file)),
    )
    recorded = messages(config)
    file.unlink()
    path = write(tmp_path / "bag", recorded)
    decisions = replayed(path)
    assert not any(one.choice.differs for one in decisions)
    summary = next(iter(analysis_tables(analyse(Bag(path)))))
    (known,) = [row for row in summary.rows if row[0] == "prior outline"]
    assert known[1].startswith("mean radius 4.489 m, ± 0.1 m along the normal; its place ± 0.449 m")
    # the first one, too, which depends on nothing else
    assert max(one.utility_gap for one in decisions) < 1e-4
    without = [
        message
        if message.topic.name != "/surface_info"
        else message._replace(
            data=text_bytes(dataclasses.replace(told_in(message), outline=None).text)
        )
        for message in recorded
    ]
    others = replayed(write(tmp_path / "without", without))
    assert any(one.choice.differs for one in others)


def test_outlines_of_any_form_are_known_from_the_bag_though_their_file_is_gone(tmp_path):
    """Both: a radius may have been given up before the newest surface."""
    file = tmp_path / "part.csv"
    file.write_text("x,y\n4,-4\n4,4\n-4,4\n-4,-4\n")
    nodes = {"surface_mapper": {"surface_model": "auto", "prior_outline": str(file)}}
    config = RunParameters(nodes).config()
    either = scan_mapping(config)
    cells = VolumeSurface.blank(
        VolumeForm(radius=config.scene.radius_max, known=config.known_solid)
    )
    file.unlink()
    log = EpisodeLog()
    for stamp, belief in enumerate((either.belief(), cells)):
        info = SurfaceInfo.about(
            belief, stamp=stamp, prior=PriorSettings(), sensor={}, declared=RangeNoise(0.02, 0.0)
        )
        log.add(SURFACE_INFO, info_from_text(info.text), stamp)
    outline, solid = log.known
    assert outline.plain == either.belief().known.plain
    for model, of in (("radius", lambda one: one.known), ("volume", lambda one: one.form.known)):
        nodes = {"surface_mapper": {"surface_model": model}, "nbv_planner": {}}
        replayer = Replayer(RunParameters(nodes), known=(outline, solid))
        assert (
            of(replayer.mapper.known.mapper.belief()).plain
            == of(either.belief() if model == "radius" else cells).plain
        )


def test_regions_are_in_the_bag_and_count_in_replay_and_analysis_as_they_did(tmp_path):
    regions = Regions((Arc("a quarter", 1.0, 0.0, 90.0),))
    config = dataclasses.replace(
        CONFIG,
        planner=PlannerSettings(planner="rollout", shapes=8, shape_grid=90, regions=regions.text),
    )
    path = write(tmp_path / "bag", messages(config))
    decisions = replayed(path)
    assert not any(one.choice.differs for one in decisions)
    assert max(one.utility_gap for one in decisions) < 1e-4
    analysis = analyse(Bag(path))
    expected = [view.weighted for view in finished(config)[0].views]
    assert [view.weighted for view in analysis.judge.views] == pytest.approx(expected)
    assert 0.0 < expected[0] != analysis.judge.views[0].completeness
    assert analysis.record.metrics["weighted"] == pytest.approx(expected[-1])
    (target,) = [row for row in next(iter(analysis_tables(analysis))).rows if row[0] == "target"]
    assert target[1].endswith("by weight (1 region, 0 elsewhere)")


def test_a_bag_without_the_parameters_of_the_mapper_asks_for_them(tmp_path):
    def forgotten(message):
        if message.topic.name != "/run_info":
            return message
        info = yaml.safe_load(decode(message).data)
        del info["nodes"]["surface_mapper"]
        return message._replace(data=text_bytes(yaml.safe_dump(info)))

    path = write(tmp_path / "bag", [forgotten(message) for message in messages()])
    with pytest.raises(
        BagError,
        match="does not hold the parameters of surface_mapper: give them with --params-file",
    ):
        replayed(path)


def told_in(message) -> SurfaceInfo:
    """What a message of the topic `surface_info` says."""
    return info_from_text(decode(message).data)


def test_each_decision_is_replayed_with_the_sensor_that_the_mapper_knew_then(tmp_path):
    """A driver whose first header says 6.5 m, and a later one 10 m, which is what run_info has at
    the end.
    """
    declared = SurfaceInfo.sensor_of(CONFIG.scene)

    def sensor(number, until, far):
        return {**declared, "range_max": far} if number < until else declared

    def told(name, until, far):
        number, found = 0, []
        for message in messages():
            if message.topic.name == "/surface_info":
                info = dataclasses.replace(told_in(message), sensor=sensor(number, until, far))
                message, number = message._replace(data=text_bytes(info.text)), number + 1
            found.append(message)
        return write(tmp_path / name, found)

    short = {"range_max": 6.5}
    plain, widened = replayed(told("plain", 9, 10.0)), told("widened", 2, 6.5)
    narrow, sensed = replayed(widened, surface_mapper=short, nbv_planner=short), replayed(widened)
    assert plain == replayed(write(tmp_path / "silent", messages()))
    before, after = ([one.choice.utility for one in decisions] for decisions in (narrow, sensed))
    assert after[0] == plain[0].choice.utility != before[0]  # no surface had told the sensor yet
    assert after[1:3] == before[1:3]
    assert after[1] != plain[1].choice.utility
    assert after[3] != before[3]


def test_a_changed_scan_is_noticed(tmp_path):
    """The check can fail: with the scans of one view gone, later decisions rest on another
    belief.
    """
    recorded = messages()
    goals = [m.time for m in recorded if m.topic.name == "/goal_pose"]
    lost = [m for m in recorded if not (m.topic.name == "/scan" and goals[0] <= m.time < goals[1])]
    decisions = replayed(write(tmp_path / "bag", lost))
    assert any(
        one.choice.differs or (one.belief_gap or 0.0) > 0.01 or (one.utility_gap or 0.0) > 0.01
        for one in decisions[1:]
    )


def test_the_gap_between_beliefs_is_that_at_the_worst_angle(tmp_path):
    def moved(message):
        if message.topic.name != "/surface":
            return message
        belief, at = belief_from_msg(decode(message)), np.arange(CONFIG.mapper.grid_size) == 3
        moved = dataclasses.replace(
            belief, mean=belief.mean + 0.5 * at, upper=belief.upper + 0.5 * at
        )
        return message._replace(
            data=surface_bytes(moved, to_nanoseconds(decode(message).header.stamp))
        )

    decisions = replayed(write(tmp_path / "bag", [moved(message) for message in messages()]))
    assert [one.belief_gap for one in decisions[1:]] == pytest.approx(
        [0.5] * (len(decisions) - 1), abs=1e-4
    )


@pytest.mark.parametrize("step", [-1, 1])
def test_a_view_on_either_side_of_the_recorded_one_differs(bag_path, step):
    views = SIMULATION.judge.space.candidates.view_angle
    recorded = np.abs(views - SIMULATION.judge.steps[0].view.view_angle).argmin()
    chosen = int((recorded + step) % len(views))
    first = replayed(bag_path, nbv_planner={"first_candidate": chosen})[0]
    assert (first.choice.view.view_angle, first.choice.differs) == (views[chosen], True)


def test_a_decision_that_is_made_again_has_all_the_time_it_needs(tmp_path, monkeypatch):
    """However slow or busy this machine is."""
    settings = PlannerSettings(planner="rollout", shapes=24, shape_grid=90, deadline=60.0)
    bag = write(tmp_path / "bag", messages(dataclasses.replace(CONFIG, planner=settings)))
    ticks = itertools.count(step=70.0)  # every look at the clock takes longer than the deadline
    monkeypatch.setattr(rollout_module.time, "perf_counter", lambda: next(ticks))
    assert not any(one.choice.differs for one in replayed(bag))


def test_another_objective_is_asked_from_the_same_beliefs(bag_path):
    decisions = replayed(bag_path, nbv_planner={"objective": "IOA"})
    assert any(one.choice.differs for one in decisions)
    assert max(one.belief_gap for one in decisions[1:]) < 1e-5
    expected = [step.view.view_angle for step in SIMULATION.judge.steps]
    assert [one.recorded.view_angle for one in decisions] == expected
    judge = SIMULATION.judge
    fresh = dataclasses.replace(judge, steps=[], views=[])
    for one, step in zip(decisions, judge.steps, strict=True):
        assert one.choice.new_points == int(fresh.new_points(at(one.choice.view.view_angle)).sum())
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
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert {one.new_points for one in decisions} | {one.choice.new_points for one in decisions} == {
        None
    }
    assert not any(one.choice.differs for one in decisions)
    assert "not known" in replay_table(decisions).note


def _without_camera(message):
    import yaml
    from simulated_bags import text_bytes

    from nbv_planner.bags.reader import decode

    if message.topic.name != "/run_info":
        return message
    content = yaml.safe_load(decode(message).data)
    del content["nodes"]["depth_camera"]
    return message._replace(data=text_bytes(yaml.safe_dump(content)))


def test_a_goal_that_was_given_up_is_unreachable_for_the_replay_too(tmp_path):
    """Recorded: the first goal of round 2 was not reached; a planner that did not know would choose
    it again.
    """
    from simulated_bags import status_bytes

    recorded = messages()
    second = next(
        m for m in recorded if m.topic.name == "/nbv_planner/iteration" and _round(m) == 2
    )
    best = SIMULATION.judge.steps[1].view.view_angle
    given_up = status_bytes(
        "i", {**_values(second), "goal_stamp": str(int(_values(second)["goal_stamp"]) - 1000)}
    )
    place = recorded.index(second)
    bag = Bag(
        write(
            tmp_path / "bag", [*recorded[:place], second._replace(data=given_up), *recorded[place:]]
        )
    )
    analysis = analyse(bag)
    assert len(analysis.recording.log.given_up) == 1
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert decisions[1].recorded.view_angle == best
    assert decisions[1].choice.differs  # that view is marked unreachable now


def test_candidates_that_were_left_out_beside_it_are_left_out_of_the_replay_too(bag_path):
    bag = Bag(bag_path)
    analysis = analyse(bag)
    view, best = analysis.recording.log.views[1], SIMULATION.judge.steps[1].view.view_angle
    apart = np.abs(np.angle(np.exp(1j * (view.candidates.angle - best))))
    excluded = np.where(apart < 0.2, Exclusion.UNREACHABLE, 0).astype(np.uint8)
    view.candidates = dataclasses.replace(view.candidates, excluded=excluded)
    decisions = replay(bag, analysis, analysis.recording.log.parameters)
    assert abs(math.remainder(decisions[1].choice.view.view_angle - best, 2 * math.pi)) >= 0.2
    assert not decisions[2].choice.differs  # for that decision alone


def _values(message) -> dict[str, str]:
    from nbv_planner.bags.reader import decode
    from nbv_planner.episode.messages import status_values

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
    assert column(table, "same") == ["yes"] * 4
    assert column(table, "angle_deg") == column(table, "replayed_deg")


FREE = dataclasses.replace(
    CONFIG,
    planner=PlannerSettings(planner="rollout"),
    views=ViewSpaceSettings(
        view_space="annulus", annulus_radii=3, annulus_angles=16, annulus_headings=4
    ),
)


def test_free_views_are_in_the_bag_with_distance_and_turn_and_replay_and_analysis_use_them(
    tmp_path,
):
    path = write(tmp_path / "bag", messages(FREE))
    simulation, _ = finished(FREE)
    analysis = analyse(Bag(path))
    assert any(step.view.turn for step in simulation.judge.steps)
    assert [step.view for step in analysis.steps] == [step.view for step in simulation.judge.steps]
    assert [view.coverage for view in analysis.judge.views] == [
        view.coverage for view in simulation.judge.views
    ]
    assert [view.travelled for view in analysis.judge.views] == pytest.approx(
        [view.travelled for view in simulation.judge.views]
    )
    for step in analysis.steps:
        assert step.candidates.polar == pytest.approx(
            simulation.judge.space.candidates.polar, abs=1e-5
        )
    decisions = replayed(path)
    assert [one.choice.view for one in decisions] == [step.view for step in simulation.judge.steps]
    assert not any(one.choice.differs for one in decisions)
    table = replay_table(decisions)
    assert (
        column(table, "distance")
        == column(table, "replayed_distance")
        == [step.view.distance for step in simulation.judge.steps]
    )
    (views,) = [table for table in analysis_tables(analysis) if table.name == "views"]
    assert column(views, "turn_deg") == [
        math.degrees(step.view.turn) for step in simulation.judge.steps
    ]
    on_circle = replayed(path, nbv_planner={"view_space": "circle"})
    assert all(one.choice.view.distance == 10.0 for one in on_circle)


def test_another_heading_at_the_same_place_is_another_view(tmp_path):
    path = write(tmp_path / "bag", messages(FREE))
    decisions = replayed(path, nbv_planner={"annulus_headings": 5})
    assert any(one.choice.differs for one in decisions)


def test_a_free_view_that_was_left_out_is_left_out_again(tmp_path):
    path = write(tmp_path / "bag", messages(FREE))
    analysis = analyse(Bag(path))
    logged = analysis.recording.log.views[1]
    excluded = np.zeros(len(logged.candidates.angle), dtype=np.uint8)
    space = finished(FREE)[0].judge.space
    chosen = space.nearest(logged.decision.view(10.0))
    excluded[chosen] = Exclusion.UNREACHABLE
    logged.candidates = dataclasses.replace(logged.candidates, excluded=excluded)
    decisions = replay(Bag(path), analysis, analysis.recording.log.parameters)
    assert not decisions[0].choice.differs
    assert decisions[1].choice.differs
    assert decisions[1].choice.view != space.candidates[chosen]


def test_a_list_of_views_is_in_the_bag_and_replay_and_analysis_use_it(tmp_path):
    listed = tuple((np.arange(9) * 0.6 + 0.05).tolist())
    config = dataclasses.replace(CONFIG, views=ViewSpaceSettings(view_angles=listed))
    path = write(tmp_path / "bag", messages(config))
    simulation, _ = finished(config)
    decisions = replayed(path)
    expected = [step.view.view_angle for step in simulation.judge.steps]
    assert [one.choice.view.view_angle for one in decisions] == expected
    assert not any(one.choice.differs for one in decisions)
    analysis = analyse(Bag(path))
    assert analysis.config.views.view_angles == listed
    assert analysis.judge.space.candidates.view_angle.tolist() == list(listed)
    other = replayed(path, nbv_planner={"view_angles": [0.05, 3.05]})
    assert {one.choice.view.view_angle for one in other} <= {0.05, 3.05, None}
