"""One writer per folder: a living one is named, a dead one holds nobody up."""

from __future__ import annotations

import multiprocessing
import os
import platform

import pytest
from forked import forked

from nbv_bench.experiments.folder import LOCK_FILE, folder_lock
from nbv_planner.errors import ResultsError


def hold(say, folder, free):
    with folder_lock(folder):
        say("held")
        free.wait()


@pytest.fixture
def free():
    """What lets the holder go."""
    return multiprocessing.get_context("fork").Event()


@pytest.fixture
def holder(tmp_path, free):
    """Return another process that holds the folder."""
    with forked(hold, tmp_path, free) as (process, said):
        assert said.readline() == "held\n"
        yield process


def test_second_process_is_refused_and_told_who_holds_the_folder(tmp_path, holder):
    with pytest.raises(
        ResultsError, match=f"being written by process {holder.pid} on {platform.node()}"
    ):
        folder_lock(tmp_path).__enter__()
    assert (tmp_path / LOCK_FILE).exists()


def test_folder_is_free_again_once_its_holder_ends(tmp_path, holder, free):
    free.set()
    holder.join()
    assert list(tmp_path.iterdir()) == []
    with folder_lock(tmp_path):
        assert str(os.getpid()) in (tmp_path / LOCK_FILE).read_text()


def test_lock_of_a_killed_process_is_taken_over(tmp_path, holder):
    holder.kill()
    holder.join()
    assert str(holder.pid) in (tmp_path / LOCK_FILE).read_text()
    with folder_lock(tmp_path):
        assert str(holder.pid) not in (tmp_path / LOCK_FILE).read_text()
    assert list(tmp_path.iterdir()) == []


def test_holder_that_cannot_be_read_is_just_another_process(tmp_path, holder):
    (tmp_path / LOCK_FILE).write_text("half a li")
    with pytest.raises(ResultsError, match="by another process"):
        folder_lock(tmp_path).__enter__()


def test_forked_child_does_not_keep_the_lock(tmp_path, free):
    """A worker that is left over must not hold up the next run."""
    parent, child = os.pipe()
    with folder_lock(tmp_path):
        fork = multiprocessing.get_context("fork").Process(target=os.read, args=(parent, 1))
        fork.start()
    try:
        test_other_process_can_take_it(tmp_path, free)
    finally:
        os.write(child, b"x")
        fork.join()


def test_other_process_can_take_it(tmp_path, free):
    free.set()
    with forked(hold, tmp_path, free) as (process, said):
        assert said.read() == "held\n"
        process.join()
        assert process.exitcode == 0
