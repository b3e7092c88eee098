"""What a robust mapper knows, as arrays and back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nbv_planner.errors import MeasurementError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.robust import RobustMapper
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
CAMERA = SimulatedCamera(
    parse_object("polygon:star", SCENE),
    SCENE,
    SensorSettings(num_beams=41, outlier_probability=0.1),
)


def mapper(window: int = 6000) -> RobustMapper:
    settings = RobustSettings(robust=True, window=window)
    return RobustMapper(KernelSettings().build(), MapperSettings(grid_size=100), settings)


def feed(target: RobustMapper, first: int, last: int) -> RobustMapper:
    for number in range(first, last):
        pose = CameraPose.from_polar(0.7 * number, SCENE.view_distance)
        data = scan_to_hits(CAMERA.scan(pose, number), pose, SCENE, MeasurementSettings())
        target.take(data.hits, [data.free])
    return target


def assert_same(one: RobustMapper, other: RobustMapper) -> None:
    beliefs = [dataclasses.asdict(target.belief()) for target in (one, other)]
    evidence = [belief.pop("evidence") for belief in beliefs]
    for first, second in (beliefs, evidence):
        for name in first:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    np.testing.assert_array_equal(one.doubted, other.doubted)
    assert (one.count, one.round, len(one.beams)) == (other.count, other.round, len(other.beams))


@pytest.mark.parametrize("views", [0, 1, 5])
@pytest.mark.parametrize("window", [100, 6000])
def test_a_restored_mapper_believes_the_same_and_goes_on_the_same_bit_for_bit(window, views):
    one, other = feed(mapper(window), 0, views), mapper(window)
    other.restore(one.state())
    assert_same(one, other)
    for target in (one, other):
        feed(target, views, views + 2)
    assert_same(one, other)


DAMAGE = {
    "beams missing": lambda state: state.pop("beams"),
    "beams not finite": lambda state: state["beams"].__setitem__((0, 0), np.nan),
    "beams backwards": lambda state: state.update(beams=state["beams"][:, ::-1]),
    "a row too few": lambda state: state.update(beams=state["beams"][1:]),
    "weights of others": lambda state: state.update(fit=state["fit"][:, 1:]),
    "negative weight": lambda state: state["fit"].__setitem__((-1, 0), -1.0),
    "rays of others": lambda state: state.update(rays=state["rays"][:, 5:]),
    "negative length": lambda state: state["rays"].__setitem__((4, 0), -1.0),
    "base missing": lambda state: state.pop("base_hits"),
    "no evidence": lambda state: state.pop("base_evidence"),
    "nothing passed": lambda state: state.pop("base_passed"),
    "no scans": lambda state: state.pop("scans"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_is_refused_and_nothing_has_changed(damage):
    source, target = feed(mapper(), 0, 3), feed(mapper(), 3, 5)
    state = {name: values.copy() for name, values in source.state().items()}
    DAMAGE[damage](state)
    before = target.copy()
    with pytest.raises(MeasurementError):
        target.restore(state)
    assert_same(target, before)
