"""Hostile and damaged bags: a clear error or a reasoned partial result, never a traceback, in
bounded memory.
"""

from __future__ import annotations

import json
import math
import resource
import struct
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

import simulated_bags as made
from hypothesis import given
from hypothesis import strategies as st
from recorded import messages, write

from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.storage import Topic
from nbv_planner.episode.messages import status_values
from nbv_planner.errors import NbvPlannerError

RECORDED = messages()


def analysed(tmp_path, recorded):
    """Analyse; every warning is an error, and everything that is written can be written."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis = analyse(Bag(write(tmp_path / "bag", recorded)))
        tables = {table.name: table.to_json() for table in analysis_tables(analysis)}
    json.dumps(tables, allow_nan=False)
    if analysis.record is not None:
        json.dumps(analysis.record.to_json(), allow_nan=False)
    return analysis


def changed(name: str, change):
    return [m._replace(data=change(m)) if m.topic.name == f"/{name}" else m for m in RECORDED]


def cloud_with(layout_index: int, value: float):
    """Set one column of a cloud to a value."""

    def change(message) -> bytes:
        cloud = decode(message)
        table = np.frombuffer(bytearray(cloud.data.tobytes()), dtype="<f4").reshape(cloud.width, -1)
        table[:, layout_index] = value
        return message.data.replace(cloud.data.tobytes(), table.tobytes())

    return change


def iteration_with(**values: str):
    def change(message) -> bytes:
        return made.status_bytes("i", {**status_values(decode(message)), **values})

    return change


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("name", "column"), [("surface", 4), ("surface", 3), ("ground_truth/surface", 4)]
)
def test_numbers_that_are_none_leave_the_message_out(tmp_path, name, column, value):
    analysis = analysed(tmp_path, changed(name, cloud_with(column, value)))
    assert any(f"/{name}: messages that cannot be used" in remark for remark in analysis.remarks)
    assert len(analysis.views) == 4


@pytest.mark.parametrize("value", [3e38, -3e38, -1.0, 0.0])
def test_absurd_surfaces_are_judged_as_they_are(tmp_path, value):
    analysis = analysed(tmp_path, changed("surface", cloud_with(4, value)))
    assert len(analysis.views) == 4
    assert analysis.record is not None


@pytest.mark.parametrize(
    "values",
    [
        {"view_angle": "nan"},
        {"view_angle": "inf"},
        {"view_angle": "north"},
        {"round": "1.5"},
        {"round": ""},
        {"goal_stamp": "-"},
        {"utility": "a lot"},
        {"surface_stamp": "x"},
    ],
    ids=str,
)
def test_iterations_that_cannot_be_read_are_left_out_and_counted(tmp_path, values):
    analysis = analysed(tmp_path, changed("nbv_planner/iteration", iteration_with(**values)))
    assert (
        "/nbv_planner/iteration: messages that cannot be used (iteration): left out (4 times)"
        in analysis.remarks
    )
    assert len(analysis.views) == 4  # from goal_pose


@pytest.mark.parametrize(
    "values",
    [
        {"view_angle": "1e300"},
        {"round": str(10**30)},
        {"utility": "nan"},
        {"planning_milliseconds": "-inf"},
    ],
    ids=str,
)
def test_iterations_with_absurd_numbers_end_in_no_traceback(tmp_path, values):
    analysis = analysed(tmp_path, changed("nbv_planner/iteration", iteration_with(**values)))
    assert len(analysis.views) >= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be used (run_info)"),
        ("{", "cannot be used (run_info)"),
        ("[" * 100_000, "cannot be used (run_info)"),
        ("nodes: 5", "cannot be used (run_info)"),
        ("nodes: {depth_camera: [1, 2]}", "cannot be used (run_info)"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nnodes: {depth_camera: {object: *c}}", ""),
        ("x" * 2**21, "cannot be used (too_long)"),
        ("!!python/object/apply:os.system ['touch /tmp/owned']", "cannot be used (run_info)"),
    ],
    ids=lambda value: value[:24],
)
def test_parameters_that_cannot_be_read_are_a_gap(tmp_path, text, words):
    analysis = analysed(tmp_path, changed("run_info", lambda message: made.text_bytes(text)))
    assert any(words in line for line in analysis.remarks) or (not words and not analysis.remarks)
    assert len(analysis.views) == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("depth_camera: {object: 'square:width=8', pixel_size: 1.0e-9}", "too fine"),
        ("depth_camera: {object: 'file:/etc/passwd'}", ""),
        ("depth_camera: {object: 'flower:frequency=1000000000,amplitude=1'}", ""),
        ("depth_camera: {object: 'square:width=1e300'}", "cannot be built"),
        ("depth_camera: {object: 'square:width=8'}, nbv_planner: {num_views: 100000}", ""),
        ("depth_camera: {num_beams: -1}", ""),
        ("nbv_planner: {objective: XYZ}", ""),
    ],
    ids=lambda value: value[:40],
)
def test_hostile_parameters_cost_neither_memory_nor_time(tmp_path, values, words):
    """A bag names neither files to read here nor sizes to allocate."""
    text = f"versions: {{}}\nnodes: {{{values}}}"
    analysis = analysed(tmp_path, changed("run_info", lambda message: made.text_bytes(text)))
    assert words in "\n".join([*analysis.remarks, *analysis.gaps])
    assert "root:" not in "\n".join([*analysis.remarks, *analysis.gaps])


def test_stamps_out_of_order_are_put_in_order(tmp_path):
    backwards = [
        message._replace(time=RECORDED[0].time + number)
        for number, message in enumerate(RECORDED[::-1])
    ]
    analysis = analysed(tmp_path, backwards)
    assert len(analysis.views) >= 1
    assert all(seconds >= 0.0 for seconds in analysis.phases.values())


@pytest.mark.parametrize("time", [0, -1, 2**63 - 1])
def test_a_message_from_nowhen_does_not_stretch_the_bag(tmp_path, time):
    whole = analysed(tmp_path / "a", RECORDED).recording.inventory.seconds
    recorded = [*RECORDED, RECORDED[3]._replace(time=max(time, 0))]
    assert analysed(tmp_path / "b", recorded).recording.inventory.seconds == whole


@pytest.mark.parametrize("name", sorted({message.topic.name for message in RECORDED}))
def test_messages_of_another_type_than_announced_are_left_out(tmp_path, name):
    analysis = analysed(
        tmp_path, changed(name[1:], lambda message: b"\x00\x01\x00\x00" + b"\xff" * 60)
    )
    # What carries a stamp that belongs to no view is not even looked at, and then missed.
    said = "\n".join([*analysis.remarks, *analysis.gaps])
    assert f"{name}: messages that cannot be used" in said or "views are without their" in said


def claims(claim: int):
    """Each aligned length in turn claims `claim` elements."""

    def change(message) -> bytes:
        data = bytearray(message.data)
        place = 4 + 4 * (len(data) // 17 % 30)
        struct.pack_into("<I", data, place, claim)
        return bytes(data)

    return change


@pytest.mark.parametrize("name", sorted({message.topic.name for message in RECORDED}))
@pytest.mark.parametrize("claim", [2**30, 2**32 - 1])
def test_a_message_that_claims_a_gigabyte_costs_no_memory(tmp_path, name, claim):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    analysed(tmp_path, changed(name[1:], claims(claim)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 200 * 2**20


def test_definitions_nobody_knows_are_left_alone(tmp_path):
    """A topic of a foreign type; and one of ours whose definition the bag says is another one."""
    import sqlite3
    from contextlib import closing

    path = write(tmp_path / "bag", RECORDED, "sqlite3")
    with closing(sqlite3.connect(path / "bag.db3")) as database, database:
        database.execute(
            "INSERT INTO topics VALUES (99, '/radar', 'acme_msgs/msg/Radar', 'cdr', '', 'RIHS01_0')"
        )
        database.execute("INSERT INTO messages VALUES (NULL, 99, 5, x'00010000ff')")
        database.execute(
            "UPDATE topics SET type_description_hash = 'RIHS01_other' WHERE name = '/surface'"
        )
    analysis = analyse(Bag(path))
    assert [remark for remark in analysis.remarks if "/surface: the bag's definition" in remark]
    assert any(topic.name == "/radar" for topic in analysis.recording.inventory.counts)
    assert len(analysis.views) == 4
    assert "4 of 4 views are without their surface" in analysis.gaps


def test_more_decisions_than_any_episode_has_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("nbv_planner.episode.log._MOST_VIEWS", 3)
    monkeypatch.setattr("nbv_planner.episode.log._MOST_GRID_ANGLES", 200)
    analysis = analysed(tmp_path, RECORDED)
    assert len(analysis.recording.log.views) == 3
    assert sum(view.belief is not None for view in analysis.recording.log.views) == 2


class Content:
    """A file to be damaged; hypothesis does not print it."""

    def __init__(self, path, storage: str) -> None:
        self.suffix = "mcap" if storage == "mcap" else "db3"
        self.whole = (write(path, RECORDED, storage) / f"bag.{self.suffix}").read_bytes()


@pytest.fixture(scope="module", params=["mcap", "sqlite3"])
def content(request, tmp_path_factory):
    return Content(tmp_path_factory.mktemp("fuzz") / "bag", request.param)


@given(
    flips=st.lists(
        st.tuples(st.floats(0.0, 1.0, exclude_max=True), st.integers(0, 255)), max_size=40
    ),
    cut=st.tuples(st.floats(0.0, 1.0), st.integers(0, 300)),
)
def test_flipped_and_missing_bytes_end_in_no_traceback(content, tmp_path_factory, flips, cut):
    damaged = bytearray(content.whole)
    for place, value in flips:
        damaged[int(place * len(damaged))] = value
    begin = int(cut[0] * len(damaged))
    del damaged[begin : begin + cut[1]]
    file = tmp_path_factory.mktemp("f") / f"bag.{content.suffix}"
    file.write_bytes(damaged)
    assert _reason_or_tables(file).count("\n") == 0


def _reason_or_tables(file) -> str:
    """Analyse; the reason why that cannot be done, empty if it can."""
    try:
        analysis = analyse(Bag(file))
    except NbvPlannerError as error:
        return str(error)
    json.dumps([table.to_json() for table in analysis_tables(analysis)], allow_nan=False)
    return ""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak of the memory is read from /proc"
)
def test_a_foreign_topic_with_a_huge_message_is_left_out(tmp_path):
    huge = RECORDED[0]._replace(
        topic=Topic("/chatter", "std_msgs/msg/String"), data=b"\0" * (65 * 2**20)
    )
    script = textwrap.dedent("""
        import re, sys
        from nbv_planner.bags.analysis import analyse
        from nbv_planner.bags.reader import Bag
        analysis = analyse(Bag(sys.argv[1]))
        assert len(analysis.views) == 4, analysis.remarks
        status = open("/proc/self/status").read()
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status).group(1)) // 1024)
        """)
    path = write(tmp_path / "bag", [huge, *RECORDED])
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250  # MB, of which Python with numpy and scipy is the most
