"""Results folders: all or nothing, never over something else."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal

import numpy as np
import pytest

from nbv_planner.episode.records import EpisodeRecord, ViewRecord, write_beliefs, write_record
from nbv_planner.errors import ResultsError
from nbv_planner.files.results_folder import RECORD_FILE, ResultsFolder, fresh_folder, write_whole
from nbv_planner.planning.endings import Termination, TerminationReason


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fill(results: ResultsFolder, text: str = "{}") -> None:
    (results.folder / RECORD_FILE).write_text(text)


def interrupted(results: ResultsFolder) -> None:
    with results:
        fill(results)
        raise ZeroDivisionError


def older(path, text: str = "old") -> None:
    path.mkdir()
    (path / RECORD_FILE).write_text(text)
    (path / "extra").touch()


def test_nothing_is_seen_at_the_final_place_before_commit(tmp_path):
    with ResultsFolder(tmp_path / "out") as results:
        fill(results)
        assert not (tmp_path / "out").exists()
        # the same disk, so that it can be moved in one step
        assert results.folder.parent == tmp_path
        results.commit()
        assert (tmp_path / "out" / RECORD_FILE).read_text() == "{}"
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {RECORD_FILE}
    assert (tmp_path / "out").stat().st_mode & 0o755 == 0o755


def test_what_is_not_committed_is_removed(tmp_path):
    with ResultsFolder(tmp_path / "out") as results:
        fill(results)
    assert names(tmp_path) == set()


def test_an_error_inside_leaves_nothing_and_passes_on(tmp_path):
    with pytest.raises(ZeroDivisionError):
        interrupted(ResultsFolder(tmp_path / "out"))
    assert names(tmp_path) == set()


def test_an_error_with_force_leaves_the_older_results(tmp_path):
    older(tmp_path / "out")
    with pytest.raises(ZeroDivisionError):
        interrupted(ResultsFolder(tmp_path / "out", force=True))
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {RECORD_FILE, "extra"}


def test_force_replaces_older_results_as_a_whole(tmp_path):
    older(tmp_path / "out")
    with ResultsFolder(tmp_path / "out", force=True) as results:
        fill(results, "new")
        assert (tmp_path / "out" / RECORD_FILE).read_text() == "old"
        results.commit()
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {RECORD_FILE}
    assert (tmp_path / "out" / RECORD_FILE).read_text() == "new"


def test_a_signal_while_a_folder_is_removed_or_put_in_its_place_waits(tmp_path, monkeypatch):
    older(tmp_path / "out")
    rmtree = shutil.rmtree

    def disturbed(*arguments, **options) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        rmtree(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", disturbed)
    with pytest.raises(KeyboardInterrupt), ResultsFolder(tmp_path / "new") as results:
        fill(results)
    assert names(tmp_path) == {"out"}
    with ResultsFolder(tmp_path / "out", force=True) as results:
        fill(results, "new")
        with pytest.raises(KeyboardInterrupt):
            results.commit()
        monkeypatch.undo()
    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / RECORD_FILE).read_text() == "new"


def test_who_reads_a_file_while_it_is_written_reads_all_of_the_one_before(tmp_path):
    path = tmp_path / "table.csv"
    write_whole(path, "before")
    with path.open() as reader:
        write_whole(path, "after")
        assert reader.read() == "before"
    assert path.read_text() == "after"
    assert names(tmp_path) == {path.name}


def test_a_signal_while_a_file_is_written_waits(tmp_path, monkeypatch):
    def disturbed(one, other) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        one.rename(other)

    monkeypatch.setattr("pathlib.Path.replace", disturbed)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", "whole")
    assert names(tmp_path) == {"file"}


def test_missing_parents_are_made(tmp_path):
    with ResultsFolder(tmp_path / "a" / "b" / "out") as results:
        results.commit()
    assert (tmp_path / "a" / "b" / "out").is_dir()


def test_empty_folder_may_be_taken(tmp_path):
    (tmp_path / "out").mkdir()
    with ResultsFolder(tmp_path / "out") as results:
        fill(results)
        results.commit()
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {RECORD_FILE}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["file", "foreign folder", "dangling link"])
def test_anything_else_is_never_replaced(tmp_path, kind, force):
    place = tmp_path / "out"
    if kind == "file":
        place.write_text("precious")
    elif kind == "dangling link":
        place.symlink_to("nowhere")
    else:
        place.mkdir()
        (place / "thesis.tex").touch()
    with pytest.raises(ResultsError, match="out"):
        ResultsFolder(place, force=force)
    assert names(tmp_path) == {"out"}


def test_older_results_are_kept_without_force(tmp_path):
    older(tmp_path / "out")
    with pytest.raises(ResultsError, match="--force"):
        ResultsFolder(tmp_path / "out")
    assert names(tmp_path) == {"out"}


def test_place_that_somebody_else_takes_meanwhile_is_left_to_them(tmp_path):
    """Two runs started together: both results are kept."""
    with ResultsFolder(tmp_path / "out") as first, ResultsFolder(tmp_path / "out") as second:
        fill(first, "first")
        fill(second, "second")
        first.commit()
        second.commit()
        assert second.path == tmp_path / "out-2"
    assert (tmp_path / "out" / RECORD_FILE).read_text() == "first"
    assert (tmp_path / "out-2" / RECORD_FILE).read_text() == "second"
    assert names(tmp_path) == {"out", "out-2"}


def test_place_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match=r"cannot write to .*file"):
        ResultsFolder(tmp_path / "file" / "out")
    assert names(tmp_path) == {"file"}


def test_link_to_older_results_is_replaced_not_followed(tmp_path):
    older(tmp_path / "real")
    (tmp_path / "out").symlink_to("real")
    with ResultsFolder(tmp_path / "out", force=True) as results:
        fill(results, "new")
        results.commit()
    assert (tmp_path / "real" / RECORD_FILE).read_text() == "old"
    assert (tmp_path / "out" / RECORD_FILE).read_text() == "new"
    assert names(tmp_path) == {"real", "out"}


def test_fresh_folder_counts_up_and_makes_nothing(tmp_path):
    assert fresh_folder(tmp_path, "run") == tmp_path / "run"
    assert names(tmp_path) == set()
    (tmp_path / "run").mkdir()
    assert fresh_folder(tmp_path, "run") == tmp_path / "run-2"
    (tmp_path / "run-2").touch()
    (tmp_path / "run-4").mkdir()
    assert fresh_folder(str(tmp_path), "run") == tmp_path / "run-3"


def test_record_is_written_as_json_and_table(tmp_path):
    views = (
        ViewRecord(1, 0.5, 10, 0.25, 12, 3.5, 1.25, 0.5, 1.0, 0.75, 0.9, 0.6, 3.0, 0.8, 0.7, 8.0),
        ViewRecord(2, 2.0, 30, 1.0, 30, float("nan"), 2.0),
    )
    metrics = {
        "T": 2,
        "T95": None,
        "rec": 1.0,
        "mean_individual_regret": float("nan"),
        "surface_points": 40,
    }
    ended = Termination(
        TerminationReason.STALLED,
        {"coverage_rise": float("inf"), "stall_views": 4.0},
        "nothing new",
    )
    write_record(
        tmp_path, EpisodeRecord({"object": "süß"}, {"python": "3"}, 7, views, ended, metrics)
    )
    found = json.loads((tmp_path / "episode.json").read_text(encoding="utf-8"))
    assert found["config"] == {"object": "süß"}
    assert found["seed"] == 7
    assert found["views"][0] == {
        "number": 1,
        "angle": 0.5,
        "new_points": 10,
        "coverage": 0.25,
        "greedy_gain": 12,
        "objective_value": 3.5,
        "milliseconds": 1.25,
        "rmse": 0.5,
        "max_error": 1.0,
        "hausdorff": 0.75,
        "iou": 0.9,
        "band_coverage": 0.6,
        "travelled": 3.0,
        "completeness": 0.8,
        "accuracy": 0.7,
        "seconds": 8.0,
        "distance": None,
        "turn": 0.0,
        "simple_regret": None,
        "chamfer": None,
        "weighted": None,
    }
    assert found["views"][1]["objective_value"] is None  # JSON knows no NaN
    assert found["views"][1]["rmse"] is None
    assert found["calibration"] is None
    assert found["metrics"] == {**metrics, "mean_individual_regret": None}
    assert found["termination"] == {
        "reason": "STALLED",
        "coverage_rise": None,
        "stall_views": 4.0,
        "detail": "nothing new",
    }
    with (tmp_path / "views.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(found["views"][0])
    assert [float(row["angle"]) for row in rows] == [0.5, 2.0]
    assert np.isnan(float(rows[1]["objective_value"]))


def test_episode_without_views_has_no_beliefs(tmp_path):
    write_beliefs(tmp_path, [])
    assert names(tmp_path) == set()
