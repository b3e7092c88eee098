"""The thesis's analysis (ch. 6): information gain, its capacity and the regret bound, on surfaces from the prior.

The bounds are for a camera that measures the surface at its line of sight only (lemma 2-5b), although it sees, and the
utility counts, all surface points in its cone. That is `line_of_sight`; `surface_points` measures all that is seen, as
in the thesis's experiments, and is not covered by the proof.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import Step
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.confidence import scheduled_beta
from nbv_planner.gp.kernels import Kernel, PeriodicMatern, fourier_coefficients
from nbv_planner.mapping.belief import Measurements, SurfaceBelief
from nbv_planner.mapping.mapper import SurfaceMapper
from nbv_planner.planning.planners import PlannerSettings, Prior, planner_named, proof_of
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.world.objects import PolarObject, parse_object, surface_points
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

MEASUREMENTS = ("line_of_sight", "surface_points")
"""What each view measures."""


def run_theory_case(
    planner: PlannerSettings, object_text: str, config: EpisodeConfig, measurement: str = "line_of_sight"
) -> dict[str, Any]:
    r"""Run T = `termination.max_views` rounds and compare the regret with its bound.

    Nothing but the number of rounds ends the episode, views may repeat and travel costs nothing, as in the analysis.
    Ranges have the noise that the mapper assumes (`measurement.noise_std`, drawn from `sensor.seed`).

    Args:
        planner: greedy U, CS or UP, or two_phase CS-U; others run too, but the bound does not apply.
        object_text: the object, usually `prior:<seed>`, so that it comes from the prior of `config.kernel`.
        config: scene, kernel (summed Matérn), mapper (its `confidence` decides β), views, noise, rounds.
        measurement: what each view measures, one of :data:`MEASUREMENTS`.

    Returns:
        A row of plain values:

        * what was run: `planner`, `object`, `seed`, `measurement`, `confidence`, `rounds`, `proof`;
        * measured: `individual_regret` :math:`R_{ind}(T)`, `objective_sum` :math:`\sum F_u(θ_t|·)`, `coverage`,
          `covers_greedy` (fraction of rounds with :math:`F(θ^*_t|·) \le F_u(θ_t|·)`, the assumption of lemma 2-2),
          `greatest_mean` (of :math:`μ(θ_t)`, metres; the proof takes it to be at most :math:`d_{max}`),
          `band_holds` (:math:`l_t \le f \le u_t` at all grid angles in all rounds), `band_rounds` (fraction of rounds
          in which it holds at all grid angles), `information_gain` of the measurements at the lines of sight;
        * from the theory: `beta`, `capacity_greedy`, `capacity_spectral`, `capacity_bound`, and the bounds `bound`
          (with `capacity_bound`), `bound_spectral`, `bound_realised` (with `information_gain` in place of γ_T: the
          step before the last one), and `bound_printed` (all constants as printed).

    Raises:
        SettingError: the kernel is no summed Matérn kernel, `max_views` is 0, or `measurement` is not known.
    """
    kernel = config.kernel.build()
    if not isinstance(kernel, PeriodicMatern):
        raise SettingError(f"periodisation: {config.kernel.periodisation} has no regret bound; must be sum")
    if measurement not in MEASUREMENTS:
        raise SettingError(f"measurement: {measurement!r} is not known; must be one of {', '.join(MEASUREMENTS)}")
    if config.termination.max_views < 1:
        raise SettingError("max_views: must be >= 1, it is the number of rounds T")
    run = _Run(planner, parse_object(object_text, config.scene), config, kernel, measurement)
    for _ in range(config.termination.max_views):
        run.take_view()
    view_angles = np.array([step.view_angle for step in run.judge.steps])
    return {
        "planner": planner.label, "object": object_text, "seed": config.sensor.seed, "measurement": measurement,
        "confidence": config.mapper.confidence, "rounds": config.termination.max_views, "proof": proof_of(planner),
        **run.measured(), **_from_theory(config, kernel, view_angles, polar=planner.objective == "UP"),
    }


class _Run:
    """The running episode."""

    def __init__(
        self, planner: PlannerSettings, shape: PolarObject, config: EpisodeConfig, kernel: PeriodicMatern,
        measurement: str,
    ) -> None:
        scene = config.scene
        views = view_space_for(config.views, scene)
        views.check_circle("the theory", scene.view_distance)
        self._config, self._shape, self._measurement = config, shape, measurement
        self._points = surface_points(shape, scene.pixel_size)
        self.judge = EpisodeJudge(self._points, scene, views, shape)
        settings = dataclasses.replace(planner, travel_weight=0.0, revisit_radius=0.0, refine=False, first_candidate=-1)
        self._planner = planner_named(settings, scene, views, prior=Prior(kernel, config.mapper.prior_mean))
        self._mapper = SurfaceMapper(kernel, config.mapper)
        self._noise = np.random.default_rng(config.sensor.seed)
        self._band_held: list[bool] = []
        self._means: list[float] = []
        self._belief = self._look()

    def take_view(self) -> None:
        """Decide, measure, condition, judge."""
        decision = self._planner.decide(self._belief)
        assert decision is not None  # the whole circle is allowed and no view is excluded
        self._means.append(float(self._belief.interpolate(self._belief.mean, decision.view_angle)))
        data = self._measure(decision.view_angle)
        self._mapper.add(data)
        self._belief = self._look()
        self.judge.add(
            Step(
                decision.view, decision.utility, decision.candidates, decision.utilities, self._belief,
                data, milliseconds=0.0,
            )
        )

    def _look(self) -> SurfaceBelief:
        """Belief of the next round, and whether the surface lies in its band at every grid angle."""
        belief = self._mapper.belief()
        radius = self._shape.radius(belief.angle)
        self._band_held.append(bool(np.all((belief.lower <= radius) & (radius <= belief.upper))))
        return belief

    def _measure(self, view_angle: float) -> Measurements:
        angle = np.array([view_angle])
        if self._measurement == "surface_points":
            seen = observe(self._points.angle, self._points.radius, angle, self._config.scene)[0]
            angle = self._points.angle[seen]
        std = self._config.measurement.noise_std
        radius = self._shape.radius(angle) + std * self._noise.standard_normal(len(angle))
        return Measurements(angle, radius, np.full(len(angle), std))

    def measured(self) -> dict[str, Any]:
        """What was measured, by name."""
        views, steps = self.judge.views, self.judge.steps
        return {
            "individual_regret": int(sum(view.greedy_gain - view.new_points for view in views)),
            "objective_sum": float(sum(step.objective_value for step in steps)),
            "coverage": self.judge.coverage,
            "covers_greedy": float(np.mean([view.greedy_gain <= view.objective_value for view in views])),
            "greatest_mean": max(self._means),
            "band_holds": all(self._band_held),
            "band_rounds": float(np.mean(self._band_held)),
        }


def _from_theory(
    config: EpisodeConfig, kernel: PeriodicMatern, view_angles: FloatArray, *, polar: bool
) -> dict[str, float]:
    """Bounds and their components, by name; `view_angles` are the lines of sight of all rounds, radians."""
    scene, mapper, noise_std, rounds = config.scene, config.mapper, config.measurement.noise_std, len(view_angles)
    gain = information_gain(kernel, view_angles, noise_std)
    beta = scheduled_beta(rounds, mapper.delta, mapper.schedule_a, mapper.schedule_b)
    bound = regret_bound(scene, kernel.variance, noise_std, polar=polar)
    if mapper.confidence == "fixed":
        beta = mapper.confidence_scale**2
        bound = dataclasses.replace(bound, c_2=0.0)  # it comes from the 1/t² of the schedule
    greatest = capacity_constants(kernel, noise_std).bound(rounds)
    spectral = spectral_capacity_bound(kernel, rounds, noise_std)
    printed = printed_capacity_constants(kernel, noise_std).bound(rounds)
    return {
        "information_gain": gain,
        "beta": beta,
        "capacity_greedy": greedy_capacity(kernel, rounds, noise_std)[-1],
        "capacity_spectral": spectral,
        "capacity_bound": greatest,
        "bound": bound.at(rounds, beta, greatest),
        "bound_spectral": bound.at(rounds, beta, spectral),
        "bound_realised": bound.at(rounds, beta, gain),
        "bound_printed": printed_regret_bound(scene, noise_std, polar=polar).at(rounds, beta, printed),
    }


@dataclass(frozen=True)
class CapacityConstants:
    r"""Constants of lemma 2-6, for the kernel scaled to k(0) = 1 and the noise scaled with it."""

    c_1: float  #: normalises the spectrum, so that it sums to k(0).
    c_2: float  #: with the spectrum written in :math:`m^2`.
    c_3: float  #: :math:`λ_m \le C_3 m^{-(2ν+1)}`.
    c_4: float  #: :math:`(C_3/σ_ε^2)^{1/(2ν+1)}`.
    power: float  #: :math:`2ν + 1`.
    noise_var: float  #: :math:`σ_ε^2/σ_f^2`.

    def bound(self, rounds: float) -> float:
        r"""Bound :math:`C_4 T^{1/(2ν+1)} L^{2ν/(2ν+1)} + L` with :math:`L = \log(1 + T/σ_ε^2)`, nats."""
        logarithm = math.log1p(rounds / self.noise_var)
        return float(self.c_4 * rounds ** (1.0 / self.power) * logarithm ** (1.0 - 1.0 / self.power) + logarithm)


def capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants under which the bound of lemma 2-6 is proved, for measurements of σ_ε = `noise_std` (metres).

    With the spectrum of the kernel, :math:`S(m) = C_1(2ν/l^2 + m^2)^{-(ν+1/2)}` (:func:`fourier_coefficients`). The
    eigenfunctions for the uniform probability on the circle are 1, √2 cos mφ and √2 sin mφ, squares at most 2, so each
    S(m) counts twice; in falling order the j-th eigenvalue is at most :math:`S((j-1)/2)`, hence

    .. math:: C_2 = 2 \cdot 4^{ν+1/2} C_1, \qquad C_3 = C_2 \Bigl(1 + \frac{l^2}{8ν}\Bigr)^{ν+1/2}.
    """
    nu, l_squared = kernel.order + 0.5, kernel.length_scale**2
    c_1 = _normaliser(kernel.smoothness, kernel.length_scale) * (2.0 * nu / l_squared) ** (nu + 0.5)
    return _constants(kernel, noise_std, c_1, 2.0 * 4.0 ** (nu + 0.5) * c_1, 1.0 + l_squared / (8.0 * nu))


