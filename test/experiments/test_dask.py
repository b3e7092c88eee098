"""Sweeps and campaigns on a cluster of dask: the same records, lost workers, and workers that are
not as the runner.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sweeps

import nbv_planner
from campaigns.__main__ import main
from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.runner import run_sweep
from nbv_planner.errors import BackEndError

distributed = pytest.importorskip("distributed", reason="distributed comes with the extra 'dask'")
CHECKOUT = Path(nbv_planner.__file__).parents[1]
WORKER = """
import asyncio, sys
{before}
from distributed import Worker
async def work():
    async with Worker(sys.argv[1], nthreads=1, dashboard_address=None) as worker:
        await worker.finished()
asyncio.run(work())
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Return a small sweep."""
    return sweeps.load(tmp_path_factory.mktemp("sweep"))


@pytest.fixture
def scheduler():
    """Address of a scheduler without workers, in this process."""
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def worker(tmp_path, scheduler):
    """Start a worker: a process with this package, in which the lines `before` have run."""
    begun = []

    path = os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}

    def start(before: str = "") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WORKER.format(before=before), scheduler]
        begun.append(
            subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        )
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def run(path: Path, sweep, scheduler: str, **more):
    with SweepFolder(path, sweep, resume=True) as folder:
        return run_sweep(folder, workers=1, backend="dask", scheduler=scheduler, **more)


def test_records_are_those_of_one_process_though_a_worker_is_killed(
    tmp_path, sweep, scheduler, worker
):
    sweeps.run(tmp_path / "here", sweep)
    first, killed = worker(), []

    def kill(progress) -> None:
        if progress.run == 2 and not killed:
            killed.append(first.send_signal(signal.SIGKILL))
            worker()

    progress = run(tmp_path / "there", sweep, scheduler, report=kill)
    assert (progress.run, progress.failed, len(killed)) == (8, [], 1)
    assert first.wait() == -signal.SIGKILL
    assert sweeps.files(tmp_path / "there") == sweeps.files(tmp_path / "here")
    assert run(tmp_path / "there", sweep, scheduler).run == 0


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("import nbv_planner.versions as v; v.VERSION = '0.9'", "nbv_planner 0.9, must be 2.0.0"),
        ("import numpy; numpy.__version__ = '1.21.0'", r"numpy 1\.21\.0, must be "),
    ],
)
def test_worker_of_another_version_computes_nothing(
    tmp_path, sweep, scheduler, worker, before, words
):
    worker(before)
    with pytest.raises(
        BackEndError, match=rf"^the worker on \S+ \(.*\) has other versions: {words}"
    ) as error:
        run(tmp_path, sweep, scheduler)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("episodes/*"))


def test_worker_without_the_package_is_named(tmp_path, sweep, scheduler, worker):
    worker("sys.modules['nbv_planner'] = None")
    with pytest.raises(BackEndError, match=r"^back end dask: ModuleNotFoundError: .*nbv_planner"):
        run(tmp_path, sweep, scheduler)


def test_scheduler_that_is_out_of_reach(tmp_path, sweep):
    import dask

    impatient = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with impatient, pytest.raises(BackEndError, match="back end dask"):
        run(tmp_path, sweep, "tcp://127.0.0.1:1")


def test_campaign_gives_the_rows_of_this_machine(tmp_path, scheduler, worker):
    worker()
    asked = ["lies", "scale", "--half", "test", "--planners", "U", "--seeds", "2", "--out"]
    assert main([*asked, str(tmp_path / "here"), "--backend", "sequential"]) == 0
    assert (
        main([*asked, str(tmp_path / "there"), "--backend", "dask", "--scheduler", scheduler]) == 0
    )
    here, there = (sweeps.files(tmp_path / name) for name in ("here", "there"))
    assert set(here) == set(there) >= {"rows.csv", "table.md", "kinds.md"}
    for name in here:
        if name.endswith(".json") and name.startswith("runs/"):
            one, other = (json.loads(files[name]) for files in (here, there))
            assert one.pop("seconds") >= 0.0 <= other.pop("seconds")
            assert one == other
        elif name != "rows.csv":  # the same with the seconds
            assert here[name] == there[name]


@pytest.mark.parametrize(
    "command", [["lies"], ["honest"], ["unknown"], ["bounds"], ["calibrate", "--rows", "rows"]]
)
@pytest.mark.parametrize(
    "options", [["--backend", "dask"], ["--scheduler", "tcp://x:1"], ["--backend", "slurm"]]
)
def test_back_end_of_a_campaign_that_is_none_is_refused_before_anything_is_written(
    tmp_path, capsys, monkeypatch, command, options
):
    monkeypatch.chdir(tmp_path)
    out = ["--out", "out"] if command[0] in ("lies", "honest", "unknown") else []
    assert main([*command, *out, *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--backend" in said
    assert not list(tmp_path.iterdir())
