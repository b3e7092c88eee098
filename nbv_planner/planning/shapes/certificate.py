"""How much of the surface has been seen, with an interval: the posterior of the coverage over drawn shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.evidence import Evidence
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.shapes.coverage import surface_density
from nbv_planner.planning.shapes.measured_surface import MeasuredSurface
from nbv_planner.planning.shapes.sampler import Shapes, ShapeSampler, evidence_of
from nbv_planner.planning.shapes.visibility import grades_of_sight
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Sine of the angle between a line of sight and the surface below which a small error of its slope hides it: 12 degrees.
_GRAZING = 0.2
# Pixel sides from a surface point to the nearest measurement, at most, if it has been measured: where no view
# sees it, and where views graze it.
_REACH = (0.5, 1.5)


@dataclass(frozen=True)
class CoverageEstimate:
    """Posterior of the coverage.

    Attributes:
        mean: its mean, in [0, 1].
        lower: its lower bound at the confidence asked for.
        upper: its upper bound.
        probability: posterior probability that it is at least the target, and the margin beyond it.
    """

    mean: float
    lower: float
    upper: float
    probability: float


@dataclass(frozen=True, eq=False)
class CoverageCertificate:
    r"""Judges the coverage by the shapes that the object may still have.

    The coverage of a shape s is the part of its expected surface points :math:`ρ_s(φ)` that the views taken would have
    seen of it: :math:`\sum_{φ \in o_s(θ_{1:t})} ρ_s(φ) / \sum_φ ρ_s(φ)`. Where the edges of what was seen lie is thus
    as uncertain as the shapes are there: noise moves the outermost measurements along a slanted surface.

    What no view would have seen but at a grazing angle counts only as far as measurements lie nearby. Drawn shapes have
    walls that are too gentle, as noise moves measurements aside and the priors are smooth; a view then seems to graze a
    wall that it does not see at all. Beams that met it would have left measurements. The planner does not ask for
    them (:func:`nbv_planner.planning.shapes.coverage.seen_cells`): to claim takes more than to look elsewhere.

    What lies beside a measurement counts though no view would have seen it: drawn shapes have bulges, too, where the
    object has none, and what they hide has been met by beams.

    The probability is as good as the prior of the shapes: how often it holds is to be measured.

    Attributes:
        sampler: draws the shapes.
        scene: geometry.
        target: coverage asked for, in (0, 1].
        density: see :func:`nbv_planner.planning.shapes.coverage.surface_density`.
    """

    sampler: ShapeSampler
    scene: Scene
    target: float
    density: str = "crossings"

    def coverages(self, belief: SurfaceBelief, taken: FloatArray) -> FloatArray:
        """Coverage of each drawn shape, shape (S,), in [0, 1].

        Args:
            belief: the belief, with its evidence.
            taken: views taken so far, shape (T,), radians.

        Raises:
            SettingError: the belief does not say what it rests on.
        """
        shapes = self.sampler.draw(belief, self.scene)
        points = surface_density(shapes, self.scene.pixel_size, self.density)
        hidden, grazed = (self._measured_part(shapes, evidence_of(belief), reach) for reach in _REACH)
        covered = np.choose(grades_of_sight(shapes, taken, self.scene, _GRAZING), [hidden, grazed, 1.0])
        return np.asarray((points * covered).sum(axis=1) / points.sum(axis=1))

    def _measured_part(self, shapes: Shapes, evidence: Evidence, reach: float) -> FloatArray:
        """Part of the surface around each grid angle with a measurement within `reach` pixel sides, shape (S, M)."""
        scene = self.scene
        measured = MeasuredSurface.of(evidence, shapes.angle, reach * scene.pixel_size, scene.radius_max)
        return measured.part(shapes.radius)

    def estimate(
        self, belief: SurfaceBelief, taken: FloatArray, delta: float, margin: float = 0.0
    ) -> CoverageEstimate:
        """Estimate the coverage.

        Args:
            belief: the belief, with its evidence.
            taken: views taken so far, shape (T,), radians.
            delta: probability left outside the interval [lower, upper], half of it on either side.
            margin: coverage asked for beyond the target, as far as there is any.
        """
        covered = self.coverages(belief, taken)
        lower, upper = np.quantile(covered, [0.5 * delta, 1.0 - 0.5 * delta])
        enough = covered >= min(self.target + margin, 1.0 - 1e-9)
        return CoverageEstimate(float(covered.mean()), float(lower), float(upper), float(enough.mean()))
