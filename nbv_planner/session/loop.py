"""The closed loop of an episode in one function: scan, belief, decision, goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Answer, EndQuestion, Question, Verdict
from nbv_planner.session.state import Goal
from nbv_planner.surface.seam import PublishedSurface


class World(Protocol):
    """What is outside of the planner: a clock, a camera that goes where it is sent, and a mapper of
    its scans.
    """

    def now(self) -> int:
        """Time, nanoseconds; later with each call by more than one."""

    def scan(self, goal: Goal) -> Sequence[MatchedScan]:
        """Go to a goal and look there, and on the way; each scan with its pose in the object
        frame.
        """

    def map(self, scans: Sequence[MatchedScan]) -> PublishedSurface:
        """The belief with these scans, too."""


def decided(question: Question | EndQuestion) -> Answer | Verdict:
    """The answer of planner and monitor; another chooser may take the place of this function."""
    return question.decide()


def views(
    core: PlannerCore, world: World, choose: Callable[[Any], Answer | Verdict] = decided
) -> Iterator[Goal]:
    """Take view after view until the episode ends; yields the goal of each once the view is
    judged.
    """
    goal: Goal | None = None
    while (question := events.question(core, world.now())) is not None:
        chosen = events.answer(core, question, choose(question), world.now())  # decision
        if isinstance(question, EndQuestion) and goal is not None:
            yield goal
        elif chosen is not None:
            goal = chosen  # goal
            scans = world.scan(goal)  # scan
            core.inputs.pose = goal.pose
            core.inputs.pose_stamp = goal.stamp + 1
            events.take_surface(core, world.map(scans), goal.stamp + 1)  # belief
            events.advance(core, goal.stamp + 1)  # the view counts
