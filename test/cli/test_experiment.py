"""`nbv-bench experiment`: exit codes, what is said, and that nothing but the plug stops a sweep."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import command
import pytest
from forked import forked
from programs import main

from nbv_bench.cli import experiment
from nbv_bench.experiments.folder import folder_lock
from nbv_bench.experiments.results import read_sweep

pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")

TINY = """\
objects: [square:width=4, "ellipse:a=6,b=4"]
planners: {greedy_oracle: {objective: OSM}, U: {objective: U}}
protocols: [sensor]
settings:
  {sensor: {num_beams: 31}, mapper: {grid_size: 60}, views: {num_views: 12},
   termination: {max_views: 2}}
"""
LONG = TINY.replace("[sensor]", "[sensor]\nseeds: 12").replace(
    "max_views: 2", "max_views: 6, stall_views: 0, certify: false"
)
"""Forty-eight cases: long enough to be interrupted, and done within seconds."""


@pytest.fixture
def sweep(here):
    """Return the folder to work in, with sweeps in it."""
    (here / "tiny.yaml").write_text(TINY)
    (here / "long.yaml").write_text(LONG)
    return here


def episodes(folder: Path) -> list[dict]:
    """Records of the episodes, times left out."""
    found = read_sweep(folder).episodes
    return json.loads(
        json.dumps(found), object_hook=lambda o: {k: v for k, v in o.items() if k != "milliseconds"}
    )


def test_results_and_what_is_said(sweep, capsys):
    assert main(["experiment", "tiny.yaml", "--out", "a/b", "--workers", "1"]) == 0
    said = capsys.readouterr()
    first, *notes, title = said.out.partition("\n\n")[0].splitlines()
    assert first == "4 of 4 cases finished: a/b/"
    (note,) = notes
    assert note.startswith(
        "note: greedy_oracle knows the object, but its target is completeness: others may be better"
    )
    assert title == "## Summary"
    assert "| sensor | U | 2 | N/A | N/A | 2 |" in said.out
    assert said.out.endswith("all tables, pictures and a page: nbv-bench report a/b\n")
    early, target, first = said.err.splitlines()[:3]
    assert early.startswith(
        "note: episodes of greedy_oracle, U may end (COVERED, BAND_NARROW, STALLED) before"
    )
    assert target == note
    assert first == "0 of 4 cases"
    assert said.err.splitlines()[-1].startswith("4 of 4 cases, ")
    assert len(episodes(sweep / "a" / "b")) == 4
    assert {path.name for path in (sweep / "a" / "b").iterdir()} == {
        "episodes",
        "manifest.json",
        "sweep.yaml",
    }


def test_resume_of_a_finished_sweep_has_nothing_to_do(sweep, capsys):
    options = ["experiment", "tiny.yaml", "--out", "a", "--workers", "1", "--resume"]
    assert main(options) == 0
    before = {path: path.stat().st_mtime_ns for path in (sweep / "a").rglob("*.json")}
    assert main(options) == 0
    assert "0 of 0 cases (4 more were finished before)" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (sweep / "a").rglob("*.json")} == before


def test_failed_cases_are_listed_and_give_exit_code_1(sweep, capsys, monkeypatch):
    contour = sweep / "mine.csv"
    contour.write_text("x,y\n4,0\n0,4\n-4,0\n0,-4\n")
    (sweep / "tiny.yaml").write_text(TINY.replace("square:width=4", "file:mine.csv"))
    load_sweep = experiment.load_sweep

    def load_and_lose(name):
        loaded = load_sweep(name)
        contour.unlink()
        return loaded

    monkeypatch.setattr(experiment, "load_sweep", load_and_lose)
    assert main(["experiment", "tiny.yaml", "--out", "a", "--workers", "1"]) == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[2] == "2 of 4 cases finished: a/"
    for line in lines[:2]:
        assert line.startswith("failed: ")
        assert (
            "on file:mine.csv, protocol sensor, seed 0: ContourError: cannot read contour file"
            " mine.csv" in line
        )
        file = sweep / line.rpartition("traceback: ")[2].rstrip(")")
        assert "contour_files.py" in json.loads(file.read_text())["traceback"]
    assert said.err.splitlines()[-1].startswith("4 of 4 cases, 2 failed, ")


def wait_for(folder: Path, number: int) -> None:
    """Wait until so many episodes are there; the manifest has to be there in any case."""
    deadline = time.monotonic() + 180
    while (
        not (folder / "manifest.json").exists()
        or len(list(folder.glob("episodes/*.json"))) < number
    ):
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_killed_again_and_again_it_ends_with_the_same_episodes(sweep):
    """SIGKILL to the runner alone: its workers have to go by themselves and hold nothing up."""
    options = ["experiment", "long.yaml", "--resume", "--workers"]
    assert main([*options, "1", "--out", "undisturbed"]) == 0
    for number in (0, 9):
        process = command.start([*options, "2", "--out", "out"], sweep)
        wait_for(sweep / "out", number)
        workers = loky_workers(process.pid)
        assert len(workers) == 2 or number == 0 or not Path("/proc").exists()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        wait_for_the_end_of(workers)
        assert len(list((sweep / "out" / "episodes").glob("*.json"))) < 48, (
            "it was over before it could be killed"
        )
    assert main([*options, "1", "--out", "out"]) == 0
    assert episodes(sweep / "out") == episodes(sweep / "undisturbed")
    assert {path.name for path in (sweep / "out").iterdir()} == {
        "episodes",
        "manifest.json",
        "sweep.yaml",
    }
    assert not list((sweep / "out").rglob("*.tmp"))


def loky_workers(parent: int) -> list[Path]:
    """Where Linux describes the worker processes; none elsewhere."""
    return [
        path.parent
        for path in Path("/proc").glob("[0-9]*/stat")
        if is_child_of(parent, path) and b"LokyProcess" in (path.parent / "cmdline").read_bytes()
    ]


def is_child_of(parent: int, stat: Path) -> bool:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1]) == parent
    except OSError:  # it has ended meanwhile
        return False


def wait_for_the_end_of(processes: list[Path]) -> None:
    deadline = time.monotonic() + 180
    while any(path.exists() for path in processes):
        assert time.monotonic() < deadline, f"{processes} live on"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("workers", "kinds"),
    [("1", [signal.SIGINT, signal.SIGINT]), ("2", [signal.SIGINT]), ("2", [signal.SIGTERM])],
)
def test_a_signal_keeps_what_is_finished_and_says_how_to_continue(sweep, workers, kinds):
    process = command.start(
        ["experiment", "long.yaml", "--out", "out", "--workers", workers], sweep
    )
    wait_for(sweep / "out", 3)
    for kind in kinds:
        process.send_signal(kind)
        time.sleep(0.01)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == 128 + kinds[0], said
    assert "Traceback" not in said
    kept = len(episodes(sweep / "out"))
    assert 3 <= kept < 48
    assert (
        f"{kept} of 48 cases are finished and kept; continue with the same command and --resume"
        " (out)" in said
    )
    assert not [path for path in sweep.rglob(".*") if path.is_file()]


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the worker as Linux describes it")
def test_ctrl_c_reaches_workers_that_still_load_and_shows_no_traceback_of_theirs(sweep):
    process = command.start(
        ["experiment", "long.yaml", "--out", "out", "--workers", "2"], sweep, session=True
    )
    deadline = time.monotonic() + 180
    while len(workers := loky_workers(process.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=180)
    assert (process.returncode, "Traceback" in said) == (130, False), said
    assert (
        "of 48 cases are finished and kept; continue with the same command and --resume (out)"
        in said
    )
    wait_for_the_end_of(workers)


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the worker as Linux describes it")
def test_worker_that_dies_ends_the_run_but_loses_nothing(sweep):
    process = command.start(["experiment", "long.yaml", "--out", "out", "--workers", "2"], sweep)
    wait_for(sweep / "out", 3)
    os.kill(int(loky_workers(process.pid)[0].name), signal.SIGKILL)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == 1, said
    assert "error: back end loky: TerminatedWorkerError: " in said
    assert "Traceback" not in said
    assert (
        f"{len(episodes(sweep / 'out'))} of 48 cases are finished and kept; continue with" in said
    )


def test_two_runners_do_not_write_into_one_folder(sweep, capsys):
    options = ["experiment", "tiny.yaml", "--out", "out", "--workers", "1", "--resume"]
    assert main(options) == 0

    def hold(say):
        with folder_lock(sweep / "out"):
            say("held")
            signal.pause()

    with forked(hold) as (process, said):
        assert said.readline() == "held\n"
        assert main(options) == 2
        assert f"out is being written by process {process.pid} on " in capsys.readouterr().err
    assert main(options) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nowhere.yaml"], ["nowhere.yaml", "No such file"]),
        (["thesi"], ["'thesi'", "theory, thesis, thesis_all"]),
        (["bad.yaml"], ["bad.yaml, line 2: planners.CSV: unknown objective 'CSV'; known: "]),
        (["tiny.yaml", "--workers", "0"], ["--workers", "0", ">= 1"]),
        (["tiny.yaml", "--backend", "dask"], ["--backend dask", "--scheduler"]),
        (["tiny.yaml", "--scheduler", "tcp://x:1"], ["--backend dask", "--scheduler"]),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(sweep, capsys, options, words):
    (sweep / "bad.yaml").write_text("objects: thesis\nplanners: {CSV: {objective: CSV}}\n")
    assert main(["experiment", *options, "--out", "out"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("nbv-bench experiment: error: ")
    assert [word for word in words if word not in said.err] == [], said.err
    assert not (sweep / "out").exists()


def test_folder_that_is_in_use_is_kept(sweep, capsys):
    (sweep / "out").mkdir()
    (sweep / "out" / "mine.txt").write_text("precious")
    assert main(["experiment", "tiny.yaml", "--out", "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["experiment", "tiny.yaml", "--out", "out", "--resume"]) == 2
    assert "manifest.json" in capsys.readouterr().err
    assert [path.name for path in (sweep / "out").iterdir()] == ["mine.txt"]
