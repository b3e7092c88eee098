"""How often the interval of the estimated coverage holds the true one, and how often a claim of
COVERED holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binomtest

from campaigns.calibration import QUANTILES, Rows, fitted, folds
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.report.figures import style
from nbv_planner.star2d.shapes.certificate import CoverageCalibration

TARGET, CONFIDENCE = 0.95, 0.95
"""Coverage that is claimed, and the probability from which on it is."""
_DRAWN = ((style.TRUTH, "as the shapes say"), (style.MEAN, "calibrated"))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates after each of n views."""

    mean: FloatArray  #: shape (n,).
    lower: FloatArray  #: of the 95 % interval, shape (n,).
    upper: FloatArray  #: shape (n,).
    claims: BoolArray  #: whether COVERED would be claimed, shape (n,).


def by_shapes(rows: Rows) -> Estimates:
    """What the drawn shapes say."""
    ends = (1 + QUANTILES.index(0.025), 1 + QUANTILES.index(0.975))
    return Estimates(
        rows.raw[:, 0], *(rows.raw[:, end] for end in ends), rows.raw[:, -1] >= CONFIDENCE
    )


def calibrated(rows: Rows, calibration: CoverageCalibration) -> Estimates:
    """What a calibration makes of it."""
    found = np.array([calibration.estimate(rows.of(index), TARGET) for index in range(len(rows))])
    return Estimates(*found.T[:3], found[:, 3] >= CONFIDENCE)


def held_out(rows: Rows, features: Sequence[str]) -> Estimates:
    """What calibrations say that are fitted to other objects: cross-validation of all that is
    fitted.
    """
    fold, found = folds(rows), np.empty((4, len(rows)))
    for number in range(fold.max() + 1):
        there = calibrated(
            rows.chosen(fold == number), fitted(rows.chosen(fold != number), features)[0]
        )
        found[:, fold == number] = [there.mean, there.lower, there.upper, there.claims]
    return Estimates(*found[:3], found[3] > 0.0)


@dataclass(frozen=True)
class Summary:
    """What became of the episodes of a class of objects."""

    kind: str  #: the class.
    lines: int  #: views up to the claim, or all of an episode without one.
    inside: int  #: those of them whose interval holds the true coverage.
    width: float  #: mean width of their interval.
    episodes: int  #: number of episodes.
    claimed: int  #: those that claim COVERED.
    held: int  #: those of them in which it was true.
    late: float  #: views taken after the first at which it was, mean over those that held.

    @property
    def text(self) -> str:
        """One line."""
        if not self.claimed:
            return f"{self._interval}  nothing claimed in {self.episodes} episodes"
        low, high = binomtest(self.held, self.claimed).proportion_ci(0.95, method="wilson")
        return (
            f"{self._interval}  claimed {self.claimed}/{self.episodes}, held {self.held} "
            f"({self.held / self.claimed:.1%} [{low:.1%}, {high:.1%}]), {self.late:.2f} views late"
        )

    @property
    def _interval(self) -> str:
        return (
            f"{self.kind:18} {self.lines:6d} lines, inside {self.inside / self.lines:.1%}, width"
            f" {self.width:.3f};"
        )


def summarised(rows: Rows, found: Estimates) -> list[Summary]:
    """All episodes, and those of each class of objects."""
    inside = (found.lower <= rows.truth + 1e-9) & (rows.truth <= found.upper + 1e-9)
    return [_summary(kind, rows, found, inside) for kind in ("all", *sorted(set(rows.kind)))]


