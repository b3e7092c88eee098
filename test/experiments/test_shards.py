"""A sweep in shards: each case in one of them, all in one folder, none in the way of another."""

from __future__ import annotations

import json
import multiprocessing

import pytest
import sweeps

from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_sweep
from nbv_bench.experiments.runner import run_sweep
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.sweep import Shard, dealt
from nbv_planner.errors import ResultsError

pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")


@pytest.fixture
def sweep(tmp_path):
    """Return a small sweep."""
    return sweeps.load(tmp_path)


def run_shard(path, sweep, number, of):
    with SweepFolder(path, sweep, shard=Shard(number, of)) as folder:
        return run_sweep(folder, workers=1, backend="sequential")


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 8, 11])
def test_every_case_is_in_one_shard_and_they_differ_by_a_case_at_most(sweep, shards):
    slugs = [case.slug for case in sweep.cases()]
    found = dealt(slugs, shards)
    assert list(found) == sorted(slugs, key=lambda slug: slug[-8:])
    sizes = [list(found.values()).count(number) for number in range(1, shards + 1)]
    assert sum(sizes) == len(slugs)
    assert max(sizes) - min(sizes) <= 1
    assert dealt(reversed(slugs), shards) == found


def test_no_shard_has_one_planner_alone_where_there_are_as_many_shards_as_planners(tmp_path):
    sweep = sweeps.load(tmp_path, sweeps.TINY.replace("[3]", "10"))
    share = dealt((case.slug for case in sweep.cases()), 2)
    planners = {(share[case.slug], case.planner) for case in sweep.cases()}
    assert len(planners) == 4


def test_union_of_the_shards_is_one_run(tmp_path, sweep):
    sweeps.run(tmp_path / "whole", sweep)
    for number in (3, 1, 2):
        progress = run_shard(tmp_path / "out", sweep, number, 3)
        assert progress.run == progress.cases in (2, 3)
    found, whole = sweeps.files(tmp_path / "out"), sweeps.files(tmp_path / "whole")
    manifest = json.loads(found.pop("manifest.json"))
    assert manifest.pop("shards") == 3
    assert manifest == json.loads(whole.pop("manifest.json"))
    assert found == whole
    assert read_sweep(tmp_path / "out").missing_shards == []


def test_shard_that_has_not_run_or_not_to_its_end_is_missing_until_it_has(tmp_path, sweep):
    out = tmp_path / "out"
    run_shard(out, sweep, 2, 4)
    run_shard(out, sweep, 3, 4)
    assert read_sweep(out).missing_shards == [1, 4]
    assert (
        sweep_report(read_sweep(out)).progress
        == "4 of 8 cases, 0 failed; 2 of 4 shards are missing: 1,4 (of --shard i/4)"
    )
    share = dealt((case.slug for case in sweep.cases()), 4)
    lost = next(slug for slug, number in share.items() if number == 3)
    (out / "episodes" / f"{lost}.json").unlink()
    run_shard(out, sweep, 1, 4)
    assert read_sweep(out).missing_shards == [3, 4]
    (out / "failures").mkdir()
    case = next(case for case in sweep.cases() if case.slug == lost)
    (out / "failures" / f"{lost}.json").write_text(
        json.dumps({"case": case.as_dict(), "error": "E"})
    )
    assert read_sweep(out).missing_shards == [4], "a case that has failed has run"


@pytest.mark.parametrize("shards", ['"4"', "0", "-1", "1.5", "[]"])
def test_number_of_shards_that_is_none_is_named(tmp_path, sweep, shards):
    run_shard(tmp_path / "out", sweep, 1, 4)
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"shards": 4', f'"shards": {shards}'))
    with pytest.raises(
        ResultsError, match=r"manifest\.json: it holds no sweep \(TypeError: shards is "
    ):
        read_sweep(tmp_path / "out")


def test_shards_hold_each_other_up_in_nothing(tmp_path, sweep):
    out = tmp_path / "out"
    with (
        SweepFolder(out, sweep, shard=Shard(1, 2)) as first,
        SweepFolder(out, sweep, shard=Shard(2, 2)) as second,
    ):
        assert {path.name for path in out.iterdir()} == {
            "manifest.json",
            "sweep.yaml",
            ".lock-1-of-2",
            ".lock-2-of-2",
        }
        cases = [{case.slug for case in folder.unfinished()} for folder in (first, second)]
        assert cases[0] | cases[1] == {case.slug for case in sweep.cases()}
        assert cases[0] & cases[1] == set()
    assert {path.name for path in out.iterdir()} == {"manifest.json", "sweep.yaml"}


def test_shards_that_begin_at_the_same_time_describe_the_folder_once(tmp_path, sweep):
    forked = multiprocessing.get_context("fork")
    gate = forked.Barrier(8)

    def run(number: int) -> None:
        gate.wait()
        run_shard(tmp_path / "out", sweep, number, 8)

    processes = [forked.Process(target=run, args=(number,)) for number in range(1, 9)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 8
    assert read_sweep(tmp_path / "out").missing_shards == []
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "episodes",
        "manifest.json",
        "sweep.yaml",
    }


def test_half_written_file_of_another_shard_is_left_alone(tmp_path, sweep):
    share = dealt((case.slug for case in sweep.cases()), 2)
    run_shard(tmp_path / "out", sweep, 1, 2)
    remains = {slug: tmp_path / "out" / "episodes" / f".{slug}.json.tmp" for slug in share}
    for path in remains.values():
        path.touch()
    with SweepFolder(tmp_path / "out", sweep, shard=Shard(1, 2)):
        assert {slug: path.exists() for slug, path in remains.items()} == {
            s: n == 2 for s, n in share.items()
        }


def test_another_number_of_shards_is_refused(tmp_path, sweep):
    for shard in (Shard(1, 4), None):
        out = tmp_path / f"begun-{shard and shard.of}"
        with SweepFolder(out, sweep, shard=shard):
            pass
        begun = "with --shard i/4" if shard else "without --shard"
        for other in (None, Shard(1, 3), Shard(1, 4)):
            if other != shard:
                with pytest.raises(
                    ResultsError,
                    match=f"was begun {begun}; continue it like this or choose another",
                ):
                    SweepFolder(out, sweep, resume=True, shard=other)


def test_shard_of_other_versions_is_refused(tmp_path, sweep):
    run_shard(tmp_path / "out", sweep, 1, 2)
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "versions": {**manifest["versions"], "numpy": "1.0"}}))
    with pytest.raises(
        ResultsError, match=r'begun with other versions: numpy was "1\.0", is ".*; all shards need'
    ):
        SweepFolder(tmp_path / "out", sweep, shard=Shard(2, 2))
