"""The seam: what planning, sessions and judges know of a surface, whatever its topology and
dimension D, 2 or 3.

A member, such as :mod:`nbv_planner.star2d`, says what a mapper publishes
(:class:`PublishedSurface`), and reads from it what the object may be (:class:`Surface`). Two
notions are enough: what a pose makes *visible*, and what evidence has *seen*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from nbv_planner.geometry import Arrays, BoolArray, FloatArray, IntArray, Point, Rows
from nbv_planner.surface.checks import Check
from nbv_planner.surface.coverage import CoverageEstimate, CoverageTarget, ShapeCoverage
from nbv_planner.surface.regions import Regions
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import FreeRays, RangeNoise, SensorModel
from nbv_planner.world.scene import Scene

DOUBT = 0.5
"""Part of what a view taken should have met, without a measurement there, that is left to be seen:
as likely as not, the hypothesis is wrong."""


_ZEROS: Any = None  # as many as there are hits


@dataclass(frozen=True, eq=False)
class Hits(Rows):
    """Places where beams met the surface, in the object frame, metres: the table of measurements
    between rooms.
    """

    points: FloatArray  #: shape (n, D).
    sigma: FloatArray  #: standard deviation of the range, shape (n,), positive.
    origin: FloatArray  #: where the camera stood, shape (n, D).
    view: IntArray  #: number of the view, shape (n,).
    #: covariance of the point's displacement by errors of the camera's pose, shape (n, D, D),
    #: metres²; 0 by default.
    spread: FloatArray = _ZEROS

    def __post_init__(self) -> None:
        if self.spread is _ZEROS:
            object.__setattr__(self, "spread", np.zeros((*self.points.shape, self.points.shape[1])))

    @cached_property
    def reach(self) -> FloatArray:
        """How far each is from where the camera stood, shape (n,), metres."""
        square = np.zeros(len(self))
        for along in (self.points - self.origin).T:  # over so short an axis numpy is slow
            square += along**2
        return np.asarray(np.sqrt(square))

    @classmethod
    def none(cls, dimension: int = 2) -> Hits:
        """No hit."""
        return cls(
            np.empty((0, dimension)),
            np.empty(0),
            np.empty((0, dimension)),
            np.empty(0, dtype=np.intp),
        )

    def moved(self, *shift: float) -> Hits:
        """The same in a frame with the same axes, in which their origin is at `shift` (D
        numbers), metres.
        """
        return (
            replace(self, points=self.points + shift, origin=self.origin + shift)
            if any(shift)
            else self
        )


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Elements of the surface of S objects that there may be, M each, in the object frame; all as
    likely.
    """

    points: FloatArray  #: middle of each element, shape (S, M, D), metres.
    normals: FloatArray  #: outward unit normal, shape (S, M, D).
    size: FloatArray  #: points or length or area that each counts for, shape (S, M).
    seen: FloatArray  #: part of each that evidence has met, shape (S, M).

    def doubted(self, met: BoolArray) -> FloatArray:
        """Part of each element that counts as seen if T views taken should have `met` it, shape (S,
        T, M): (S, M).

        Each of them takes half of what it should have met and no measurement shows.
        """
        return np.asarray(1.0 - (1.0 - self.seen) * DOUBT ** met.sum(axis=1))

    def near(self, tau: float) -> Iterable[csr_matrix]:
        """Which elements of each object are within `tau` (metres): see :func:`neighbours`."""
        return (neighbours(points, tau) for points in self.points)

    def reached(self, visible: BoolArray, tau: float) -> BoolArray:
        """Which elements lie within `tau` (metres) of one that is `visible` to a view, shape (S, V,
        M).
        """
        return np.stack(list(map(covered, self.near(tau), visible)))


def neighbours(points: FloatArray, tau: float) -> csr_matrix:
    """1 where two of the points, shape (n, D), are within `tau`, metres, itself included; shape (n,
    n).
    """
    pairs = cKDTree(points).query_pairs(tau, output_type="ndarray")
    itself = np.arange(len(points))
    rows, columns = (np.concatenate([itself, *pair]) for pair in (pairs.T, pairs.T[::-1]))
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=2 * (len(points),))


def covered(near: csr_matrix, seen: BoolArray) -> BoolArray:
    """Which of n points lie `near` (n, n) one that each of V views has `seen`, shape (V, n)."""
    return np.asarray((near @ seen.T.astype(np.float32)).T > 0.0)


class PublishedSurface(Protocol):
    """What a mapper has published of a surface."""

    @property
    def checks(self) -> Sequence[Check]:
        """Whether what the mapper assumes holds."""

    @property
    def by_noise(self) -> PublishedSurface:
        """The same as if no error was common to views: what a further view would change."""

    @property
    def count(self) -> int:
        """Number of measurements that it depends on: fewer than before where a mapper has lost
        some.
        """

    def measured(self, tolerance: float, regions: Regions | None = None) -> float:
        """Estimated part of the surface, in [0, 1], that was measured as narrowly as a `tolerance`,
        metres; with a band by the weights of `regions`.
        """

    def keep_off(self, ground: Ground, most: float) -> Ground:
        """The ground with what the object may occupy on it, `most` metres from its origin at
        most.
        """


