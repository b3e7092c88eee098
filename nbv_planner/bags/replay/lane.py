"""Mapper and planner as they were, or changed, fed with what was recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.camera import CameraPose, MeasurementSettings, Scan
from nbv_planner.camera_poses import PoseSettings
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.planning.planners import Decision, PlannerSettings, planner_named
from nbv_planner.planning.session import SessionSettings
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings
from nbv_planner.robust.mapper import mapper_for
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.scan_mapping import map_scans
from nbv_planner.scan_matching import ArrivalSettings, MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.scene import Scene
from nbv_planner.settings import from_mapping
from nbv_planner.surface import MapperSettings, SurfaceBelief

# A decision may have been made from a belief some updates older than the newest one.
_KEPT = 50


@dataclass(frozen=True, eq=False)
class Update:
    """A belief, and the time of the newest scan in it (nanoseconds; 0 for the prior)."""

    stamp: int
    belief: SurfaceBelief


class Lane:
    """One mapper and one planner, with parameters of their own, on the recorded way of the camera.

    The camera stands where the recorded planner sent it; so scans count at the recorded goals, and the views taken
    before a decision are the recorded ones, whatever this planner would have liked.
    """

    def __init__(self, parameters: RunParameters, surface_stamps: Sequence[int] = ()) -> None:
        """Build mapper and planner.

        Args:
            parameters: parameters of the nodes.
            surface_stamps: stamps of the recorded surfaces, rising; where every scan counts they say which scans were
                mapped together.

        Raises:
            NbvPlannerError: a value is not allowed.
        """
        mapper, planner = (parameters.nodes.get(name, {}) for name in ("surface_mapper", "nbv_planner"))
        self._scene = from_mapping(Scene, mapper or planner)
        self._measurement = from_mapping(MeasurementSettings, mapper)
        matching = from_mapping(MatchingSettings, mapper)
        self._poses = from_mapping(PoseSettings, mapper)
        self._matcher = ScanMatcher(matching, from_mapping(ArrivalSettings, mapper))
        self._ends = deque(stamp for stamp in surface_stamps if stamp > 0 and matching.integrate == "always")
        self._batch: list[MatchedScan] = []
        self._newest_view = -1
        self._mapper = mapper_for(
            from_mapping(KernelSettings, mapper).build(), from_mapping(MapperSettings, mapper),
            from_mapping(RobustSettings, mapper),
        )
        settings = from_mapping(PlannerSettings, planner)
        self.planner = planner_named(settings, self._scene, ViewSpace(from_mapping(ViewSpaceSettings, planner)))
        self._unreachable_seconds = from_mapping(SessionSettings, planner).unreachable_duration
        self._updates: deque[Update] = deque([self._update(0)], maxlen=_KEPT)
        self._pose: CameraPose | None = None

    def take(self, stamp: int, what: Scan | CameraPose) -> Update | None:
        """Take in a scan or a pose; returns the update of the surface that it led to, if it did."""
        if isinstance(what, Scan):
            self._matcher.add_scan(stamp, what)
        else:
            self._pose = self._poses.camera(what)
            self._matcher.add_pose(stamp, self._pose)
        taken = self._matcher.take()
        self._batch += taken
        # Where every scan counts, the recorded surfaces say up to which one they were mapped together.
        if not taken or (self._ends and taken[-1].stamp < self._ends[0]):
            return None
        return self._map_batch()

    def forget(self, stamp: int) -> None:
        """Forget all measurements and the goal, as the mapper did at `stamp` (nanoseconds)."""
        self._matcher.reset()
        self._mapper.reset()
        self._batch.clear()
        self._newest_view = -1
        self._drop_ends(stamp)
        self._updates.append(self._update(stamp))

    def _map_batch(self) -> Update:
        """Condition on the scans that were mapped together."""
        map_scans(self._mapper, self._batch, self._newest_view, self._scene, self._measurement)
        self._newest_view = max(match.view for match in self._batch)
        stamp = max(match.stamp for match in self._batch)
        self._batch.clear()
        self._drop_ends(stamp)
        self._updates.append(self._update(stamp))
        return self._updates[-1]

    def _drop_ends(self, stamp: int) -> None:
        while self._ends and self._ends[0] <= stamp:
            self._ends.popleft()

    def _update(self, stamp: int) -> Update:
        return Update(stamp, self._mapper.belief().as_transmitted())

    def decide(
        self, decision: RecordedDecision, visited: Sequence[float],
        given_up: Mapping[float, int],
    ) -> tuple[Decision | None, Update]:
        """Decide where the recorded planner did.

        Args:
            decision: the recorded decision.
            visited: angles of the views taken before, radians.
            given_up: angles of goals that were not reached, radians, and when they were given up, nanoseconds.

        Returns:
            This planner's decision, None if no view may be chosen, and the belief from which it was made.
        """
        update = self._belief_for(decision)
        for angle, stamp in given_up.items():
            self.planner.views.mark_unreachable(angle, stamp * 1e-9 + self._unreachable_seconds)
        current = None if self._pose is None else self._pose.view_angle
        own = self.planner.decide(
            update.belief, current_view=current, visited=visited, now=decision.goal_stamp * 1e-9
        )
        return own, update

    def send(self, decision: RecordedDecision) -> None:
        """Send the camera where it was sent."""
        goal = CameraPose.on_view_circle(decision.view_angle, self._scene.view_distance)
        self._matcher.set_goal(decision.goal_stamp, goal)

    def _belief_for(self, decision: RecordedDecision) -> Update:
        """The newest update that the recorded planner can have had."""
        until = decision.goal_stamp if decision.surface_stamp is None else decision.surface_stamp
        return next((update for update in reversed(self._updates) if update.stamp <= until), self._updates[0])
