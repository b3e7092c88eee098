"""Events of a planner's episode: inputs, the tick of a clock, answers, what the operator asks, what
the robot reports.

Each is a function of the core, and of the time now, nanoseconds; it returns what is to be sent, or
a message.
"""

from __future__ import annotations

from functools import partial

from nbv_planner.errors import InputRejectedError
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.view_space import farthest_angle
from nbv_planner.session import facts, targets
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Answer, EndQuestion, Question, State, Verdict
from nbv_planner.session.state import Goal, SurfaceOrigin, Target
from nbv_planner.surface.seam import PublishedSurface


def take_surface(
    core: PlannerCore, belief: PublishedSurface, stamp: int, origin: SurfaceOrigin | None = None
) -> int:
    """Process a belief whose newest scan is from `stamp` (nanoseconds); returns the number of views
    that are lost.

    A belief that is older than those of views that have counted, and depends on fewer measurements,
    comes from a mapper that has lost these views. They no longer count and may be taken again.

    Raises:
        InputRejectedError: `other_prior` or `other_grid`: the episode has begun with another
            `origin`; names both.
    """
    episode = core.episode
    if origin is not None:
        before = episode.origin
        if episode.began is not None and before is not None and not before.goes_on_as(origin):
            reason, detail = before.refusal_of(origin)
            core.inputs.refused = belief, stamp, origin, detail
            raise InputRejectedError(reason, detail)
        core.inputs.refused = None
        if origin != episode.origin:
            core.note(facts.Sourced(origin))
    core.inputs.belief, core.inputs.belief_stamp = belief, stamp
    hits = belief.count
    lost = sum(counted > stamp for counted in episode.counted)
    if episode.termination is not None or hits >= episode.hits or not lost:
        return 0
    core.note(facts.Lost(lost, hits))
    core.token = object()  # a decision under way is about the views that are lost
    core.drive.forget_view()
    return lost


def clock_went_back(core: PlannerCore, before: int, now: int) -> Goal | None:
    """Continue with a clock that has jumped back from `before` to `now` (ns); returns the goal to
    publish again.

    Received inputs are stamped as of now; the present goal gets a new stamp, since scans older than
    it never count.
    """
    inputs = core.inputs
    inputs.belief_stamp = min(inputs.belief_stamp, now)
    inputs.pose_stamp = min(inputs.pose_stamp, now)
    core.note(facts.ClockWentBack(before, now))
    core.arrival.aim(core.episode, inputs.pose_stamp)
    core.arrival.rest, core.waiting_since = None, None
    core.drive.disturb()
    return core.episode.goal


def update(core: PlannerCore, now: int) -> Target | None:
    """Proceed as far as the inputs allow, deciding at once.

    Returns a target to publish (a new one, or the present one again after `goal_timeout`), or None.
    """
    target = advance(core, now)
    while (due := question(core, now)) is not None:
        target = answer(core, due, due.decide(), now)
    return target


def advance(core: PlannerCore, now: int) -> Target | None:
    """Proceed as far as the inputs allow without deciding.

    Returns the present target if it is to be sent again, after `goal_timeout`, or the home view;
    else None.
    """
    if stood := core.arrival.look(core.episode, core.inputs):
        core.note(stood)
    targets.withdraw_barred(core)
    state = core.state
    if state in (State.WAITING, State.MEASURING):
        core.waiting_since = now if core.waiting_since is None else core.waiting_since
    else:
        core.waiting_since = None
    if state not in (State.MOVING, State.MEASURING):
        return None
    target = None
    scanned = core.arrival.scanned(core.episode, core.inputs.belief_stamp)
    if scanned and core.inputs.belief is not None:
        targets.count_view(core, core.inputs.belief)
    elif state is State.MOVING and not scanned:
        target = targets.move(core, now)
    if core.episode.ending is None and not core.episode.unjudged:
        late = core.monitor.out_of_time(core.episode.elapsed(now))
        if late:
            targets.end(core, core.episode.withheld or late)
            return None
    return target


def question(core: PlannerCore, now: int) -> Question | EndQuestion | None:
    """Return the question that is due: whether the episode ends, or for the next view.

    It is returned again until there is an answer.
    """
    belief = core.inputs.belief
    if core.state is not State.PLANNING or belief is None:
        return None
    if core.episode.unjudged:
        visited = core.episode.visited
        elapsed = core.episode.elapsed(now)
        farthest = partial(farthest_angle, core.planner.views, visited)
        return EndQuestion(targets.informed(core), belief, elapsed, visited, farthest, core.token)
    if core.episode.began is None:
        core.note(facts.Asked(now))
    return targets.ask(core, now)


