"""The account of a campaign: one row per case, and what went wrong that must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from nbv_planner.faults.campaign import REFERENCE, Campaign, Case
from nbv_planner.faults.outcome import Outcome

_HEAD = (
    "case", "runs", "as they must", "ended", "views", "true coverage", "recovered in s (median, longest)",
    "lost / twice unreported", "reported lost", "left out, counted by reason",
)


def account(campaign: Campaign, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything of a campaign as plain values: its settings, a row for each case that was run, and each run."""
    rows = []
    for case in campaign.cases:
        found = [outcome for outcome in outcomes if outcome.case == case.name]
        if found:
            rows.append(_row(case, found, reference_of(outcomes)))
    return {"campaign": campaign.as_dict(), "cases": rows, "runs": [outcome.to_json() for outcome in outcomes]}


def reference_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The run without faults, if it is there."""
    return next((outcome for outcome in outcomes if outcome.case == REFERENCE), None)


def _row(case: Case, outcomes: Sequence[Outcome], reference: Outcome | None) -> dict[str, Any]:
    recovered = [recovery.seconds for outcome in outcomes for recovery in outcome.recoveries]
    times = sorted(seconds for seconds in recovered if seconds is not None)
    drops: Counter[str] = Counter()
    for outcome in outcomes:
        drops.update(outcome.drops)
    problems = {
        f"{outcome.case}-{outcome.number:03d}": found
        for outcome in outcomes if (found := outcome.problems(case, reference))
    }
    return {
        "case": case.name,
        "runs": len(outcomes),
        "good": len(outcomes) - len(problems),
        "ended": dict(Counter(outcome.reason for outcome in outcomes)),
        "views": [min(len(o.visited) for o in outcomes), max(len(o.visited) for o in outcomes)],
        "coverage": [min(o.coverage for o in outcomes), median(o.coverage for o in outcomes)],
        "kills": len(recovered),
        "recovered": len(times),
        "recovery_seconds": [median(times), times[-1]] if times else None,
        "unreported_lost": sum(o.unreported_lost for o in outcomes),
        "unreported_twice": sum(o.unreported_twice for o in outcomes),
        "reported_lost": sum(o.lost_views for o in outcomes),
        "drops": dict(sorted(drops.items())),
        "same_as_reference": _same(outcomes, reference),
        "problems": problems,
    }


def _same(outcomes: Sequence[Outcome], reference: Outcome | None) -> int | None:
    """Number of runs with the views and the surface of the reference, bit for bit."""
    if reference is None:
        return None
    return sum(o.visited == reference.visited and o.digest == reference.digest for o in outcomes)


def markdown(content: Mapping[str, Any]) -> str:
    """The account as Markdown."""
    rows = content["cases"]
    lines = [
        f"# Fault campaign {content['campaign']['name']}", "",
        "A run is as it must be if it ended for a reason of its own, if every view that counts is in the map once or",
        "has been reported, and, where the case says so, if views and surface are those of the run without faults, bit",
        "for bit.", "",
        f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD),
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]
    problems = [(name, words) for row in rows for name, words in row["problems"].items()]
    if problems:
        lines += ["", "What must not be:", "", *(f"* `{name}`: {'; '.join(words)}" for name, words in problems)]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = row["recovery_seconds"]
    same = f"; {row['same_as_reference']} same as reference" if row["same_as_reference"] is not None else ""
    recovered = "" if times is None else f"{row['recovered']} of {row['kills']}: {times[0]:.1f}, {times[1]:.1f}"
    if times is None and row["kills"]:
        recovered = f"0 of {row['kills']}"
    low, high = row["views"]
    return [
        f"`{row['case']}`", str(row["runs"]), f"{row['good']} of {row['runs']}{same}",
        ", ".join(f"{reason} {number}" for reason, number in row["ended"].items()),
        str(low) if low == high else f"{low} to {high}",
        f"{row['coverage'][1]:.3f} (least {row['coverage'][0]:.3f})",
        recovered,
        f"{row['unreported_lost']} / {row['unreported_twice']}",
        str(row["reported_lost"]),
        ", ".join(f"{reason} {number}" for reason, number in row["drops"].items()) or "nothing",
    ]
