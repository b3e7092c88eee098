"""Verb `compare`: bags, episodes and sweeps beside each other."""

from __future__ import annotations

import argparse
from pathlib import Path

from nbv_planner.cli.bag_options import add_bag_options, named_analysis
from nbv_planner.errors import SettingError
from nbv_planner.evaluation.coverage_curves import coverage_band
from nbv_planner.experiments.comparing.runs import ComparedRun, compared_runs, short_names
from nbv_planner.experiments.comparing.tables import paired_runs_table, runs_table
from nbv_planner.reports.files import write_json, write_pictures, write_tables
from nbv_planner.reports.page import Picture, Section, render_page
from nbv_planner.reports.table import Table
from nbv_planner.results import ResultsFolder, fresh_folder

JSON_FILE, PAGE_FILE = "comparison.json", "comparison.html"


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("compare", help="bags, episodes and sweeps beside each other: curves and a paired table")
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="a bag, a folder with episode.json, or the results folder of a sweep"
    )
    parser.add_argument("--out", metavar="DIR", help="results folder (default: a fresh one below results/)")
    parser.add_argument("--force", action="store_true", help="replace an older comparison there")
    add_bag_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    out = Path(arguments.out) if arguments.out else fresh_folder("results", "comparison")
    with ResultsFolder(out, force=arguments.force, marker=JSON_FILE) as results:
        runs = _runs(arguments)
        tables = [runs_table(runs), paired_runs_table(runs)]
        pictures = _drawn(runs)
        write_tables(results.folder / "tables", tables)
        write_pictures(results.folder / "figures", pictures)
        write_json(results.folder / JSON_FILE, tables)
        (results.folder / PAGE_FILE).write_text(_page(runs, tables, pictures), encoding="utf-8")
        results.commit()
    for table in tables:
        print(table.to_markdown())
    print(f"results: {results.path}/ (" + ", ".join(sorted(p.name for p in results.path.iterdir())) + ")")
    return 0


def _runs(arguments: argparse.Namespace) -> list[ComparedRun]:
    """All runs that were named, each under a label of its own.

    Raises:
        NbvPlannerError: one cannot be read, or there is nothing to compare.
    """
    named = zip(arguments.runs, short_names(arguments.runs), strict=True)
    found = [run for path, name in named for run in compared_runs(path, name, lambda p: named_analysis(p, arguments))]
    if len(found) < 2:
        raise SettingError(f"compare: {found[0].label} alone has nothing to be compared with; name another run")
    labels = [run.label for run in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise SettingError(f"compare: {twice[0]} is named twice")
    return found


def _drawn(runs: list[ComparedRun]) -> list[Picture]:
    """Coverage curves over each other, or say why there are none."""
    try:
        from nbv_planner.cli.report_pictures.drawn import picture
        from nbv_planner.plotting.recorded.coverage import CoverageCurve, draw_coverage_overlay
    except ImportError as error:
        print(f"no pictures: {error.name} is not installed (pip install '.[analysis]' in the checkout)")
        return []
    curves = [CoverageCurve(f"{run.label}{_kind(run)}", _mean_coverage(run)) for run in runs]
    caption = (
        "One line per run; of several episodes the mean, where an episode that has ended keeps its coverage. Coverage "
        "is the true one where the label does not say that it is estimated."
    )
    return [picture("coverage", "Coverage over the number of views", caption, draw_coverage_overlay(curves))]


def _kind(run: ComparedRun) -> str:
    return "" if all(episode.true for episode in run.episodes.values()) else " (estimated)"


def _mean_coverage(run: ComparedRun) -> list[float]:
    coverages = [episode.coverage for episode in run.episodes.values()]
    mean = coverage_band(coverages, max(len(coverage) for coverage in coverages)).mean
    return [float(value) for value in mean[1:]]


def _page(runs: list[ComparedRun], tables: list[Table], pictures: list[Picture]) -> str:
    sections = [Section("coverage", "Coverage", pictures), Section("tables", "Figures", tables)]
    return render_page(
        "Comparison", f"{len(runs)} runs", [section for section in sections if section.blocks]
    )
