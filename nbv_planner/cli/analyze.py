"""Write tables, pictures, an animation and one page from a bag alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nbv_planner.bags.analysis import Analysis, RecordedEpisode
from nbv_planner.bags.analysis_tables import analysis_tables
from nbv_planner.bags.solid_analysis import (
    SolidAnalysis,
    solid_animation,
    solid_pictures,
    solid_tables,
)
from nbv_planner.cli.options import (
    add_bag,
    add_bag_options,
    add_figures,
    add_out,
    any_analysis,
    results_folder,
)
from nbv_planner.cli.output import (
    compared,
    compared_with,
    drawn,
    nominal_of,
    print_files,
    written_outline,
)
from nbv_planner.cli.simulate import add_nominal
from nbv_planner.episode.records import write_beliefs, write_record
from nbv_planner.episode.solid.solid_results import write_episode, write_surface
from nbv_planner.errors import SettingError
from nbv_planner.files.results_folder import ResultsFolder, write_whole
from nbv_planner.known.deviation_report import DeviationReport
from nbv_planner.report import page
from nbv_planner.report.tables import Table
from nbv_planner.volume.published import write_cells
from nbv_planner.volume.volume_surface import VolumeSurface

JSON_FILE = "analysis.json"
PAGE_FILE = "analysis.html"
ANIMATION_FILE = "reconstruction.gif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_bag(parser)
    add_nominal(parser)
    add_out(parser)
    add_figures(parser)
    add_bag_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    name = Path(arguments.bag).name
    with results_folder(
        arguments, f"analyze-{Path(arguments.bag).resolve().stem}", JSON_FILE
    ) as results:
        analysis = any_analysis(arguments.bag, arguments)
        if isinstance(analysis, SolidAnalysis):
            return _run_solid(results, analysis, arguments)
        if analysis.judge is not None:
            compared(analysis.judge)
        tables = analysis_tables(analysis)
        page.write_tables(results.folder / "tables", tables)
        page.write_json(results.folder / JSON_FILE, tables, coverage=analysis.coverage_kind)
        if analysis.record is not None:
            write_record(results.folder, analysis.record)
        if len(analysis.steps) == len(analysis.views):
            write_beliefs(results.folder, analysis.steps)
            write_cells(results.folder, (step.belief for step in analysis.steps))
        log = analysis.recording.log
        report = _compared(analysis, arguments)
        if report is not None:
            report.write(results.folder)
        outline = written_outline(results, log.views[-1].belief if log.views else None, log.scene)
        write_whole(results.folder / PAGE_FILE, _page(name, analysis, tables, [], None))
        results.commit()
    _say(analysis)
    if analysis.coverage:
        print(
            f"{len(analysis.views)} views, {analysis.coverage_kind} coverage"
            f" {analysis.coverage[-1]:.1%} at the end"
        )
    print(outline)
    if report is not None:
        print(f"deviation: {report.summary}")
    drawn(
        arguments.figures,
        lambda: _write_pictures(results.path, name, analysis, tables, report),
        None,
    )
    print_files(results)
    return 0


def _say(analysis: RecordedEpisode) -> None:
    """Print what is wrong with a bag, and how the episode ended."""
    for remark in analysis.remarks:
        print(f"bag: {remark}")
    for gap in analysis.gaps:
        print(f"not computed: {gap}")
    print(f"ended: {analysis.termination.reason.value}, {analysis.termination.detail}")


def _run_solid(
    results: ResultsFolder, analysis: SolidAnalysis, arguments: argparse.Namespace
) -> int:
    """The same in space."""
    if arguments.nominal:
        raise SettingError("--nominal: compares outlines in the plane, not solids")
    name, record = Path(arguments.bag).name, analysis.views
    tables = solid_tables(analysis)
    page.write_tables(results.folder / "tables", tables)
    page.write_json(results.folder / JSON_FILE, tables, coverage=analysis.coverage_kind)
    write_episode(results.folder, record, analysis.termination)
    surface = write_surface(results.folder, record.surfaces[-1], record.tau)
    write_whole(results.folder / PAGE_FILE, _page(name, analysis, tables, [], None))
    results.commit()
    _say(analysis)
    print(surface)

    def draw() -> None:
        pictures = list(solid_pictures(analysis))
        animation = solid_animation(analysis)
        _write_page(results.path, name, analysis, tables, pictures, animation)

    drawn(arguments.figures, draw, None)
    print_files(results)
    return 0


def _compared(analysis: Analysis, arguments: argparse.Namespace) -> DeviationReport | None:
    """The deviations from the nominal outline, else from that which travelled with the surface."""
    if analysis.config is None:
        return None
    belief = analysis.steps[-1].belief if analysis.steps else None
    known: Any = belief.form.known if isinstance(belief, VolumeSurface) else belief and belief.known
    nominal = nominal_of(arguments, known, analysis.config)
    return compared_with(nominal, analysis.steps, analysis.config.world.placed)


def _write_pictures(
    folder: Path,
    name: str,
    analysis: Analysis,
    tables: list[Table],
    report: DeviationReport | None,
) -> None:
    from nbv_planner.bags.bag_pictures import draw_animation, draw_pictures
    from nbv_planner.report.figures.recorded_figure import draw_deviation
    from nbv_planner.report.figures.style import picture

    pictures = list(draw_pictures(analysis))
    if report is not None and report.deviation.seen.any():
        figure = draw_deviation(report.deviation, report.tolerance)
        pictures.append(picture("deviation", "Nominal against actual", report.summary, figure))
    _write_page(folder, name, analysis, tables, pictures, draw_animation(analysis))


def _write_page(
    folder: Path,
    name: str,
    analysis: RecordedEpisode,
    tables: list[Table],
    pictures: list[page.Picture],
    animation: page.Animation | None,
) -> None:
    page.write_pictures(folder / "figures", pictures)
    if animation is not None:
        write_whole(folder / ANIMATION_FILE, animation.gif)
    write_whole(folder / PAGE_FILE, _page(name, analysis, tables, pictures, animation))


def _page(
    name: str,
    analysis: RecordedEpisode,
    tables: list[Table],
    pictures: list[page.Picture],
    animation: page.Animation | None,
) -> str:
    named = {table.name: table for table in tables}

    def shown(*keys: str) -> list[Table]:
        return [named[key] for key in keys if key in named]

    sections = [
        page.Section("summary", "Summary", shown("summary", "checks", "not_computed", "remarks")),
        page.Section("pictures", "Pictures", [*pictures, *([animation] if animation else [])]),
        page.Section("views", "Views", shown("views")),
        page.Section("accounts", "Accounts", shown("time_by_phase", "drops", "calibration")),
        page.Section("bag", "The bag", [page.Folded(named["topics"])] if "topics" in named else []),
    ]
    lead = (
        f"{analysis.taken} views, coverage {analysis.coverage_kind}, ended"
        f" {analysis.termination.reason.value}"
    )
    return page.render_page(
        f"Analysis of {name}", lead, [section for section in sections if section.blocks]
    )
