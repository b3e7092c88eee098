"""Replay of a bag: are the decisions reproduced, and what would another planner have chosen?"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbv_planner.bags.analysis import RecordedEpisode
from nbv_planner.bags.reader import Bag
from nbv_planner.bags.replay.replayer import (
    MOUNT,
    Event,
    Replayer,
    SolidReplayer,
    recorded_events,
)
from nbv_planner.episode.log import LoggedView, Surface
from nbv_planner.episode.messages import PACE, RecordedDecision
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import BagError
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.planners import OVERLAP, Decision
from nbv_planner.planning.view_space import Exclusion, ViewSpace
from nbv_planner.session import events
from nbv_planner.session.loop import views
from nbv_planner.session.questions import Answer, EndQuestion, Question, Verdict
from nbv_planner.session.state import Goal
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import SENSOR_NAMES

# Recorded angles and utilities read back to the same number; other library versions may round
# differently.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Choice:
    """What a planner chose at a recorded decision."""

    view: CameraPose | None  #: where it would go; None if nowhere.
    utility: float | None  #: value of its objective there.
    differs: bool  #: whether that is another view than the recorded one.
    #: surface points that the view would have seen for the first time; None without true object.
    new_points: int | None


@dataclass(frozen=True)
class ReplayedDecision:
    """A recorded decision, made again."""

    recorded: RecordedDecision  #: what was recorded.
    view: CameraPose  #: the view of that.
    choice: Choice  #: what was replayed.
    #: greatest difference between the mean contour from which it was made and the recorded one,
    #: metres; None for the prior and where no surface was recorded.
    belief_gap: float | None
    #: surface points that the recorded view saw for the first time; None without true object.
    new_points: int | None

    @property
    def utility_gap(self) -> float | None:
        """Difference between the replayed utility and the recorded one; None for another view."""
        if self.choice.differs or self.choice.utility is None:
            return None
        return abs(self.choice.utility - self.recorded.utility)


def replay(
    bag: Bag,
    analysis: RecordedEpisode,
    parameters: RunParameters,
    progress: Callable[[int], None] = lambda done: None,
) -> list[ReplayedDecision]:
    """Feed the recorded scans and poses through mapper and planner again, and decide where the
    recorded planner did.

    The mapper also receives the episodes before the analysed one, for it keeps its map until it is
    reset itself. The parameters are the recorded ones, or changed ones; `progress` is called with
    the number of decisions made.

    Raises:
        BagError: scans, poses or decisions are not in the bag.
        NbvPlannerError: a parameter is not allowed.
    """
    topics = analysis.recording.topics
    log = analysis.recording.log
    if not parameters.nodes.get("surface_mapper"):
        raise BagError(
            "run_info does not hold the parameters of surface_mapper: give them with --params-file"
        )
    kept = _unchanged(parameters, log.parameters)
    stamps = sorted(log.surface_stamps)
    replayer = (
        SolidReplayer(parameters, stamps, log.known[1])
        if parameters.in_space
        else Replayer(parameters, stamps, log.map, log.known)
    )
    lacking = [name for name in replayer.needed if name not in topics.topics]
    if lacking:
        raise BagError(f"{bag.path} cannot be replayed: {', '.join(lacking)} is not in it")
    decisions = [*log.earlier, *(view.decision for view in log.views)]
    recorded = recorded_events(bag, topics, decisions, replayer.readers)
    world = RecordedWorld(replayer, analysis, recorded, kept)
    for number, _ in enumerate(views(replayer.core, world, world.choose), start=1):
        progress(number)
    return world.decisions


def _unchanged(parameters: RunParameters, recorded: RunParameters | None) -> set[str]:
    """Names of what the recorded mapper knew of sensor and mount and is replayed: unless other
    values are given now.
    """
    before, now = (
        one.nodes.get("surface_mapper", {}) if one else {} for one in (recorded, parameters)
    )
    return {name for name in (*SENSOR_NAMES, *MOUNT) if before.get(name) == now.get(name)}


def _apart(one: Surface, other: Surface) -> float | None:
    """Greatest difference of two mean contours, or of merged hits, metres; None of different
    models.
    """
    if isinstance(one, SurfaceBelief) and isinstance(other, SurfaceBelief):
        pairs = one.mean, other.mean
    elif isinstance(one, VolumeSurface) and isinstance(other, VolumeSurface):
        pairs = one.cells.hits.mean, other.cells.hits.mean
    else:
        return None
    same = pairs[0].shape == pairs[1].shape
    return float(np.abs(pairs[0] - pairs[1]).max(initial=0.0)) if same else None


def _unreachable(view: LoggedView, space: ViewSpace, circle: float) -> Sequence[CameraPose]:
    """The candidates that were left out since they, or others nearby, had not been reached."""
    candidates = view.candidates
    if candidates is None or candidates.excluded is None:
        return ()
    left_out = np.flatnonzero((candidates.excluded & Exclusion.UNREACHABLE) != 0)
    if space.on_circle:  # the candidates may be others than the recorded ones
        return [space.at_angle(angle) for angle in candidates.angle[left_out].tolist()]
    if candidates.z is not None:
        places = candidates.places[left_out]
        apart = np.linalg.norm(places[:, None] - space.candidates.position, axis=2)
        return [space.candidates[int(index)] for index in apart.argmin(axis=1)]
    known = candidates.views(circle, view.decision.centre)
    return [known[int(index)] for index in left_out]


def _alone(view: CameraPose) -> Decision:
    """The decision for a view where this planner has none to offer."""
    nothing = np.zeros(1)
    nan = math.nan
    return Decision(
        view, nan, nan, nan, nan, Poses.of([view]), nothing, nothing, nothing.astype(np.uint8)
    )


class RecordedWorld:
    """What is outside of the planner in a recording: the camera goes where it went, whatever is
    chosen.

    Each decision is made afresh, and judged as the recorded ones were; the goal is the recorded
    one.
    """

    def __init__(
        self,
        replayer: Replayer,
        analysis: RecordedEpisode,
        recorded: Iterator[Event],
        kept: Collection[str],
    ) -> None:
        """Go on to the first decision; of what the mapper knew of its sensor the names `kept` are
        replayed.
        """
        log = analysis.recording.log
        self.decisions: list[ReplayedDecision] = []
        self._replayer = replayer
        self._events = recorded
        self._kept = kept
        self._now = 0
        self._views = {view.decision.goal_stamp: view for view in log.views}
        self._given_up = log.given_up
        self._judge = analysis.judge and replace(analysis.judge, steps=[], views=[])
        self._beliefs = {
            view.belief_stamp: view.belief for view in log.views if view.belief_stamp is not None
        }
        self._next = self._to_next_decision()
        if self._next is not None:
            core = replayer.core
            core.inputs.pose = replayer.pose or self._next.view(replayer.scene.view_distance)
            events.take_surface(core, self.map(()), 0)

    def _to_next_decision(self) -> RecordedDecision | None:
        """Process what was recorded before the next decision of the episode, and return that."""
        for stamp, what in self._events:
            if isinstance(what, RecordedDecision) and stamp in self._views:
                return what
            if isinstance(what, dict):
                what = {name: value for name, value in what.items() if name in self._kept}
            self._replayer.receive(stamp, what)
        return None

    def now(self) -> int:
        """Time of the next decision, nanoseconds; later with each call."""
        self._now = max(self._now + 2, 0 if self._next is None else self._next.goal_stamp)
        return self._now

    def scan(self, goal: Goal) -> Sequence[MatchedScan]:
        """Go on to the next decision; the mapper takes the recorded scans itself."""
        assert self._next is not None
        self._replayer.receive(self._next.goal_stamp, self._next)
        self._next = self._to_next_decision()
        return ()

    def map(self, scans: Sequence[MatchedScan]) -> Surface:
        """The belief from which the next decision was made; the newest one behind the last
        decision.
        """
        return self._replayer.update_for(self._next).belief

    def choose(self, question: Question | EndQuestion) -> Answer | Verdict:
        """Decide, and answer with the recorded view; the episode ends behind the last recorded
        decision.
        """
        recorded = self._next
        if isinstance(question, EndQuestion) or recorded is None:
            ended = (
                None
                if recorded
                else Termination(TerminationReason.STOPPED, {}, "the recording ends")
            )
            return Verdict(math.nan, False, None, ended, None)
        view = recorded.view(self._replayer.scene.view_distance)
        own = self._decide(question, recorded)
        self._compare(recorded, view, own)
        went = _alone(view) if own is None else replace(own, view=view)
        return Answer(went, recorded.milliseconds)

    def _decide(self, question: Question, recorded: RecordedDecision) -> Decision | None:
        """What this planner chooses, None if no view may be chosen."""
        planner = question.planner
        replayer = self._replayer
        now = recorded.goal_stamp * 1e-9
        circle = replayer.scene.view_distance
        for view in _unreachable(self._views[recorded.goal_stamp], planner.views, circle):
            planner.views.mark_unreachable(view, math.nextafter(now, math.inf))
        for goal, stamp in self._given_up:
            if stamp <= recorded.goal_stamp:
                until = stamp * 1e-9 + replayer.session.unreachable_duration
                planner.views.mark_unreachable(goal.view(circle), until)
        if replayer.session.learn_speeds and recorded.pace is not None:
            pace: dict[str, Any] = dict(zip(PACE, recorded.pace, strict=True))
            planner.settings = replace(planner.settings, **pace)
        planner.scan_history = replayer.scan_history
        planner.update(question.belief, replayer.pose)
        return planner.decide(
            question.belief,
            current_view=replayer.pose,
            visited=question.visited,
            now=now,
            overlapping=recorded.decided_by == OVERLAP,
        )

    def _compare(self, recorded: RecordedDecision, view: CameraPose, own: Decision | None) -> None:
        """Keep what was chosen beside what was recorded, and take the recorded view."""
        choice = Choice(None, None, differs=True, new_points=None)
        if own is not None:
            # but for rounding
            same = Poses.of([own.view]).repeat(Poses.of([view]), _TOLERANCE).all()
            choice = Choice(own.view, own.utility, not same, self._new_points(own.view))
        update = self._replayer.update_for(recorded)
        known = self._beliefs.get(update.stamp)
        gap = None if known is None else _apart(known, update.belief)
        self.decisions.append(ReplayedDecision(recorded, view, choice, gap, self._new_points(view)))
        if self._judge is not None:
            passed = self._views[recorded.goal_stamp].passed
            self._judge.add_view(view, recorded.utility, recorded.milliseconds, None, passed)

    def _new_points(self, view: CameraPose) -> int | None:
        return None if self._judge is None else int(self._judge.new_points(view).sum())
