"""Every reason to stop is provoked and read with its figures."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from beliefs import belief_of
from views import at, circle

from nbv_planner.errors import SettingError
from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners import Decision, DecisionSettings
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import Exclusion, ViewSpaceSettings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.checks import Check, Level
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.scene import Scene

OFF = {"stall_views": 0, "max_views": 0, "max_duration": 0.0, "min_gain": 0.0}


def partly(fraction: float):
    """Belief, measured everywhere, whose band is narrow (0.2 m) on the first `fraction` of the
    circle only.
    """

    def upper(grid):
        return np.where(grid < fraction * 2 * math.pi - 1e-9, 5.1, 7.0)

    return belief_of(4.9, upper, size=1000, hits=1)


def monitor(**settings) -> TerminationMonitor:
    return TerminationMonitor(TerminationSettings(**{**OFF, **settings}))


def check(termination, reason: str) -> Termination:
    assert termination is not None
    assert termination.reason is TerminationReason[reason]
    assert termination.reason.value == reason
    assert all(np.isfinite(v) for v in termination.figures.values())
    assert termination.detail
    assert "\n" not in termination.detail
    return termination


def test_nothing_to_report_while_the_band_is_wide_and_everything_else_is_off():
    watch = monitor()
    for k in range(100):
        assert watch.after_view(partly(0.5), elapsed=1e6 * k) is None
        assert watch.before_view(0.0, partly(0.5)) is None


def test_band_narrow_at_the_target_fraction():
    watch = monitor(target_fraction=0.9, band_tolerance=1.0)
    assert watch.after_view(partly(0.89), 1.0) is None
    stop = check(watch.after_view(partly(0.9), 2.0), "BAND_NARROW")
    assert 0.9 in [pytest.approx(v) for v in stop.figures.values()]


def test_coverage_is_that_of_the_belief_asked_about_at_the_tolerance_now():
    watch, half, whole = monitor(band_tolerance=1.0), partly(0.5), partly(1.0)
    for belief in (half, whole, whole, half):
        assert watch.coverage(belief) == belief.measured(1.0) > 0.0
    watch.settings = TerminationSettings(**OFF, band_tolerance=0.1)
    assert watch.coverage(half) == 0.0


def test_band_narrow_on_the_whole_circle_can_be_asked_for():
    watch = monitor(target_fraction=1.0)
    assert watch.after_view(partly(0.999), 1.0) is None
    check(watch.after_view(partly(1.0), 1.0), "BAND_NARROW")


def test_band_tolerance_is_in_metres_of_width():
    assert monitor(band_tolerance=0.15).after_view(partly(1.0), 1.0) is None
    check(monitor(band_tolerance=0.25).after_view(partly(1.0), 1.0), "BAND_NARROW")


def test_no_gain_below_the_least_gain_and_off_at_zero():
    watch = monitor(min_gain=5.0)
    assert watch.before_view(5.0, partly(0.5)) is None
    stop = check(watch.before_view(4.99, partly(0.5)), "NO_GAIN")
    assert 4.99 in stop.figures.values()
    assert monitor(min_gain=0.0).before_view(-1.0, partly(0.5)) is None


def test_stalled_after_k_views_in_a_row_that_change_nothing():
    watch = monitor(stall_views=3, stall_change=0.01)
    for fraction in (0.3, 0.5):
        assert watch.after_view(partly(fraction), 1.0) is None
    assert watch.after_view(partly(0.5), 1.0) is None
    assert watch.after_view(partly(0.502), 1.0) is None
    check(watch.after_view(partly(0.503), 1.0), "STALLED")


def test_a_view_that_changes_something_starts_the_count_again():
    watch = monitor(stall_views=2, stall_change=0.01)
    for fraction in (0.3, 0.3, 0.4, 0.4, 0.5, 0.5):
        assert watch.after_view(partly(fraction), 1.0) is None
    check(watch.after_view(partly(0.5), 1.0), "STALLED")


def test_first_view_alone_never_stalls():
    assert monitor(stall_views=1).after_view(partly(0.3), 1.0) is None


def test_small_steps_that_add_up_are_no_stall():
    """Each view adds less than the limit: `the last k views changed nothing` must hold for each or
    for the sum.
    """
    watch = monitor(stall_views=4, stall_change=0.001)
    for k in range(20):
        assert watch.after_view(partly(0.2 + 0.02 * k), 1.0) is None


def test_max_views_counts_the_views():
    watch = monitor(max_views=3)
    assert watch.after_view(partly(0.1), 1.0) is None
    assert watch.after_view(partly(0.2), 1.0) is None
    stop = check(watch.after_view(partly(0.3), 1.0), "MAX_VIEWS")
    assert 3 in stop.figures.values()


def test_max_duration_looks_at_the_time_since_the_start():
    watch = monitor(max_duration=10.0)
    assert watch.after_view(partly(0.1), 9.9) is None
    stop = check(watch.after_view(partly(0.2), 10.5), "MAX_DURATION")
    assert 10.5 in stop.figures.values()


def test_max_travel_is_never_exceeded_by_the_next_view():
    watch = monitor(max_travel=10.0)
    assert watch.before_view(1.0, partly(0.2), 10.0) is None
    stop = check(watch.before_view(1.0, partly(0.2), 10.01), "MAX_TRAVEL")
    assert stop.figures == {"travel": 10.01, "max_travel": 10.0}
    assert monitor().before_view(1.0, partly(0.2), 1e9) is None


def test_success_is_reported_rather_than_a_limit_reached_by_the_same_view():
    watch = monitor(max_views=1, max_duration=1.0, stall_views=1)
    check(watch.after_view(partly(1.0), 5.0), "BAND_NARROW")


def test_all_reasons_without_a_certificate_exist():
    names = {reason.name for reason in TerminationReason}
    assert names >= {
        "BAND_NARROW",
        "NO_GAIN",
        "STALLED",
        "MAX_VIEWS",
        "MAX_DURATION",
        "MAX_TRAVEL",
        "NO_REACHABLE_VIEW",
        "STOPPED",
        "FAILED",
    }
    assert all(reason.name == reason.value == str(reason.value) for reason in TerminationReason)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"band_tolerance": 0.0}, "band_tolerance"),
        ({"target_fraction": 0.0}, "target_fraction"),
        ({"target_fraction": 1.1}, "target_fraction"),
        ({"max_views": -1}, "max_views"),
        ({"stall_views": 1.5}, "stall_views"),
        ({"max_duration": math.inf}, "max_duration"),
        ({"max_travel": -1.0}, "max_travel"),
        ({"max_travel": math.nan}, "max_travel"),
    ],
)
def test_wrong_settings_are_refused_by_name(values, word):
    with pytest.raises(SettingError, match=word):
        TerminationSettings(**values)


DOUBT = Check("overlap", 7.0, 5.0, Level.FAILED)


def doubted(fraction: float, level: Level = Level.FAILED) -> SurfaceBelief:
    return dataclasses.replace(partly(fraction), checks=(dataclasses.replace(DOUBT, level=level),))


def test_a_success_that_a_check_forbids_is_put_off_and_then_doubtful():
    watch = monitor(doubt_views=2)
    assert watch.after_view(doubted(1.0), 1.0) is None
    assert watch.after_view(doubted(1.0), 1.0) is None
    end = check(watch.after_view(doubted(1.0), 1.0), "DOUBTFUL")
    assert "BAND_NARROW" in end.detail
    assert "views do not fit together" in end.detail
    assert end.figures["overlap"] == 7.0


def test_a_success_is_given_once_the_doubt_is_gone_or_where_it_is_only_noted():
    watch = monitor(doubt_views=2)
    assert watch.after_view(doubted(1.0), 1.0) is None
    check(watch.after_view(partly(1.0), 1.0), "BAND_NARROW")
    check(monitor(doubt_views=2).after_view(doubted(1.0, Level.NOTED), 1.0), "BAND_NARROW")


def test_a_success_without_a_test_of_overlaps_waits_for_views_that_overlap():
    untested = dataclasses.replace(
        doubted(1.0), checks=(Check("overlap", math.nan, 3.8, Level.UNTESTED),)
    )
    watch = monitor(doubt_views=2)
    assert watch.after_view(untested, 1.0) is None
    check(watch.after_view(doubted(1.0, Level.GOOD), 1.0), "BAND_NARROW")
    end = monitor(doubt_views=0).after_view(untested, 1.0)
    assert end.reason.value == "DOUBTFUL"
    assert end.detail.endswith("not tested yet: whether the views fit together")
    assert all(math.isfinite(figure) for figure in end.figures.values())


def lacking(name: str) -> SurfaceBelief:
    """All of it narrow, but a check has not been made."""
    return dataclasses.replace(partly(1.0), checks=(Check(name, math.nan, 3.5, Level.UNTESTED),))


def after(views: int, **settings) -> TerminationMonitor:
    """A monitor of an episode that has taken some views."""
    watch = monitor(**settings)
    for _ in range(views):
        assert watch.after_view(partly(0.5), 1.0) is None
    return watch


def test_an_untested_bias_calls_for_views_and_forbids_a_success_they_could_contradict():
    watch = after(7, doubt_views=2)
    assert not watch.in_doubt
    for _ in range(2):
        assert watch.after_view(lacking("bias"), 1.0) is None
        assert watch.in_doubt
        assert watch.withheld is None
    end = check(watch.after_view(lacking("bias"), 1.0), "DOUBTFUL")
    assert end.detail.endswith("not tested yet: whether no displacement is common to the views")
    check(after(7, doubt_views=0).after_view(lacking("bias"), 1.0), "DOUBTFUL")
    watch = after(7, doubt_views=2)
    assert watch.after_view(lacking("bias"), 1.0) is None
    check(watch.after_view(partly(1.0), 1.0), "BAND_NARROW")
    # switched off, it is not among the checks
    check(after(7).after_view(partly(1.0), 1.0), "BAND_NARROW")


@pytest.mark.parametrize(("views", "more"), [(2, 0), (3, 2), (4, 1)])
def test_a_small_object_takes_views_for_its_bias_only_where_they_can_make_the_test(views, more):
    """Six views are needed: with two more, an object seen from four or five comes to them, one from
    three does not.
    """
    watch = after(views, doubt_views=2)
    for _ in range(more):
        assert watch.after_view(lacking("bias"), 1.0) is None
    end = watch.after_view(lacking("bias") if not more else partly(1.0), 1.0)
    check(end, "BAND_NARROW")
    assert len(watch.history) == views + more + 1


def test_an_untested_accuracy_calls_for_views_and_leaves_what_was_declared_in_the_band():
    watch = after(9, doubt_views=2)
    for _ in range(2):
        assert watch.after_view(lacking("accuracy"), 1.0, farthest=lambda: 0.5) is None
        assert watch.in_doubt
    end = check(watch.after_view(lacking("accuracy"), 1.0, farthest=lambda: 0.5), "BAND_NARROW")
    assert end.detail.endswith(
        "not tested yet: whether the views share no error beyond what is declared"
    )
    check(
        after(9, doubt_views=2).after_view(lacking("accuracy"), 1.0, farthest=lambda: 0.2),
        "BAND_NARROW",
    )
    check(after(9, doubt_views=0).after_view(lacking("accuracy"), 1.0), "BAND_NARROW")
    watch = after(9, doubt_views=2)
    assert watch.after_view(lacking("accuracy"), 1.0) is None
    assert watch.after_view(doubted(1.0), 1.0) is None
    check(watch.after_view(doubted(1.0), 1.0), "DOUBTFUL")


def test_a_success_that_waits_for_a_test_holds_where_no_view_can_be_taken():
    check(after(9, max_views=10).after_view(lacking("accuracy"), 1.0), "BAND_NARROW")
    check(after(9, max_views=10).after_view(lacking("bias"), 1.0), "MAX_VIEWS")
    for name, reasons in (
        ("accuracy", ("BAND_NARROW", "BAND_NARROW")),
        ("bias", ("MAX_TRAVEL", "MAX_DURATION")),
    ):
        watch = after(9, max_travel=20.0, max_duration=60.0)
        assert watch.after_view(lacking(name), 1.0) is None
        check(watch.before_view(1.0, lacking(name), path_length=21.0), reasons[0])
        check(watch.out_of_time(60.0), reasons[1])
    watch = after(9, max_duration=60.0)
    assert watch.after_view(lacking("accuracy"), 1.0) is None
    assert watch.after_view(partly(0.5), 2.0) is None
    check(watch.out_of_time(60.0), "MAX_DURATION")


def test_no_gain_calls_for_no_view():
    check(after(6, min_gain=5.0).before_view(4.0, lacking("bias")), "DOUBTFUL")
    check(after(5, min_gain=5.0).before_view(4.0, lacking("bias")), "NO_GAIN")
    end = check(after(6, min_gain=5.0).before_view(4.0, lacking("accuracy")), "NO_GAIN")
    assert end.detail.endswith(
        "not tested yet: whether the views share no error beyond what is declared"
    )


def test_no_gain_is_doubtful_at_once_and_other_ends_keep_their_reason():
    check(monitor(min_gain=5.0).before_view(4.0, doubted(0.5)), "DOUBTFUL")
    check(monitor(max_views=1).after_view(doubted(0.5), 1.0), "MAX_VIEWS")


class _Says:
    """A certificate that says the probabilities one after the other."""

    target = 0.95

    def __init__(self, *probabilities: float) -> None:
        self._said = iter(probabilities)

    def estimate(self, believed, taken, delta, margin=0.0):
        return CoverageEstimate(0.97, 0.9, 1.0, next(self._said), asked=3)


def test_where_a_certificate_asks_for_several_views_in_a_row_others_undo_them():
    says = _Says(1.0, 0.99, 0.5, 0.96, 1.0, 0.98)
    watch = TerminationMonitor(TerminationSettings(**OFF), says)
    for reached in (1, 2, 0, 1, 2):
        assert watch.after_view(partly(0.5), 1.0) is None
        assert watch.estimate.reached == reached
    detail = check(watch.after_view(partly(0.5), 1.0), "COVERED").detail
    assert detail.endswith(
        "98.0% of the posterior shapes, and in enough of them for 3 views in a row"
    )


def test_a_journal_keeps_how_often_the_target_was_reached():
    estimate = CoverageEstimate(0.97, 0.9, 1.0, 0.99, asked=3, reached=2)
    record = json.loads(json.dumps(to_plain(estimate)))
    assert from_plain(CoverageEstimate, record, "estimate") == estimate
    older = {name: value for name, value in record.items() if name not in ("asked", "reached")}
    assert from_plain(CoverageEstimate, older, "estimate").asked == 1


def test_a_view_next_to_one_that_was_taken_keeps_no_episode_going_where_all_else_is_barred():
    """Of four views the last one is blocked, and the first one lies where the camera has been."""
    views = circle(ViewSpaceSettings(num_views=4, blocked_arcs=(4.0, 5.0)))
    planner = RolloutPlanner(
        ExpectedMarginalCoverage(), Scene(), views, DecisionSettings(planner="rollout")
    )
    excluded = views.excluded(0.0, [at(0.0)], 0.1)
    assert excluded.tolist() == [Exclusion.REVISIT, 0, 0, Exclusion.ARC]
    for other, ends in ((0.5, True), (1.5, False)):
        gain = np.array([9.0, other, 0.2, 8.0])
        figures = 0.5, 0.5, math.nan, math.nan
        found = (views.candidates, gain, 0.0 * gain, excluded)
        decision = Decision(at(1.0), *figures, *found, promised=gain)
        ended = monitor().only_barred(decision, planner)
        assert (ended is not None) is ends
        if ended is not None:
            assert check(ended, "NO_REACHABLE_VIEW").figures["predicted_gain"] == 0.5
