"""How much of the surface has been seen, with an interval: the posterior of the coverage over drawn shapes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from nbv_planner.geometry import FloatArray
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.calibrated import Calibration, evidence
from nbv_planner.star2d.shapes.completeness import POINTS, CoverageTarget
from nbv_planner.star2d.shapes.sampler import Shapes, ShapeSampler
from nbv_planner.star2d.shapes.shape_coverage import (
    REACH_HIDDEN,
    REACH_SEEN,
    measured_parts,
    surface_density,
    unseen_fraction,
)
from nbv_planner.star2d.shapes.shape_visibility import grades_of_sight
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# Sine of the angle between a line of sight and the surface below which a small error of its slope hides it: 12 degrees.
_GRAZING = 0.2
# Reach of a measurement where views graze the surface, see `measured_parts`.
_GRAZED = 1.5
# In standard deviations of common errors: a resolution beyond it holds them, as a claim needs half of it without them.
_MATTERS = 6.0
# Part of a turn by which quantiles of neighbouring shapes differ, so that they depend on nothing else of the shapes.
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True)
class CoverageEstimate:
    """How much of the surface has been seen."""

    mean: float  #: mean over the shapes, or the median where it is calibrated, in [0, 1].
    lower: float  #: lower bound of its interval.
    upper: float  #: upper bound.
    #: that it is at least the target: part of the shapes, or of the tuning episodes in which such a claim held.
    probability: float
    level: float = 0.95  #: probability of the interval.
    tau: float = 0.0  #: resolution of the completeness that it is about, metres; 0 for surface points.

    @property
    def target(self) -> CoverageTarget:
        """What it is about."""
        return CoverageTarget(tau=self.tau)

    @property
    def words(self) -> str:
        """The estimate with its interval, and the level of that."""
        return f"{self.mean:.1%} ({self.level:.0%}: {100 * self.lower:.0f} to {100 * self.upper:.0f})"


@dataclass(frozen=True, eq=False)
class CoverageCertificate:
    r"""Judges the coverage by the shapes that the object may still have.

    The coverage of a shape s is the part of its expected surface points :math:`ρ_s(φ)` that was measured:
    :math:`\sum_φ m_s(φ) ρ_s(φ) / \sum_φ ρ_s(φ)`, :math:`m_s` of
    :func:`nbv_planner.star2d.shapes.shape_coverage.measured_parts`, so a beam that did not come has covered nothing,
    whatever the declared cone. How near to a shape the measurements must lie depends on how the views taken see it:

    * 2.5 pixel sides where the best view sees it well;
    * 1.5 where it would have seen it but at a grazing angle. Drawn shapes have walls that are too gentle, as noise
      moves measurements aside and the priors are smooth; a view then seems to graze a wall that it does not see at
      all. The planner does not distinguish them: a claim needs more than a decision.
    * 0.5 where no view would have seen it: drawn shapes have bulges, too, where the object has none, and what they
      hide has been met by beams.

    What lies beside the outermost measurement of a stretch
    (:func:`nbv_planner.star2d.shapes.shape_coverage.unseen_fraction`) has not been covered though it is within reach.

    With a resolution (`aim`) it judges the completeness of the shapes instead, however views see them:
    :meth:`nbv_planner.star2d.shapes.completeness.CoverageTarget.near`.

    Errors common to views move the measured surface as a whole, which no number of hits tells: with a resolution, what
    a shape covers must lie within it as well once the shape is moved by a quantile of what is left of them.

    The probability is as good as the prior of the shapes: how often it holds is measured, and where there is a
    `calibration`, corrected by that.
    """

    sampler: ShapeSampler  #: draws the shapes.
    scene: Scene  #: geometry.
    target: float  #: required coverage, in (0, 1].
    aim: CoverageTarget = POINTS  #: what is to be covered.
    #: corrects the estimate by what was measured of it; None: as the shapes say.
    calibration: Calibration | None = None

    def judged(self, belief: SurfaceBelief, taken: Poses) -> tuple[FloatArray, dict[str, float]]:
        """Coverage of each drawn shape, shape (S,), in [0, 1], after the views `taken` (T,), and how good that is.

        The latter is the :func:`~nbv_planner.star2d.shapes.calibrated.evidence`.

        Raises:
            SettingError: the belief carries no evidence.
        """
        off, belief = belief.common_std, belief.by_noise
        shapes = self.sampler.draw(belief, self.scene)
        points = surface_density(shapes, self.scene.pixel_size, self.aim.density)
        grades = grades_of_sight(shapes, taken, self.scene, _GRAZING)
        closed = 1.0 - unseen_fraction(belief, shapes.angle, self.scene.pixel_size)
        if self.aim.tau:
            aim = self.aim.as_found(self.scene, belief.checks)
            near, covered = aim.near(shapes, belief, self.scene)
            if _MATTERS * off.max() > aim.tau:
                moved = _off_together(shapes, belief.interpolate(off, shapes.angle), self.scene)
                covered = np.minimum(covered, aim.near(moved, belief, self.scene)[0])
        else:
            parts = measured_parts(shapes, belief, self.scene, (REACH_HIDDEN, _GRAZED, REACH_SEEN))
            near, covered = parts[1], np.minimum(np.choose(grades, parts), closed)
        found = evidence(shapes, points, self.scene.pixel_size, grades, np.minimum(near, closed), covered)
        return np.asarray((points * covered).sum(axis=1) / points.sum(axis=1)), found

    def estimate(self, belief: SurfaceBelief, taken: Poses, delta: float, margin: float = 0.0) -> CoverageEstimate:
        """Estimate the coverage.

        Args:
            belief: the belief, with its evidence.
            taken: views taken so far (T,).
            delta: probability left outside the interval [lower, upper], half of it on either side; a calibrated one
                has the level of its calibration.
            margin: coverage required beyond the target, as far as possible; a calibrated claim has none.
        """
        covered, found = self.judged(belief, taken)
        tau = self.aim.as_found(self.scene, belief.checks).tau
        if self.calibration is not None:
            figures = self.calibration.estimate(found, self.target)
            return CoverageEstimate(*figures, self.calibration.level, tau)
        lower, upper = np.quantile(covered, [0.5 * delta, 1.0 - 0.5 * delta])
        enough = covered >= min(self.target + margin, 1.0 - 1e-9)
        return CoverageEstimate(
            float(covered.mean()), float(lower), float(upper), float(enough.mean()), 1.0 - delta, tau
        )


def _off_together(shapes: Shapes, std: FloatArray, scene: Scene) -> Shapes:
    """Shapes (S, M) moved by an error with the standard deviation `std`, shape (M,), metres, the same all around.

    They stay within the bounds of the radius.
    """
    number = len(shapes.radius)
    rank = np.argsort(np.argsort(_GOLDEN * np.arange(number) % 1.0))
    off = ndtri((rank + 0.5) / number)
    moved = np.clip(shapes.radius + off[:, np.newaxis] * std, scene.radius_min, scene.radius_max)
    return dataclasses.replace(shapes, radius=moved)
