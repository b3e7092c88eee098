r"""One episode against the thesis's regret bound: what ch. 6 bounds, measured next to the bound.

The bounds are for a camera that measures the surface at its line of sight only (lemma 2-5b), although it sees, and the
utility counts, all surface points in its cone. That is `line_of_sight`; `surface_points` measures all that is seen, as
in the thesis's experiments, and is outside the letter of the proof.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import SettingError
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import Step
from nbv_planner.evaluation.theory import (
    capacity_constants,
    greedy_capacity,
    information_gain,
    printed_capacity_constants,
    printed_regret_bound,
    regret_bound,
    spectral_capacity_bound,
)
from nbv_planner.geometry import FloatArray
from nbv_planner.gp.confidence import scheduled_beta
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.objects import PolarObject, parse_object, surface_points
from nbv_planner.planning.planners import Planner, PlannerSettings, Prior, planner_named, proof_of
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.surface import MapperSettings, Measurements, SurfaceBelief, SurfaceMapper
from nbv_planner.visibility import observe

MEASUREMENTS = ("line_of_sight", "surface_points")
"""What each view measures."""


def run_theory_case(
    planner: PlannerSettings, object_text: str, config: EpisodeConfig, measurement: str = "line_of_sight"
) -> dict[str, Any]:
    r"""Run T = `termination.max_views` rounds and compare the regret with its bound.

    Nothing but the number of rounds ends the episode, views may repeat and travel costs nothing, as in the analysis.
    Ranges have the noise that the mapper assumes (`measurement.noise_std`, drawn from `sensor.seed`).

    Args:
        planner: greedy U, CS or UP, or two_phase CS-U; others run too, without a meaning of the bound.
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
    run = _Run(planner, object_text, config, kernel, measurement)
    for _ in range(config.termination.max_views):
        run.take_view()
    return {
        "planner": planner.label, "object": object_text, "seed": config.sensor.seed, "measurement": measurement,
        "confidence": config.mapper.confidence, "rounds": config.termination.max_views, "proof": proof_of(planner),
        **run.measured(), **_from_theory(run),
    }


@dataclass(eq=False)
class _Run:
    """The episode as it goes."""

    planner_settings: PlannerSettings
    object_text: str
    config: EpisodeConfig
    kernel: PeriodicMatern
    measurement: str
    judge: EpisodeJudge = field(init=False)
    band_held: list[bool] = field(default_factory=list)
    means: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        config, scene = self.config, self.config.scene
        self._shape: PolarObject = parse_object(self.object_text, scene)
        self._points = surface_points(self._shape, scene.pixel_size)
        views = ViewSpace(config.views)
        self.judge = EpisodeJudge(self._points, scene, views.angles, self._shape)
        settings = dataclasses.replace(
            self.planner_settings, travel_weight=0.0, revisit_radius=0.0, refine=False, first_candidate=-1
        )
        self._planner: Planner = planner_named(
            settings, scene, views, prior=Prior(self.kernel, config.mapper.prior_mean)
        )
        self._mapper = SurfaceMapper(self.kernel, config.mapper)
        self._noise = np.random.default_rng(config.sensor.seed)
        self._belief = self._look()

    @property
    def view_angles(self) -> FloatArray:
        """Lines of sight so far, shape (t,), radians."""
        return np.array([step.view_angle for step in self.judge.steps])

    def take_view(self) -> None:
        """Decide, measure, condition, judge."""
        decision = self._planner.decide(self._belief)
        assert decision is not None  # the whole circle is allowed and nothing is left out
        self.means.append(float(self._belief.interpolate(self._belief.mean, decision.view_angle)))
        data = self._measure(decision.view_angle)
        self._mapper.add(data)
        self._belief = self._look()
        self.judge.add(
            Step(
                decision.view_angle, decision.utility, decision.candidates, decision.utilities, self._belief, data,
                milliseconds=0.0,
            )
        )

    def _look(self) -> SurfaceBelief:
        """Belief of the next round, and whether the surface lies in its band at every grid angle."""
        belief = self._mapper.belief()
        radius = self._shape.radius(belief.angle)
        self.band_held.append(bool(np.all((belief.lower <= radius) & (radius <= belief.upper))))
        return belief

    def _measure(self, view_angle: float) -> Measurements:
        angle = np.array([view_angle])
        if self.measurement == "surface_points":
            seen = observe(self._points.angle, self._points.radius, angle, self.config.scene)[0]
            angle = self._points.angle[seen]
        std = self.config.measurement.noise_std
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
            "greatest_mean": max(self.means),
            "band_holds": all(self.band_held),
            "band_rounds": float(np.mean(self.band_held)),
            "information_gain": information_gain(self.kernel, self.view_angles, self.config.measurement.noise_std),
        }


def _from_theory(run: _Run) -> dict[str, float]:
    """Bounds and what they are made of, by name."""
    kernel, scene, noise_std = run.kernel, run.config.scene, run.config.measurement.noise_std
    rounds, polar = len(run.judge.views), run.planner_settings.objective == "UP"
    beta = final_beta(run.config.mapper, rounds)
    gain = information_gain(kernel, run.view_angles, noise_std)
    bound = regret_bound(scene, kernel.variance, noise_std, polar=polar)
    if run.config.mapper.confidence == "fixed":
        bound = dataclasses.replace(bound, c_2=0.0)  # it comes from the 1/t² of the schedule
    greatest = capacity_constants(kernel, noise_std).bound(rounds)
    spectral = spectral_capacity_bound(kernel, rounds, noise_std)
    printed = printed_capacity_constants(kernel, noise_std).bound(rounds)
    return {
        "beta": beta,
        "capacity_greedy": greedy_capacity(kernel, rounds, noise_std)[-1],
        "capacity_spectral": spectral,
        "capacity_bound": greatest,
        "bound": bound.at(rounds, beta, greatest),
        "bound_spectral": bound.at(rounds, beta, spectral),
        "bound_realised": bound.at(rounds, beta, gain),
        "bound_printed": printed_regret_bound(scene, noise_std, polar=polar).at(rounds, beta, printed),
    }


def final_beta(mapper: MapperSettings, rounds: int) -> float:
    """β_T of the last round: of the schedule, or the square of the fixed half-width."""
    if mapper.confidence == "fixed":
        return mapper.confidence_scale**2
    return scheduled_beta(rounds, mapper.delta, mapper.schedule_a, mapper.schedule_b)
