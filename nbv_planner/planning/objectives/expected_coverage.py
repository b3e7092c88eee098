"""EMC: expected marginal coverage, the mean number of new surface points over posterior shapes."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives.objective import Objective, ObjectiveInfo
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.star2d.shapes.completeness import POINTS, CoverageTarget
from nbv_planner.star2d.shapes.sampler import ShapeSampler
from nbv_planner.star2d.shapes.shape_coverage import ShapeCoverage, hidden_points
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

# Angles of the mean contour, and points of it that a view adds without a look at shapes: where it was 2, EMC was 3 at
# least in 153 of 153 decisions (five planners, four objects).
_MEAN_GRID, _PLAIN = 180, 4.0


class ExpectedMarginalCoverage:
    r"""EMC: :math:`\frac1S \sum_s |o_s(θ) \setminus o(θ_{1:t-1})|` over S posterior shapes s.

    :math:`o_s(θ)` are the surface points that would be observed from θ if the object had shape s. It estimates the
    expectation of the marginal utility, which the other objectives bound. With the target completeness they are
    stretches of the outline, a pixel side long each.
    """

    info = ObjectiveInfo("EMC", "expected_marginal_coverage", "nnyyyy", "not attempted", needs_circle=False)

    def __init__(self, sampler: ShapeSampler, target: CoverageTarget = POINTS) -> None:
        """Take the source of shapes and what is to be covered (by default surface points); no view has been taken."""
        self._sampler = sampler
        self._target = target
        self._taken = Poses.of([])
        self._ground: Ground | None = None
        self._newest: list[tuple[SurfaceBelief, Scene, Ground | None, bytes, ShapeCoverage]] = []

    def after(self, taken: Sequence[CameraPose], ground: Ground | None = None) -> ExpectedMarginalCoverage:
        """Return the same objective once these views have been taken, past the obstacles of a `ground`."""
        twin = copy.copy(self)
        twin._taken, twin._ground = Poses.of(taken), ground
        return twin

    def coverage(self, belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> ShapeCoverage:
        """Draw shapes and evaluate what each of `views` (V,) sees of them.

        The newest result is kept: planners that rank the views by more than their value call it twice.
        """
        views = Poses.given(views, scene.view_distance)
        asked = views.polar.tobytes() + b"after" + self._taken.polar.tobytes()
        for known, of_scene, ground, question, coverage in self._newest:
            if known is belief and ground is self._ground and (of_scene, question) == (scene, asked):
                return coverage
        shapes = self._sampler.draw(belief, scene)
        coverage = self._target.coverage(shapes, self._taken, views, scene, belief, self._ground)
        self._newest[:] = [(belief, scene, self._ground, asked, coverage)]
        return coverage

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in surface points or pixel sides.

        Raises:
            SettingError: the belief carries no evidence.
        """
        return np.asarray(self.coverage(belief, scene, views).gains().mean(axis=0, dtype=float))

    def unless_plain(
        self, belief: SurfaceBelief, scene: Scene, chosen: CameraPose, views: Poses
    ) -> FloatArray | None:
        """:meth:`evaluate`, or None where the mean contour alone shows that the `chosen` view adds several points.

        Drawing shapes takes a fifth of the time of an episode with U: where nothing else needs them, they are left
        undrawn as long as that is plain.
        """
        angle = uniform_grid(_MEAN_GRID)
        if hidden_points(belief, angle, self._taken, chosen, scene, self._ground) >= _PLAIN:
            return None
        return self.evaluate(belief, scene, views)


def after_views(objective: Objective, taken: Sequence[CameraPose], ground: Ground | None = None) -> Objective:
    """Return `objective` once these views have been taken on a `ground`; only EMC depends on them."""
    return objective.after(taken, ground) if isinstance(objective, ExpectedMarginalCoverage) else objective
