r"""EMC: expected marginal coverage, the mean number of new surface points over posterior shapes."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives.base import Objective, ObjectiveInfo
from nbv_planner.planning.shapes.coverage import ShapeCoverage, well_measured
from nbv_planner.planning.shapes.sampler import ShapeSampler
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class ExpectedMarginalCoverage:
    r"""EMC: :math:`\frac1S \sum_s |o_s(θ) \setminus o(θ_{1:t-1})|` over S posterior shapes s.

    :math:`o_s(θ)` are the surface points that would be observed from θ if the object had shape s. It estimates the
    expectation of the marginal utility, which the other objectives bound.
    """

    info = ObjectiveInfo("EMC", "expected_marginal_coverage", "nnyyyy", "not attempted")

    def __init__(self, sampler: ShapeSampler, density: str = "crossings", taken: Sequence[float] = ()) -> None:
        """Take the source of shapes.

        Args:
            sampler: draws the shapes.
            density: what counts as surface points, see
                :func:`nbv_planner.planning.shapes.coverage.surface_density`.
            taken: angles of the views taken so far, radians.
        """
        self._sampler = sampler
        self._density = density
        self._taken = np.asarray(taken, dtype=float)
        self._newest: list[tuple[SurfaceBelief, Scene, bytes, ShapeCoverage]] = []

    def after(self, taken: Sequence[float]) -> ExpectedMarginalCoverage:
        """Return the same objective once these views, radians, have been taken."""
        twin = copy.copy(self)
        twin._taken = np.asarray(taken, dtype=float)
        return twin

    def coverage(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> ShapeCoverage:
        """Draw shapes and look at them from each of `views`, shape (V,).

        The newest answer is kept: who ranks the views by more than their value asks a second time.
        """
        asked = views.tobytes() + b"after" + self._taken.tobytes()
        for known, of_scene, question, coverage in self._newest:
            if known is belief and (of_scene, question) == (scene, asked):
                return coverage
        shapes = self._sampler.draw(belief, scene)
        measured = well_measured(belief, shapes.angle, scene.pixel_size)
        coverage = ShapeCoverage.of(shapes, self._taken, views, scene, self._density, measured)
        self._newest[:] = [(belief, scene, asked, coverage)]
        return coverage

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in surface points.

        Raises:
            SettingError: the belief does not say what it rests on.
        """
        return np.asarray(self.coverage(belief, scene, views).gains().mean(axis=0, dtype=float))


def after_views(objective: Objective, taken: Sequence[float]) -> Objective:
    """Return `objective` once these views, radians, have been taken; only EMC looks back at them."""
    return objective.after(taken) if isinstance(objective, ExpectedMarginalCoverage) else objective
