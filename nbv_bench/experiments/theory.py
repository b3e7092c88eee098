"""The thesis's analysis (ch. 6): information gain, its capacity and the regret bound, on surfaces
from the prior.

The bounds are for a camera that measures the surface at its line of sight only (lemma 2-5b),
although it sees, and the utility counts, all surface points in its cone. That is `line_of_sight`;
`surface_points` measures all that is seen, as in the thesis's experiments, and is not covered by
the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import Step
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.confidence import scheduled_beta
from nbv_planner.gp.kernels import Kernel, PeriodicMatern, fourier_coefficients
from nbv_planner.planning.planners import proof_of
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.mapper import SurfaceMapper
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.thesis.protocol import map_radii
from nbv_planner.thesis.regret import (
    capacity_constants,
    printed_capacity_constants,
    printed_regret_bound,
    regret_bound,
)
from nbv_planner.world.objects import PolarObject, parse_object, surface_points
from nbv_planner.world.visibility import observe

MEASUREMENTS = ("line_of_sight", "surface_points")
"""What each view measures."""


def run_theory_case(config: EpisodeConfig, measurement: str = "line_of_sight") -> dict[str, Any]:
    r"""Run T = `termination.max_views` rounds and compare the regret with its bound.

    Nothing but the number of rounds ends the episode, views may repeat and travel costs nothing, as
    in the analysis. Ranges have the noise that the mapper assumes (`measurement.noise_std`, drawn
    from `sensor.seed`).

    Args:
        config: planner (greedy U, CS or UP, or two_phase CS-U; others run too, but the bound does
            not apply), object (usually `prior:<seed>`, drawn from the prior of the kernel), scene,
            kernel (summed Matérn), mapper (its `confidence` decides β), views, noise, rounds.
        measurement: what each view measures, one of :data:`MEASUREMENTS`.

    Returns:
        A row of plain values:

        * what was run: `planner`, `object`, `seed`, `measurement`, `confidence`, `rounds`, `proof`;
        * measured: `individual_regret` :math:`R_{ind}(T)`, `objective_sum` :math:`\sum F_u(θ_t|·)`,
          `coverage`, `covers_greedy` (fraction of rounds with :math:`F(θ^*_t|·) \le F_u(θ_t|·)`,
          the assumption of lemma 2-2), `greatest_mean` (of :math:`μ(θ_t)`, metres; the proof takes
          it to be at most :math:`d_{max}`), `band_holds` (:math:`l_t \le f \le u_t` at all grid
          angles in all rounds), `band_rounds` (fraction of rounds in which it holds at all grid
          angles), `information_gain` of the measurements at the lines of sight;
        * from the theory: `beta`, `capacity_greedy`, `capacity_spectral`, `capacity_bound`, and the
          bounds `bound` (with `capacity_bound`), `bound_spectral`, `bound_realised` (with
          `information_gain` in place of γ_T: the step before the last one), and `bound_printed`
          (all constants as printed).

    Raises:
        SettingError: the kernel is no summed Matérn kernel, `max_views` is 0, or `measurement` is
            not known.
    """
    kernel = config.kernel.build()
    if not isinstance(kernel, PeriodicMatern):
        raise SettingError(
            f"periodisation: {config.kernel.periodisation} has no regret bound; must be sum"
        )
    if measurement not in MEASUREMENTS:
        raise SettingError(
            f"measurement: {measurement!r} is not known; must be one of {', '.join(MEASUREMENTS)}"
        )
    if config.termination.max_views < 1:
        raise SettingError("max_views: must be >= 1, it is the number of rounds T")
    judge, beliefs = _played(config, kernel, measurement)
    planner = config.planner
    view_angles = np.array([step.view.view_angle for step in judge.steps])
    return {
        "planner": planner.label,
        "object": config.object,
        "seed": config.sensor.seed,
        "measurement": measurement,
        "confidence": config.mapper.confidence,
        "rounds": config.termination.max_views,
        "proof": proof_of(planner),
        **_measured(judge, beliefs, parse_object(config.object, config.scene)),
        **_from_theory(config, kernel, view_angles, polar=planner.objective == "UP"),
    }


def _played(
    config: EpisodeConfig, kernel: PeriodicMatern, measurement: str
) -> tuple[EpisodeJudge, list[SurfaceBelief]]:
    """Decide, measure, update and judge in each round; also returns the belief before each round
    and after the last.
    """
    scene = config.scene
    std = config.measurement.noise_std
    views = view_space_for(config.views, scene)
    views.check_circle("the theory", scene.view_distance)
    shape = parse_object(config.object, scene)
    points = surface_points(shape, scene.pixel_size)
    judge = EpisodeJudge(StarTruth(points, scene, shape), views)
    settings = replace(
        config.planner, travel_weight=0.0, revisit_radius=0.0, refine=False, first_candidate=-1
    )
    planner = planner_named(settings, scene, views, prior=Prior(kernel, config.mapper.prior_mean))
    mapper = SurfaceMapper(kernel, config.mapper)
    noise = np.random.default_rng(config.sensor.seed)
    beliefs = [mapper.belief()]
    for _ in range(config.termination.max_views):
        decision = planner.decide(beliefs[-1])
        assert decision is not None  # the whole circle is allowed and no view is excluded
        angle = np.array([decision.view_angle])
        if measurement == "surface_points":
            angle = points.angle[observe(points.angle, points.radius, angle, scene)[0]]
        radius = shape.radius(angle) + std * noise.standard_normal(len(angle))
        hits = map_radii(mapper, angle, radius, std, decision.view)
        beliefs.append(mapper.belief())
        judge.add(
            Step(
                decision.view,
                decision.utility,
                decision.candidates,
                decision.utilities,
                beliefs[-1],
                hits,
                milliseconds=0.0,
            )
        )
    return judge, beliefs


def _measured(
    judge: EpisodeJudge, beliefs: Sequence[SurfaceBelief], shape: PolarObject
) -> dict[str, Any]:
    """The measured quantities, by name."""
    radius = shape.radius(beliefs[0].angle)
    held = [bool(np.all((belief.lower <= radius) & (radius <= belief.upper))) for belief in beliefs]
    decided_on = zip(beliefs, judge.steps, strict=False)
    return {
        "individual_regret": int(sum(view.greedy_gain - view.new_points for view in judge.views)),
        "objective_sum": float(sum(step.objective_value for step in judge.steps)),
        "coverage": judge.coverage,
        "covers_greedy": float(
            np.mean([view.greedy_gain <= view.objective_value for view in judge.views])
        ),
        "greatest_mean": max(
            float(belief.interpolate(belief.mean, step.view.view_angle))
            for belief, step in decided_on
        ),
        "band_holds": all(held),
        "band_rounds": float(np.mean(held)),
    }


def _from_theory(
    config: EpisodeConfig, kernel: PeriodicMatern, view_angles: FloatArray, *, polar: bool
) -> dict[str, float]:
    """Bounds and their components, by name; `view_angles` are the lines of sight of all rounds,
    radians.
    """
    scene = config.scene
    mapper = config.mapper
    noise_std = config.measurement.noise_std
    rounds = len(view_angles)
    gain = information_gain(kernel, view_angles, noise_std)
    beta = scheduled_beta(rounds, mapper.delta, mapper.schedule_a, mapper.schedule_b)
    bound = regret_bound(scene, kernel.variance, noise_std, polar=polar)
    if mapper.confidence == "fixed":
        beta = mapper.confidence_scale**2
        bound = replace(bound, c_2=0.0)  # it comes from the 1/t² of the schedule
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
        "bound_printed": (
            printed_regret_bound(scene, noise_std, polar=polar).at(rounds, beta, printed)
        ),
    }


def spectral_capacity_bound(kernel: PeriodicMatern, rounds: int, noise_std: float) -> float:
    r"""Tightest bound that the argument behind lemma 2-6 gives, from the coefficients themselves,
    nats.

    .. math::
        γ_T \le \min_M \frac{D}{2}\log\Bigl(1 + \frac{T\,k(0)}{Dσ_ε^2}\Bigr)
            + \frac{T}{2σ_ε^2}\,2\sum_{m>M} s_m, \qquad D = 2M + 1

    (Vakili, Khezeli & Picheny 2021, theorem 3) for T = `rounds` measurements of σ_ε = `noise_std`
    (metres): the first D eigenfunctions are a linear model of D features, the rest of the kernel
    has the constant variance of the tail.
    """
    most = 4 * rounds + 64
    s = fourier_coefficients(kernel, most)
    noise_var = noise_std**2
    kept = s[0] + 2.0 * np.concatenate([[0.0], np.cumsum(s[1:])])
    features = 2.0 * np.arange(most) + 1.0
    linear = 0.5 * features * np.log1p(rounds * kernel.variance / (features * noise_var))
    tail = np.maximum(kernel.variance - kept, 0.0)
    return float(np.min(linear + 0.5 * rounds / noise_var * tail))


def information_gain(kernel: Kernel, angle: FloatArray, noise_std: float) -> float:
    r"""Mutual information of the surface and measurements of σ_ε = `noise_std` (metres), nats
    (lemma 2-5).

    .. math:: I = \tfrac12 \log\det\bigl(\mathbb{1} + σ_ε^{-2} K\bigr)

    The thesis prints a sum over t in front of the determinant (def. information-capacity); it is in
    the determinant. Angles have shape (n,), radians; repeats count.
    """
    gram = kernel(angle[:, None] - angle) / noise_std**2
    return 0.5 * float(np.linalg.slogdet(np.eye(len(angle)) + gram)[1])


@lru_cache(maxsize=32)
def greedy_capacity(
    kernel: Kernel, rounds: int, noise_std: float, grid_size: int = 500
) -> tuple[float, ...]:
    r"""Information gains of T = 1 … `rounds` measurements chosen greedily on a uniform grid, nats.

    Each, of σ_ε = `noise_std` (metres), is taken where the variance is largest. The gain is
    submodular, so this is between :math:`(1-1/e)\,γ_T` and :math:`γ_T` of the grid (Nemhauser,
    Wolsey & Fisher 1978; Krause & Guestrin 2005).
    """
    grid = np.arange(grid_size) * (TWO_PI / grid_size)
    variance = np.full(grid_size, kernel.variance)
    rows = np.empty((rounds, grid_size))
    gain = 0.0
    gains = []
    for t in range(rounds):
        best = int(np.argmax(variance))
        gain += 0.5 * math.log1p(variance[best] / noise_std**2)
        gains.append(gain)
        covariance = kernel(grid - grid[best]) - rows[:t, best] @ rows[:t]
        rows[t] = covariance / math.sqrt(variance[best] + noise_std**2)
        variance = np.maximum(variance - rows[t] ** 2, 0.0)
    return tuple(gains)
