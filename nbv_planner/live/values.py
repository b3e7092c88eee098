"""Values that a live view is made of. Immutable: they may be read in any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nbv_planner.camera import CameraPose
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.objects import SurfacePoints
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief


@dataclass(frozen=True, eq=False)
class CandidateValues:
    """Candidate views of a decision, each array of shape (V,).

    Attributes:
        angle: where they stand, radians.
        utility: value of the objective.
        feasible: which may be chosen.
    """

    angle: FloatArray
    utility: FloatArray
    feasible: BoolArray


@dataclass(frozen=True, eq=False)
class LiveDecision:
    """A decision of the planner.

    Attributes:
        round: number of the view, from 1.
        goal_stamp: time of its goal, nanoseconds.
        view_angle: where the camera is sent, radians.
        utility: value of the objective there.
        runner_up: angle of the next best candidate, radians; NaN if there is none.
        margin: score above the runner-up's; NaN if there is none.
        milliseconds: time that it took.
        coverage_estimate: estimated coverage before this view.
        candidates: what it chose from, None while that has not arrived or if it never did.
    """

    round: int
    goal_stamp: int
    view_angle: float
    utility: float
    runner_up: float
    margin: float
    milliseconds: float
    coverage_estimate: float
    candidates: CandidateValues | None = None


@dataclass(frozen=True)
class LiveStatus:
    """What the planner says of itself.

    Attributes:
        state: WAITING, PLANNING, MOVING, MEASURING, PAUSED or DONE.
        message: what it waits for, or why it ended.
        views: number of views taken.
        coverage_estimate: estimated coverage now.
        coverage_interval: its lower and upper bound; None where the posterior shapes are not asked.
        elapsed: time since the start, seconds.
        reason: why it ended, empty before.
    """

    state: str
    message: str
    views: int
    coverage_estimate: float
    elapsed: float
    reason: str = ""
    coverage_interval: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class LiveView:
    """Everything that is known at one moment.

    Attributes:
        title: object, planner and objective, as far as they are known.
        scene: cone and bounds; the defaults until they are known.
        status: None until the planner has been heard.
        decisions: in order of rounds.
        belief: the newest surface belief.
        truth: the true surface points, in a simulation.
        earlier_hits: measurements of earlier views; those from before this view was opened are not known.
        last_hits: measurements of the last view.
        pose: where the camera is.
        goal: where it was sent.
        waits_for: topics of which nothing has been heard, in words.
        versions: a number for each section that changes with it.
    """

    title: str
    scene: Scene
    status: LiveStatus | None
    decisions: tuple[LiveDecision, ...]
    belief: SurfaceBelief | None
    truth: SurfacePoints | None
    earlier_hits: Measurements
    last_hits: Measurements
    pose: CameraPose | None
    goal: CameraPose | None
    waits_for: tuple[str, ...]
    versions: Mapping[str, int]