def printed_capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants in the thesis's convention, for measurements of σ_ε = `noise_std` (metres).

    .. math::
        S(m) = C_1\Bigl(\frac{2ν}{l^2} + \bigl(\tfrac{m}{2π}\bigr)^2\Bigr)^{-(ν+1/2)}, \qquad
        C_2 = 2 C_1 (4π^2)^{ν+1/2}, \qquad C_3 = C_2\Bigl(1 + \frac{l^2}{8π^2ν}\Bigr)^{ν+1/2}

    with :math:`C_1` such that this series sums to k(0). It is the spectrum of a kernel with length scale l/2π, and the
    sines are not counted, so this is not what the proof gives for `kernel` (for l = 0.2 rad it is the larger bound).

    Raises:
        SettingError: the length scale is too short, below 2π/1000.
    """
    nu, l_squared = kernel.order + 0.5, kernel.length_scale**2
    c_1 = _normaliser(kernel.smoothness, kernel.length_scale / TWO_PI) * (2.0 * nu / l_squared) ** (nu + 0.5)
    c_2 = 2.0 * c_1 * (4.0 * math.pi**2) ** (nu + 0.5)
    return _constants(kernel, noise_std, c_1, c_2, 1.0 + l_squared / (8.0 * math.pi**2 * nu))


def spectral_capacity_bound(kernel: PeriodicMatern, rounds: int, noise_std: float) -> float:
    r"""Tightest bound that the argument behind lemma 2-6 gives, from the coefficients themselves, nats.

    .. math::
        γ_T \le \min_M \frac{D}{2}\log\Bigl(1 + \frac{T\,k(0)}{Dσ_ε^2}\Bigr)
            + \frac{T}{2σ_ε^2}\,2\sum_{m>M} s_m, \qquad D = 2M + 1

    (Vakili, Khezeli & Picheny 2021, theorem 3) for T = `rounds` measurements of σ_ε = `noise_std` (metres): the first D
    eigenfunctions are a linear model of D features, the rest of the kernel has the constant variance of the tail.
    """
    most = 4 * rounds + 64
    s, noise_var = fourier_coefficients(kernel, most), noise_std**2
    kept = s[0] + 2.0 * np.concatenate([[0.0], np.cumsum(s[1:])])
    features = 2.0 * np.arange(most) + 1.0
    linear = 0.5 * features * np.log1p(rounds * kernel.variance / (features * noise_var))
    tail = np.maximum(kernel.variance - kept, 0.0)
    return float(np.min(linear + 0.5 * rounds / noise_var * tail))


def _normaliser(smoothness: str, length_scale: float) -> float:
    """Coefficient s_0 of the kernel with k(0) = 1."""
    return float(fourier_coefficients(PeriodicMatern(smoothness, length_scale, 1.0), 1)[0])


def _constants(kernel: PeriodicMatern, noise_std: float, c_1: float, c_2: float, ratio: float) -> CapacityConstants:
    power, noise_var = 2.0 * kernel.order + 2.0, noise_std**2 / kernel.variance
    c_3 = c_2 * ratio ** (0.5 * power)
    return CapacityConstants(c_1, c_2, c_3, (c_3 / noise_var) ** (1.0 / power), power, noise_var)


def information_gain(kernel: Kernel, angle: FloatArray, noise_std: float) -> float:
    r"""Mutual information of the surface and measurements of σ_ε = `noise_std` (metres), nats (lemma 2-5).

    .. math:: I = \tfrac12 \log\det\bigl(\mathbb{1} + σ_ε^{-2} K\bigr)

    The thesis prints a sum over t in front of the determinant (def. information-capacity); it is in the determinant.
    Angles have shape (n,), radians; repeats count.
    """
    gram = kernel(angle[:, None] - angle) / noise_std**2
    return 0.5 * float(np.linalg.slogdet(np.eye(len(angle)) + gram)[1])


@lru_cache(maxsize=32)
def greedy_capacity(kernel: Kernel, rounds: int, noise_std: float, grid_size: int = 500) -> tuple[float, ...]:
    r"""Information gains of T = 1 … `rounds` measurements chosen greedily on a uniform grid, nats.

    Each, of σ_ε = `noise_std` (metres), is taken where the variance is largest. The gain is submodular, so this is
    between :math:`(1-1/e)\,γ_T` and :math:`γ_T` of the grid (Nemhauser, Wolsey & Fisher 1978; Krause & Guestrin 2005).
    """
    grid = np.arange(grid_size) * (TWO_PI / grid_size)
    variance, rows = np.full(grid_size, kernel.variance), np.empty((rounds, grid_size))
    gain, gains = 0.0, []
    for t in range(rounds):
        best = int(np.argmax(variance))
        gain += 0.5 * math.log1p(variance[best] / noise_std**2)
        gains.append(gain)
        covariance = kernel(grid - grid[best]) - rows[:t, best] @ rows[:t]
        rows[t] = covariance / math.sqrt(variance[best] + noise_std**2)
        variance = np.maximum(variance - rows[t] ** 2, 0.0)
    return tuple(gains)


@dataclass(frozen=True)
class RegretBound:
    r"""Bound :math:`R(T) < R_{ind}(T) \le \sum_t F_u(θ_t|θ_{1:t-1}) \le C_1'\sqrt{T β_T γ_T} + C_2'`.

    The last step holds for any views if each is measured at its line of sight (lemma 2-5b) and the band is that of the
    schedule; the one before needs :math:`F(θ^*_t|\cdot) \le F_u(θ_t|\cdot)`. C₁' and C₂' are in surface points (for UP
    per metre of radius).
    """

    c_1: float
    c_2: float

    def at(self, rounds: int, beta: float, capacity: float) -> float:
        """Evaluate the bound after T = `rounds` views with β_T = `beta` and γ_T = `capacity` (nats)."""
        return self.c_1 * math.sqrt(rounds * beta * capacity) + self.c_2


def regret_bound(scene: Scene, variance: float, noise_std: float, *, polar: bool = False) -> RegretBound:
    r"""Bound for U and CS-U (and for UP with `polar`, where the step to the regret is missing).

    .. math::
        C_1' = \frac{2 d_{max}|Φ_S|}{h^2}\sqrt{\frac{3\,k(0)}{\log(1 + k(0)/σ_ε^2)}}, \qquad
        C_2' = \frac{d_{max}|Φ_S|}{h^2}\,\frac{π^2}{\sqrt3}

    without :math:`d_{max}` if `polar`, for the prior variance k(0) = `variance` (m²) and σ_ε = `noise_std` (metres).
    The thesis has k(0) = 1. It prints :math:`π/\sqrt3` in C₂', from :math:`\sum 1/t^2 = π/6`; the series is
    :math:`π^2/6`. The mean is taken to be at most :math:`d_{max}`.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 * variance / math.log1p(variance / noise_std**2))
    return RegretBound(c_1, scale * math.pi**2 / math.sqrt(3.0))


def printed_regret_bound(scene: Scene, noise_std: float, *, polar: bool = False) -> RegretBound:
    r"""Bound as printed: k(0) = 1 and :math:`C_2' = (d_{max}|Φ_S|/h^2)\,π/\sqrt3`; its C₂' is not what the proof gives.

    Arguments as in :func:`regret_bound`.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 / math.log1p(noise_std**-2.0))
    return RegretBound(c_1, scale * math.pi / math.sqrt(3.0))


def _scale(scene: Scene, polar: bool) -> float:
    width = 2.0 * scene.simple_half_width
    return (1.0 if polar else scene.radius_max) * width / scene.pixel_size**2
