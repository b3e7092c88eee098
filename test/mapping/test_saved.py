"""The file that holds the state of a node."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from nbv_planner.episode.parameters import fixed_settings
from nbv_planner.errors import StateFileError
from nbv_planner.mapping import saved
from nbv_planner.mapping.saved import SavedState, decode, encode, read_state, write_state

SMALL = SavedState(
    "surface map", {"stamp": 2**62 + 1, "pose": [0.1, -3.5], "goal": None}, {"hits": np.arange(3, dtype=np.uint32)},
    {"Scene": {"radius_min": 2.0}}, "monday",
)


def same(one: SavedState, other: SavedState) -> bool:
    plain = (one.kind, one.values, one.settings, one.episode) == (
        other.kind, other.values, other.settings, other.episode
    )
    return plain and set(one.arrays) == set(other.arrays) and all(
        array.dtype == other.arrays[name].dtype and np.array_equal(array, other.arrays[name])
        for name, array in one.arrays.items()
    )


def test_what_is_written_is_read(tmp_path):
    size = write_state(tmp_path / "map", SMALL)
    assert same(read_state(tmp_path / "map", "surface map"), SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["map"]
    assert (tmp_path / "map").stat().st_size == size


@given(
    st.floats(allow_nan=False),
    arrays_of.arrays(st.sampled_from([np.float64, np.uint32, np.bool_]), arrays_of.array_shapes(min_dims=0)),
)
def test_every_bit_of_a_number_survives(value, array):
    found = decode(encode(SavedState("any", {"value": value}, {"array": array})))
    assert found.values["value"] == value
    assert found.arrays["array"].tobytes() == array.tobytes()
    assert found.arrays["array"].dtype == array.dtype


def test_it_is_an_archive_that_numpy_opens_without_pickle(tmp_path):
    write_state(tmp_path / "map.npz", SMALL)
    with np.load(tmp_path / "map.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["hits"], [0, 1, 2])
        assert '"kind": "surface map"' in str(archive["header"])


def test_every_changed_byte_is_noticed():
    content = encode(SMALL)
    for place in range(len(content)):
        for flip in (0x01, 0x20, 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= flip
            with pytest.raises(StateFileError) as caught:
                decode(bytes(damaged))
            assert caught.value.reason == "damaged"


def test_every_cut_and_every_appended_byte_is_noticed():
    content = encode(SMALL)
    for damaged in (*(content[:size] for size in range(len(content))), content + b"\0", b"\0" + content):
        with pytest.raises(StateFileError) as caught:
            decode(damaged)
        assert caught.value.reason == "damaged"


def signed(arrays: dict) -> bytes:
    """A file with a checksum that fits, whatever is in it."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    body = buffer.getvalue()[:-2] + saved._TRAILER.to_bytes(2, "little")
    return body + saved._MARK + saved.hashlib.sha256(body).hexdigest().encode()


@pytest.mark.parametrize(
    "header", ["{", "[]", "{}", '{"format": "other", "version": 1}', '{"format": "nbv_planner state", "version": 1}']
)
def test_content_that_is_no_state_is_refused_even_with_the_right_checksum(header):
    with pytest.raises(StateFileError) as caught:
        decode(signed({"header": np.array(header)}))
    assert caught.value.reason == "content"
    assert "\n" not in str(caught.value)


def test_objects_are_refused_unread():
    with pytest.raises(StateFileError) as caught:
        decode(signed({"header": np.array("{}"), "bad": np.array([object], dtype=object)}))
    assert caught.value.reason == "content"


def sealed(archive: bytes) -> bytes:
    """The archive, which has no comment, with a checksum that fits."""
    body = archive[:-2] + saved._TRAILER.to_bytes(2, "little")
    return body + saved._MARK + saved.hashlib.sha256(body).hexdigest().encode()


