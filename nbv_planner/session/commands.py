"""What the operator asks of a planner's episode, and what the robot reports of its motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.session import facts, targets
from nbv_planner.session.state import Target

if TYPE_CHECKING:
    from nbv_planner.session.planner_core import PlannerCore


def start(core: PlannerCore, now: int) -> str:
    """Begin (or resume after a pause); returns what happened, in words.

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
    """Wait for another start, since the checks that follow the first poses forbid this one: `detail` says why."""
    core.note(facts.StartWithdrawn(detail))


def pause(core: PlannerCore, paused: bool, now: int) -> None:
    """Pause or resume; the time for reaching a goal restarts when it resumes."""
    if paused or core.episode.paused:
        core.drive.disturb()
    core.note(facts.Paused(paused, now))


def stop(core: PlannerCore, detail: str = "stopped by the operator") -> None:
    """End the episode for the reason STOPPED, unless it has ended already; during the return home, where it is."""
    if core.episode.ending is not None:
        targets.end_home(core, f"{detail} during the return to the home view")
    targets.end(core, Termination(TerminationReason.STOPPED, {"views": float(len(core.episode.visited))}, detail))


def fail(core: PlannerCore, detail: str) -> None:
    """End the episode for the reason FAILED, unless it has ended already; `detail` states what went wrong."""
    targets.end(core, Termination(TerminationReason.FAILED, {}, detail))


def skip(core: PlannerCore, now: int) -> str:
    """Give up the goal under way, for `unreachable_duration`, or the return home; returns what happened, in words.

    Raises:
        ValueError: no goal is under way.
    """
    episode = core.episode
    if episode.goal is not None:
        view = core.seen(episode.goal.pose)
        core.note(facts.Skipped(targets.left_out(core, view, now, missed=False)))
        return f"skipped the view at {view.words(core.planner.circle, 6)}"
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
    """The robot gave up the target named `stamp`, as if `goal_timeout` had passed; returned if sent again."""
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
