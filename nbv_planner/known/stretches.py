"""Stretches of an outline, each of which is like the object or unlike it as a whole: a Markov chain
around the circle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import FloatArray

CELLS = 360
"""Cells of the circle to which residuals are merged, and in which deviations are drawn."""
STRETCHES = 36
"""Stretches of the outline that are like it or unlike it as a whole."""
EACH = CELLS // STRETCHES
"""Cells of a stretch."""
# Probability that the stretch next to an unlike one is unlike.
_STAYS = 0.75


@dataclass(frozen=True, eq=False)
class Chain:
    r"""States of all stretches around the circle, given the log ratios of their likelihoods, shape
    (36,).

    With the changes T and :math:`E_j = \mathrm{diag}(e^{ρ_j}, 1)` the likelihood of all is the
    trace of :math:`E_0 T E_1 T … E_{35} T`.
    """

    ratio: FloatArray
    part: float  #: of all stretches that are unlike before the evidence.

    @property
    def changes(self) -> FloatArray:
        """T: probabilities of the next state (columns) after like and unlike (rows)."""
        begins = self.part / (1.0 - self.part) * (1.0 - _STAYS)
        return np.array([[1.0 - begins, begins], [1.0 - _STAYS, _STAYS]])

    @cached_property
    def _behind(self) -> tuple[FloatArray, float]:
        """Products of all matrices from each stretch on, shape (37, 2, 2), each up to a factor, and
        the log of that of the first.
        """
        loud = np.maximum(self.ratio, 0.0)
        own = np.exp(np.stack([self.ratio - loud, -loud], axis=1))[:, :, None] * self.changes
        found = np.empty((STRETCHES + 1, 2, 2))
        found[-1] = np.eye(2)
        scale = float(loud.sum())
        for place in range(STRETCHES - 1, -1, -1):
            product = own[place] @ found[place + 1]
            size = product.max()
            found[place] = product / size
            scale += math.log(size)
        return found, scale

    @property
    def log_evidence(self) -> float:
        """Log of the likelihood of what was measured to that if all stretches are unlike."""
        found, scale = self._behind
        return math.log(np.trace(found[0])) + scale

    @cached_property
    def unlike(self) -> FloatArray:
        """Probability that each stretch is unlike, shape (36,)."""
        behind, _ = self._behind
        own = np.exp(np.minimum(self.ratio, 0.0)), np.exp(-np.maximum(self.ratio, 0.0))
        matrices = np.stack(own, axis=1)[:, :, None] * self.changes
        before = np.eye(2)
        found = np.empty((STRETCHES, 2))
        for place in range(STRETCHES):
            found[place] = np.einsum("zf,fz->z", behind[place], before)
            before = before @ matrices[place]
            before /= before.max()
        return np.asarray(found[:, 1] / found.sum(axis=1))

    def draw(self, uniform: FloatArray) -> FloatArray:
        """States of S draws, 1 for unlike, by uniform numbers (S, 36); shape (S, 36)."""
        behind, _ = self._behind
        weight = np.diagonal(behind[0])
        first = state = (uniform[:, 0] * weight.sum() >= weight[0]).astype(np.intp)
        found = [state]
        for place in range(1, STRETCHES):
            following = self.changes[state] * behind[place][:, first].T
            state = (uniform[:, place] * following.sum(axis=1) >= following[:, 0]).astype(np.intp)
            found.append(state)
        return np.stack(found, axis=1).astype(float)


def between_stretches(values: FloatArray) -> FloatArray:
    """Values of stretches, shape (S, 36), in all cells, linear between their middles; (S, 360)."""
    at = (np.arange(CELLS) - 0.5 * (EACH - 1)) / EACH
    low = np.floor(at).astype(np.intp)
    part = at - low
    return np.asarray(
        (1.0 - part) * values[:, low % STRETCHES] + part * values[:, (low + 1) % STRETCHES]
    )
