"""The surface map of an episode: the batches of scans that it was made of, as its journal keeps
them.

A batch holds the scans that were mapped together and all that the result depends on besides the map
before it, so that a restarted mapper gets the same map to the last bit. Where scans are mapped on
the way, too, they become too many, and where the window of the robust fit has let go of some, each
takes a fit: then the map before the newest batch takes the place of all batches before that, see
:attr:`SurfaceMap.long`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nbv_planner.errors import StateFileError
from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.geometry import Arrays
from nbv_planner.mapping.matching import MatchedScan, MatchingState
from nbv_planner.mapping.searching_mapping import SearchingMapping, ViewMapping
from nbv_planner.surface.seam import Mapped
from nbv_planner.world.scale import SensorHeader
from nbv_planner.world.scene import EstimatedScene

KIND = "surface map"
"""What the journal is about."""
COMPACTED = 100
"""Batches behind which the journal is compacted: more than views of an episode, few enough for a
fast restart.
"""
COMPACTED_FITS = 8
"""The same where each batch takes a fit, of some 0.2 s."""


@dataclass(frozen=True, eq=False)
class Progress:
    """What is counted and learned beside the model."""

    #: goals and scans returned; every scan returned is in the model.
    matching: MatchingState = field(default_factory=MatchingState)
    stamp: int = 0  #: time of the newest scan in the model, nanoseconds; 0 before the first.
    #: number of the newest view of which the model holds a scan; -1 before the first.
    newest_view: int = -1
    views: int = 0  #: number of views in the model.
    scans: int = 0  #: number of scans in the model.
    sensor: SensorHeader = field(default_factory=SensorHeader)  #: what all headers so far say.

    def __post_init__(self) -> None:
        if min(self.stamp, self.newest_view + 1, self.views, self.scans) < 0:
            raise StateFileError(
                "content", f"{self.stamp}, {self.newest_view}, {self.views}, {self.scans}: none < 0"
            )


@dataclass(frozen=True, eq=False)
class SurfaceMap:
    """What has been mapped up to a moment. Later changes of the mapper do not affect it."""

    mapper: ViewMapping  #: the mapping; must not be added to, but copied.
    progress: Progress  #: what is counted and learned beside it.
    belief: Mapped | None = None  #: that of the mapper, once it has been computed.
    batches: int = 0  #: those in the journal.

    @property
    def long(self) -> bool:
        """Whether the journal has so many batches that it should be replaced by the map itself."""
        return self.batches >= (COMPACTED if self.mapper.model.refits_all else COMPACTED_FITS)


@dataclass(frozen=True, eq=False)
class Batch:
    """Scans that were mapped together, with all that their result depends on besides the map
    before.
    """

    scene: Any  #: gave the sensor.
    scans: tuple[MatchedScan, ...]
    progress: Progress  #: after them.
    #: scene after them, where it was searched.
    estimated_scene: EstimatedScene | None
    #: what the checks remember of each view before, as it was judged then.
    through: tuple[float, ...]
    doubts: int = 0  #: in how many judgements in a row before the radius did not hold.


@dataclass(frozen=True, eq=False)
class _Whole:
    """A map as arrays, and the scans in which its scene was found."""

    progress: Progress
    arrays: Arrays
    estimated_scene: EstimatedScene | None
    scans: tuple[MatchedScan, ...]


T = TypeVar("T", Batch, _Whole)


def batch_record(batch: Batch) -> dict[str, Any]:
    """A batch as a record of a journal."""
    return {"batch": to_plain(batch)}


def progress_record(progress: Progress) -> dict[str, Any]:
    """What is known without a new scan as a record of a journal."""
    return {"progress": to_plain(progress)}


def map_record(known: SurfaceMap) -> dict[str, Any]:
    """A whole map as a record of a journal, in place of its batches."""
    mapper = known.mapper
    scans = mapper.scans if isinstance(mapper, SearchingMapping) else ()
    return {"map": to_plain(_Whole(known.progress, mapper.state(), mapper.estimated_scene, scans))}


def map_from_records(records: Iterable[Mapping[str, Any]], blank: ViewMapping) -> SurfaceMap:
    """The map that the records of a journal give; fills `blank`, a mapping of the same settings
    without a scan.

    Only the last batch is judged: the belief, and what depends on all scans together, are computed
    once.

    Raises:
        StateFileError: `content`: a record is none, or a value is impossible, or the surface that
            follows.
        MeasurementError: an array is impossible.
    """
    progress = Progress()
    before = -1
    batches = list[Batch]()
    for number, record in enumerate(records, start=2):
        if "map" in record and number == 2:
            whole = _typed(from_plain(_Whole, record["map"], f"line {number}"), blank, number)
            _restore(blank, whole)
            progress = whole.progress
            before = whole.progress.newest_view
        elif "batch" in record:
            batch = _typed(from_plain(Batch, record["batch"], f"line {number}"), blank, number)
            scene = from_plain(blank.scene_kind, batch.scene, f"line {number}: scene")
            batches.append(replace(batch, scene=scene))
            progress = batch.progress
        elif "progress" in record:
            progress = from_plain(Progress, record["progress"], f"line {number}")
        else:
            raise StateFileError("content", f"line {number}: is not a batch of scans")
    for number, batch in enumerate(batches, start=1):
        last = number == len(batches)
        blank.use(batch.scene)
        if last:
            blank.doubts = batch.doubts
            blank.checks.through = list(batch.through)
        if isinstance(blank, SearchingMapping):
            # the last one is judged as it was then: by the scene before the radius was given up
            blank.add(batch.scans, before, last=last, known=None if last else batch.estimated_scene)
        else:
            blank.add(batch.scans, before, last=last)
        before = batch.progress.newest_view
    belief = blank.belief()
    if not belief.finite:
        raise StateFileError("content", "its surface is not finite")
    return SurfaceMap(blank, progress, belief, len(batches))


def _typed(read: T, blank: ViewMapping, number: int) -> T:
    """What was read in the line of this number, its scans of the kind that the mapping takes."""
    place = f"line {number}: scan"
    scans = tuple(
        replace(match, scan=from_plain(blank.scan_kind, match.scan, place)) for match in read.scans
    )
    return replace(read, scans=scans)


def _restore(blank: ViewMapping, whole: _Whole) -> None:
    if not isinstance(blank, SearchingMapping):
        blank.restore(whole.arrays)
    elif whole.estimated_scene is not None:
        blank.restore(whole.arrays, whole.estimated_scene, whole.scans)
    else:
        raise StateFileError("content", "estimated_scene: the map is of a known scene")
