"""Shapes drawn from the average over a family of priors, weighted by their marginal likelihood, and
like a known outline as far as the evidence says that the object is like it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.known.outline_fit import ANGLE, OutlineFit, near_root, outline_fit
from nbv_planner.known.stretches import CELLS, STRETCHES, between_stretches
from nbv_planner.star2d.belief import SurfaceBelief, nearest_cell, uniform_grid
from nbv_planner.star2d.shapes.learned_prior import ModelAverage
from nbv_planner.star2d.shapes.sampler import (
    PosteriorShapes,
    Prior,
    Shapes,
    ShapeSampler,
    ShapeSettings,
    evidence_of,
    shapes_within_bounds,
)
from nbv_planner.star2d.shapes.shape_coverage import seen_stretches
from nbv_planner.star2d.shapes.straight_edges import EdgeDraws, with_edges_going_on
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class LearnedShapes:
    """Draw shapes from the posterior of every prior, as many from each as its weight requires.

    In a part of the shapes straight edges then continue across what was not seen
    (:func:`nbv_planner.star2d.shapes.straight_edges.with_edges_going_on`). The normals and the
    quantiles of the weights, from `seed`, serve every round (common random numbers).
    """

    prior: ModelAverage
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`nbv_planner.star2d.shapes.sampler.ShapeSampler`."""
        angle, measured, std = evidence_of(belief).measured
        # as much as they show
        std = std * noise_level(self.settings.prior_noise_levels, angle, measured, std)
        inverse = self.settings.prior_quantity == "inverse_radius"
        quantity = to_inverse(measured, std, self.prior.mean) if inverse else (measured, std)
        posterior = self.prior.given(angle, *quantity)
        drawn = posterior.surfaces(self._features, posterior.draw(*self._randomness))
        radius = from_inverse(drawn, self.prior.mean) if inverse else drawn
        if self.settings.edge_probability:
            seen = seen_stretches(belief, scene.pixel_size)[
                nearest_cell(belief.angle, wrap_angle(self._grid))
            ]
            radius = with_edges_going_on(
                radius,
                self._grid,
                seen,
                (angle, measured, std),
                self._edge_draws,
                self.settings.edge_length,
                (scene.radius_min, scene.radius_max),
            )
        return shapes_within_bounds(radius, belief, scene, self.settings)

    @cached_property
    def _grid(self) -> FloatArray:
        return uniform_grid(self.settings.shape_grid)

    @cached_property
    def _features(self) -> FloatArray:
        return self.prior.basis.at(self._grid)

    @cached_property
    def _edge_draws(self) -> EdgeDraws:
        generator = np.random.default_rng([self.seed, 1])  # another stream than that of the priors
        return EdgeDraws.of(generator, self.settings.shapes, self.settings.edge_probability)

    @cached_property
    def _randomness(self) -> tuple[FloatArray, FloatArray]:
        """Quantiles, one in each of S equal parts of [0, 1) in random order, and normals (S, 2K +
        1).
        """
        generator = np.random.default_rng(self.seed)
        count = self.settings.shapes
        normal = generator.standard_normal((count, self.prior.basis.size))
        return generator.permutation((np.arange(count) + generator.random(count)) / count), normal


# Residuals beyond so many deviations do not pull at what lies beside an unlike stretch.
_FARTHEST = 3.0


@dataclass(frozen=True, eq=False)
class KnownShapes:
    """Draw shapes from the mixture of :mod:`nbv_planner.known.outline_fit`; without a known
    outline the `other` ones.

    A part of the shapes, as probable as that nothing of the outline holds, are the other ones
    entirely, and the rest of them along the stretches that are drawn as unlike. The numbers, from
    `seed`, serve every round (common random numbers).
    """

    other: ShapeSampler
    settings: ShapeSettings
    seed: int = 0

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw the shapes, see :class:`~nbv_planner.star2d.shapes.sampler.ShapeSampler`."""
        other = self.other.draw(belief, scene)
        if belief.known is None:
            return other
        fit = outline_fit(belief.known, evidence_of(belief))
        uniform, normal, deviation = self._numbers
        states = fit.states(uniform[:, 0], uniform[:, 1:])
        like = np.flatnonzero((states < 1.0).any(axis=1))
        radius = other.radius.copy()
        if len(like):
            drawn = self._like(fit, other.angle, normal[like], deviation[:, like])
            unlike = _at(between_stretches(states[like]), other.angle)
            radius[like] = unlike * radius[like] + (1.0 - unlike) * drawn
        return shapes_within_bounds(radius, belief, scene, self.settings)

    def like(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        """Draw shapes that are like the known outline everywhere.

        Raises:
            SettingError: the belief has none.
        """
        if belief.known is None:
            raise SettingError("prior_outline: is empty, must be an outline")
        fit = outline_fit(belief.known, evidence_of(belief))
        _, normal, deviation = self._numbers
        radius = self._like(fit, uniform_grid(self.settings.shape_grid), normal, deviation)
        return shapes_within_bounds(radius, belief, scene, self.settings)

    def _like(
        self, fit: OutlineFit, angle: FloatArray, normal: FloatArray, deviation: FloatArray
    ) -> FloatArray:
        """Shapes (S, M) like the outline everywhere, by standard normals of place, (S, 3), and
        deviation, (2, S, 360).
        """
        known = fit.known
        root = np.linalg.cholesky(np.linalg.inv(fit.information))
        places = fit.place + normal @ root.T
        free, noise = known.std * deviation[0] @ near_root(), deviation[1]
        at = fit.measured
        off = np.clip(fit.residuals.off[at], -_FARTHEST * known.std, _FARTHEST * known.std)
        both = np.concatenate([ANGLE, angle])
        curves = np.stack([known.curve(place, both) for place in places])
        curves[np.isnan(curves[:, 0])] = known.curve(fit.place, both)  # the centre is outside
        if len(at):
            shift = ((curves[:, :CELLS] - fit.residuals.curve) / fit.residuals.normal)[:, at]
            scatter = noise[:, at] * np.sqrt(fit.residuals.variance[at])
            free = free + fit.deviation(off - shift - free[:, at] - scatter)
        return np.asarray(curves[:, CELLS:] + _at(free * fit.residuals.normal, angle))

    @cached_property
    def _numbers(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Uniform numbers (S, 37), the first one of each equal part of [0, 1), and normals (S, 3)
        and (2, S, 360).
        """
        generator = np.random.default_rng([self.seed, 2])  # another stream than the other shapes'
        count = self.settings.shapes
        uniform = generator.random((count, 1 + STRETCHES))
        uniform[:, 0] = generator.permutation((np.arange(count) + uniform[:, 0]) / count)
        normal = generator.standard_normal((count, 3))
        return uniform, normal, generator.standard_normal((2, count, CELLS))


