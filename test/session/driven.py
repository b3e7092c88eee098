"""A core that is driven through everything that can happen to it, with what was seen."""

from __future__ import annotations

import contextlib
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "planning"))

from test_episode_memory import hit
from test_session import SECOND, band, feed, session

from nbv_planner.session import events
from nbv_planner.session.questions import State

Seen = dict[tuple[State, str], tuple[set[str], set[State]]]


class Driver:
    """Draws events; keeps which facts and states followed each of them."""

    def __init__(self, seed: int, seen: Seen) -> None:
        self.rng, self.seen, self.now = np.random.default_rng(seed), seen, SECOND
        draw = self.rng.integers
        self.run = session(
            goal_timeout=5.0,
            num_views=int(draw(3, 9)),
            wait_for_start=bool(draw(2)),
            return_home=bool(draw(2)),
            still_goals=int(draw(3)),
            goal_retries=int(draw(2)),
            termination={
                "max_views": int(draw(5)),
                "max_duration": float(draw(2) * draw(60)),
                "certify": False,
            },
        )
        self.views = 0
        self.event("surface", lambda: events.take_surface(self.run, hit(band(math.pi), 0), 0))
        feed(self.run, pose_angle=0.0, pose_stamp=0)
        self.run.inputs.subscribers = 2

    def event(self, name: str, happens) -> None:
        before, self.run.facts[:] = self.run.state, []
        with contextlib.suppress(ValueError):
            happens()
        facts, states = self.seen[before, name]
        facts.update(type(fact).__name__ for fact in self.run.facts)
        states.add(self.run.state)

    def step(self) -> None:
        run, draw = self.run, self.rng.integers
        self.now += int(draw(1, 3)) * SECOND
        target = run.episode.target
        what = int(draw(16))
        if what < 5 and target is not None:
            run.inputs.pose, run.inputs.pose_stamp = target.pose, self.now
        elif what == 5:
            feed(run, pose_angle=float(draw(6)), pose_stamp=self.now)
        elif what < 9:
            self.views += 1
            self.event(
                "surface",
                lambda: events.take_surface(run, hit(band(float(draw(6))), self.views), self.now),
            )
        elif what == 9:
            self.now += 6 * SECOND
        self.event("tick", lambda: events.advance(run, self.now))
        question = run.state is State.PLANNING and events.question(run, self.now)
        if question and draw(4):
            self.event("answer", lambda: events.answer(run, question, question.decide(), self.now))
        self.seldom(target)

    def seldom(self, target) -> None:
        run, now = self.run, self.now
        stamp = 0 if target is None else target.stamp
        seldom = {
            0: ("start", lambda: events.start(run, now)),
            1: ("pause", lambda: events.pause(run, True, now)),
            2: ("resume", lambda: events.pause(run, False, now)),
            3: ("skip", lambda: events.skip(run, now)),
            4: ("robot gave up", lambda: events.failed(run, stamp, now)),
            5: ("robot was taken", lambda: events.interrupted(run, stamp, "another client")),
            6: ("clock went back", lambda: events.clock_went_back(run, now, now - SECOND)),
            7: ("stop", lambda: events.stop(run)),
            8: ("reset", run.begin),
            9: ("surface", lambda: events.take_surface(run, band(1.0), 0)),
            10: ("checks failed", lambda: events.withdraw_start(run, "no")),
            11: ("error", lambda: events.fail(run, "an error")),
        }
        drawn = int(self.rng.integers(40))
        if drawn == 10 and (run.episode.goal or run.state not in (State.WAITING, State.PLANNING)):
            return  # checks are made before the first goal
        if drawn in seldom:
            self.event(*seldom[drawn])
        if drawn == 6:
            self.now -= SECOND


def seen_in(episodes: int, steps: int = 60) -> Seen:
    """What followed each event in each state, in so many episodes."""
    seen: Seen = defaultdict(lambda: (set(), set()))
    for seed in range(episodes):
        driver = Driver(seed, seen)
        for _ in range(steps):
            driver.step()
    return dict(seen)
