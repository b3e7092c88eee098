"""A campaign: cases of faults, each run several times with seeds of its own."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbv_planner.faults.kinds import Fault

Parameters = Mapping[str, Mapping[str, Any]]

REFERENCE = "reference"
"""Name of the case without any fault, which comes first: it says how long an episode takes and what it gives."""


@dataclass(frozen=True)
class Case:
    """Faults that happen together.

    Attributes:
        name: its name.
        faults: what goes wrong.
        repeats: how often it is run.
        parameters: parameters of the nodes on top of those of the campaign.
        expect_reference: whether every run must end with the views and the surface of the reference, bit for bit.
    """

    name: str
    faults: tuple[Fault, ...] = ()
    repeats: int = 1
    parameters: Parameters = field(default_factory=dict)
    expect_reference: bool = False


@dataclass(frozen=True)
class Run:
    """One run of a case.

    Attributes:
        case: the case.
        number: from 0.
        seed: seed of everything random in it.
    """

    case: Case
    number: int
    seed: int

    @property
    def slug(self) -> str:
        """Its name in the results folder."""
        return f"{self.case.name}-{self.number:03d}"

    def rng(self, part: int) -> np.random.Generator:
        """Random numbers of one part of the run, which do not hang on how many another part draws."""
        return np.random.default_rng([self.seed, part])


@dataclass(frozen=True)
class Campaign:
    """Cases that are run one after another.

    Attributes:
        name: its name.
        cases: the cases; the first is the reference.
        parameters: parameters of the nodes, by node name.
        seed: seed from which those of the runs follow.
        time_limit: seconds after which a run is given up.
        text: the file it was read from.
    """

    name: str
    cases: tuple[Case, ...]
    parameters: Parameters
    seed: int = 0
    time_limit: float = 60.0
    text: str = ""

    def runs(self) -> list[Run]:
        """All runs; those of the reference first."""
        return [
            Run(case, number, self._seed(case, number)) for case in self.cases for number in range(case.repeats)
        ]

    def _seed(self, case: Case, number: int) -> int:
        return zlib.crc32(f"{self.seed}/{case.name}/{number}".encode())

    def parameters_of(self, case: Case) -> dict[str, dict[str, Any]]:
        """Parameters of the nodes in a case."""
        nodes = {*self.parameters, *case.parameters}
        return {
            node: {**self.parameters.get(node, {}), **case.parameters.get(node, {})} for node in sorted(nodes)
        }

    def as_dict(self) -> dict[str, Any]:
        """Everything that decides what is run, as plain values."""
        return {
            "name": self.name, "seed": self.seed, "time_limit": self.time_limit,
            "parameters": {node: dict(values) for node, values in self.parameters.items()},
            "cases": {case.name: _case_dict(case) for case in self.cases},
        }


def _case_dict(case: Case) -> dict[str, Any]:
    return {
        "repeats": case.repeats, "expect_reference": case.expect_reference,
        "parameters": {node: dict(values) for node, values in case.parameters.items()},
        "faults": [{"kind": fault.kind, **dataclasses.asdict(fault)} for fault in case.faults],
    }
