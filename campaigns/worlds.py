"""True worlds that differ from the declared one: outlines of any kind, and lies of the sensor, the
pose and the scene.

A world answers the goals of an episode with a scan and the reported pose. It keeps what each beam
truly met, from which the outcome is judged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.geometry import BoolArray, FloatArray, polar_to_cartesian
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

HERE = CameraPose(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Lie:
    """One way in which the true world departs from the declared one; these defaults change
    nothing.
    """

    measures: ClassVar[bool] = True  #: whether scans that it changes still measure the object.
    #: number of the first view, from 1, at which it is so.
    since: int = dataclasses.field(default=1, kw_only=True)

    def active(self, view: int) -> bool:
        """Whether the view is affected."""
        return view >= self.since

    def seeded(self, seed: int) -> Lie:
        """The lie in a run with this seed; those of chance differ."""
        return self

    def scene(self, scene: Scene) -> Scene:
        """Cone and ranges of the true sensor, which its scans' headers state."""
        return scene

    def sensor(self, sensor: SensorSettings) -> SensorSettings:
        """Noise of the true sensor."""
        return sensor

    def placed(self, view: int) -> CameraPose:
        """Where the object truly is in its declared frame."""
        return HERE

    def pose(self, pose: CameraPose, view: int, before: CameraPose | None) -> CameraPose:
        """Where the sensor truly is when `pose` is reported, and the last goal was the one
        `before`, if any.
        """
        return pose

    def reported(self, pose: CameraPose) -> CameraPose:
        """Pose as it is read from the message that reports it."""
        return pose

    def normals(self, normals: FloatArray) -> FloatArray:
        """Noise of the beams in standard deviations, from independent normals, shape (B,) each."""
        return normals

    def planar(self, bearings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bearings of the beams in the plane, and the length of a beam per metre in the plane, of
        an upright object.
        """
        return bearings, np.ones(len(bearings))

    @property
    def size(self) -> float:
        """Size of what the sensor sees of the object, over that of the object."""
        return 1.0

    def frame(self, view: int) -> str:
        """Frame in the header of the scan."""
        return "camera"

    def met(self, pose: CameraPose, bearings: FloatArray, ranges: FloatArray) -> FloatArray:
        """Range of each beam from `pose` in a world with something else than the object, given
        those to the object, shape (B,) each.
        """
        return ranges

    def received(self, scan: Scan, earlier: Sequence[Scan]) -> Scan:
        """What is received instead of the scan that the sensor would give, after the `earlier`
        received ones.
        """
        return scan


@dataclass(frozen=True)
class Visitor(Lie):
    """A round body that nobody declared stands at (x, y)."""

    x: float = 0.0  #: metres.
    y: float = 0.0  #: metres.
    radius: float = 0.5  #: metres.

    def met(self, pose: CameraPose, bearings: FloatArray, ranges: FloatArray) -> FloatArray:
        """The nearer of the two."""
        return np.minimum(ranges, cast_beams(_disc(self), pose, bearings))


@dataclass(frozen=True)
class Pane(Visitor):
    """The outline is of glass at some polar angles: every second beam goes through it, to the body
    behind it or out of sight.
    """

    first: float = 0.0  #: radians.
    last: float = 0.0  #: radians, above `first`.

    def met(self, pose: CameraPose, bearings: FloatArray, ranges: FloatArray) -> FloatArray:
        """Through the glass, or not."""
        there = np.where(np.isfinite(ranges), ranges, 0.0)
        x, y = pose.to_world(bearings, there)
        beyond = (np.arctan2(y, x) - self.first) % (2.0 * math.pi) < self.last - self.first
        through = np.isfinite(ranges) & beyond & (np.arange(len(ranges)) % 2 == 0)
        behind = cast_beams(_disc(self), pose, bearings)
        return np.where(through, np.where(behind > ranges, behind, np.inf), ranges)


def _disc(body: Visitor) -> Contour:
    x, y = np.array(_arc(body.x, body.y, body.radius, 0.0, 2.0 * math.pi)[:-1]).T
    return Contour(x, y)


@dataclass(frozen=True)
class OtherSensor(Lie):
    """The sensor has other properties than declared; None leaves them."""

    field_of_view: float | None = None
    range_max: float | None = None
    noise_factor: float = 1.0
    dropout_probability: float = 0.0
    outlier_probability: float = 0.0

    def scene(self, scene: Scene) -> Scene:
        """Narrower cone, shorter range."""
        changed = {"field_of_view": self.field_of_view, "range_max": self.range_max}
        return dataclasses.replace(
            scene, **{name: value for name, value in changed.items() if value is not None}
        )

    def sensor(self, sensor: SensorSettings) -> SensorSettings:
        """Other noise."""
        return dataclasses.replace(
            sensor,
            noise_std=sensor.noise_std * self.noise_factor,
            dropout_probability=self.dropout_probability,
            outlier_probability=self.outlier_probability,
        )


@dataclass(frozen=True)
class Reads(Lie):
    """Every beam of the sensor reads the same, whatever is there; infinity is no return."""

    measures = False
    range: float = math.inf

    def received(self, scan: Scan, earlier: Sequence[Scan]) -> Scan:
        """A constant."""
        return dataclasses.replace(
            scan, ranges=np.full(len(scan.ranges), self.range, dtype=np.float32)
        )


@dataclass(frozen=True)
class Frozen(Lie):
    """The sensor repeats its last scan for ever."""

    measures = False

    def received(self, scan: Scan, earlier: Sequence[Scan]) -> Scan:
        """The newest earlier scan."""
        return earlier[-1] if earlier else scan


@dataclass(frozen=True)
class Mirrored(Lie):
    """The ranges come in reverse order: the sensor is mounted upside down."""

    def received(self, scan: Scan, earlier: Sequence[Scan]) -> Scan:
        """Left and right exchanged."""
        return dataclasses.replace(scan, ranges=scan.ranges[::-1])


@dataclass(frozen=True)
class PoseError(Lie):
    """The sensor is truly off its reported pose: by a constant, and by a drift along a line in the
    object frame.
    """

    ahead: float = 0.0  #: along the line of sight, metres.
    left: float = 0.0  #: metres.
    yaw: float = 0.0  #: turned to the left, radians.
    drift: float = 0.0  #: more of it with each view, metres.
    direction: float = 0.0  #: of the drift in the object frame, radians.

    def pose(self, pose: CameraPose, view: int, before: CameraPose | None) -> CameraPose:
        """The error of this view."""
        far = self.drift * (view - self.since + 1)
        there = CameraPose(
            pose.x + far * math.cos(self.direction),
            pose.y + far * math.sin(self.direction),
            pose.yaw,
        )
        return there.then(CameraPose(self.ahead, self.left, self.yaw))


@dataclass(frozen=True)
class SecondSensor(Lie):
    """Every other scan is that of a second sensor elsewhere on the view circle, under the pose of
    the first.
    """

    away: float = 2.0  #: angle between the two about the centre, radians.
    other_frame: str = "camera"  #: frame in the header of its scans.

    def active(self, view: int) -> bool:
        """Every other view."""
        return view >= self.since and (view - self.since) % 2 == 0

    def pose(self, pose: CameraPose, view: int, before: CameraPose | None) -> CameraPose:
        """The other sensor's pose."""
        return CameraPose(0.0, 0.0, self.away).then(pose)

    def frame(self, view: int) -> str:
        """The other sensor's frame."""
        return self.other_frame


@dataclass(frozen=True)
class Moved(Lie):
    """The object is elsewhere than declared: in its frame from the start, or pushed while it is
    scanned.
    """

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def placed(self, view: int) -> CameraPose:
        """Where it is now."""
        return CameraPose(self.x, self.y, self.yaw)


@dataclass(frozen=True)
class OffPlane(Lie):
    """The sensor is above the plane in which the object is to be measured, or is rolled about its
    line of sight.

    Above the plane the object, whose sides are upright else, is smaller. The pose says both.
    """

    height: float = 0.0  #: above the plane, metres.
    section: float = 1.0  #: size of the object at that height over that in the plane.
    roll: float = 0.0  #: about the line of sight, radians.

    @property
    def size(self) -> float:
        """The section."""
        return self.section

    def reported(self, pose: CameraPose) -> CameraPose:
        """As the nodes read a message with this height and orientation.

        Raises:
            InputRejectedError: they would drop it.
        """
        cos, sin = math.cos(0.5 * self.roll), math.sin(0.5 * self.roll)
        ahead, aside = math.cos(0.5 * pose.yaw), math.sin(0.5 * pose.yaw)
        orientation = SimpleNamespace(x=ahead * sin, y=aside * sin, z=aside * cos, w=ahead * cos)
        position = SimpleNamespace(x=pose.x, y=pose.y, z=self.height)
        return pose_from_msg(
            SimpleNamespace(pose=SimpleNamespace(position=position, orientation=orientation))
        )

    def planar(self, bearings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Roll each beam out of the plane and drop its height."""
        ahead, left = np.cos(bearings), np.sin(bearings) * math.cos(self.roll)
        return np.arctan2(left, ahead), 1.0 / np.hypot(ahead, left)


class TrueCamera(SimulatedCamera):
    """A simulated camera whose beams may leave the plane, and whose noise may be correlated."""

    def __init__(
        self, contour: Contour, scene: Scene, sensor: SensorSettings, lies: Sequence[Lie]
    ) -> None:
        """Turn the beams once."""
        self._lies = lies
        #: those of what else there is in the present view.
        self.active: Sequence[Lie] = ()
        self._size = math.prod(lie.size for lie in lies)
        self._outline = Contour(self._size * contour.x, self._size * contour.y)
        super().__init__(self._outline, scene, sensor)
        self._planar, self._longer = self.bearings, np.ones(len(self.bearings))
        for lie in lies:
            self._planar, longer = lie.planar(self._planar)
            self._longer = self._longer * longer

    def exact_ranges(self, pose: CameraPose, turned: float = 0.0) -> FloatArray:
        """Range of each beam without noise, along the beam, `turned` to the left by radians."""
        bearings = self._planar + turned
        ranges = cast_beams(self._outline, pose, bearings)
        for lie in self.active:
            ranges = lie.met(pose, bearings, ranges)
        return ranges * self._longer

    def normals(self, rng: np.random.Generator) -> FloatArray:
        """Noise of each beam in standard deviations."""
        found = super().normals(rng)
        for lie in self._lies:
            found = lie.normals(found)
        return found

    def met(self, pose: CameraPose, chosen: BoolArray) -> FloatArray:
        """Points of the object, as large as in its plane, that the chosen beams meet, shape (k, 2),
        metres.
        """
        ranges = cast_beams(self._outline, pose, self._planar)
        chosen = chosen & np.isfinite(ranges)
        for lie in self.active:
            chosen &= lie.met(pose, self._planar, ranges) == ranges
        return np.stack(pose.to_world(self._planar[chosen], ranges[chosen]), axis=1) / self._size


@dataclass(frozen=True, eq=False)
class Look:
    """What came from the world in one view."""

    scan: Scan  #: the scan as received.
    pose: CameraPose  #: pose of the sensor as reported.
    frame: str  #: frame of the scan.
    affected: bool  #: whether a lie concerns this view.
    #: points of the object that its beams truly met, in the object's own frame, shape (k, 2),
    #: metres.
    met: FloatArray
    #: the same points as the pose and the scan show them without noise, in the declared frame,
    #: shape (n, 2).
    shown: FloatArray


class TrueWorld:
    """The true object and sensor."""

    def __init__(
        self, contour: Contour, scene: Scene, sensor: SensorSettings, lies: Sequence[Lie]
    ) -> None:
        """Set up the true sensor from the declared one."""
        self._lies = lies = [lie.seeded(sensor.seed) for lie in lies]
        for lie in lies:
            scene, sensor = lie.scene(scene), lie.sensor(sensor)
        self.contour = contour  #: outline of the object in its own frame.
        self.scene = scene  #: cone and ranges of the true sensor.
        self._camera = TrueCamera(contour, scene, sensor, lies)
        self.looks: list[Look] = []  #: what came from it so far.
        self._before: CameraPose | None = None

    def look(self, goal: CameraPose) -> Look:
        """Take the next scan at a goal.

        Raises:
            InputRejectedError: the nodes would drop the pose that is reported there.
        """
        view = len(self.looks) + 1
        active = [lie for lie in self._lies if lie.active(view)]
        self._camera.active = active
        at = self.sensor_at(goal, view, self._before)
        self._before = goal
        scan, frame, reported = self._camera.scan(at, view_number=view), "camera", goal
        came = np.isfinite(scan.ranges)
        met = self._camera.met(at, came & all(lie.measures for lie in active))
        exact = dataclasses.replace(
            scan, ranges=np.where(came, self._camera.exact_ranges(at), np.inf)
        )
        for lie in active:
            scan, exact = (
                lie.received(one, [look.scan for look in self.looks]) for one in (scan, exact)
            )
            frame, reported = lie.frame(view), lie.reported(reported)
        hit = np.isfinite(exact.ranges)
        shown = np.stack(reported.to_world(exact.bearings[hit], exact.ranges[hit]), axis=1)
        self.looks.append(Look(scan, reported, frame, bool(active), met, shown))
        return self.looks[-1]

    def sensor_at(
        self, goal: CameraPose, view: int, before: CameraPose | None = None
    ) -> CameraPose:
        """True pose of the sensor in the object's own frame in a view, with `goal` reported after
        `before`.
        """
        pose = goal
        for lie in self._lies:
            if lie.active(view):
                pose = lie.placed(view).inverse().then(lie.pose(pose, view, before))
        return pose

    def reachable(self, goals: Sequence[CameraPose]) -> FloatArray:
        """Points of the object that the sensor could meet from any of the goals, shape (k, 2),
        metres.
        """
        everything = np.ones(len(self._camera.bearings), dtype=bool)
        return np.concatenate([self._within(self.sensor_at(goal, 1), everything) for goal in goals])

    def _within(self, pose: CameraPose, chosen: BoolArray) -> FloatArray:
        ranges = self._camera.exact_ranges(pose)
        near = (ranges >= self.scene.range_min) & (ranges <= self.scene.range_max)
        return self._camera.met(pose, chosen & near)

    def outline_now(self) -> FloatArray:
        """Vertices of the outline in the declared frame after the newest view, shape (n, 2),
        metres.
        """
        view, place = max(len(self.looks), 1), HERE
        for lie in self._lies:
            if lie.active(view):
                place = place.then(lie.placed(view))
        x, y = self.contour.x, self.contour.y
        cos, sin = math.cos(place.yaw), math.sin(place.yaw)
        return np.stack([place.x + cos * x - sin * y, place.y + sin * x + cos * y], axis=1)


def polygon(vertices: Sequence[tuple[float, float]], turned: float = 0.0) -> Contour:
    """Closed outline through vertices, metres, turned about the origin by an angle, radians."""
    x, y = np.array(vertices, dtype=float).T
    cos, sin = math.cos(turned), math.sin(turned)
    return Contour(cos * x - sin * y, sin * x + cos * y)


def _arc(x: float, y: float, radius: float, first: float, last: float) -> list[tuple[float, float]]:
    """Points on a circle from one angle to the other, radians."""
    angle = np.linspace(first, last, 200)
    along, across = polar_to_cartesian(angle, np.full(len(angle), radius))
    return list(zip((x + along).tolist(), (y + across).tolist(), strict=True))


def crescent(
    outer: float, inner: float, apart: float, thickness: float, turned: float = 0.0
) -> Contour:
    """A disc without another one whose centre is `apart` from its own; the origin in the middle of
    the thick part.

    Args:
        outer: radius of the disc, metres.
        inner: radius of what is cut out, metres.
        apart: distance of the centres, metres.
        thickness: half of that at the thickest place, metres: outer + apart - inner is twice this.
        turned: angle of the opening, radians.
    """
    x = outer - thickness
    tip = math.acos((outer**2 + apart**2 - inner**2) / (2.0 * outer * apart))
    within = math.atan2(outer * math.sin(tip), outer * math.cos(tip) - apart)
    around = _arc(x, 0.0, outer, tip, 2.0 * math.pi - tip)
    back = _arc(x + apart, 0.0, inner, 2.0 * math.pi - within, within)
    return polygon(around + back, turned)


def letter_c(
    spine: float, arm: float, half_height: float, bar: float, turned: float = 0.0
) -> Contour:
    """A C about its spine of the half-width `spine`, whose two bars reach to `arm`, metres."""
    inside = half_height - bar
    return polygon(
        [
            (-spine, -half_height),
            (arm, -half_height),
            (arm, -inside),
            (spine, -inside),
            (spine, inside),
            (arm, inside),
            (arm, half_height),
            (-spine, half_height),
        ],
        turned,
    )


def letter_l(
    spine: float, arm: float, below: float, above: float, bar: float, turned: float = 0.0
) -> Contour:
    """An L about its spine of the half-width `spine`, whose foot reaches to `arm`, metres."""
    return polygon(
        [
            (-spine, -below),
            (arm, -below),
            (arm, bar - below),
            (spine, bar - below),
            (spine, above),
            (-spine, above),
        ],
        turned,
    )


def letter_t(
    stem: float, arm: float, below: float, top: float, bar: float, turned: float = 0.0
) -> Contour:
    """A T about its stem of the half-width `stem`, whose bar reaches to `arm` on both sides,
    metres.
    """
    under = top - bar
    return polygon(
        [
            (-stem, -below),
            (stem, -below),
            (stem, under),
            (arm, under),
            (arm, top),
            (-arm, top),
            (-arm, under),
            (-stem, under),
        ],
        turned,
    )


def mushroom(stem: float, cap: float, below: float, under: float, turned: float = 0.0) -> Contour:
    """A half disc of the radius `cap` upon a stem of the half-width `stem`, its underside at
    `under`, metres.
    """
    return polygon(
        [
            (-stem, under),
            (-stem, -below),
            (stem, -below),
            (stem, under),
            *_arc(0.0, under, cap, 0.0, math.pi),
        ],
        turned,
    )


SHAPES: dict[str, Callable[..., Contour]] = {
    "crescent": crescent,
    "c": letter_c,
    "l": letter_l,
    "t": letter_t,
    "mushroom": mushroom,
}
"""Outlines that are not star-shaped about the origin, by name."""
