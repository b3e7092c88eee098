"""Mapping the scans of a known scene: the surface model, and the checks of what it assumes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from nbv_planner.geometry import Arrays, BoolArray
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import NOISE_MARGIN, MeasurementSettings, ScanHits, measured, unlike
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.seam import Hits, SurfaceModel
from nbv_planner.world.ground.obstacles import KnownObstacles
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import EstimatedScene, Scene


def _before_background(match: MatchedScan) -> Scan:
    """The scan as if there were no background."""
    scan: Scan = match.scan
    if match.background is None:
        return scan
    ranges = np.where(match.background, np.inf, scan.ranges)
    return dataclasses.replace(scan, ranges=ranges)


@dataclass(frozen=True, eq=False)
class MappedScans:
    """What was mapped."""

    views: int  #: number of views that are new.
    hits: Hits  #: the returns that count.
    dropped: Counter[str]  #: number of beams left out, by reason.
    #: number of scans that were not averaged with others from their place for their other beams.
    unlike: int = 0
    again: bool = False  #: whether the hits of all scans before are among these.

    @classmethod
    def none(cls, views: int = 0) -> MappedScans:
        """The result of so many new views without a measurement."""
        return cls(views, Hits.none(), Counter())


class ScanMapping:
    """Maps scans: the surface model, and the checks of what it assumes."""

    #: the scene that was found, and which beams of each scan have met something else; None where
    #: the scene is known.
    estimated_scene: EstimatedScene | None = None
    any_outline = False  #: whether the surface is one of cells, in place of the radius.
    doubts = 0  #: see :class:`~nbv_planner.mapping.either_mapping.EitherMapping`.
    background: Sequence[BoolArray] | None = None
    #: types of its scans and of the scene, by which a journal reads them.
    scan_kind: type = Scan
    scene_kind: type[Scene] = Scene

    def __init__(
        self,
        model: SurfaceModel,
        scene: Scene,
        settings: MeasurementSettings,
        checks: ModelChecks,
        obstacles: KnownObstacles | None = None,
    ) -> None:
        """Put the parts together.

        Beams may also meet `obstacles`: they are free as far as these, and nothing is known of what
        is behind.
        """
        self.model = model  #: the surface model, which changes.
        #: test its assumptions by the scans, and give the noise; they change, too.
        self.checks = checks
        self._scene = scene
        self._settings = settings
        self._obstacles = obstacles

    def add(
        self, scans: Sequence[MatchedScan], newest_view: int, *, last: bool = True
    ) -> MappedScans:
        """Condition the model on scans in the order in which they were taken, those of a view at
        once.

        The model holds scans of the views up to number `newest_view`. What depends on all scans
        together may be left to the `last` of several calls.
        """
        views = 0
        dropped = Counter[str]()
        hits = list[Hits]()
        apart = 0
        groups = [list(of_view) for _, of_view in groupby(scans, key=lambda match: match.view)]
        for number, together in enumerate(groups, start=1):
            view = together[0].view
            each = self._measured(together, new_view=view > newest_view)
            apart += self._unlike(together)
            new = Hits.together([one.hits for one in each])
            free = [one.free for one in each]
            final = last and number == len(groups)
            self.model.take(new, free, same_view=view <= newest_view, last=final)
            hits.append(new)
            views += view > newest_view
            for one in each:
                dropped.update(one.dropped)
        return MappedScans(views, Hits.together(hits), dropped, apart)

    def add_view(self, scan: Scan, pose: CameraPose) -> MappedScans:
        """Condition the model on the scan of a new view of a known scene, taken at `pose` in the
        object frame.
        """
        return self.add([MatchedScan(0, scan, pose)], -1)

    def _measured(self, scans: Sequence[MatchedScan], *, new_view: bool) -> list[ScanHits]:
        """What the scans of a view measure, with the noise that they show; the first one stands for
        a new view.
        """
        scans = [self._before_obstacles(match) for match in scans]
        for number, match in enumerate(scans):
            self.checks.scanned(
                _before_background(match), match.pose, new_view=new_view and number == 0
            )
        each = measured(scans, self._scene, self._settings, self.checks.noise_factor)
        if new_view:
            self.checks.mapped(scans[0].pose, each[0].hits, each[0].free, scans[0].rate)
        return each

    def _unlike(self, scans: Sequence[MatchedScan]) -> int:
        """See :attr:`MappedScans.unlike`."""
        return unlike(scans, self._settings.noise)

    def _before_obstacles(self, match: MatchedScan) -> MatchedScan:
        """The scan with its beams that end on known obstacles, within some standard deviations, as
        background.
        """
        if self._obstacles is None:
            return match
        ranges = np.asarray(match.scan.ranges, dtype=float)
        met = np.isfinite(ranges)
        distance = ranges[met]
        std = self._scene.sensor.range_std(self._settings.noise, distance, np.zeros(len(distance)))
        background = np.zeros(len(ranges), dtype=bool)
        if match.background is not None:
            background |= match.background
        places = match.pose.to_world(match.scan.bearings[met], distance)
        background[met] |= self._obstacles.hold(*places, NOISE_MARGIN * std)
        return dataclasses.replace(match, background=background)

    def belief(self) -> Any:
        """The model's belief, its band widened by errors that all views may share, with the checks
        of its assumptions.
        """
        return self.checks.judged(self.model.belief())

    def use(self, scene: Scene) -> None:
        """Take the sensor of this scene from now on."""
        self._scene = self.checks.scene = scene

    def copy(self) -> ScanMapping:
        """An independent copy."""
        twin = copy(self)
        twin.model, twin.checks = self.model.copy(), self.checks.copy()
        return twin

    def reset(self) -> None:
        """Forget all scans."""
        self.model.reset()
        self.checks.reset()

    def state(self) -> Arrays:
        """Everything that is held, as arrays by name."""
        return {**self.model.state(), **self.checks.state()}

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another one of the same settings.

        Raises:
            MeasurementError: the state is not that of such a mapping; nothing is changed.
        """
        checks = self.checks.copy()
        checks.restore(state)
        self.model.restore(state)
        self.checks = checks
