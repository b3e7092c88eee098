"""Verb `faults`: let things go wrong on purpose, and see what becomes of the episode."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from nbv_planner.cli.progress_line import ProgressLine
from nbv_planner.cli.ros_access import require_ros
from nbv_planner.errors import DomainTakenError
from nbv_planner.experiments.fault_file import load_campaign
from nbv_planner.experiments.fault_folder import ACCOUNT_FILE, TABLE_FILE, FaultFolder
from nbv_planner.faults.campaign import REFERENCE, Campaign, Run
from nbv_planner.faults.outcome import Outcome
from nbv_planner.faults.tables import reference_of

# Stands for the time that an episode takes as long as the reference, which needs none, has not been run.
_UNKNOWN = 0.0
_ATTEMPTS = 4

RunOne = Callable[[Run, Campaign, float, Path], Outcome]


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("faults", help="run the three nodes with faults injected: killed, cut off, misled")
    parser.add_argument(
        "campaign", metavar="SCENARIO", nargs="?", default="standard",
        help="YAML file, or a campaign that comes with the package (default: standard)",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="results folder, new or empty unless --resume")
    parser.add_argument("--resume", action="store_true", help="go on with a folder: finished runs are kept")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    campaign = load_campaign(arguments.campaign)
    require_ros("fault campaigns need the nodes")
    from nbv_planner.ros.fault_run import run_faults

    try:
        with FaultFolder(arguments.out, campaign, resume=arguments.resume) as folder:
            _run_all(folder, campaign, run_faults)
            outcomes = folder.outcomes()
    except KeyboardInterrupt:
        print(f"\nfinished runs are kept; go on with the same command and --resume ({arguments.out})", file=sys.stderr)
        return 130
    return _summary(Path(arguments.out), campaign, outcomes)


def _run_all(folder: FaultFolder, campaign: Campaign, run_one: RunOne) -> None:
    """Run what has not been run, the reference first."""
    left = [one for one in campaign.runs() if folder.outcome_of(one) is None]
    progress = ProgressLine(len(left), "runs")
    cases = {case.name: case for case in campaign.cases}
    bad = 0
    for number, one in enumerate(left, start=1):
        reference = reference_of(folder.outcomes())
        seconds = _UNKNOWN if reference is None else reference.seconds
        outcome = _on_its_own(run_one, one, campaign, seconds, folder)
        folder.keep(one, outcome)
        bad += bool(outcome.problems(cases[one.case.name], reference))
        progress.show(number, f", {bad} not as they must be; {one.slug}: {outcome.reason}")
        if one.case.name == REFERENCE:
            folder.write_account()
    if left:
        progress.end()


def _on_its_own(run_one: RunOne, one: Run, campaign: Campaign, seconds: float, folder: FaultFolder) -> Outcome:
    """Run on a ROS domain that nobody else uses: on a busy machine two may choose the same one."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return run_one(one, campaign, seconds, folder.fresh_folder(one))
        except DomainTakenError as error:
            print(f"\n{one.slug} is run again: {error}", file=sys.stderr)
    return run_one(one, campaign, seconds, folder.fresh_folder(one))


def _summary(path: Path, campaign: Campaign, outcomes: list[Outcome]) -> int:
    """Say what went wrong that must not; exit code 1 if anything did."""
    reference, cases = reference_of(outcomes), {case.name: case for case in campaign.cases}
    bad = 0
    for outcome in outcomes:
        problems = outcome.problems(cases[outcome.case], reference)
        bad += bool(problems)
        for problem in problems:
            print(f"{outcome.case}-{outcome.number:03d}: {problem}")
    print(f"{len(outcomes) - bad} of {len(outcomes)} runs as they must be: {path / TABLE_FILE}, {path / ACCOUNT_FILE}")
    return 1 if bad else 0
