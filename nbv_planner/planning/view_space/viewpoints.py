"""Poses of a camera around an object in space."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray, angle_difference
from nbv_planner.world.pose import Poses

_GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
# Sine of the angle between the line of sight and the vertical below which no direction is up.
_STEEP = 1e-6


def looking(position: FloatArray, aim: FloatArray) -> Poses:
    """Poses at `position`, shape (V, 3), that look at `aim`, shape (3,) or (V, 3), metres, upright.

    The image of one that looks straight up or down has the object frame's x axis at its top.

    Raises:
        SettingError: a position is that at which it is to look.
    """
    ahead = aim - position
    length = np.linalg.norm(ahead, axis=1)[:, None]
    if not (length > 0.0).all():
        raise SettingError("view: a camera cannot look at the place where it stands")
    ahead = ahead / length
    left = np.cross([0.0, 0.0, 1.0], ahead)
    sine = np.linalg.norm(left, axis=1)[:, None]
    flat = np.cross(np.broadcast_to([1.0, 0.0, 0.0], ahead.shape), ahead)
    flat /= np.maximum(np.linalg.norm(flat, axis=1)[:, None], _STEEP)
    left = np.where(sine > _STEEP, left / np.maximum(sine, _STEEP), flat)
    return Poses(position, np.stack([ahead, left, np.cross(ahead, left)], axis=-1))


def directions(
    count: int,
    low: float = -0.5 * math.pi,
    high: float = 0.5 * math.pi,
    aside: float = math.pi,
) -> FloatArray:
    """Unit vectors of elevations between two and of azimuths up to one `aside`, radians, spread
    evenly over that zone on a spiral of the golden angle, from above (González 2010): shape (count,
    3).
    """
    part = (np.arange(count) + 0.5) / count
    up = math.sin(high) + part * (math.sin(low) - math.sin(high))
    flat = np.sqrt(np.maximum(1.0 - up**2, 0.0))
    turn = _GOLDEN * np.arange(count)
    if aside < math.pi:
        turn = angle_difference(turn, 0.0) * (aside / math.pi)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), up], axis=1)


def on_sphere(
    count: int,
    distance: float,
    low: float = -0.5 * math.pi,
    high: float = 0.5 * math.pi,
    aside: float = math.pi,
) -> Poses:
    """Poses at this `distance` (metres) of the origin that look there, at elevations between two
    and azimuths up to one `aside`, radians; a hemisphere is that from the elevation 0 on.
    """
    return looking(distance * directions(count, low, high, aside), np.zeros(3))


def by_joints(turns: FloatArray, tilts: FloatArray, distance: float) -> Poses:
    """Poses of a turntable and an arm that tilts: every turn, shape (A,), with every elevation,
    (E,), radians, at this `distance` (metres) of the origin; turns of a tilt follow each other.
    """
    tilt, turn = (one.reshape(-1) for one in np.meshgrid(tilts, turns, indexing="ij"))
    flat = np.cos(tilt)
    place = np.stack([flat * np.cos(turn), flat * np.sin(turn), np.sin(tilt)], axis=1)
    return looking(distance * place, np.zeros(3))


def with_aims(poses: Poses, aside: float, radius: float) -> Poses:
    """Each pose with three aims: the origin, and the points `aside` (part of the `radius`, metres)
    to its left and right, for a camera that does not see the whole object.
    """
    left = poses.rotation[:, :, 1] * (aside * radius)
    return looking(np.concatenate([poses.position] * 3), np.concatenate([0.0 * left, left, -left]))
