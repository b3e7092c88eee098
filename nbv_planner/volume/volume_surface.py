"""The implicit surface as a member behind the seam: see :mod:`nbv_planner.surface.seam`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    Arrays,
    BoolArray,
    FloatArray,
    IntArray,
    Point,
    cartesian_to_polar,
)
from nbv_planner.gp.posterior import saved_array
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.surface.checks import Check
from nbv_planner.surface.coverage import POINTS, CoverageEstimate, CoverageTarget, PointSet
from nbv_planner.surface.displacement import Displaced
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import Hits, Hypotheses
from nbv_planner.volume.agreement import agreement, at_hits, thin_walls
from nbv_planner.volume.contours import Likeliest
from nbv_planner.volume.grid import HIT, UNKNOWN, Cells, Lattice, Merged
from nbv_planner.volume.implicit import ImplicitPrior, Posterior, Reading, observations
from nbv_planner.volume.known_surface import posterior_of
from nbv_planner.volume.sampled_solids import needed, others, solids_of
from nbv_planner.volume.solids import CellHypotheses, Sight, elements
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene

_CELLS, _COARSE = {2: 128, 3: 48}, {2: 64, 3: 32}
# In space there are more places than a factorisation bears: they lie farther apart.
_READING = {2: Reading(), 3: Reading(side=0.1, most=400)}
# Sectors of the outline that a robot keeps off, and directions in which a cell counts.
_SECTORS, _ASIDE = 180, 17
# Samples differ less than objects do: of the part that they leave to be seen so much is left at
# most and least. A claim asks for the target after so many views in a row: one that looks at what
# samples get wrong undoes it. Chosen on glyphs, judged on others (docs/explanation/any_outline.md).
_MOST_LEFT, _LEAST_LEFT, _IN_A_ROW = 2.0, 0.3, 3
# Directions by which it is told how much is measured.
_DIRECTIONS = 500
# So many standard deviations before the greatest range beams surely return, and mostly do.
_GREY, _MOSTLY = 3.0, 1.0
# In how many turns it is asked what poses in space see, and elements of all of a solid's surface.
_TURNS, _WHOLE = 10, 10_000
# What is drawn to tell what the object may occupy.
_OCCUPYING, _SEED = 32, 0


@dataclass(frozen=True)
class VolumeForm:
    """What the implicit surface is made of, and how finely.

    Raises:
        SettingError: there is no such lattice.
    """

    dimension: int = 2  #: D, 2 or 3.
    radius: float = 8.0  #: of the ball about the origin that holds the object, metres.
    prior: ImplicitPrior = field(default_factory=ImplicitPrior)
    reading: Reading | None = None  #: None for that of the dimension.
    most: int = 1500  #: elements of a hypothesis.
    known: KnownForm | None = None  #: outlines or mesh that were known beforehand.

    @property
    def read(self) -> Reading:
        """How hits and free space are read."""
        return self.reading or _READING[self.dimension]

    @cached_property
    def lattice(self) -> Lattice:
        """Of the cells."""
        return Lattice.around(self.dimension, _CELLS.get(self.dimension, 0), self.radius)

    @cached_property
    def coarse(self) -> Lattice:
        """Of the samples of φ."""
        return Lattice.around(self.dimension, _COARSE[self.dimension], self.radius)

    def posterior(self, cells: Cells, *, close: bool = False) -> Posterior:
        """φ given all of the cells, as `close` to the hits as the likeliest object is."""
        prior, read = (self.prior.closest, self.read.closest) if close else (self.prior, self.read)
        return posterior_of(prior, self.coarse, observations(cells, read), self.known, cells)


@dataclass(frozen=True, eq=False)
class VolumeSurface:
    """What was measured, and what there may be: all that a mapper publishes. Immutable."""

    form: VolumeForm
    cells: Cells
    sight: Sight
    count: int = 0  #: number of measurements.
    checks: Sequence[Check] = ()
    #: about which its cells are, in the object frame, metres.
    centre: Point = ORIGIN

    @classmethod
    def blank(cls, form: VolumeForm) -> VolumeSurface:
        """Nothing has been measured."""
        return cls(form, Cells.blank(form.lattice), Sight(form.lattice))

    @property
    def by_noise(self) -> VolumeSurface:
        """The same: errors common to views are not modelled."""
        return self

    @property
    def finite(self) -> bool:
        """Whether its numbers are: none else is taken."""
        return True

    def as_transmitted(self) -> VolumeSurface:
        """The same: there is no message of it."""
        return self

    def seen_from(self, x: float, y: float) -> VolumeSurface:
        """The same in a frame with the same axes whose origin is at (x, y) of this one's."""
        if x == y == 0.0:
            return self
        return dataclasses.replace(self, centre=(self.centre[0] - x, self.centre[1] - y))

    @property
    def _aside(self) -> FloatArray:
        """The centre, shape (D,)."""
        return np.array([*self.centre, 0.0])[: self.form.dimension]

    @property
    def drawable(self) -> bool:
        """Whether anything was hit."""
        return bool(len(self.cells.hits.key))

    def adding(
        self, hits: Hits, free: Iterable[FreeRays] = (), *, same_view: bool = False
    ) -> VolumeSurface:
        """The surface with more hits and with rays on which there is no surface.

        Raises:
            MeasurementError: see :meth:`.Cells.adding`.
        """
        if any(self.centre):
            hits = hits.moved(*-self._aside)
            free = [dataclasses.replace(one, origin=one.origin - self._aside) for one in free]
        cells = self.cells.adding(hits, free)
        return dataclasses.replace(self, cells=cells, count=self.count + len(hits))

    @cached_property
    def posterior(self) -> Posterior:
        """φ given all measurements."""
        return self.form.posterior(self.cells)

    def solids(self, count: int, seed: int) -> BoolArray:
        """Which cells belong to each of `count` objects that there may be, shape (S, N)."""
        coarse = self.form.coarse
        fields = self.posterior.samples(count, seed, needed(self.cells, coarse))
        return solids_of(self.cells, coarse, fields)

    def hypotheses(self, aim: CoverageTarget, count: int, seed: int) -> CellHypotheses:
        """Draw objects; their elements count for their size, in sides or faces of cells."""
        solids = self.solids(count, seed)
        if self.drawable:
            solids = others(self.cells, solids, seed)
        drawn = elements(self.form.lattice, solids, self.form.most, seed)
        face = self.form.lattice.cell ** (self.form.dimension - 1)
        drawn = dataclasses.replace(drawn, size=drawn.size / face)
        found = self._placed(self.met(drawn, aim.tau))
        return dataclasses.replace(found, size=aim.weighed(found.size, found.points))

    def _placed(self, drawn: CellHypotheses) -> CellHypotheses:
        """The same about the centre."""
        aside = self._aside
        return dataclasses.replace(drawn, points=drawn.points + aside) if aside.any() else drawn

    def met(self, drawn: CellHypotheses, tau: float) -> CellHypotheses:
        """The same with what of them lies within `tau` (metres), at least a cell, of a hit."""
        which, place = np.unique(drawn.cell, return_inverse=True)
        met = self.cells.near(self.form.lattice.centres[which], tau)
        seen = met[place.reshape(drawn.cell.shape)] | (drawn.size == 0.0)
        return dataclasses.replace(drawn, seen=seen.astype(float))

    @cached_property
    def likeliest(self) -> Likeliest:
        """The object of the mean of φ."""
        flat = self.form.dimension == 2
        posterior = self.form.posterior(self.cells, close=True) if flat else self.posterior
        return Likeliest(self.cells, posterior, self._aside)

    def outline(self) -> tuple[CellHypotheses, FloatArray]:
        """The surface of the mean of φ, and the deviation of φ at each element, at hits that of a
        range at most.
        """
        solids = self.likeliest.solids
        drawn = self.met(elements(self.form.lattice, solids, self.form.most, 0), POINTS.tau)
        std = self.likeliest.deviation(drawn.points[0], drawn.seen[0] > 0.0)
        return self._placed(drawn), std

    def visible(
        self,
        hypotheses: Hypotheses,
        poses: Poses,
        scene: Scene,
        ground: Ground | None = None,
        *,
        surely: bool = False,
    ) -> BoolArray:
        """Which elements of its hypotheses each pose sees, past the obstacles of a `ground`, shape
        (S, V, M), most of whose beams return; with `surely` those alone of which each does.
        """
        assert isinstance(hypotheses, CellHypotheses)
        about = poses.relative_to(*self.centre) if any(self.centre) else poses
        far = scene.sensor.range_max - (_GREY if surely else _MOSTLY) * self.cells.hits.noise
        reach = far if surely or self.form.dimension == 2 else math.inf
        found = self.sight.visible(hypotheses, about, scene, reach)
        if ground is not None and ground.hides and len(poses):
            x, y = poses.position[:, 0], poses.position[:, 1]
            for seen, points in zip(found, hypotheses.points, strict=True):
                angle, radius = cartesian_to_polar(points[:, 0], points[:, 1])
                seen &= ~ground.hidden(x, y, angle, radius)
        return found

    def measured_points(self, tau: float) -> PointSet:
        """What of the likeliest surface lies within `tau` (metres) of a hit."""
        if not self.drawable:
            return PointSet(np.empty((0, self.form.dimension)), np.empty(0))
        mean = self.met(self.outline()[0], tau)
        met = (mean.seen[0] > 0.0) & (mean.size[0] > 0.0)
        return PointSet(mean.points[0][met], mean.size[0][met])

    def agreement(
        self, cameras: Poses, view: IntArray, hits: FloatArray
    ) -> tuple[Displaced, float, list[FloatArray]]:
        """See :func:`.agreement`, of the likeliest surface; in the plane :func:`.thin_walls`."""
        lattice, known, flat = self.form.lattice, self.cells.hits, self.form.dimension == 2
        mean = elements(lattice, self.likeliest.solids, self.form.most if flat else _WHOLE, 0)
        mean = self._placed(mean if flat else at_hits(mean, known))
        walls: list[FloatArray] = thin_walls(known, lattice.cell) if flat else []
        compared = agreement(mean, lattice.cell, cameras, view, hits)
        return (*compared, [one + self._aside for one in walls])

    def measured(self, tolerance: float, regions: Regions | None = None) -> float:
        """Part of the directions from the origin whose ray passes within the `tolerance` (metres)
        of a hit, whatever the `regions`: more hits never lower it; too high behind another surface.
        """
        hits = self.cells.hits.mean
        rays = np.random.default_rng(0).standard_normal((_DIRECTIONS, self.form.dimension))
        along = hits @ (rays / np.linalg.norm(rays, axis=1)[:, None]).T
        aside = (hits**2).sum(axis=1)[:, None] - along**2
        return float(((along > 0.0) & (aside <= tolerance**2)).any(axis=0).mean())

    def keep_off(self, ground: Ground, most: float) -> Ground:
        """The ground with all that one of 32 objects occupies; all before a hit."""
        angle = np.arange(_SECTORS) * (TWO_PI / _SECTORS)
        if not self.drawable:
            return ground.with_object(angle, np.full(_SECTORS, self.form.radius), most, self.centre)
        some = self.solids(_OCCUPYING, _SEED).any(axis=0) | (self.cells.state == HIT)
        around, radius = cartesian_to_polar(*self.form.lattice.centres[some, :2].T)
        cell = self.form.lattice.cell
        upper = np.zeros(_SECTORS)
        half = np.arcsin(np.minimum(cell / np.maximum(radius, cell), 1.0))
        for aside in np.linspace(-1.0, 1.0, _ASIDE):
            sector = ((around + aside * half) / TWO_PI * _SECTORS).astype(int) % _SECTORS
            np.maximum.at(upper, sector, radius + cell)
        return ground.with_object(angle, upper, most, self.centre)


