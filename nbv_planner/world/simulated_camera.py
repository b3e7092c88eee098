"""The simulated 2D depth camera: noisy beams on a true object in a room, and how it moves."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    FloatArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
    wrap_angle,
)
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.zones import GroundSettings, along, path_length
from nbv_planner.world.objects import PolarObject
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.objects.true_shapes import angles_around
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.scene import Scene

# A chord of the sampled contour then departs from a circle of radius 10 m by less than 3e-6 m.
_CONTOUR_STEPS = 4096
# Lines across a beam that has a width.
_LINES = 9
# Angle between beams from whose ranges the incidence follows on objects without a radius, radians.
_ASIDE = 1e-6
# Poses of which the exact ranges are kept, 2 kB each: many episodes look from the same ones.
_KEPT = 1024


@dataclass(frozen=True)
class SensorSettings(Settings):
    """Beams and noise of the simulated depth camera."""

    num_beams: int = setting(
        121,
        "Number of beams over the field of view, both edges included: as your sensor has them.",
        ge=2,
        le=100_000,
    )
    noise_std: float = setting(
        0.2,
        "Standard deviation of a range, assumed by surface_mapper, added by depth_camera: give"
        " that of your sensor, pose errors included.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    noise_std_per_metre: float = setting(
        0.0,
        "Increase of that standard deviation per metre of range: give it for stereo and depth"
        " cameras.",
        unit="m/m",
        ge=0.0,
    )
    dropout_probability: float = setting(
        0.0,
        "Probability that a beam gives no valid range: raise it to simulate dark or shiny"
        " surfaces.",
        ge=0.0,
        le=1.0,
    )
    outlier_probability: float = setting(
        0.0,
        "Probability that a return is replaced by a random range: raise it to simulate a"
        " disturbed sensor.",
        ge=0.0,
        le=1.0,
    )
    beam_width: float = setting(
        0.0,
        "Opening angle of a beam, whose range is that of the nearest surface in it: for a sonar;"
        " 0: a thin beam.",
        unit="rad",
        ge=0.0,
        le=0.5,
    )
    pose_bias_x: float = python_setting(
        0.0,
        "Distance of the true sensor ahead of its reported pose: to try a badly measured mount.",
        unit="m",
    )
    pose_bias_y: float = python_setting(0.0, "The same to the left.", unit="m")
    pose_bias_yaw: float = python_setting(
        0.0,
        "Angle of the true heading to the left of the reported one: to try a bad localisation.",
        unit="rad",
        ge=-math.pi,
        le=math.pi,
    )
    seed: int = setting(
        0, "Seed of the sensor noise: change it to see how much is chance.", ge=0, le=2**53
    )

    @property
    def noise(self) -> RangeNoise:
        """Noise of the ranges."""
        return RangeNoise(self.noise_std, self.noise_std_per_metre)


@dataclass(frozen=True)
class MotionSettings(Settings):
    """How the simulated camera moves and when it scans.

    It starts between two of the default candidate views: were it at the first goal already, a scan
    taken just before the goal reaches the camera could sometimes count for it, and the runs would
    differ.
    """

    initial_view_angle: float = setting(
        0.0314, "View angle at which the camera starts: to begin elsewhere.", unit="rad"
    )
    angular_speed: float = setting(
        0.0,
        "Speed of the simulated camera along the view circle: give it to watch the camera move;"
        " 0: it arrives at once.",
        unit="rad/s",
        ge=0.0,
    )
    drive_speed: float = setting(
        0.0,
        "Speed of the simulated camera along straight lines and arcs around object and obstacles:"
        " to try a map; 0: angular_speed is used.",
        unit="m/s",
        ge=0.0,
    )
    scan_rate: float = setting(
        10.0, "Scans per second: as your sensor sends them.", unit="Hz", gt=0.0, le=1000.0
    )

    def start(self, view_distance: float) -> CameraPose:
        """Where the camera starts on the view circle of this radius, metres."""
        return CameraPose.from_polar(self.initial_view_angle, view_distance)


def sampled_contour(shape: PolarObject) -> Contour:
    """Polyline through the object's corners and closely spaced angles."""
    angle = angles_around(shape, _CONTOUR_STEPS)
    return Contour(*polar_to_cartesian(angle, shape.radius(angle)))


