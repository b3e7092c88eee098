"""Replaying a bag: do the same decisions come out, and what would another choice have been?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.bags.analysed import Analysis
from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.replay.events import MapperReset, recorded_events
from nbv_planner.bags.replay.lane import Lane, Update
from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.errors import BagError
from nbv_planner.evaluation.assembly import ViewEvidence
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.planners import Decision
from nbv_planner.topics import CAMERA_POSE, ITERATION, SCAN

# Angles and utilities are recorded so that they read back to the same number; other libraries may round otherwise.
_ANGLE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Choice:
    """What a planner chose at a recorded decision.

    Attributes:
        view_angle: where it would go, radians; None if nowhere.
        utility: value of its objective there.
        differs: whether that is another view than the recorded one.
        new_points: surface points that the view would have seen for the first time; None without true object.
    """

    view_angle: float | None
    utility: float | None
    differs: bool
    new_points: int | None


@dataclass(frozen=True)
class ReplayedDecision:
    """A recorded decision, made again.

    Attributes:
        recorded: what was recorded.
        choice: what came out.
        belief_gap: greatest difference between the mean contour from which it was made and the recorded one, metres;
            None for the prior and where no surface was recorded.
        new_points: surface points that the recorded view saw for the first time; None without true object.
    """

    recorded: RecordedDecision
    choice: Choice
    belief_gap: float | None
    new_points: int | None

    @property
    def utility_gap(self) -> float | None:
        """Difference between the utility that came out and the recorded one; None for another view."""
        if self.choice.differs or self.choice.utility is None:
            return None
        return abs(self.choice.utility - self.recorded.utility)


def replay(
    bag: Bag, analysis: Analysis, parameters: RunParameters, progress: Progress = lambda fraction: None
) -> list[ReplayedDecision]:
    """Feed the recorded scans and poses through mapper and planner again, and decide where the recorded planner did.

    The mapper hears the episodes before the analysed one too, for it keeps what it knows until it is reset itself.

    Args:
        bag: the bag.
        analysis: its analysis.
        parameters: parameters of mapper and planner: the recorded ones, or changed ones.
        progress: told of the fraction read.

    Raises:
        BagError: scans, poses or decisions are not in the bag.
        NbvPlannerError: a parameter is not allowed.
    """
    topics = analysis.recording.topics
    lacking = [name for name in (SCAN, CAMERA_POSE, ITERATION) if name not in topics.topics]
    if lacking:
        raise BagError(f"{bag.path} cannot be replayed: {', '.join(lacking)} is not in it")
    views, earlier = analysis.recording.assembly.views, analysis.recording.earlier
    lane = Lane(parameters, sorted(analysis.recording.surface_stamps))
    run = _Run(lane, views, analysis.recording.assembly.given_up, _fresh_judge(analysis))
    decisions = [*earlier, *(view.decision for view in views)]
    begin = views[0].decision.goal_stamp if views else 0
    for event in recorded_events(bag, topics, decisions, progress):
        if isinstance(event.what, RecordedDecision):
            if event.stamp >= begin:
                run.decide(event.what)
            lane.send(event.what)
        elif isinstance(event.what, MapperReset):
            lane.forget(event.stamp)
        else:
            lane.take(event.stamp, event.what)
    return run.decisions


def _fresh_judge(analysis: Analysis) -> EpisodeJudge | None:
    old = analysis.judge
    return None if old is None else EpisodeJudge(old.points, old.scene, old.candidates, old.shape, old.start_view_angle)


class _Run:
    """The decisions of a lane, one after the other."""

    def __init__(
        self, lane: Lane, views: Sequence[ViewEvidence], given_up: Sequence[tuple[RecordedDecision, int]],
        judge: EpisodeJudge | None,
    ) -> None:
        self._lane, self._judge = lane, judge
        self._recorded = {view.belief_stamp: view.belief for view in views if view.belief_stamp is not None}
        self._given_up = given_up
        self._visited: list[float] = []
        self.decisions: list[ReplayedDecision] = []

    def decide(self, recorded: RecordedDecision) -> None:
        given_up = {goal.view_angle: stamp for goal, stamp in self._given_up if stamp <= recorded.goal_stamp}
        own, update = self._lane.decide(recorded, self._visited, given_up)
        self.decisions.append(
            ReplayedDecision(
                recorded, self._choice(own, recorded), self._belief_gap(update), self._new_points(recorded.view_angle)
            )
        )
        self._visited.append(recorded.view_angle)
        if self._judge is not None:
            self._judge.add_view(recorded.view_angle, recorded.utility, recorded.milliseconds, None)

    def _choice(self, own: Decision | None, recorded: RecordedDecision) -> Choice:
        if own is None:
            return Choice(None, None, differs=True, new_points=None)
        apart = abs(float(angle_difference(own.view_angle, recorded.view_angle)))
        return Choice(own.view_angle, own.utility, apart > _ANGLE_TOLERANCE, self._new_points(own.view_angle))

    def _new_points(self, view_angle: float) -> int | None:
        return None if self._judge is None else int(self._judge.new_points(view_angle).sum())

    def _belief_gap(self, update: Update) -> float | None:
        known = self._recorded.get(update.stamp)
        if known is None or len(known.mean) != len(update.belief.mean):
            return None
        return float(np.abs(known.mean - update.belief.mean).max())
