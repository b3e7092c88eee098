"""What is to be covered of a surface, how much there is, and what views would add: of any form, in
any dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.errors import ConfigFileError, SettingError
from nbv_planner.geometry import BoolArray, FloatArray, Rows
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.surface.checks import Check, noise_factor
from nbv_planner.surface.region_files import regions_in
from nbv_planner.surface.regions import Regions
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import RangeNoise

# Points are counted in parts of this size: sums of whole parts are exact in single precision, in
# whatever order a linear algebra library adds them, so that decisions do not depend on it.
_PART = 2.0**-8
_NOISELESS = RangeNoise(0.0, 0.0)


@dataclass(frozen=True)
class TargetSettings(Settings):
    """What is to be covered, and by how many hypotheses it is judged.

    Raises:
        SettingError: a value is out of range, or the regions are none.
    """

    shapes: int = python_setting(32, "EMC, rollout: number of posterior shapes.", ge=1, le=10_000)
    target: str = setting(
        "completeness",
        "What is to be covered: the outline within completeness_tau of the measured surface,"
        " or, as in the thesis, surface points.",
        choices=("points", "completeness"),
    )
    completeness_tau: float = setting(
        0.3,
        "Resolution of the completeness: raise it if a coarse outline is enough. Default:"
        " noise_std + radius_max / 80.",
        unit="m",
        gt=0.0,
        scale="view_distance",
    )
    noise_std: float = setting(
        0.2,
        "Standard deviation of a range measurement, as surface_mapper has it: completeness_tau"
        " follows from it.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    noise_std_per_metre: float = setting(
        0.0, "Part of that which grows with range, as surface_mapper has it.", unit="m/m", ge=0.0
    )
    seen_std: float = python_setting(
        0.0,
        "U, EMC, rollout, tour: greatest standard deviation of a range at which a look fixes the"
        " surface; what is seen worse does not count as seen by the next view. 0: any.",
        unit="m",
        ge=0.0,
    )
    point_density: str = python_setting(
        "crossings",
        "target points: what counts as points: crossings of pixel edges, or length of the contour.",
        choices=("crossings", "length"),
    )
    target_coverage: float = setting(
        0.95, "Part of the target that must be covered: lower it to end earlier.", gt=0.0, le=1.0
    )
    regions: str = python_setting(
        "", "Regions that matter, by whose weights all that is covered counts; from region_file."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            given = regions_in(self.regions)
        except ConfigFileError as error:
            raise SettingError(str(error)) from error
        if given is not None and self.target != "completeness":
            raise SettingError(f"target: {self.target} counts no regions; must be completeness")

    @property
    def noise(self) -> RangeNoise:
        """Noise of the ranges."""
        return RangeNoise(self.noise_std, self.noise_std_per_metre)


@dataclass(frozen=True)
class CoverageTarget:
    """What is to be covered: surface points of the `density`, or with `tau` > 0 (metres) the
    outline within it.
    """

    #: see :func:`nbv_planner.star2d.shapes.shape_coverage.surface_density`.
    density: str = "crossings"
    tau: float = 0.0  #: resolution, metres; 0 for surface points.
    noise: RangeNoise = _NOISELESS  #: of the sensor, as declared.
    #: greatest standard deviation of a range that fixes the surface, metres; 0: any.
    seen_std: float = 0.0
    regions: Regions | None = None  #: weights of the places on the surface; None: all alike.

    @classmethod
    def of(cls, settings: TargetSettings) -> CoverageTarget:
        """That of the settings of a planner."""
        if settings.target == "points":
            noise = settings.noise if settings.seen_std else _NOISELESS
            return cls(settings.point_density, 0.0, noise, settings.seen_std)
        tau, regions = settings.completeness_tau, regions_in(settings.regions)
        return cls("length", tau, settings.noise, settings.seen_std, regions)

    def with_checks(self, pixel_size: float, checks: Sequence[Check]) -> CoverageTarget:
        """This one with the noise that the mapper has found, where it is larger than declared.

        A resolution of `noise_std` + `pixel_size` (metres), which follows from the noise, grows
        with it; another one was set explicitly.
        """
        factor = noise_factor(checks)
        if factor == 1.0:
            return self
        follows = math.isclose(self.tau, self.noise.noise_std + pixel_size)
        tau = self.tau + (factor - 1.0) * self.noise.noise_std if follows else self.tau
        return replace(self, tau=tau, noise=self.noise.scaled(factor))

    def weighed(self, size: FloatArray, points: FloatArray) -> FloatArray:
        """What elements of a `size` (...,) at points (..., D), metres, count for."""
        return size if self.regions is None else size * self.regions.weights(points)

    def parts(self, size: FloatArray, seen: FloatArray) -> FloatArray:
        """Part of each hypothesis that is `seen`, from elements that count for `size`, shape (S, M)
        each; those of which nothing counts say nothing of regions.
        """
        whole = size.sum(axis=1)
        covered = (size * seen).sum(axis=1) / np.maximum(whole, math.ulp(1.0))
        if self.regions is not None and not (whole > 0.0).all():
            covered = covered[whole > 0.0] if whole.any() else np.zeros(1)
        return np.asarray(covered)

    @property
    def name(self) -> str:
        """What its part is called."""
        return "completeness" if self.tau else "coverage"

    @property
    def summary(self) -> str:
        """What is to be covered, in words."""
        return self.words_of("outline")

    def words_of(self, what: str) -> str:
        """The same of an `outline` or, in space, a `surface`."""
        if not self.tau:
            return "the surface points"
        weight = "" if self.regions is None else f", {self.regions.summary}"
        return f"the {what} within {self.tau:g} m of the measured surface{weight}"


def named(poses: Sequence[CameraPose]) -> tuple[str, str]:
    """What views from these poses are to cover, and by what that is judged, in the plane or in
    space.
    """
    if poses and poses[0].attitude is not None:
        return "surface", "sampled solids"
    return "outline", "posterior shapes"


POINTS = CoverageTarget()
"""The surface points of the thesis."""


@dataclass(frozen=True)
class CoverageEstimate:
    """How much of the surface has been seen."""

    mean: float  #: mean over the shapes, or the median where it is calibrated, in [0, 1].
    lower: float  #: lower bound of its interval.
    upper: float  #: upper bound.
    #: that it is at least the target: part of the shapes, or of the tuning episodes in which such a
    #: claim held.
    probability: float
    level: float = 0.95  #: probability of the interval.
    #: resolution of the completeness that it is about, metres; 0 for surface points.
    tau: float = 0.0
    asked: int = 1  #: after how many views in a row the target must be reached to be claimed.
    reached: int = 0  #: after how many it was, this one the last.
    #: whether its probability is a part of recorded episodes, in place of a part of hypotheses.
    calibrated: bool = field(default=False, compare=False)

    @classmethod
    def by_hypotheses(
        cls, covered: FloatArray, required: float, delta: float, tau: float
    ) -> CoverageEstimate:
        """By the part of each hypothesis that is `covered`, shape (S,), where `required` is asked
        for.

        The probability `delta` is left outside of the interval, half of it on either side.
        """
        lower, upper = np.quantile(covered, [0.5 * delta, 1.0 - 0.5 * delta])
        enough = covered >= min(required, 1.0 - 1e-9)
        return cls(
            float(covered.mean()),
            float(lower),
            float(upper),
            float(enough.mean()),
            1.0 - delta,
            tau,
        )

    @property
    def target(self) -> CoverageTarget:
        """What it is about."""
        return CoverageTarget(tau=self.tau)

    @property
    def summary(self) -> str:
        """The estimate with its interval, and the level of that."""
        return (
            f"{self.mean:.1%} ({self.level:.0%}: {100 * self.lower:.0f} to {100 * self.upper:.0f})"
        )


@dataclass(frozen=True, eq=False)
class ShapeCoverage(Rows):
    """What is to be seen of S shapes of M elements each from V views."""

    #: 1 where a view sees an element of a shape, else 0; shape (S, V, M), single precision.
    visible: FloatArray
    #: surface points at each element that were not seen so far, shape (S, M), single precision, in
    #: whole parts.
    unseen: FloatArray
    points: FloatArray  #: all surface points of each shape, shape (S,), in whole parts.

    @classmethod
    def left(
        cls, points: FloatArray, seen: FloatArray, visible: BoolArray, repeats: BoolArray
    ) -> ShapeCoverage:
        """What is left of the `points`, shape (S, M), of which the parts `seen` are; V views see
        them as `visible`.

        Those that are `repeats`, shape (V,), of views taken add nothing: beams that did not come
        would not come again.
        """
        points = np.rint(points / _PART)
        unseen = np.rint(points * (1.0 - seen))
        left = np.flatnonzero(unseen.any(axis=0))  # the rest adds nothing to any view
        visible = visible[:, :, left]
        visible[:, repeats] = False
        return cls(
            visible.astype(np.float32),
            (_PART * unseen[:, left]).astype(np.float32),
            _PART * points.sum(axis=1),
        )

    def gains(self) -> FloatArray:
        """Unseen points that each view would see of each shape, shape (S, V)."""
        return np.asarray(np.matmul(self.visible, self.unseen[:, :, None])[:, :, 0])

    def blocks(self, size: int) -> Iterator[ShapeCoverage]:
        """The same by `size` shapes at a time."""
        for begin in range(0, len(self), size):
            yield self.chosen(slice(begin, begin + size))


@dataclass(frozen=True, eq=False)
class PointSet:
    """Points of a curve or surface, each of which stands for a part of it."""

    points: FloatArray  #: in the object frame, shape (N, D), metres.
    #: of the part that each stands for, or its area; only ratios count, shape (N,).
    length: FloatArray

    def distance_from(self, other: PointSet) -> FloatArray:
        """Distance of each point from the nearest one of the other set, shape (N,), metres; inf if
        that is empty.
        """
        return np.asarray(cKDTree(other.points).query(self.points)[0])

    def part(self, which: BoolArray) -> float:
        """Part of the whole for which some of the points stand, shape (N,); NaN without length."""
        whole = float(self.length.sum())
        return float(self.length[which].sum()) / whole if whole else math.nan

    def mean(self, values: FloatArray) -> float:
        """Mean by length of values of the points, shape (N,); NaN without length."""
        whole = float(self.length.sum())
        return float(self.length @ values) / whole if whole else math.nan