def archived(array: bytes, method: int = zipfile.ZIP_STORED, **directory: bytes) -> bytes:
    """A state with these bytes as its array; `directory` gives fields of its entry in the archive, by place."""
    with np.load(io.BytesIO(encode(SMALL))) as whole:
        header = npy(whole["header"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("header.npy", header)
        archive.writestr("array.npy", array)
    content = bytearray(buffer.getvalue())
    entry = content.rindex(b"PK\1\2")
    for place, field in directory.items():
        content[entry + int(place[1:]) : entry + int(place[1:]) + len(field)] = field
    return sealed(bytes(content))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def array_header(text: str) -> bytes:
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()


def torn() -> bytes:
    """Compressed bytes that are no stream of deflate."""
    content = bytearray(archived(npy(np.zeros(9)), zipfile.ZIP_DEFLATED))
    begin = content.index(b"array.npy") + len(b"array.npy")
    content[begin : begin + 8] = b"\xff" * 8
    return sealed(bytes(content[: -saved._TRAILER - 2]) + b"\0\0")


ONE = npy(np.arange(3.0))


@pytest.mark.parametrize(
    "content",
    [
        archived(npy(np.zeros(2_000_000)), zipfile.ZIP_DEFLATED), torn(), archived(ONE, zipfile.ZIP_LZMA),
        archived(ONE, f24=b"\xff\xff\xff\x7f"), archived(ONE, f8=b"\1"), archived(ONE, f10=b"\x63"),
        archived(ONE, f6=b"\x63"), archived(array_header("{'descr': '<f8', 'fortran_order': False")),
        archived(array_header("(" * 5000)), archived(array_header("{'descr': '\0'")), archived(b"\x93NUMPY"),
        archived(array_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n")),
        archived(array_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 9), }\n")),
        archived(b"no array"), sealed(b"PK\5\6" + bytes(20)), sealed(b"PK" + bytes(100)),
        signed({"header": np.array("[" * 100_000)}), signed({"header": np.array('{"format":' + "9" * 5000 + "}")}),
    ],
    ids=["bomb", "torn", "lzma", "size", "encrypted", "method", "zip version", "cut", "deep", "nul", "short", "huge",
         "overflow", "no array", "empty", "no archive", "deep JSON", "long JSON"],
)  # fmt: skip
def test_archives_that_no_state_is_written_as_are_refused_with_the_right_checksum(content):
    with pytest.raises(StateFileError) as caught:
        decode(content)
    assert caught.value.reason == "content"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_bomb_is_refused_before_it_is_decompressed():
    content = archived(npy(np.zeros(2_000_000)), zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    with pytest.raises(StateFileError, match="decompressed it has 1600"):
        decode(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("field", ["kind", "values", "settings", "episode"])
def test_fields_of_other_types_are_refused(field):
    broken = SavedState(**{**vars(SMALL), field: 5})
    with pytest.raises(StateFileError, match=f"{field}: is a int, must be a"):
        decode(encode(broken))
    with pytest.raises(StateFileError, match="settings: Scene is a list"):
        decode(encode(SavedState("k", {}, {}, {"Scene": []})))


def test_a_state_too_large_to_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "_LARGEST", 1000)
    with pytest.raises(StateFileError, match="the state has") as caught:
        write_state(tmp_path / "map", SMALL)
    assert caught.value.reason == "not_written"
    assert list(tmp_path.iterdir()) == []


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(saved, "VERSION", 7)
    newer = encode(SMALL)
    monkeypatch.undo()
    with pytest.raises(StateFileError, match="version 7, this package reads version 1") as caught:
        decode(newer)
    assert caught.value.reason == "version"


@pytest.mark.parametrize(
    ("wanted", "reason", "words"),
    [
        ({"kind": "camera"}, "kind", "surface map, expected a camera"),
        ({"episode": "tuesday"}, "episode", "'monday', this is 'tuesday'"),
        ({"settings": {"Scene": {"radius_min": 3.0}}}, "settings", "radius_min = 2.0, this node has 3.0"),
        ({"settings": {"Kernel": {"nu": 1}}}, "settings", "nu = None, this node has 1"),
        ({"settings": {"Scene": {}}}, "settings", "radius_min = 2.0, this node has None"),
    ],
)
def test_a_file_that_is_not_the_one_wanted_is_refused(tmp_path, wanted, reason, words):
    write_state(tmp_path / "map", SMALL)
    with pytest.raises(StateFileError) as caught:
        read_state(tmp_path / "map", **{"kind": "surface map", **wanted})
    assert caught.value.reason == reason
    assert words in str(caught.value)
    assert str(tmp_path / "map") in str(caught.value)


def test_the_same_episode_and_settings_are_taken(tmp_path):
    write_state(tmp_path / "map", SMALL)
    assert same(read_state(tmp_path / "map", "surface map", {"Scene": {"radius_min": 2.0}}, "monday"), SMALL)


def test_a_missing_file_a_folder_and_a_place_that_does_not_exist_are_said(tmp_path):
    for path, reason in ((tmp_path / "none", "missing"), (tmp_path, "unreadable")):
        with pytest.raises(StateFileError) as caught:
            read_state(path, "surface map")
        assert caught.value.reason == reason
    with pytest.raises(StateFileError, match="cannot write") as caught:
        write_state(tmp_path / "no folder" / "map", SMALL)
    assert caught.value.reason == "not_written"


def test_a_death_in_the_middle_of_writing_leaves_the_old_file(tmp_path, monkeypatch):
    write_state(tmp_path / "map", SMALL)

    def dies(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(StateFileError, match="No space left"):
        write_state(tmp_path / "map", SavedState("surface map", {"stamp": 0}))
    monkeypatch.undo()
    assert same(read_state(tmp_path / "map", "surface map"), SMALL)
    write_state(tmp_path / "map", SavedState("surface map", {"stamp": 5}))
    assert read_state(tmp_path / "map", "surface map").values == {"stamp": 5}


def test_settings_that_may_change_at_run_time_are_not_asked_for():
    from nbv_planner.planning.termination import TerminationSettings
    from nbv_planner.planning.view_space import ViewSpaceSettings

    found = fixed_settings(TerminationSettings(), ViewSpaceSettings(num_views=7))
    assert "max_views" not in found["TerminationSettings"]
    assert found["ViewSpaceSettings"] == {
        "view_space": "circle", "annulus_min": 8.5, "annulus_max": 16.0, "annulus_radii": 6, "annulus_angles": 48,
        "annulus_headings": 7, "view_file": "", "num_views": 7, "allowed_arcs": [0.0, 2 * np.pi],
        "blocked_arcs": [0.0, 0.0],
    }
