"""All tables of a sweep, among them that of optima; the page that shows them, and the folder they
are written to.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbv_bench.experiments.compared_cases import Episode, by_planner, distinct
from nbv_bench.experiments.folder import MANIFEST_FILE
from nbv_bench.experiments.summary import sweep_tables
from nbv_bench.experiments.summary.claims import certificate_table, theory_table
from nbv_bench.experiments.summary.sensitivity import sensitivity_tables
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    NOT_REACHED,
    NUMBER,
    PLANNER,
    T95_OPTIMUM,
    grouped,
    mean_of,
)
from nbv_bench.experiments.summary.thesis_tables import compared_with_thesis, table_7_1, table_7_2
from nbv_bench.experiments.summary.time_tables import time_table
from nbv_bench.experiments.sweep import variants
from nbv_bench.optimum.best_sets import optimality, optimum_of
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_planner.episode.parameters import recorded_config
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import ResultsError
from nbv_planner.report.page import (
    GENERATOR,
    Block,
    Folded,
    Listing,
    Picture,
    Section,
    render_page,
    write_json,
    write_pictures,
    write_tables,
)
from nbv_planner.report.tables import Column, Table
from nbv_planner.system import open_regular
from nbv_planner.world.objects import sets_within

_OPTIMUM_NOTE = (
    "Against the best sets of as many views among the planner's candidates. R(T) = (1 - 1/e) F(best"
    " T views) - F(the planner's), in surface points, at the end of the episode: not positive where"
    " the guarantee of the greedy planner is met. Ratio: points seen over points that as many views"
    " can see, at the end and at its least over the views of an episode. Proved: episodes whose"
    " every best set is proved to be one; elsewhere it is the best one known. Intervals as in the"
    " table of planners."
)
Place = tuple[str, str, str]
"""Protocol, object as text, and the settings of the candidates: the key of an optimum within a
sweep.
"""


def sweep_optima(
    episodes: Sequence[Episode], progress: Callable[[int], None] = lambda done: None
) -> dict[Place, Optimum]:
    """Compute the optimum of each object, in each protocol and for all candidates, or read it from
    the cache.

    The `progress` is called with the number of optima done.

    Raises:
        NbvPlannerError: an object cannot be read any more, or SciPy is older than 1.9.
    """
    first = {place_of(episode): episode for episode in reversed(episodes)}
    optima: dict[Place, Optimum] = {}
    for place in distinct(place_of(episode) for episode in episodes):
        judge = Simulation(recorded_config(first[place]["config"])).judge
        optima[place] = optimum_of(judge.truth.visible(judge.space.candidates), judge.truth.scene)
        progress(len(optima))
    return optima


def place_of(episode: Episode) -> Place:
    """Return the place of an episode as it was written."""
    candidates = json.dumps(episode["config"]["views"], sort_keys=True)
    return episode["case"]["protocol"], episode["case"]["object"], candidates


def optimum_table(episodes: Iterable[Episode], optima: Mapping[Place, Optimum], name: str) -> Table:
    """Average over the episodes of one protocol, in the order in which planners occur in them."""
    rows = []
    for episode in (e for e in episodes if e["views"]):
        gap = optimality(ViewColumn.new_points.each(episode["views"]), optima[place_of(episode)])
        rows.append(
            episode["case"]
            | {
                T95_OPTIMUM.name: 100.0 * (gap.views_95_relative or math.nan),
                "true_regret": gap.regret[-1],
                "approximation_ratio": gap.approximation_ratio[-1],
                "least_ratio": min(gap.approximation_ratio),
                "proved": gap.proved,
            }
        )
    cells: sweep_tables.Cells = [
        mean_of(T95_OPTIMUM),
        (NOT_REACHED, lambda group: int(group[T95_OPTIMUM.name].isna().sum())),
        mean_of(Column("true_regret", "R(T) (points)", 1, interval=True)),
        mean_of(Column("approximation_ratio", "ratio at the end", 4, interval=True)),
        mean_of(Column("least_ratio", "least ratio", 4, interval=True)),
        *NUMBER,
        (Column("proved", "proved"), lambda group: int(group["proved"].sum())),
    ]
    groups = (
        [((planner,), group) for planner, group in by_planner(pd.DataFrame(rows))] if rows else []
    )
    return grouped(name, "Relative to the optimum", _OPTIMUM_NOTE, [PLANNER], cells, groups)


def with_optimum(cases: pd.DataFrame, optima: Mapping[Place, Optimum]) -> pd.DataFrame:
    """The cases with T95 over the least possible one, per cent; NaN below 95 %."""
    least = [optima[place_of(episode)].views_95 for episode in cases["episode"]]
    return cases.assign(
        **{T95_OPTIMUM.name: 100.0 * cases[Metric.T95.name] / np.array(least, dtype=float)}
    )


def report_tables(
    report: SweepReport, optima: Mapping[Place, Optimum] | None = None
) -> list[Table]:
    """All tables, those relative to the `optima` where these are known."""
    tables: list[Table | None] = [*sensitivity_tables(report)]
    for protocol in report.protocols:
        cases = report.of_protocol(protocol)
        suffix = report.suffix(protocol)
        tables += [table_7_1(cases, f"table_7_1{suffix}"), table_7_2(cases, f"table_7_2{suffix}")]
    if len(report.cases):
        tables += [
            compared_with_thesis(report.of_protocol("thesis")),
            sweep_tables.summary_table(report.of_protocol(*report.detailed)),
            sweep_tables.planner_table(pd.concat([report.cases, report.sweeps_in_hindsight])),
            sweep_tables.paired_table(report.cases),
            certificate_table(report.cases),
            sweep_tables.timing_table(report.cases),
        ]
    if report.theory:
        tables.append(theory_table(report.theory, report.sweep["settings"]["mapper"]["delta"]))
    tables.append(sweep_tables.failure_table(report.failures))
    every = with_optimum(report.cases, optima) if optima else report.cases
    for protocol in report.protocols:
        cases = every[every["protocol"] == protocol]
        suffix = report.suffix(protocol)
        if optima:
            tables.append(optimum_table(cases["episode"], optima, f"table_7_1_optimum{suffix}"))
        tables += [
            sweep_tables.object_table(cases, f"objects{suffix}"),
            sweep_tables.paired_object_table(cases, f"paired_objects{suffix}"),
            time_table(report, protocol),
        ]
    return [table for table in tables if table is not None]


def report_page(report: SweepReport, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Render the page from the tables of :func:`report_tables` and pictures, named with
    :meth:`SweepReport.suffix`.

    It contains no times, except those of a bench, so that the same results give the same page.
    """
    named = {table.name: table for table in tables}
    sections = [
        _protocol_section(report, protocol, tables, pictures) for protocol in report.protocols
    ]
    once = ("sensitivity", "bench", "theory")
    drawn = {name: [picture for picture in pictures if picture.name == name] for name in once}
    if len(report.cases):
        sections.insert(0, Section("summary", "Summary", [named["summary"]]))
    if "sensitivity" in named:
        blocks: list[Block] = [
            named["sensitivity_findings"],
            *drawn["sensitivity"],
            named["sensitivity"],
        ]
        sections.insert(0, Section("sensitivity", "What depends on scene and sensor", blocks))
    if "bench" in named:  # with the times that were measured
        blocks = [named["bench"], *drawn["bench"], named["bench_paired"], Folded(named["timing"])]
        sections.insert(0, Section("bench", "Bench", blocks))
    if report.theory:
        blocks = [named["theory"], *drawn["theory"]]
        sections.append(Section("theory", "Regret on surfaces drawn from the prior", blocks))
    if len(report.cases):
        shown = [named[name] for name in ("planners", "certificate") if name in named]
        sections.append(
            Section("planners", "All figures of merit", [*shown, Folded(named["paired"])])
        )
    sections += [
        Section("failures", "Failed cases", [named["failures"]]),
        _configuration_section(report),
    ]
    return render_page(
        f"Sweep {report.sweep['name']}",
        f"{report.progress}. {_size_of(report.sweep)}.",
        sections,
        report.notes,
    )


