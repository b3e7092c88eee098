"""Coverage over the number of views of an episode that is under way."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.live.values import LiveView
from nbv_planner.visibility import observe

Series = list[tuple[int, float]]
"""Number of views and coverage, a fraction."""


def estimated_coverage(view: LiveView) -> Series:
    """Coverage as the planner estimates it: each decision says it for the views before it, the status for now."""
    known = {decision.round - 1: decision.coverage_estimate for decision in view.decisions}
    if view.status is not None:
        known[view.status.views] = view.status.coverage_estimate
    return [(number, value) for number, value in sorted(known.items()) if math.isfinite(value)]


def taken_angles(view: LiveView) -> FloatArray:
    """Angles of the views taken, in order; empty unless all of them are known."""
    number = 0 if view.status is None else view.status.views
    angles = [decision.view_angle for decision in view.decisions if decision.round <= number]
    return np.array(angles if len(angles) == number else [], dtype=float)


def true_coverage(view: LiveView) -> Series:
    """Fraction of the true surface points seen by the views so far; empty where the truth is not known."""
    angles = taken_angles(view)
    if view.truth is None or not len(angles):
        return []
    seen = observe(view.truth.angle, view.truth.radius, angles, view.scene)
    fraction = np.logical_or.accumulate(seen, axis=0).mean(axis=1)
    return [(0, 0.0), *((number, float(value)) for number, value in enumerate(fraction, start=1))]
