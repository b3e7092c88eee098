"""Quantities of the thesis's analysis (ch. 6): information gain, its capacity, and the regret bound."""

from nbv_planner.evaluation.theory.capacity import (
    CapacityConstants,
    capacity_constants,
    printed_capacity_constants,
    spectral_capacity_bound,
)
from nbv_planner.evaluation.theory.information import greedy_capacity, information_gain
from nbv_planner.evaluation.theory.regret import RegretBound, printed_regret_bound, regret_bound

__all__ = [
    "CapacityConstants",
    "RegretBound",
    "capacity_constants",
    "greedy_capacity",
    "information_gain",
    "printed_capacity_constants",
    "printed_regret_bound",
    "regret_bound",
    "spectral_capacity_bound",
]
