"""One-shot planning by set covering after the first view (Pan, Hu, Wei 2022, SCVP), on posterior
shapes, by HiGHS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy
from scipy import sparse

from nbv_bench.rivals import farthest_ranks
from nbv_planner.errors import DependencyError
from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.star_surface import StarSurface, star2d
from nbv_planner.surface.coverage import CoverageTarget, ShapeCoverage
from nbv_planner.surface.seam import coverage_of
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan


def milp_solver(who: str) -> Callable[..., Any]:
    """Return `scipy.optimize.milp`; `who` needs it.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    try:
        from scipy.optimize import milp
    except ImportError as error:
        raise DependencyError(
            f"{who} needs scipy >= 1.9 (scipy.optimize.milp); installed is scipy"
            f" {scipy.__version__}"
        ) from error
    return milp  # type: ignore[no-any-return]


def cover_programme(
    who: str,
    visible: BoolArray,
    cost: FloatArray,
    row: tuple[FloatArray, float, float],
    **options: float,
) -> tuple[tuple[int, ...] | None, float | None]:
    r"""Choose views, of which a point counts as seen only if one sees it.

    .. math:: \min c^T [x; z], \quad z_p \le \sum_{θ\,\text{sees}\,p} x_θ,
        \quad l \le a^T [x; z] \le u, \quad x_θ \in \{0, 1\},\; 0 \le z_p \le 1

    for views that see points as in `visible`, shape (V, P), and `row` (a, l, u).

    Returns:
        Indices of the views, rising, and the proved lower bound of the minimum; None where there is
        none in time.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    views, points = visible.shape
    seen = sparse.hstack([sparse.csr_matrix(-visible.T.astype(float)), sparse.eye(points)]).tocsr()
    found = milp_solver(who)(
        cost,
        integrality=np.concatenate([np.ones(views), np.zeros(points)]),
        bounds=(0.0, 1.0),
        constraints=[(seen, -np.inf, 0.0), (sparse.csr_matrix(row[0][None]), *row[1:])],
        options=options,
    )
    bound = found.mip_dual_bound
    chosen = None if found.x is None else tuple(np.flatnonzero(found.x[:views] > 0.5).tolist())
    return chosen, None if bound is None or not np.isfinite(bound) else float(bound)


def coverage_after(scan: Scan, pose: CameraPose, memory: Memory, shapes: int) -> ShapeCoverage:
    """What all candidates see of that many posterior shapes, once one scan has been taken.

    Raises:
        SettingError: the surface is not a radius over the polar angle.
    """
    scene = memory.scene
    settings = memory.settings
    reader = star2d(memory.surface, "planner set_cover").reader
    noise = MeasurementSettings(
        max(settings.noise_std, 1e-6), settings.noise_std_per_metre, scene.radius_max
    )
    found = scan_to_hits(scan, pose, scene, noise)
    mapper = SurfaceMapper(
        reader.prior.kernel, MapperSettings(reader.prior.mean, grid_size=reader.settings.shape_grid)
    )
    mapper.take(found.hits, [found.free])
    surface = StarSurface(mapper.belief(), reader)
    aim = CoverageTarget.of(settings)
    drawn = surface.hypotheses(aim, shapes, memory.seed)
    return coverage_of(surface, drawn, aim, Poses.of([pose]), memory.candidates, scene)


def least_cover(visible: BoolArray) -> IntArray:
    r"""Indices of the fewest views that see every point that any sees, as in `visible`, shape (V,
    P), rising.

    .. math:: \min \sum_θ x_θ, \quad \sum_{θ\,\text{sees}\,p} x_θ \ge 1, \quad x_θ \in \{0, 1\}

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    seen = np.unique(visible[:, visible.any(axis=0)], axis=1)
    views, points = seen.shape
    if points == 0:
        return np.empty(0, dtype=np.intp)
    cost = np.repeat([1.0, 0.0], (views, points))
    every = np.repeat([0.0, 1.0], (views, points))
    return np.array(
        cover_programme("the planner set_cover", seen, cost, (every, points, points))[0],
        dtype=np.intp,
    )


@dataclass(frozen=True)
class SetCover(Settings):
    """Plan once, after the first view: the fewest views that see all of posterior shapes; the
    nearest first.

    The plan depends on the first scan alone, so it is the same at every later decision. Views of it
    that may not be chosen are left out. Once it is done, take the view farthest from all so far.
    """

    takes_scans: ClassVar[bool] = True

    shapes: int = setting(
        2, "set_cover: posterior shapes that are to be covered.", ge=1, le=1000, read_only=False
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Ranks of the views, shape (V,): for those of the plan the negative path length to
        them.
        """
        views = memory.views
        if not memory.scans:
            return np.zeros(len(views))
        shapes = coverage_after(memory.scans[0], memory.poses[0], memory, self.shapes)
        unseen = [
            visible[:, left > 0.0] > 0.0
            for visible, left in zip(shapes.visible, shapes.unseen, strict=True)
        ]
        chosen = memory.candidates.chosen(least_cover(np.concatenate(unseen, axis=1)))
        planned = views.repeat(chosen) & ~views.repeat(memory.visited)
        if not planned.any():
            return farthest_ranks(views, memory.visited)
        return np.where(planned, -np.minimum(memory.travel, 1e9), -np.inf)