def _at(values: FloatArray, angle: FloatArray) -> FloatArray:
    """Values in all cells, shape (S, 360), at polar angles (M,); (S, M)."""
    place = wrap_angle(angle) * (CELLS / TWO_PI)
    low = np.floor(place).astype(np.intp)
    part = place - low
    return np.asarray((1.0 - part) * values[:, low % CELLS] + part * values[:, (low + 1) % CELLS])


def shape_sampler(settings: ShapeSettings, prior: Prior, seed: int = 0) -> ShapeSampler:
    """Build the source of posterior shapes; of the mapper's `prior` the learned prior takes the
    mean alone.
    """
    if settings.shape_prior == "fixed":
        return KnownShapes(PosteriorShapes(prior, settings, seed), settings, seed)
    learned = LearnedShapes(ModelAverage(settings, prior.mean), settings, seed)
    return KnownShapes(learned, settings, seed)


# Widest triple of neighbours, radians: over wider ones the curvature of the surface looks like
# noise.
_WIDEST = 0.05


# Fewest triples for an estimate.
_FEWEST = 20


# Median of the absolute value of a standard normal.
_MEDIAN = 0.6744897501960817


def noise_ratio(angle: FloatArray, radius: FloatArray, std: FloatArray) -> float:
    r"""Estimate the noise of measurements as a part of the declared one, by how far neighbours are
    off a line.

    Each measurement is compared with the line through its two neighbours (pseudo-residuals; Gasser,
    Sroka & Jennen-Steinmetz 1986), with :math:`a_i = (φ_{i+1} - φ_i)/(φ_{i+1} - φ_{i-1})`:

    .. math::
        ε_i = a_i r_{i-1} + (1 - a_i) r_{i+1} - r_i, \quad
        s_i^2 = a_i^2 σ_{i-1}^2 + (1 - a_i)^2 σ_{i+1}^2 + σ_i^2, \quad
        ρ = \frac{\operatorname{median}_i |ε_i| / s_i}{0.6745}

    The median ignores corners and jumps. Curvature of the surface makes the ratio larger; an error
    that neighbours have in common, as of the pose of a whole scan, does not show in it.

    Returns:
        ρ from the angles (radians), radii and declared standard deviations (metres, positive),
        shape (n,) each; 1 where fewer than 20 triples are close enough together.
    """
    order = np.argsort(angle, kind="stable")
    angle, radius, std = angle[order], radius[order], std[order]
    width = angle[2:] - angle[:-2]
    close = (width > 0.0) & (width <= _WIDEST)
    if close.sum() < _FEWEST:
        return 1.0
    before, here, after = (slice(begin, len(angle) - 2 + begin) for begin in range(3))
    a = (angle[after] - angle[here])[close] / width[close]
    residual = a * radius[before][close] + (1.0 - a) * radius[after][close] - radius[here][close]
    spread = np.hypot(
        np.hypot(a * std[before][close], (1.0 - a) * std[after][close]), std[here][close]
    )
    return float(np.median(np.abs(residual) / spread)) / _MEDIAN


def noise_level(
    levels: Iterable[float], angle: FloatArray, radius: FloatArray, std: FloatArray
) -> float:
    """Find the smallest of `levels` that is not below the :func:`noise_ratio` of measurements; 1 if
    there is none.
    """
    ratio = noise_ratio(angle, radius, std)
    return min((level for level in levels if level >= ratio), default=1.0)


# Part of the mean radius below which radii are taken for that: noise may bring them near 0.
_LEAST = 0.1


def to_inverse(radius: FloatArray, std: FloatArray, mean: float) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`v = 2m - m^2/r` and, to first order, its standard deviation :math:`(m/r)^2 σ`;
    metres.

    At r = m both are those of the radius. The factor of the standard deviation is the derivative of
    v, so that the likelihood of the radii differs from that of v by nothing that depends on the
    prior. Radius and standard deviation have shape (n,); `mean` is m.
    """
    ratio = mean / np.maximum(radius, _LEAST * mean)
    return mean * (2.0 - ratio), ratio**2 * std


def from_inverse(value: FloatArray, mean: float) -> FloatArray:
    """Return the radius m²/(2m - v) at v (any shape), metres; +inf from v = 2m on."""
    rest = 2.0 * mean - value
    return np.asarray(
        np.divide(mean**2, rest, out=np.full(np.shape(value), np.inf), where=rest > 0.0)
    )
