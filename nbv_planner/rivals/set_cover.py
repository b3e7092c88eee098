"""One-shot planning by set covering after the first view (Pan, Hu, Wei 2022, SCVP), on posterior shapes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_measurements
from nbv_planner.planning.integer_programme import cover_programme
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.rivals import farthest_ranks
from nbv_planner.settings import Settings, setting
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.shapes.completeness import CoverageTarget
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.shape_coverage import ShapeCoverage
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan


def coverage_after(scan: Scan, pose: CameraPose, memory: Memory, shapes: int) -> ShapeCoverage:
    """What all candidates see of that many posterior shapes, once one scan has been taken."""
    scene, settings = memory.scene, dataclasses.replace(memory.settings, shapes=shapes)
    noise = MeasurementSettings(max(settings.noise_std, 1e-6), settings.noise_std_per_metre, scene.radius_max)
    found = scan_to_measurements(scan, pose, scene, noise)
    mapper = SurfaceMapper(memory.prior.kernel, MapperSettings(memory.prior.mean, grid_size=settings.shape_grid))
    mapper.add(found.measurements, free=[found.free])
    belief = mapper.belief()
    drawn = shape_sampler(settings, memory.prior, memory.seed).draw(belief, scene)
    first = Poses.of([pose])
    return CoverageTarget.of(settings).coverage(drawn, first, memory.candidates, scene, belief)


def least_cover(visible: BoolArray) -> IntArray:
    r"""Indices of the fewest views that see every point that any sees, as in `visible`, shape (V, P), rising.

    .. math:: \min \sum_θ x_θ, \quad \sum_{θ\,\text{sees}\,p} x_θ \ge 1, \quad x_θ \in \{0, 1\}

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    seen = np.unique(visible[:, visible.any(axis=0)], axis=1)
    views, points = seen.shape
    if points == 0:
        return np.empty(0, dtype=np.intp)
    cost, every = np.repeat([1.0, 0.0], (views, points)), np.repeat([0.0, 1.0], (views, points))
    return np.array(cover_programme("the planner set_cover", seen, cost, (every, points, points))[0], dtype=np.intp)


@dataclass(frozen=True)
class SetCover(Settings):
    """Plan once, after the first view: the fewest views that see all of posterior shapes; the nearest first.

    The plan depends on the first scan alone, so it is the same at every later decision. What of it may not be chosen
    is left out. Once it is done, look where nobody has been.
    """

    shapes: int = setting(2, "set_cover: posterior shapes that are to be covered.", ge=1, le=1000, read_only=False)

    def decide(
        self, scans: Sequence[Scan], poses: Sequence[CameraPose], views: Poses, memory: Memory
    ) -> FloatArray:
        """Ranks of the views, shape (V,): less the way to those of the plan."""
        if not scans:
            return np.zeros(len(views))
        shapes = coverage_after(scans[0], poses[0], memory, self.shapes)
        unseen = [visible[:, left > 0.0] > 0.0 for visible, left in zip(shapes.visible, shapes.unseen, strict=True)]
        chosen = memory.candidates.chosen(least_cover(np.concatenate(unseen, axis=1)))
        planned = views.repeat(chosen) & ~views.repeat(memory.visited)
        if not planned.any():
            return farthest_ranks(views, memory.visited)
        return np.where(planned, -np.minimum(memory.travel, 1e9), -np.inf)
