"""Reading a sweep: the order is that of the sweep, whatever was run first, and what cannot be read
is named.
"""

from __future__ import annotations

import json

import pytest
import sweeps

from nbv_bench.experiments.cases import Outcome
from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_sweep
from nbv_planner.errors import ResultsError


@pytest.fixture
def results(tmp_path):
    """Return a folder in which all cases of odd number failed, written in reverse order."""
    sweep = sweeps.load(tmp_path)
    with SweepFolder(tmp_path / "out", sweep) as folder:
        for number, case in reversed(list(enumerate(sweep.cases()))):
            folder.keep(
                Outcome(case, {"case": case.as_dict(), "number": number}, failed=number % 2 == 1)
            )
    (tmp_path / "out" / "episodes" / ".half.json.tmp").write_text("{")
    return tmp_path / "out"


def test_episodes_and_failures_come_in_the_order_of_the_sweep(results):
    found = read_sweep(results)
    assert [episode["number"] for episode in found.episodes] == [0, 2, 4, 6]
    assert [failure["number"] for failure in found.failures] == [1, 3, 5, 7]
    assert found.manifest["cases"] == 8
    assert found.episodes is found.measured["episode"]


def test_sweep_that_has_just_begun_has_no_episodes(tmp_path):
    with SweepFolder(tmp_path / "out", sweeps.load(tmp_path)):
        assert read_sweep(tmp_path / "out").episodes == []


def test_folder_of_another_version_is_refused_and_both_are_named(results):
    manifest = json.loads((results / "manifest.json").read_text())
    (results / "manifest.json").write_text(json.dumps({**manifest, "format_version": 7}))
    with pytest.raises(
        ResultsError,
        match=r"manifest\.json: format_version is 7, this version of the package reads 1",
    ):
        read_sweep(results)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_file_that_cannot_be_read_is_named(results, text):
    file = next((results / "episodes").glob("*.json"))
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultsError, match=f"cannot read .*{file.name}"):
        read_sweep(results)


def test_folder_that_is_none(tmp_path):
    with pytest.raises(ResultsError, match=r"not the results folder of a sweep"):
        read_sweep(tmp_path)


def test_file_that_is_no_case_of_the_sweep_is_passed_over(results):
    """A copy, for example: its case would count twice."""
    file = next((results / "episodes").glob("[!.]*.json"))
    (results / "episodes" / "copy.json").write_bytes(file.read_bytes())
    assert len(read_sweep(results).episodes) == 4
