"""The outline that is known before the first scan: its file, and an episode with it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import yaml

from nbv_planner.episode.parameters import configure, recorded_config
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.known.prior_outline import PriorOutlineSettings
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.star2d.shapes.learned_prior import ModelAverage
from nbv_planner.star2d.shapes.learned_shapes import LearnedShapes, shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, PriorSettings, ShapeSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import EstimatedScene, Scene

SCENE = Scene()
OBJECT = "random:irregular:1"
ANGLE = TWO_PI / 720 * np.arange(720)


def written(path, text=OBJECT, *, scale=1.0, at=0.0, turn=0.0):
    """A CSV file of the outline of an object; its name."""
    radius = parse_object(text, SCENE).radius(ANGLE)
    corner = scale * (radius * np.exp(1j * (ANGLE + turn)) + at)
    lines = [f"{one.real:.9g},{one.imag:.9g}" for one in corner]
    path.write_text("\n".join(["x,y", *lines]))
    return str(path)


def prior(text, **given):
    return PriorOutlineSettings(prior_outline=text, **given).known(SCENE)


def test_the_outline_of_a_file_is_that_of_the_object(tmp_path):
    known = prior(written(tmp_path / "part.csv", scale=1000.0) + ",unit=mm")
    truth = parse_object(OBJECT, SCENE).radius(ANGLE)
    assert np.abs(known.radius - truth).max() < 1e-3
    assert known.place_std == pytest.approx((0.1 * truth.mean(), 0.1), rel=1e-3)
    assert known.std == 0.1


def test_an_outline_beside_the_origin_is_put_there_by_origin_auto(tmp_path):
    name = written(tmp_path / "part.csv", at=30.0)
    with pytest.raises(SettingError, match=r"middle is 3\d\.\d* m away.*add ,origin=auto"):
        prior(name)
    known = prior(f"{name},origin=auto")
    assert np.isfinite(known.curve(np.zeros(3), ANGLE)).all()


def test_where_the_object_is_searched_for_the_outline_may_be_anywhere(tmp_path):
    file = written(tmp_path / "part.csv", at=30.0)
    given = PriorOutlineSettings(prior_outline=file, prior_place_std=(0.4, 0.1))
    known = given.known(SCENE, stated=6.0).about(30.0, 0.0)
    truth = parse_object(OBJECT, SCENE).radius(ANGLE)
    assert np.abs(known.curve(np.zeros(3), ANGLE) - truth).max() < 0.05
    assert known.place_std[0] == 0.4
    assert 25.0 < given.known_solid(SCENE, stated=6.0).middle[0] < 35.0
    # with nothing said of its place it is about where the object is to be
    adrift = PriorOutlineSettings(prior_outline=file)
    for found in (adrift.known(SCENE, stated=6.0), adrift.known_solid(SCENE, stated=6.0)):
        assert np.abs(found.loops[0].mean(axis=0)).max() < 1.0
        assert found.place_std[0] == pytest.approx(0.3 * truth.mean(), rel=0.2)
    with pytest.raises(SettingError, match=r"times that would fit"):
        adrift.known(SCENE, stated=1.0)


BOW_TIE = "x,y\n-4,-4\n4,4\n4,-4\n-4,4\n"
COMB = "x,y\n-5,-3\n5,-3\n5,3\n4,3\n4,-2\n1,-2\n1,3\n-1,3\n-1,-2\n-4,-2\n-4,3\n-5,3\n"


@pytest.mark.parametrize(
    ("content", "option", "said"),
    [
        (BOW_TIE, "", "crosses itself, behind line 2 and behind line 4"),
        (COMB, "", "no point from which all of it is seen"),
        ("a,b\n1,2\n", "", "must be the header"),
        ("x,y\n1,0\n0,1\n-1,-1\n", ",unit=furlong", "furlong"),
        ("x,y\n4000,0\n0,5000\n-4000,-3000\n", "", "0.001 times that would fit: write unit=mm"),
        ("x,y\n40,0\n0,50\n-40,-30\n", "", "times that would fit"),
        ("x,y\n0.4,0\n0,0.5\n-0.4,-0.3\n", "", "times that would fit"),
    ],
)
def test_what_is_no_prior_is_said_in_one_line(tmp_path, content, option, said):
    file = tmp_path / "part.csv"
    file.write_text(content)
    with pytest.raises(SettingError, match=r"(?s)^prior_outline: .*remove prior_outline") as found:
        prior(f"{file}{option}")
    assert said in str(found.value)
    assert "\n" not in str(found.value)


def test_a_missing_file_and_a_wrong_number_of_deviations_are_refused(tmp_path):
    with pytest.raises(SettingError, match="prior_outline: cannot read"):
        prior(str(tmp_path / "none.csv"))
    with pytest.raises(SettingError, match="prior_place_std: has 1 numbers, must be 2"):
        PriorOutlineSettings(prior_place_std=(0.1,))


@pytest.mark.parametrize(
    "given",
    [
        {"prior_outline_std": 1e-8},
        {"prior_outline_std": 1e8},
        {"prior_place_std": (1e8, 0.1)},
        {"prior_place_std": (0.1, 4.0)},
    ],
)
def test_deviations_without_use_are_refused(tmp_path, given):
    (name,) = given
    with pytest.raises(SettingError, match=f"{name}.*must be within"):
        prior(written(tmp_path / "part.csv"), **given)


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    file = tmp_path / "cut.csv"
    first = prior(written(file))
    written(file, "ellipse:a=6,b=4")
    assert not np.allclose(prior(str(file)).radius, first.radius)


def simulated(**given):
    return Simulation(configure(object=OBJECT, seed=3, **given))


def test_with_its_outline_an_object_takes_fewer_views(tmp_path):
    name = written(tmp_path / "part.csv")
    moved = written(tmp_path / "moved.csv", at=0.35 - 0.35j, turn=np.deg2rad(5.0))
    other = written(tmp_path / "other.csv", "random:bumps:5")
    views = {
        given: len(simulated(prior_outline=given, stop_at_completeness=0.95).finish().views)
        for given in ("", name, moved, other)
    }
    assert views[name] <= 0.75 * views[""]
    assert views[moved] <= 0.75 * views[""]
    assert views[other] <= views[""]


def test_the_prior_counts_as_no_measurement_and_is_believed_where_nothing_was_measured(tmp_path):
    simulation = simulated(prior_outline=written(tmp_path / "part.csv"))
    next(simulation.run())
    belief = simulation.belief
    truth = parse_object(OBJECT, SCENE).radius(belief.angle)
    unseen = belief.hits == 0
    assert 0.4 < unseen.mean() < 0.95
    assert np.abs(belief.mean - truth)[unseen].mean() < 0.2
    assert (np.abs(belief.mean - truth) < 3.0 * belief.std).mean() > 0.97
    assert belief.measured(0.5) < 0.5


def test_without_an_outline_the_shapes_are_the_learned_ones_to_the_digit():
    belief = simulated().belief
    settings = ShapeSettings()
    learned = LearnedShapes(ModelAverage(settings, 5.0), settings, 0).draw(belief, SCENE)
    drawn = shape_sampler(settings, Prior(), 0).draw(belief, SCENE)
    assert drawn.radius.tobytes() == learned.radius.tobytes()


def test_where_nothing_of_it_holds_the_shapes_are_the_learned_ones_to_the_digit(tmp_path):
    simulation = simulated(prior_outline=written(tmp_path / "part.csv", "random:bumps:5"))
    for _, _ in zip(range(5), simulation.run(), strict=False):
        belief = simulation.belief
    settings = ShapeSettings()
    without = dataclasses.replace(belief, known=None)
    drawn, learned = (
        shape_sampler(settings, Prior(), 0).draw(one, SCENE) for one in (belief, without)
    )
    same = (drawn.radius == learned.radius).all(axis=1)
    assert same.mean() > 0.9


def test_it_travels_with_the_surface_to_the_last_bit(tmp_path):
    belief = simulated(prior_outline=written(tmp_path / "part.csv")).belief
    config = configure()
    known = {
        "stamp": 0,
        "prior": PriorSettings(),
        "sensor": SurfaceInfo.sensor_of(SCENE),
        "declared": config.measurement.noise,
    }
    info = info_from_text(SurfaceInfo.about(belief, **known).text)
    back = info.applied(dataclasses.replace(belief, known=None))
    assert back.known.plain == belief.known.plain
    assert back.known.radius.tobytes() == belief.known.radius.tobytes()
    found = EstimatedScene(1.0, -0.5, 2.0, 8.0, 10.0, 0.3, 2.5, views=1)
    moved = dataclasses.replace(info, scene=found).applied(belief)
    assert moved.known.centre == (1.0, -0.5)
    assert "prior_outline" not in SurfaceInfo.about(simulated().belief, **known).text


def test_an_impossible_outline_in_a_surface_info_is_refused(tmp_path):
    belief = simulated(prior_outline=written(tmp_path / "part.csv")).belief
    info = SurfaceInfo.about(
        belief, stamp=0, prior=PriorSettings(), sensor={}, declared=configure().measurement.noise
    )
    content = yaml.safe_load(info.text)
    content["prior_outline"]["std"] = -1.0
    with pytest.raises(InputRejectedError, match="prior_outline"):
        info_from_text(yaml.safe_dump(content))


def test_the_configuration_keeps_it_and_the_thesis_has_none(tmp_path):
    name = written(tmp_path / "part.csv")
    config = configure(prior_outline=name, prior_place_std=[0.2, 0.05])
    assert recorded_config(json.loads(json.dumps(config.as_dict()))) == config
    with pytest.raises(SettingError, match="prior_outline: needs the protocol sensor"):
        configure(prior_outline=name, protocol="thesis")
    half = configure(radius_max=4.0)
    assert half.outline.prior_outline_std == pytest.approx(0.05)


def test_a_tolerance_is_no_part_of_the_file_and_must_be_a_length(tmp_path):
    file = tmp_path / "part.csv"
    file.write_text("x,y\n5000,0\n0,5000\n-5000,0\n0,-5000\n")
    plain = PriorOutlineSettings(prior_outline=f"{file},unit=mm")
    for text in (f"{file},unit=mm,tolerance=0.25", f"{file},tolerance=0.25,unit=mm"):
        judged = PriorOutlineSettings(prior_outline=text)
        assert (judged.file, judged.tolerance) == (plain.file, 0.25)
        assert judged.known(Scene()).plain == plain.known(Scene()).plain
    assert plain.tolerance is None
    with pytest.raises(SettingError, match=r"prior_outline: tolerance is 'x', must be a number"):
        PriorOutlineSettings(prior_outline=f"{file},tolerance=x")
    for wrong in ("0", "-1", "inf", "nan"):
        with pytest.raises(SettingError, match=r"prior_outline: tolerance is .* m, must be > 0"):
            PriorOutlineSettings(prior_outline=f"{file},tolerance={wrong}")
