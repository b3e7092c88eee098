"""Fit the calibration of the coverage estimate to recorded episodes, and judge it on others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, hstack
from scipy.stats import beta

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.star2d.shapes.certificate import CURVES, FEATURES, CoverageCalibration, logit

LEVEL = 0.95
"""Probability of the interval."""
FORMS = {
    "coverage": FEATURES[:1],
    "rough": ("coverage", "fine", "hidden"),
    "seen": ("coverage", "fine", "hidden", "slope"),
    "all": FEATURES[:-1],
}
"""Forms of the model that are compared, by the evidence that they use."""
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Those of the drawn shapes' coverages that are recorded."""
# Quantile of each curve.
_CURVE = dict(zip(CURVES, (0.5 - 0.5 * LEVEL, 0.5, 0.5 + 0.5 * LEVEL), strict=True))
# Parts of the rows, by rising fine structure, between which the classes of evidence change.
_CLASSES = (0.25, 0.6)
_FOLDS = 5
# Probabilities at which the score of a claim is tabulated, and the least confidence in them.
_CLAIMS = (0.5, 0.8, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98)
_CONFIDENCE = 0.8
_SCORES = np.arange(-2.0, 3.0, 0.02)


@dataclass(frozen=True, eq=False)
class Rows:
    """Recorded views, n of them; those of an episode follow one another."""

    episode: IntArray  #: number of the episode of each, shape (n,).
    object: IntArray  #: number of its object, shape (n,).
    kind: Sequence[str]  #: class of the object of each row, n.
    #: whether it is an outline of something real, shape (n,); made-up objects are easier, and more
    #: of them are at hand.
    real: BoolArray
    truth: FloatArray  #: true coverage, shape (n,).
    #: mean of the shapes' coverages, their :data:`QUANTILES`, and the probability, shape (n, 11).
    raw: FloatArray
    evidence: Mapping[str, FloatArray]  #: by name, shape (n,) each.

    def __len__(self) -> int:
        return len(self.truth)

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each row, shape (n,): those of real outlines weigh together as much as the
        others; 1 on average.
        """
        part = np.where(self.real, self.real.mean(), 1.0 - self.real.mean())
        return np.asarray(1.0 / (part * len(np.unique(self.real))))

    @cached_property
    def wanted(self) -> FloatArray:
        """What is regressed: logit of the true coverage, shape (n,)."""
        return logit(self.truth)

    def of(self, index: int) -> dict[str, float]:
        """Evidence of a row."""
        return {name: float(values[index]) for name, values in self.evidence.items()}

    def design(self, features: Sequence[str], within: Sequence[Sequence[float]]) -> FloatArray:
        """A column of ones, and the features within their bounds, shape (n, 1 + F)."""
        columns = [
            np.clip(self.evidence[name], *bounds)
            for name, bounds in zip(features, within, strict=True)
        ]
        return np.column_stack([np.ones(len(self)), *columns])

    def chosen(self, mask: BoolArray) -> Rows:
        """The rows for which `mask`, shape (n,), is true."""
        kind = [one for one, there in zip(self.kind, mask, strict=True) if there]
        evidence = {name: values[mask] for name, values in self.evidence.items()}
        return Rows(
            self.episode[mask],
            self.object[mask],
            kind,
            self.real[mask],
            self.truth[mask],
            self.raw[mask],
            evidence,
        )

    def episodes(self) -> Iterator[IntArray]:
        """Indices of the rows of each episode."""
        starts = np.flatnonzero(np.diff(self.episode, prepend=self.episode[0] - 1))
        yield from np.split(np.arange(len(self)), starts[1:])


def quantile_regression(
    design: FloatArray, wanted: FloatArray, quantile: float, weight: FloatArray
) -> FloatArray:
    r"""Coefficients b, shape (F + 1,), that minimise :math:`\sum_i w_i ρ_τ(y_i - x_i^\top b)`
    (Koenker, Bassett 1978).

    :math:`ρ_τ(u) = u\,(τ - [u < 0])`. It is the linear programme
    :math:`\min τ w^\top u + (1 - τ) w^\top v` with :math:`X b + u - v = y` and u, v not negative.
    The coefficient of the first feature, the estimate of the shapes, is not negative.

    Args:
        design: X, shape (n, F + 1), its first column ones.
        wanted: y, shape (n,).
        quantile: τ.
        weight: w, shape (n,), positive.
    """
    count, size = design.shape
    # In standard units the solver is at ease.
    centre, spread = design[:, 1:].mean(axis=0), design[:, 1:].std(axis=0) + 1e-9
    scaled = np.column_stack([np.ones(count), (design[:, 1:] - centre) / spread])
    cost = np.concatenate([np.zeros(size), quantile * weight, (1.0 - quantile) * weight])
    equal = hstack([csr_matrix(scaled), eye(count), -eye(count)]).tocsr()
    bounds = [(0.0 if column == 1 else None, None) for column in range(size)] + [(0.0, None)] * (
        2 * count
    )
    found = linprog(cost, A_eq=equal, b_eq=wanted, bounds=bounds, method="highs").x[:size]
    slopes = found[1:] / spread
    return np.concatenate([[found[0] - slopes @ centre], slopes])


def _bounds(rows: Rows, features: Sequence[str], chosen: BoolArray) -> list[list[float]]:
    """Range of each feature over the chosen rows but for their outermost hundredth."""
    return [
        np.quantile(rows.evidence[name][chosen], [0.005, 0.995]).round(4).tolist()
        for name in features
    ]


def curves(
    rows: Rows, features: Sequence[str], chosen: BoolArray, quantiles: Sequence[float]
) -> list[FloatArray]:
    """Quantiles of every row by regressions on the chosen ones, each of shape (n,)."""
    design = rows.design(features, _bounds(rows, features, chosen))
    known = design[chosen], rows.wanted[chosen], rows.weight[chosen]
    return [design @ quantile_regression(*known[:2], one, known[2]) for one in quantiles]


def folds(rows: Rows) -> IntArray:
    """Number of the part of the objects that each row belongs to, shape (n,)."""
    names, number = np.unique(rows.object, return_inverse=True)
    return np.asarray(np.random.default_rng(0).permutation(len(names))[number] % _FOLDS)


def crossed(rows: Rows, features: Sequence[str], quantiles: Sequence[float]) -> list[FloatArray]:
    """Quantiles of every row by regressions on other objects than its own, each of shape (n,)."""
    fold, found = folds(rows), np.empty((len(quantiles), len(rows)))
    for number in range(_FOLDS):
        found[:, fold == number] = np.array(curves(rows, features, fold != number, quantiles))[
            :, fold == number
        ]
    return list(found)


def moved_by(short: FloatArray, weight: FloatArray, level: float) -> float:
    """By how much an end must move outwards for `level` of n scores, shape (n,), to be within: a
    conformal quantile.

    The scores have weights, shape (n,).
    """
    order = np.argsort(short, kind="stable")
    reached = np.cumsum(weight[order]) >= level * (1.0 + 1.0 / len(short)) * weight.sum() * (
        1.0 - 1e-12
    )
    return float(short[order[np.argmax(reached)]] if reached.any() else short.max())


def claims_held(rows: Rows, score: FloatArray, target: float) -> list[list[float]]:
    """Scores from which on claims hold with each tabulated probability, as pairs; none where no
    score reaches one.

    A claim is made at the first row of an episode whose score is great enough. Episodes of one
    object count as one, by their mean, and real outlines together as much as other objects. A
    probability is the lower bound of Clopper and Pearson for the part that held, of as many objects
    as the weights leave (Kish's effective size).
    """
    held = [_probability(rows, score, target, least) for least in _SCORES]
    best = np.maximum.accumulate(held)
    pairs = [[round(float(_SCORES[np.argmax(best >= p)]), 2), p] for p in _CLAIMS if best[-1] >= p]
    return [
        pair
        for number, pair in enumerate(pairs)
        if number == len(pairs) - 1 or pairs[number + 1][0] > pair[0]
    ]


def _probability(rows: Rows, score: FloatArray, target: float, least: float) -> float:
    found: dict[tuple[bool, int], list[bool]] = defaultdict(list)
    for index in rows.episodes():
        claiming = index[score[index] >= least]
        if len(claiming):
            first = claiming[0]
            found[bool(rows.real[first]), int(rows.object[first])].append(
                bool(rows.truth[first] >= target)
            )
    if not found:
        return 0.0
    real = np.array([key[0] for key in found])
    whole = (
        max(len(np.unique(rows.object[rows.real])), 1),
        max(len(np.unique(rows.object[~rows.real])), 1),
    )
    weight = np.where(real, 1.0 / whole[0], 1.0 / whole[1])
    size = weight.sum() ** 2 / (weight**2).sum()
    held = size * float(np.average([np.mean(each) for each in found.values()], weights=weight))
    return float(beta.ppf(1.0 - _CONFIDENCE, held, size - held + 1.0)) if held else 0.0


def fitted(
    rows: Rows, features: Sequence[str], target: float = 0.95
) -> tuple[CoverageCalibration, dict[str, Any]]:
    """Fit a calibration; also as what the table of the package holds.

    The ends of the interval are calibrated on quantiles of each object by regressions on the
    others, so that the data serve both; the regressions that are shipped use all.
    """
    everything = np.ones(len(rows), dtype=bool)
    within = _bounds(rows, features, everything)
    design = rows.design(features, within)
    coefficients = {
        name: quantile_regression(design, rows.wanted, one, rows.weight).round(5).tolist()
        for name, one in _CURVE.items()
    }
    order = np.argsort(rows.evidence["fine"])
    below = np.cumsum(rows.weight[order]) / rows.weight.sum()
    edges = rows.evidence["fine"][order][np.searchsorted(below, _CLASSES)].round(4).tolist()
    group = np.searchsorted(edges, rows.evidence["fine"], side="right")
    lower, _, upper = crossed(rows, features, list(_CURVE.values()))
    groups = [group == one for one in range(len(edges) + 1)]
    below, above = lower - rows.wanted, rows.wanted - upper
    table = {
        "level": LEVEL,
        "features": list(features),
        "within": within,
        "coefficients": coefficients,
        "edges": edges,
        "lowered": [
            round(moved_by(below[one], rows.weight[one], _CURVE["upper"]), 4) for one in groups
        ],
        "raised": [
            round(moved_by(above[one], rows.weight[one], _CURVE["upper"]), 4) for one in groups
        ],
        "claims": claims_held(rows, rows.evidence["sure"] - logit(target), target),
    }
    made = {
        "rows": len(rows),
        "episodes": sum(1 for _ in rows.episodes()),
        "objects": len(np.unique(rows.object)),
    }
    return CoverageCalibration(**{**table, "features": tuple(features)}), {**table, "fitted": made}
