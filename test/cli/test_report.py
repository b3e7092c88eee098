"""`nbv-bench report`: from a folder of results to tables, pictures and a page."""

from __future__ import annotations

import csv
import json
import sys

import pytest
import scipy.optimize
from programs import main

from nbv_bench.experiments import cases as running

pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")

SWEEP = """\
name: two squares
objects: [square:width=4, square:width=6]
planners:
  greedy_oracle: {objective: OSM}
  U: {objective: U}
  CS-U: {planner: two_phase, phase_one_objective: CSN, objective: U}
protocols: [thesis, sensor]
seeds: 2
settings:
  sensor: {num_beams: 31}
  termination: {max_views: 3}
"""
PICTURES = {"calibration", "coverage", "objectives", "paired", "planners"}
TABLES = {"table_7_1", "table_7_2", "table_7_1_optimum", "objects"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished sweep, and a cache for the optima."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "sweep.yaml").write_text(SWEEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["experiment", "sweep.yaml", "--out", "results", "--workers", "1"]) == 0
    return folder


@pytest.fixture
def there(swept, monkeypatch):
    monkeypatch.chdir(swept)
    monkeypatch.setenv("XDG_CACHE_HOME", str(swept / "cache"))
    return swept


def names(folder):
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)
def test_report_has_all_tables_and_pictures_and_one_page(there, capsys):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    assert main(["report", "results", "--out", "all"]) == 0
    said = capsys.readouterr().out
    assert "two squares: 24 of 24 cases, 0 failed" in said
    assert "all/ (report.html" in said
    once = {"summary", "planners", "paired", "failures", "timing"}
    tables = {f"{name}_{protocol}" for name in TABLES for protocol in ("thesis", "sensor")} | once
    assert names(there / "all" / "tables") == {
        f"{name}.{end}" for name in tables for end in ("csv", "md")
    }
    drawn = {name.rpartition(".")[0] for name in names(there / "all" / "figures")}
    planners = ("1_greedy-oracle", "2_U", "3_CS-U")
    shown = PICTURES | {f"views_{planner}" for planner in planners}
    both = {f"{name}_{protocol}" for name in shown for protocol in ("thesis", "sensor")}
    assert drawn == both | {"tradeoff_thesis"}  # nobody reaches 95 % in three noisy views
    page = (there / "all" / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == len(both)  # times differ from run to run: not on the page


def test_tables_hold_the_metrics_of_the_episodes(there):
    assert main(["report", "results", "--out", "t", "--no-figures", "--no-optimum"]) == 0
    assert names(there / "t") == {"report.html", "report.json", "tables"}
    found = {row["algorithm"]: row for row in rows(there / "t" / "tables" / "table_7_1_thesis.csv")}
    episodes = [
        json.loads(path.read_text()) for path in (there / "results" / "episodes").glob("*.json")
    ]
    for planner in ("greedy_oracle", "U", "CS-U"):
        own = [
            e
            for e in episodes
            if (e["case"]["planner"], e["case"]["protocol"]) == (planner, "thesis")
        ]
        coverage = [e["metrics"]["rec"] for e in own]
        assert float(found[planner]["rec_percent"]) == pytest.approx(
            100 * sum(coverage) / len(coverage)
        )
    times = [view["milliseconds"] for e in episodes for view in e["views"]]
    assert max(float(row["max_ms"]) for row in rows(there / "t" / "tables" / "timing.csv")) == max(
        times
    )


def test_report_goes_into_the_results_and_a_rerun_gives_the_same_and_hinders_no_resume(
    there, capsys
):
    arguments = ["report", "results", "--no-figures"]
    assert main(arguments) == 0
    first = {p: p.read_bytes() for p in (there / "results").rglob("*") if p.is_file()}
    assert main(arguments) == 0
    assert {p: p.read_bytes() for p in (there / "results").rglob("*") if p.is_file()} == first
    assert main(["experiment", "sweep.yaml", "--out", "results", "--resume", "--workers", "1"]) == 0
    assert (there / "results" / "report.html").is_file()


def test_unfinished_sweep_is_reported_with_what_failed(there, tmp_path, monkeypatch, capsys):
    real = running.run_episode_case

    def moody(config):
        if config.object == "square:width=6" and config.planner.objective == "OSM":
            raise ValueError("<no> such luck")
        return real(config)

    monkeypatch.setitem(running.MEASURES, "episode", running.Measure(moody, "episodes"))
    out = str(tmp_path / "part")
    assert (
        main(
            ["experiment", "sweep.yaml", "--out", out, "--workers", "1", "--backend", "sequential"]
        )
        == 1
    )
    next((tmp_path / "part" / "episodes").glob("U-*.json")).unlink()
    capsys.readouterr()
    assert main(["report", out, "--no-figures", "--no-optimum"]) == 0
    assert "19 of 24 cases, 4 failed" in capsys.readouterr().out
    failures = rows(tmp_path / "part" / "tables" / "failures.csv")
    assert [row["error"] for row in failures] == ["ValueError: <no> such luck"] * 4
    assert "&lt;no&gt; such luck" in (tmp_path / "part" / "report.html").read_text(encoding="utf-8")


def test_without_matplotlib_the_tables_come_with_a_word_about_it(there, monkeypatch, capsys):
    drawing = ("nbv_bench.experiments.summary.pictures", "nbv_planner.report.figures")
    loaded = [name for name in sys.modules if name.startswith(drawing)]
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["report", "results", "--out", "plain", "--no-optimum"]) == 0
    assert "no pictures: matplotlib" in capsys.readouterr().out
    assert names(there / "plain") == {"report.html", "report.json", "tables"}


def test_objects_that_cannot_be_read_any_more_cost_only_what_needs_them(there, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    (tmp_path / "mine.csv").write_text("x,y\n4,0\n0,4\n-4,0\n0,-4\n")
    text = f"name: mine\nobjects: ['file:{tmp_path}/mine.csv']\nplanners: {{U: {{objective: U}}}}\n"
    text += "protocols: [thesis]\n"
    (tmp_path / "mine.yaml").write_text(text)
    out = str(tmp_path / "out")
    assert main(["experiment", str(tmp_path / "mine.yaml"), "--out", out, "--workers", "1"]) == 0
    (tmp_path / "mine.csv").unlink()
    capsys.readouterr()
    assert main(["report", out]) == 0
    said = capsys.readouterr().out
    assert "no comparison with the optimum: " in said
    assert "no picture of the objectives in the thesis protocol: " in said
    assert "views_1_U.png" in names(tmp_path / "out" / "figures")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["cache"], "cache is not the results folder of a sweep (no manifest.json)"),
        (["."], "no manifest.json); did you mean results?"),
        (["results", "--out", "taken"], "taken holds neither a sweep nor a report"),
        (["results", "--out", "sweep.yaml"], "sweep.yaml is not a folder"),
        (
            ["results", "--out", "sweep.yaml/below", "--no-figures", "--no-optimum"],
            "cannot write to sweep.yaml/below",
        ),
    ],
)
def test_bad_folder_is_refused_in_one_line_and_stays_as_it_is(there, capsys, arguments, word):
    (there / "taken").mkdir(exist_ok=True)
    (there / "taken" / "thesis.tex").write_text("precious")
    before = sorted(there.iterdir())
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("nbv-bench report: error: ")
    assert word in said.err
    assert sorted(there.iterdir()) == before
    assert names(there / "taken") == {"thesis.tex"}
