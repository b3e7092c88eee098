"""Analysis: from the bag alone the figures of the simulated episode, and reasons for whatever is
missing.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import pytest
import yaml

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from recorded import CONFIG, finished, messages, write
from simulated_bags import Pace, Timeline, status_bytes, text_bytes

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.episode.parameters import NODE_SETTINGS
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import BagError
from nbv_planner.star2d.measurements import polar
from nbv_planner.surface.checks import Check, Level
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.versions import VERSION

SIMULATION, TERMINATION = finished()


def analysed(tmp_path, recorded, **more):
    return analyse(Bag(write(tmp_path / "bag", recorded)), **more)


def without(*names: str):
    return [message for message in messages() if not message.topic.name.endswith(names)]


def as_json(record) -> dict:
    return json.loads(json.dumps(record.to_json()))


def test_the_record_is_that_of_the_simulated_episode(bag_path):
    analysis = analyse(Bag(bag_path))
    assert analysis.record is not None
    expected = as_json(SIMULATION.judge.record(CONFIG.as_dict(), CONFIG.sensor.seed, TERMINATION))
    found = as_json(analysis.record)
    for expected_view, view in zip(expected["views"], found["views"], strict=True):
        # The bag holds beliefs in single precision, as the planner had them.
        assert view == pytest.approx(expected_view, rel=1e-6, abs=1e-9)
    for part in ("config", "seed", "termination", "versions"):
        assert found[part] == expected[part]
    assert found["metrics"] == pytest.approx(expected["metrics"])
    assert found["calibration"]["inside"] == pytest.approx(expected["calibration"]["inside"])
    assert (analysis.gaps, analysis.remarks, analysis.coverage_kind) == ((), (), "true")
    assert len(analysis.steps) == len(analysis.views) == 4


def test_a_bag_of_version_1_is_refused_in_one_line_that_says_what_reads_it(tmp_path):
    found = []
    for message in messages():
        if message.topic.name == "/run_info":
            text = decode(message).data.replace(f"nbv_planner: {VERSION}", "nbv_planner: 1.0.0")
            message = message._replace(data=text_bytes(text))
        found.append(message)
    with pytest.raises(BagError, match=r"^\S+bag: recorded by nbv_planner 1\.0\.0; .*release"):
        analyse(Bag(write(tmp_path / "bag", found)))


def test_checks_of_the_last_surface_are_a_table_with_the_view_at_which_each_was_not_good_first(
    tmp_path,
):
    def checks(alive: Level) -> tuple[Check, ...]:
        return Check("alive", 2.0, 1.0, alive), Check("overlap", math.nan, 5.0, Level.GOOD)

    levels = (Level.GOOD, Level.FAILED, Level.GOOD, Level.FAILED)
    steps = [
        dataclasses.replace(step, belief=dataclasses.replace(step.belief, checks=checks(level)))
        for step, level in zip(SIMULATION.judge.steps, levels, strict=True)
    ]
    analysis = analysed(tmp_path, Timeline(CONFIG, steps, TERMINATION, Pace()).messages())
    (table,) = (table for table in analysis_tables(analysis) if table.name == "checks")
    dead, fits = checks(Level.FAILED)
    assert table.to_json() == [
        {
            "check": "alive",
            "score": 2.0,
            "limit": 1.0,
            "level": "FAILED",
            "since": 2,
            "text": dead.summary,
        },
        {
            "check": "overlap",
            "score": None,
            "limit": 5.0,
            "level": "GOOD",
            "since": None,
            "text": fits.summary,
        },
    ]
    assert as_json(analysis.record)["checks"] == [
        {"name": "alive", "score": 2.0, "limit": 1.0, "level": "FAILED"},
        {"name": "overlap", "score": None, "limit": 5.0, "level": "GOOD"},
    ]


def test_a_bag_without_checks_has_no_table_of_them(tmp_path):
    steps = [
        dataclasses.replace(step, belief=dataclasses.replace(step.belief, checks=()))
        for step in SIMULATION.judge.steps
    ]
    analysis = analysed(tmp_path, Timeline(CONFIG, steps, TERMINATION, Pace()).messages())
    assert "checks" not in {table.name for table in analysis_tables(analysis)}
    assert as_json(analysis.record)["checks"] == []


def test_steps_hold_what_was_measured(bag_path):
    for step, expected in zip(analyse(Bag(bag_path)).steps, SIMULATION.judge.steps, strict=True):
        assert polar(step.hits).radius == pytest.approx(polar(expected.hits).radius, abs=1e-5)
        assert step.candidates.polar == pytest.approx(expected.candidates.polar, abs=1e-6)
        assert step.utilities == pytest.approx(expected.utilities, rel=1e-6)


def stamped_apart(seconds: float, **mapper: float):
    """The episode with poses stamped beside their scans, mapped with the settings `mapper`."""
    recorded = messages(pace=Pace(pose_offset=seconds))
    info = yaml.safe_load(decode(recorded[0]).data)
    info["nodes"]["surface_mapper"].update(mapper)
    return [recorded[0]._replace(data=text_bytes(yaml.safe_dump(info))), *recorded[1:]]


@pytest.mark.parametrize(
    ("seconds", "mapper"),
    [(-0.005, {}), (0.005, {"pose_gap": 0.0}), (-0.08, {"pose_gap": 0.0, "pose_tolerance": 0.1})],
)
def test_poses_stamped_beside_the_scans_are_paired_as_the_mapper_does(
    tmp_path, bag_path, seconds, mapper
):
    analysis = analysed(tmp_path, stamped_apart(seconds, **mapper))
    same_stamps = analyse(Bag(bag_path))
    assert (analysis.gaps, analysis.remarks, len(analysis.steps)) == ((), (), 4)
    for step, expected in zip(analysis.steps, same_stamps.steps, strict=True):
        assert len(step.hits) > 5
        assert polar(step.hits).angle == pytest.approx(polar(expected.hits).angle)
        assert polar(step.hits).radius == pytest.approx(polar(expected.hits).radius)
    assert as_json(analysis.record)["views"] == as_json(same_stamps.record)["views"]


def test_a_scan_without_a_pose_near_enough_for_the_mapper_has_none(tmp_path):
    analysis = analysed(tmp_path, stamped_apart(0.005, pose_gap=0.0, pose_tolerance=0.001))
    assert analysis.gaps == ("4 of 4 views are without their scan or camera pose",)
    assert analysis.steps == ()


@pytest.mark.parametrize("namespace", ["/arm", "/lab/arm"])
def test_namespaces_make_no_difference(tmp_path, namespace):
    recorded = messages(pace=Pace(namespace=namespace))
    analysis = analysed(tmp_path, recorded)
    assert analysis.recording.topics.namespace == namespace
    assert (analysis.gaps, analysis.remarks) == ((), ())
    assert analysis.record.metrics == SIMULATION.judge.metrics()
    assert analysis.drops == {("surface_mapper", "beam.outside_bounds"): 0}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_topics_reach_the_recorder_makes_no_difference(tmp_path, seed):
    """Messages of different topics overtake each other by up to 30 ms."""
    import numpy as np

    delays = np.random.default_rng(seed).integers(0, 30_000_000, size=1000)
    late = [m._replace(time=m.time + int(d)) for m, d in zip(messages(), delays, strict=False)]
    shuffled = sorted(late, key=lambda message: message.time)
    assert shuffled != late
    analysis = analysed(tmp_path, shuffled)
    assert analysis.record.metrics == SIMULATION.judge.metrics()
    assert len(analysis.steps) == 4


@pytest.mark.parametrize(
    ("names", "kind", "words", "views"),
    [
        (["/run_info"], "unknown", ["coverage", "run_info is not in the bag", "--params-file"], 4),
        (["/run_info", "/ground_truth/surface"], "unknown", ["run_info is not in the bag"], 4),
        (
            ["nbv_planner/iteration"],
            "true",
            ["nbv_planner/iteration is not in the bag (views: from goal_pose)"],
            4,
        ),
        (["nbv_planner/iteration", "goal_pose"], "true", ["no decision and no goal"], 0),
        (["nbv_planner/status"], "true", ["time by phase", "why the episode ended"], 4),
        (["nbv_planner/candidates"], "true", ["4 of 4 views are without their candidates"], 4),
        (["/scan"], "true", ["4 of 4 views are without their scan or camera pose"], 4),
        (["/camera_pose"], "true", ["distance travelled: camera_pose is not in the bag"], 4),
        (["/surface"], "true", ["4 of 4 views are without their surface"], 4),
        (["/diagnostics"], "true", ["drops by reason: /diagnostics is not in the bag"], 4),
    ],
)
def test_what_is_missing_is_named_and_the_rest_computed(tmp_path, names, kind, words, views):
    analysis = analysed(tmp_path, without(*names))
    assert analysis.coverage_kind == kind
    assert len(analysis.views) == views
    gaps = "\n".join(analysis.gaps)
    assert [word for word in words if word not in gaps] == []
    if views and kind == "true":
        expected = [view.coverage for view in SIMULATION.judge.views]
        assert analysis.coverage == expected
    for table in analysis_tables(analysis):
        assert table.to_csv()
        assert table.to_markdown()


def test_decisions_that_the_recorder_lost_are_counted(tmp_path):
    lost = [m for m in messages() if m.topic.name == "/nbv_planner/iteration"][1:3]
    analysis = analysed(tmp_path, [m for m in messages() if m not in lost])
    assert len(analysis.views) == 2
    assert any("2 of 4 decisions are not in the bag" in gap for gap in analysis.gaps)


def test_without_true_object_coverage_is_estimated_as_the_planner_does(tmp_path):
    text = next(m for m in messages() if m.topic.name == "/run_info")
    nodes = {name: {} for name in NODE_SETTINGS if name != "depth_camera"}
    analysis = analysed(
        tmp_path, without("/run_info", "/ground_truth/surface"), parameters=RunParameters(nodes)
    )
    assert text
    assert analysis.coverage_kind == "estimated"
    assert analysis.record is None
    assert analysis.coverage == [view.estimate for view in analysis.views]
    assert all(0.0 < value <= 1.0 for value in analysis.coverage)
    assert any("the bag has no true object" in gap for gap in analysis.gaps)


def test_the_estimate_is_the_one_that_the_planner_said(tmp_path):
    said = CoverageEstimate(0.91, 0.84, 0.97, 0.3, 0.9)
    early = CoverageEstimate(0.31, 0.2, 0.4, 0.0, 0.9)

    def values(estimate: CoverageEstimate) -> dict:
        return {f"coverage_{name}": one for name, one in dataclasses.asdict(estimate).items()}

    def with_estimates(m):
        """That after the last view in the status, that after the first in the second decision."""
        if m.topic.name.endswith("/status"):
            last = {"state": "DONE", "views": 4, "coverage_estimate": said.mean, "elapsed": 1.0}
            return m._replace(data=status_bytes("nbv_planner: status", {**last, **values(said)}))
        if m.topic.name.endswith("/iteration"):
            told = {pair.key: pair.value for pair in decode(m).values}
            if told["round"] == "2":
                told |= values(early)
            return m._replace(data=status_bytes("nbv_planner: iteration", told))
        return m

    analysis = analysed(tmp_path, map(with_estimates, messages()))
    assert [view.interval for view in analysis.views] == [early, None, None, said]
    assert (analysis.views[0].estimate, analysis.views[-1].estimate) == (early.mean, said.mean)
    (table,) = (table for table in analysis_tables(analysis) if table.name == "views")
    row = table.to_json()[-1]
    assert [row[f"coverage_{name}"] for name in ("estimate", "lower", "upper")] == [
        0.91,
        0.84,
        0.97,
    ]
    assert "Level of the interval: 90%" in table.note


def test_the_topic_gives_the_true_object_where_the_text_does_not(tmp_path):
    """As with a contour from a file, which only the machine that recorded has."""
    analysis = analysed(tmp_path, [_with_object(m, "file:/somewhere/else.csv") for m in messages()])
    assert analysis.truth.source == "the points on ground_truth/surface"
    assert analysis.coverage_kind == "true"
    found, expected = analysis.judge.views, SIMULATION.judge.views
    assert [view.coverage for view in found] == pytest.approx(
        [view.coverage for view in expected], abs=0.01
    )
    assert [view.rmse for view in found] == pytest.approx(
        [view.rmse for view in expected], abs=0.01
    )


def test_a_text_that_contradicts_the_topic_does_not_count(tmp_path):
    analysis = analysed(tmp_path, [_with_object(m, "ellipse:a=6,b=4") for m in messages()])
    assert analysis.truth.source == "the points on ground_truth/surface"
    assert any("differ by up to" in remark for remark in analysis.remarks)


def test_renamed_topics_are_found_where_run_info_names_them(tmp_path):
    here = {"/scan": "/lidar/scan", "/camera_pose": "/pose", "/goal_pose": "/view_goal"}
    said = {old.lstrip("/"): new for old, new in here.items()}
    recorded = [
        _with_text(m, lambda text: f"{text}\ntopics: {json.dumps(said)}") for m in messages()
    ]
    topics = {
        m.topic: dataclasses.replace(m.topic, name=here.get(m.topic.name, m.topic.name))
        for m in recorded
    }
    analysis = analysed(tmp_path, [m._replace(topic=topics[m.topic]) for m in recorded])
    assert {
        name: topic.name for name, topic in analysis.recording.topics.topics.items() if name in said
    } == said
    assert (analysis.gaps, analysis.remarks, len(analysis.steps)) == ((), (), 4)


def _with_object(message, object_text: str):
    return _with_text(message, lambda text: text.replace(CONFIG.object, object_text))


def _with_text(message, changed):
    from simulated_bags import text_bytes

    from nbv_planner.bags.reader import decode

    if message.topic.name != "/run_info":
        return message
    return message._replace(data=text_bytes(changed(decode(message).data)))


def test_a_recording_that_ends_on_the_way_leaves_the_last_goal_out(tmp_path):
    recorded = messages()
    last = max(i for i, m in enumerate(recorded) if m.topic.name == "/nbv_planner/iteration")
    analysis = analysed(tmp_path, recorded[: last + 2])
    assert len(analysis.views) == 3
    assert analysis.termination.reason.value == "STOPPED"
    assert (
        analysis.termination.detail
        == "interrupted after 3 views: the recording ends before the planner does"
    )
    assert analysis.record.metrics["T"] == 3


def test_time_by_phase_adds_up_to_the_time_between_first_and_last_status(bag_path):
    analysis = analyse(Bag(bag_path))
    states = analysis.recording.log.states
    assert sum(analysis.phases.values()) == pytest.approx((states[-1][0] - states[0][0]) * 1e-9)
    assert set(analysis.phases) == {"WAITING", "PLANNING", "MEASURING"}


def test_way_of_the_camera_is_that_of_its_poses(bag_path):
    import math

    views = [CONFIG.motion.initial_view_angle, *(view.angle for view in SIMULATION.judge.views)]
    chords = [2.0 * 10.0 * abs(math.sin(0.5 * (b - a))) for a, b in itertools.pairwise(views)]
    assert analyse(Bag(bag_path)).recording.log.path == pytest.approx(sum(chords), abs=1e-6)


def test_progress_is_told(bag_path, monkeypatch):
    monkeypatch.setattr("nbv_planner.bags.mcap_file._BLOCK", 2000)
    monkeypatch.setattr("nbv_planner.bags.storage._ROWS_PER_REPORT", 10)
    said = []
    analyse(Bag(bag_path), progress=said.append)
    assert said == sorted(said)
    assert said[-1] == 1.0


def test_analysis_is_a_value(bag_path):
    analysis = analyse(Bag(bag_path))
    with pytest.raises(dataclasses.FrozenInstanceError):
        analysis.record = None