def answer(
    core: PlannerCore, question: Question | EndQuestion, found: Answer | Verdict, now: int
) -> Goal | None:
    """Process an answer: set the next goal, and return it, or end.

    An answer to an outdated question (paused, stopped or reset in between) changes nothing.
    """
    if core.state is not State.PLANNING or question.episode is not core.token:
        return None
    if isinstance(found, Verdict):
        if core.episode.unjudged:
            home = found.ended is not None and targets.goes_home(core, found.ended)
            ended, ending = (None, found.ended) if home else (found.ended, None)
            judged = (found.coverage, found.doubt, found.estimate)
            core.note(facts.Judged(*judged, ended, ending, found.withheld))
        return None
    assert isinstance(question, Question)
    if found.decision is None or found.ended:
        targets.end(core, found.ended or core.episode.withheld or targets.no_view(core, question))
        return None
    return targets.set_out(core, question, found, now)


def start(core: PlannerCore, now: int) -> str:
    """Begin (or resume after a pause); returns a message about what happened.

    Raises:
        ValueError: the episode has ended.
    """
    ended = core.episode.termination
    if ended is not None:
        raise ValueError(f"the episode has ended ({ended.reason.value}); call reset first")
    core.note(facts.Started())
    pause(core, False, now)
    return "started"


def withdraw_start(core: PlannerCore, detail: str) -> None:
    """Wait for another start, since the checks that follow the first poses forbid this one:
    `detail` says why.
    """
    core.note(facts.StartWithdrawn(detail))


def pause(core: PlannerCore, paused: bool, now: int) -> None:
    """Pause or resume; the time for reaching a goal restarts when it resumes."""
    if paused or core.episode.paused:
        core.drive.disturb()
    core.note(facts.Paused(paused, now))


def stop(core: PlannerCore) -> None:
    """End the episode for the reason STOPPED, unless it has ended already; during the return home,
    where it is.
    """
    detail = "stopped by the operator"
    if core.episode.ending is not None:
        targets.end_home(core, f"{detail} during the return to the home view")
    figures = {"views": float(len(core.episode.visited))}
    targets.end(core, Termination(TerminationReason.STOPPED, figures, detail))


def fail(core: PlannerCore, detail: str) -> None:
    """End the episode for the reason FAILED, unless it has ended already; `detail` states what went
    wrong.
    """
    targets.end(core, Termination(TerminationReason.FAILED, {}, detail))


def skip(core: PlannerCore, now: int) -> str:
    """Give up the goal under way, for `unreachable_duration`, or the return home; returns a message
    about what happened.

    Raises:
        ValueError: no goal is under way.
    """
    episode = core.episode
    if episode.goal is not None:
        view = episode.goal.pose
        core.note(facts.Skipped(targets.left_out(core, view, now, missed=False)))
        view = view.about(core.planner.views.centre)
        return f"skipped the view at {view.summary(core.planner.circle, 6)}"
    if episode.termination is not None or episode.ending is None:
        raise ValueError("no goal is under way")
    targets.end_home(core, "the return home was skipped")
    return "skipped the return home"


def on_the_way(core: PlannerCore, stamp: int) -> bool:
    """Whether the camera is, as far as known, moving to the target named `stamp`."""
    episode = core.episode
    under_way = None if episode.arrived or episode.termination else episode.target
    return under_way is not None and under_way.stamp == stamp


def failed(core: PlannerCore, stamp: int, now: int) -> Target | None:
    """The robot gave up the target named `stamp`, as if `goal_timeout` had passed; returned if sent
    again.
    """
    if not on_the_way(core, stamp):
        return None
    if core.episode.paused:
        core.note(facts.Kept())
        return None
    return targets.try_again(core, now, reported=True)


def interrupted(core: PlannerCore, stamp: int, detail: str) -> None:
    """Another client has cancelled the target named `stamp`: no failure, but a reason to pause."""
    if on_the_way(core, stamp):
        core.drive.disturb()
        core.note(facts.Paused(True, core.episode.sent, detail))