def _configuration_section(report: SweepReport) -> Section:
    settings = {key: value for key, value in report.sweep.items() if key != "name"}
    columns = Column("name", "name"), Column("version", "version")
    versions = tuple(report.manifest["versions"].items())
    blocks: list[Block] = [
        sweep_tables.planner_settings_table(report.sweep["planners"], report.reference),
        Table("versions", "Versions", "", columns, versions),
        Listing("Objects and all settings", json.dumps(settings, indent=2, ensure_ascii=False)),
    ]
    return Section("configuration", "What was run", blocks)


def _size_of(sweep: Mapping[str, Any]) -> str:
    """Numbers of objects, planners, protocols, seeds and variants, and the whole sets of objects in
    it.
    """
    parts = [(len(sweep[key]), key) for key in ("objects", "planners", "protocols", "seeds")]
    product = " × ".join(f"{number} {word if number != 1 else word[:-1]}" for number, word in parts)
    if sweep.get("vary"):
        product += f" × {len(variants(sweep['vary'], sweep['settings']))} variants"
    sets = sets_within(sweep["objects"])
    if not sets:
        return product
    return f"{product}, among them the whole {'sets' if len(sets) > 1 else 'set'} {', '.join(sets)}"


def _protocol_section(
    report: SweepReport, protocol: str, tables: Sequence[Table], pictures: Sequence[Picture]
) -> Section:
    suffix = report.suffix(protocol)
    named = {table.name: table for table in tables}
    drawn = [
        p
        for p in pictures
        if p.name.endswith(suffix) and not p.name.startswith(("theory", "tradeoff", "bench"))
    ]
    shown = [f"time{suffix}", f"table_7_1{suffix}", f"table_7_1_optimum{suffix}"]
    folded = [f"table_7_2{suffix}", f"objects{suffix}", f"paired_objects{suffix}"]
    folded += ["compared_with_thesis"] if protocol == "thesis" else []
    blocks: list[Block] = [
        *(named[name] for name in shown if name in named),
        *(Folded(named[name]) for name in folded if name in named),
        *drawn,
    ]
    return Section(suffix[1:] or protocol, f"Results in the {protocol} protocol", blocks)


