"""Episodes in one process, run to their end."""

from __future__ import annotations

from nbv_planner.episode.simulation import Simulation
from nbv_planner.planning.endings import Termination


def end_of(simulation: Simulation) -> Termination:
    """Run the episode; returns why it ended."""
    return simulation.finish().termination
