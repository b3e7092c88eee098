"""Random numbers that every version of numpy gives alike."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray


class Dice:
    """Random numbers from a family's name, a seed and the number of the attempt.

    numpy keeps the raw stream of PCG64 and the way from it to uniform numbers, but may change how it gets to normal
    ones or to integers; here all come from the uniform ones, so that an object is the same on every version.
    """

    def __init__(self, name: str, seed: int, attempt: int) -> None:
        """Begin the stream of one attempt."""
        entropy = [*name.encode(), seed, attempt]
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

    def between(self, low: float, high: float) -> float:
        """Draw a uniform number in [low, high)."""
        return low + (high - low) * float(self._generator.random())

    def whole(self, low: int, high: int) -> int:
        """Draw a uniform whole number, both ends included."""
        return low + int((high - low + 1) * self._generator.random())

    def angle(self) -> float:
        """Draw a uniform angle in [0, 2π), radians."""
        return self.between(0.0, TWO_PI)

    def uniforms(self, count: int, low: float, high: float) -> FloatArray:
        """Draw uniform numbers in [low, high), shape (count,)."""
        return np.asarray(low + (high - low) * self._generator.random(count))

    def normals(self, *shape: int) -> FloatArray:
        r"""Draw standard normal numbers of this shape: :math:`\sqrt{-2\ln(1-u)}\,\cos(2πv)` (Box and Muller)."""
        u, v = self._generator.random((2, *shape))
        return np.asarray(np.sqrt(-2.0 * np.log1p(-u)) * np.cos(TWO_PI * v))
