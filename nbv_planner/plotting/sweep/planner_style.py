"""One colour, dash and marker per planner, the same in all pictures of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from nbv_planner.plotting.style import Style

# Okabe and Ito's palette without black, which the reference has, and yellow, which is too light on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_REFERENCE: Style = {"color": "#000000", "linestyle": (0, (4, 2)), "marker": "*"}


def planner_styles(labels: Sequence[str], reference: str | None) -> dict[str, Style]:
    """Line styles by label, in the order of `labels`; black dashes for the reference.

    Colours begin anew after seven planners, with another dash, so that no two are the same up to 28.
    """
    others = [label for label in labels if label != reference]
    styles = {label: _style(index) for index, label in enumerate(others)}
    return {label: _REFERENCE if label == reference else styles[label] for label in labels}


def _style(index: int) -> Style:
    turn, color = divmod(index, len(_COLORS))
    return {
        "color": _COLORS[color], "linestyle": _DASHES[turn % len(_DASHES)],
        "marker": _MARKERS[(color + turn) % len(_MARKERS)],
    }
