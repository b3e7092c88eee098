"""Where the camera goes: the next view, until it counts, is missed or withdrawn, and home."""

from __future__ import annotations

import copy
import math
from dataclasses import fields, replace

import numpy as np

from nbv_planner.planning.endings import (
    MOST_APPROACHES,
    Termination,
    TerminationReason,
    nothing_found,
)
from nbv_planner.planning.motion import TimeSettings, learned_pace
from nbv_planner.planning.planners import DecisionSettings
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.planning.view_space import excluded_numbers, excluded_text, zones_text
from nbv_planner.session import facts
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Answer, Question, State
from nbv_planner.session.state import (
    Goal,
    LeftOut,
    Miss,
    Target,
    in_a_row,
    reach_of,
    remedy,
)
from nbv_planner.surface.seam import PublishedSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import centre_of

# Terminations after which the camera stays where it is.
_AT_ONCE = {TerminationReason.STOPPED, TerminationReason.FAILED}


def ask(core: PlannerCore, now: int) -> Question:
    """Return the question for the next view, in any state.

    Raises:
        ValueError: there is no belief yet.
    """
    inputs = core.inputs
    if inputs.belief is None:
        raise ValueError("no surface received yet")
    current, visited = core.inputs.pose, core.episode.visited
    core.planner.update(inputs.belief, current)
    planner = core.planner.snapshot()
    planner.settings = pace(core) if core.settings.learn_speeds else planner.settings
    planner.scan_history = core.episode.scan_history
    if planner.ledger is not None:
        planner.ledger.restore(visited, core.episode.rounds[: len(visited)])
    return Question(
        planner,
        informed(core),
        inputs.belief,
        inputs.belief_stamp,
        current,
        visited,
        now,
        core.token,
    )


def informed(core: PlannerCore) -> TerminationMonitor:
    """A copy of the monitor that knows of the views so far."""
    monitor = copy.copy(core.monitor)
    episode = core.episode
    monitor.history = list(episode.history)
    monitor.doubts = list(episode.doubts)
    monitor.estimate = episode.estimate
    monitor.withheld = episode.withheld
    return monitor


def pace(core: PlannerCore) -> DecisionSettings:
    """The planner's settings with the speeds of the trips driven so far."""
    return learned_pace(core.episode.trips, core.planner.settings)


def set_out(core: PlannerCore, question: Question, answer: Answer, now: int) -> Goal:
    """Send the camera to the view that was decided."""
    decision = answer.decision
    planner = question.planner
    views = core.planner.views
    assert decision is not None
    view = decision.view
    visited = core.episode.visited
    trip = core.drive.driven(views, Poses.of(visited[-1:]), now)
    core.drive.set_out(views, question.current_view, view, planner.settings)
    figures = dict(answer.figures or {})
    pose = core.inputs.pose
    figures["travel"] = (
        math.nan if pose is None else float(views.ground_path_length(pose, Poses.of([view]))[0])
    )
    if core.drive.trip is not None:
        figures["predicted_seconds"] = core.drive.trip.predicted
    if core.settings.learn_speeds:
        figures |= {
            field.name: getattr(planner.settings, field.name) for field in fields(TimeSettings)
        }
    if core.episode.estimated_scene is not None:
        figures["centre_x"], figures["centre_y"] = centre_of(core.episode.estimated_scene)
    number = len(visited) + 1
    stamp = question.belief_stamp
    # What was asked for the answer alone is not published.
    published = replace(decision, promised=None)
    goal = Goal(view, now, published, number, answer.milliseconds, stamp, figures)
    played = None if planner.ledger is None else planner.ledger.rounds([*visited, view])[-1]
    core.note(facts.Decided(goal, played, trip))
    core.arrival.set_out(core.episode, core.inputs.pose)
    return goal


def no_path(core: PlannerCore, question: Question, view: CameraPose, now: int) -> None:
    """The robot has no path to the view of an answer, which has not been given: leave it out as one
    not reached.
    """
    if core.state is State.PLANNING and question.episode is core.token:
        core.note(facts.Barred(left_out(core, view, now, missed=True)))


def left_out(
    core: PlannerCore,
    view: CameraPose,
    now: int,
    *,
    missed: bool,
    halt: CameraPose | None = None,
    start: CameraPose | None = None,
) -> tuple[LeftOut, ...]:
    """All candidates that are left out once a view was `missed`, or skipped."""
    views = copy.copy(core.planner.views)
    seconds = now * 1e-9
    until = seconds + core.settings.unreachable_duration
    if missed:
        tolerance = core.arrival.settings.position_tolerance
        views.mark_missed(view, start, halt, tolerance, seconds, until)
    else:
        views.mark_unreachable(view, until)
    return tuple((views.candidates[index], end) for index, end in views.unreachable.items())


def no_view(core: PlannerCore, question: Question) -> Termination:
    """Explain why no candidate may be chosen."""
    planner, episode = question.planner, core.episode
    now = question.now * 1e-9
    radius = planner.settings.revisit_radius
    excluded = planner.views.excluded(now, question.visited, radius)
    figures = {name: float(number) for name, number in excluded_numbers(excluded).items()}
    detail = f"no candidate view may be chosen: {excluded_text(excluded)}"
    if zones := zones_text(planner.views):
        detail += f"; {zones}"
    if episode.last_miss is not None:
        figures |= episode.last_miss.figures()
        detail += f"; {episode.unreached_views} goals given up, the last one {episode.last_miss}"
    return Termination(TerminationReason.NO_REACHABLE_VIEW, figures, detail)


