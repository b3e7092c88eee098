"""Where the camera has been sent to."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.camera import CameraPose
from nbv_planner.planning.planners import Decision
from nbv_planner.surface import SurfaceBelief


@dataclass(frozen=True, eq=False)
class Target:
    """Where the camera has been sent to.

    Attributes:
        pose: where to stand and look.
        stamp: time of the decision, nanoseconds; names the target.
    """

    pose: CameraPose
    stamp: int


@dataclass(frozen=True, eq=False)
class Goal(Target):
    """A view that the camera has been sent to.

    Attributes:
        decision: why this view.
        round: number of the view, from 1.
        planning_milliseconds: time that the decision took.
        belief: belief from which it was made.
        belief_stamp: time of the newest scan in it, nanoseconds.
    """

    decision: Decision
    round: int
    planning_milliseconds: float
    belief: SurfaceBelief
    belief_stamp: int
