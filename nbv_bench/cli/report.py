"""Write tables, pictures and one page from the results of a sweep.

With several runs (bags, episodes or sweeps), compare them: coverage curves and a paired table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nbv_bench.bench.bench_tables import bench_rows, bench_tables, mean_curves
from nbv_bench.experiments.folder import MANIFEST_FILE
from nbv_bench.experiments.results import read_episodes
from nbv_bench.experiments.summary import contents
from nbv_bench.experiments.summary.runs import all_runs, paired_runs_table, runs_table
from nbv_bench.experiments.summary.sweep_report import SweepReport, sweep_report
from nbv_bench.experiments.summary.sweep_tables import summary_table
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_planner.cli.options import (
    add_bag_options,
    add_figures,
    add_out,
    named_analysis,
    results_folder,
)
from nbv_planner.cli.output import ProgressLine, drawn, print_files
from nbv_planner.errors import NbvPlannerError, ResultsError
from nbv_planner.report.page import (
    Picture,
    Section,
    render_page,
    write_json,
    write_pictures,
    write_tables,
)
from nbv_planner.report.tables import Table
from nbv_planner.system import found_below

JSON_FILE = "comparison.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help=(
            "results folder of a sweep, finished or not; of several runs each may also be a bag or"
            " a folder with episode.json"
        ),
    )
    add_out(parser, "the sweep's folder; of several runs a new one below results/")
    add_figures(parser)
    parser.add_argument(
        "--no-optimum",
        dest="optimum",
        action="store_false",
        help=("do not compare with the best sets of views (computed once per object and cached)"),
    )
    add_bag_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    return _compare(arguments) if len(arguments.runs) > 1 else _report(arguments)


def _report(arguments: argparse.Namespace) -> int:
    folder = arguments.runs[0]
    if not (Path(folder) / MANIFEST_FILE).is_file():
        other = (
            found_below(folder, MANIFEST_FILE)
            or "; to compare a bag or an episode, name another run too"
        )
        problem = f"is not the results folder of a sweep (no {MANIFEST_FILE}){other}"
        raise ResultsError(f"{folder} {problem if Path(folder).exists() else 'does not exist'}")
    report_on(Path(folder), Path(folder if arguments.out is None else arguments.out), arguments)
    return 0


def report_on(folder: Path, out: Path, arguments: argparse.Namespace) -> list[Table]:
    """Write the report on the results of a sweep to the folder `out`; returns its tables, those of
    a bench first.

    The `arguments` are whether to draw `figures` and to compare with the `optimum`.

    Raises:
        NbvPlannerError: the results cannot be read, or the report cannot be written.
    """
    report = sweep_report(read_episodes(folder))
    contents.check_report_folder(out)
    print(f"sweep {report.sweep['name']}: {report.progress}", flush=True)
    optima = _optima(report) if arguments.optimum else {}
    tables = contents.report_tables(report, optima)
    pictures: list[Picture] = drawn(arguments.figures, lambda: _pictures(report), [])
    bench = report.manifest.get("bench")
    if not bench:
        print_summary(report)
    else:
        rows = bench_rows(report, optima)
        tables[:0] = bench_tables(report, rows, optima)
        curves = mean_curves(rows, bench["views"])
        pictures += drawn(
            arguments.figures, lambda: _overlay(curves, "bench", _MEAN), list[Picture]()
        )
    contents.write_report(
        out, tables, pictures, contents.report_page(report, tables, pictures), bench=bench
    )
    more = f", figures/ with {len(pictures)} pictures" if pictures else ""
    print(f"report: {out}/ (report.html, report.json, tables/ with {len(tables)} tables{more})")
    return tables


def print_summary(report: SweepReport) -> None:
    """Print the warnings about the tables, and the summary."""
    for note in report.notes:
        print(f"note: {note}")
    if len(report.cases):
        print(summary_table(report.of_protocol(*report.detailed)).to_markdown(), flush=True)


def _optima(report: SweepReport) -> dict[contents.Place, Optimum]:
    """Compute the optima, or print why not."""
    with ProgressLine(len({contents.place_of(e) for e in report.episodes}), "optima") as line:
        try:
            return contents.sweep_optima(report.episodes, line.show)
        except NbvPlannerError as error:
            print(f"no comparison with the optimum: {error}")
            return {}


def _pictures(report: SweepReport) -> list[Picture]:
    from nbv_bench.experiments.summary.pictures import draw_pictures

    return draw_pictures(report, say=print)


def _compare(arguments: argparse.Namespace) -> int:
    with results_folder(arguments, "comparison", JSON_FILE) as results:
        runs = all_runs(arguments.runs, lambda path: named_analysis(path, arguments))
        tables = [runs_table(runs), paired_runs_table(runs)]
        kinds = {run.label: "" if run.coverage_kind == "true" else " (estimated)" for run in runs}
        curves = {f"{run.label}{kinds[run.label]}": run.mean_coverage for run in runs}
        pictures: list[Picture] = drawn(
            arguments.figures, lambda: _overlay(curves, "coverage", _OF_RUNS), []
        )
        write_tables(results.folder / "tables", tables)
        write_pictures(results.folder / "figures", pictures)
        write_json(results.folder / JSON_FILE, tables)
        sections = [Section("coverage", "Coverage", pictures), Section("tables", "Tables", tables)]
        page = render_page(
            "Comparison", f"{len(runs)} runs", [section for section in sections if section.blocks]
        )
        (results.folder / "comparison.html").write_text(page, encoding="utf-8")
        results.commit()
    for table in tables:
        print(table.to_markdown())
    print_files(results)
    return 0


_MEAN = "Mean over objects and seeds, where an episode that has ended keeps its coverage."
_OF_RUNS = (
    "One line per run; of several episodes the mean, where an episode that has ended keeps its"
    " coverage. Coverage is the true one where the label does not say that it is estimated."
)


def _overlay(curves: dict[str, list[float]], name: str, caption: str) -> list[Picture]:
    from nbv_planner.report.figures.recorded_figure import draw_coverage_overlay
    from nbv_planner.report.figures.style import picture

    return [
        picture(name, "Coverage over the number of views", caption, draw_coverage_overlay(curves))
    ]
