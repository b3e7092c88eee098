"""Run the three nodes with injected faults (kills, lost, delayed and broken messages), and check
each episode.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from campaigns.faults import (
    ACCOUNT_FILE,
    REFERENCE,
    TABLE_FILE,
    Campaign,
    DomainTakenError,
    FaultFolder,
    Outcome,
    Run,
    load_campaign,
    reference_of,
)
from nbv_planner.cli.options import require_ros
from nbv_planner.cli.output import ProgressLine

# Duration of an episode until the reference has been run, which does not need it.
_UNKNOWN = 0.0
_ATTEMPTS = 4
RunOne = Callable[[Run, Campaign, float, Path], Outcome]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "campaign",
        metavar="SCENARIO",
        nargs="?",
        default="standard",
        help="YAML file, or a campaign included in the package (default: standard)",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="results folder, new or empty unless --resume"
    )
    parser.add_argument("--resume", action="store_true", help="continue: keep finished runs")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    campaign = load_campaign(arguments.campaign)
    require_ros("fault campaigns need the nodes")
    from campaigns.fault_run import run_faults

    try:
        with FaultFolder(arguments.out, campaign, resume=arguments.resume) as folder:
            _run_all(folder, campaign, run_faults)
            outcomes = folder.outcomes()
    except KeyboardInterrupt:
        print(
            f"\nfinished runs are kept; continue with --resume ({arguments.out})", file=sys.stderr
        )
        raise
    return _summary(Path(arguments.out), campaign, outcomes)


def _run_all(folder: FaultFolder, campaign: Campaign, run_one: RunOne) -> None:
    """Run the unfinished runs, the reference first."""
    left, bad = [one for one in campaign.runs() if folder.outcome_of(one) is None], 0
    with ProgressLine(len(left), "runs") as progress:
        for number, one in enumerate(left, start=1):
            reference = reference_of(folder.outcomes())
            seconds = _UNKNOWN if reference is None else reference.seconds
            outcome = _on_its_own(run_one, one, campaign, seconds, folder)
            folder.keep(one, outcome)
            bad += bool(outcome.problems(one.case, reference))
            progress.show(number, f", {bad} with violations; {one.slug}: {outcome.reason}")
            if one.case.name == REFERENCE:
                folder.write_tables()


def _on_its_own(
    run_one: RunOne, one: Run, campaign: Campaign, seconds: float, folder: FaultFolder
) -> Outcome:
    """Run on a ROS domain without other nodes; retried if another run has chosen the same one."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return run_one(one, campaign, seconds, folder.fresh_folder(one))
        except DomainTakenError as error:
            print(f"\nretrying {one.slug}: {error}", file=sys.stderr)
    return run_one(one, campaign, seconds, folder.fresh_folder(one))


def _summary(path: Path, campaign: Campaign, outcomes: list[Outcome]) -> int:
    """Print the violations; exit code 1 if there are any."""
    reference, cases = reference_of(outcomes), {case.name: case for case in campaign.cases}
    bad = 0
    for outcome in outcomes:
        problems = outcome.problems(cases[outcome.case], reference)
        bad += bool(problems)
        for problem in problems:
            print(f"{outcome.case}-{outcome.number:03d}: {problem}")
    print(
        f"{len(outcomes) - bad} of {len(outcomes)} runs without violations: {path / TABLE_FILE},"
        f" {path / ACCOUNT_FILE}"
    )
    return 1 if bad else 0
