"""Verb `objectives`: what is known about each objective."""

from __future__ import annotations

import argparse

from nbv_planner.planning.objectives import OBJECTIVE_INFO, REQUIREMENTS


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("objectives", help="list the objectives and what is known about each")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    print("requirements: " + ", ".join(f"R{i} {name}" for i, name in enumerate(REQUIREMENTS, start=1)))
    print(f"{'id':5}{'name':32}{'R1..R6':8}{'needs the object':18}regret")
    for info in OBJECTIVE_INFO.values():
        needs = "yes" if info.needs_truth else "no"
        caveat = f"; {info.caveat}" if info.caveat else ""
        print(f"{info.id:5}{info.name:32}{info.requirements:8}{needs:18}{info.proof}{caveat}")
    return 0
