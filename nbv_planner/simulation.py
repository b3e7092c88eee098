"""The closed loop without ROS: one episode in one process, in the thesis or the sensor protocol."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from nbv_planner.camera import CameraPose, scan_to_measurements
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import Step, ViewRecord
from nbv_planner.free_space import FreeRays
from nbv_planner.geometry import TWO_PI
from nbv_planner.objects import bisected_surface_points, parse_object, surface_points
from nbv_planner.planning.monitoring import termination_monitor
from nbv_planner.planning.objectives import TrueSurface
from nbv_planner.planning.planners import Decision, PlannerSettings, Prior, planner_named
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination, TerminationMonitor, TerminationReason
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.robust.checks.report import refusal
from nbv_planner.robust.mapper import mapper_for
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.simulated_camera import SimulatedCamera
from nbv_planner.surface import Measurements, SurfaceBelief, SurfaceMapper
from nbv_planner.visibility import observe, unseen_beyond

PUBLISHED_FIRST_CANDIDATE = {"CSW": 0, "IOA": 47, "I": 1, "U": 15, "UP": 15, "CS-U": 26, "CSN-U": 26}
"""First views of the thesis's published runs by label: its flat prior left them to rounding.

They are indices among the 100 candidates of these runs. Its CS-U counts the pixels of phase 1 (CSN-U); the closed
form starts at the same view to be comparable.
"""

_THESIS_VIEWS = 100
_THESIS_GRID = 1000
# Variance, m², that the published runs had added to that of each measurement.
_THESIS_JITTER = 1e-8

Episode = Generator[ViewRecord, None, Termination]
"""Yields a record per view and returns the termination."""


@dataclass(eq=False)
class Simulation:
    """An episode that has been set up and can be run once.

    Attributes:
        config: the configuration it was built from.
        judge: keeps the steps and judges them against the true object.
        mapper: the surface model.
        estimate: coverage by the posterior shapes after the newest view; None without `certify`.
    """

    config: EpisodeConfig
    judge: EpisodeJudge = dataclasses.field(init=False)
    mapper: SurfaceMapper = dataclasses.field(init=False)
    estimate: CoverageEstimate | None = dataclasses.field(init=False, default=None)

    def __post_init__(self) -> None:
        """Build object, mapper and planner.

        Raises:
            NbvPlannerError: the configuration does not fit; nothing has run then.
        """
        config, scene = self.config, self.config.scene
        thesis = config.protocol == "thesis"
        self._shape = parse_object(config.object, scene)
        self._points = (bisected_surface_points if thesis else surface_points)(self._shape, scene.pixel_size)
        angles = np.linspace(0.0, TWO_PI, _THESIS_VIEWS) if thesis and _published_views(config) else None
        grid = np.linspace(0.0, TWO_PI, _THESIS_GRID) if thesis else None
        views = ViewSpace(config.views, angles=angles)
        start = None if thesis else config.motion.initial_view_angle
        self.judge = EpisodeJudge(self._points, scene, views.angles, self._shape, start)
        self._truth = TrueSurface(self._points.angle, self._points.radius)
        settings = thesis_planner_settings(config) if thesis else config.planner
        kernel = config.kernel.build()
        self._prior = Prior(kernel, config.mapper.prior_mean)
        self._planner = planner_named(settings, scene, views, self._truth, self._prior)
        # The published runs hang on ties that rounding decides: there the solution stays the dense one.
        mapper = dataclasses.replace(config.mapper, solver="dense") if thesis else config.mapper
        robust = RobustSettings() if thesis else config.robust
        self.mapper = mapper_for(kernel, mapper, robust, grid=grid)

    def run(self) -> Episode:
        """Run the episode in the configured protocol."""
        episode = self._thesis() if self.config.protocol == "thesis" else self._sensor()
        return _until_coverage(episode, self.config.stop_at_coverage) if self.config.stop_at_coverage else episode

    def _thesis(self) -> Episode:
        """Observe the surface points themselves, without noise, until nothing new is seen."""
        noise_std = math.sqrt(self.config.measurement.noise_std**2 + _THESIS_JITTER)
        while True:
            started = time.process_time()
            decision = self._decide(None)
            if decision is None:
                return _no_reachable_view()
            milliseconds = 1e3 * (time.process_time() - started)
            if not self.judge.new_points(decision.view_angle).any():
                return Termination(
                    TerminationReason.NO_NEW_POINTS, {"coverage": self.judge.coverage},
                    "the next view would see no new surface point",
                )
            seen = observe(self._points.angle, self._points.radius, decision.view_angle, self.config.scene)[0]
            count = int(seen.sum())
            data = Measurements(self._points.angle[seen], self._points.radius[seen], np.full(count, noise_std))
            free = unseen_beyond(data.angle, data.radius, decision.view_angle, self.config.scene)
            yield self._take(decision, data, free, milliseconds)
            if self.judge.seen.all():
                return Termination(
                    TerminationReason.COMPLETE, {"coverage": 1.0}, "every surface point has been seen"
                )

    def _sensor(self) -> Episode:
        """Cast noisy beams and stop as a robot does, without looking at the true object."""
        config = self.config
        camera = SimulatedCamera(self._shape, config.scene, config.sensor)
        monitor = termination_monitor(config.termination, config.planner, config.scene, self._prior)
        current, began = config.motion.initial_view_angle, time.perf_counter()
        while True:
            started = time.process_time()
            decision = self._decide(current)
            if decision is None:
                return _no_reachable_view()
            ended = monitor.before_view(decision.utility)
            if ended:
                return ended
            milliseconds = 1e3 * (time.process_time() - started)
            pose = CameraPose.on_view_circle(decision.view_angle, config.scene.view_distance)
            scan = camera.scan(pose, view_number=len(self.judge.steps) + 1)
            data = scan_to_measurements(scan, pose, config.scene, config.measurement)
            record = self._take(decision, data.measurements, data.free, milliseconds)
            ended = self._after_view(monitor, time.perf_counter() - began)
            yield record
            if ended:
                return ended
            current = decision.view_angle

    def _after_view(self, monitor: TerminationMonitor, elapsed: float) -> Termination | None:
        """Estimate the coverage, and say why the newest view was the last one, if it was."""
        refused = refusal(self.mapper, self.config.checks)
        if refused:
            return Termination(TerminationReason.FAILED, {"views": float(len(self.judge.views))}, refused)
        steps = self.judge.steps
        ended = monitor.after_view(steps[-1].belief, elapsed, [step.view_angle for step in steps])
        self.estimate = monitor.estimate
        return ended

    def _decide(self, current_view: float | None) -> Decision | None:
        """Let the planner choose, from the belief in the form in which the protocol hands it over."""
        self._truth.seen = self.judge.seen
        steps = self.judge.steps
        belief = steps[-1].belief if steps else self._belief()
        return self._planner.decide(
            belief, current_view=current_view, visited=[step.view_angle for step in steps]
        )

    def _belief(self) -> SurfaceBelief:
        belief = self.mapper.belief()
        return belief if self.config.protocol == "thesis" else belief.as_transmitted()

    def _take(self, decision: Decision, data: Measurements, free: FreeRays, milliseconds: float) -> ViewRecord:
        """Map the measurements of a view and judge it."""
        self.mapper.add(data, free=[free])
        belief = self._belief()
        return self.judge.add(
            Step(
                view_angle=decision.view_angle,
                objective_value=decision.utility,
                candidates=decision.candidates,
                utilities=decision.utilities,
                belief=belief,
                measurements=data,
                milliseconds=milliseconds,
            )
        )


def thesis_planner_settings(config: EpisodeConfig) -> PlannerSettings:
    """Return the thesis's ways: no cost of travel, revisits allowed, the published first view unless one is set.

    With another number of candidates than the published one the planner chooses its first view itself.
    """
    settings = config.planner
    first = settings.first_candidate
    if first < 0 and _published_views(config):
        first = PUBLISHED_FIRST_CANDIDATE.get(settings.label, -1)
    return dataclasses.replace(
        settings, first_candidate=first, tie_tolerance=config.thesis_tie_tolerance, travel_weight=0.0,
        revisit_radius=0.0, refine=False,
    )


def _published_views(config: EpisodeConfig) -> bool:
    """Whether the candidates are as many as those of the published runs, which hold 0 and 2π."""
    return config.views.num_views == _THESIS_VIEWS


def _until_coverage(episode: Episode, coverage: float) -> Episode:
    """Cut an episode off at the first view after which this part of the surface points has been seen."""
    while True:
        try:
            record = next(episode)
        except StopIteration as end:
            termination: Termination = end.value
            return termination
        yield record
        if record.coverage >= coverage:
            return Termination(
                TerminationReason.COMPLETE, {"coverage": record.coverage},
                f"{record.coverage:.1%} of the surface points have been seen",
            )


def _no_reachable_view() -> Termination:
    return Termination(TerminationReason.NO_REACHABLE_VIEW, {}, "no candidate view may be chosen")
