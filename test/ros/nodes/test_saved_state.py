"""Nodes that end and are started again with the same parameters go on in the same episode."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from beliefs import wavy_belief, with_evidence

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import header
from std_srvs.srv import SetBool, Trigger
from test_depth_camera import SMALL as CAMERA
from test_depth_camera import Listener
from test_nbv_planner import ENDLESS, PRIOR, Robot
from test_surface_mapper import HERE, MS, PLAIN, THERE, Feed, stamp_of, surface_of, view_pose

from nbv_planner.episode.parameters import fixed_settings
from nbv_planner.files.plain_values import to_plain
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import CameraState, DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.session import surface_map
from nbv_planner.session.journal import Journal, from_records
from nbv_planner.session.surface_map import KIND
from nbv_planner.settings import plain_settings
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.scene import Scene


@pytest.fixture
def map_file(tmp_path):
    return tmp_path / "map.jsonl"


@pytest.fixture
def session_file(tmp_path):
    return tmp_path / "session.jsonl"


def start_mapper(world, file, **parameters) -> SurfaceMapperNode:
    return world.start(SurfaceMapperNode, **{**PLAIN, "map_file": str(file), **parameters})


def one_view(world, file, **parameters) -> tuple[SurfaceMapperNode, Feed]:
    """A mapper that has mapped scan 0 at HERE, its goal given at 100 ms."""
    mapper = start_mapper(world, file, **parameters)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE, 0)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    return mapper, feed


def again(
    world, mapper: SurfaceMapperNode, feed: Feed, file, stands=THERE, **parameters
) -> tuple[SurfaceMapperNode, Feed]:
    """The mapper ends and is started again, and hears the camera."""
    world.end(mapper)
    mapper = start_mapper(world, file, **parameters)
    feed = Feed(world)
    feed.pair(115 * MS, stands, 5)
    feed.surface(1)
    return mapper, feed


def test_a_mapper_that_is_started_again_knows_the_same_and_goes_on_the_same(world, map_file):
    mapper, feed = one_view(world, map_file)
    mapper, feed = again(world, mapper, feed, map_file, HERE)
    assert stamp_of(feed.surfaces[0]) == 110 * MS
    assert bytes(feed.surfaces[0].data) == surface_of((HERE, 0))
    feed.goal(100 * MS, HERE)  # the planner repeats its goal: the view has been taken
    feed.pair(120 * MS, HERE, 1)
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 2)
    world.spin_until(lambda: stamp_of(feed.surfaces[-1]) == 210 * MS, "the second view")
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0), (THERE, 2))
    values = world.diagnosis(mapper).values
    assert (values["views"], values["scans"], values["restored"]) == ("2", "2", "True")


def test_a_view_is_on_the_disk_before_anybody_hears_of_it(world, map_file):
    _, feed = one_view(world, map_file)
    (batch,) = batches(map_file)
    assert (batch["progress"]["views"], batch["progress"]["stamp"]) == (
        1,
        stamp_of(feed.surfaces[-1]),
    )


def test_a_view_that_was_not_mapped_yet_is_mapped_once_its_goal_is_repeated(world, map_file):
    mapper, feed = one_view(world, map_file)
    feed.goal(200 * MS, THERE)
    world.spin_until(lambda: mapper.core.matcher.state().goals == 2, "the goal")
    mapper, feed = again(world, mapper, feed, map_file)
    feed.goal(200 * MS, THERE)
    feed.pair(220 * MS, THERE, 3)
    world.spin_until(lambda: stamp_of(feed.surfaces[-1]) == 220 * MS, "the second view")
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0), (THERE, 3))


def test_a_reset_survives_too(world, map_file):
    mapper, feed = one_view(world, map_file)
    assert world.call(Trigger, "surface_mapper/reset").success
    world.spin_until(lambda: not batches(map_file), "the empty map")
    mapper, feed = again(world, mapper, feed, map_file)
    assert bytes(feed.surfaces[0].data) == surface_of()


def batches(path) -> list:
    """What the journal of a map holds."""
    return [record["batch"] for record in Journal(path, KIND).read() if "batch" in record]


def write_changed(path, **changes):
    """The same batches with some values changed, and sums that fit, as the journal of the same
    settings.
    """
    header = json.loads(path.read_bytes().splitlines()[0])["fact"]
    changed = [{"batch": {**batch, **changes}} for batch in batches(path)]
    Journal(path, KIND, header["settings"], header["episode"]).begin(changed)


def to_version_1(path):
    np.savez(path, header=np.array("{}"))
    path.with_name(f"{path.name}.npz").replace(path)


@pytest.mark.parametrize(
    ("damage", "parameters", "reason"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b"angle_min", b"angle_max")),
            {},
            "damaged",
        ),
        (lambda path: path.write_bytes(b""), {}, "damaged"),
        (lambda path: write_changed(path, scans=[{"stamp": 3}]), {}, "content"),
        (lambda path: write_changed(path, through=["much"]), {}, "content"),
        (lambda path: write_changed(path, progress=5), {}, "content"),
        (lambda path: None, {"kernel_std": 1.6}, "settings"),
        (lambda path: None, {"episode": "another"}, "episode"),
        (to_version_1, {}, "version"),
    ],
    ids=[
        "changed",
        "empty",
        "no scan",
        "no number",
        "no counts",
        "another kernel",
        "another episode",
        "version 1",
    ],
)
def test_a_file_that_cannot_be_gone_on_from_is_set_aside_and_counted(
    world, map_file, capfd, damage, parameters, reason
):
    mapper, _ = one_view(world, map_file)
    world.end(mapper)
    damage(map_file)
    content = map_file.read_bytes()
    mapper = start_mapper(world, map_file, **parameters)
    assert world.drops(mapper)[f"state.{reason}"] == 1
    assert map_file.with_name(f"{map_file.name}.refused").read_bytes() == content
    assert mapper.core.known.mapper.model.count == 0
    if reason == "version":
        assert (
            "end the episode with the release that began it, or move the file away"
            in capfd.readouterr().err
        )


def test_a_line_that_a_kill_has_torn_is_left_out_and_its_view_is_taken_again(world, map_file):
    mapper, feed = one_view(world, map_file)
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 3)
    world.spin_until(lambda: stamp_of(feed.surfaces[-1]) == 210 * MS, "the second view")
    world.end(mapper)
    map_file.write_bytes(map_file.read_bytes()[:-40])
    mapper = start_mapper(world, map_file)
    assert world.drops(mapper) == {"state.torn": 1}
    feed = Feed(world)
    feed.goal(200 * MS, THERE)
    feed.pair(220 * MS, THERE, 4)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 220 * MS, "the second view"
    )
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0), (THERE, 4))
    assert len(batches(map_file)) == 2


def test_the_journal_is_compacted_where_scans_are_mapped_on_the_way(world, map_file, monkeypatch):
    monkeypatch.setattr(surface_map, "COMPACTED", 3)
    mapper = start_mapper(world, map_file, integrate="always")
    feed = Feed(world)
    for number in range(1, 9):
        feed.pair(100 * number * MS, view_pose(0.2 * number), number)
        world.spin_until(
            lambda n=number: feed.surfaces and stamp_of(feed.surfaces[-1]) == 100 * n * MS,
            f"surface {number}",
        )
    kinds = [list(record) for record in Journal(map_file, KIND).read()]
    assert kinds[0] == ["map"]
    assert 2 <= len(kinds) <= 4
    last = bytes(feed.surfaces[-1].data)
    world.end(mapper)
    mapper = start_mapper(world, map_file, integrate="always")
    again = conversions.belief_to_msg(mapper.core.known.belief, header("object"))
    assert bytes(again.data) == last


def test_save_and_load_are_services_that_say_what_happened(world, map_file, tmp_path):
    mapper, feed = one_view(world, map_file)
    saved = world.call(Trigger, "surface_mapper/save")
    assert (saved.success, saved.message) == (True, f"1 views saved to {map_file}")
    kept = map_file.read_bytes()
    world.call(Trigger, "surface_mapper/reset")
    world.spin_until(lambda: bytes(feed.surfaces[-1].data) == surface_of(), "the prior")
    map_file.write_bytes(kept)
    loaded = world.call(Trigger, "surface_mapper/load")
    assert (loaded.success, loaded.message) == (True, f"1 views loaded from {map_file}")
    world.spin_until(
        lambda: bytes(feed.surfaces[-1].data) == surface_of((HERE, 0)), "the loaded surface"
    )
    map_file.write_bytes(b"rubbish\n")
    refused = world.call(Trigger, "surface_mapper/load")
    assert not refused.success
    assert "checksum" in refused.message
    assert mapper.core.known.mapper.model.count > 0


def test_without_a_file_saving_and_loading_are_refused_with_the_remedy(world):
    world.start(SurfaceMapperNode, **PLAIN)
    world.start(NbvPlannerNode, **ENDLESS)
    for node, parameter in (("surface_mapper", "map_file"), ("nbv_planner", "state_file")):
        for service in ("save", "load"):
            answer = world.call(Trigger, f"{node}/{service}")
            assert not answer.success
            assert answer.message.endswith(
                f"no file given: start the node with the parameter {parameter}"
            )


def test_a_file_that_cannot_be_written_is_counted_and_mapping_goes_on_until_it_can(world, tmp_path):
    file = tmp_path / "no folder" / "map.jsonl"
    mapper, feed = one_view(world, file)
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0))
    assert world.drops(mapper)["state.not_written"] >= 1
    file.parent.mkdir()
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 2)
    world.spin_until(lambda: stamp_of(feed.surfaces[-1]) == 210 * MS, "the second view")
    assert [batch["progress"]["views"] for batch in batches(file)] == [1, 2]


@pytest.mark.parametrize("kind", ["FIFO", "character device"])
@pytest.mark.parametrize("cls", [DepthCamera, SurfaceMapperNode, NbvPlannerNode])
def test_a_node_neither_waits_for_nor_replaces_what_is_no_file(world, tmp_path, capfd, cls, kind):
    path = "/dev/zero" if kind == "character device" else str(tmp_path / "state")
    if kind == "FIFO":
        os.mkfifo(path)
    node = world.start(cls, **{"map_file" if cls is SurfaceMapperNode else "state_file": path})
    assert world.drops(node)["state.unreadable"] == 1
    assert f"cannot read {path}: it is a {kind}, must be a regular file" in capfd.readouterr().err
    answer = world.call(Trigger, f"{node.get_name()}/save") if cls is not DepthCamera else None
    assert answer is None or (not answer.success and f"it is a {kind}" in answer.message)
    assert not Path(path).is_file()


def test_a_slow_disk_holds_up_no_message_and_no_service(world, map_file, monkeypatch):
    entered, done = threading.Event(), threading.Event()
    real = Journal.begin

    def slow(*arguments):
        entered.set()
        done.wait()
        return real(*arguments)

    monkeypatch.setattr(Journal, "begin", slow)
    mapper = start_mapper(world, map_file)
    feed = Feed(world)
    feed.pair(90 * MS, THERE, 4)
    world.spin_until(entered.is_set, "the disk to be busy")
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE, 0)
    world.spin_until(lambda: mapper.core.matcher.matches == 2, "the scan")
    assert int(world.diagnosis(mapper).values["updates"]) == 0
    assert world.set_parameters(mapper, map_file="")[0].successful is False
    done.set()
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0))


def episode_in(file):
    """The episode that the journal of a planner holds."""
    return from_records(Journal(file, "planning session").read())[0]


def rewrite(file, kind: str, change) -> None:
    """The same journal with its records changed, and checksums that fit."""
    settings = json.loads(file.read_text().splitlines()[0])["fact"]["settings"]
    kept = Journal(file, kind, settings)
    records = kept.read()
    kept.begin(change(records))


def with_hits(views: int):
    belief = wavy_belief(views, size=200)
    return dataclasses.replace(belief, hits=np.full_like(belief.hits, views))


def start_planner(world, file, **parameters) -> NbvPlannerNode:
    return world.start(NbvPlannerNode, **{**ENDLESS, "state_file": str(file), **parameters})


def two_goals(world, file, **parameters) -> tuple[NbvPlannerNode, Robot]:
    """A planner that has taken one view and has sent its second goal."""
    planner, robot = start_planner(world, file, **parameters), Robot(world, drives=False)
    robot.begin().goal(1)
    robot.arrive()
    robot.map()
    robot.goal(2)
    return planner, robot


def test_a_planner_that_is_started_again_repeats_its_goal_and_asks_for_no_other(
    world, session_file
):
    planner, robot = two_goals(world, session_file)
    second, angle = stamp_of(robot.goals[1]), robot.goal_angle(2)
    world.end(planner)
    start_planner(world, session_file)
    world.spin_until(lambda: len(robot.goals) > 2, "the goal again")
    assert {stamp_of(goal) for goal in robot.goals[2:]} == {second}
    robot.arrive()
    robot.map()
    world.spin_until(lambda: stamp_of(robot.goals[-1]) != second, "the third goal")
    assert robot.status("MOVING")["views"] == "2"
    assert abs(robot.goal_angle(2) - angle) == 0.0


def test_the_account_of_hybrid_goes_with_the_session(world, session_file):
    tight = {"planner": "hybrid"}
    planner = start_planner(world, session_file, **tight)
    robot = Robot(world, drives=False, belief=lambda views: with_evidence(with_hits(views)))
    robot.begin(with_evidence(PRIOR)).goal(1)
    robot.arrive()
    robot.map()
    robot.goal(2)
    rounds = episode_in(session_file).rounds
    assert len(rounds) == 2
    assert all(0.0 < played.taken <= played.best for played in rounds)
    world.end(planner)
    again = start_planner(world, session_file, **tight)
    assert again.core.episode.rounds == rounds


def test_a_planner_that_is_started_again_still_knows_which_mapper_its_episode_is_of(
    world, session_file
):
    settings = {"objective": "EMC"}
    planner = start_planner(world, session_file, **settings)
    robot = Robot(world, drives=False)
    robot.prior = PriorSettings(kernel_std=0.7, prior_mean=4.0)
    robot.begin(with_evidence(PRIOR)).goal(1)
    prior = robot.prior
    world.end(planner)
    robot.prior = PriorSettings()
    robot.send(with_evidence(PRIOR), robot.now())
    again = start_planner(world, session_file, **settings)
    assert again.core.episode.origin.prior == plain_settings(prior)
    world.spin_until(lambda: again.drops["surface.other_prior"] == 1, "the count")
    assert again.core.episode.goal is not None


def test_a_goal_is_on_the_disk_before_anybody_hears_of_it(world, session_file):
    _, robot = two_goals(world, session_file)
    assert episode_in(session_file).goal.stamp == stamp_of(robot.goals[1])


def test_a_planner_that_missed_the_surface_of_its_view_takes_it_from_the_mapper(
    world, session_file
):
    planner, robot = two_goals(world, session_file)
    world.end(planner)
    robot.arrive()
    robot.map()  # nobody hears it; the topic keeps it
    start_planner(world, session_file)
    second = stamp_of(robot.goals[1])
    world.spin_until(
        lambda: robot.send_pose(robot.goals[1]) or stamp_of(robot.goals[-1]) > second,
        "the third goal",
    )
    assert robot.status("MOVING")["views"] == "2"


def test_a_pause_and_an_end_survive(world, session_file):
    planner, robot = two_goals(world, session_file)
    assert world.call(SetBool, "nbv_planner/pause", data=True).success
    assert episode_in(session_file).paused  # before the answer
    world.end(planner)
    planner = start_planner(world, session_file)
    assert robot.status("PAUSED")["views"] == "1"
    assert world.call(Trigger, "nbv_planner/stop").success
    robot.status("DONE")
    assert episode_in(session_file).termination
    world.end(planner)
    start_planner(world, session_file)
    assert robot.status("DONE")["reason"] == "STOPPED"


def test_a_damaged_session_is_set_aside_and_the_planner_begins_anew(world, session_file):
    planner, _ = two_goals(world, session_file)
    world.end(planner)
    session_file.write_bytes(session_file.read_bytes()[1:])
    planner = start_planner(world, session_file)
    assert world.drops(planner)["state.damaged"] == 1
    assert planner.core.episode.visited == ()


@pytest.mark.parametrize(
    "record",
    [
        {
            "fact": "Judged",
            "coverage": 10**400,
            "doubt": False,
            "estimate": None,
            "termination": None,
            "ending": None,
        },
        {"fact": "Listed", "lists": {"view_angles": [1e308, -1.0]}},
        {"fact": "SceneEstimated", "estimated_scene": {"x": 1}},
        {"fact": "Listed", "lists": {"view_angles": "x"}},
        {"fact": "Counted", "stamp": -1},
        {"fact": "Bored"},
    ],
)
def test_a_session_with_facts_that_none_has_is_set_aside_and_the_planner_begins_anew(
    world, session_file, record
):
    planner, _ = two_goals(world, session_file)
    world.end(planner)
    rewrite(session_file, "planning session", lambda records: [*records, {"at": 1, **record}])
    planner = start_planner(world, session_file)
    assert world.drops(planner)["state.content"] == 1
    assert planner.core.episode.visited == ()
    assert session_file.with_name(f"{session_file.name}.refused").exists()


def test_a_session_of_another_clock_is_not_gone_on_from(world, session_file):
    planner, _ = two_goals(world, session_file)
    world.end(planner)
    rewrite(
        session_file, "planning session", lambda records: [*records, {**records[-1], "at": 2**62}]
    )
    planner = start_planner(world, session_file)
    assert world.drops(planner)["state.clock"] == 1


def test_the_planner_saves_and_loads_on_request(world, session_file):
    planner, robot = two_goals(world, session_file)
    assert world.call(Trigger, "nbv_planner/save").success
    kept = session_file.read_bytes()
    world.call(Trigger, "nbv_planner/reset")
    assert planner.core.episode.visited == ()
    robot.goal(3)  # from here on it writes nothing until the robot is there
    session_file.write_bytes(kept)
    loaded = world.call(Trigger, "nbv_planner/load")
    assert (loaded.success, loaded.message) == (True, f"1 views loaded from {session_file}")
    assert len(planner.core.episode.visited) == 1


def test_a_subscriber_that_comes_late_is_told_the_goal_under_way(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False)
    first = stamp_of(robot.begin().goal(1))
    late = world.listen(PoseStamped, "goal_pose")
    world.spin_until(lambda: late, "the goal once more")
    assert stamp_of(late[0]) == first


def test_views_that_the_mapper_has_lost_are_counted_and_may_be_taken_again(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, belief=with_hits).begin()
    robot.goal(4)
    robot.drives = False
    robot.send_surface(conversions.belief_to_msg(with_hits(1), robot.goals[1].header))
    world.spin_until(lambda: planner.core.episode.lost_views, "the loss")
    assert world.drops(planner)["view.lost"] == planner.core.episode.lost_views >= 2
    assert int(robot.status("MOVING")["views"]) + planner.core.episode.lost_views >= 3


def test_a_camera_that_is_started_again_stands_at_its_goal_and_counts_on(world, tmp_path):
    file = tmp_path / "camera.jsonl"
    camera = world.start(DepthCamera, **CAMERA, state_file=str(file))
    listener = Listener(world)
    listener.go(1.0, 5)
    listener.go(2.0, 6)
    noise = [
        np.array(scan.ranges) for scan, pose in zip(listener.scans, listener.poses, strict=False)
    ]
    world.spin_until(lambda: camera._keeper.pending == 0, "the state on the disk")
    world.end(camera)
    camera = world.start(DepthCamera, **CAMERA, state_file=str(file))
    listener = Listener(world)
    world.spin_until(lambda: listener.scans and listener.poses, "a scan and its pose")
    assert (camera.view_number, listener.at(2.0)()) == (2, True)
    assert any(np.array_equal(np.array(listener.scans[0].ranges), scan) for scan in noise)
    listener.goal(2.0, 6)
    listener.more(3)
    assert camera.view_number == 2


STOOD = to_plain(CameraState(view_pose(1.0), view_pose(1.0), 5, 1, 5))


@pytest.mark.parametrize(
    "values",
    [
        {"goal_angle": "north"},
        {**STOOD, "goal": {**STOOD["goal"], "yaw": None}},
        {**STOOD, "view_number": 10**400},
        {**STOOD, "set_out_at": -(10**25)},
    ],
    ids=["north", "pose", "count", "time"],
)
def test_a_camera_refuses_a_state_that_is_none(world, tmp_path, values):
    file = tmp_path / "camera.jsonl"
    Journal(file, "simulated camera", fixed_settings(Scene())).begin([values])
    camera = world.start(DepthCamera, **CAMERA, state_file=str(file))
    assert world.drops(camera)["state.content"] == 1
    assert camera.view_number == 0
    assert file.with_name("camera.jsonl.refused").exists()
