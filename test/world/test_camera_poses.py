"""A camera on a carrier, at any pose: what it measures lies on the surface."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import polar
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

WIDE = Scene(field_of_view=2.0, range_max=30.0)
EXACT = SensorSettings(num_beams=61, noise_std=0.0)
ASSUMED = MeasurementSettings(noise_std=0.01)
OBJECTS = ("polygon:star", "square:width=8", "ellipse:a=7,b=3", "flower:frequency=3,amplitude=2")

SHAPES = {name: parse_object(name, WIDE) for name in OBJECTS}
CAMERAS = {name: SimulatedCamera(shape, WIDE, EXACT) for name, shape in SHAPES.items()}

poses = st.builds(
    CameraPose,
    st.floats(-20, 20),
    st.floats(-20, 20),
    st.floats(-math.pi, math.pi),
    height=st.floats(-2, 2),
)
mounts = st.builds(
    PoseSettings,
    mount_x=st.floats(-2, 2),
    mount_y=st.floats(-2, 2),
    mount_yaw=st.floats(-math.pi, math.pi),
)
outside = st.builds(
    lambda distance, place, heading: CameraPose(
        distance * math.cos(place), distance * math.sin(place), place + math.pi + heading
    ),
    st.floats(8.5, 20.0),
    st.floats(0.0, 2 * math.pi),
    st.floats(-1.0, 1.0),
)


def same(first: CameraPose, second: CameraPose) -> bool:
    turn = abs(math.remainder(first.yaw - second.yaw, 2 * math.pi))
    away = math.dist((first.x, first.y, first.height), (second.x, second.y, second.height))
    return away < 1e-9 and turn < 1e-9


@given(poses, mounts)
def test_camera_and_carrier_give_each_other(carrier, mount):
    assert same(mount.carrier(mount.camera(carrier)), carrier)
    assert same(mount.camera(mount.carrier(carrier)), carrier)
    assert same(carrier.then(carrier.inverse()), CameraPose(0.0, 0.0, 0.0))


@given(poses, mounts, st.floats(-10, 10), st.floats(-10, 10))
def test_a_point_is_where_it_is_seen_from_the_carrier_as_from_the_camera(carrier, mount, x, y):
    bx, by = carrier.to_camera(x, y)
    expected = mount.mount.to_camera(bx, by)
    assert np.allclose(mount.camera(carrier).to_camera(x, y), expected, atol=1e-9)


@given(poses)
def test_without_a_mount_poses_stay_as_they_are_bit_for_bit(pose):
    plain = PoseSettings()
    assert plain.camera(pose) == pose
    assert plain.carrier(pose) == pose


def test_a_heading_out_of_range_is_refused():
    with pytest.raises(SettingError, match="mount_yaw"):
        PoseSettings(mount_yaw=4.0)


@settings(max_examples=60)
@given(st.sampled_from(OBJECTS), outside, mounts)
def test_returns_of_a_camera_on_a_carrier_lie_on_the_surface(name, camera, mount):
    """Cast from the true pose, mapped from the pose of the carrier: off the circle, and not towards
    the centre.
    """
    carrier = mount.carrier(camera)
    scan = CAMERAS[name].scan(camera, 0)
    found = scan_to_hits(scan, mount.camera(carrier), WIDE, ASSUMED)
    assert len(found.hits) == np.isfinite(scan.ranges).sum()
    data = polar(found.hits)
    angle, radius = data.angle, data.radius
    # A steep contour turns the error of a range (single precision) and of a chord into more than
    # itself.
    near = np.stack([SHAPES[name].radius(angle + step) for step in np.linspace(-1e-4, 1e-4, 9)])
    assert (radius >= near.min(axis=0) - 1e-4).all()
    assert (radius <= near.max(axis=0) + 1e-4).all()


@settings(max_examples=25)
@given(st.sampled_from(OBJECTS), outside)
def test_the_band_holds_the_surface_where_a_camera_off_the_circle_looked(name, camera):
    scan = CAMERAS[name].scan(camera, 0)
    new = scan_to_hits(scan, camera, WIDE, ASSUMED).hits
    mapper = SurfaceMapper(KernelSettings().build(), MapperSettings(grid_size=720))
    mapper.add(polar(new))
    belief = mapper.belief()
    seen = belief.hits > 0
    truth = SHAPES[name].radius(belief.angle)
    # Half a cell off the measurement a corner can leave the band; most of what was seen lies
    # inside.
    inside = (truth >= belief.lower - 0.05) & (truth <= belief.upper + 0.05)
    assert not seen.any() or inside[seen].mean() > 0.9


def test_a_mount_that_is_forgotten_shows():
    """So that the property above says something: the same scan, mapped from the carrier's own pose,
    is wrong.
    """
    mount = PoseSettings(mount_x=0.5, mount_yaw=0.3)
    camera = CameraPose.from_polar(0.4, 12.0)
    scan = CAMERAS["square:width=8"].scan(camera, 0)
    found = polar(scan_to_hits(scan, mount.carrier(camera), WIDE, ASSUMED).hits)
    off = np.abs(found.radius - SHAPES["square:width=8"].radius(found.angle))
    assert np.median(off) > 0.5
