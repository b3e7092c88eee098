"""Judging the steps of an episode against the true object."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import (
    Calibration,
    EpisodeRecord,
    Step,
    ViewRecord,
    calibration,
    episode_metrics,
)
from nbv_planner.geometry import BoolArray, FloatArray, intersection_over_union, polar_to_cartesian
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.motion import TimeSettings, trip_time
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief, once_around
from nbv_planner.star2d.shapes.completeness import SAMPLES, MeasuredContour
from nbv_planner.surface.coverage import PointSet
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import PublishedSurface
from nbv_planner.versions import versions
from nbv_planner.volume.bodies.outline_truth import OutlineTruth
from nbv_planner.world.objects import PolarObject, SurfacePoints
from nbv_planner.world.objects.true_outlines import Outlines
from nbv_planner.world.objects.true_shapes import angles_around
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

_SAMPLES = 1500
_WALK = 4096


@dataclass(frozen=True)
class PointErrors:
    """Errors of a measured surface of any form against the true one, both as points.

    The Chamfer distance is the mean of both directions, as Mescheder et al. 2019 (Occupancy
    Networks) have it.
    """

    completeness: float  #: part of the true surface within τ of the measured one.
    #: part of the measured surface within τ of the true one; NaN if nothing was measured.
    accuracy: float
    #: half the sum of the mean distances from each to the other, metres; NaN likewise.
    chamfer: float
    weighted: float = math.nan  #: completeness by the weights of regions.

    @classmethod
    def of(
        cls, measured: PointSet, true: PointSet, tau: float, regions: Regions | None = None
    ) -> PointErrors:
        """Compare a measured surface with the true one at a resolution of `tau`, metres."""
        missed = true.distance_from(measured)
        off = measured.distance_from(true)
        chamfer = 0.5 * (true.mean(missed) + measured.mean(off))
        weighted = math.nan
        if regions is not None:
            counts = PointSet(true.points, true.length * regions.weights(true.points))
            weighted = counts.part(missed <= tau)
        return cls(true.part(missed <= tau), measured.part(off <= tau), chamfer, weighted)


@dataclass(frozen=True, eq=False)
class SampledContour(PointSet):
    """A closed contour as points at equal distances along it; the length of each counts as 1."""

    spacing: float  #: distance between neighbours along the contour, metres.

    @classmethod
    def of_polar(
        cls,
        angle: FloatArray,
        radius: FloatArray,
        samples: int = _SAMPLES,
        spacing: float = math.inf,
    ) -> SampledContour:
        """Sample the closed polygon through points given in polar coordinates, rising in angle,
        shape (n,) each.
        """
        return cls.of_vertices(
            np.stack(polar_to_cartesian(angle, radius), axis=1), samples, spacing
        )

    @classmethod
    def of_vertices(
        cls, vertices: FloatArray, samples: int, spacing: float = math.inf
    ) -> SampledContour:
        """Sample the closed polygon through points, shape (n, 2), metres, with at most `spacing`
        (metres) between.
        """
        closed = np.concatenate([vertices, vertices[:1]])
        arc_length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
        samples = max(samples, math.ceil(float(arc_length[-1]) / spacing))
        spacing = float(arc_length[-1]) / samples
        at = np.arange(samples) * spacing
        points = np.stack([np.interp(at, arc_length, closed[:, axis]) for axis in (0, 1)], axis=1)
        return cls(points, np.ones(samples), spacing)

    @classmethod
    @lru_cache(maxsize=8)
    def of_shape(
        cls, shape: PolarObject, samples: int = _SAMPLES, spacing: float = math.inf
    ) -> SampledContour:
        """Sample a true object, its corners included in the polygon."""
        angle = angles_around(shape, _WALK)
        return cls.of_polar(angle, shape.radius(angle), samples, spacing)


def hausdorff_distance(first: SampledContour, second: SampledContour) -> float:
    r"""Hausdorff distance :math:`\max(\max_{a} \min_{b} |a - b|, \max_{b} \min_{a} |a - b|)`,
    metres.

    Between samples; that of the sampled curves differs by at most one `spacing` (the larger one).
    """
    return float(max(first.distance_from(second).max(), second.distance_from(first).max()))


def true_radius(shape: PolarObject, belief: SurfaceBelief) -> FloatArray:
    """True radius at the grid angles of a belief, metres: about its centre that of the first
    surface met, 0 outside.
    """
    if belief.centre == (0.0, 0.0):
        return shape.radius(belief.angle)
    angle = angles_around(shape, _WALK)
    contour = Contour(*polar_to_cartesian(angle, shape.radius(angle)))
    found = cast_beams(contour, CameraPose(*belief.centre, 0.0), belief.angle)
    return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True)
class SurfaceError:
    r"""Errors of the mean contour :math:`μ(φ)` and of the band against the true radius
    :math:`f(φ)`.
    """

    rmse: float  #: root of the mean of :math:`(μ - f)^2` over the grid angles, metres.
    max_error: float  #: greatest :math:`|μ - f|` over the grid angles, metres.
    hausdorff: float  #: Hausdorff distance between the two contours, metres.
    iou: float  #: area inside both contours over the area inside either.
    band_coverage: float  #: fraction of the grid angles with :math:`l \le f \le u`.


def surface_error(belief: SurfaceBelief, shape: PolarObject) -> SurfaceError:
    """Compare a belief with the true object."""
    true = true_radius(shape, belief)
    error = np.abs(belief.mean - true)
    inside = (belief.lower <= true) & (true <= belief.upper)
    once = once_around(belief)
    # a Gaussian belief may leave the half-line on which radii live
    mean = np.maximum(belief.mean, 0.0)
    places = np.stack(polar_to_cartesian(belief.angle[once], mean[once]), axis=1) + belief.centre
    return SurfaceError(
        rmse=float(np.sqrt(np.mean(error[once] ** 2))),
        max_error=float(error.max()),
        hausdorff=hausdorff_distance(
            SampledContour.of_vertices(places, _SAMPLES), SampledContour.of_shape(shape)
        ),
        iou=intersection_over_union(mean[once], true[once]),
        band_coverage=float(inside[once].mean()),
    )


class Truth(Protocol):
    """The true object in D = 2 or 3 dimensions: its outline as points, and the P elements that
    count when seen.
    """

    def __len__(self) -> int: ...

    def visible(self, views: Poses) -> BoolArray:
        """Which elements each of the views sees, shape (V, P)."""

    def outline(self, spacing: float) -> PointSet:
        """Points of its surface, at most `spacing` (metres) from each other."""

    def measured(self, belief: Any, tau: float) -> PointSet:
        """Points of the surface that a belief says was measured, as finely as a resolution of `tau`
        (metres) needs.
        """

    def errors(self, belief: Any) -> dict[str, float]:
        """Errors of r(φ) and of its band, by the names of their columns; none where the belief has
        no band.
        """

    def calibration(self, belief: Any) -> Calibration | None:
        """How often the truth lies in the band; None where the belief has none."""


@dataclass(frozen=True, eq=False)
class StarTruth:
    """A radius over the polar angle, of which the surface points of the thesis count."""

    points: SurfacePoints  #: the true surface points.
    scene: Scene  #: cone and view circle.
    shape: PolarObject  #: the true object.

    def __len__(self) -> int:
        return len(self.points)

    def visible(self, views: Poses) -> BoolArray:
        """See :class:`Truth`."""
        return observe(self.points.angle, self.points.radius, views, self.scene)

    def outline(self, spacing: float) -> PointSet:
        """See :class:`Truth`."""
        return SampledContour.of_shape(self.shape, spacing=spacing)

    def measured(self, belief: Any, tau: float) -> PointSet:
        """See :class:`Truth`."""
        return measured_points(self.scene.pixel_size, belief, tau)

    def errors(self, belief: Any) -> dict[str, float]:
        """See :class:`Truth`."""
        if not isinstance(belief, SurfaceBelief):
            return {}
        return asdict(surface_error(belief, self.shape))

    def calibration(self, belief: Any) -> Calibration | None:
        """See :class:`Truth`."""
        if not isinstance(belief, SurfaceBelief):
            return None
        return calibration(belief, true_radius(self.shape, belief))


def measured_points(pixel: float, belief: Any, tau: float) -> PointSet:
    """Points of the surface that a belief of any member says was measured, as finely as a
    resolution of `tau` (metres) needs; a gap of a contour is at least a `pixel` wide.
    """
    if isinstance(belief, SurfaceBelief):
        return MeasuredContour.of(belief, pixel, tau)
    found: PointSet = belief.measured_points(tau)
    return found


def truth_of(shape: Any, points: SurfacePoints, scene: Scene, views: Poses) -> Any:
    """A PolarObject with its surface points, or Outlines, of which what the `views` see counts."""
    if isinstance(shape, Outlines):
        return OutlineTruth(shape, scene, views, partial(measured_points, scene.pixel_size))
    return StarTruth(points, scene, shape)


AnyTruth = TypeVar("AnyTruth", bound=Truth)


@dataclass(eq=False)
class Judge(Generic[AnyTruth]):
    """Judges each step against the true object as it arrives."""

    truth: AnyTruth  #: the true object.
    space: ViewSpace  #: its candidates are those among which the greedy gain is sought.
    #: where the camera is before the first view; None if travel to that costs nothing.
    start: CameraPose | None = None
    #: resolution of completeness and accuracy, metres.
    tau: float = PlannerSettings.completeness_tau
    pace: TimeSettings = field(default_factory=TimeSettings)  #: cost model of the seconds.
    regions: Regions | None = None  #: by whose weights the completeness is judged, too.
    steps: list[Step] = field(default_factory=list)
    views: list[ViewRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        #: which elements have been seen, shape (P,).
        self.seen: BoolArray = np.zeros(len(self.truth), dtype=bool)
        #: the surface measured so far.
        self.measured = PointSet(self.outline.points[:0], self.outline.length[:0])
        self._belief: Any = None
        self._last = self.start

    @cached_property
    def _visible(self) -> BoolArray:
        return self.truth.visible(self.space.candidates)

    @cached_property
    def outline(self) -> PointSet:
        """The true outline, finely enough for the resolution."""
        return self.truth.outline(self.tau / SAMPLES)

    @property
    def coverage(self) -> float:
        """Fraction of the elements seen so far."""
        return float(self.seen.mean())

    @property
    def complete(self) -> BoolArray:
        """Which points of the true outline lie within `tau` of the surface measured so far, shape
        (N,).
        """
        return self.outline.distance_from(self.measured) <= self.tau

    def new_points(self, *views: CameraPose) -> BoolArray:
        """Which elements one of these views would see for the first time, shape (P,)."""
        return self.truth.visible(Poses.of(views)).any(axis=0) & ~self.seen

    def add(self, step: Step) -> ViewRecord:
        """Judge a step and keep it."""
        self.steps.append(step)
        return self.add_view(
            step.view, step.objective_value, step.milliseconds, step.belief, step.passed
        )

    def add_view(
        self,
        view: CameraPose,
        objective_value: float,
        milliseconds: float,
        belief: PublishedSurface | None,
        passed: Sequence[CameraPose] = (),
    ) -> ViewRecord:
        """Judge a view of which less may be known than a step holds; errors of what is not known
        are NaN.

        What has been seen from views `passed` on the way there counts for it.
        """
        new = self.new_points(*passed, view)
        travelled = self.views[-1].travelled if self.views else 0.0
        if self._last is not None:
            travelled += float(self.space.timed_path_length(self._last, Poses.of([view]))[0])
        seconds = self.views[-1].seconds if self.views else 0.0
        seconds += float(trip_time(self.space, self._last, Poses.of([view]), self.pace)[0])
        angle, distance, turn = view.polar
        greedy_gain = int((self._visible & ~self.seen).sum(axis=1).max())
        self.seen = self.seen | new
        errors = dict[str, float]()
        if belief is not None:
            errors = self.truth.errors(belief)
            self.measured = self.truth.measured(belief, self.tau)
            found = PointErrors.of(self.measured, self.outline, self.tau, self.regions)
            errors |= asdict(found)
        record = ViewRecord(
            number=len(self.views) + 1,
            new_points=int(new.sum()),
            coverage=self.coverage,
            greedy_gain=max(greedy_gain, int(new.sum())),
            objective_value=objective_value,
            milliseconds=milliseconds,
            travelled=travelled,
            seconds=seconds,
            angle=angle,
            distance=distance,
            turn=turn,
            **errors,
        )
        self._belief, self._last = belief, view
        self.views.append(record)
        return record

    def compare(self, best: Sequence[int]) -> None:
        r"""Give the views their simple regret, from what the best sets of t = 1, 2, ... views see,
        :math:`F(Θ^*_t)`.

        .. math:: r(t) = (1 - 1/e)(F(Θ^*_t) - F(Θ^*_{t-1})) - F(θ_t|θ_{1:t-1})

        (thesis eq. simple-regret), in surface points; views beyond the last of `best` keep NaN.
        """
        for index, more in zip(range(len(self.views)), np.diff(best, prepend=0), strict=False):
            view = self.views[index]
            regret = (1.0 - math.exp(-1.0)) * float(more) - view.new_points
            self.views[index] = dataclasses.replace(view, simple_regret=regret)

    def record(
        self, config: dict[str, Any], seed: int, termination: Termination, **extra: str
    ) -> EpisodeRecord:
        """Close the episode; `extra` goes to the versions."""
        belief = self._belief
        found, checks = (
            (None, ()) if belief is None else (self.truth.calibration(belief), belief.checks)
        )
        return EpisodeRecord(
            config,
            versions(**extra),
            seed,
            tuple(self.views),
            termination,
            self.metrics(),
            calibration=found,
            checks=checks,
        )

    def metrics(self) -> dict[str, float | int | None]:
        """Metrics of the views so far, see :func:`nbv_planner.episode.records.episode_metrics`."""
        return episode_metrics(self.views, len(self.truth))


EpisodeJudge = Judge[StarTruth]
"""Judges surfaces that are a radius over the polar angle."""
