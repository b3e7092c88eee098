"""Verb `report`: tables, pictures and one page from the results of a sweep."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from nbv_planner.cli.progress_line import ProgressLine
from nbv_planner.errors import NbvPlannerError
from nbv_planner.evaluation.best_coverage import Optimum
from nbv_planner.experiments.report.contents import SweepReport, report_page, report_tables, sweep_report
from nbv_planner.experiments.report.object_tables import object_table, paired_object_table
from nbv_planner.experiments.report.optimum_table import (
    Place,
    optimum_percent,
    optimum_table,
    place_of,
    sweep_optima,
)
from nbv_planner.experiments.report.output import (
    FIGURES_FOLDER,
    PAGE_FILE,
    TABLES_FOLDER,
    check_report_folder,
    write_report,
)
from nbv_planner.experiments.sweep_results import read_sweep
from nbv_planner.reports.page import Picture
from nbv_planner.reports.table import Table


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("report", help="tables, pictures and one page from the results of a sweep")
    parser.add_argument("folder", metavar="DIR", help="results folder of a sweep, finished or not")
    parser.add_argument("--out", metavar="DIR", help="where the report goes (default: into the results folder)")
    parser.add_argument(
        "--figures", action=argparse.BooleanOptionalAction, default=True, help="draw pictures (default: yes)"
    )
    parser.add_argument(
        "--optimum", action=argparse.BooleanOptionalAction, default=True,
        help="compare with the best sets of views, which are computed once per object and kept (default: yes)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    report = sweep_report(read_sweep(arguments.folder))
    out = Path(arguments.folder if arguments.out is None else arguments.out)
    check_report_folder(out)
    print(f"sweep {report.sweep['name']}: {report.progress}", flush=True)
    optima = _optima(report) if arguments.optimum else {}
    tables = [*report_tables(report), *_optimum_tables(report, optima), *_object_tables(report, optima)]
    pictures = _pictures(report) if arguments.figures else []
    write_report(out, tables, pictures, report_page(report, tables, pictures))
    parts = [PAGE_FILE, f"{TABLES_FOLDER}/ with {len(tables)} tables"]
    if pictures:
        parts.append(f"{FIGURES_FOLDER}/ with {len(pictures)} pictures")
    print(f"report: {out}/ ({', '.join(parts)})")
    return 0


def _optima(report: SweepReport) -> dict[Place, Optimum]:
    """Compute the optima, or say why not."""
    places = {place_of(e) for e in report.episodes}
    line = ProgressLine(len(places), "optima")
    try:
        return sweep_optima(report.episodes, lambda done, total: line.show(done))
    except NbvPlannerError as error:
        print(f"no comparison with the optimum: {error}")
        return {}
    finally:
        line.end()


def _optimum_tables(report: SweepReport, optima: Mapping[Place, Optimum]) -> list[Table]:
    """Compare with the optimum, where that is known."""
    return [
        optimum_table(
            [e for e in report.episodes if e["case"]["protocol"] == protocol], optima,
            f"table_7_1_optimum{report.suffix(protocol)}",
        )
        for protocol in (report.protocols if optima else ())
    ]


def _object_tables(report: SweepReport, optima: Mapping[Place, Optimum]) -> list[Table]:
    """Classes of objects, and pairs of planners over the objects."""
    percent = optimum_percent(report.episodes, optima) if optima else {}
    tables = []
    for protocol in report.protocols:
        cases, suffix = report.of_protocol(protocol), report.suffix(protocol)
        tables.append(object_table(cases, percent, f"objects{suffix}"))
        tables.append(paired_object_table(cases, f"paired_objects{suffix}"))
    return tables


def _pictures(report: SweepReport) -> list[Picture]:
    """Draw all pictures, or say why there are none."""
    try:
        from nbv_planner.cli.report_pictures import draw_pictures
    except ImportError as error:
        print(f"no pictures: {error.name} is not installed (pip install '.[analysis]' in the checkout)")
        return []
    return draw_pictures(report, say=print)
