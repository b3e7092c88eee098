"""Rivals and planners of other packages: the contract for them, and how each decides as a
:class:`Planner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.errors import PluginError, SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import Situation
from nbv_planner.planning.planners.decision_settings import DecisionSettings
from nbv_planner.planning.planners.planner import Options, Planner
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan


@dataclass(frozen=True, eq=False, kw_only=True)
class Memory(Situation):
    """The situation of a planner of another package; its V `views` are those that may be chosen
    now.
    """

    #: length of the path to each view, shape (V,), metres; inf without a path, 0 if unknown.
    travel: FloatArray
    #: `planner_seed`: `numpy.random.default_rng([seed, len(visited)])` makes an episode repeatable.
    seed: int
    candidates: Poses  #: all views of the view space, also those that may not be chosen now.
    settings: DecisionSettings  #: noise of the sensor, target, number of hypotheses.
    scans: Sequence[Scan]  #: one for each view taken, of planners that take them.
    poses: Sequence[CameraPose]  #: poses that they were taken at, in the object frame.


class PluggedPlanner(Planner):
    """Ask a rival or the planner of another package for its choice among the candidates that may be
    chosen.

    That one has a method `decide(situation)` with a :class:`Memory`; docs/extend.md says what it
    returns. With a class attribute `takes_scans = True` it has a map of its own and is given the
    scans. Only from ranks a runner-up follows. Values that are reported as utilities are those of
    `objective`.
    """

    refinable = False
    heeds_objective = False

    def _set_up(self) -> None:
        name = self.settings.planner
        self._plugin = self.settings.plugins["planner"].named(name)
        self._chosen_with, self._plugged = self.settings, self._plugin.build(self.settings)
        self.takes_scans = getattr(self._plugged, "takes_scans", False)
        if self.takes_scans and self.views.follows_object:
            raise SettingError(
                f"planner {name}: takes scans itself, for which the scene must be known"
            )

    def _rank(self, options: Options) -> FloatArray:
        if self._chosen_with is not self.settings:  # a parameter has changed at run time
            self._chosen_with, self._plugged = self.settings, self._plugin.build(self.settings)
        may = np.flatnonzero(options.feasible)
        memory = self._memory(self.views.candidates.chosen(may), options.situation)
        ranks = np.full(len(options.feasible), -np.inf)
        try:
            answer = self._plugged.decide(memory)
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise self._error(said) from error
        ranks[may] = self._ranks(answer, memory.views)
        return ranks

    def _memory(self, views: Poses, situation: Situation) -> Memory:
        stands = situation.current_view
        travel = (
            np.zeros(len(views)) if stands is None else self.views.ground_path_length(stands, views)
        )
        return Memory(
            **{**vars(situation), "views": views},
            travel=travel,
            seed=self.settings.planner_seed,
            candidates=self.views.candidates,
            settings=self.settings,
            scans=[scan for scan, _ in self.scan_history],
            poses=[pose for _, pose in self.scan_history],
        )

    def _ranks(self, answer: Any, views: Poses) -> FloatArray:
        """Ranks of the views by what `decide` returned, shape (V,)."""
        if isinstance(answer, CameraPose):
            ranks = np.where(Poses.repeat(views, Poses.of([answer])), 0.0, -np.inf)
        elif isinstance(answer, (int, np.integer)) and not isinstance(answer, bool):
            ranks = np.where(np.arange(len(views)) == answer, 0.0, -np.inf)
        else:
            ranks = np.asarray(
                answer if isinstance(answer, (np.ndarray, list, tuple)) else np.nan, dtype=float
            )
        if ranks.shape != (len(views),) or np.isnan(ranks).any() or not np.isfinite(ranks.max()):
            raise self._error(
                f"decide returned {str(answer)[:60]!r}; must be an index < {len(views)}, one of the"
                " views, or as many ranks as there are views"
            )
        return ranks

    def _error(self, said: str) -> PluginError:
        return PluginError(f"planner {self._plugin.name} of package {self._plugin.package}: {said}")
