"""The append-only file that holds the facts of a node."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import json
import math
import os
import stat
import time
from collections.abc import Mapping
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from forked import forked
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from nbv_planner.errors import StateFileError
from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.session import journal
from nbv_planner.session.journal import Journal
from nbv_planner.world.pose import CameraPose

SETTINGS = {"Scene": {"radius_min": 2.0}}
FACTS = [{"stamp": 2**62 + 1}, {"pose": [0.1, -3.5], "goal": None}, {"words": '90° \n " ünd'}]


def journal_in(folder, **changes) -> Journal:
    return Journal(
        **{
            "path": folder / "run",
            "kind": "session",
            "settings": SETTINGS,
            "episode": "monday",
            **changes,
        }
    )


def written(folder, facts=FACTS) -> Journal:
    run = journal_in(folder)
    run.begin(facts[:1])
    for fact in facts[1:]:
        run.append([fact])
    return run


def refusal(folder, **changes) -> StateFileError:
    with pytest.raises(StateFileError) as caught:
        journal_in(folder, **changes).read()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return caught.value


def test_facts_are_read_in_order_and_the_next_ones_go_behind(tmp_path):
    written(tmp_path)
    other = journal_in(tmp_path)
    assert other.read() == FACTS
    other.append([{"next": True}])
    assert journal_in(tmp_path).read() == [*FACTS, {"next": True}]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_array_comes_back_where_its_type_is_the_alias_of_a_type_statement():
    """As `NDArray` is one from numpy 2.5 on, which needs Python 3.12."""
    extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar")
    # np.ndarray[Any, np.dtype[scalar]], of which numpy 1.21 has no brackets
    array = GenericAlias(np.ndarray, (Any, GenericAlias(np.dtype, (scalar,))))
    alias = extensions.TypeAliasType("alias", array, type_params=(scalar,))
    values = np.array([1.5, math.nan])
    for kind in (alias, alias[np.float64], alias[np.float64] | None):
        assert np.array_equal(from_plain(kind, to_plain(values)), values, equal_nan=True)


def test_each_line_is_a_json_text(tmp_path):
    written(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "run").read_text().splitlines()]
    assert [line["fact"] for line in lines[1:]] == FACTS
    assert lines[0]["fact"]["version"] == 3
    assert lines[0]["fact"]["written_by"]["numpy"] == np.__version__


def test_cut_at_any_byte_it_holds_the_facts_whose_lines_are_whole(tmp_path):
    written(tmp_path)
    content = (tmp_path / "run").read_bytes()
    head = content.index(b"\n") + 1
    for size in range(len(content)):
        (tmp_path / "run").write_bytes(content[:size])
        if size < head:
            assert refusal(tmp_path).reason == "damaged"
            continue
        run, whole = journal_in(tmp_path), content[:size].count(b"\n") - 1
        assert run.read() == FACTS[:whole]
        assert run.torn == size - content[:size].rindex(b"\n") - 1
        run.append(FACTS[whole:])
        assert (tmp_path / "run").read_bytes() == content


def test_of_a_torn_line_nothing_is_left_behind_a_shorter_one(tmp_path):
    written(tmp_path, [*FACTS, {"words": "x" * 200}])
    content = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(content[:-5])
    run, other = journal_in(tmp_path), journal_in(tmp_path)
    assert run.read() == FACTS
    run.append([{}])
    assert other.read() == [*FACTS, {}]
    assert run.torn > other.torn == 0


def test_no_changed_byte_goes_unnoticed(tmp_path):
    written(tmp_path)
    content = (tmp_path / "run").read_bytes()
    for place in range(len(content) - 1):  # without the last end of line, a line is torn
        for flip in (0x01, 0x20, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= flip
            (tmp_path / "run").write_bytes(damaged)
            assert refusal(tmp_path).reason == "damaged"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a, b, c, d: a + c + d,
        lambda a, b, c, d: a + c + b + d,
        lambda a, b, c, d: a + b + b + c + d,
        lambda a, b, c, d: b + c + d,
    ],
)
def test_lines_that_are_missing_moved_or_doubled_are_noticed(tmp_path, spoil):
    written(tmp_path)
    lines = (tmp_path / "run").read_bytes().splitlines(keepends=True)
    (tmp_path / "run").write_bytes(spoil(*lines))
    assert refusal(tmp_path).reason == "damaged"


def sealed(*texts: bytes) -> bytes:
    """A file with sums that fit, whatever its lines hold."""
    return journal._chained(b"", texts)[1]


GOOD = {
    "format": journal.FORMAT,
    "version": 3,
    "kind": "session",
    "episode": "monday",
    "settings": SETTINGS,
}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([b"{"], "content"),
        ([b"[]"], "content"),
        ([b"{}"], "content"),
        ([b"null"], "content"),
        ([b""], "content"),
        ([b"[" * 100_000], "content"),
        ([b'{"format":' + b"9" * 5000 + b"}"], "content"),
        ([b"\xff\xfe"], "content"),
        ([json.dumps(GOOD).encode(), b"nonsense"], "content"),
        ([json.dumps({**GOOD, "settings": {"Scene": [1]}}).encode()], "content"),
        ([json.dumps({**GOOD, "kind": 5}).encode()], "content"),
        ([json.dumps({**GOOD, "version": 2}).encode()], "version"),  # as 2.0.0 wrote it
        ([json.dumps({**GOOD, "version": "3"}).encode()], "version"),
    ],
)
def test_content_that_is_no_journal_is_refused_even_with_the_right_sums(tmp_path, lines, reason):
    (tmp_path / "run").write_bytes(sealed(*lines))
    assert refusal(tmp_path).reason == reason


@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 5000, b"text\n", b"\n" * 9])
def test_what_is_no_journal_at_all_is_damaged(tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    assert refusal(tmp_path).reason == "damaged"


def test_a_file_of_version_1_is_refused_with_the_way_out(tmp_path):
    with (tmp_path / "run").open("wb") as file:
        np.savez(file, header=np.array('{"version": 1}'))
    error = refusal(tmp_path)
    assert error.reason == "version"
    assert (
        "has version 1, this package reads version 3: end the episode with the release that"
        " began it" in str(error)
    )


@pytest.mark.parametrize(
    ("wanted", "reason", "words"),
    [
        ({"kind": "camera"}, "kind", "session, expected a camera"),
        ({"episode": "tuesday"}, "episode", "'monday', this is 'tuesday'"),
        (
            {"settings": {"Scene": {"radius_min": 3.0}}},
            "settings",
            "radius_min = 2.0, this node has 3.0",
        ),
        ({"settings": {"Kernel": {"nu": 1}}}, "settings", "nu = None, this node has 1"),
        ({"settings": {"Scene": {}}}, "settings", "radius_min = 2.0, this node has None"),
    ],
)
def test_a_file_that_is_not_the_one_wanted_is_refused(tmp_path, wanted, reason, words):
    written(tmp_path)
    error = refusal(tmp_path, **wanted)
    assert (error.reason, words in str(error), str(tmp_path / "run") in str(error)) == (
        reason,
        True,
        True,
    )


def test_on_request_the_file_of_any_episode_is_read(tmp_path):
    written(tmp_path)
    assert journal_in(tmp_path, episode="").read() == FACTS
    assert journal_in(tmp_path, episode="tuesday").read(any_episode=True) == FACTS


def test_a_missing_file_a_folder_and_a_place_that_does_not_exist_are_named(tmp_path):
    assert refusal(tmp_path, path=tmp_path / "none").reason == "missing"
    assert refusal(tmp_path, path=tmp_path).reason == "unreadable"
    with pytest.raises(StateFileError, match="cannot write") as caught:
        journal_in(tmp_path, path=tmp_path / "no folder" / "run").append(FACTS)
    assert caught.value.reason == "not_written"


def test_all_is_flushed_before_it_is_said_to_be_written_and_a_move_by_its_folder(
    tmp_path, monkeypatch
):
    flushed, flush = [], os.fsync

    def watched(descriptor):
        flush(descriptor)
        size = os.fstat(descriptor).st_size
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else size
        flushed.append((kind, (tmp_path / "run").exists()))

    monkeypatch.setattr(os, "fsync", watched)
    run = journal_in(tmp_path)
    run.begin(FACTS)
    begun = (tmp_path / "run").stat().st_size
    run.append(FACTS)
    whole = (tmp_path / "run").stat().st_size
    assert flushed == [(begun, False), ("folder", True), (whole, True)]


def test_a_disk_that_fills_up_loses_nothing_that_is_written_later(tmp_path, monkeypatch):
    run, known = written(tmp_path), (tmp_path / "run").read_bytes()

    def dies(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", dies)
    for write in (run.begin, run.append):
        with pytest.raises(StateFileError, match="No space left") as caught:
            write([{"late": 1}])
        assert caught.value.reason == "not_written"
        assert (tmp_path / "run").read_bytes().startswith(known)
    monkeypatch.undo()
    run.append([{"late": 2}])
    assert journal_in(tmp_path).read() == [*FACTS, {"late": 1}, {"late": 2}]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: p.unlink(),
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(p.read_bytes() + b"x"),
    ],
)
def test_a_file_that_somebody_else_has_changed_is_not_added_to_but_written_anew(tmp_path, spoil):
    run = written(tmp_path)
    spoil(tmp_path / "run")
    with pytest.raises(StateFileError) as caught:
        run.append([{}])
    assert caught.value.reason == "not_written"
    run.begin([*FACTS, {}])
    assert journal_in(tmp_path).read() == [*FACTS, {}]


def test_a_fifo_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "run")
    assert refusal(tmp_path).reason == "unreadable"
    with pytest.raises(StateFileError, match="FIFO"):
        journal_in(tmp_path).begin()


def test_a_journal_too_large_to_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_LARGEST", 600)
    run = journal_in(tmp_path)
    with pytest.raises(StateFileError, match="the journal has"):
        run.begin(["x" * 600])
    run.begin()
    with pytest.raises(StateFileError, match="the journal has"):
        run.append(["x" * 600])
    assert journal_in(tmp_path).read() == []


def write_on(say, path):
    run = Journal(path, "session")
    run.begin()
    for number in itertools.count():
        run.append([{"number": number, "fill": "x" * 20_000}])
        say(number)


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.02])
def test_a_process_killed_in_the_middle_of_an_append_loses_nothing_it_had_told(tmp_path, delay):
    with forked(write_on, tmp_path / "run") as (writer, said):
        told = [said.readline() for _ in range(20)]
        time.sleep(delay)
        writer.kill()
        told += said.read().splitlines()
    facts = Journal(tmp_path / "run", "session").read()
    assert [fact["number"] for fact in facts] == list(range(len(facts)))
    assert len(told) <= len(facts) <= len(told) + 1


class Colour(str, enum.Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True, eq=False)
class Everything:
    number: float
    count: int
    flag: bool
    colour: Colour
    pose: CameraPose | None
    pairs: tuple[tuple[CameraPose, float], ...]
    figures: Mapping[str, float]
    array: NDArray[np.float64]


def thing(**changes) -> Everything:
    return Everything(
        **{
            "number": 0.1,
            "count": 2**70,
            "flag": True,
            "colour": Colour.RED,
            "pose": CameraPose.from_polar(7.0, 9.9),
            "pairs": ((CameraPose(1.0, 2.0, 3.0, height=0.5), math.inf),),
            "figures": {"a": math.nan},
            "array": np.zeros((0, 2)),
            **changes,
        }
    )


@given(
    st.floats(allow_nan=False),
    arrays_of.arrays(
        st.sampled_from([np.float64, np.uint32, np.bool_]), arrays_of.array_shapes(min_dims=0)
    ),
)
def test_every_bit_of_a_value_survives(number, array):
    known = thing(number=number, array=array)
    found = from_plain(Everything, json.loads(json.dumps(to_plain(known), allow_nan=False)))
    assert (found.number, found.count, found.flag, found.colour) == (
        number,
        2**70,
        True,
        Colour.RED,
    )
    assert (found.pose, found.pairs, found.pose.view_angle) == (known.pose, known.pairs, 7.0)
    assert math.isnan(found.figures["a"])
    assert (found.array.tobytes(), found.array.dtype, found.array.shape) == (
        array.tobytes(),
        array.dtype,
        array.shape,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"number": "1.0"},
        {"count": 1.5},
        {"flag": 1},
        {"colour": "blue"},
        {"pose": [1.0]},
        {"pose": {"x": 1.0}},
        {"pairs": 5},
        {"pairs": [[1.0]]},
        {"figures": [1.0]},
        {"figures": {"a": []}},
        {"array": None},
        {"array": {"dtype": "object", "shape": [1], "base64": "AAAAAAAAAAA="}},
        {"array": {"dtype": "float64", "shape": [2], "base64": "AAAAAAAAAAA="}},
        {"array": {"dtype": "float64", "shape": [10**12], "base64": ""}},
        {"array": {"dtype": "float64", "shape": [1], "base64": "!"}},
        {"more": 1},
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(changes):
    with pytest.raises(StateFileError, match=f"fact(\\.{next(iter(changes))})?") as caught:
        from_plain(Everything, {**to_plain(thing()), **changes})
    assert caught.value.reason == "content"


def test_a_file_of_version_1_that_had_another_name_is_not_passed_over_in_silence(tmp_path):
    (tmp_path / "session.npz").write_bytes(b"PK")
    with pytest.raises(
        StateFileError, match=r"session.npz: it has version 1, .* move the file away"
    ) as caught:
        Journal(tmp_path / "session.jsonl", "planning session", {}, "").read()
    assert caught.value.reason == "version"
