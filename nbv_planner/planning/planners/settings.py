"""Settings of the planners: which one, which objectives, and what counts besides them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from nbv_planner.planning.objectives import EXPECTED, OBJECTIVE_INFO
from nbv_planner.planning.shapes.settings import ShapeSettings
from nbv_planner.settings import setting

PLANNERS = ("greedy", "two_phase", "rollout", "hybrid", "horizon", "uniform", "random")
"""Names of the planners."""

ON_SHAPES = ("rollout", "hybrid", "horizon")
"""Those that look at posterior shapes, whatever `objective` says."""


@dataclass(frozen=True)
class PlannerSettings(ShapeSettings):
    """Which planner, which objective, and what counts besides it.

    Raises:
        SettingError: a value is out of range.
    """

    planner: str = setting("greedy", "Planner.", choices=PLANNERS)
    objective: str = setting(
        "IOA", "Objective that ranks the candidate views; in two_phase that of phase 2. rollout takes EMC.",
        choices=OBJECTIVE_INFO,
    )
    phase_one_objective: str = setting(
        "CS", "Objective whose maximiser sets the interval in which two_phase chooses.", choices=OBJECTIVE_INFO
    )
    sweep_views: int = setting(
        12, "Number of equally spaced views in a turn of uniform; later turns fill the gaps.", ge=1, le=100_000
    )
    planner_seed: int = setting(0, "Seed of random, and of the posterior shapes of EMC and rollout.", ge=0, le=2**53)
    hybrid_factor: float = setting(
        2.0, "hybrid: how often as large as that of U its regret bound may be in the long run.", ge=1.0,
        read_only=False,
    )
    hybrid_share: float = setting(
        0.5, "hybrid: part of what U promises that must be seen for the rollout to be followed regardless.",
        gt=0.0, le=1.0, read_only=False,
    )
    travel_weight: float = setting(
        0.0, "Price of travel: utility lost per metre along the view circle; uniform and random only report it.",
        unit="1/m", ge=0.0, read_only=False,
    )
    revisit_radius: float = setting(
        0.1, "Candidates nearer than this to a view already taken are left out.", unit="rad", ge=0.0, le=math.pi,
        read_only=False,
    )
    refine: bool = setting(
        False, "Refine the best candidate of greedy or two_phase between its neighbours.", read_only=False
    )
    tie_tolerance: float = setting(
        1e-9, "Relative difference below which two utilities count as equal; the first candidate wins.",
        ge=0.0, lt=1.0, read_only=False,
    )
    first_candidate: int = setting(
        -1, "Index of the candidate to take as first view if it may be chosen; -1 lets the planner choose.", ge=-1
    )

    @property
    def label(self) -> str:
        """Short name for tables: the objective of greedy, both of two_phase (`CS-U`), else the planner's name."""
        labels = {"greedy": self.objective, "two_phase": f"{self.phase_one_objective}-{self.objective}"}
        return labels.get(self.planner, self.planner)

    @property
    def used_objectives(self) -> tuple[str, ...]:
        """Ids of the objectives that the planner evaluates; the last one gives the utilities."""
        if self.planner in ON_SHAPES:
            return (EXPECTED,)
        phases = (self.phase_one_objective,) if self.planner == "two_phase" else ()
        return (*phases, self.objective)

    @property
    def draws_shapes(self) -> bool:
        """Whether the planner looks at posterior shapes, for which a belief must say what it rests on."""
        return EXPECTED in self.used_objectives


def named_choice(given: Mapping[str, str], planner: str) -> dict[str, str]:
    """Complete the options that somebody named to choose a planner.

    Args:
        given: those of `planner`, `objective` and `phase_one_objective` that were named.
        planner: the planner without them. If that one does not look at objectives, an objective alone asks for greedy,
            and with one for phase 1 for two_phase.
    """
    if "planner" in given or planner not in ON_SHAPES or not given:
        return dict(given)
    return {**given, "planner": "two_phase" if "phase_one_objective" in given else "greedy"}