PAGE_FILE = "report.html"
JSON_FILE = "report.json"
TABLES_FOLDER = "tables"
FIGURES_FOLDER = "figures"


def write_report(
    folder: Path, tables: Sequence[Table], pictures: Sequence[Picture], page: str, **more: Any
) -> None:
    """Write `report.html`, `report.json`, `tables/` and `figures/` into `folder`, in place of an
    earlier report.

    Everything is written to a temporary folder first and moved at the end, the page first. The
    folder must be that of a sweep's results, of an earlier report, new or empty. Each table becomes
    a CSV and a Markdown file, each picture a PNG and an SVG file; without any there is no
    `figures/`. The JSON file holds all tables, and `more`.

    Raises:
        ResultsError: the folder holds something else, or cannot be written.
    """
    check_report_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as name:
            fresh = Path(name) / "new"
            old = Path(name) / "old"
            write_tables(fresh / TABLES_FOLDER, tables)
            write_pictures(fresh / FIGURES_FOLDER, pictures)
            (fresh / PAGE_FILE).write_text(page, encoding="utf-8")
            write_json(fresh / JSON_FILE, tables, **more)
            old.mkdir()
            for part in (PAGE_FILE, JSON_FILE, TABLES_FOLDER, FIGURES_FOLDER):
                if (folder / part).is_dir():
                    (folder / part).rename(old / part)
                if (fresh / part).exists():
                    (fresh / part).replace(folder / part)
    except OSError as error:
        raise ResultsError(
            f"cannot write to {folder}: {error.strerror}; choose another folder with --out"
        ) from error


def check_report_folder(folder: Path) -> None:
    """Refuse a folder in which a report would replace other files.

    Raises:
        ResultsError: says why.
    """
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder; choose another one with --out")
    page = folder / PAGE_FILE
    ours = False
    if page.is_file():
        with open_regular(page) as file:  # it stands at the beginning
            ours = GENERATOR.encode() in file.read(1000)
    if not ours and not (folder / MANIFEST_FILE).is_file() and any(folder.iterdir()):
        raise ResultsError(
            f"{folder} holds neither a sweep nor a report; choose another folder with --out, or a"
            " new one"
        )