def _summary(kind: str, rows: Rows, found: Estimates, inside: BoolArray) -> Summary:
    lines, claims, late = list[int](), 0, list[int]()
    episodes = [index for index in rows.episodes() if kind in ("all", rows.kind[index[0]])]
    for index in episodes:
        claim, reached = (_first(values[index]) for values in (found.claims, rows.truth >= TARGET))
        lines += index[: None if claim is None else claim + 1].tolist()
        if claim is not None:
            claims += 1
            late += [] if reached is None or reached > claim else [claim - reached]
    width = float((found.upper - found.lower)[lines].mean())
    delay = float(np.mean(late)) if late else float("nan")
    return Summary(
        kind, len(lines), int(inside[lines].sum()), width, len(episodes), claims, len(late), delay
    )


def _first(true: BoolArray) -> int | None:
    return int(np.argmax(true)) if true.any() else None


def summaries(rows: Rows, found: Estimates) -> Iterator[str]:
    """The summaries, one line each."""
    return (summary.text for summary in summarised(rows, found))


def compared(name: str, rows: Rows, found: Estimates) -> str:
    """A form of the model in one line, and the classes of objects that it does worst on."""
    everything, *classes = summarised(rows, found)
    least = min(classes, key=lambda one: one.inside / one.lines)
    worst = min(
        (one for one in classes if one.claimed),
        key=lambda one: one.held / one.claimed,
        default=None,
    )
    claim = "" if worst is None else f", claims of {worst.kind} held {worst.held}/{worst.claimed}"
    return (
        f"{name}: {everything.text}; least: inside of {least.kind}"
        f" {least.inside / least.lines:.1%}{claim}"
    )


def pictured(rows: Rows, before: Estimates, after: Estimates, place: Path) -> None:
    """Draw the reliability by class of objects: estimate against truth, intervals, and claims that
    held.
    """
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[0.9, 1.2, 1.2])
    for found, (color, label) in zip((before, after), _DRAWN, strict=True):
        said, true = _binned(found.mean, rows.truth)
        axes[0].plot(
            said, true, color=color, marker="o", markersize=3.5, linewidth=1.2, label=label
        )
    axes[0].plot([0.0, 1.0], [0.0, 1.0], color=style.TARGET, linewidth=1.0, linestyle="--")
    style.style_axes(axes[0], "estimated coverage", "mean true coverage")
    axes[0].set(xlim=(0.4, 1.01), ylim=(0.4, 1.01))
    axes[0].legend(fontsize=style.TICK_SIZE, frameon=False)
    pairs = [
        (summarised(rows, found), *drawn)
        for found, drawn in zip((before, after), _DRAWN, strict=True)
    ]
    for axis, held, label in (
        (axes[1], lambda one: (one.inside, one.lines), "truth inside the interval, part of views"),
        (axes[2], lambda one: (one.held, one.claimed), "part of the claims that held"),
    ):
        for shift, (summaries_, color, _) in zip((-0.17, 0.17), pairs, strict=True):
            _draw_parts(axis, [held(one) for one in summaries_], shift, color)
        style.style_axes(axis, "", label)
        axis.set_xticks(range(len(pairs[0][0])), [one.kind for one in pairs[0][0]], rotation=90)
        axis.set_ylim(0.0, 1.02)
        style.level_line(axis, TARGET, "95 %")
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(place, dpi=130)


def _binned(said: FloatArray, true: FloatArray, bins: int = 15) -> tuple[list[float], list[float]]:
    """Means of both in parts of equal size by what was said."""
    parts = np.array_split(np.argsort(said, kind="stable"), bins)
    return [float(said[part].mean()) for part in parts], [
        float(true[part].mean()) for part in parts
    ]


def _draw_parts(axis: Axes, counts: Sequence[tuple[int, int]], shift: float, color: str) -> None:
    """Draw parts of counts as dots with Wilson's 95 % intervals; nothing where there was none to
    count.
    """
    for place, (number, whole) in enumerate(counts):
        if whole:
            low, high = binomtest(number, whole).proportion_ci(0.95, method="wilson")
            axis.plot([place + shift] * 2, [low, high], color=color, linewidth=1.0)
            axis.plot(place + shift, number / whole, color=color, marker="o", markersize=4)
