"""A curve or surface of any form as a set of points, whatever has measured it: how far it is from another one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.geometry import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class PointSet:
    """Points of a curve or surface, each of which stands for a part of it."""

    points: FloatArray  #: in the object frame, shape (N, D), metres.
    length: FloatArray  #: of the part that each stands for, or its area; only ratios count, shape (N,).

    def distance_from(self, other: PointSet) -> FloatArray:
        """Distance of each point from the nearest one of the other set, shape (N,), metres; inf if that is empty."""
        return np.asarray(cKDTree(other.points).query(self.points)[0])

    def part(self, which: BoolArray) -> float:
        """Part of the whole for which some of the points stand, shape (N,); NaN without length."""
        whole = float(self.length.sum())
        return float(self.length[which].sum()) / whole if whole else math.nan

    def mean(self, values: FloatArray) -> float:
        """Mean by length of values of the points, shape (N,); NaN without length."""
        whole = float(self.length.sum())
        return float(self.length @ values) / whole if whole else math.nan