def read(surface: VolumeSurface) -> VolumeSurface:
    """What the mapper has published: itself, see :data:`nbv_planner.surface.seam.Reader`."""
    return surface


class VolumeModel:
    """Collects hits and free space, see :class:`~nbv_planner.surface.seam.SurfaceModel`."""

    solver = "implicit"
    refits_all = True

    def __init__(self, form: VolumeForm) -> None:
        """Start without a scan."""
        self.surface = VolumeSurface.blank(form)  #: what is known.

    @property
    def count(self) -> int:
        """Number of hits so far."""
        return self.surface.count

    @property
    def points(self) -> FloatArray:
        """Where the merged hits are, shape (n, D), metres."""
        return self.surface.cells.hits.mean

    def take(
        self,
        hits: Hits,
        free: Iterable[FreeRays] = (),
        *,
        same_view: bool = False,
        last: bool = True,
    ) -> None:
        """Add hits and free space, see :meth:`VolumeSurface.adding`."""
        self.surface = self.surface.adding(hits, free, same_view=same_view)

    def belief(self) -> VolumeSurface:
        """What is published."""
        return self.surface

    def copy(self) -> VolumeModel:
        """An independent copy: surfaces are never changed."""
        return copy(self)

    def reset(self) -> None:
        """Forget everything."""
        self.surface = VolumeSurface.blank(self.surface.form)

    def state(self) -> Arrays:
        """Everything that is held, as arrays by name."""
        cells = self.surface.cells
        return {"cells": cells.state, "count": np.array(self.surface.count), **cells.hits.state}

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another model of the same form.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """
        blank = VolumeSurface.blank(self.surface.form)
        lattice = blank.form.lattice
        cells = saved_array(state, "cells", len(lattice.centres), dtype=np.uint8)
        hits = Merged.of_state(state, lattice)
        if (cells > HIT).any() or (cells[lattice.outside] == UNKNOWN).any():
            raise MeasurementError("cells: holds a value that is not valid")
        if (cells[hits.key >> lattice.dimension] != HIT).any():
            raise MeasurementError("cells: one with a hit does not say so")
        count = int(saved_array(state, "count", dtype=np.integer, least=0))
        self.surface = dataclasses.replace(blank, cells=Cells(lattice, cells, hits), count=count)


@dataclass(frozen=True)
class VolumeCertificate:
    """Completeness of what can be seen, by hypotheses: what views taken should have met and did not
    counts by half.

    What none of the `views` surely sees of a hypothesis does not count. A claim asks for the target
    after three views in a row, and the interval is wider than that of the hypotheses, by what was
    left in simulated episodes; the probability is theirs.
    """

    scene: Scene
    aim: CoverageTarget
    views: Poses  #: candidates.
    target: float = 0.95
    count: int = 64  #: hypotheses.
    seed: int = 1

    def ever(self, believed: VolumeSurface, drawn: CellHypotheses) -> BoolArray:
        """Which elements some candidate surely sees, shape (S, M); in space those that have been
        seen are among them, and no pose is asked about what another one sees.
        """
        if believed.form.dimension == 2:
            visible = believed.visible(drawn, self.views, self.scene, surely=True)
            return np.asarray(visible.any(axis=1))
        found = drawn.seen > 0.0
        for begin in range(_TURNS):
            rest = dataclasses.replace(drawn, seen=found.astype(float))
            some = self.views.chosen(slice(begin, None, _TURNS))
            found = found | believed.visible(rest, some, self.scene, surely=True).any(axis=1)
        return found

    def estimate(
        self, believed: VolumeSurface, taken: Poses, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """See :class:`~nbv_planner.surface.seam.Certificate`."""
        drawn = believed.hypotheses(self.aim, self.count, self.seed)
        ever = self.ever(believed, drawn)
        met = believed.visible(drawn, taken, self.scene, surely=True)
        if self.aim.tau:
            met = drawn.reached(met, self.aim.tau)
        counts = drawn.size * (ever | (drawn.seen > 0.0))
        covered = self.aim.parts(counts, drawn.doubted(met))
        found = CoverageEstimate.by_hypotheses(covered, self.target + margin, delta, self.aim.tau)
        lower = max(1.0 - _MOST_LEFT * (1.0 - found.lower), 0.0)
        upper = 1.0 - _LEAST_LEFT * (1.0 - found.upper)
        return dataclasses.replace(found, lower=lower, upper=upper, asked=_IN_A_ROW)
