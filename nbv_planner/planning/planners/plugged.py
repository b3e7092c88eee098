"""Rivals and planners of other packages: the contracts for them, and how each decides as a :class:`Planner`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.errors import PluginError, SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import Objective
from nbv_planner.planning.planners.planner import PLANNER_PLUGINS, Planner, PlannerSettings, Situation
from nbv_planner.planning.view_space import FoundViewSpace, ViewSpace
from nbv_planner.star2d.shapes.sampler import Prior
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class Memory:
    """What a planner may know apart from the belief and the V views from which it chooses."""

    scene: Scene  #: radius bounds of the object, view circle, and the sensor, as far as it is known.
    visited: Poses  #: the views taken so far, first to last.
    current_view: CameraPose | None  #: where the camera is; None if that is not known.
    travel: FloatArray  #: length of the camera's way to each view, shape (V,), metres; inf without a way, 0 if unknown.
    seed: int  #: `planner_seed`: `numpy.random.default_rng([seed, len(visited)])` makes an episode repeatable.
    candidates: Poses  #: all views of the view space, also those that may not be chosen now.
    prior: Prior  #: what is assumed about the surface before the first measurement.
    settings: PlannerSettings  #: noise of the sensor, target, shapes.


class PluggedPlanner(Planner):
    """Ask a rival or the planner of another package for its choice among the candidates that may be chosen.

    That one has a method `decide` with the parameters of one of
    :data:`~nbv_planner.planning.planners.planner.CONTRACTS`; docs/extend.md says what they are and what it returns.
    Only from ranks a runner-up follows. Values that are reported as utilities are those of `objective`.
    """

    refinable = False
    heeds_objective = False

    def __init__(
        self, objective: Objective, scene: Scene, views: ViewSpace, settings: PlannerSettings, prior: Prior
    ) -> None:
        super().__init__(objective, scene, views, settings)
        self._plugin, self._prior = PLANNER_PLUGINS.named(settings.planner), prior
        self._chosen_with, self._own = settings, self._plugin.build(settings)
        self._contract = tuple(inspect.signature(self._own.decide).parameters)
        self.takes_scans = "scans" in self._contract
        if self.takes_scans and isinstance(views, FoundViewSpace):
            raise SettingError(f"planner {settings.planner}: takes scans itself, for which the scene must be known")

    def _rank(self, situation: Situation) -> FloatArray:
        if self._chosen_with is not self.settings:  # a parameter has changed at run time
            self._chosen_with, self._own = self.settings, self._plugin.build(self.settings)
        may = np.flatnonzero(situation.feasible)
        views, ranks = self.views.candidates.chosen(may), np.full(len(situation.feasible), -np.inf)
        try:
            answer = self._own.decide(*self._given(views, situation))
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise self._error(said) from error
        ranks[may] = self._ranks(answer, views)
        return ranks

    def _given(self, views: Poses, situation: Situation) -> tuple[Any, ...]:
        """Arguments of `decide`."""
        stands = situation.current_view
        travel = np.zeros(len(views)) if stands is None else self.views.drive(stands, views)
        given = {
            "belief": situation.belief, "views": views,
            "scans": [scan for scan, _ in self.heard], "poses": [pose for _, pose in self.heard],
            "memory": Memory(
                situation.scene, Poses.of(situation.visited), stands, travel, self.settings.planner_seed,
                self.views.candidates, self._prior, self.settings,
            ),
        }
        return tuple(given[name] for name in self._contract)

    def _ranks(self, answer: Any, views: Poses) -> FloatArray:
        """Ranks of the views by what `decide` returned, shape (V,)."""
        if isinstance(answer, CameraPose):
            ranks = np.where(Poses.repeat(views, Poses.of([answer])), 0.0, -np.inf)
        elif isinstance(answer, (int, np.integer)) and not isinstance(answer, bool):
            ranks = np.where(np.arange(len(views)) == answer, 0.0, -np.inf)
        else:
            ranks = np.asarray(answer if isinstance(answer, (np.ndarray, list, tuple)) else np.nan, dtype=float)
        if ranks.shape != (len(views),) or np.isnan(ranks).any() or not np.isfinite(ranks.max()):
            raise self._error(
                f"decide returned {str(answer)[:60]!r}; must be an index < {len(views)}, one of the views, or as many "
                "ranks as there are views"
            )
        return ranks

    def _error(self, said: str) -> PluginError:
        return PluginError(f"planner {self._plugin.name} of package {self._plugin.package}: {said}")
