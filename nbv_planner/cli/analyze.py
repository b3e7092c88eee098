"""Verb `analyze`: tables, pictures and one page from a bag alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from nbv_planner.bags.analysed import Analysis
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.cli.bag_options import add_bag_options, named_analysis, output_folder
from nbv_planner.reports.files import write_json, write_pictures, write_tables
from nbv_planner.reports.page import Animation, Folded, Picture, Section, render_page
from nbv_planner.reports.table import Table
from nbv_planner.results import ResultsFolder, write_beliefs, write_record

JSON_FILE, PAGE_FILE, ANIMATION_FILE = "analysis.json", "analysis.html", "reconstruction.gif"
_ACCOUNTS = ("time_by_phase", "drops", "calibration")
_DOUBTS = ("not_computed", "remarks")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("analyze", help="tables, pictures and one page from a bag alone")
    parser.add_argument("bag", metavar="BAG", help="folder of a bag, or one of its files (.mcap, .db3)")
    parser.add_argument("--out", metavar="DIR", help="results folder (default: a fresh one below results/)")
    parser.add_argument("--force", action="store_true", help="replace an older analysis there")
    parser.add_argument(
        "--figures", action=argparse.BooleanOptionalAction, default=True, help="draw pictures (default: yes)"
    )
    add_bag_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    with ResultsFolder(
        output_folder(arguments, "analyze", arguments.bag), force=arguments.force, marker=JSON_FILE
    ) as results:
        analysis = named_analysis(arguments.bag, arguments)
        tables = analysis_tables(analysis)
        pictures, animation = _drawn(analysis, results.folder) if arguments.figures else ([], None)
        _write(results.folder, analysis, tables, pictures)
        page = _page(Path(arguments.bag).name, analysis, tables, pictures, animation)
        (results.folder / PAGE_FILE).write_text(page, encoding="utf-8")
        results.commit()
    _say(analysis)
    print(f"results: {results.path}/ (" + ", ".join(sorted(p.name for p in results.path.iterdir())) + ")")
    return 0


def _drawn(analysis: Analysis, folder: Path) -> tuple[list[Picture], Animation | None]:
    """All pictures, or say why there are none."""
    try:
        from nbv_planner.cli.bag_pictures import draw_animation, draw_pictures
    except ImportError as error:
        print(f"no pictures: {error.name} is not installed (pip install '.[analysis]' in the checkout)")
        return [], None
    return list(draw_pictures(analysis)), draw_animation(analysis, folder / ANIMATION_FILE)


def _write(folder: Path, analysis: Analysis, tables: list[Table], pictures: list[Picture]) -> None:
    write_tables(folder / "tables", tables)
    write_pictures(folder / "figures", pictures)
    write_json(folder / JSON_FILE, tables, coverage=analysis.coverage_kind)
    if analysis.record is not None:
        write_record(folder, analysis.record)
    if len(analysis.steps) == len(analysis.views):
        write_beliefs(folder, analysis.steps)


def _page(
    name: str, analysis: Analysis, tables: list[Table], pictures: list[Picture], animation: Animation | None
) -> str:
    named = {table.name: table for table in tables}
    sections = [
        Section("summary", "Summary", [named[key] for key in ("summary", *_DOUBTS) if key in named]),
        Section("pictures", "Pictures", [*pictures, *([animation] if animation else [])]),
        Section("views", "Views", [named[key] for key in ("views",) if key in named]),
        Section("accounts", "Accounts", [named[key] for key in _ACCOUNTS if key in named]),
        Section("bag", "The bag", [Folded(named["topics"])] if "topics" in named else []),
    ]
    lead = f"{len(analysis.views)} views, coverage {analysis.coverage_kind}, ended {analysis.termination.reason.value}"
    return render_page(f"Analysis of {name}", lead, [section for section in sections if section.blocks])


def _say(analysis: Analysis) -> None:
    """The gist, on the screen."""
    for remark in analysis.remarks:
        print(f"bag: {remark}")
    for gap in analysis.gaps:
        print(f"not computed: {gap}")
    ended = analysis.termination
    print(f"ended: {ended.reason.value}, {ended.detail}")
    if analysis.coverage:
        print(f"{len(analysis.views)} views, {analysis.coverage_kind} coverage {analysis.coverage[-1]:.1%} at the end")