class SimulatedCamera:
    """Casts beams on a true object; the same seed, view and scan number give the same scan bit for
    bit.

    The `bearings` of the beams rise, shape (B,), radians.
    """

    def __init__(
        self,
        shape: Any,
        scene: Scene,
        settings: SensorSettings,
        world: WorldSettings | None = None,
    ) -> None:
        """Sample the contour of an object with a radius once; one with `contours` has these, closed
        ones.
        """
        self._world = world or WorldSettings()
        self._is_star = not hasattr(shape, "contours")
        contours = [sampled_contour(shape)] if self._is_star else shape.contours
        self._contours = [*contours, *self._world.others()]
        x, y = contours[0].x, contours[0].y
        self._vertex = wrap_angle(np.arctan2(y, x))
        self._normal = np.arctan2(x - np.roll(x, -1), np.roll(y, -1) - y)
        self._sensor = scene.sensor
        self._settings = settings
        # In single precision, as a LaserScan carries them: the same scan with and without ROS.
        first, last = scene.sensor.bearing_min, scene.sensor.bearing_max
        self._angle_min = float(np.float32(first))
        self._increment = float(np.float32((last - first) / (settings.num_beams - 1)))
        self._known: dict[CameraPose, tuple[FloatArray, FloatArray]] = {}
        beams = np.arange(settings.num_beams)
        self.bearings: FloatArray = self._angle_min + self._increment * beams

    def scan(self, pose: CameraPose, view_number: int, scan_number: int = 0) -> Scan:
        """Take a scan at the reported `pose`; the number of the goal (`view_number`) and of the
        scan give the noise.
        """
        exact, std = self._met(pose)
        rng = np.random.default_rng([self._settings.seed, view_number, scan_number])
        ranges = self._with_limits(self._with_noise(self._with_limits(exact), std, rng))
        # NaN is invalid (REP 117), no miss: that would mean that the beam met no surface.
        dropped = rng.random(len(ranges)) < self._settings.dropout_probability
        ranges = np.where(dropped, np.nan, ranges)
        limits = np.array([self._sensor.range_min, self._sensor.range_max], dtype=np.float32)
        return Scan(
            self._angle_min, self._increment, ranges.astype(np.float32), *map(float, limits)
        )

    def with_seed(self, seed: int) -> SimulatedCamera:
        """The same camera with other noise; both share what they know of the object."""
        twin = copy(self)
        twin._settings = replace(self._settings, seed=seed)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be cast again."""
        return {**vars(self), "_known": {}}

    def _met(self, pose: CameraPose) -> tuple[FloatArray, FloatArray]:
        """As :meth:`_cast`; the newest poses are kept."""
        if pose not in self._known:
            if len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[pose] = self._cast(pose)
        return self._known[pose]

    def _cast(self, pose: CameraPose) -> tuple[FloatArray, FloatArray]:
        """Exact range of each beam and the standard deviation of its noise, shape (B,) each,
        metres.
        """
        exact, true = self.exact_ranges(pose), self._true(pose)
        met = np.isfinite(exact)
        distance = np.where(met, exact, 0.0)
        angle = cartesian_to_polar(*true.to_world(self.bearings, distance))[0]
        normal = self._normal[np.searchsorted(self._vertex, angle, side="right") - 1]
        incidence = np.abs(angle_difference(true.yaw + self.bearings + math.pi, normal))
        if not self._is_star:
            aside = np.where(met, self.exact_ranges(pose, _ASIDE), 0.0)
            incidence = np.arctan2(np.abs(aside - distance), _ASIDE * distance)
        incidence = np.where(met, incidence, 0.0)
        return exact, self._sensor.range_std(self._settings.noise, distance, incidence)

    def exact_ranges(self, pose: CameraPose, turned: float = 0.0) -> FloatArray:
        """Range of each beam without noise and limits, `inf` where it meets nothing, shape (B,),
        metres; of beams `turned` to the left, radians.
        """
        true = self._true(pose)
        width = self._settings.beam_width
        lines = width * np.linspace(-0.5, 0.5, _LINES) if width else (0.0,)
        cast = [
            cast_beams(contour, true, self.bearings + turned + aside)
            for contour in self._contours
            for aside in lines
        ]
        return np.asarray(np.min(cast, axis=0))

    def normals(self, rng: np.random.Generator) -> FloatArray:
        """Draw the noise of each beam in standard deviations, shape (B,)."""
        return rng.standard_normal(len(self.bearings))

    def collides(self, path: FloatArray, radius: float) -> bool:
        """Whether a robot of this `radius` that moves along a `path`, shape (k, 2), hits anything;
        metres.

        It is judged by lines along its middle and both its sides.
        """
        x, y = self._world.placed
        for start, end in pairwise(path - (x, y)):
            heading = math.atan2(*(end - start)[::-1])
            length = math.dist(start, end)
            for aside in {-radius, 0.0, radius}:
                middle = CameraPose(float(start[0]), float(start[1]), heading)
                pose = middle.then(CameraPose(0.0, aside, 0.0))
                ahead = [cast_beams(contour, pose, np.zeros(1))[0] for contour in self._contours]
                if min(ahead) <= length + radius:
                    return True
        return False

    def _true(self, pose: CameraPose) -> CameraPose:
        """True pose of the sensor, seen from the object, when the camera reports `pose`."""
        s = self._settings
        pose = pose.relative_to(*self._world.placed)
        if not (s.pose_bias_x or s.pose_bias_y or s.pose_bias_yaw):
            return pose
        cos, sin = math.cos(pose.yaw), math.sin(pose.yaw)
        return CameraPose(
            pose.x + cos * s.pose_bias_x - sin * s.pose_bias_y,
            pose.y + sin * s.pose_bias_x + cos * s.pose_bias_y,
            pose.yaw + s.pose_bias_yaw,
        )

    def _with_noise(
        self, ranges: FloatArray, std: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Gaussian noise and outliers on the returns; a fixed number of draws whatever the ranges
        are.
        """
        s = self._settings
        noise = self.normals(rng)
        outlier = rng.random(len(ranges)) < s.outlier_probability
        uniform = rng.uniform(self._sensor.range_min, self._sensor.range_max, len(ranges))
        finite = np.isfinite(ranges)
        noisy = np.where(finite, ranges, 0.0) + std * noise
        return np.where(finite, np.where(outlier, uniform, noisy), ranges)

    def _with_limits(self, ranges: FloatArray) -> FloatArray:
        """REP 117: `-inf` below the least range, `+inf` above the greatest."""
        ranges = np.where(ranges < self._sensor.range_min, -np.inf, ranges)
        return np.where(ranges > self._sensor.range_max, np.inf, ranges)


