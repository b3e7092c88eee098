"""Running sweeps: the figures hang on nothing but the sweep, errors stay with their case, nothing
is lost.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sweeps

from nbv_bench.experiments import runner
from nbv_bench.experiments.cases import MEASURES, Measure
from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_sweep
from nbv_bench.experiments.runner import BACKENDS, run_sweep
from nbv_planner.errors import DependencyError

joblib = pytest.importorskip(
    "joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'"
)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Return a small sweep."""
    return sweeps.load(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, sweep):
    """Return the files of a run in one process that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sweeps.run(folder, sweep)
    return sweeps.files(folder)


def test_each_case_leaves_its_record(undisturbed, sweep):
    episodes = {f"episodes/{case.slug}.json" for case in sweep.cases()}
    assert set(undisturbed) == {"manifest.json", "sweep.yaml"} | episodes
    for case in sweep.cases():
        record = json.loads(undisturbed[f"episodes/{case.slug}.json"])
        assert record["case"] == case.as_dict()
        assert (
            record["seed"]
            == record["config"]["sensor"]["seed"]
            == record["config"]["planner"]["planner_seed"]
            == 3
        )
        assert (record["config"]["object"], record["config"]["protocol"]) == (
            case.config.object,
            case.config.protocol,
        )
        assert record["metrics"]["T"] == len(record["views"]) > 0


@pytest.mark.parametrize("backend", [backend for backend in BACKENDS if backend != "dask"])
def test_figures_do_not_depend_on_workers_and_back_end(tmp_path, sweep, undisturbed, backend):
    progress = sweeps.run(tmp_path, sweep, workers=2, backend=backend)
    assert (progress.cases, progress.kept, progress.run) == (8, 0, 8)
    assert sweeps.files(tmp_path) == undisturbed


@pytest.mark.parametrize("writes", [0, 1, 2, 6, 9])
def test_run_that_ends_between_any_two_writes_can_be_gone_on_with(
    tmp_path, sweep, undisturbed, monkeypatch, writes
):
    """Sweep, manifest, eight episodes: the run dies when the next file is written but not yet in
    place.
    """
    replaced = Path.replace

    def replace(path, target):
        nonlocal writes
        writes -= 1
        if writes < 0:
            raise KeyboardInterrupt
        return replaced(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        sweeps.run(tmp_path, sweep)
    monkeypatch.undo()
    kept = len(list(tmp_path.glob("episodes/*.json")))
    assert any(path.name.endswith(".tmp") for path in tmp_path.rglob(".*"))
    progress = sweeps.run(tmp_path, sweep, resume=True)
    assert (progress.kept, progress.run, progress.finished) == (kept, 8 - kept, 8)
    assert sweeps.files(tmp_path) == undisturbed


def test_finished_sweep_runs_nothing_again(tmp_path, sweep, monkeypatch):
    sweeps.run(tmp_path, sweep)
    monkeypatch.setattr(
        runner, "run_case", lambda case: pytest.fail("a finished case was run again")
    )
    assert sweeps.run(tmp_path, sweep, resume=True).run == 0


@pytest.mark.parametrize("backend", ["sequential", "loky"])
def test_case_that_fails_is_recorded_and_run_again_and_the_others_go_on(tmp_path, backend):
    contour = tmp_path / "mine.csv"
    contour.write_text("x,y\n4,0\n0,4\n-4,0\n0,-4\n")
    text = sweeps.TINY.replace("square:width=4", f"file:{contour}").replace(
        "[thesis, sensor]", "[sensor]"
    )
    sweep = sweeps.load(tmp_path, text)
    contour.rename(tmp_path / "gone.csv")  # after everything was checked

    progress = sweeps.run(tmp_path / "out", sweep, workers=2, backend=backend)
    assert (progress.finished, progress.run, len(progress.failed)) == (2, 4, 2)
    found = read_sweep(tmp_path / "out")
    assert [failure["case"]["planner"] for failure in found.failures] == ["greedy_oracle", "random"]
    for failure in found.failures:
        assert failure["case"]["object_class"] == "file"
        assert failure["error"].startswith("ContourError: cannot read contour file")
        assert "contour_files.py" in failure["traceback"]

    (tmp_path / "gone.csv").rename(contour)
    progress = sweeps.run(tmp_path / "out", sweep, resume=True)
    assert (progress.kept, progress.run, progress.failed) == (2, 2, [])
    assert read_sweep(tmp_path / "out").failures == []
    assert len(read_sweep(tmp_path / "out").episodes) == 4


def test_every_measure_has_a_folder_of_its_own(tmp_path, monkeypatch):
    def reach(config):
        if config.planner.planner == "random":
            raise ValueError(config.object)
        return {"reach": config.scene.radius_max}

    monkeypatch.setitem(MEASURES, "reach", Measure(reach, "reaches"))
    sweep = sweeps.load(
        tmp_path,
        sweeps.TINY.replace("[thesis, sensor]", "[sensor]") + "measure: [reach, episode]\n",
    )
    progress = sweeps.run(tmp_path / "out", sweep)
    assert (progress.finished, len(progress.failed)) == (6, 2)
    found = read_sweep(tmp_path / "out")
    assert [record["reach"] for record in found.measured["reach"]] == [8.0, 8.0]
    assert len(list((tmp_path / "out" / "reaches").iterdir())) == 2
    assert len(found.episodes) == 4
    assert [failure["error"] for failure in found.failures] == [
        f"ValueError: {shape}" for shape in sweep.objects
    ]


def test_progress_is_reported_before_the_first_case_and_after_each(tmp_path, sweep):
    seen: list[int] = []
    with SweepFolder(tmp_path, sweep) as folder:
        run_sweep(
            folder,
            workers=1,
            backend="sequential",
            report=lambda progress: seen.append(progress.run),
        )
    assert seen == list(range(9))


def test_missing_library_is_named(tmp_path, sweep, monkeypatch):
    monkeypatch.setattr(joblib, "__version__", "1.2.0")
    with (
        SweepFolder(tmp_path, sweep) as folder,
        pytest.raises(DependencyError, match=r"1\.2\.0 is too old"),
    ):
        run_sweep(folder, workers=1)
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    with (
        SweepFolder(tmp_path, sweep, resume=True) as folder,
        pytest.raises(DependencyError, match=r"cannot import joblib: pip install '\.\[bench\]'"),
    ):
        run_sweep(folder, workers=1)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        SweepFolder(tmp_path, sweep, resume=True) as folder,
        pytest.raises(
            DependencyError, match=r"cannot import distributed: pip install '\.\[dask\]'"
        ),
    ):
        run_sweep(folder, workers=1, backend="dask", scheduler="tcp://127.0.0.1:1")
