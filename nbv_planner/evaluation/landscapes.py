"""What each objective said of each candidate view, beside what the view would have brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.evaluation.records import Step
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import OMNISCIENT, TrueSurface, objective_named
from nbv_planner.planning.objectives.expected_coverage import after_views
from nbv_planner.scene import Scene

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Landscape:
    """An objective over the candidate views at one decision.

    Attributes:
        objective: its id.
        decision: number of the view that was chosen here, from 1.
        angle: candidate views, shape (V,), radians.
        value: the objective at each, in its own unit, shape (V,).
        gain: new surface points that each would have brought, shape (V,).
    """

    objective: str
    decision: int
    angle: FloatArray
    value: FloatArray
    gain: FloatArray

    @property
    def choice(self) -> int:
        """Index of the candidate that the objective prefers, the first of those that are equal up to rounding."""
        return int(np.argmax(self.value >= self.value.max() * (1.0 - _ROUNDING)))


def objective_landscapes(
    steps: Sequence[Step], objectives: Sequence[str], decision: int, truth: TrueSurface, scene: Scene
) -> list[Landscape]:
    """Evaluate objectives on the belief on which the view number `decision` was chosen.

    Args:
        steps: the views of an episode.
        objectives: ids of the objectives.
        decision: number of a view, from 2 to the number of steps; before the first view the belief is flat.
        truth: the true surface; `seen` is set to what the earlier views had seen.
        scene: bounds, view circle and cone.

    Returns:
        One landscape per objective.
    """
    earlier, candidates = steps[: decision - 1], steps[decision - 1].candidates
    belief = earlier[-1].belief
    seen = truth.observed(np.array([step.view_angle for step in earlier]), scene)
    truth.seen = np.asarray(seen.any(axis=0))
    gain = objective_named(OMNISCIENT, truth).evaluate(belief, scene, candidates)
    taken = [step.view_angle for step in earlier]
    named = {name: after_views(objective_named(name, truth), taken) for name in objectives}
    return [
        Landscape(name, decision, candidates, objective.evaluate(belief, scene, candidates), gain)
        for name, objective in named.items()
    ]
