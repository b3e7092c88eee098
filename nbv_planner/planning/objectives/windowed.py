r"""Objectives that sum an area over an interval around each view: I, C, CS, CSP and CSW.

Sums of what does not depend on the view are differences of prefix sums over the grid. The others add up the grid
angles of each window in blocks of views; always by numpy's own pairwise summation and never as a matrix product,
whose order of summation, and with it the last digit, differs from one linear algebra library to the next.
"""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.planning.objectives.windows import (
    BoundaryBlock,
    boundary_blocks,
    prefix_sums,
    simple_windows,
)
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class Confidence:
    r"""C: :math:`h^{-2}\sum_{φ\inΦ_I(θ)} \tfrac12(u^2 - l^2)\,Δφ` (eq. sum-interval-intersection).

    On each side :math:`Φ_I` ends where the lower bound first meets the boundary of the field of view, seen from the
    camera, or at the end of that boundary.
    """

    info = ObjectiveInfo("C", "confidence", "ynyyny", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values, area = np.empty(len(views)), prefix_sums(_area(belief, scene))
        for part, block in boundary_blocks(scene, belief.angle, views):
            first, last = _up_to_crossings(block, belief.lower)
            values[part] = area[last] - area[first]
        return values


class ConfidenceSimple:
    r"""CS: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12(u^2 - l^2)\,Δφ` (thesis sec. CS)."""

    info = ObjectiveInfo(
        "CS", "confidence_simple", "yyyynn", "sublinear regret proved",
        caveat="the sum of the objective exceeds the bound of its lemma, measured (docs/theory.md)",
    )

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        return simple_windows(scene, belief.angle.tobytes(), views.tobytes()).sums(_area(belief, scene))


class ConfidenceSimplePolar:
    r"""CSP: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} (u - l)\,Δφ` (thesis sec. CSP)."""

    info = ObjectiveInfo("CSP", "confidence_simple_polar", "nynynn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels per metre of radius."""
        width = belief.width * belief.step / scene.pixel_size**2
        return simple_windows(scene, belief.angle.tobytes(), views.tobytes()).sums(width)


class ConfidenceSimpleWeighted:
    r"""CSW: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \frac{fov_θ(φ)}{d_{cam}}\,\tfrac12(u^2 - l^2)\,Δφ` (eq. objective-csw)."""

    info = ObjectiveInfo("CSW", "confidence_simple_weighted", "ooyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in (weighted) pixels."""
        values, area = np.empty(len(views)), _area(belief, scene) / scene.view_distance
        for part, block in boundary_blocks(scene, belief.angle, views):
            rows = block.rows(area)
            rows *= block.boundary
            values[part] = rows.sum(axis=1)
        return values


class Intersection:
    r"""I: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12\max(\min(u, fov_θ(φ))^2 - l^2, 0)\,Δφ` (eq. objective-i)."""

    info = ObjectiveInfo("I", "intersection", "yoyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        values, outer, inner = np.empty(len(views)), belief.upper**2, belief.lower**2
        for part, block in boundary_blocks(scene, belief.angle, views):
            rows = block.rows(outer)  # in place from here: new arrays would take longer than the arithmetic
            np.minimum(rows, block.boundary_squared, out=rows)
            rows -= block.rows(inner)
            values[part] = np.maximum(rows, 0.0, out=rows).sum(axis=1)
        return 0.5 * values * belief.step / scene.pixel_size**2


def _area(belief: SurfaceBelief, scene: Scene) -> FloatArray:
    """Area of the band in each grid step, shape (M,), in pixels."""
    return 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / scene.pixel_size**2


def _up_to_crossings(block: BoundaryBlock, lower: FloatArray) -> tuple[IntArray, IntArray]:
    """First index of the intersection interval of each view on two turns and the one behind the last, shape (v,).

    The polar angle along a boundary ray departs steadily from the view, so the crossing nearest to the camera is the
    one nearest in angle.
    """
    beyond = block.rows(lower) >= block.boundary
    rising, falling = beyond & block.rising, (beyond & block.falling)[:, ::-1]
    row, right, left = np.arange(len(beyond)), rising.argmax(axis=1), falling.argmax(axis=1)
    begin = np.where(falling[row, left], beyond.shape[1] - left, 0)
    end = np.where(rising[row, right], right, block.width)
    return block.first + begin, block.first + np.maximum(end, begin)
