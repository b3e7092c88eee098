"""Whole episodes without ROS: the thesis protocol against a plain program, the sensor protocol by
promise.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import oracles
import pytest

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.records import episode_metrics, views_to
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import ContourError, NbvPlannerError, SettingError, UnknownNameError
from nbv_planner.mapping.matching import DwellSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.star2d.mapper import MapperSettings
from nbv_planner.star2d.measurements import polar
from nbv_planner.surface.coverage import POINTS
from nbv_planner.world.objects import bisected_surface_points, parse_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings

SCENE = Scene()
FIRST = {"CSW": 0, "IOA": 47, "I": 1, "U": 15, "UP": 15, "CS-U": 26}


def played(config: EpisodeConfig):
    """Run to the end; gives the simulation and why it ended."""
    simulation = Simulation(config)
    return simulation, simulation.finish().termination


def thesis(text: str, name: str, first: int = -1) -> EpisodeConfig:
    """Greedy with an objective, or the published CS-U, which counts pixels in phase 1."""
    chosen = {"planner": "greedy", "objective": name}
    if name == "CS-U":
        chosen = {"planner": "two_phase", "phase_one_objective": "CSN", "objective": "U"}
    return EpisodeConfig(
        object=text, protocol="thesis", planner=PlannerSettings(**chosen, first_candidate=first)
    )


def metrics_of(simulation: Simulation):
    return episode_metrics(simulation.judge.views, len(simulation.judge.truth.points))


@pytest.mark.parametrize(
    ("text", "objective"),
    # Objects on which no rounding decides between equal candidates: the circle's views differ with
    # the numpy version.
    [
        ("polygon:star", "U"),
        ("square:width=4", "UP"),
        ("polygon:concave", "CSW"),
        ("polygon:convex", "OSM"),
        ("polygon:concave", "CS-U"),
    ],
)
def test_thesis_episode_is_that_of_a_plain_program(text, objective):
    """Views, new points, coverage and greedy gain, and with them T, T95 and the mean regret."""
    simulation, termination = played(thesis(text, objective))
    points = bisected_surface_points(parse_object(text, SCENE), 0.1)
    views, history = oracles.thesis_episode(
        objective, points.angle, points.radius, FIRST.get(objective)
    )
    records = simulation.judge.views
    t95 = [t for t, (coverage, _, _) in enumerate(history, start=1) if coverage >= 0.95]
    metrics = metrics_of(simulation)
    assert metrics["T"] == len(views)
    assert metrics["T95"] == (t95[0] if t95 else None)
    assert metrics["rec"] == pytest.approx(history[-1][0])
    assert metrics["mean_individual_regret"] == pytest.approx(
        np.mean([g - n for _, n, g in history])
    )
    candidates = np.linspace(0.0, 2 * math.pi, 100)
    np.testing.assert_allclose([record.angle for record in records], candidates[views], atol=1e-12)
    complete = history[-1][0] == 1.0
    assert termination.reason is (
        TerminationReason.COMPLETE if complete else TerminationReason.NO_NEW_POINTS
    )


@pytest.mark.parametrize("protocol", ["thesis", "sensor"])
def test_stop_at_coverage_cuts_the_same_episode_off(protocol):
    greedy = PlannerSettings(planner="greedy", objective="U", target="points")
    config = EpisodeConfig(object="ellipse:a=6,b=4", protocol=protocol, planner=greedy)
    whole, cut = played(config)[0].judge.views, dataclasses.replace(config, stop_at_coverage=0.9)
    simulation, ended = played(cut)
    views = views_to((record.coverage for record in whole), 0.9)
    assert [record.angle for record in simulation.judge.views] == [
        record.angle for record in whole[:views]
    ]
    assert views < len(whole)
    assert (ended.reason, ended.figures) == (
        TerminationReason.COMPLETE,
        {"coverage": simulation.judge.coverage},
    )


def test_stop_at_completeness_waits_for_both():
    greedy = PlannerSettings(planner="greedy", objective="U")
    off = TerminationSettings(certify=False, stall_views=0)
    config = EpisodeConfig(object="ellipse:a=6,b=4", planner=greedy, termination=off)
    records = played(config)[0].judge.views
    for covered, complete in ((0.0, 0.9), (0.9, 0.9), (0.9, 0.5)):
        simulation, ended = played(
            dataclasses.replace(config, stop_at_coverage=covered, stop_at_completeness=complete)
        )
        enough = [v.coverage >= covered and v.completeness >= complete for v in records]
        assert len(simulation.judge.views) == enough.index(True) + 1 < len(records)
        assert (ended.reason, ended.figures["completeness"]) == (
            TerminationReason.COMPLETE,
            records[enough.index(True)].completeness,
        )


def test_an_episode_that_is_to_have_a_number_of_views_is_not_ended_by_its_coverage_before():
    greedy = PlannerSettings(planner="greedy", objective="U")
    off = TerminationSettings(certify=False, stall_views=0, band_tolerance=1e-6, max_views=25)
    config = EpisodeConfig(
        object="polygon:diamond", planner=greedy, termination=off, stop_at_coverage=0.9
    )
    enough = len(played(config)[0].judge.views)
    for views in (enough - 1, enough + 3):
        simulation, ended = played(dataclasses.replace(config, stop_after_views=views))
        assert len(simulation.judge.views) == max(enough, views) < 25
        assert ended.reason is TerminationReason.COMPLETE


def test_the_planner_that_knows_the_object_completes_it_in_fewer_views_than_one_of_points():
    views = {}
    for target in ("points", "completeness"):
        planner = PlannerSettings(planner="greedy", objective="OSM", target=target)
        off = TerminationSettings(certify=False, stall_views=0, band_tolerance=1e-6)
        config = EpisodeConfig(
            object="polygon:star", planner=planner, termination=off, stop_at_completeness=0.95
        )
        views[target] = len(played(config)[0].judge.views)
    assert views["completeness"] <= views["points"]


def test_the_thesis_protocol_counts_points_whatever_the_target():
    config = thesis("ellipse:a=6,b=4", "OSM")
    named = dataclasses.replace(
        config, planner=dataclasses.replace(config.planner, target="points")
    )
    (found, _), (wanted, _) = played(config), played(named)
    assert [view.angle for view in found.judge.views] == [view.angle for view in wanted.judge.views]
    assert config.target == POINTS


def test_an_episode_that_ends_before_its_stop_at_coverage_says_why():
    config = EpisodeConfig(stop_at_coverage=1.0, termination=TerminationSettings(max_views=2))
    simulation, ended = played(config)
    assert (len(simulation.judge.views), ended.reason) == (2, TerminationReason.MAX_VIEWS)


@pytest.mark.parametrize("objective", sorted(FIRST))
def test_published_first_candidate_is_taken_unless_another_is_named(objective):
    simulation = Simulation(thesis("ellipse:a=6,b=4", objective))
    assert next(simulation.run()).angle == pytest.approx(FIRST[objective] * 2 * math.pi / 99)
    other = Simulation(thesis("ellipse:a=6,b=4", objective, first=33))
    assert next(other.run()).angle == pytest.approx(33 * 2 * math.pi / 99)


def test_omniscient_greedy_has_no_regret_and_its_gains_fall():
    simulation, _ = played(thesis("polygon:diamond", "OSM"))
    gains = [view.new_points for view in simulation.judge.views]
    assert metrics_of(simulation)["mean_individual_regret"] == 0.0
    assert gains == sorted(gains, reverse=True)
    assert all(view.objective_value == view.new_points for view in simulation.judge.views)


def test_thesis_episode_measures_the_exact_radii_with_the_assumed_noise():
    simulation = Simulation(thesis("polygon:star", "U"))
    next(simulation.run())
    data = polar(simulation.judge.steps[0].hits)
    np.testing.assert_allclose(
        data.radius, parse_object("polygon:star", SCENE).radius(data.angle), rtol=1e-9
    )
    np.testing.assert_allclose(data.std**2, 0.2**2 + 1e-8, rtol=1e-12)
    assert len(data) == simulation.judge.views[0].new_points


def test_thesis_protocol_uses_the_grids_that_count_both_ends():
    simulation = Simulation(thesis("square:width=4", "U"))
    next(simulation.run())
    step = simulation.judge.steps[0]
    np.testing.assert_allclose(step.candidates.view_angle, np.linspace(0, 2 * math.pi, 100))
    np.testing.assert_allclose(step.belief.angle, np.linspace(0, 2 * math.pi, 1000))


def test_thesis_protocol_takes_another_number_of_candidates_and_chooses_the_first_view():
    """The published first views are indices among 100: 47 would be no candidate here."""
    config = dataclasses.replace(
        thesis("ellipse:a=6,b=4", "IOA"), views=ViewSpaceSettings(num_views=36)
    )
    simulation = Simulation(config)
    first = next(simulation.run())
    candidates = simulation.judge.steps[0].candidates.view_angle
    np.testing.assert_allclose(candidates, np.arange(36) * 2 * math.pi / 36)
    assert first.angle in candidates
    simulation = Simulation(dataclasses.replace(config, views=ViewSpaceSettings(num_views=200)))
    assert next(simulation.run()).angle != pytest.approx(
        simulation.judge.space.candidates[47].view_angle
    )


@pytest.mark.parametrize("protocol", ["thesis", "sensor"])
def test_a_decision_is_timed_by_the_processor(protocol, monkeypatch):
    """What else runs on the machine does not count; the fake clock tells 250 ms for each
    decision.
    """
    readings = itertools.count()
    monkeypatch.setattr(
        "nbv_planner.episode.simulation.time.process_time", lambda: 0.25 * next(readings)
    )
    simulation = Simulation(dataclasses.replace(thesis("square:width=4", "U"), protocol=protocol))
    episode = simulation.run()
    assert [next(episode).milliseconds for _ in range(3)] == [250.0] * 3


def sensor(text: str = "polygon:star", objective: str = "UP", **changes) -> EpisodeConfig:
    base = EpisodeConfig(
        object=text,
        planner=PlannerSettings(planner="greedy", objective=objective),
        mapper=MapperSettings(grid_size=360),
        termination=TerminationSettings(max_views=6, stall_views=0),
    )
    return dataclasses.replace(base, **changes)


def test_same_seed_gives_the_same_episode_bit_for_bit():
    first, _ = played(sensor())
    second, _ = played(sensor())
    assert [v.angle for v in first.judge.views] == [v.angle for v in second.judge.views]
    assert [v.objective_value for v in first.judge.views] == [
        v.objective_value for v in second.judge.views
    ]
    for a, b in zip(first.judge.steps, second.judge.steps, strict=True):
        np.testing.assert_array_equal(a.hits.points, b.hits.points)
        np.testing.assert_array_equal(a.belief.mean, b.belief.mean)


def test_another_seed_gives_other_measurements():
    first, _ = played(sensor(termination=TerminationSettings(max_views=1)))
    second, _ = played(
        sensor(termination=TerminationSettings(max_views=1), sensor=SensorSettings(seed=1))
    )
    one, other = first.judge.steps[0].hits, second.judge.steps[0].hits
    assert not np.array_equal(one.points, other.points)


def test_noise_is_new_at_every_view_even_from_the_same_place():
    again = PlannerSettings(revisit_radius=0.0)
    limits = TerminationSettings(max_views=2)
    simulation, _ = played(
        sensor(views=ViewSpaceSettings(num_views=1), termination=limits, planner=again)
    )
    one, other = (step.hits for step in simulation.judge.steps)
    assert simulation.judge.views[0].angle == simulation.judge.views[1].angle
    assert len(np.intersect1d(one.points, other.points)) == 0


def test_several_scans_a_view_average_the_noise():
    """By the square root of their number."""

    def radii(scans: int):
        config = sensor(
            termination=TerminationSettings(max_views=1),
            matching=DwellSettings(scans_per_view=scans),
            sensor=SensorSettings(noise_std=0.2),
        )
        simulation, _ = played(config)
        return simulation, polar(simulation.steps[0].hits)

    (once, single), (dwelt, several) = radii(1), radii(16)
    assert abs(len(several) - len(single)) <= 2
    assert np.median(several.std) == pytest.approx(0.25 * np.median(single.std))
    errors = [
        np.abs(simulation.truth.radius(data.angle) - data.radius)
        for simulation, data in ((once, single), (dwelt, several))
    ]
    assert np.median(errors[1]) < 0.5 * np.median(errors[0])
    assert [view.new_points for view in dwelt.views] == [view.new_points for view in once.views]


@pytest.mark.parametrize("objective", ["U", "UP", "CSW", "I", "IOA", "OSM"])
def test_coverage_never_falls_and_adds_up_to_the_new_points(objective):
    simulation, termination = played(sensor(objective=objective))
    total = len(simulation.judge.truth.points)
    coverage = [view.coverage for view in simulation.judge.views]
    new = [view.new_points for view in simulation.judge.views]
    assert coverage == sorted(coverage)
    np.testing.assert_allclose(coverage, np.cumsum(new) / total)
    assert all(view.greedy_gain >= view.new_points for view in simulation.judge.views)
    assert termination.reason is TerminationReason.MAX_VIEWS
    assert len(coverage) == 6


def test_sensor_episode_ends_by_itself_with_the_object_covered():
    """Star, seed 0 and default settings, as `make demo`."""
    simulation, termination = played(EpisodeConfig(object="polygon:star"))
    assert termination.reason in {TerminationReason.BAND_NARROW, TerminationReason.COVERED}
    assert simulation.judge.coverage >= 0.95


def test_reconstruction_of_a_smooth_object_is_near_the_truth():
    config = sensor(
        "ellipse:a=6,b=4", "IOA", termination=TerminationSettings(max_views=25, target_fraction=1.0)
    )
    simulation, _ = played(config)
    belief = simulation.judge.steps[-1].belief
    truth = parse_object("ellipse:a=6,b=4", SCENE).radius(belief.angle)
    seen = belief.width < 0.6
    assert seen.mean() > 0.8
    assert np.sqrt(np.mean((belief.mean - truth)[seen] ** 2)) < 0.15
    inside = (belief.lower <= truth) & (truth <= belief.upper)
    assert inside[seen].mean() > 0.8


@pytest.mark.parametrize("protocol", ["thesis", "sensor"])
@pytest.mark.parametrize("planner", ["two_phase", "uniform", "random"])
def test_every_planner_runs_in_both_protocols(planner, protocol):
    chosen = PlannerSettings(
        planner=planner, objective="U", phase_one_objective="CS", planner_seed=5
    )
    simulation, termination = played(sensor(planner=chosen, protocol=protocol))
    assert simulation.judge.coverage > 0.3
    assert termination.reason in {
        TerminationReason.MAX_VIEWS,
        TerminationReason.COMPLETE,
        TerminationReason.NO_NEW_POINTS,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"planner": "greedy", "objective": "OS"},
        {"planner": "two_phase", "phase_one_objective": "OSM", "objective": "U"},
    ],
)
def test_a_simulation_hands_the_truth_to_objectives_that_need_it(changes):
    simulation, _ = played(sensor(planner=PlannerSettings(**changes)))
    assert len(simulation.judge.views) == 6


def test_confidence_objectives_stall_early():
    """Thesis ch. 7: C, CS and CSP go back to where they have been, typically at 30 to 60 % of the
    surface.
    """
    for objective in ("C", "CS", "CSP"):
        simulation, termination = played(thesis("polygon:star", objective))
        assert termination.reason is TerminationReason.NO_NEW_POINTS
        assert 0.2 < simulation.judge.coverage < 0.6


def test_dropout_and_outliers_do_not_stop_an_episode():
    noisy = SensorSettings(dropout_probability=0.3, outlier_probability=0.05)
    simulation, _ = played(sensor(sensor=noisy))
    assert len(simulation.judge.views) == 6
    assert np.isfinite(simulation.judge.steps[-1].belief.mean).all()


def test_camera_that_sees_nothing_stalls_and_says_so():
    blind = sensor(
        sensor=SensorSettings(dropout_probability=1.0),
        termination=TerminationSettings(stall_views=3),
    )
    simulation, termination = played(blind)
    assert termination.reason is TerminationReason.STALLED
    assert all(len(step.hits) == 0 for step in simulation.judge.steps)


def test_no_reachable_view_is_a_reason_of_its_own():
    greedy = PlannerSettings(planner="greedy", objective="UP", revisit_radius=3.0)
    config = sensor(planner=greedy, views=ViewSpaceSettings(num_views=4))
    simulation, termination = played(config)
    assert termination.reason is TerminationReason.NO_REACHABLE_VIEW
    assert 1 <= len(simulation.judge.views) <= 2


def test_no_gain_ends_before_the_view_is_taken():
    config = sensor(termination=TerminationSettings(min_gain=1e9))
    simulation, termination = played(config)
    assert termination.reason is TerminationReason.NO_GAIN
    assert simulation.judge.views == []


def test_arcs_hold_during_an_episode():
    views = ViewSpaceSettings(allowed_arcs=(5.5, 1.0))
    simulation, _ = played(sensor(views=views))
    assert all(view.angle >= 5.5 or view.angle <= 1.0 for view in simulation.judge.views)


@pytest.mark.parametrize(
    ("changes", "kind", "word"),
    [
        ({"object": "cube"}, UnknownNameError, "cube"),
        ({"object": "ellipse:a=9,b=4"}, ContourError, "8"),
        ({"views": ViewSpaceSettings(blocked_arcs=(0.0, 7.0))}, SettingError, "blocked_arcs"),
        (
            {"protocol": "thesis", "matching": DwellSettings(scans_per_view=2)},
            SettingError,
            "scans_per_view",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(changes, kind, word):
    with pytest.raises(kind, match=word) as caught:
        Simulation(EpisodeConfig(**changes))
    assert isinstance(caught.value, NbvPlannerError)