@runtime_checkable
class Banded(Protocol):
    """A belief that bounds the radius over the polar angle, for the closed forms of the thesis and
    BAND_NARROW.
    """

    def band(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Polar angle, radians, lower and upper bound of the radius, metres, shape (M,) each."""

    def narrow_part(self, tolerance: float, regions: Regions | None = None) -> float:
        """Part of the circle, by the weights of `regions`, on which measurements made the band
        narrower than the `tolerance`, metres.
        """


class Surface(PublishedSurface, Protocol):
    """What the object may be, as far as is known. Immutable; poses and points are in the object
    frame.
    """

    @property
    def by_noise(self) -> Surface:
        """See :class:`PublishedSurface`."""

    @property
    def drawable(self) -> bool:
        """Whether there is evidence to draw hypotheses from."""

    def adding(
        self, hits: Hits, free: Iterable[FreeRays] = (), *, same_view: bool = False
    ) -> Surface:
        """The surface with more measurements and free space, of one view more unless they are of
        the `same_view`.
        """

    def hypotheses(self, aim: CoverageTarget, count: int, seed: int) -> Hypotheses:
        """Draw `count` hypotheses, whose `size` and `seen` are by what is to be covered; the same
        for the same `seed`.

        Raises:
            SettingError: there is no evidence.
        """

    def outline(self) -> tuple[Hypotheses, FloatArray]:
        """The surface as it is most likely (S = 1), and the standard deviation of each element,
        shape (M,), metres.
        """

    def visible(
        self, hypotheses: Hypotheses, poses: Poses, scene: Scene, ground: Ground | None = None
    ) -> BoolArray:
        """Which elements each pose sees, past the obstacles of a `ground`, shape (S, V, M)."""


class Mapped(PublishedSurface, Protocol):
    """The belief of a mapping, before it is published."""

    @property
    def finite(self) -> bool:
        """Whether its numbers are."""

    @property
    def centre(self) -> Point:
        """Point about which its numbers are, in the object frame, metres."""


class SurfaceModel(Protocol):
    """What a mapping conditions on measurements: a model of the surface of any member."""

    solver: str  #: how the newest belief was computed, one word for the diagnostics.

    @property
    def count(self) -> int:
        """Number of measurements so far."""

    @property
    def points(self) -> FloatArray:
        """Where what the belief depends on is, for display, shape (n, D), metres; repeats may be
        merged.
        """

    @property
    def refits_all(self) -> bool:
        """Whether an update depends on the measurements alone, and on no fit before it."""

    def take(
        self,
        hits: Hits,
        free: Iterable[FreeRays] = (),
        *,
        same_view: bool = False,
        last: bool = True,
    ) -> None:
        """Add hits and free space; one more view, unless they are of the `same_view` as the last.

        What depends on all of them together may be left to the `last` of several calls.
        """

    def belief(self) -> Any:
        """The :class:`Mapped` given everything so far; it never changes afterwards."""

    def copy(self) -> SurfaceModel:
        """An independent copy."""

    def reset(self) -> None:
        """Forget all measurements."""

    def state(self) -> Arrays:
        """Everything that the model holds, as arrays by name."""

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another model of the same settings: the same belief, bit for
        bit.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """


Reader = Callable[[Any], Surface]
"""Reads the surface from what a mapper of a member has published; the same object for the same."""


class Certificate(Protocol):
    """Judges how much of a surface has been seen."""

    @property
    def target(self) -> float:
        """Required coverage, in (0, 1]."""

    def estimate(
        self, believed: Any, taken: Poses, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """Estimate the coverage of what a mapper has published, after the views `taken` (T,).

        `delta` is the probability left outside of the interval, `margin` the coverage required
        beyond the target.
        """


def looked_at(
    surface: Surface,
    drawn: Hypotheses,
    aim: CoverageTarget,
    taken: Poses,
    views: Poses,
    scene: Scene,
    ground: Ground | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Part of each element of hypotheses that counts as seen once the views `taken` (T,) have been,
    shape (S, M), and which of them each of `views` (V,) covers past a `ground`, shape (S, V, M).

    With a resolution a view covers what lies within it of what it sees, and nothing is fixed by a
    look whose noise is above `seen_std`.
    """
    visible, met = (surface.visible(drawn, poses, scene, ground) for poses in (views, taken))
    if aim.seen_std:
        visible &= fixed(drawn, views, scene.sensor, aim.noise, aim.seen_std)
    if aim.tau:
        visible, met = (drawn.reached(seen, aim.tau) for seen in (visible, met))
    return drawn.doubted(met), visible


def coverage_of(
    surface: Surface,
    drawn: Hypotheses,
    aim: CoverageTarget,
    taken: Poses,
    views: Poses,
    scene: Scene,
    ground: Ground | None = None,
) -> ShapeCoverage:
    """What is to be seen of hypotheses from `views` (V,) once those `taken` (T,) have been, see
    :func:`looked_at`.

    A view that was taken adds nothing when it is repeated. In space what no view sees does not
    count: undersides would never let the target be reached.
    """
    seen, visible = looked_at(surface, drawn, aim, taken, views, scene, ground)
    size = drawn.size
    if drawn.points.shape[2] == 3:  # in the plane, as published, all counts
        size = size * (visible.any(axis=1) | (drawn.seen > 0.0))
    return ShapeCoverage.left(size, seen, visible, views.repeat(taken))


def fixed(
    drawn: Hypotheses, views: Poses, sensor: SensorModel, noise: RangeNoise, most: float
) -> BoolArray:
    r"""Which element of which hypothesis each view fixes: where :math:`σ(d, γ) \le σ_{most}`, shape
    (S, V, M).

    σ is that of the sensor at the range d and the angle γ between the beam and the normal.
    """
    places, stand = np.unique(views.position, axis=0, return_inverse=True)
    beams = places[:, None] - drawn.points[:, None]
    distance = np.linalg.norm(beams, axis=-1)
    cosine = (beams * drawn.normals[:, None]).sum(axis=-1) / np.maximum(
        distance, np.finfo(float).tiny
    )
    incidence = np.arccos(np.clip(cosine, -1.0, 1.0))
    return np.asarray(sensor.range_std(noise, distance, incidence) <= most)[:, stand.reshape(-1)]
