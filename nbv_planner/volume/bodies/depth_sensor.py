"""A depth camera in space: its beams, what it may see, and what it measures of a mesh."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.settings import Settings, setting
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.world.scan import FreeRays, RangeNoise
from nbv_planner.world.scene import BeamScene

# A beam is free up to so many standard deviations before its hit.
_SURELY = 3.0
# Beams at the border of the field are in it, whatever rounding says.
_ROUNDING = 1e-9
# Beams of a scan at most: all of them are in memory at once, in several arrays.
_MOST_BEAMS = 1_000_000
# Cosine of incidence below which the noise grows no further.
LEAST_COSINE = 0.2


@dataclass(frozen=True)
class DepthSensor(Settings):
    """A pinhole camera; in its frame x is the line of sight, y left and z up.

    Its bearings, as those of any :class:`~nbv_planner.world.scan.SensorModel`, are those of the
    middle row.

    Raises:
        SettingError: a value is out of range, or there are more than 1 000 000 beams.
    """

    columns: int = setting(64, "Beams of a row.", ge=2, le=4096)
    rows: int = setting(48, "Beams of a column.", ge=2, le=4096)
    horizontal_field: float = setting(
        math.radians(60.0), "Angle between the outer columns.", unit="rad", gt=1e-3, lt=3.0
    )
    range_min: float = setting(0.05, "Least depth that is measured.", unit="m", ge=0.0)
    range_max: float = setting(10.0, "Greatest range that is measured.", unit="m", gt=0.0)

    misses_are_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns * self.rows > _MOST_BEAMS:
            raise SettingError(
                f"columns, rows: {self.columns} x {self.rows} beams, must be <= {_MOST_BEAMS}:"
                " larger images are thinned to them"
            )

    @property
    def bearing_min(self) -> float:
        """Least bearing of the field of view, radians."""
        return -0.5 * self.horizontal_field

    @property
    def bearing_max(self) -> float:
        """Greatest bearing of the field of view, radians."""
        return 0.5 * self.horizontal_field

    def in_field(self, bearing: ArrayLike) -> BoolArray:
        """Whether each bearing lies between the two."""
        return np.asarray(np.abs(np.asarray(bearing)) <= self.bearing_max)

    def range_std(
        self, noise: RangeNoise, distance: FloatArray, incidence: FloatArray
    ) -> FloatArray:
        """Standard deviation of ranges, metres, which grows with the inverse of the cosine of the
        incidence.
        """
        return noise.std(distance) / np.maximum(np.cos(incidence), LEAST_COSINE)

    @cached_property
    def half_tangents(self) -> FloatArray:
        """How far left and up the outer beams go for a metre ahead, shape (2,)."""
        wide = math.tan(0.5 * self.horizontal_field)
        return np.array([wide, wide * (self.rows - 1) / (self.columns - 1)])

    @cached_property
    def directions(self) -> FloatArray:
        """Unit vectors of the beams, rows from above, columns from the left, shape (rows columns,
        3).
        """
        return self._grid(self.columns, self.rows)

    def beams(self, step: float) -> FloatArray:
        """Unit vectors that fill the field, `step` (radians) apart at most, shape (B, 3)."""
        columns, rows = (max(2, math.ceil(2.0 * half / step) + 1) for half in self.half_tangents)
        return self._grid(columns, rows)

    def _grid(self, columns: int, rows: int) -> FloatArray:
        wide, high = self.half_tangents
        up, left = np.meshgrid(
            np.linspace(high, -high, rows), np.linspace(wide, -wide, columns), indexing="ij"
        )
        beams = np.stack([np.ones_like(up), left, up], axis=-1).reshape(-1, 3)
        return np.asarray(beams / np.linalg.norm(beams, axis=1)[:, None])

    def sees(self, local: FloatArray) -> BoolArray:
        """Whether points in the frame of the camera, shape (n, 3), metres, lie in its field and
        range.
        """
        ahead = local[:, :1]
        most = (1.0 + _ROUNDING) * ahead * self.half_tangents
        inside = (np.abs(local[:, 1:]) <= most).all(axis=1)
        return np.asarray(inside & (np.linalg.norm(local, axis=1) <= self.range_max))


@dataclass(frozen=True)
class DepthScene(BeamScene):
    """A scene in space, at which a depth camera looks."""

    depth: DepthSensor = field(default_factory=DepthSensor)  #: the camera.

    @cached_property
    def sensor(self) -> DepthSensor:
        """The camera."""
        return self.depth


@dataclass(frozen=True, eq=False)
class DepthScan:
    """Ranges along beams: inf for no return up to the range of the sensor, NaN for nothing
    known.
    """

    sensor: DepthSensor
    ranges: FloatArray  #: shape (B,), metres.
    #: unit vectors of the beams in the frame of the camera, shape (B, 3); None: the sensor's.
    beams: FloatArray | None = None

    @property
    def directions(self) -> FloatArray:
        """Unit vectors of the beams in the frame of the camera, shape (B, 3)."""
        return self.sensor.directions if self.beams is None else self.beams


@dataclass(frozen=True)
class SimulatedDepthCamera:
    """Takes scans of a mesh."""

    mesh: Mesh
    sensor: DepthSensor
    #: of a range at right incidence; it grows with the inverse of the cosine.
    noise: RangeNoise
    #: probability that a beam that meets the mesh at right incidence does not return; it grows to 1
    #: with the incidence.
    lost: float = 0.0

    def scan(
        self, position: FloatArray, rotation: FloatArray, rng: np.random.Generator
    ) -> DepthScan:
        """Look from a `position`, shape (3,), with the axes that are columns of `rotation`, (3,
        3).
        """
        beams = self.sensor.directions @ rotation.T
        ranges, face = cast(self.mesh, position, beams)
        met = np.flatnonzero(ranges <= self.sensor.range_max)
        ranges[ranges > self.sensor.range_max] = np.inf
        cosine = np.abs((beams[met] * self.mesh.normals[face[met]]).sum(axis=1))
        std = self.sensor.range_std(self.noise, ranges[met], np.arccos(np.minimum(cosine, 1.0)))
        chance, noise = rng.random(len(beams)), rng.standard_normal(len(beams))
        ranges[met] += std * noise[met]
        gone = chance[met] > (1.0 - self.lost) * np.minimum(cosine / LEAST_COSINE, 1.0)
        ranges[met[gone & (self.lost > 0.0)]] = np.nan
        ranges[ranges < self.sensor.range_min] = np.nan
        return DepthScan(self.sensor, ranges)


def seen_in(
    scan: DepthScan, position: FloatArray, rotation: FloatArray, noise: RangeNoise, view: int
) -> tuple[Hits, FreeRays]:
    """Hits of a `scan`, with the deviation of the `noise`, and its free rays, those of the hits
    among them.

    The camera stands at `position`, shape (3,), metres; its axes are the columns of `rotation`, (3,
    3). A beam without a return is free up to the greatest range; nothing is known of one that is
    NaN, or nearer than the least range.
    """
    sensor, ranges = scan.sensor, scan.ranges
    known = ~np.isnan(ranges) & ~(ranges < sensor.range_min)
    hit = known & (ranges <= sensor.range_max)
    beams = scan.directions @ rotation.T
    sigma = noise.std(ranges[hit])
    hits = Hits(
        position + ranges[hit, None] * beams[hit],
        sigma,
        np.tile(position, (len(sigma), 1)),
        np.full(len(sigma), view, dtype=np.intp),
    )
    free = np.full(len(ranges), sensor.range_max)
    free[hit] = np.maximum(ranges[hit] - _SURELY * sigma, 0.0)
    return hits, FreeRays(position, beams[known], free[known], hit[known])
