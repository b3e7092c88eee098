"""A running episode: snapshots of its log for a page, and what they show."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from nbv_planner.episode import messages
from nbv_planner.episode.judge import PointErrors, truth_of
from nbv_planner.episode.log import EpisodeLog, LoggedView, Surface
from nbv_planner.episode.messages import Candidates, PlannerStatus
from nbv_planner.episode.run_info import RunParameters, shape_through
from nbv_planner.geometry import cartesian_to_polar, polar_to_cartesian
from nbv_planner.mapping.either_mapping import all_of_it, scene_of
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import scan_to_hits
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.shapes.completeness import SAMPLES
from nbv_planner.surface.coverage import POINTS, CoverageTarget
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.bodies.depth_sensor import DepthScene
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

# Most measured points shown; beyond it every second one is left out. Most scans kept separate;
# beyond it the older half is merged.
_MOST_POINTS, _MOST_SCANS = 8000, 64
# Least seconds between two pictures of a solid.
_PICTURE_PERIOD = 2.0
SECTIONS = (
    "status",
    "scene",
    "belief",
    "truth",
    "hits",
    "camera",
    "decision",
    "coverage",
    "checks",
    "ground",
    "picture",
)
"""Parts of a view that change independently."""
_CHANGES: dict[str, tuple[str, ...]] = {
    messages.STATUS: ("status", "decision", "coverage"),
    messages.ITERATION: ("decision", "coverage", "hits", "ground"),
    messages.CANDIDATES: ("decision",),
    messages.SURFACE: ("belief", "hits", "checks", "ground"),
    messages.DEVIATION: ("status",),
    messages.GOAL_POSE: ("camera",),
    messages.GROUND: ("ground",),
    messages.GROUND_TRUTH: ("truth", "coverage"),
    messages.RUN_INFO: ("status", "ground"),
}
_AWAITED = {
    messages.STATUS: "nbv_planner/status (from nbv_planner)",
    messages.SURFACE: "surface (from surface_mapper, once its own inputs are alive)",
    messages.CAMERA_POSE: "camera_pose (from the camera or the robot)",
    messages.SCAN: "scan (from the camera)",
    messages.RUN_INFO: (
        "run_info (from nbv_planner; until then the geometry shown is the default one)"
    ),
}


@dataclass(frozen=True, eq=False)
class LiveView:
    """Everything that is known at one moment."""

    title: str  #: object, planner and objective, as far as known.
    scene: Scene  #: cone and bounds; the defaults until they are known.
    status: PlannerStatus | None  #: None until the first status has been received.
    views: tuple[LoggedView, ...]  #: in order of rounds.
    deviation: str  #: how the object differs from what was known, in words; empty without that.
    belief: Surface | None  #: the newest surface belief.
    truth: SurfacePoints | None  #: the true surface points, in a simulation.
    #: those of earlier views; those from before this page was opened are not known.
    earlier_hits: Hits
    last_hits: Hits  #: those of the last view.
    pose: CameraPose | None  #: where the camera is.
    goal: CameraPose | None  #: where it was sent.
    waits_for: tuple[str, ...]  #: topics on which nothing has been received, in words.
    ground: Ground | None  #: where the robot may drive, without the object.

    @property
    def depth(self) -> DepthScene | None:
        """The scene in space; None in the plane."""
        return self.scene if isinstance(self.scene, DepthScene) else None

    versions: Mapping[str, int]  #: a number for each section that changes with it.


class LiveEpisode(EpisodeLog):
    """A log that processes the messages of the nodes in one thread, and returns snapshots of it to
    any other.

    Started late, it receives what is latched: the status, the decisions so far, the last surface
    and its candidates.
    """

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._versions = dict.fromkeys(SECTIONS, 0)
        self._received_at = time.monotonic()
        self._pictured_at = -math.inf
        self._hits: dict[int, Hits] = {}
        self._ground: tuple[OccupancyMap | None, RunParameters | None, Ground | None] | None = None

    def add(self, topic: str, value: Any, stamp: int = 0) -> None:
        """Process the content of a message, and wake the threads that wait for what it changes."""
        with self._changed:
            scene = self.scene
            pose = self._pose_now
            hits = dict(self._hits)
            first = topic not in self.received
            super().add(topic, value, stamp)
            self._received_at = time.monotonic()
            changed = {*_CHANGES.get(topic, ()), *(["status"] if first else [])}
            changed |= {"hits"} if self._hits != hits else set()
            changed |= {"camera"} if self._pose_now != pose else set()
            changed |= {"picture"} if self._picture_due(topic) else set()
            for section in SECTIONS if self.scene != scene else changed:
                self._versions[section] += 1
            self._changed.notify_all()

    def _picture_due(self, topic: str) -> bool:
        """Whether a picture of a solid is to be made: with a surface, now and then, and at the
        end.
        """
        now = time.monotonic()
        ended = topic == messages.STATUS and self.termination is not None
        due = topic == messages.SURFACE_INFO and now - self._pictured_at > _PICTURE_PERIOD
        if isinstance(self.scene, DepthScene) and (ended or due):
            self._pictured_at = now
            return True
        return False

    def _take_belief(self, belief: Surface, stamp: int) -> None:
        """Process a surface; one with fewer measurements than before comes from a mapper that has
        been reset.
        """
        if self.belief is not None and belief.count < self.belief.count:
            self._hits.clear()
            self._unpaired.clear()
        super()._take_belief(belief, stamp)

    def _paired(self, scan: MatchedScan) -> None:
        """Measure a scan; keep what is shown within bounds, spread over the surface and over
        time.
        """
        super()._paired(scan)
        found = scan_to_hits(scan.scan, scan.pose, all_of_it(self.scene), self.measurement).hits
        self._hits[scan.stamp] = found
        if len(self._hits) > _MOST_SCANS:
            older = list(islice(self._hits, _MOST_SCANS // 2))
            joined = Hits.together([self._hits.pop(stamp) for stamp in older])
            self._hits = {max(older): joined, **self._hits}
        while sum(len(hits) for hits in self._hits.values()) > _MOST_POINTS:
            self._hits = {
                stamp: hits.chosen(np.arange(len(hits)) % 2 == 1)
                for stamp, hits in self._hits.items()
            }

    @property
    def _pose_now(self) -> CameraPose | None:
        return self.camera(self._poses[-1][1]) if self._poses else None

    @property
    def _placed_truth(self) -> SurfacePoints | None:
        """The true contour about the origin of the object frame, where the simulated object may not
        stand.
        """
        contour = self.contour
        camera = self.parameters.nodes.get("depth_camera", {}) if self.parameters else {}
        x, y = from_mapping(WorldSettings, camera).placed
        if contour is None or x == y == 0.0:
            return contour
        across, along = polar_to_cartesian(contour.angle, contour.radius)
        angle, radius = cartesian_to_polar(across + x, along + y)
        order = np.argsort(angle) if contour.outline is None else slice(None)
        return SurfacePoints(angle[order], radius[order], contour.outline)

    def _ground_now(self) -> Ground | None:
        """The ground; made anew only for another map or other parameters."""
        of = self.map, self.parameters
        if self._ground is None or self._ground[0] is not of[0] or self._ground[1] is not of[1]:
            self._ground = *of, self.ground()
        return self._ground[2]

    def _shown(self, hits: Sequence[Hits]) -> Hits:
        """Those that count for the newest surface: one with a radius has none near its centre."""
        joined = Hits.together(hits)
        least = scene_of(self.belief, self.scene).radius_min - self.measurement.radius_margin
        return joined.chosen(np.hypot(*joined.points.T) >= least)

    def _last_measured(self) -> int:
        """Stamp of the newest decision whose view has been measured, nanoseconds; 0 if there is
        none.
        """
        view = self._view_at(max(self._hits, default=-1))
        return 0 if view is None else view.decision.goal_stamp

    @property
    def silence(self) -> float:
        """Seconds since the last message."""
        with self._changed:
            return time.monotonic() - self._received_at

    def wait(self, known: object, timeout: float) -> bool:
        """Wait until the versions differ from `known`; return whether they do."""
        with self._changed:
            return self._changed.wait_for(lambda: self._versions != known, timeout)

    def view(self) -> LiveView:
        """Everything that is known now."""
        with self._changed:
            last = self._last_measured()
            return LiveView(
                title=self.parameters.title if self.parameters else "",
                scene=self.scene,
                status=self.status,
                views=tuple(copy.copy(view) for view in self.views),
                deviation=self.deviation,
                belief=self.belief,
                truth=self._placed_truth,
                earlier_hits=self._shown(
                    [hits for stamp, hits in self._hits.items() if stamp < last]
                ),
                last_hits=self._shown(
                    [hits for stamp, hits in self._hits.items() if stamp >= last]
                ),
                pose=self._pose_now,
                goal=self.camera(list(self.goals.values())[-1]) if self.goals else None,
                waits_for=tuple(
                    words
                    for topic, words in _AWAITED.items()
                    if topic not in self.received and topic in self.readers
                ),
                ground=self._ground_now(),
                versions=dict(self._versions),
            )


Series = list[tuple[int, float]]
"""Number of views and coverage, a fraction."""


def estimated_coverage(view: LiveView) -> Series:
    """Coverage as the planner estimates it: from each decision for the views before it, from the
    status for now.
    """
    known = {logged.decision.round - 1: logged.decision.coverage_estimate for logged in view.views}
    if view.status is not None:
        known[view.status.views] = view.status.coverage_estimate
    return [(number, value) for number, value in sorted(known.items()) if math.isfinite(value)]


def target_of(view: LiveView) -> CoverageTarget:
    """What the planner estimates: coverage of the surface points, or completeness at a
    resolution.
    """
    return view.status.estimate.target if view.status and view.status.estimate else POINTS


def target_text(view: LiveView) -> str:
    """What is estimated, in words."""
    target = target_of(view)
    return f"{target.name} at {target.tau:g} m" if target.tau else target.name


def taken_views(view: LiveView) -> Poses:
    """The views taken, in order; none unless all of them are known."""
    number = 0 if view.status is None else view.status.views
    circle = view.scene.view_distance
    views = [
        logged.decision.view(circle) for logged in view.views if logged.decision.round <= number
    ]
    return Poses.of(views if len(views) == number else [])


def true_coverage(view: LiveView) -> Series:
    """True coverage after the views so far, or completeness if that is estimated; empty where it is
    not known.
    """
    views = taken_views(view)
    tau = target_of(view).tau
    if view.truth is None or not len(views):
        return []
    among = next((one.candidates for one in view.views if one.candidates), None)
    if among is None and view.truth.outline is not None:
        return []
    truth = _known_truth(view.truth, view.scene, among)
    if tau:
        known = [
            (logged.decision.round, logged.belief)
            for logged in view.views[: len(views)]
            if logged.belief
        ]
        return [(0, 0.0), *((n, _completeness(belief, truth, tau)) for n, belief in known)]
    fraction = np.logical_or.accumulate(truth.visible(views), axis=0).mean(axis=1)
    return [(0, 0.0), *((number, float(value)) for number, value in enumerate(fraction, start=1))]


@lru_cache(maxsize=8)
def _known_truth(points: SurfacePoints, scene: Scene, among: Candidates | None) -> Any:
    """The true object; of outlines counts what the candidates see."""
    views = Poses.of([]) if among is None else among.views(scene.view_distance)
    return truth_of(shape_through(points), points, scene, views)


@lru_cache(maxsize=64)
def _completeness(belief: Surface, truth: Any, tau: float) -> float:
    measured = truth.measured(belief, tau)
    return PointErrors.of(measured, truth.outline(tau / SAMPLES), tau).completeness
