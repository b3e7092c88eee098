"""Mapping the scans of an unknown scene about a centre that they show themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import BoolArray
from nbv_planner.mapping.either_mapping import EitherMapping
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.object_search import Search, first_guess
from nbv_planner.mapping.scan_mapping import MappedScans, ScanMapping
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.seam import SurfaceModel
from nbv_planner.world.scale import at_found
from nbv_planner.world.scene import FoundScene, Scene

# The scene that gives the sensor, scans about the centre, and the newest view before them.
_Call = tuple[Scene, list[MatchedScan], int]


class SearchingMapping:
    """Maps scans about a centre that they show themselves, in a mapping that is replaced whenever
    that moves.

    Every scan is kept with its pose in the object frame. When the scene that they show changes, all
    of them are mapped again about its centre, so that the belief is the same as if that had been
    known from the start.
    """

    def __init__(
        self, search: Search, build: Callable[[FoundScene], ScanMapping | EitherMapping]
    ) -> None:
        """Start without a scan; `build` gives an empty mapping for a scene, about its centre."""
        self._search, self._build = search, build
        self.reset()

    @property
    def model(self) -> SurfaceModel:
        """The surface model about the present centre."""
        return self._mapping.model

    @property
    def checks(self) -> ModelChecks:
        """The checks of the mapping about the present centre."""
        return self._mapping.checks

    @property
    def any_outline(self) -> bool:
        """Whether the surface is one of cells."""
        return self._mapping.any_outline

    @property
    def doubts(self) -> int:
        """In how many judgements in a row the radius did not hold."""
        return self._mapping.doubts

    @doubts.setter
    def doubts(self, number: int) -> None:
        self._mapping.doubts = number

    def reset(self) -> None:
        """Forget all scans."""
        self._scans = list[MatchedScan]()
        self._calls = list[_Call]()
        #: which beams of each scan so far have met something else than the object, shape (B,) each.
        self.background = list[BoolArray]()
        self._settle(first_guess(self._search.settings, self._search.scene))

    def use(self, scene: Scene) -> None:
        """Take the sensor of this scene from now on; place and size of the object stay those found,
        if it was.
        """
        self._search = dataclasses.replace(self._search, scene=scene)
        if not self._scans:  # the distance from which it looks depends on the sensor
            self._settle(first_guess(self._search.settings, scene))
        self._mapping.use(at_found(scene, self.found))

    def copy(self) -> SearchingMapping:
        """An independent copy."""
        twin = copy(self)  # the lists are never changed, only replaced
        twin._mapping = self._mapping.copy()
        return twin

    def _settle(self, found: FoundScene) -> None:
        """Start an empty mapping for a scene, with the sensor that is known now."""
        self.found = found  #: the scene.
        self._calls = []
        self._mapping = self._build(found)
        self._mapping.use(at_found(self._search.scene, found))

    def add(
        self,
        scans: Sequence[MatchedScan],
        newest_view: int,
        *,
        last: bool = True,
        known: FoundScene | None = None,
    ) -> MappedScans:
        """Find the scene with these scans, and map them; all others, too, if the scene has changed.

        Mapping may be left to the `last` of several calls; the scene may be `known` from a search
        before.
        """
        if not scans:
            return self._mapping.add(scans, newest_view)
        before = self.found
        number = len(self._scans)
        self._scans = [*self._scans, *scans]
        found, background = self._search.after(before, self._scans, known)
        kept = all(
            np.array_equal(old, new) for old, new in zip(self.background, background, strict=False)
        )
        self.background = background
        if not found.views:  # nothing to map yet: without hits nothing is known within the bounds
            self._settle(found)
            return MappedScans.none()
        new = len({match.view for match in scans if match.view > newest_view})
        if before.views and kept and found.same_as(before):
            self.found = found
        else:
            self._settle(found)
            met = (
                np.isfinite(match.scan.ranges) & ~mask
                for match, mask in zip(self._scans, background, strict=True)
            )
            number = next(number for number, hits in enumerate(met) if hits.any())
            newest_view = -1
        scans = self._about_centre(self._scans[number:], background[number:])
        self._calls = [*self._calls, (self._search.scene, scans, newest_view)]
        return dataclasses.replace(self._mapped(), views=new) if last else MappedScans.none(new)

    def _mapped(self) -> MappedScans:
        """Map all that is waiting; returns what is new in the last call."""
        calls = self._calls
        self._calls = []
        for number, (scene, scans, newest_view) in enumerate(calls, start=1):
            self._mapping.use(at_found(scene, self.found))
            mapped = self._mapping.add(scans, newest_view, last=number == len(calls))
        return mapped

    def _about_centre(
        self, scans: Sequence[MatchedScan], background: Sequence[BoolArray]
    ) -> list[MatchedScan]:
        """The scans about the centre, their beams on the background marked."""
        x, y = self.found.x, self.found.y
        return [
            dataclasses.replace(
                match, pose=match.pose.relative_to(x, y), background=mask if mask.any() else None
            )
            for match, mask in zip(scans, background, strict=True)
        ]

    def belief(self) -> Any:
        """The model's belief, about the centre that was found."""
        return dataclasses.replace(self._mapping.belief(), centre=(self.found.x, self.found.y))

    @property
    def scans(self) -> tuple[MatchedScan, ...]:
        """All scans so far, in the object frame."""
        return tuple(self._scans)

    def state(self) -> dict[str, NDArray[Any]]:
        """What is held about the present centre, besides the :attr:`scans`, as arrays by name."""
        return self._mapping.state()

    def restore(
        self, state: Mapping[str, NDArray[Any]], found: FoundScene, scans: Sequence[MatchedScan]
    ) -> None:
        """Restore the :meth:`state` of another one of the same settings, with what it had `found`
        in its `scans`.

        Raises:
            MeasurementError: it is no such state.
        """
        self._scans = list(scans)
        self._settle(found)
        self._mapping.restore(state)
        self.background = self._search.after(found, self._scans, found)[1] if scans else []


ViewMapping = ScanMapping | EitherMapping | SearchingMapping
"""Maps scans view by view, of a known scene or of one that is found."""
