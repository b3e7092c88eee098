"""`--shard`: the script of the page, its parts at the same time, killed, missing, and what is
refused.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import command
import pytest
from programs import main

from nbv_bench.experiments.results import read_sweep
from nbv_planner.system import python_command

pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "cluster.md").read_text(encoding="utf-8")
SWEEP = """\
name: mine
objects: [square:width=4, "ellipse:a=6,b=4"]
planners: {greedy_oracle: {objective: OSM}, U: {objective: U}}
protocols: [sensor]
seeds: 6
settings:
  sensor: {num_beams: 31}
  mapper: {grid_size: 60}
  views: {num_views: 12}
  stop_at_coverage: 0.95
  termination: {max_views: 6, stall_views: 0, certify: false, band_tolerance: 1.0e-6}
"""
"""Twenty-four cases."""
REPORT = ["report", "--no-figures", "--no-optimum"]


@pytest.fixture
def sweep(here):
    """Return the folder to work in, with a sweep in it."""
    (here / "mine.yaml").write_text(SWEEP)
    return here


def report(folder: Path) -> dict[str, str]:
    """Files of the report on a sweep, but for the table of times and the report as data, which
    repeats it.
    """
    assert main([*REPORT, str(folder)]) == 0
    tables = {
        path.name: path.read_text()
        for path in (folder / "tables").iterdir()
        if path.stem != "timing"
    }
    return {**tables, "page": (folder / "report.html").read_text()}


def episodes(folder: Path) -> dict[str, str]:
    """Text of each record, times left out."""
    texts = {path.name: path.read_text() for path in (folder / "episodes").iterdir()}
    return {name: re.sub(r'"milliseconds": [-+.\de]+', "", text) for name, text in texts.items()}


def script(sweep: Path) -> Path:
    """The script of the page; `nbv-bench` in it is this one."""
    (block,) = re.findall(r"```sh\n(#!/bin/bash\n# file: sweep\.sh\n.*?)```", PAGE, re.DOTALL)
    (sweep / "sweep.sh").write_text(block)
    program = sweep / "bin" / "nbv-bench"
    program.parent.mkdir()
    interpreter, option, code = python_command("nbv_bench.cli.main")
    (sweep / "main.py").write_text(code)
    assert option == "-c"
    program.write_text(f'#!/bin/sh\nexec "{interpreter}" "{sweep / "main.py"}" "$@"\n')
    program.chmod(0o755)
    return sweep / "sweep.sh"


def test_the_script_of_the_page_gives_the_records_and_the_report_of_one_run(sweep, capsys):
    assert main(["experiment", "mine.yaml", "--out", "whole", "--workers", "1"]) == 0
    slurm = {"SLURM_CPUS_PER_TASK": "1", "PATH": f"{sweep / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    array = script(sweep)

    def submit(*numbers: int) -> None:
        jobs = [
            subprocess.Popen(
                ["bash", array], env=command.environment(SLURM_ARRAY_TASK_ID=str(number), **slurm)
            )
            for number in numbers
        ]
        assert [job.wait(timeout=180) for job in jobs] == [0] * len(jobs)

    submit(3, 1)
    capsys.readouterr()
    assert main([*REPORT, "results/mine"]) == 0
    assert (
        "12 of 24 cases, 0 failed; 2 of 4 shards are missing: 2,4 (of --shard i/4)"
        in capsys.readouterr().out
    )
    submit(2, 4)
    assert main([*REPORT, "results/mine"]) == 0
    assert "24 of 24 cases, 0 failed\n" in capsys.readouterr().out
    assert episodes(sweep / "results" / "mine") == episodes(sweep / "whole")
    assert report(sweep / "results" / "mine") == report(sweep / "whole")


def wait_for(number: int, out: Path, process: subprocess.Popen[str]) -> None:
    while len(list(out.glob("episodes/*.json"))) < number:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)


def test_shard_that_is_killed_goes_on_without_another_word_and_ends_with_the_same_records(sweep):
    assert main(["experiment", "mine.yaml", "--out", "whole", "--workers", "1"]) == 0
    words = ["experiment", "mine.yaml", "--out", "out", "--workers", "1", "--shard"]
    first, out = command.start([*words, "1/2"], sweep), sweep / "out"
    wait_for(3, out, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("episodes/*.json")}
    assert len(kept) < 12, "it was over before it could be killed"
    assert read_sweep(out).missing_shards == [1, 2]
    for shard in ("1/2", "2/2"):
        assert main([*words, shard]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert episodes(out) == episodes(sweep / "whole")
    assert {path.name for path in out.iterdir()} == {"episodes", "manifest.json", "sweep.yaml"}


def test_a_bench_in_shards_has_the_table_of_one(sweep, capsys, monkeypatch):
    run = [
        "bench",
        "run",
        "U",
        "--split",
        "square:width=4",
        "--split",
        "polygon:diamond",
        "--seeds",
        "1",
    ]
    run += ["--protocol", "thesis", "--workers", "1", "--no-figures", "--no-optimum", "--out"]
    assert main([*run, "whole"]) == 0
    for shard in ("2/2", "1/2"):
        capsys.readouterr()
        assert main([*run, "out", "--shard", shard]) == 0
        assert f"4 of 4 cases of shard {shard} finished: out/\n" in capsys.readouterr().out
        assert not (sweep / "out" / "report.html").exists()
    tables = [report(sweep / name) for name in ("out", "whole")]
    assert tables[0]["objects.csv"] == tables[1]["objects.csv"]
    assert set(tables[0]) == set(tables[1]) >= {"bench.csv", "bench_paired.csv"}


@pytest.mark.parametrize(
    "shard", ["5/4", "0/4", "a/b", "4", "1/0", "-1/4", "1/4/2", "1.0/2", "", "٢/٤"]
)
@pytest.mark.parametrize("what", [["experiment", "mine.yaml"], ["bench", "run", "U"]])
def test_shard_that_is_none_is_refused_in_one_line(sweep, capsys, what, shard):
    assert main([*what, "--out", "out", f"--shard={shard}"]) == 2
    said = capsys.readouterr().err
    assert "argument --shard: '" in said
    assert "' is not allowed; must be I/N with 1 <= I <= N, for example 2/4" in said
    assert said.count("\n") == 1
    assert not (sweep / "out").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["experiment", "mine.yaml", "--out", "out", "--shard", "1/3"],
            "out was begun with --shard i/2; continue it",
        ),
        (
            ["experiment", "mine.yaml", "--out", "out", "--resume"],
            "out was begun with --shard i/2; continue it",
        ),
        (
            ["experiment", "other.yaml", "--out", "out", "--shard", "1/2"],
            "holds another sweep: seeds.5 is missing now",
        ),
        (
            ["experiment", "mine.yaml", "--out", "begun", "--shard", "1/2"],
            "begun was begun without --shard; continue",
        ),
        (
            ["bench", "run", "U", "--shard", "1/2"],
            "--shard needs --out DIR, one folder for all shards",
        ),
        (
            ["bench", "table", "page.md", "--out", "out", "--shard", "1/2"],
            "bench table: needs one document and --out",
        ),
    ],
)
def test_folder_that_does_not_fit_is_refused_in_one_line(sweep, capsys, words, problem):
    (sweep / "other.yaml").write_text(SWEEP.replace("seeds: 6", "seeds: 5"))
    tiny = ["--workers", "1", "--backend", "sequential"]
    assert main(["experiment", "mine.yaml", "--out", "out", "--shard", "1/2", *tiny]) == 0
    if "begun" in words:
        assert main(["experiment", "mine.yaml", "--out", "begun", *tiny]) == 0
    capsys.readouterr()
    assert main([*words, *tiny]) == 2
    said = capsys.readouterr().err
    (line,) = (line for line in said.splitlines() if not line.startswith("note: "))
    assert problem in line


def test_one_shard_twice_at_the_same_time_is_refused_and_named(sweep, capsys):
    words = ["experiment", "mine.yaml", "--out", "out", "--workers", "1", "--shard", "1/2"]
    first = command.start(words, sweep)
    wait_for(1, sweep / "out", first)
    assert main(words) == 2
    assert f"out, shard 1/2, is being written by process {first.pid} on " in capsys.readouterr().err
    first.kill()
    first.communicate()


def test_the_five_lines_for_dask_are_five_and_python():
    (block,) = re.findall(r"```python\n# file: cluster\.py\n(.*?)```", PAGE, re.DOTALL)
    assert len(block.splitlines()) == 5
    compile(block, "cluster.py", "exec")
