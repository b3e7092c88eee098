"""Putting an episode together again from what its nodes have sent, in whichever order it arrives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nbv_planner.camera import CameraPose, MeasurementSettings, Scan, scan_to_measurements
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.evaluation.records import Step
from nbv_planner.message_values import Candidates
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief

T = TypeVar("T")

# Scans, poses and surfaces are kept until the decision that they belong to has come.
_KEPT, _KEPT_BYTES = 400, 32 * 2**20


@dataclass(eq=False)
class ViewEvidence:
    """What has been sent about one view; None for what has not come (yet).

    Attributes:
        decision: why the view was chosen.
        candidates: candidate views of the decision.
        belief_stamp: time of the newest scan in the belief after the view, nanoseconds.
        belief: that belief.
        scan: the scan taken.
        pose: where it was taken.
    """

    decision: RecordedDecision
    candidates: Candidates | None = None
    belief_stamp: int | None = None
    belief: SurfaceBelief | None = None
    scan: Scan | None = None
    pose: CameraPose | None = None

    def measurements(self, scene: Scene, settings: MeasurementSettings) -> Measurements | None:
        """What was measured from the view, None without scan or pose."""
        if self.scan is None or self.pose is None:
            return None
        return scan_to_measurements(self.scan, self.pose, scene, settings).measurements

    def step(self, scene: Scene, settings: MeasurementSettings) -> Step | None:
        """The view as a step of an episode, None until all of it has come."""
        measurements = self.measurements(scene, settings)
        if self.candidates is None or self.belief is None or measurements is None:
            return None
        return Step(
            view_angle=self.decision.view_angle, objective_value=self.decision.utility,
            candidates=self.candidates.angle, utilities=self.candidates.utility, belief=self.belief,
            measurements=measurements, milliseconds=self.decision.milliseconds,
        )


class _Recent(Generic[T]):
    """Functions that give values, by stamp; only the newest are kept."""

    def __init__(self) -> None:
        self._entries: OrderedDict[int, tuple[Callable[[], T], int]] = OrderedDict()
        self._bytes = 0

    @property
    def stamps(self) -> tuple[int, ...]:
        return tuple(self._entries)

    def keep(self, stamp: int, read: Callable[[], T], size: int) -> None:
        self._bytes += size - self._entries.pop(stamp, (read, 0))[1]
        self._entries[stamp] = (read, size)
        while len(self._entries) > _KEPT or (self._bytes > _KEPT_BYTES and len(self._entries) > 1):
            self._bytes -= self._entries.popitem(last=False)[1][1]

    def read(self, stamp: int) -> T | None:
        """The value of a stamp; None if it is not there or cannot be used."""
        try:
            return self._entries[stamp][0]() if stamp in self._entries else None
        except InputRejectedError:
            return None


class EpisodeAssembly:
    """Gives each decision the candidates, surface, scan and pose that belong to it.

    Candidates carry the stamp of their decision. The surface of a view is the earliest one whose newest scan was taken
    after the decision and before the next one; its scan and pose are those with the same stamp. Values are handed in
    as functions that give them (with the number of bytes that they hold meanwhile), so that what belongs to no decision
    is never read; a function that raises InputRejectedError has nothing to give, as for the nodes.

    Attributes:
        views: what is known of each view, in the order of the decisions.
        given_up: goals that were not reached, each with the stamp of the decision that took its place, nanoseconds.
    """

    def __init__(self) -> None:
        """Start without anything."""
        self.views: list[ViewEvidence] = []
        self.given_up: list[tuple[RecordedDecision, int]] = []
        self._candidates: _Recent[Candidates] = _Recent()
        self._surfaces: _Recent[SurfaceBelief] = _Recent()
        self._scans: _Recent[Scan] = _Recent()
        self._poses: _Recent[CameraPose] = _Recent()

    def next_episode(self) -> EpisodeAssembly:
        """An episode that begins now; what has come already for its first decision is kept."""
        following = EpisodeAssembly()
        following._candidates, following._surfaces = self._candidates, self._surfaces
        following._scans, following._poses = self._scans, self._poses
        return following

    def add_decision(self, decision: RecordedDecision) -> None:
        """Take in a decision; the same one again changes nothing, another one of the same round takes its place."""
        last = self.views[-1].decision if self.views else None
        if last is not None and last.goal_stamp == decision.goal_stamp:
            return
        if last is not None and last.round == decision.round:
            self.given_up.append((self.views.pop().decision, decision.goal_stamp))
        for view in self.views[-1:]:
            if view.belief_stamp is not None and view.belief_stamp >= decision.goal_stamp:
                view.belief_stamp = view.belief = view.scan = view.pose = None
        self.views.append(ViewEvidence(decision))
        for stamp in self._surfaces.stamps:
            self._offer_surface(stamp)
        self._offer_candidates(decision.goal_stamp)

    def add_candidates(self, stamp: int, read: Callable[[], Candidates], size: int = 0) -> None:
        """Take in the candidates of the decision made at `stamp` (nanoseconds)."""
        self._candidates.keep(stamp, read, size)
        self._offer_candidates(stamp)

    def add_surface(self, stamp: int, read: Callable[[], SurfaceBelief], size: int = 0) -> None:
        """Take in a belief whose newest scan is from `stamp` (nanoseconds)."""
        self._surfaces.keep(stamp, read, size)
        self._offer_surface(stamp)

    def add_scan(self, stamp: int, read: Callable[[], Scan], size: int = 0) -> None:
        """Take in a scan (`stamp` in nanoseconds)."""
        self._scans.keep(stamp, read, size)
        self._offer_data(self._view_at(stamp))

    def add_pose(self, stamp: int, read: Callable[[], CameraPose], size: int = 0) -> None:
        """Take in a camera pose (`stamp` in nanoseconds)."""
        self._poses.keep(stamp, read, size)
        self._offer_data(self._view_at(stamp))

    def _view_at(self, stamp: int) -> ViewEvidence | None:
        """The view that the camera was taking at `stamp`, None before the first decision."""
        return next((view for view in reversed(self.views) if view.decision.goal_stamp <= stamp), None)

    def _offer_candidates(self, stamp: int) -> None:
        view = self._view_at(stamp)
        if view is not None and view.candidates is None and view.decision.goal_stamp == stamp:
            view.candidates = self._candidates.read(stamp)

    def _offer_surface(self, stamp: int) -> None:
        view = self._view_at(stamp)
        if view is None or (view.belief_stamp is not None and view.belief_stamp <= stamp):
            return
        belief = self._surfaces.read(stamp)
        if belief is not None:
            view.belief_stamp, view.belief, view.scan, view.pose = stamp, belief, None, None
            self._offer_data(view)

    def _offer_data(self, view: ViewEvidence | None) -> None:
        """Give a view the scan and the pose that its surface rests on."""
        if view is not None and view.belief_stamp is not None:
            view.scan = view.scan or self._scans.read(view.belief_stamp)
            view.pose = view.pose or self._poses.read(view.belief_stamp)
