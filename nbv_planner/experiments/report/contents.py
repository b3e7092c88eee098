"""All tables of a sweep, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.experiments.cases import THEORY_MEASURES
from nbv_planner.experiments.report.cases import case_figures, distinct, in_sweep_order, reference_planner
from nbv_planner.experiments.report.certificate_table import certificate_table
from nbv_planner.experiments.report.comparison import ComparedCase, compare_cases
from nbv_planner.experiments.report.planner_tables import paired_table, planner_table
from nbv_planner.experiments.report.published import compared_with_thesis
from nbv_planner.experiments.report.run_tables import failure_table, planner_settings_table, timing_table, version_table
from nbv_planner.experiments.report.theory_table import theory_table
from nbv_planner.experiments.report.thesis_tables import table_7_1, table_7_2
from nbv_planner.experiments.sweep_results import SweepResults
from nbv_planner.objects import sets_within
from nbv_planner.reports.page import Block, Folded, Listing, Picture, Section, render_page
from nbv_planner.reports.table import Table


@dataclass(frozen=True)
class SweepReport:
    """A sweep as the report sees it.

    Attributes:
        manifest: content of the manifest.
        episodes: the finished episodes in the order of the sweep.
        theory: runs against the regret bound in the order of the sweep.
        failures: the failed cases.
        finished: number of finished cases, whatever was measured in them.
        cases: the finished episodes in numbers, compared with each other, in the same order.
        reference: label of the omniscient greedy planner, None if the sweep has none.
    """

    manifest: Mapping[str, Any]
    episodes: Sequence[Mapping[str, Any]]
    theory: Sequence[Mapping[str, Any]]
    failures: Sequence[Mapping[str, Any]]
    finished: int
    cases: Sequence[ComparedCase]
    reference: str | None

    @property
    def sweep(self) -> Mapping[str, Any]:
        """What was to be run."""
        sweep: Mapping[str, Any] = self.manifest["sweep"]
        return sweep

    @property
    def protocols(self) -> list[str]:
        """Protocols of the finished episodes."""
        return distinct(c.case.trial.protocol for c in self.cases)

    def of_protocol(self, protocol: str) -> list[ComparedCase]:
        """The cases of one protocol."""
        return [c for c in self.cases if c.case.trial.protocol == protocol]

    def suffix(self, protocol: str) -> str:
        """Ending of the names of files that hold one protocol: none if there is no other one."""
        return f"_{protocol}" if len(self.protocols) > 1 else ""

    @property
    def progress(self) -> str:
        """How much of the sweep is there, in words."""
        return f"{self.finished} of {self.manifest['cases']} cases, {len(self.failures)} failed"


def sweep_report(results: SweepResults) -> SweepReport:
    """Compare the episodes of a sweep with each other."""
    sweep = results.manifest["sweep"]
    episodes = in_sweep_order(results.episodes, sweep)
    reference = reference_planner(sweep["planners"])
    cases = compare_cases([case_figures(episode) for episode in episodes], reference)
    finished = sum(len(records) for records in results.measured.values())
    theory = [row for measure in THEORY_MEASURES for row in results.measured.get(measure, [])]
    return SweepReport(results.manifest, episodes, theory, results.failures, finished, cases, reference)


def report_tables(report: SweepReport) -> list[Table]:
    """All tables that need nothing but the episodes."""
    tables = []
    for protocol in report.protocols:
        cases, suffix = report.of_protocol(protocol), report.suffix(protocol)
        tables += [table_7_1(cases, f"table_7_1{suffix}"), table_7_2(cases, f"table_7_2{suffix}")]
    compared = compared_with_thesis(report.of_protocol("thesis"))
    if report.cases:
        tables += [*([compared] if compared else []), planner_table(report.cases), paired_table(report.cases)]
        certificate = certificate_table(report.episodes)
        tables += [*([certificate] if certificate else []), timing_table(report.episodes, report.cases)]
    if report.theory:
        tables.append(theory_table(report.theory, report.sweep["settings"]["mapper"]["delta"]))
    return [*tables, failure_table(report.failures)]


def report_page(report: SweepReport, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Render the page.

    Times are left out of it, so that the same results give the same page.

    Args:
        report: the sweep.
        tables: the tables of :func:`report_tables` and :mod:`.optimum_table`.
        pictures: pictures; their names end in :meth:`SweepReport.suffix`.
    """
    sections = [_protocol_section(report, protocol, tables, pictures) for protocol in report.protocols]
    named = {table.name: table for table in tables}
    if report.theory:
        drawn = [picture for picture in pictures if picture.name == "theory"]
        sections.append(Section("theory", "Regret on surfaces drawn from the prior", [named["theory"], *drawn]))
    if report.cases:
        shown = [named[name] for name in ("planners", "certificate") if name in named]
        sections.append(Section("planners", "All figures of merit", [*shown, Folded(named["paired"])]))
    sections += [
        Section("failures", "Failed cases", [named["failures"]]),
        Section("configuration", "What was run", _configuration(report)),
    ]
    name = str(report.sweep["name"])
    return render_page(f"Sweep {name}", f"{report.progress}. {_in_words(report.sweep)}", sections)


def _protocol_section(
    report: SweepReport, protocol: str, tables: Sequence[Table], pictures: Sequence[Picture]
) -> Section:
    suffix = report.suffix(protocol)
    named = {table.name: table for table in tables}
    drawn = [p for p in pictures if p.name.endswith(suffix) and not p.name.startswith(("theory", "tradeoff"))]
    shown = [f"table_7_1{suffix}", f"table_7_1_optimum{suffix}"]
    folded = [f"table_7_2{suffix}", f"objects{suffix}", f"paired_objects{suffix}"]
    folded += ["compared_with_thesis"] if protocol == "thesis" else []
    blocks: list[Block] = [
        *(named[name] for name in shown if name in named),
        *(Folded(named[name]) for name in folded if name in named),
        *drawn,
    ]
    return Section(protocol, f"Results in the {protocol} protocol", blocks)


def _configuration(report: SweepReport) -> list[Block]:
    content = {key: value for key, value in report.sweep.items() if key != "name"}
    return [
        planner_settings_table(report.sweep["planners"], report.reference),
        version_table(report.manifest["versions"]),
        Listing("Objects and all settings", json.dumps(content, indent=2, ensure_ascii=False)),
    ]


def _in_words(sweep: Mapping[str, Any]) -> str:
    """Count what the sweep multiplies."""
    parts = [(len(sweep[key]), key) for key in ("objects", "planners", "protocols", "seeds")]
    product = " × ".join(f"{number} {word if number != 1 else word[:-1]}" for number, word in parts)
    sets = sets_within(sweep["objects"])
    held = f", among them the whole {'sets' if len(sets) > 1 else 'set'} {', '.join(sets)}" if sets else ""
    return f"{product}{held}."