def withdraw_barred(core: PlannerCore) -> None:
    """Withdraw the goal that the camera is going to if belief or ground have changed so that it
    must not go there.

    A camera that has arrived stays for its view.
    """
    belief, goal = core.inputs.belief, core.episode.goal
    if goal is None or core.episode.arrived or belief is None:
        return
    views = core.planner.views
    core.planner.update(belief, core.inputs.pose)
    judged = core.judged
    core.judged = (belief, views.ground)
    if judged is not None and judged[0] is belief and judged[1] is views.ground:
        return
    (reasons,) = views.off_ground(Poses.of([goal.pose]))
    if reasons:
        place = f"x {goal.pose.x:.4g} m, y {goal.pose.y:.4g} m"
        why = excluded_text(np.array([reasons])).removeprefix("1 ")
        core.note(facts.Withdrawn(f"withdrew the view at {place}: it is now {why}"))


def move(core: PlannerCore, now: int) -> Target | None:
    """Set out for home, or wait for the arrival; send the target again, or give it up, after the
    timeout.
    """
    episode = core.episode
    if episode.target is None:
        home = Target(core.planner.views.at_angle(core.settings.home_angle), now)
        core.note(facts.SentHome(home))
        return home
    if episode.arrived:
        end_home(core, "the camera is back at the home view")
        return None
    if episode.again:
        core.note(facts.SentAgain(now, episode.tries))
        return episode.target
    late = (now - episode.sent) * 1e-9 > core.settings.goal_timeout
    return try_again(core, now) if late else None


def try_again(core: PlannerCore, now: int, *, reported: bool = False) -> Target | None:
    """Send the target again, or give it up after the last retry; `reported`: the robot itself has
    reported that it gave it up.
    """
    episode = core.episode
    retries = core.settings.goal_retries
    miss = core.arrival.miss(episode, core.inputs, retries)
    again = episode.tries < retries
    if again:
        core.note(facts.SentAgain(now, episode.tries + 1, miss))
    advice = remedy(near := in_a_row((*episode.near, miss)))
    if episode.goal is not None and advice:
        distance, turn = reach_of(near)
        figures = {**miss.figures(), "position_reach": distance, "heading_reach": turn}
        detail = f"{advice}; the last one {miss}"
        end(core, Termination(TerminationReason.NO_REACHABLE_VIEW, figures, detail))
        return core.episode.goal
    if again:
        return episode.target
    if episode.goal is None:
        core.note(facts.SentAgain(now, episode.tries, miss))
        end_home(core, "the home view was not reached")
        return None
    return _give_up(core, episode.goal, miss, now, reported=reported)


def _give_up(core: PlannerCore, goal: Goal, miss: Miss, now: int, *, reported: bool) -> Goal | None:
    """Leave out a goal that was missed, or send it again where stamps of another clock do not show
    whether it was reached.

    The episode ends once the camera has not moved for so many goals.
    """
    watch = core.arrival
    other_clock = not reported and not math.isnan(miss.behind)
    still = watch.rest is not None and not math.isnan(miss.distance)
    if other_clock or (still and not reported):
        watch.vain += 1
        if 0 < core.settings.still_goals <= watch.vain:
            so_far = f"{watch.vain} goals in a row were not reached, the last one: {miss}"
            core.note(facts.SentAgain(now, core.episode.tries, miss))
            detail = so_far if other_clock else f"{watch.standstill(core.episode)}: {so_far}"
            end(core, Termination(TerminationReason.FAILED, miss.figures(), detail))
            return None
    if other_clock:
        core.note(facts.SentAgain(now, 0, miss))
        return goal
    halt, start = core.inputs.pose, core.drive.start
    missed = left_out(core, goal.pose, now, missed=True, halt=halt, start=start)
    core.note(facts.Missed(miss, missed))
    return None


def count_view(core: PlannerCore, belief: PublishedSurface) -> None:
    """Count the view of the goal, of which a scan is in the surface."""
    goal = core.episode.goal
    episode = core.episode
    assert goal is not None
    if episode.estimated_scene is not None and not episode.estimated_scene.views:
        core.note(facts.Approached())
        if core.episode.approaches >= MOST_APPROACHES:
            end(core, nothing_found(core.episode.approaches))
        return
    core.drive.arrived(goal.stamp, core.arrival.since, episode.tries)
    core.note(facts.Counted(core.inputs.belief_stamp, belief.count))
    core.arrival.moved()


def goes_home(core: PlannerCore, termination: Termination) -> bool:
    """Whether the camera returns home before an episode ends for this reason."""
    return core.settings.return_home and termination.reason not in _AT_ONCE


def end_home(core: PlannerCore, detail: str) -> None:
    """End the episode for the reason for which the camera returned home."""
    ending = core.episode.ending
    assert ending is not None
    core.note(facts.Ended(replace(ending, detail=f"{ending.detail}; {detail}")))


def end(core: PlannerCore, termination: Termination) -> None:
    """End the episode, or send the camera home first."""
    if core.episode.termination is None:
        home = goes_home(core, termination)
        core.note(facts.Returning(termination) if home else facts.Ended(termination))
