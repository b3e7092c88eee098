"""Files packed as a whole: what comes out is what was packed, as far as it goes and as there is
room for.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from nbv_planner.bags.reader import open_storage
from nbv_planner.bags.storage import Remarks, unpacked, zstd_module

CONTENT = bytes(range(256)) * 20_000  # several blocks


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go; nothing may stay there."""
    where = tmp_path / "temporary"
    where.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(where))
    yield where
    assert list(where.iterdir()) == []


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "bag.db3.zstd"
    path.write_bytes(zstd_module().compress(CONTENT))
    return path


def test_the_whole_file_comes_out(folder, file):
    remarks = Remarks()
    with unpacked(file, remarks) as plain:
        assert plain.read_bytes() == CONTENT
        assert plain.is_relative_to(folder)
    assert remarks.lines() == []


def test_of_a_cut_file_the_begin_comes_out_and_it_is_said(folder, file):
    file.write_bytes(file.read_bytes()[:-20])
    remarks = Remarks()
    with unpacked(file, remarks) as plain:
        assert CONTENT.startswith(plain.read_bytes())
    (remark,) = remarks.lines()
    assert remark.startswith("bag.db3.zstd: cannot be decompressed further")


def test_a_file_that_unpacks_to_more_than_there_is_room_for_fills_at_most_half_of_it(
    folder, file, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5_000_000))
    remarks = Remarks()
    with unpacked(file, remarks) as plain:
        found = plain.read_bytes()
    assert CONTENT.startswith(found)
    assert 0 < len(found) <= 2_500_000
    assert remarks.lines() == [
        "bag.db3.zstd: larger than half of the free space decompressed: the rest is left out"
    ]


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff"])
def test_a_file_that_is_damaged_from_the_begin_is_left_out(file, content):
    file.write_bytes(content)
    remarks = Remarks()
    assert open_storage(file, remarks) is None
    assert remarks.lines() == [
        "bag.db3.zstd: is neither an MCAP nor an SQLite file, not even in its first bytes: left out"
    ]
