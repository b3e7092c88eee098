"""Recordings of version 1: their `surface` clouds carry what the topic `surface_info` says now.

Columns whose first values are numbers, NaN at the other points: of the sensor, of the scene that
was found and of the checks. The numbers of the prior are in `run_info`, too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from nbv_planner.clouds.cloud_fields import Layout, columns_of, has_fields, structured_points
from nbv_planner.clouds.surface_messages import surface_from_msg
from nbv_planner.errors import InputRejectedError
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.checks import KINDS, Check, Level
from nbv_planner.volume.grid import Merged
from nbv_planner.world.scene import SENSOR_NAMES, EstimatedScene, centre_of

SENSOR_LAYOUT: Layout = [("sensor", "f8")]
SCENE_LAYOUT: Layout = [("scene", "f8")]
CHECKS_LAYOUT = [(name, "f4") for name in ("check_score", "check_limit", "check_level")]


def recorded_belief(msg: Any) -> SurfaceBelief | Merged:
    """The belief of a recorded `surface` cloud of any version, with what a cloud of version 1 says
    itself.

    Raises:
        InputRejectedError: as :func:`~nbv_planner.clouds.surface_messages.belief_from_msg`, and
            `checks`, `scene` or `layout`.
    """
    belief = surface_from_msg(msg)
    if isinstance(belief, Merged):
        return belief
    return replace(belief, checks=_checks(msg), centre=centre_of(_found(msg)))


def _checks(msg: Any) -> tuple[Check, ...]:
    if not has_fields(msg, CHECKS_LAYOUT):
        return ()
    rows = np.stack(
        columns_of(structured_points(msg, CHECKS_LAYOUT), *(name for name, _ in CHECKS_LAYOUT)),
        axis=1,
    )
    made = np.flatnonzero(~np.isnan(rows[:, 2]))
    if (made >= len(KINDS)).any() or not np.isin(rows[made, 2], list(Level)).all():
        raise InputRejectedError(
            "checks", "the surface carries results of checks that are not known here"
        )
    return tuple(
        Check(KINDS[kind].name, float(score), float(limit), Level(int(level)))
        for kind, (score, limit, level) in zip(made.tolist(), rows[made], strict=True)
    )


def sensor_from_msg(msg: Any) -> dict[str, float]:
    """Read the sensor that a `surface` cloud carries, by :data:`SENSOR_NAMES`; nothing without one.

    Raises:
        InputRejectedError: `sensor` (no positive numbers) or `layout`.
    """
    if not has_fields(msg, SENSOR_LAYOUT):
        return {}
    numbers = structured_points(msg, SENSOR_LAYOUT)["sensor"][: len(SENSOR_NAMES)].tolist()
    if len(numbers) < len(SENSOR_NAMES) or not all(0.0 <= number < math.inf for number in numbers):
        raise InputRejectedError("sensor", f"the surface carries no usable sensor: {numbers}")
    return dict(zip(SENSOR_NAMES, numbers, strict=True))


def _found(msg: Any) -> EstimatedScene | None:
    """Read the scene that a `surface` cloud of an unknown one carries; None without one.

    Raises:
        InputRejectedError: `scene` (no scene that could be) or `layout`.
    """
    if not has_fields(msg, SCENE_LAYOUT):
        return None
    numbers = structured_points(msg, SCENE_LAYOUT)["scene"][:9].tolist()
    try:
        x, y, low, high, distance, start, end, views, turn = numbers
        return EstimatedScene(x, y, low, high, distance, start, end, int(views), turn)
    except ValueError as error:  # also fewer points than numbers, and a NaN for the views
        raise InputRejectedError(
            "scene", f"the surface carries no usable scene: {error}"
        ) from error
