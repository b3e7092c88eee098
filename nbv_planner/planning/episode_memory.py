"""What a planning session keeps in mind of its episode, and how that survives: a restart, a mapper, a clock."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from nbv_planner.camera import CameraPose
from nbv_planner.errors import StateFileError
from nbv_planner.planning.goal import Goal, Target
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.session_state import (
    content_error,
    finite,
    goal_from_state,
    goal_state,
    rounds_from_state,
    rounds_state,
    termination_from_state,
    termination_state,
    truth,
    whole,
)
from nbv_planner.planning.termination import Termination, TerminationMonitor
from nbv_planner.surface import SurfaceBelief


@dataclass
class Inputs:
    """What has come in so far.

    Attributes:
        belief: newest surface belief.
        belief_stamp: time of the newest scan in it, nanoseconds.
        pose: newest camera pose.
        pose_stamp: its time, nanoseconds.
        subscribers: number of those who hear the goals.
        hearers: who they should be, in words.
    """

    belief: SurfaceBelief | None = None
    belief_stamp: int = 0
    pose: CameraPose | None = None
    pose_stamp: int = 0
    subscribers: int = 0
    hearers: str = "mapper and robot"


class EpisodeMemory:
    """What is known of the episode.

    Attributes:
        planner: who decides; it knows which views could not be reached, and may keep an account of the rounds.
        monitor: who ends the episode; it knows the coverage after each view.
        inputs: what has come in.
        started: whether the episode may begin.
        paused: whether it rests.
        termination: why it ended, or None.
        ending: why it is about to end, once the camera is home, or None.
        goal: view that the camera has been sent to, or None.
        visited: angles of the views taken so far, radians.
        lost_views: number of views that had counted and that the mapper has lost.
        skipped_views: number of goals that were given up because somebody asked for it.
        unreached_views: number of goals that were given up because they were not reached.
    """

    def __init__(self, planner: Planner, monitor: TerminationMonitor) -> None:
        """Know nothing yet."""
        self.planner = planner
        self.monitor = monitor
        self.inputs = Inputs()
        self.forget()

    def forget(self) -> None:
        """Forget the episode; inputs that have come in stay."""
        self.monitor.reset()
        self.planner.views.clear_unreachable()
        self.started = self.paused = False
        self.termination: Termination | None = None
        self.ending: Termination | None = None
        self._home: Target | None = None
        self.goal: Goal | None = None
        self.visited: list[float] = []
        self.lost_views = self.skipped_views = self.unreached_views = 0
        self._counted: list[int] = []
        self._hits = 0
        self._episode = object()
        self._began: int | None = None
        self._arrived = False
        self._away = 0
        self._sent = 0
        self._tries = 0
        self._waiting_since: int | None = None

    def take_surface(self, belief: SurfaceBelief, stamp: int) -> int:
        """Take in a belief whose newest scan is from `stamp` (nanoseconds).

        A belief that is older than those of views that have counted, and rests on fewer measurements, comes from a
        mapper that has lost these views. They count no more and may be taken again.

        Returns:
            Number of views that are lost.
        """
        self.inputs.belief, self.inputs.belief_stamp = belief, stamp
        hits = int(belief.hits.sum())
        if self.termination is not None or hits >= self._hits:
            return 0
        lost = sum(counted > stamp for counted in self._counted)
        if lost:
            del self.visited[-lost:], self._counted[-lost:]
            self.monitor.history = self.monitor.history[:-lost]
            self.lost_views += lost
            self._hits = hits
        return lost

    def clock_went_back(self, before: int, now: int) -> Goal | None:
        """Go on by a clock that has gone back from `before` to `now` (nanoseconds).

        What has come in counts as from now; the present goal gets a new stamp, since scans older than it never count.

        Returns:
            The present goal to be sent out again, or None.
        """
        inputs = self.inputs
        inputs.belief_stamp, inputs.pose_stamp = min(inputs.belief_stamp, now), min(inputs.pose_stamp, now)
        self._counted = [min(counted, now) for counted in self._counted]
        self._began = None if self._began is None else self._began + now - before
        self._sent, self._waiting_since, self._home = now, None, None
        self.planner.views.shift_unreachable((now - before) * 1e-9)
        if self.goal is not None:
            self.goal = dataclasses.replace(self.goal, stamp=now)
            self._arrived, self._away = False, now - 1
        return self.goal

    @property
    def milestone(self) -> tuple[object, ...]:
        """Changes whenever something does that must not be lost."""
        goal = None if self.goal is None else self.goal.stamp
        return (
            self._episode, self.started, self.paused, self.termination, self.ending, goal, self._tries, self._arrived,
            len(self.visited), self.lost_views, tuple(self.planner.views.unreachable.items()),
        )

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything of the episode that is to survive the process, as plain values and arrays by name.

        What has come in is not in it, since it comes again; nor are the settings.
        """
        goal, arrays = goal_state(self.goal)
        values = {
            "started": self.started, "paused": self.paused, "visited": list(self.visited),
            "lost_views": self.lost_views, "counted": list(self._counted), "hits": self._hits, "began": self._began,
            "skipped_views": self.skipped_views, "unreached_views": self.unreached_views,
            "arrived": self._arrived, "away": self._away, "sent": self._sent, "tries": self._tries, "goal": goal,
            "termination": termination_state(self.termination), "ending": termination_state(self.ending),
            "coverage": list(self.monitor.history),
            "unreachable": [[index, until] for index, until in self.planner.views.unreachable.items()],
        }
        if self.planner.account is not None:
            values["account"] = rounds_state(self.planner.account.rounds(self._chosen))
        return values, arrays

    @property
    def _chosen(self) -> list[float]:
        """Views whose rounds the planner may have to account for: those taken, and that of the goal under way."""
        return [*self.visited, *([] if self.goal is None else [self.goal.decision.view_angle])]

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on with the episode that another session gave as what it :meth:`saved`.

        Raises:
            StateFileError: `content`: it is no such state; nothing has changed then.
        """
        twin = copy.copy(self)
        twin.planner, twin.monitor = self.planner.snapshot(), copy.copy(self.monitor)
        try:
            twin._fill(values, arrays)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, StateFileError):
                raise
            raise content_error(f"it is no planning session ({type(error).__name__}: {error})") from error
        self._fill(values, arrays)
        self._episode, self._waiting_since = object(), None

    def _fill(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the values, each checked."""
        self.started, self.paused = truth("started", values["started"]), truth("paused", values["paused"])
        self.visited = [finite("visited", view) for view in values["visited"]]
        self._counted = [whole("counted", stamp) for stamp in values["counted"]]
        self.lost_views, self._hits = whole("lost_views", values["lost_views"]), whole("hits", values["hits"])
        self.skipped_views = whole("skipped_views", values["skipped_views"])
        self.unreached_views = whole("unreached_views", values["unreached_views"])
        self._began = None if values["began"] is None else whole("began", values["began"])
        self._arrived, self._away = truth("arrived", values["arrived"]), whole("away", values["away"])
        self._sent, self._tries = whole("sent", values["sent"]), whole("tries", values["tries"])
        self.goal = goal_from_state(values["goal"], arrays)
        self.termination = termination_from_state(values["termination"])
        self.ending, self._home = termination_from_state(values["ending"]), None
        self.monitor.history = [finite("coverage", coverage) for coverage in values["coverage"]]
        self.planner.views.unreachable = {
            whole("unreachable", index): finite("unreachable", until) for index, until in values["unreachable"]
        }
        if len(self._counted) != len(self.visited) or (self._arrived and self.goal is None):
            raise content_error("its views, their surfaces and its goal do not fit together")
        self._fill_account(values)

    def _fill_account(self, values: Mapping[str, Any]) -> None:
        """Take over the planner's account, last: it belongs to views that have been checked, and copies share it.

        A state of before it was kept has none: nothing is known of its rounds then.
        """
        if self.planner.account is None:
            return
        chosen = self._chosen
        known = "account" in values
        rounds = rounds_from_state(values["account"], len(chosen)) if known else [None] * len(chosen)
        self.planner.account.restore(chosen, rounds)
