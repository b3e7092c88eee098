"""The results folder of a sweep: who may write into it, and what a killed run may leave behind."""

from __future__ import annotations

import dataclasses
import json

import pytest
import sweeps

from nbv_bench.experiments.cases import Outcome
from nbv_bench.experiments.folder import SweepFolder
from nbv_planner.errors import ResultsError


@pytest.fixture
def sweep(tmp_path):
    """Return a small sweep."""
    return sweeps.load(tmp_path)


@pytest.fixture
def begun(tmp_path, sweep):
    """Return a folder in which the sweep was begun."""
    with SweepFolder(tmp_path / "out", sweep):
        pass
    return tmp_path / "out"


def outcome(sweep, *, failed: bool = False, number: int = 0) -> Outcome:
    case = sweep.cases()[number]
    content = {"error": "E"} if failed else {"metrics": {}}
    return Outcome(case, {"case": case.as_dict(), **content}, failed)


def change(path, **values) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_folder_describes_itself_before_anything_runs(begun, sweep):
    assert {path.name for path in begun.iterdir()} == {"manifest.json", "sweep.yaml"}
    assert (begun / "sweep.yaml").read_text() == sweeps.TINY
    manifest = json.loads((begun / "manifest.json").read_text())
    assert {**manifest, "versions": 0} == {
        "format": "nbv_planner sweep",
        "format_version": 1,
        "sweep": sweep.as_dict(),
        "versions": 0,
        "cases": 8,
    }
    assert {"nbv_planner", "numpy", "scipy", "python"} <= set(manifest["versions"])


def test_folder_that_holds_something_needs_resume(begun, sweep):
    with pytest.raises(
        ResultsError, match=r"out is not empty; continue it with --resume or choose another"
    ):
        SweepFolder(begun, sweep)
    SweepFolder(begun, sweep, resume=True)


def test_resume_also_begins(tmp_path, sweep):
    with SweepFolder(tmp_path / "a" / "b", sweep, resume=True) as folder:
        assert len(folder.unfinished()) == folder.number_of_cases == 8


def test_resume_of_another_sweep_is_refused_and_the_difference_named(begun, sweep):
    other = dataclasses.replace(sweep, seeds=(4,))
    with pytest.raises(ResultsError, match=r"holds another sweep: seeds\.0 was 3, is 4"):
        SweepFolder(begun, other, resume=True)
    SweepFolder(begun, dataclasses.replace(sweep, text="# another comment"), resume=True)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"format_version": 2}, r"format_version is 2, .* reads 1"),
        ({"format": "x"}, "format is 'x', must be 'nbv_pl"),
    ],
)
def test_folder_of_another_format_is_refused(begun, sweep, values, words):
    change(begun / "manifest.json", **values)
    with pytest.raises(ResultsError, match=words):
        SweepFolder(begun, sweep, resume=True)


def test_folder_begun_with_other_versions_is_gone_on_with_but_said(begun, sweep):
    assert SweepFolder(begun, sweep, resume=True).notes == []
    manifest = json.loads((begun / "manifest.json").read_text())
    change(begun / "manifest.json", versions={**manifest["versions"], "numpy": "1.0"})
    (note,) = SweepFolder(begun, sweep, resume=True).notes
    assert 'numpy was "1.0", is "' in note


def test_folder_without_a_sweep_is_never_touched(tmp_path, sweep):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match=r"no manifest\.json"):
        SweepFolder(tmp_path / "out", sweep, resume=True)
    with pytest.raises(ResultsError, match="not a folder"):
        SweepFolder(tmp_path / "file", sweep, resume=True)
    with pytest.raises(ResultsError, match="cannot write"):
        SweepFolder(tmp_path / "file" / "deeper", sweep).__enter__()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"thesis.tex"}


def test_run_that_was_killed_before_it_had_begun_leaves_an_empty_folder(tmp_path, sweep):
    out = tmp_path / "out"
    out.mkdir()
    for name in (".lock", "sweep.yaml", ".manifest.json.tmp"):
        (out / name).write_text("half a li")
    with SweepFolder(out, sweep):
        assert (out / "sweep.yaml").read_text() == sweeps.TINY
    assert {path.name for path in out.iterdir()} == {"manifest.json", "sweep.yaml"}


def test_finished_case_is_not_run_again_and_its_older_error_goes(begun, sweep):
    with SweepFolder(begun, sweep, resume=True) as folder:
        folder.keep(outcome(sweep, failed=True))
        assert len(folder.unfinished()) == 8
        assert folder.failure_path(sweep.cases()[0]).exists()
        folder.keep(outcome(sweep))
        assert folder.unfinished() == sweep.cases()[1:]
        assert list((begun / "failures").iterdir()) == []


@pytest.mark.parametrize("text", ["", '{"case": ', "[]", "{}", '{"case": {"planner": "U"}}'])
def test_file_that_is_not_whole_or_not_of_the_case_does_not_count(begun, sweep, text):
    with SweepFolder(begun, sweep, resume=True) as folder:
        folder.keep(outcome(sweep))
        (file,) = (begun / "episodes").iterdir()
        file.write_text(text)
        assert len(folder.unfinished()) == 8


def test_half_written_files_are_removed_but_only_where_the_runner_writes(begun, sweep):
    remains = [begun / name / ".x.json.tmp" for name in ("", "episodes", "failures")]
    other = begun / "notes" / ".x.json.tmp"
    for path in [*remains, other]:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with SweepFolder(begun, sweep, resume=True):
        assert [path.exists() for path in [*remains, other]] == [False, False, False, True]


def test_result_that_cannot_be_written_is_an_error(begun, sweep):
    (begun / "episodes").touch()
    with (
        SweepFolder(begun, sweep, resume=True) as folder,
        pytest.raises(ResultsError, match="cannot write to"),
    ):
        folder.keep(outcome(sweep))


def test_numbers_that_json_does_not_know_are_not_written(begun, sweep):
    bad = outcome(sweep)
    bad.content["metrics"]["rec"] = float("nan")
    with SweepFolder(begun, sweep, resume=True) as folder, pytest.raises(ValueError, match="JSON"):
        folder.keep(bad)
    assert not list((begun / "episodes").glob("*"))
