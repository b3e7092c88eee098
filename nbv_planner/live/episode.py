"""Puts an episode together while it happens, from whatever arrives in whichever order."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from nbv_planner.camera import CameraPose, MeasurementSettings, Scan
from nbv_planner.live.hits import HitCollector
from nbv_planner.live.values import CandidateValues, LiveDecision, LiveStatus, LiveView
from nbv_planner.objects import SurfacePoints
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

SECTIONS = ("status", "scene", "belief", "truth", "hits", "camera", "decision", "coverage")
"""Parts of a view that change by themselves."""

# Decisions kept, and candidates that wait for theirs.
_KEPT_DECISIONS, _KEPT_CANDIDATES = 500, 10
_AWAITED = {
    "status": "nbv_planner/status (from nbv_planner)",
    "surface": "surface (from surface_mapper, once its own inputs are alive)",
    "pose": "camera_pose (from the camera or the robot)",
    "scan": "scan (from the camera)",
    "run_info": "run_info (from nbv_planner; until then the geometry shown is the default one)",
}


class LiveEpisode:
    """Takes in what the nodes say, in one thread, and gives views of it to any other.

    Started late, it knows what is latched: the status, the decisions so far, the last surface and its candidates. A
    decision whose round is not new begins that round again, so a new episode (round 1) forgets the one before.
    """

    def __init__(self) -> None:
        """Start without anything."""
        self._changed = threading.Condition()
        self._versions = dict.fromkeys(SECTIONS, 0)
        self._heard: set[str] = set()
        self._heard_at = time.monotonic()
        self._hits = HitCollector()
        self._candidates: OrderedDict[int, CandidateValues] = OrderedDict()
        self._title = ""
        self._status: LiveStatus | None = None
        self._decisions: list[LiveDecision] = []
        self._belief: SurfaceBelief | None = None
        self._truth: SurfacePoints | None = None
        self._pose: CameraPose | None = None
        self._goal: CameraPose | None = None

    @contextmanager
    def _hearing(self, source: str, *sections: str) -> Iterator[set[str]]:
        """Change `sections`, and those added to the set, because of a message from `source`; wake who waits."""
        with self._changed:
            changed = set(sections)
            yield changed
            self._heard_at = time.monotonic()
            if source not in self._heard:
                self._heard.add(source)
                changed.add("status")
            for section in changed:
                self._versions[section] += 1
            if changed:
                self._changed.notify_all()

    def on_settings(self, scene: Scene, measurement: MeasurementSettings, title: str) -> None:
        """Take in the geometry, how scans are read, and what the episode is about."""
        with self._hearing("run_info", *(("status",) if scene == self._hits.scene else SECTIONS)):
            self._hits.scene, self._hits.measurement, self._title = scene, measurement, title

    def on_status(self, status: LiveStatus) -> None:
        """Take in the planner's status."""
        with self._hearing("status", "status", "decision", "coverage"):
            self._status = status

    def on_decision(self, decision: LiveDecision) -> None:
        """Take in a decision; a goal sent again, or another one for the same round, replaces the first."""
        with self._hearing("decision", "decision", "coverage", "hits"):
            candidates = self._candidates.get(decision.goal_stamp)
            earlier = [known for known in self._decisions if known.round < decision.round]
            self._decisions = [*earlier, dataclasses.replace(decision, candidates=candidates)][-_KEPT_DECISIONS:]

    def on_candidates(self, stamp: int, candidates: CandidateValues) -> None:
        """Take in the candidates of the decision whose goal has this stamp."""
        with self._hearing("candidates", "decision"):
            self._candidates[stamp] = candidates
            while len(self._candidates) > _KEPT_CANDIDATES:
                self._candidates.popitem(last=False)
            self._decisions = [
                dataclasses.replace(known, candidates=candidates) if known.goal_stamp == stamp else known
                for known in self._decisions
            ]

    def on_belief(self, stamp: int, belief: SurfaceBelief) -> None:
        """Take in a surface; one with fewer measurements than before comes from a mapper that has been reset."""
        with self._hearing("surface", "belief", "hits"):
            if self._belief is not None and belief.hits.sum() < self._belief.hits.sum():
                self._hits.clear()
            self._belief = belief
            self._hits.add_surface(stamp)

    def on_scan(self, stamp: int, scan: Scan) -> None:
        """Take in a scan."""
        with self._hearing("scan") as changed:
            if self._hits.add_scan(stamp, scan):
                changed.add("hits")

    def on_pose(self, stamp: int, pose: CameraPose) -> None:
        """Take in the camera's pose."""
        with self._hearing("pose") as changed:
            if self._hits.add_pose(stamp, pose):
                changed.add("hits")
            if pose != self._pose:
                changed.add("camera")
            self._pose = pose

    def on_goal(self, goal: CameraPose) -> None:
        """Take in a goal."""
        with self._hearing("goal", "camera"):
            self._goal = goal

    def on_truth(self, truth: SurfacePoints) -> None:
        """Take in the true surface points of a simulation."""
        with self._hearing("truth", "truth", "coverage"):
            self._truth = truth

    def _last_measured(self) -> int:
        """Stamp of the newest decision whose view has been measured, nanoseconds; 0 if there is none."""
        stamps = (known.goal_stamp for known in reversed(self._decisions))
        return next((stamp for stamp in stamps if stamp <= self._hits.newest), 0)

    @property
    def silence(self) -> float:
        """Seconds since the last message."""
        with self._changed:
            return time.monotonic() - self._heard_at

    def wait(self, known: object, timeout: float) -> bool:
        """Wait until the versions differ from `known`; return whether they do."""
        with self._changed:
            return self._changed.wait_for(lambda: self._versions != known, timeout)

    def view(self) -> LiveView:
        """Everything that is known now."""
        with self._changed:
            earlier_hits, last_hits = self._hits.since(self._last_measured())
            return LiveView(
                title=self._title, scene=self._hits.scene, status=self._status, decisions=tuple(self._decisions),
                belief=self._belief, truth=self._truth, earlier_hits=earlier_hits, last_hits=last_hits,
                pose=self._pose, goal=self._goal,
                waits_for=tuple(words for source, words in _AWAITED.items() if source not in self._heard),
                versions=dict(self._versions),
            )
