"""Mapping scans while it is not known whether each direction has one surface: by the radius until
the scans show that it does not hold, then by cells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from nbv_planner.geometry import Arrays
from nbv_planner.gp.posterior import saved_array
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scan_mapping import MappedScans, ScanMapping
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.checks import Check, Level, failed_checks
from nbv_planner.surface.seam import SurfaceModel
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

GIVEN_UP_BY = "star_shape"
"""Check by which the radius is given up: beams pass through what should be inside."""
ANY_OUTLINE = Check("any_outline", 1.0, 0.5, Level.NOTED)
"""Says that it was."""
# Least radius of an object of any outline, of radius_max.
_INNERMOST = 1e-3
# Before the names of the arrays of the cells, while there are others.
_OF_CELLS = "cells_"
_DOUBTS = "radius_doubts"
# So many calls wait for the cells at most.
_AT_ONCE = 50
_Call = tuple[Scene | None, Sequence[MatchedScan], int]


class EitherMapping:
    """Maps scans by the radius until its checks fail, then by cells.

    Until then scans wait for the cells, some at a time, which merge them: the surface is the same
    as if it had been of cells from the start.
    """

    estimated_scene = None  #: see :class:`~nbv_planner.mapping.scan_mapping.ScanMapping`.
    background = None
    scan_kind, scene_kind = Scan, Scene

    def __init__(self, radius: ScanMapping | None, cells: ScanMapping) -> None:
        """Start without a scan; without a `radius` there are cells from the start."""
        self._radius, self._cells = radius, cells
        self._later: list[_Call] = []  # what is not in the cells yet
        self._scene: Scene | None = None  # gives the sensor
        #: 1 once the radius did not hold, else 0.
        self.doubts = int(radius is None)
        self._belief: Any = None  # the newest, where it is known

    @property
    def any_outline(self) -> bool:
        """Whether the surface is one of cells."""
        return self.doubts > 0

    @property
    def _used(self) -> ScanMapping:
        return self._cells if self._radius is None or self.any_outline else self._radius

    @property
    def model(self) -> SurfaceModel:
        """The surface model that is published."""
        return self._used.model

    @property
    def checks(self) -> ModelChecks:
        """The checks of what that assumes."""
        return self._used.checks

    def add(
        self, scans: Sequence[MatchedScan], newest_view: int, *, last: bool = True
    ) -> MappedScans:
        """Condition the models on scans, see :meth:`ScanMapping.add`; the `last` call judges
        whether the radius holds.
        """
        self._belief = None
        if self._radius is None or self.any_outline:
            self._catch_up()
            return self._cells.add(scans, newest_view, last=last)
        self._later = [*self._later, (self._scene, scans, newest_view)]
        mapped = self._radius.add(scans, newest_view, last=last)
        if last:
            self._belief = self._radius.belief()
            failed = {check.name for check in failed_checks(self._belief.checks)}
            self.doubts = int(GIVEN_UP_BY in failed)
            if self.doubts:
                self._belief = None
                return self._catch_up()
        if len(self._later) >= _AT_ONCE:
            self._catch_up()
        return mapped

    def add_view(self, scan: Scan, pose: CameraPose) -> MappedScans:
        """See :meth:`ScanMapping.add_view`."""
        return self.add([MatchedScan(0, scan, pose)], -1)

    def _catch_up(self) -> MappedScans:
        """Add the scans that wait to the cells; returns what is new in the last call."""
        calls = self._later
        self._later = []
        mapped = MappedScans.none()
        for scene, scans, newest_view in calls:
            if scene is not None:
                self._cells.use(all_of_it(scene))
            mapped = self._cells.add(scans, newest_view)
        return mapped

    def belief(self) -> Any:
        """See :meth:`ScanMapping.belief`."""
        if self._belief is None:
            belief = self._used.belief()
            if self._radius is not None and self.any_outline and belief.checks:
                belief = dataclasses.replace(belief, checks=(*belief.checks, ANY_OUTLINE))
            self._belief = belief
        return self._belief

    def use(self, scene: Scene) -> None:
        """Take the sensor of this scene from now on; cells may be as near to the centre as any."""
        self._belief = None
        self._scene = scene
        if self._radius is not None:
            self._radius.use(scene)
        if not self._later:
            self._cells.use(all_of_it(scene))

    def copy(self) -> EitherMapping:
        """An independent copy."""
        twin = copy(self)
        twin._radius = self._radius and self._radius.copy()
        twin._cells = self._cells.copy()
        return twin

    def reset(self) -> None:
        """Forget all scans, and what they have shown."""
        self._belief = None
        self.doubts = int(self._radius is None)
        self._later = []
        for mapping in filter(None, (self._radius, self._cells)):
            mapping.reset()

    def state(self) -> Arrays:
        """Everything that is held, as arrays by name."""
        twin = self.copy()
        twin._catch_up()
        cells = {_OF_CELLS + name: array for name, array in twin._cells.state().items()}
        of_radius = {} if self._used is self._cells else self._used.state()
        return {_DOUBTS: np.array(self.doubts), **cells, **of_radius}

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another one of the same settings.

        Raises:
            MeasurementError: the state is not that of such a mapping.
        """
        self._belief = None
        self._later = []
        cells = (name for name in state if name.startswith(_OF_CELLS))
        self._cells.restore({name.removeprefix(_OF_CELLS): state[name] for name in cells})
        if self._radius is not None:
            self.doubts = int(saved_array(state, _DOUBTS, dtype=np.integer, least=0))
        if self._radius is not None and not self.any_outline:
            self._radius.restore(state)


def all_of_it(scene: Scene) -> Scene:
    """The scene of an object that may be anywhere within the greatest radius."""
    return dataclasses.replace(scene, radius_min=_INNERMOST * scene.radius_max)


def scene_of(belief: object, scene: Scene) -> Scene:
    """The scene by which hits of a surface are taken: all of it for one without a radius."""
    return scene if isinstance(belief, SurfaceBelief) else all_of_it(scene)
