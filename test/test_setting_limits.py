"""Every number that may be set, at the least and the greatest that is allowed: it runs, or is
refused in one line.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from nbv_planner.episode.parameters import GROUPS, EpisodeConfig, configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import SettingError
from nbv_planner.settings import Setting, Settings, from_mapping, setting, settings_of
from nbv_planner.star2d.belief import SurfaceBelief

# Two views that take a tenth of a second.
SMALL = {
    "object": "random:flower:17",
    "max_views": 2,
    "shapes": 4,
    "shape_grid": 64,
    "certificate_shapes": 20,
    "num_beams": 31,
    "num_views": 12,
    "grid_size": 128,
    "prior_length_scales": (0.4,),
    "prior_kernel_stds": (1.0,),
    "prior_symmetries": (4.0,),
    "fit_iterations": 2,
    "pixel_size": 0.4,
}
ANNULUS = {"view_space": "annulus", "annulus_radii": 2, "annulus_angles": 6, "annulus_headings": 2}
SCHEDULE = {
    "planner": "greedy",
    "objective": "U",
    "revisit_radius": 0.0,
    "robust": False,
    "confidence": "schedule",
}
TOUR = {"planner": "tour"}
# By the beginning of a name: what makes the setting count.
WITH = {
    "annulus_": ANNULUS,
    "hybrid_": {"planner": "hybrid"},
    "sweep_views": {"planner": "uniform"},
    "linear_speed": TOUR,
    "turn_speed": TOUR,
    "dwell_time": TOUR,
    "look_every": TOUR,
    "rough_radius": {"scene": "unknown"},
    "other_": {"other_radius": 0.5, "other_x": 12.0},
    "cut_": {"periodisation": "truncate"},
    "degrees_of_freedom": {"noise_model": "student_t"},
    "schedule_": SCHEDULE,
    "delta": SCHEDULE,
    "near_optimal_epsilon": SCHEDULE,
    "robot_radius": {"no_go_polygons": "20,20 21,20 21,21"},
    "clearance": {"no_go_polygons": "20,20 21,20 21,21"},
    "seen_std": {"planner": "greedy", "objective": "U"},
    "stop_after_views": {"stop_at_coverage": 0.01},
    "thesis_": {"protocol": "thesis"},
    **{
        f"{name}_": {"planner": name}
        for name in ("volumetric", "frontier", "projection", "design", "set_cover")
    },
}
# Numbers so large that a view takes seconds: the episode is set up, no more.
SLOW = {
    "num_beams",
    "shapes",
    "shape_grid",
    "num_views",
    "annulus_radii",
    "annulus_angles",
    "volumetric.rays",
}


def declared(base: type) -> Iterator[type]:
    """Classes of settings of this package, those of objects, kernels and rivals too."""
    for cls in base.__subclasses__():
        if (
            cls.__module__.startswith("nbv_planner.")
            and "declared" not in vars(cls)
            and dataclasses.is_dataclass(cls)
        ):
            yield cls
        yield from declared(cls)


CLASSES = [EpisodeConfig, *dict.fromkeys(declared(Settings))]


def extremes(default: float, meta: Setting) -> Iterator[float]:
    """The least, the least above 0 and the greatest number that is allowed."""
    if type(default) is int:
        yield from (
            int(meta.minimum) + (not meta.minimum_allowed),
            int(meta.maximum) - (not meta.maximum_allowed),
        )
        return
    yield meta.minimum if meta.minimum_allowed else math.nextafter(meta.minimum, math.inf)
    if meta.admits(5e-324):
        yield 5e-324
    yield meta.maximum if meta.maximum_allowed else math.nextafter(meta.maximum, -math.inf)


def cases(cls: type) -> Iterator[tuple[str, object]]:
    for name, default, meta in settings_of(cls):
        if type(default) is tuple:
            yield from (
                (name, (value,) * max(len(default), 3)) for value in extremes(default[0], meta)
            )
        elif type(default) in (int, float):
            yield from ((name, value) for value in extremes(default, meta))


EVERY = dict.fromkeys(case for cls in (EpisodeConfig, *GROUPS.values()) for case in cases(cls))


def given(name: str, value: object) -> dict[str, object]:
    also = next((more for beginning, more in WITH.items() if name.startswith(beginning)), {})
    return {**SMALL, **also, name: value}


def assert_runs_or_is_refused(run: Callable[[], object], name: str) -> None:
    """It ends, or with one line that names the setting and what is allowed."""
    try:
        run()
    except SettingError as error:
        message = str(error)
    else:
        return
    assert name in message
    assert "must" in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "value"), EVERY, ids=lambda value: str(value).replace(" ", ""))
@pytest.mark.filterwarnings("error")
def test_every_number_runs_at_its_limits_or_is_refused_in_a_line_that_names_it(name, value):
    def run() -> None:
        config = configure(**given(name, value))
        assert config.near_optimal_by is None or config.near_optimal_by > 0
        episode = Simulation(config)
        slow = name in SLOW and value != min(extreme for one, extreme in EVERY if one == name)
        for view in () if slow else itertools.islice(episode.run(), 2):
            numbers = (
                view.coverage,
                view.objective_value,
                view.travelled,
                view.seconds,
                view.completeness,
            )
            assert all(map(math.isfinite, numbers)), view
            of_radius = isinstance(episode.steps[-1].belief, SurfaceBelief)
            assert math.isfinite(view.rmse) == of_radius
        belief = episode.belief
        if isinstance(belief, SurfaceBelief):
            columns = np.stack([belief.mean, belief.std, belief.lower, belief.upper])
        else:
            columns = belief.cells.hits.mean
        assert np.isfinite(columns).all()

    assert_runs_or_is_refused(run, name)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_number_has_limits_within_which_the_others_may_stay_as_they_are(cls):
    for name, value in cases(cls):
        assert all(
            abs(number) <= 1e10 or name in ("seed", "planner_seed")
            for number in np.atleast_1d(value)
        ), name
        assert_runs_or_is_refused(lambda: from_mapping(cls, {name: value}), name)  # noqa: B023 - called at once


def test_a_bound_that_is_not_stated_is_that_of_the_unit():
    @dataclasses.dataclass(frozen=True)
    class Sample:
        speed: float = setting(1.0, "A speed.", unit="m/s", gt=0.0)
        place: float = setting(0.0, "A place.", unit="m")
        part: float = setting(0.5, "A part.", gt=0.0, lt=1.0)
        count: int = setting(3, "A count.", ge=1)
        name: str = setting("", "A name.")

    words = {name: meta.allowed() for name, _, meta in settings_of(Sample)}
    assert words == {
        "speed": ">= 1e-09 and <= 1e+09",
        "place": ">= -1e+09 and <= 1e+09",
        "part": ">= 1e-09 and < 1",
        "count": ">= 1 and <= 1e+09",
        "name": "",
    }


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"shapes": 10_000}, 6944),
        ({"shape_grid": 100_000}, 25),
        ({"num_views": 30_000}, 23),
        ({"certificate_shapes": 10_000, "shape_grid": 2000}, 5000),
    ],
)
def test_more_shapes_than_memory_holds_are_refused_before_any_is_drawn(settings, allowed):
    name = "certificate_shapes" if "certificate_shapes" in settings else "shapes"
    words = rf"^{name}: \d+ with shape_grid \d+ and \d+ candidate views must be <= {allowed}$"
    with pytest.raises(SettingError, match=words):
        Simulation(configure(**settings)).finish()
    few = configure(**{**settings, name: allowed})
    assert few.planner.check_size(few.views.num_views) is None
