"""All tables of a sweep, among them that of optima; the page that shows them, and the folder they
are written to.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nbv_bench.experiments.folder import MANIFEST_FILE
from nbv_bench.experiments.summary import sweep_tables
from nbv_bench.experiments.summary.sensitivity import sensitivity_tables
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import (
    NOT_REACHED,
    NUMBER,
    PLANNER,
    T95_OPTIMUM,
    grouped,
    lacking,
    mean_of,
)
from nbv_bench.experiments.summary.thesis_tables import (
    compared_with_thesis,
    table_7_1,
    table_7_2,
    theory_table,
)
from nbv_bench.experiments.summary.time_tables import time_table
from nbv_bench.experiments.sweep import variants
from nbv_bench.optimum.best_sets import optimality, optimum_of
from nbv_bench.optimum.optimum_problem import Optimum
from nbv_bench.statistics import Episode, groups
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
    optima: dict[Place, Optimum] = {}
    for episode in episodes:
        if (place := place_of(episode)) not in optima:
            judge = Simulation(recorded_config(episode["config"])).judge
            visible = judge.truth.visible(judge.space.candidates)
            optima[place] = optimum_of(visible, judge.truth.scene)
            progress(len(optima))
    return optima


def place_of(episode: Episode) -> Place:
    """Return the place of an episode as it was written."""
    candidates = json.dumps(episode["config"]["views"], sort_keys=True)
    return episode["case"]["protocol"], episode["case"]["object"], candidates


def optimum_table(cases: pd.DataFrame, name: str) -> Table:
    """Average over the cases of one protocol, as :func:`with_optimum` gives them."""
    cells: sweep_tables.Cells = [
        mean_of(T95_OPTIMUM),
        lacking(NOT_REACHED, T95_OPTIMUM.name),
        mean_of(Column("true_regret", "R(T) (points)", 1, interval=True)),
        mean_of(Column("approximation_ratio", "ratio at the end", 4, interval=True)),
        mean_of(Column("least_ratio", "least ratio", 4, interval=True)),
        NUMBER,
        (Column("proved", "proved"), lambda group: int(group["proved"].sum())),
    ]
    title, parts = "Relative to the optimum", groups(cases, "planner")
    return grouped(name, title, _OPTIMUM_NOTE, [PLANNER], cells, parts)


def with_optimum(cases: pd.DataFrame, optima: Mapping[Place, Optimum]) -> pd.DataFrame:
    """The cases with what they are relative to the `optima`: columns of :func:`optimum_table`, NaN
    without a view. T95 over the least possible one is in per cent, NaN below 95 %.
    """
    seen = cases[cases[Metric.T.name] > 0]
    gaps = [
        optimality(ViewColumn.new_points.each(episode["views"]), optima[place_of(episode)])
        for episode in seen["episode"]
    ]
    columns = {
        T95_OPTIMUM.name: [100.0 * (gap.views_95_relative or math.nan) for gap in gaps],
        "true_regret": [gap.regret[-1] for gap in gaps],
        "approximation_ratio": [gap.approximation_ratio[-1] for gap in gaps],
        "least_ratio": [min(gap.approximation_ratio) for gap in gaps],
        "proved": [gap.proved for gap in gaps],
    }
    return cases.join(pd.DataFrame(columns, seen.index))


def report_tables(
    report: SweepReport, optima: Mapping[Place, Optimum] | None = None
) -> list[Table]:
    """All tables, those relative to the `optima` where these are known."""
    tables: list[Table | None] = [*sensitivity_tables(report)]
    for protocol in report.protocols:
        cases = report.of_protocol(protocol)
        suffix = report.suffix(protocol)
        tables += [table_7_1(cases, f"table_7_1{suffix}"), table_7_2(cases, f"table_7_2{suffix}")]
        if optima:
            cases = with_optimum(cases, optima)
            tables.append(optimum_table(cases, f"table_7_1_optimum{suffix}"))
        tables += [
            sweep_tables.object_table(cases, f"objects{suffix}"),
            time_table(report, protocol),
        ]
    if len(report.cases):
        tables += [
            compared_with_thesis(report.of_protocol("thesis")),
            sweep_tables.summary_table(report.of_protocol(*report.detailed)),
            sweep_tables.planner_table(pd.concat([report.cases, report.sweeps_in_hindsight])),
            sweep_tables.paired_table(report.cases),
            sweep_tables.certificate_table(report.cases),
            sweep_tables.timing_table(report.cases),
        ]
    if report.theory:
        tables.append(theory_table(report.theory, report.sweep["settings"]["mapper"]["delta"]))
    tables.append(sweep_tables.failure_table(report.failures))
    return [table for table in tables if table is not None]


def report_page(report: SweepReport, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Render the page from the tables of :func:`report_tables` and pictures, named with
    :meth:`SweepReport.suffix`.

    It contains no times, except those of a bench, so that the same results give the same page.
    """
    named = {table.name: table for table in tables}

    def section(
        name: str, title: str, shown: Iterable[str], folded: Iterable[str] = (), drawn: str = ""
    ) -> Section:
        """Those tables and the pictures called `drawn` that there are."""
        blocks: list[Block] = [
            *(named[one] for one in shown if one in named),
            *(Folded(named[one]) for one in folded if one in named),
            *(picture for picture in pictures if re.fullmatch(drawn, picture.name)),
        ]
        return Section(name, title, blocks)

    times = ["timing"] if "bench" in named else []
    sections = [
        section("bench", "Bench", ("bench", "bench_paired"), times, "bench"),
        section(
            "sensitivity",
            "What depends on scene and sensor",
            ("sensitivity_findings", "sensitivity"),
            drawn="sensitivity",
        ),
        section("summary", "Summary", ["summary"]),
    ]
    for protocol in report.protocols:
        suffix = report.suffix(protocol)
        shown = [f"{name}{suffix}" for name in ("time", "table_7_1", "table_7_1_optimum")]
        folded = [f"{name}{suffix}" for name in ("table_7_2", "objects")]
        folded += ["compared_with_thesis"] if protocol == "thesis" else []
        title = f"Results in the {protocol} protocol"
        drawn = f"{_OF_PROTOCOL}{re.escape(suffix)}"
        sections.append(section(suffix[1:] or protocol, title, shown, folded, drawn))
    title = "Regret on surfaces drawn from the prior"
    sections += [
        section("theory", title, ["theory"], drawn="theory"),
        section("planners", "All figures of merit", ("planners", "certificate"), ["paired"]),
        section("failures", "Failed cases", ["failures"]),
        _configuration_section(report),
    ]
    return render_page(
        f"Sweep {report.sweep['name']}",
        f"{report.progress}. {_size_of(report.sweep)}.",
        [section for section in sections if section.blocks],
        report.notes,
    )


_OF_PROTOCOL = "(?!bench|theory|sensitivity|tradeoff).*"
"""Names of the pictures of a protocol that hold no time."""


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
