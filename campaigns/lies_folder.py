"""What is written of a campaign of lies: a row for each run, and tables by scenario and by kind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from statistics import median

from campaigns.lies import ERROR, SOON, Row, Run
from campaigns.running import CampaignFolder, as_csv
from campaigns.scenarios import HALVES
from nbv_planner.files.results_folder import write_whole

TABLE_FILE, KINDS_FILE, ROWS_FILE = "table.md", "kinds.md", "rows.csv"


class LiesFolder(CampaignFolder):
    """The results folder of a campaign of lies, or of honest worlds."""

    format, description, outcome = "nbv_planner lies", "campaign.txt", Row

    def __init__(self, path: str | Path, runs: Sequence[Run], *, resume: bool = False) -> None:
        """Refuse immediately what could not be written later.

        Raises:
            ResultsError: see :class:`nbv_bench.experiments.folder.RunFolder`.
        """
        content = {run.slug: repr(run) for run in runs}
        super().__init__(path, runs, content, "\n".join(content.values()) + "\n", resume=resume)

    def write_tables(self) -> None:
        """Write a line per run as CSV, and a line per scenario and per kind as Markdown."""
        rows: list[Row] = self.outcomes()
        names = [*(field.name for field in fields(Row)), "wrong", "what", "late"]
        lines = (
            {
                **asdict(row),
                "said": " | ".join(row.said),
                "wrong": row.wrong,
                "what": " ".join(row.what_is_wrong),
                "late": row.late,
            }
            for row in rows
        )
        write_whole(self.path / ROWS_FILE, as_csv(names, lines))
        write_whole(self.path / TABLE_FILE, as_markdown(rows))
        write_whole(self.path / KINDS_FILE, by_kind(rows))

    def unfinished(self) -> list[Run]:
        """Runs without a row, or with an error."""
        return [
            run
            for run in self._runs
            if (row := self.outcome_of(run)) is None or row.reason == ERROR
        ]


_HEAD = (
    "scenario",
    "runs",
    "ended",
    "warned",
    "views",
    "could be known",
    "first doubt",
    "reachable",
    "seen",
    "in the band",
    "RMSE (m)",
    "wrong successes",
)


def as_markdown(rows: Sequence[Row]) -> str:
    """One line per scenario: over its planners and seeds how often, and medians."""
    lines = [_line(_HEAD), _line("---" for _ in _HEAD)]
    for name, of_it in itertools.groupby(rows, key=lambda row: row.scenario):
        lines.append(_line(_summary(name, list(of_it))))
    wrong, said = sum(row.wrong for row in rows), sum(bool(row.said) for row in rows)
    known = [row for row in rows if row.known is not None]
    soon = sum(row.late is not None and row.late <= SOON for row in known)
    lines += [
        "",
        (
            f"{len(rows)} runs, {wrong} wrong successes, {said} with a warning. The untruth"
            f" could be known in {len(known)} of them, and was doubted within {SOON} views from"
            f" then on in {soon}."
        ),
        "",
    ]
    return "\n".join(lines)


def _summary(name: str, rows: Sequence[Row]) -> list[str]:
    reasons = Counter(row.reason for row in rows)
    medians = [
        _median((getattr(row, column) for row in rows), form)
        for column, form in (
            ("views", "{:.0f}"),
            ("known", "{:.0f}"),
            ("doubted", "{:.0f}"),
            ("reachable", "{:.0%}"),
            ("seen", "{:.0%}"),
            ("in_band", "{:.0%}"),
            ("rmse", "{:.2f}"),
        )
    ]
    return [
        f"`{name}`",
        str(len(rows)),
        ", ".join(f"{reason} {number}" for reason, number in reasons.most_common()),
        str(sum(bool(row.said) for row in rows)),
        *medians,
        str(sum(row.wrong for row in rows)),
    ]


def _median(values: Iterable[float | None], form: str) -> str:
    there = [value for value in values if value is not None]
    return form.format(median(there)) if there else "-"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_KIND_HEAD = (
    "kind",
    "runs",
    "successes",
    "wrong",
    "of them seen",
    "band",
    "beyond the band by RMSE",
    "doubtful",
    "views",
    "width of the band (m)",
    "in the band: median",
    "least of a success",
)


def by_kind(rows: Sequence[Row]) -> str:
    """One line per kind and half, and one for all: how many successes there are, and what is wrong
    with them.
    """
    lines = [_line(_KIND_HEAD), _line("---" for _ in _KIND_HEAD)]
    for kind, of_it in itertools.groupby(rows, key=kind_of):
        lines.append(_line(_kind_summary(f"`{kind}`", list(of_it))))
    lines += [_line(_kind_summary("all", rows)), ""]
    return "\n".join(lines)


def kind_of(row: Row) -> str:
    """Kind and half of its scenario, without the label; for an honest one, the set."""
    kind, half, *_ = row.scenario.split("-")
    return f"{kind}-{half}" if half in HALVES else row.scenario.rpartition("-")[2]


def _kind_summary(name: str, rows: Sequence[Row]) -> list[str]:
    successes = [row for row in rows if row.success]
    what = Counter(part for row in successes for part in row.what_is_wrong)
    least = min((row.in_band or 0.0 for row in successes), default=None)
    return [
        name,
        str(len(rows)),
        str(len(successes)),
        str(sum(row.wrong for row in rows)),
        *(str(what[part]) for part in ("seen", "band", "RMSE")),
        str(sum(row.reason == "DOUBTFUL" for row in rows)),
        _median((row.views for row in rows), "{:.0f}"),
        _median((row.width for row in rows), "{:.2f}"),
        _median((row.in_band for row in rows), "{:.0%}"),
        _median([least], "{:.0%}"),
    ]
