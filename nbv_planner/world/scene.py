"""The geometry that all parts share: object bounds, view circle, the camera's sensor, the world
pixel.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, Point
from nbv_planner.settings import Settings, python_setting, setting, settings_of
from nbv_planner.world.scan import ConeSensor, SensorModel

# Metres, between which the greatest radius of an object lies; the circle around it may be ten times
# as large.
_LEAST = 1e-5
_MOST = 1e6
LEAST_FIELD = 1e-4
"""Least opening angle of a camera, radians: a header that says less says nothing."""
# Least side of a pixel, as a part of the greatest radius: a surface has some ten points for each of
# its inverse.
_FINEST = 1e-4


@dataclass(frozen=True)
class Scene(Settings):
    """Object bounds, view circle, cone of the camera and world pixel (defaults are the thesis's).

    Raises:
        SettingError: a value is out of range, `radius_min >= radius_max`, or the view circle does
            not lie outside the object's bound.
    """

    #: whether the camera sees what its beams meet, or, as the thesis has it, along the surface up
    #: to the first point that is out of range.
    beams: ClassVar[bool] = False

    radius_min: float = setting(
        2.0,
        "Least radius of the object about the centre: give it if it differs much from radius_max"
        " / 4.",
        unit="m",
        gt=0.0,
        scale="radius_max",
    )
    radius_max: float = setting(
        8.0,
        "Greatest radius of the object about the centre: always give it; all other lengths are"
        " derived from it.",
        unit="m",
        ge=_LEAST,
        le=_MOST,
    )
    view_distance: float = setting(
        10.0,
        "Distance of the camera from the centre on the view circle: give the distance at which"
        " your robot can drive around the object.",
        unit="m",
        ge=_LEAST,
        le=10.0 * _MOST,
        scale="radius_max",
    )
    field_of_view: float = setting(
        math.radians(35.0),
        "Opening angle of the camera: give it only if the scan headers do not state it.",
        unit="rad",
        ge=LEAST_FIELD,
        lt=math.pi,
    )
    range_min: float = setting(
        0.05,
        "Least range that the camera measures: give it only if the scan headers do not state it.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    range_max: float = setting(
        10.0,
        "Greatest range that the camera measures: give it only if the scan headers do not state"
        " it.",
        unit="m",
        gt=0.0,
        scale="view_distance",
    )
    pixel_size: float = python_setting(
        0.1,
        "Side of a world pixel.",
        unit="m",
        gt=0.0,
        le=_MOST,
        scale="radius_max",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius_min >= self.radius_max:
            raise SettingError(
                f"radius_min: {self.radius_min} must be < {self.radius_max} (radius_max)"
            )
        if self.view_distance <= self.radius_max:
            raise SettingError(
                f"view_distance: {self.view_distance} puts the camera inside the object's bound; "
                f"must be > radius_max ({self.radius_max})"
            )
        if self.range_min >= self.range_max:
            raise SettingError(
                f"range_min: {self.range_min} must be < {self.range_max} (range_max)"
            )
        if self.pixel_size < _FINEST * self.radius_max:
            least = _FINEST * self.radius_max
            raise SettingError(
                f"pixel_size: {self.pixel_size} is too fine for radius_max; must be >= {least:g} m"
            )

    @cached_property
    def sensor(self) -> SensorModel:
        """What the camera sees, as planner and simulation take it; a scene with another sensor
        overrides this.
        """
        half = 0.5 * self.field_of_view
        return ConeSensor(-half, half, self.range_min, self.range_max)

    @property
    def half_field(self) -> float:
        """Half the opening angle of the least cone about the line of sight that holds the field of
        view, radians.
        """
        return max(self.sensor.bearing_max, -self.sensor.bearing_min)

    @property
    def simple_half_width(self) -> float:
        r"""Half-width :math:`\Delta\varphi` of the simple interval :math:`\Phi_S`, radians (eq.
        sum-interval-simple).

        .. math:: \operatorname{atan2}(d_{DOF}\sin(\alpha/2),\; d_{cam} - d_{DOF}\cos(\alpha/2))
        """
        half = self.half_field
        reach = self.sensor.range_max
        return math.atan2(reach * math.sin(half), self.view_distance - reach * math.cos(half))

    def in_cone(self, bearing: ArrayLike, distance: ArrayLike) -> BoolArray:
        """Whether a point at `bearing` and range `distance` lies inside the camera's cone."""
        return self.sensor.in_field(bearing) & (np.asarray(distance) <= self.sensor.range_max)


class BeamScene(Scene):
    """A scene whose camera sees what its beams meet, wherever it stands."""

    beams = True


AROUND = 1.25
"""Least circle around an object that is being found, in its greatest radii, unless the sensor
demands a closer one.
"""


@dataclass(frozen=True)
class EstimatedScene:
    """Where an object of unknown place and size is thought to be, and the circle from which to look
    at it.

    The centre is in the object frame, metres. The arc, counter-clockwise, is the part of the view
    circle on which views are known to be safe; if it is empty (its ends are equal), that is the one
    view there. With a `turn` it is where the camera stands.
    """

    x: float
    y: float
    radius_min: float  #: least radius about the centre, metres.
    radius_max: float  #: greatest radius about the centre, metres.
    view_distance: float  #: radius of the view circle, metres.
    arc_start: float = 0.0  #: radians, as arc_end.
    arc_end: float = 2.0 * math.pi
    views: int = 0  #: number of scans that have hit the object; 0 on the approach.
    #: of the one view of an approach, against the direction to the given point, radians.
    turn: float = 0.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SettingError: one is not finite or no length of any scene, or the object's bound is not
                inside of the view circle.
        """
        numbers = astuple(self)
        finite = all(abs(number) < 10.0 * _MOST for number in numbers)
        inside = _LEAST < self.radius_min < self.radius_max < self.view_distance
        if not finite or not inside or self.views < 0:
            raise SettingError(f"no scene is found with the numbers {numbers}")

    @property
    def summary(self) -> str:
        """What was found, for a log."""
        return (
            f"the object is around x {self.x:.4g} m, y {self.y:.4g} m, radius {self.radius_min:.3g}"
            f" to {self.radius_max:.3g} m; views from {self.view_distance:.4g} m"
        )

    def same_as(self, other: EstimatedScene) -> bool:
        """Whether centre, bounds and view circle are the same: all on which a mapping depends."""
        mine, its = ((s.x, s.y, s.radius_min, s.radius_max, s.view_distance) for s in (self, other))
        return mine == its


SENSOR_NAMES = ("field_of_view", "range_min", "range_max")
"""What the header of a scan says of the sensor."""


def centre_of(estimated: EstimatedScene | None) -> Point:
    """Centre about which all is seen, metres."""
    return (0.0, 0.0) if estimated is None else (estimated.x, estimated.y)


# The bounds of a length, rounded to six digits as the message names them, may be given.
_SLACK = 1e-5
# Lengths that are 0 or in proportion to the object: factors of the mean radius, or of the span of
# the radius. Ranges have single precision, so none is measured to less than 6e-8 of itself.
_PROPORTIONS = {
    "band_tolerance": (0.0, 0.5, "mean radius"),
    "pixel_size": (0.0, 0.2, "mean radius"),
    "noise_std": (1e-7, 0.5, "mean radius"),
    "radius_margin": (0.0, 1.0, "mean radius"),
    "completeness_tau": (1e-4, 1.0, "mean radius"),
    "edge_length": (0.0, 1.0, "mean radius"),
    "look_every": (1e-3, math.inf, "mean radius"),
    "kernel_std": (0.05, 1.0, "span of the radius"),
    "prior_kernel_stds": (1e-4, 1e3, "span of the radius"),
    "prior_mean_std": (1e-4, 1e3, "span of the radius"),
}


def check_proportions(scene: Scene, *settings: object) -> None:
    """Refuse lengths out of proportion to the bounds of the radius: most likely another unit, or a
    forgotten default.

    Raises:
        SettingError: names the first one, and what is allowed.
    """
    low, high = scene.radius_min, scene.radius_max
    lengths = {"mean radius": 0.5 * (low + high), "span of the radius": high - low}
    for holder in (scene, *settings):
        for name, _, meta in settings_of(type(holder)):
            if name not in _PROPORTIONS:
                continue
            least, most, of = _PROPORTIONS[name]
            for value in np.atleast_1d(getattr(holder, name)):
                ratio = value / lengths[of]
                if value and not least * (1.0 - _SLACK) <= ratio <= most * (1.0 + _SLACK):
                    follows = f"; not given, it follows from {meta.scale}" if meta.scale else ""
                    raise SettingError(
                        f"{name}: {value:g} m is out of proportion to radius_min {low:g} m and"
                        f" radius_max {high:g} m; must be {least * lengths[of]:g} to"
                        f" {most * lengths[of]:g} m, {least:g} to {most:g} of the {of}{follows}"
                    )
