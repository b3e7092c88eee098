"""Beliefs for tests, built by hand or by conditioning."""

from __future__ import annotations

import dataclasses

import numpy as np

from nbv_planner.star2d.belief import CommonErrors, Evidence, SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.seam import coverage_of
from nbv_planner.world.scene import Scene

TWO_PI = 2.0 * np.pi


def belief_of(lower, upper, *, size=400, grid=None, scale=2.0, hits=0) -> SurfaceBelief:
    """Belief with the given band and hits, each a function of the grid angle or a constant."""
    grid = np.arange(size) * (TWO_PI / size) if grid is None else grid
    low = np.broadcast_to(lower(grid) if callable(lower) else float(lower), grid.shape).astype(
        float
    )
    high = np.broadcast_to(upper(grid) if callable(upper) else float(upper), grid.shape).astype(
        float
    )
    count = np.broadcast_to(hits(grid) if callable(hits) else hits, grid.shape).astype(np.int64)
    return SurfaceBelief(
        angle=grid,
        mean=0.5 * (low + high),
        std=(high - low) / (2.0 * scale),
        lower=low,
        upper=high,
        hits=count,
    )


def with_common(belief: SurfaceBelief, std: float, shift: float = 0.0) -> SurfaceBelief:
    """A belief moved by what is common to views, of which a standard deviation is left, metres."""
    without = np.stack([belief.mean, belief.std, belief.lower, belief.upper])
    value, left, prior = np.array(
        [[0.3, -0.01, 0.0, 0.0], [0.05, 0.02, 0.002, 0.02], [0.2, 0.04, 0.002, 0.02]]
    )
    found = CommonErrors(value, left, prior, 9)
    wide, half = np.hypot(belief.std, std), np.hypot(0.5 * belief.width, 2.0 * std)
    mean = belief.mean + shift
    return dataclasses.replace(
        belief,
        mean=mean,
        std=wide,
        lower=mean - half,
        upper=mean + half,
        common=found,
        without=without,
    )


def wavy_belief(seed: int, *, size=400, least=2.0, greatest=8.0) -> SurfaceBelief:
    """Smooth random band inside the bounds, narrow at some angles and wide at others."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 6)), rng.normal(size=(2, 6))

    def wave(k, grid):
        return (
            sum(
                a[k, m] * np.cos((m + 1) * grid) + b[k, m] * np.sin((m + 1) * grid)
                for m in range(6)
            )
            / 6.0
        )

    def lower(grid):
        middle = 0.5 * (least + greatest)
        return np.clip(middle - 1.0 + wave(0, grid), least, greatest - 0.5)

    def upper(grid):
        return np.minimum(lower(grid) + 0.05 + 1.5 * wave(1, grid) ** 2, greatest)

    return belief_of(lower, upper, size=size)


def with_evidence(belief: SurfaceBelief, std: float = 0.05) -> SurfaceBelief:
    """The belief, resting on a measurement of its mean at each grid angle that has hits."""
    hit = belief.hits > 0
    evidence = Evidence.none(belief.angle).adding(
        belief.angle, belief.angle[hit], belief.mean[hit], np.full(hit.sum(), std)
    )
    return dataclasses.replace(belief, evidence=evidence)


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn(StarReader):
    """Reader whose surfaces always draw the same shapes."""

    shapes: Shapes | None = None

    def sampler(self, count: int, seed: int) -> Drawn:
        return self

    def draw(self, belief: SurfaceBelief, scene: Scene) -> Shapes:
        return self.shapes


def left_to_see(aim, shapes, taken, views, scene, belief):
    """What is to be seen of given shapes from `views` once those `taken` have been."""
    surface = StarReader(scene)(belief)
    aim = aim.with_checks(scene.pixel_size, belief.checks)
    return coverage_of(surface, surface.met(shapes, aim), aim, taken, views, scene)
