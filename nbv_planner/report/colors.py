"""Colours shared by all pictures of an episode: matplotlib figures, RViz markers, and the browser
page.
"""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray

# Okabe and Ito's palette: distinct with every common colour blindness, and in grey print by
# lightness.
TRUTH = "#000000"
MEAN = "#0072B2"
BAND = "#56B4E9"
HIT = "#E69F00"
LAST = "#D55E00"
TARGET = "#009E73"
CAMERA = "#555555"
FAINT = "#BBBBBB"
# Ends and middle of what has a sign.
_MISSING, _NONE, _OUTSIDE = "#3B4CC0", "#DDDDDD", "#B40426"
# Nodes of the map cividis (Nuñez, Anderton and Renslow 2018), made to be read alike with and
# without colour blindness; its lightness rises throughout, so it also survives grey print.
_CIVIDIS = ("#00224E", "#35456C", "#666970", "#948E77", "#C8B866", "#FEE838")


def rgb(color: str) -> tuple[float, float, float]:
    """Red, green and blue of a colour `#rrggbb`, each from 0 to 1."""
    red, green, blue = (int(color[place : place + 2], 16) / 255.0 for place in (1, 3, 5))
    return red, green, blue


def utility_colors(utility: FloatArray, feasible: BoolArray) -> FloatArray:
    """Colours of candidate views: cividis from the least to the greatest utility, grey if there is
    no value.

    Of the value of the objective, finite or not, and which views may be chosen, shape (V,) each;
    returns red, green and blue, shape (V, 3), each from 0 to 1.
    """
    shown = feasible & np.isfinite(utility)
    colors = np.tile(rgb(FAINT), (len(utility), 1))
    if shown.any():
        value = utility[shown]
        low, high = value.min(), value.max()
        # Halved first: the difference of two huge values would overflow.
        place = (
            (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
            if high > low
            else np.full(len(value), 0.5)
        )
        nodes = np.array([rgb(color) for color in _CIVIDIS])
        axis = np.linspace(0.0, 1.0, len(nodes))
        colors[shown] = np.column_stack([np.interp(place, axis, channel) for channel in nodes.T])
    return colors


def signed_colors(value: FloatArray) -> FloatArray:
    """Colours of values, shape (n,): blue below 0, red above, as deep as of the greatest one, grey
    where they are not finite. Returns red, green and blue, shape (n, 3), each from 0 to 1.
    """
    known = np.isfinite(value)
    most = max(float(np.abs(value[known]).max(initial=0.0)), np.finfo(float).tiny)
    nodes = np.array([rgb(color) for color in (_MISSING, _NONE, _OUTSIDE)])
    place = np.where(known, value, 0.0) / most
    shades = [np.interp(place, (-1.0, 0.0, 1.0), channel) for channel in nodes.T]
    return np.where(known[:, None], np.column_stack(shades), rgb(FAINT))
