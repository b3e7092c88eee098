"""The thesis's ranks of planners on one object (ch. 7.1.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Metrics = Mapping[str, Any]
"""Metrics of an episode as :func:`nbv_planner.evaluation.metrics.episode_metrics` gives them."""

Key = tuple[float, ...]


def reconstruction_ranks(episodes: Sequence[Metrics]) -> list[int | None]:
    """`#REC`: dense ranks by T95, then T, then the greater coverage; None below 95 %.

    Args:
        episodes: metrics of all planners on one object (and one seed).
    """
    return _dense([None if m["T95"] is None else (m["T95"], m["T"], -m["rec"]) for m in episodes])


def decision_ranks(episodes: Sequence[Metrics]) -> list[int | None]:
    """`#NBV`: dense ranks by mean individual regret, then T95, then T, then the greater coverage; None below 95 %.

    The thesis does not say that this ranking leaves out those below 95 % too, but its tables do: the six planners and
    the greedy one would share out 28 ranks on a flower, and in table 7.2 they sum to 26.7.

    Args:
        episodes: metrics of all planners on one object (and one seed).
    """
    return _dense(
        [None if m["T95"] is None else (m["mean_individual_regret"], m["T95"], m["T"], -m["rec"]) for m in episodes]
    )


def _dense(keys: Sequence[Key | None]) -> list[int | None]:
    """Equal keys share a rank and the next one follows immediately."""
    place = {key: rank for rank, key in enumerate(sorted({key for key in keys if key is not None}), start=1)}
    return [None if key is None else place[key] for key in keys]


def mean_ranks(by_object: Sequence[Sequence[int | None]]) -> list[tuple[float, int]]:
    """Average the ranks over objects.

    Args:
        by_object: one list of ranks per object, the planners in the same order in each.

    Returns:
        Per planner the mean over the objects on which it is ranked (NaN if there is none) and the number on which it
        is not.
    """
    means = []
    for ranks in zip(*by_object, strict=True):
        ranked = [rank for rank in ranks if rank is not None]
        means.append((float(np.mean(ranked)) if ranked else math.nan, len(ranks) - len(ranked)))
    return means
