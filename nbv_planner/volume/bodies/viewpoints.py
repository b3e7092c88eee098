"""Poses of a camera around an object in space."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.world.pose import Poses

# Views are the same within this, radians and parts of the distance.
_SAME = 1e-6
_GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
# Sine of the angle between the line of sight and the vertical below which no direction is up.
_STEEP = 1e-6


class SpacePoses(Poses):
    """Poses in space, which have no view angle."""

    def chosen(self, which: BoolArray | IntArray | slice) -> SpacePoses:
        """Those that a mask, indices or a slice select."""
        return SpacePoses(self.position[which], self.rotation[which])

    def repeat(self, taken: Poses, tolerance: float = _SAME) -> BoolArray:
        """Which are the same as one of those `taken` within a tolerance (radians, part of the
        distance), shape (V,).
        """
        apart = np.linalg.norm(self.position[:, None] - taken.position, axis=-1)
        near = apart < tolerance * np.linalg.norm(taken.position, axis=1)
        # of two rotations by an angle t apart it is 4 - 4 cos t, 2 t² for small ones
        turned = ((self.rotation[:, None] - taken.rotation) ** 2).sum(axis=(-2, -1))
        return np.asarray((near & (turned < 2.0 * tolerance**2)).any(axis=1))


def looking(position: FloatArray, aim: FloatArray) -> SpacePoses:
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
    return SpacePoses(position, np.stack([ahead, left, np.cross(ahead, left)], axis=-1))


def directions(count: int, low: float = -0.5 * math.pi, high: float = 0.5 * math.pi) -> FloatArray:
    """Unit vectors of elevations between two, radians, spread evenly over that zone on a spiral of
    the golden angle, from above (González 2010): shape (count, 3).
    """
    part = (np.arange(count) + 0.5) / count
    up = math.sin(high) + part * (math.sin(low) - math.sin(high))
    flat = np.sqrt(np.maximum(1.0 - up**2, 0.0))
    turn = _GOLDEN * np.arange(count)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), up], axis=1)


def on_sphere(
    count: int, distance: float, low: float = -0.5 * math.pi, high: float = 0.5 * math.pi
) -> SpacePoses:
    """Poses at this `distance` (metres) of the origin that look there, at elevations between two,
    radians; a hemisphere is that from 0 on.
    """
    return looking(distance * directions(count, low, high), np.zeros(3))


def by_joints(turns: FloatArray, tilts: FloatArray, distance: float) -> SpacePoses:
    """Poses of a turntable and an arm that tilts: every turn, shape (A,), with every elevation,
    (E,), radians, at this `distance` (metres) of the origin; turns of a tilt follow each other.
    """
    tilt, turn = (one.reshape(-1) for one in np.meshgrid(tilts, turns, indexing="ij"))
    flat = np.cos(tilt)
    place = np.stack([flat * np.cos(turn), flat * np.sin(turn), np.sin(tilt)], axis=1)
    return looking(distance * place, np.zeros(3))


def with_aims(poses: SpacePoses, aside: float, radius: float) -> SpacePoses:
    """Each pose with three aims: the origin, and the points `aside` (part of the `radius`, metres)
    to its left and right, for a camera that does not see the whole object.
    """
    left = poses.rotation[:, :, 1] * (aside * radius)
    return looking(np.concatenate([poses.position] * 3), np.concatenate([0.0 * left, left, -left]))