class Drive:
    """Motion of a simulated robot from view to view: along paths on the ground, around the true
    object.

    Where no path leads to a goal, it moves straight there.
    """

    def __init__(
        self, shape: Any, settings: GroundSettings, world: WorldSettings, reach: float
    ) -> None:
        """Take the ground of the settings, for goals up to `reach` from the object, metres."""
        self.robot_radius = settings.robot_radius  #: metres.
        angle = np.arange(_CONTOUR_STEPS) * (TWO_PI / _CONTOUR_STEPS)
        self._placed = world.placed
        ground = ground_of(settings, reach).seen_from(*world.placed)
        reach_at = shape.radius if hasattr(shape, "radius") else shape.farthest
        self._ground = ground.with_object(angle, reach_at(angle))

    def set_out(self, start: CameraPose, goal: CameraPose) -> FloatArray:
        """Start to move to a goal; returns the path, shape (k, 2), metres."""
        ends = np.array([[view.x, view.y] for view in (start, goal)])
        found = self._ground.path(*(ends - self._placed)) + self._placed
        self.path = found if len(found) else ends
        self._start, self._goal, self._length = start, goal, path_length(self.path)
        return self.path

    def view(self, distance: float) -> CameraPose:
        """Where the camera is after this `distance`, metres; it turns evenly, against the direction
        to the centre.
        """
        if distance >= self._length:
            return self._goal
        x, y = along(self.path, distance)
        turn = self._start.turn + distance / self._length * (self._goal.turn - self._start.turn)
        return CameraPose.from_polar(float(wrap_angle(math.atan2(y, x))), math.hypot(x, y), turn)


class CameraMotion:
    """Where a simulated camera is, on its motion from view to goal; times are in nanoseconds."""

    def __init__(self, settings: MotionSettings, view_distance: float, drive: Drive | None) -> None:
        """Take a robot that drives, or None: the camera then moves around the object."""
        self.settings, self.drive = settings, drive
        self._view_distance = view_distance

    def place(self) -> None:
        """Place the camera at the initial view, which is its goal, too."""
        angle = float(wrap_angle(self.settings.initial_view_angle))
        self.view = self.goal = CameraPose.from_polar(angle, self._view_distance)

    def set_out(self, now: int) -> FloatArray | None:
        """Begin the motion from view to goal; returns the path of a robot that drives, shape
        (k, 2), metres.
        """
        self.start = self.view
        self.start_time = now
        self._driven = 0.0
        self.resume(now)
        return None if self.drive is None else self.drive.set_out(self.start, self.goal)

    def resume(self, now: int) -> None:
        """Move on from `now`: the time before it does not count."""
        self._moved_at = now

    def advance(self, now: int) -> None:
        """Move along the path, or around the object on the shorter side, while distance and turn
        change in proportion to the angle.
        """
        nanoseconds = max(now - self._moved_at, 0)
        self._moved_at = now
        if self.drive is not None:
            self._driven += self.settings.drive_speed * nanoseconds * 1e-9
            self.view = self.drive.view(self._driven)
            return
        view, goal = self.view, self.goal
        rest = float(angle_difference(goal.view_angle, view.view_angle))
        reach = self.settings.angular_speed * nanoseconds * 1e-9
        if self.settings.angular_speed == 0.0 or abs(rest) <= reach:
            self.view = goal
            return
        part = reach / abs(rest)
        self.view = CameraPose.from_polar(
            float(wrap_angle(view.view_angle + math.copysign(reach, rest))),
            view.distance + part * (goal.distance - view.distance),
            view.turn + part * (goal.turn - view.turn),
        )
