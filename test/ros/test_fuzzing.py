"""Malformed and hostile messages: dropped for a reason or taken by right, and nothing else
changes.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import bent, malformed_poses, malformed_scans
from sensor_msgs.msg import LaserScan

from campaigns.__main__ import main
from campaigns.fuzz import (
    Mutator,
    Tally,
    header,
    is_sound,
    pairs_of_nodes,
    places_of,
    run_campaign,
    views,
)
from nbv_planner.ros.io import conversions
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.world.pose import CameraPose

GOOD = dict(next(views(1)))
NUMBERS, SINGLES = st.floats(), st.floats(width=32)
FRAMES = st.sampled_from(["object", "camera", ""])
COUNT = int(os.environ.get("NBV_FUZZ_COUNT", "600"))


def test_a_campaign_finds_no_fault_and_accounts_for_every_message():
    tally = run_campaign(COUNT, 7, free_domain_id())
    assert tally.faults == []
    assert sum(tally.sent.values()) == COUNT
    assert sum(tally.dropped.values()) + sum(tally.taken.values()) == COUNT
    assert sum(tally.dropped.values()) > 0.4 * COUNT
    assert len(tally.dropped) > 15
    assert len(tally.sent) == 6


@pytest.fixture(scope="module")
def pairs():
    with pairs_of_nodes(free_domain_id()) as made:
        for topic, msg in GOOD.items():
            made["surface_mapper"].both(topic, msg)
        yield made


@st.composite
def any_pose(draw) -> PoseStamped:
    msg = PoseStamped(header=header(draw(FRAMES), draw(st.integers(0, 2**40))))
    for owner, name, kind in list(places_of(msg.pose)):
        assert kind == "double"
        setattr(owner, name, draw(NUMBERS))
    if draw(st.booleans()):
        half = 0.5 * draw(st.floats(-4.0, 4.0))
        q = msg.pose.orientation
        q.x, q.y, q.z, q.w = 0.0, 0.0, math.sin(half), math.cos(half)
    return msg


@st.composite
def any_scan(draw) -> LaserScan:
    ranges = draw(st.lists(SINGLES, max_size=12))
    numbers = {
        name: draw(SINGLES)
        for name in (
            "angle_min",
            "angle_max",
            "angle_increment",
            "range_min",
            "range_max",
            "scan_time",
        )
    }
    if draw(st.booleans()):
        numbers |= {
            "angle_min": -0.1,
            "angle_increment": 0.02,
            "angle_max": 0.02 * len(ranges) - 0.12,
        }
    return LaserScan(
        header=header(draw(FRAMES), draw(st.integers(0, 2**40))), ranges=ranges, **numbers
    )


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(["scan", "camera_pose", "goal_pose"]), any_scan(), any_pose())
def test_whatever_comes_the_mapper_takes_it_by_right_or_drops_it(pairs, topic, scan, pose):
    tally, pair = Tally(), pairs["surface_mapper"]
    pair.attack(topic, scan if topic == "scan" else pose, tally)
    pair.compare(tally)
    assert tally.faults == []
    assert sum(tally.dropped.values()) + sum(tally.taken.values()) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([("depth_camera", "goal_pose"), ("nbv_planner", "camera_pose")]), any_pose())
def test_whatever_pose_comes_camera_and_planner_take_it_by_right_or_drop_it(pairs, place, pose):
    tally, (node, topic) = Tally(), place
    pairs[node].attack(topic, pose, tally)
    pairs[node].compare(tally)
    assert tally.faults == []


@pytest.mark.parametrize("topic", list(GOOD))
def test_the_same_seed_gives_the_same_messages_and_leaves_the_good_one_as_it_was(topic):
    before = str(GOOD[topic])
    first, second = (
        [str(mutator.mutated(GOOD[topic])) for _ in range(30)]
        for mutator in (Mutator(np.random.default_rng(5)), Mutator(np.random.default_rng(5)))
    )
    assert first == second
    assert len(set(first)) > 25
    assert str(GOOD[topic]) == before


def test_good_messages_are_sound_and_malformed_ones_are_not():
    pose, scan = GOOD["camera_pose"], GOOD["scan"]
    assert is_sound(pose, "object")
    assert is_sound(scan, "camera")
    # A pose that leans and a scan of more than a turn are refused for reasons of the problem, not
    # of the message.
    for reason, msg in malformed_poses(pose).values():
        assert reason == "tilted" or not is_sound(msg, "object")
    for what, (_, msg) in malformed_scans(scan).items():
        assert what == "more than a turn" or not is_sound(msg, "camera")


def test_a_cloud_is_sound_only_with_every_number_in_it(pairs):
    belief = pairs["surface_mapper"].reference.core.known.mapper.belief()
    cloud = conversions.belief_to_msg(belief, header("object", 5))
    assert is_sound(cloud, "object")
    spoilt = np.frombuffer(bytes(cloud.data), dtype=np.uint8).copy()
    spoilt[4 * cloud.fields[4].offset // 4 : 4 * cloud.fields[4].offset // 4 + 4] = np.frombuffer(
        np.float32(np.nan).tobytes(), dtype=np.uint8
    )
    assert not is_sound(bent(cloud, data=spoilt.tolist()), "object")
    assert not is_sound(bent(cloud, width=cloud.width + 1), "object")
    assert not is_sound(bent(cloud, fields=cloud.fields[:-2][:5]), "object")


def test_knowledge_that_differs_is_a_fault(pairs):
    tally, pair = Tally(), pairs["depth_camera"]
    motion = pair.reference.motion
    there = motion.view
    motion.view = CameraPose.from_polar(there.view_angle + 0.1, there.distance, there.turn)
    pair.compare(tally)
    motion.view = there
    assert ["differs" in fault for fault in tally.faults] == [True]


def test_the_command_prints_counts_and_refuses_what_makes_no_sense(capsys):
    assert main(["fuzz", "--count", "12", "--seed", "3"]) == 0
    assert "12 hostile messages, 0 faults" in capsys.readouterr().out
    assert main(["fuzz", "--count", "0"]) == 2


def test_ctrl_c_keeps_the_counts_so_far(capsys, monkeypatch):
    def interrupt(line, done):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbv_planner.cli.output.ProgressLine.show", interrupt)
    assert main(["fuzz", "--count", "1000"]) == 130
    sent = int(capsys.readouterr().out.splitlines()[-1].split()[0])
    assert 0 < sent < 1000
