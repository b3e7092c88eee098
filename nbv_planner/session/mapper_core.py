"""The mapper's side of an episode without ROS: scans, poses and goals in, surfaces, drops and words
out.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbv_planner.errors import SettingError
from nbv_planner.mapping.matching import MatchedScan, ScanMatcher
from nbv_planner.mapping.object_search import SearchSettings, first_guess
from nbv_planner.mapping.scan_mapping import MappedScans
from nbv_planner.mapping.searching_mapping import ViewMapping
from nbv_planner.mapping.surface_info import SurfaceInfo
from nbv_planner.session.surface_map import (
    Batch,
    Progress,
    SurfaceMap,
    batch_record,
    map_record,
    progress_record,
)
from nbv_planner.surface.seam import Mapped
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scale import SensorHeader, SensorHeaders, adopted, at_estimate, rescaled
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.scene import Scene

_SOURCE = "not given, so taken from the scans"


@dataclass(frozen=True)
class MapperSetup:
    """What a mapper is made of, as it was given."""

    scene: Scene  #: as declared.
    noise: RangeNoise  #: of the ranges, as declared.
    #: how far inside of the least radius a return still counts, metres.
    radius_margin: float
    search: SearchSettings
    queue_size: int  #: scans that may wait for an update.
    #: names of the values that were given, which no header of a scan replaces.
    given: frozenset[str]
    prior: Any  #: settings of the model's prior, for the scene as declared.
    build: Callable[[], ViewMapping]  #: gives a mapping without a scan.


@dataclass(frozen=True)
class LogMessage:
    """Something to be logged: with a `reason` it may come often, and each reason is said at
    intervals.

    A `number` of things were dropped for that reason.
    """

    text: str
    warning: bool = False
    reason: str = ""
    number: int = 0


@dataclass(frozen=True, eq=False)
class MapUpdate:
    """Result of a :class:`MapJob`."""

    job: MapJob
    known: SurfaceMap  #: what is known after it.
    belief: Mapped
    mapped: MappedScans  #: what was new.
    milliseconds: float

    def info(self, setup: MapperSetup, mount: tuple[float, float, float]) -> SurfaceInfo:
        """What is published with the belief, for a camera on this `mount` (x, y, yaw).

        The lengths of the prior are in proportion to the scene that was found.
        """
        mapper = self.known.mapper
        return SurfaceInfo.about(
            self.belief,
            stamp=self.known.progress.stamp,
            prior=rescaled(setup.prior, setup.scene, self.scene),
            sensor=SurfaceInfo.sensor_of(self.job.scene),
            declared=setup.noise,
            noise_factor=mapper.checks.noise_factor,
            scene=mapper.estimated_scene,
            mount=mount,
        )

    def records(self) -> tuple[list[dict[str, Any]], bool]:
        """What the journal has to hold of it, and whether that takes the place of all that is in
        it.
        """
        job, known = self.job, self.known
        if not job.scans:
            return [progress_record(known.progress)], known.batches == 0
        through = tuple(job.before.mapper.checks.through)
        record = batch_record(
            Batch(
                job.scene,
                job.scans,
                known.progress,
                known.mapper.estimated_scene,
                through,
                job.before.mapper.doubts,
            )
        )
        if job.before.long:
            return [map_record(job.before), record], True
        return [record], job.before.batches == 0

    @property
    def scene(self) -> Scene:
        """The scene about the centre of the belief, with the sensor that it was mapped with."""
        estimated = self.known.mapper.estimated_scene
        return self.job.scene if estimated is None else at_estimate(self.job.scene, estimated)


@dataclass(frozen=True, eq=False)
class MapJob:
    """An update that is due, with everything that it depends on: it may be made in another
    thread.
    """

    before: SurfaceMap  #: what is known before it, and stays so.
    progress: Progress  #: that of before, with the stamp, goal and headers of now.
    scene: Scene  #: gives the sensor.
    #: those of a view are mapped at once; none to have the present belief.
    scans: tuple[MatchedScan, ...]
    episode: object  #: identifies the map; a result for another one is discarded.

    def __call__(self) -> MapUpdate:
        """Condition a copy of the mapping on the scans."""
        started = time.perf_counter()
        before, progress = self.before, self.progress
        if not self.scans and before.belief is not None:
            known = replace(before, progress=progress)
            return MapUpdate(self, known, before.belief, MappedScans.none(), 0.0)
        mapper = before.mapper.copy()
        mapper.use(self.scene)
        mapped = mapper.add(self.scans, progress.newest_view)
        belief = mapper.belief()
        progress = replace(
            progress,
            views=progress.views + mapped.views,
            scans=progress.scans + len(self.scans),
            newest_view=max((match.view for match in self.scans), default=progress.newest_view),
        )
        batches = 1 if before.long else before.batches + 1
        known = SurfaceMap(mapper, progress, belief, batches if self.scans else 0)
        return MapUpdate(self, known, belief, mapped, 1e3 * (time.perf_counter() - started))


class MapperCore:
    """Which scans count, when they are mapped, and what has been learned from them.

    A caller passes in what it receives, then has the :meth:`job` that is due made, one at a time,
    and passes the result to :meth:`take`. Scans that come meanwhile are mapped together in the next
    one, so that a surface never lags by more than two; when more than `queue_size` wait the oldest
    are dropped and counted.

    The prior is due as soon as a first scan has found its pose: a planner that sees a surface knows
    that the mapper's inputs are alive. The stamp of a surface is the time of the newest scan in it,
    so that of a prior is 0: any other time might come after a goal that the planner still waits at,
    which would take the prior for the view.
    """

    def __init__(self, setup: MapperSetup, matcher: ScanMatcher) -> None:
        """Start without a scan."""
        self.setup = setup
        self.matcher = matcher
        #: as declared, with the sensor of the headers so far where none was given.
        self.scene = setup.scene
        self.headers = SensorHeaders()  #: of all scans so far.
        self.messages: deque[LogMessage] = deque()  #: for the caller to take out.
        self.drops: Counter[str] = Counter()  #: number of beams left out, by reason.
        self._begin(self._blank())

    def _blank(self) -> SurfaceMap:
        mapping = self.setup.build()
        mapping.use(self.scene)
        return SurfaceMap(mapping, Progress())

    def _begin(self, known: SurfaceMap) -> None:
        """Start from what is known; the result of a job that is being made is discarded."""
        self.known = known  #: the newest map that has been taken.
        self.last: MapUpdate | None = None  #: the newest update.
        self.updates = 0  #: number of them.
        self.waiting: deque[MatchedScan] = deque()  #: scans to be mapped.
        self._episode = object()
        self._due: bool | None = None  # whether the belief is to be published; None: it never was

    def reset(self) -> None:
        """Discard all measurements; the prior is due."""
        self.matcher.reset()
        self._begin(self._blank())
        self.ask()

    def resume(self, known: SurfaceMap) -> None:
        """Continue from another map."""
        self.matcher.restore(known.progress.matching)
        self._begin(known)
        widest = self.headers.widest.with_other(known.progress.sensor)
        self.headers = replace(self.headers, widest=widest)
        self._use_headers()

    def ask(self) -> None:
        """Have the present belief published."""
        self._due = True

    def scan(self, stamp: int, scan: Any, frame: str) -> list[MatchedScan]:
        """Receive a scan (`stamp` in nanoseconds) of the camera frame `frame`; returns those whose
        poses are known now.

        What it says of the sensor holds from the next update on.
        """
        if isinstance(scan, Scan):
            self._read_header(scan)
        return self._matched(self.matcher.add_scan(stamp, scan, frame))

    def pose(self, stamp: int, pose: CameraPose) -> None:
        """Receive a pose of the camera (`stamp` in nanoseconds)."""
        self._matched(self.matcher.add_pose(stamp, pose))

    def transformed(self) -> list[MatchedScan]:
        """Resume the scans that waited for a transform; returns those whose poses are known now."""
        return self._matched(self.matcher.match())

    def goal(self, stamp: int, goal: CameraPose) -> None:
        """Receive the goal at which scans count (`stamp` in nanoseconds)."""
        self.matcher.set_goal(stamp, goal)
        self._matched([])

    def _matched(self, found: list[MatchedScan]) -> list[MatchedScan]:
        """Collect the scans that count, and drop those that are too many."""
        self.waiting.extend(self.matcher.take())
        if self._due is None and not self.waiting and self.matcher.matches:
            self.ask()
        while len(self.waiting) > self.setup.queue_size:
            late = self.waiting.popleft()
            words = f"the scan at {late.stamp} ns: scans come faster than they are mapped"
            self.messages.append(LogMessage(words, True, "scan.backlog", 1))
        return found

    def job(self) -> MapJob | None:
        """The update that is due; the caller takes its result before it asks for the next one."""
        known = self.known
        if self._due:
            scans: tuple[MatchedScan, ...] = ()
            stamp = known.progress.stamp
        elif self.waiting:
            scans = tuple(self.waiting)
            stamp = max(match.stamp for match in scans)
            self.waiting.clear()
        else:
            return None
        self._due = False
        progress = replace(
            known.progress, stamp=stamp, matching=self.matcher.state(), sensor=self.headers.widest
        )
        return MapJob(known, progress, self.scene, scans, self._episode)

    def take(self, update: MapUpdate) -> bool:
        """Take the result of a job, if it is one of this map; whether it is."""
        if update.job.episode is not self._episode:
            return False
        self._count_beams(update)
        before = self.known.mapper.estimated_scene
        self.last = update
        self.known = update.known
        self.updates += 1
        estimated = update.known.mapper.estimated_scene
        if (
            estimated
            and estimated.views
            and not (before and before.views and estimated.same_as(before))
        ):
            self.messages.append(
                LogMessage(
                    f"{estimated.summary}; found by {estimated.views} scans, all mapped about it"
                )
            )
        return True

    def _count_beams(self, update: MapUpdate) -> None:
        """Count the skipped beams, and warn of returns where the object cannot be; missing returns
        are normal.
        """
        mapped = update.mapped
        self.drops.update({f"beam.{reason}": number for reason, number in mapped.dropped.items()})
        if inside := mapped.dropped.get("inside_bounds", 0):
            least = self.scene.radius_min - self.setup.radius_margin
            self._warn("beam.inside_bounds", f"{inside} beams end within {least:g} m of the centre")
        if mapped.unlike:
            words = (
                f"{mapped.unlike} scans of a view are not averaged with the others: their beams are"
                " elsewhere"
            )
            self._warn("scan.unlike", words)
        if update.job.scans and not len(mapped.hits):
            counts = ", ".join(
                f"{number} {reason}" for reason, number in sorted(mapped.dropped.items())
            )
            self._warn("beam", f"no beam has met the surface; left out: {counts or 'none'}")
        if update.known.mapper.estimated_scene and (beside := mapped.dropped.get("background", 0)):
            words = (
                f"{beside} beams end on something else than the object nearest to the given point"
            )
            self._warn("beam.background", words)

    def _warn(self, reason: str, text: str) -> None:
        self.messages.append(LogMessage(text, True, reason))

    def _read_header(self, scan: Scan) -> None:
        """Take what was not given of the sensor from the headers of all scans so far."""
        before = self.headers
        self.headers = self.headers.after(scan)
        if self.headers.changing and not before.changing:
            self.messages.append(
                LogMessage(
                    "the headers of the scans change from one to the next, now"
                    f" {SensorHeader.of(scan).summary}: the widest values count; give"
                    " field_of_view, range_min and range_max if they are known",
                    True,
                )
            )
        first = before.newest is None
        unknown = self._use_headers() if first or self.headers.widest.differs(before.widest) else ()
        if first:
            if missing := ", ".join(f"{name} {getattr(self.scene, name):g}" for name in unknown):
                self.messages.append(
                    LogMessage(f"the scans do not say, so these stay as they are: {missing}")
                )
            apart = scan.angle_increment * (self.scene.view_distance - self.scene.radius_min)
            self.messages.append(
                LogMessage(f"{len(scan.ranges)} beams, up to {apart:.3g} m apart on the object")
            )

    def _use_headers(self) -> Sequence[str]:
        """Use what the headers say and was not given, from the next update on; returns what they do
        not say.
        """
        search = self.setup.search
        scene = self.scene
        outer = at_estimate(scene, first_guess(search, scene)) if search.unknown else scene
        found, unknown = self.headers.widest.in_scene(outer)
        given = {name: value for name, value in found.items() if name not in self.setup.given}
        try:
            self.scene, words = adopted(scene, given, _SOURCE)
        except SettingError as error:
            self._warn("derive", f"left out, {_SOURCE}: {error}")
            return unknown
        if words and not self.headers.changing:
            self.messages.append(LogMessage(words))
        return unknown
