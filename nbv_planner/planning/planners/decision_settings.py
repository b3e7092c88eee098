"""Which planner decides, by which criteria: the settings, and planners of other packages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nbv_planner.planning.motion import TimeSettings
from nbv_planner.planning.objectives import (
    EXPECTED,
    OBJECTIVE_INFO,
    OBJECTIVE_PLUGINS,
    wrong_contract,
)
from nbv_planner.settings import PluggedSettings, Plugins, python_setting, setting
from nbv_planner.surface.coverage import TargetSettings

PLANNERS = ("greedy", "two_phase", "rollout", "tour", "hybrid", "uniform", "random")
"""Names of the planners."""


ON_SHAPES = ("rollout", "tour", "hybrid")
"""Those that depend on posterior shapes, whatever `objective` is."""


BLIND = ("uniform", "random")
"""Those that take no account of an objective."""


PLANNER_CHOICE = ("planner", "objective", "phase_one_objective")
"""Parameters that choose a planner together."""


def _no_planner(name: str, cls: Any) -> str:
    return (
        "an objective has this name, too"
        if name in OBJECTIVE_PLUGINS.names
        else wrong_contract(cls, "decide")
    )


PLANNER_PLUGINS = Plugins("planner", (*PLANNERS, *OBJECTIVE_INFO), _no_planner)
"""Planners of other packages. In tables one may bear the name of its objective: those are not
free.
"""
PLANNERS_IN_SPACE = ("rollout", "greedy", "tour", "random")
"""Names of the planners in space."""
SPACE_PLANNER_PLUGINS = Plugins("space_planner", PLANNERS_IN_SPACE, _no_planner)
"""Planners in space of other packages."""


@dataclass(frozen=True)
class DecisionSettings(PluggedSettings, TimeSettings, TargetSettings):
    """Which planner, which objective, and further criteria, whatever the surface."""

    plugins: ClassVar = {
        "planner": PLANNER_PLUGINS,
        "objective": OBJECTIVE_PLUGINS,
        "phase_one_objective": OBJECTIVE_PLUGINS,
    }
    planner: str = setting(
        "rollout",
        "Planner: rollout for the fewest views, tour for the least time, uniform for equal steps.",
        choices=PLANNERS,
    )
    objective: str = setting(
        "IOA",
        "Objective that ranks the views of greedy, and of two_phase in phase 2: for comparisons.",
        choices=OBJECTIVE_INFO,
    )
    phase_one_objective: str = python_setting(
        "CS",
        "Objective whose maximiser sets the interval in which two_phase chooses.",
        choices=OBJECTIVE_INFO,
    )
    sweep_views: int = python_setting(
        12,
        "Number of equally spaced views in a turn of uniform; later turns fill the gaps.",
        ge=1,
        le=100_000,
    )
    planner_seed: int = python_setting(
        0,
        "Seed of random, and of the posterior shapes of EMC and rollout.",
        ge=0,
        le=2**53,
    )
    first_views: int = python_setting(
        12,
        "rollout: number of views of largest EMC from which it looks ahead; tour: of largest EMC"
        " per second.",
        ge=1,
    )
    deadline: float = setting(
        1.0,
        "Time limit for a decision of rollout, after which the best answer so far is taken: raise"
        " it if the robot may wait.",
        unit="s",
        gt=0.0,
        read_only=False,
    )
    hybrid_factor: float = python_setting(
        2.0,
        "hybrid: largest ratio of its regret bound to that of U in the long run.",
        ge=1.0,
        read_only=False,
    )
    hybrid_share: float = python_setting(
        0.5,
        "hybrid: fraction of the bound of U that must be seen for the rollout to be followed"
        " regardless.",
        gt=0.0,
        le=1.0,
        read_only=False,
    )
    near_optimal_epsilon: float = python_setting(
        1.0,
        "Regret of one round, surface points, for which T0 of theorem 4.1 is reported where it is"
        " proved.",
        gt=0.0,
    )
    travel_weight: float = setting(
        0.0,
        "Utility subtracted per metre of path: raise it if driving is expensive; uniform and"
        " random only report it.",
        unit="1/m",
        ge=0.0,
        read_only=False,
    )
    revisit_radius: float = python_setting(
        0.1,
        "Candidates nearer than this to a view already taken are left out.",
        unit="rad",
        ge=0.0,
        le=math.pi,
        read_only=False,
    )
    look_every: float = python_setting(
        0.0,
        "Distance from look to look of a sensor that runs while the robot drives (integrate:"
        " always):"
        " tour counts what is seen on the way, and a simulated episode looks there; 0: at views"
        " only.",
        unit="m",
        ge=0.0,
        read_only=False,
    )
    refine: bool = python_setting(
        False,
        "Refine the best candidate of greedy, two_phase or rollout between its neighbours.",
        read_only=False,
    )
    tie_tolerance: float = python_setting(
        1e-9,
        "Relative difference below which two utilities count as equal; the first candidate wins.",
        ge=0.0,
        lt=1.0,
        read_only=False,
    )
    first_candidate: int = python_setting(
        -1,
        "Index of the candidate to take as first view if it may be chosen; -1 lets the planner"
        " choose.",
        ge=-1,
    )

    @property
    def label(self) -> str:
        """Short name for tables: the objective of greedy, both of two_phase (`CS-U`), else the
        planner's name.
        """
        labels = {
            "greedy": self.objective,
            "two_phase": f"{self.phase_one_objective}-{self.objective}",
        }
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
        """Whether the planner depends on posterior shapes, for which a belief must carry its
        evidence.
        """
        return EXPECTED in self.used_objectives


def named_choice(given: Mapping[str, str], planner: str) -> dict[str, str]:
    """Complete those of :data:`PLANNER_CHOICE` that were given to choose a planner.

    If the `planner` without them uses no objectives, an objective alone selects greedy, and with
    one for phase 1 two_phase.
    """
    if "planner" in given or planner not in ON_SHAPES or not given:
        return dict(given)
    return {**given, "planner": "two_phase" if "phase_one_objective" in given else "greedy"}
