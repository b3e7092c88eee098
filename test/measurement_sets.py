"""Sets of measurements of a smooth contour at angles of many kinds."""

from __future__ import annotations

import numpy as np

TWO_PI = 2.0 * np.pi
FINE = np.arange(1000) * (TWO_PI / 1000)

KINDS = {
    "random": lambda rng, n: rng.uniform(0.0, TWO_PI, n),
    "sweep": lambda rng, n: np.sort(rng.uniform(0.0, TWO_PI, n)),
    "clustered": lambda rng, n: 1.0 + 1e-3 * rng.uniform(size=n),
    "repeated": lambda rng, n: rng.choice(rng.uniform(0.0, TWO_PI, 12), n),
    "nearly equal": lambda rng, n: 1.0 + 1e-15 * rng.integers(0, 40, n),
    "on the grid": lambda rng, n: rng.choice(FINE, n),
    "one arc": lambda rng, n: rng.uniform(6.0, 6.6, n) % TWO_PI,
    "mixed": lambda rng, n: np.where(
        rng.uniform(size=n) < 0.5, 1.0 + 1e-3 * rng.uniform(size=n), rng.uniform(0, 6, n)
    ),
}


def sample(kind: str, n: int, noise: float, seed: int = 1):
    """Angles, radii and standard deviations of n measurements."""
    rng = np.random.default_rng(seed)
    angle = KINDS[kind](rng, n)
    return angle, 5.0 + np.cos(3.0 * angle) + noise * rng.normal(size=n), np.full(n, noise)
