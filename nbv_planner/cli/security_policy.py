"""Verb `security-policy`: the SROS 2 policy of the nodes."""

from __future__ import annotations

import argparse

from nbv_planner.security_policy import policy_xml


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("security-policy", help="print the SROS 2 policy of the nodes: topics and services")
    parser.add_argument("--enclave", default="/nbv_planner", metavar="PATH",
                        help="enclave of the launch; node n has PATH/n (default: /nbv_planner)")  # fmt: skip
    parser.add_argument("--namespace", default="", metavar="NS", help="namespace of the nodes")
    parser.add_argument("--use-sim-time", action="store_true", help="the nodes listen to /clock")
    parser.add_argument("--tf", action="store_true", help="poses come from transforms (pose_source: tf)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    print(policy_xml(
        arguments.enclave, arguments.namespace, use_sim_time=arguments.use_sim_time, transforms=arguments.tf
    ))
    return 0
