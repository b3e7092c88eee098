"""Mapping the scans of an unknown scene about a centre that they show themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from nbv_planner.geometry import Arrays, BoolArray
from nbv_planner.gp.posterior import saved_array
from nbv_planner.mapping.either_mapping import ANY_OUTLINE, GIVEN_UP_BY, EitherMapping
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.object_search import Search, first_guess
from nbv_planner.mapping.scan_mapping import MappedScans, ScanMapping
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.checks import failed_checks
from nbv_planner.surface.seam import SurfaceModel
from nbv_planner.world.scale import at_estimate
from nbv_planner.world.scene import EstimatedScene, Scene

# The scene that gives the sensor, scans about the centre, and the newest view before them.
_Call = tuple[Scene, list[MatchedScan], int]
Build = Callable[[EstimatedScene, bool], ScanMapping | EitherMapping]
"""Gives an empty mapping for a scene, of any outline or of a radius."""
# Judgements in a row by which the radius is given up: a centre that moves makes beams pass through
# what should be inside by itself, twice in a row in 1 of 100 episodes.
_ENOUGH = 2
_DOUBTS = "search_doubts"


class SearchingMapping:
    """Maps scans about a centre that they show themselves, in a mapping that is replaced whenever
    that moves.

    Every scan is kept with its pose in the object frame. When the scene that they show changes, all
    of them are mapped again about its centre, so that the belief is the same as if that had been
    known from the start.
    """

    #: see :class:`~nbv_planner.mapping.scan_mapping.ScanMapping`.
    scan_kind, scene_kind = ScanMapping.scan_kind, ScanMapping.scene_kind

    def __init__(self, search: Search, build: Build, *, gives_up: bool = False) -> None:
        """Start without a scan; `build` gives an empty mapping for a scene, about its centre, of
        any outline or of a radius, which it `gives_up` where the scans show that it does not hold.
        """
        self._search, self._build, self._gives_up = search, build, gives_up
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
    def _searched(self) -> Search:
        """How the object is searched now."""
        given_up = self._gives_up and self.doubts >= _ENOUGH
        return dataclasses.replace(self._search, any_outline=True) if given_up else self._search

    def reset(self) -> None:
        """Forget all scans."""
        #: in how many judgements in a row the radius did not hold.
        self.doubts = 0
        self._belief: Any = None  # the newest, where it is known
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
        self._belief = None
        if not self._scans:  # the distance from which it looks depends on the sensor
            self._settle(first_guess(self._search.settings, scene))
        self._mapping.use(at_estimate(scene, self.estimated_scene))

    def copy(self) -> SearchingMapping:
        """An independent copy."""
        twin = copy(self)  # the lists are never changed, only replaced
        twin._mapping = self._mapping.copy()
        return twin

    def _settle(self, estimated: EstimatedScene) -> None:
        """Start an empty mapping for a scene, with the sensor that is known now."""
        self.estimated_scene = estimated  #: the scene.
        self._belief = None
        self._calls = []
        self._mapping = self._build(estimated, self._searched.any_outline)
        self._mapping.use(at_estimate(self._search.scene, estimated))

    def add(
        self,
        scans: Sequence[MatchedScan],
        newest_view: int,
        *,
        last: bool = True,
        known: EstimatedScene | None = None,
    ) -> MappedScans:
        """Find the scene with these scans, and map them; all others, too, if the scene has changed.

        Mapping may be left to the `last` of several calls; the scene may be `known` from a search
        before.
        """
        if not scans:
            return self._mapping.add(scans, newest_view)
        before = self.estimated_scene
        number = len(self._scans)
        self._scans = [*self._scans, *scans]
        self._belief = None
        estimated, background, apart = self._searched.after(before, self._scans, known)
        kept = all(
            np.array_equal(old, new) for old, new in zip(self.background, background, strict=False)
        )
        self.background = background
        if (
            not estimated.views
        ):  # nothing to map yet: without hits nothing is known within the bounds
            self._settle(estimated)
            return MappedScans.none()
        new = len({match.view for match in scans if match.view > newest_view})
        same_kind = self._searched.any_outline == self._mapping.any_outline
        if before.views and kept and same_kind and estimated.same_as(before):
            self.estimated_scene = estimated
            self._wait(number, newest_view)
            again = False
        else:
            self._anew(estimated)
            again = True
        if not last:
            return MappedScans.none(new)
        mapped = self._mapped()
        if self._gives_up and not self.any_outline:
            self._belief = self._mapping.belief()
            failed = {check.name for check in failed_checks(self._belief.checks)}
            # of what one view alone has met nothing is known that others could pass through
            met_again = self.estimated_scene.views > 1
            doubted = (GIVEN_UP_BY in failed and met_again) or apart
            self.doubts = self.doubts + 1 if doubted else 0
            if self.doubts >= _ENOUGH:  # what was apart may be of it
                estimated, self.background, _ = self._searched.after(before, self._scans)
                self._anew(estimated)
                mapped, again = self._mapped(), True
        return dataclasses.replace(mapped, views=new, again=again)

    def _anew(self, estimated: EstimatedScene) -> None:
        """Have all scans mapped again, from the first one on that has met the object."""
        self._settle(estimated)
        met = (
            np.isfinite(match.scan.ranges) & ~mask
            for match, mask in zip(self._scans, self.background, strict=True)
        )
        self._wait(next(number for number, hits in enumerate(met) if hits.any()), -1)

    def _wait(self, number: int, newest_view: int) -> None:
        """Have the scans from this number on mapped next."""
        scans = self._about_centre(self._scans[number:], self.background[number:])
        self._calls = [*self._calls, (self._search.scene, scans, newest_view)]

    def _mapped(self) -> MappedScans:
        """Map all that is waiting; returns what is new in the last call."""
        calls = self._calls
        self._calls = []
        for number, (scene, scans, newest_view) in enumerate(calls, start=1):
            self._mapping.use(at_estimate(scene, self.estimated_scene))
            mapped = self._mapping.add(scans, newest_view, last=number == len(calls))
        return mapped

    def _about_centre(
        self, scans: Sequence[MatchedScan], background: Sequence[BoolArray]
    ) -> list[MatchedScan]:
        """The scans about the centre, their beams on the background marked."""
        x, y = self.estimated_scene.x, self.estimated_scene.y
        return [
            dataclasses.replace(
                match, pose=match.pose.relative_to(x, y), background=mask if mask.any() else None
            )
            for match, mask in zip(scans, background, strict=True)
        ]

    def belief(self) -> Any:
        """The model's belief, about the centre that was found."""
        belief = self._mapping.belief() if self._belief is None else self._belief
        checks = belief.checks
        if self._gives_up and self.any_outline and checks:
            checks = (*checks, ANY_OUTLINE)
        return dataclasses.replace(
            belief, checks=checks, centre=(self.estimated_scene.x, self.estimated_scene.y)
        )

    @property
    def scans(self) -> tuple[MatchedScan, ...]:
        """All scans so far, in the object frame."""
        return tuple(self._scans)

    def state(self) -> Arrays:
        """What is held about the present centre, besides the :attr:`scans`, as arrays by name."""
        return {**self._mapping.state(), _DOUBTS: np.array(self.doubts)}

    def restore(
        self, state: Arrays, estimated: EstimatedScene, scans: Sequence[MatchedScan]
    ) -> None:
        """Restore the :meth:`state` of another one of the same settings, with what it had `found`
        in its `scans`.

        Raises:
            MeasurementError: it is no such state.
        """
        self.doubts = int(saved_array(state, _DOUBTS, dtype=np.integer, least=0))
        self._scans = list(scans)
        self._settle(estimated)
        self._mapping.restore(state)
        self.background = (
            self._searched.after(estimated, self._scans, estimated)[1] if scans else []
        )


ViewMapping = ScanMapping | EitherMapping | SearchingMapping
"""Maps scans view by view, of a known scene or of one that is found."""
