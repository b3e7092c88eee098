"""The robust mapper: outliers do little, nothing is believed or doubted for good, memory stays
bounded.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.star2d.robust import RobustMapper, bounded, mapper_for
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
SHAPE = parse_object("polygon:star", SCENE)
DIRTY = SensorSettings(noise_std_per_metre=0.01, dropout_probability=0.2, outlier_probability=0.1)
ASSUMED = MeasurementSettings(noise_std_per_metre=0.01)
VIEWS = np.arange(14) * (2.0 * np.pi / 14)


def mapper(**settings) -> SurfaceMapper:
    chosen = RobustSettings(**{"robust": False, **settings})
    return mapper_for(KernelSettings().build(), MapperSettings(grid_size=400), chosen)


def robust(**settings) -> RobustMapper:
    made = mapper(robust=True, **settings)
    assert isinstance(made, RobustMapper)
    return made


def scan_data(view: float, number: int, shape=SHAPE, sensor=DIRTY):
    pose = CameraPose.from_polar(view, SCENE.view_distance)
    return scan_to_hits(
        SimulatedCamera(shape, SCENE, sensor).scan(pose, number), pose, SCENE, ASSUMED
    )


def feed(
    target: SurfaceMapper, views=VIEWS, *, first: int = 1, shape=SHAPE, sensor=DIRTY
) -> SurfaceMapper:
    for number, view in enumerate(views, start=first):
        data = scan_data(view, number, shape, sensor)
        target.take(data.hits, [data.free])
    return target


def feed_at_once(target: SurfaceMapper, views=VIEWS, *, shape=SHAPE, sensor=DIRTY) -> SurfaceMapper:
    """The same scans in one view, so that there is one fit."""
    data = [scan_data(view, number, shape, sensor) for number, view in enumerate(views, start=1)]
    target.take(Hits.together([one.hits for one in data]), [one.free for one in data])
    return target


def held(target: SurfaceMapper, shape=SHAPE) -> float:
    """Fraction of the angles at which the band holds the true surface."""
    belief = target.belief()
    truth = shape.radius(belief.angle)
    return float(((belief.lower <= truth) & (truth <= belief.upper)).mean())


def rmse(target: SurfaceMapper, shape=SHAPE) -> float:
    belief = target.belief()
    return float(np.sqrt(np.mean((belief.mean - shape.radius(belief.angle)) ** 2)))


def test_with_outliers_the_band_holds_the_surface_where_the_plain_one_does_not():
    plain, fitted = feed_at_once(mapper()), feed_at_once(robust())
    assert held(plain) < 0.8
    assert held(fitted) > 0.93
    assert rmse(fitted) < 0.5 * rmse(plain)


@pytest.mark.parametrize("noise_model", ["student_t", "contaminated"])
def test_both_noise_models_beat_the_gaussian_one(noise_model):
    gaussian = feed_at_once(robust(noise_model="gaussian", isolated_beams=False))
    heavy = feed_at_once(robust(noise_model=noise_model))
    assert rmse(heavy) < 0.6 * rmse(gaussian)


def test_outliers_are_doubted_and_others_are_not():
    clean = SensorSettings(noise_std_per_metre=0.01, dropout_probability=0.2)
    assert feed_at_once(robust(), sensor=clean).doubted.mean() < 0.02
    # Some outliers are as good as inliers, some are outside the gates.
    assert 0.05 < feed_at_once(robust()).doubted.mean() < 0.11


def test_a_wrong_early_belief_cannot_lock_out_the_truth():
    """Something stands close before the camera in the first view, and is gone later."""
    intruder, truth = (
        parse_object("ellipse:a=7.5,b=7.5", SCENE),
        parse_object("ellipse:a=4,b=4", SCENE),
    )
    fitted = feed(robust(), [0.0], shape=intruder)
    front = np.abs(np.sin(0.5 * fitted.belief().angle)) < 0.03
    assert fitted.belief().mean[front].mean() == pytest.approx(7.5, abs=0.1)
    feed(fitted, np.linspace(-0.1, 0.1, 8), first=2, shape=truth)
    assert fitted.belief().mean[front].mean() == pytest.approx(4.0, abs=0.15)


def test_the_order_of_the_views_does_not_matter():
    forward, backward = robust(), robust()
    data = [scan_data(view, number) for number, view in enumerate(VIEWS[:4], start=1)]
    for one in data:
        forward.take(one.hits, [one.free])
    for one in reversed(data):
        backward.take(one.hits, [one.free])
    np.testing.assert_allclose(forward.belief().mean, backward.belief().mean, atol=1e-6)


def test_without_outliers_the_answer_is_that_of_the_plain_mapper():
    exact = SensorSettings(noise_std=0.0, num_beams=61)
    shape = parse_object("ellipse:a=5,b=5", SCENE)
    plain, fitted = (
        feed_at_once(target, shape=shape, sensor=exact) for target in (mapper(), robust())
    )
    np.testing.assert_allclose(fitted.belief().mean, plain.belief().mean, atol=5e-3)
    np.testing.assert_allclose(fitted.belief().std, plain.belief().std, atol=5e-3)


def test_hits_count_what_is_believed_and_reset_forgets_it_all():
    fitted = feed(robust(), VIEWS[:3])
    assert fitted.count == len(fitted.beams) - int(fitted.doubted.sum())
    fitted.reset()
    assert fitted.count == len(fitted.beams) == 0
    np.testing.assert_array_equal(fitted.belief().mean, robust().belief().mean)


def test_memory_is_bounded_and_what_left_the_window_is_still_believed():
    small, large = robust(window=300), robust(window=6000)
    for target in (small, large):
        feed(target, VIEWS[:6])
    assert len(small.beams) <= 300 < len(large.beams)
    assert small.round == large.round == 7
    assert small.count == pytest.approx(large.count, rel=0.03)
    assert rmse(small) < 1.3 * rmse(large)
    assert np.isfinite(small.belief().evidence.free).sum() == pytest.approx(
        np.isfinite(large.belief().evidence.free).sum(), rel=0.05
    )


def test_a_copy_does_not_see_what_is_added_later():
    fitted = feed(robust(), VIEWS[:2])
    before = fitted.copy()
    mean = before.belief().mean.copy()
    feed(fitted, VIEWS[2:4], first=3)
    np.testing.assert_array_equal(before.belief().mean, mean)
    assert len(before.beams) < len(fitted.beams)


def test_views_without_any_hit_count_as_views():
    fitted = robust()
    fitted.add(Measurements.none())
    assert fitted.round == 2
    np.testing.assert_array_equal(fitted.belief().mean, robust().belief().mean)


def test_rays_of_outliers_are_no_evidence_of_free_space():
    """The plain mapper takes the way to a far outlier, through the object, for free."""
    views = [0.0, 0.1, 0.2, 0.3]
    plain, fitted = (feed(target, views).belief().evidence.free for target in (mapper(), robust()))
    truth = SHAPE.radius(robust().belief().angle)
    assert (plain < truth - 0.5).mean() > 3.0 * (fitted < truth - 0.5).mean()


def test_free_space_bounds_the_band_from_above_but_never_against_the_lower_bound():
    fitted = feed(robust(), VIEWS[:2])
    belief = fitted.belief()
    free = np.full(len(belief.angle), np.inf)
    free[:3] = belief.lower[:3] + 0.01
    free[3] = belief.lower[3] - 0.5
    changed = bounded(belief, free)
    np.testing.assert_array_equal(changed.upper[:3], free[:3])
    assert (changed.mean[:3] <= changed.upper[:3]).all()
    np.testing.assert_array_equal(changed.upper[3:], belief.upper[3:])


def test_misses_narrow_the_band_if_they_are_asked_to():
    """Beams that pass a small object say that it is small, where nothing has been hit yet."""
    small, silent = parse_object("square:width=4", SCENE), SensorSettings(noise_std=0.01)
    views = [0.0, 1.0]
    loose, tight = (
        feed(robust(free_space_bound=bound), views, shape=small, sensor=silent)
        for bound in (False, True)
    )
    lowered = loose.belief().upper - tight.belief().upper
    assert lowered.min() >= 0.0
    assert (lowered > 0.3).mean() > 0.04
    assert held(tight, small) >= held(loose, small) - 0.01


def test_misses_that_left_the_window_still_bound_the_band():
    small, silent = parse_object("square:width=4", SCENE), SensorSettings(noise_std=0.01)
    beliefs = [
        feed(
            robust(free_space_bound=True, window=window),
            [0.0, 1.0, 2.0],
            shape=small,
            sensor=silent,
        ).belief()
        for window in (100, 6000)
    ]
    np.testing.assert_allclose(beliefs[0].upper, beliefs[1].upper, atol=0.05)


def test_rays_that_do_not_fit_the_measurements_are_left_out():
    fitted, data = robust(), scan_data(0.0, 1)
    rays = data.free
    for strange in ([dataclasses.replace(rays, of_hit=np.zeros(len(rays.length), dtype=bool))], []):
        fitted.take(data.hits, strange)
    assert np.isinf(fitted.belief().evidence.free).all()


def test_the_robust_mapper_is_the_default():
    assert type(mapper()) is SurfaceMapper
    assert RobustSettings().robust


def test_every_combination_of_ingredients_gives_a_finite_belief():
    data = scan_data(0.3, 1, sensor=SensorSettings(num_beams=31))
    for model, isolated, along, bound in itertools.product(
        ("gaussian", "student_t", "contaminated"), (True, False), (True, False), (True, False)
    ):
        fitted = robust(
            noise_model=model, isolated_beams=isolated, along_beam=along, free_space_bound=bound
        )
        fitted.take(data.hits, [data.free])
        belief = fitted.belief()
        assert np.isfinite(belief.mean).all()
        assert (belief.std > 0.0).all()
        assert (belief.upper >= belief.lower).all()
