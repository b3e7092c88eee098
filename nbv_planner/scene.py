"""The geometry that all parts share: object bounds, view circle, the camera's cone, the world pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, angle_difference, camera_ray
from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class Scene:
    """Object bounds, view circle, cone of the camera and world pixel (defaults are the thesis's).

    Raises:
        SettingError: a value is out of range, `radius_min >= radius_max`, or the view circle does not lie outside
            the object's bound.
    """

    radius_min: float = setting(2.0, "Least radius of the object.", unit="m", gt=0.0)
    radius_max: float = setting(8.0, "Greatest radius of the object.", unit="m", gt=0.0)
    view_distance: float = setting(10.0, "Radius of the view circle.", unit="m", gt=0.0)
    field_of_view: float = setting(math.radians(35.0), "Opening angle of the camera.", unit="rad", gt=0.0, lt=math.pi)
    range_min: float = setting(0.05, "Least range that the camera measures.", unit="m", ge=0.0)
    range_max: float = setting(10.0, "Depth of field: greatest range that the camera measures.", unit="m", gt=0.0)
    pixel_size: float = setting(0.1, "Side of a world pixel.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check each value and how they fit together."""
        check_settings(self)
        if self.radius_min >= self.radius_max:
            raise SettingError(f"radius_min: {self.radius_min} is not below radius_max ({self.radius_max})")
        if self.view_distance <= self.radius_max:
            raise SettingError(
                f"view_distance: {self.view_distance} puts the camera inside the object's bound; "
                f"must be > radius_max ({self.radius_max})"
            )
        if self.range_min >= self.range_max:
            raise SettingError(f"range_min: {self.range_min} is not below range_max ({self.range_max})")

    @property
    def simple_half_width(self) -> float:
        r"""Half-width :math:`\Delta\varphi` of the simple interval :math:`\Phi_S`, radians (eq. sum-interval-simple).

        .. math:: \operatorname{atan2}(d_{DOF}\sin(\alpha/2),\; d_{cam} - d_{DOF}\cos(\alpha/2))
        """
        half = 0.5 * self.field_of_view
        return math.atan2(self.range_max * math.sin(half), self.view_distance - self.range_max * math.cos(half))

    def in_simple_interval(self, angle: ArrayLike, view_angle: ArrayLike) -> BoolArray:
        """Whether polar `angle` lies in the simple interval of `view_angle` (broadcasts), modulo 2π."""
        return np.asarray(np.abs(angle_difference(angle, view_angle)) <= self.simple_half_width)

    def fov_boundary(self, angle: ArrayLike, view_angle: ArrayLike) -> FloatArray:
        r"""Boundary of the field of view :math:`fov_\theta(\varphi)` on the simple interval, metres (eq. fov-boundary).

        The left ray (bearing +α/2) bounds :math:`\varphi \le \theta`, the right ray (−α/2) the other side.
        """
        bearing = np.where(angle_difference(angle, view_angle) <= 0.0, 0.5, -0.5) * self.field_of_view
        return camera_ray(angle, view_angle, bearing, self.view_distance)

    def in_cone(self, bearing: ArrayLike, distance: ArrayLike) -> BoolArray:
        """Whether a point at `bearing` and range `distance` lies inside the camera's cone."""
        inside = np.abs(np.asarray(bearing)) <= 0.5 * self.field_of_view
        return np.asarray(inside & (np.asarray(distance) <= self.range_max))
