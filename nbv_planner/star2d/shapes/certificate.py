r"""How much of the surface has been seen, with an interval: the posterior of the coverage over
drawn shapes, corrected.

It is corrected by how far it was from the truth in recorded episodes. Drawn shapes are smoother
than many objects, so their coverage is too high and its spread too small, the more so the rougher
the object is. What that depends on can be seen without the truth (:func:`evidence`). The table
`calibration.json` holds, for each target, what was fitted to episodes on tuning objects, with
:math:`x` the evidence and :math:`y` the logit of the true coverage:

* linear quantile regressions :math:`q_p(x)` of y (Koenker and Bassett 1978), for the median and
  both ends of the interval;
* by how much both ends had to be moved outwards so that the interval holds in each class of
  evidence: conformalised quantile regression (Romano, Patterson and Candès 2019), within classes
  (Vovk's Mondrian conformal prediction);
* the part of the tuning episodes in which a claim held that was made at the first view at which the
  coverage of 95 % of the shapes exceeded the target by some score, in logits.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from scipy.special import ndtri

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray, IntArray, polar_points
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.completeness import near_parts
from nbv_planner.star2d.shapes.sampler import Shapes, ShapeSampler
from nbv_planner.star2d.shapes.shape_coverage import (
    REACH_HIDDEN,
    REACH_SEEN,
    measured_parts,
    surface_density,
    unseen_fraction,
)
from nbv_planner.star2d.shapes.shape_visibility import grades_of_sight
from nbv_planner.surface.coverage import POINTS, CoverageEstimate, CoverageTarget
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

FEATURES = ("coverage", "fine", "hidden", "grazed", "slope", "near", "sure")
"""Evidence that the true coverage depends on, see :func:`evidence`."""
CURVES = ("lower", "median", "upper")
"""Quantiles that are fitted: both ends of the interval, and the median."""
# Part of the shapes that covers less than what a claim is judged by.
_UNSURE = 0.05
# Coverages nearer to 0 or 1 are all alike: half a surface point of some hundreds.
_LEAST = 0.002
# Angles of the coarse contour, with which the length on the grid is compared.
_COARSE = 60
# Relative slope, 1/rad, from which on a wall is as steep as any.
_STEEP = 5.0


def logit(part: FloatArray | float) -> FloatArray:
    """Log odds of parts, any shape, which count as within [0.002, 0.998]."""
    inside = np.clip(part, _LEAST, 1.0 - _LEAST)
    return np.log(inside / (1.0 - inside))


def evidence(
    shapes: Shapes,
    points: FloatArray,
    pixel_size: float,
    grades: IntArray,
    near: FloatArray,
    covered: FloatArray,
) -> dict[str, float]:
    r"""What is known without the truth of how much the coverage of the shapes can be trusted, by
    :data:`FEATURES`.

    All are means over S shapes of parts of their surface points, so that they have no scale:

    * coverage: logit of the part that was covered;
    * fine: :math:`\log(L_{grid}/L_{coarse} - 1 + 0.005)`, by how much longer (L1) the contour is on
      its grid than on about 60 angles: rough outlines have fine structure;
    * hidden, grazed: :math:`\log(p + 0.002)` of the part that no view taken sees, and that none
      sees but at a grazing angle;
    * slope: mean relative slope :math:`|r'|/r`, each at most 5 1/rad;
    * near: logit of the part with a measurement nearer than that which counts where shapes are seen
      well; of the completeness of that within τ of the measured surface and in no gap of it;
    * sure: logit of the coverage that 95 % of the shapes exceed; COVERED is claimed by it.

    Args:
        shapes: the shapes, radii of shape (S, M).
        points: how many surface points, or how much length, each grid angle counts for, shape (S,
            M).
        pixel_size: side of a pixel, metres.
        grades: how each grid angle is seen, 0 not, 1 grazed, 2 well, shape (S, M).
        near: part around each grid angle with a measurement near, shape (S, M).
        covered: part around each grid angle that was covered, shape (S, M).
    """
    part = points / points.sum(axis=1, keepdims=True) / len(points)
    sure = len(points) * float(np.quantile((part * covered).sum(axis=1), _UNSURE))
    step = max(1, round(points.shape[1] / _COARSE))
    length = surface_density(shapes, pixel_size).sum(axis=1)
    coarse = surface_density(
        Shapes(shapes.angle[::step], shapes.radius[:, ::step]), pixel_size
    ).sum(axis=1)
    around = np.roll(shapes.radius, -1, axis=1) - np.roll(shapes.radius, 1, axis=1)
    slope = np.abs(around) / (
        2.0 * (shapes.angle[1] - shapes.angle[0]) * np.maximum(shapes.radius, pixel_size)
    )
    excess = float(np.mean(length / coarse)) - 1.0
    values = (
        logit(float((part * covered).sum())),
        np.log(max(excess, 0.0) + 0.005),
        np.log(float(part[grades == 0].sum()) + 0.002),
        np.log(float(part[grades == 1].sum()) + 0.002),
        (part * np.minimum(slope, _STEEP)).sum(),
        logit(float((part * near).sum())),
        logit(sure),
    )
    return {name: float(value) for name, value in zip(FEATURES, values, strict=True)}


@dataclass(frozen=True)
class CoverageCalibration:
    """What was fitted for one target."""

    level: float  #: probability of the interval.
    #: those of :data:`FEATURES` that are used, F of them; the first one is `coverage`.
    features: tuple[str, ...]
    #: least and greatest value of each among the tuning episodes, F pairs.
    within: Sequence[Sequence[float]]
    #: of each of :data:`CURVES`: a constant, and one of each feature.
    coefficients: Mapping[str, Sequence[float]]
    #: values of `fine` between the C classes of evidence, rising, C - 1 of them.
    edges: Sequence[float]
    lowered: Sequence[float]  #: by how much the lower end is moved down in each class, logits.
    raised: Sequence[float]  #: by how much the upper end is moved up in each class, logits.
    #: pairs of a score and the part of claims at it that held, both rising; none: nothing is
    #: claimed.
    claims: Sequence[Sequence[float]]

    def curve(self, name: str, found: Mapping[str, float]) -> float:
        """The quantile `name` of :data:`CURVES` before it is moved, logit of a coverage.

        Evidence beyond that of all tuning episodes counts as if it were at their bounds.
        """
        values = [
            min(max(found[one], low), high)
            for one, (low, high) in zip(self.features, self.within, strict=True)
        ]
        return float(np.dot(self.coefficients[name], [1.0, *values]))

    def group(self, found: Mapping[str, float]) -> int:
        """Class of the evidence, from 0."""
        return int(np.searchsorted(self.edges, found["fine"], side="right"))

    def estimate(
        self, found: Mapping[str, float], target: float
    ) -> tuple[float, float, float, float]:
        """Median of the coverage, both ends of its interval, and the probability that it is at
        least `target`.

        The probability is the part of tuning episodes in which a claim at such evidence `found`
        held.
        """
        group = self.group(found)
        median = self.curve("median", found)
        lower = min(self.curve("lower", found) - self.lowered[group], median)
        upper = max(self.curve("upper", found) + self.raised[group], median)
        # As far as coverages are told apart.
        bounds = [
            (
                0.0
                if value <= logit(0.0)
                else 1.0
                if value >= logit(1.0)
                else 1.0 / (1.0 + np.exp(-value))
            )
            for value in (median, lower, upper)
        ]
        score = found["sure"] - float(logit(target))
        scores, held = np.array(self.claims, dtype=float).reshape(-1, 2).T
        probability = np.interp(score, scores, held, left=0.0) if len(scores) else 0.0
        return float(bounds[0]), float(bounds[1]), float(bounds[2]), float(probability)


@lru_cache(maxsize=8)
def calibration_for(target: str) -> CoverageCalibration:
    """The calibration that is shipped for a `target`: `points` or `completeness`.

    Raises:
        SettingError: it does not exist.
    """
    table = json.loads(files(__package__).joinpath("calibration.json").read_text(encoding="utf-8"))
    if target not in table:
        raise SettingError(
            f"calibrate: there is no calibration for {target}, of {', '.join(table)}; must be false"
        )
    values = {name: value for name, value in table[target].items() if name != "fitted"}
    return CoverageCalibration(**{**values, "features": tuple(values["features"])})


# Sine of the angle between a line of sight and the surface below which a small error of its slope
# hides it: 12 degrees.
_GRAZING = 0.2
# Reach of a measurement where views graze the surface, see `measured_parts`.
_GRAZED = 1.5
# In standard deviations of common errors: a resolution beyond it holds them, as a claim needs half
# of it without them.
_MATTERS = 6.0
# Part of a turn by which quantiles of neighbouring shapes differ, so that they depend on nothing
# else of the shapes.
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False)
class CoverageCertificate:
    r"""Judges the coverage by the shapes that the object may still have.

    The coverage of a shape s is the part of its expected surface points :math:`ρ_s(φ)` that was
    measured: :math:`\sum_φ m_s(φ) ρ_s(φ) / \sum_φ ρ_s(φ)`, :math:`m_s` of
    :func:`nbv_planner.star2d.shapes.shape_coverage.measured_parts`, so a beam that did not come has
    covered nothing, whatever the declared cone. How near to a shape the measurements must lie
    depends on how the views taken see it:

    * 2.5 pixel sides where the best view sees it well;
    * 1.5 where it would have seen it but at a grazing angle. Drawn shapes have walls that are too
      gentle, as noise moves measurements aside and the priors are smooth; a view then seems to
      graze a wall that it does not see at all. The planner does not distinguish them: a claim needs
      more than a decision.
    * 0.5 where no view would have seen it: drawn shapes have bulges, too, where the object has
      none, and what they hide has been met by beams.

    What lies beside the outermost measurement of a stretch
    (:func:`nbv_planner.star2d.shapes.shape_coverage.unseen_fraction`) has not been covered though
    it is within reach.

    With a resolution (`aim`) it judges the completeness of the shapes instead, however views see
    them: :func:`nbv_planner.star2d.shapes.completeness.near_parts`.

    Errors common to views move the measured surface as a whole, which no number of hits tells: with
    a resolution, what a shape covers must lie within it as well once the shape is moved by a
    quantile of what is left of them.

    The probability is as good as the prior of the shapes: how often it holds is measured, and where
    there is a `calibration`, corrected by that.
    """

    sampler: ShapeSampler  #: draws the shapes.
    scene: Scene  #: geometry.
    target: float  #: required coverage, in (0, 1].
    aim: CoverageTarget = POINTS  #: what is to be covered.
    #: corrects the estimate by what was measured of it; None: as the shapes say.
    calibration: CoverageCalibration | None = None

    def judged(self, belief: SurfaceBelief, taken: Poses) -> tuple[FloatArray, dict[str, float]]:
        """Coverage of each drawn shape, shape (S,), in [0, 1], after the views `taken` (T,), and
        how good that is.

        The latter is the :func:`evidence`; empty where regions hold nothing of any shape.

        Raises:
            SettingError: the belief carries no evidence.
        """
        off, belief = belief.common_std, belief.by_noise
        shapes = self.sampler.draw(belief, self.scene)
        points = surface_density(shapes, self.scene.pixel_size, self.aim.density)
        if self.aim.regions is not None:
            places = polar_points(shapes.angle, shapes.radius)
            points = self.aim.weighed(points, places + belief.centre)
            counts = points.any(axis=1)
            if not counts.any():
                return np.zeros(1), {}
            shapes = dataclasses.replace(shapes, radius=shapes.radius[counts])
            points = points[counts]
        grades = grades_of_sight(shapes, taken.relative_to(*belief.centre), self.scene, _GRAZING)
        closed = 1.0 - unseen_fraction(belief, shapes.angle, self.scene.pixel_size)
        if self.aim.tau:
            tau = self.aim.with_checks(self.scene.pixel_size, belief.checks).tau
            near, covered = near_parts(shapes, belief, self.scene, tau)
            if _MATTERS * off.max() > tau:
                moved = _off_together(shapes, belief.interpolate(off, shapes.angle), self.scene)
                covered = np.minimum(covered, near_parts(moved, belief, self.scene, tau)[0])
        else:
            parts = measured_parts(shapes, belief, self.scene, (REACH_HIDDEN, _GRAZED, REACH_SEEN))
            near = parts[1]
            covered = np.minimum(np.choose(grades, parts), closed)
        found = evidence(
            shapes, points, self.scene.pixel_size, grades, np.minimum(near, closed), covered
        )
        return self.aim.parts(points, covered), found

    def estimate(
        self, belief: SurfaceBelief, taken: Poses, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """Estimate the coverage.

        Args:
            belief: the belief, with its evidence.
            taken: views taken so far (T,).
            delta: probability left outside the interval [lower, upper], half of it on either side;
                a calibrated one has the level of its calibration.
            margin: coverage required beyond the target, as far as possible; a calibrated claim has
                none.
        """
        covered, found = self.judged(belief, taken)
        tau = self.aim.with_checks(self.scene.pixel_size, belief.checks).tau
        if not found:
            return CoverageEstimate(0.0, 0.0, 1.0, 0.0, 1.0 - delta, tau)
        if self.calibration is not None:
            figures = self.calibration.estimate(found, self.target)
            return CoverageEstimate(*figures, self.calibration.level, tau, calibrated=True)
        return CoverageEstimate.by_hypotheses(covered, self.target + margin, delta, tau)


def _off_together(shapes: Shapes, std: FloatArray, scene: Scene) -> Shapes:
    """Shapes (S, M) moved by an error with the standard deviation `std`, shape (M,), metres, the
    same all around.

    They stay within the bounds of the radius.
    """
    number = len(shapes.radius)
    rank = np.argsort(np.argsort(_GOLDEN * np.arange(number) % 1.0))
    off = ndtri((rank + 0.5) / number)
    moved = np.clip(shapes.radius + off[:, None] * std, scene.radius_min, scene.radius_max)
    return dataclasses.replace(shapes, radius=moved)
