"""What can happen in an episode of the planner: the state is changed by nothing else, and the
journal is their list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from nbv_planner.planning.endings import Termination
from nbv_planner.planning.motion import MOST_TRIPS, Trip
from nbv_planner.session.state import EpisodeState, Goal, LeftOut, Miss, SurfaceOrigin, Target
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.thesis.regret import Round
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import EstimatedScene


class Fact(Protocol):
    """Something that has happened in an episode."""

    def change(self, state: EpisodeState) -> EpisodeState:
        """The state after it."""


@dataclass(frozen=True)
class Begun:
    """A new episode, which knows of the one before only what is not about it."""

    started: bool
    trips: tuple[Trip, ...] = ()
    estimated_scene: EstimatedScene | None = None
    origin: SurfaceOrigin | None = None
    listed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def change(self, state: EpisodeState) -> EpisodeState:
        """Forget all else."""
        return EpisodeState(
            self.started,
            trips=self.trips,
            estimated_scene=self.estimated_scene,
            origin=self.origin,
            listed=self.listed,
        )


@dataclass(frozen=True)
class Listed:
    """The candidates are these, by name of the parameter that lists them."""

    lists: Mapping[str, tuple[float, ...]]

    def change(self, state: EpisodeState) -> EpisodeState:
        """Keep the lists."""
        return replace(state, listed=dict(self.lists))


@dataclass(frozen=True)
class Started:
    """The episode may begin, or goes on."""

    def change(self, state: EpisodeState) -> EpisodeState:
        """Let it."""
        return replace(state, started=True, refusal="")


@dataclass(frozen=True)
class StartWithdrawn:
    """The checks that follow the first poses forbid the start: `detail` says why."""

    detail: str

    def change(self, state: EpisodeState) -> EpisodeState:
        """Wait for another start."""
        return replace(state, started=False, refusal=self.detail)


@dataclass(frozen=True)
class Paused:
    """Paused or resumed at `now`; by another client of the robot, `detail` says which."""

    paused: bool
    now: int
    detail: str = ""

    def change(self, state: EpisodeState) -> EpisodeState:
        """The time for reaching a target restarts; one that was interrupted is to be sent again."""
        sent, again = (state.sent, True) if self.detail else (self.now, state.again)
        return replace(state, paused=self.paused, interruption=self.detail, sent=sent, again=again)


@dataclass(frozen=True)
class Asked:
    """The first question for a view."""

    now: int

    def change(self, state: EpisodeState) -> EpisodeState:
        """Measure the time from here."""
        return replace(state, began=self.now)


@dataclass(frozen=True, eq=False)
class Decided:
    """The next view was chosen, in a round of the regret ledger, if any, after a `trip`, if one was
    driven.
    """

    goal: Goal
    round: Round | None
    trip: Trip | None

    def change(self, state: EpisodeState) -> EpisodeState:
        """Send the camera there."""
        now = self.goal.stamp
        played = self.round
        if played is not None and not 0.0 <= played.taken <= played.best < math.inf:
            raise ValueError(
                f"round: taken {played.taken} must be between 0 and best {played.best}"
            )
        trips = state.trips if self.trip is None else (*state.trips, self.trip)[-MOST_TRIPS:]
        return replace(
            state,
            goal=self.goal,
            trips=trips,
            rounds=(*state.rounds[: len(state.visited)], self.round),
            sent=now,
            tries=0,
            again=False,
            arrived=False,
            away=now - 1,
        )


@dataclass(frozen=True, eq=False)
class SentHome:
    """The camera was sent to the home view."""

    home: Target

    def change(self, state: EpisodeState) -> EpisodeState:
        """Wait for its arrival."""
        return replace(
            state, home=self.home, sent=self.home.stamp, tries=0, again=False, arrived=False
        )


@dataclass(frozen=True)
class SentAgain:
    """The target was sent again, after a `miss` or on resuming; `tries` is how often by now."""

    now: int
    tries: int
    miss: Miss | None = None

    def change(self, state: EpisodeState) -> EpisodeState:
        """Its time begins anew."""
        return replace(state.missed(self.miss), sent=self.now, tries=self.tries, again=False)


@dataclass(frozen=True)
class Kept:
    """The robot gave up its target in a pause: it is sent again on resuming."""

    def change(self, state: EpisodeState) -> EpisodeState:
        """Keep that in mind."""
        return replace(state, again=True)


@dataclass(frozen=True)
class Stood:
    """The camera has arrived at its target or left it; the last pose that was not there is of the
    time `away`.
    """

    arrived: bool
    away: int

    def change(self, state: EpisodeState) -> EpisodeState:
        """Whether scans count."""
        return replace(state, arrived=self.arrived, away=self.away)


@dataclass(frozen=True)
class Missed:
    """The goal was given up, with all that is left out then."""

    miss: Miss
    left_out: tuple[LeftOut, ...]

    def change(self, state: EpisodeState) -> EpisodeState:
        """Choose another view."""
        given_up = state.missed(self.miss).aimless(unreached_views=state.unreached_views + 1)
        return replace(given_up, left_out=self.left_out)


@dataclass(frozen=True)
class Skipped:
    """The goal was skipped on request, with all that is left out then."""

    left_out: tuple[LeftOut, ...]

    def change(self, state: EpisodeState) -> EpisodeState:
        """Choose another view."""
        return state.aimless(left_out=self.left_out, skipped_views=state.skipped_views + 1)


@dataclass(frozen=True)
class Barred:
    """The robot has no path to a view that was chosen: all that is left out then."""

    left_out: tuple[LeftOut, ...]

    def change(self, state: EpisodeState) -> EpisodeState:
        """Leave it out."""
        return replace(state, left_out=self.left_out)


@dataclass(frozen=True)
class Withdrawn:
    """The goal was withdrawn since the camera must not go there any more, as the `reason` says."""

    reason: str

    def change(self, state: EpisodeState) -> EpisodeState:
        """Choose another view."""
        return state.aimless(withdrawal=self.reason, withdrawn_views=state.withdrawn_views + 1)


@dataclass(frozen=True)
class Approached:
    """The camera has looked from its goal, and has not met the object yet."""

    def change(self, state: EpisodeState) -> EpisodeState:
        """Choose another view; the current one has been withdrawn."""
        return state.aimless(approaches=state.approaches + 1)


@dataclass(frozen=True)
class Counted:
    """The view of the goal counts, with the surface of the time `stamp`, which has `hits` hits."""

    stamp: int
    hits: int

    def change(self, state: EpisodeState) -> EpisodeState:
        """It is taken."""
        if state.goal is None:
            raise ValueError("a view counts without a goal")
        known = replace(state, visited=(*state.visited, state.goal.pose))
        return known.aimless(counted=(*state.counted, self.stamp), hits=self.hits, near=())


@dataclass(frozen=True)
class Judged:
    """The newest view was judged: coverage, whether its checks forbid a success, and what the
    shapes estimate.

    The `termination`, or the `ending` before the return home, is that of the episode if it ends
    with this view; a success that is `withheld` is its end if no other view can be taken.
    """

    coverage: float
    doubt: bool
    estimate: CoverageEstimate | None
    termination: Termination | None
    ending: Termination | None
    withheld: Termination | None = None

    def change(self, state: EpisodeState) -> EpisodeState:
        """Keep the judgement."""
        history = (*state.history, self.coverage)
        doubts = (*state.doubts, self.doubt)
        known = replace(state, history=history, doubts=doubts, estimate=self.estimate)
        return replace(
            known, termination=self.termination, ending=self.ending, withheld=self.withheld
        )


@dataclass(frozen=True)
class Lost:
    """The mapper has lost the newest `views`: its surface has only `hits` hits."""

    views: int
    hits: int

    def change(self, state: EpisodeState) -> EpisodeState:
        """They do not count any more, and may be taken again."""
        left = len(state.visited) - self.views
        if left < 0:
            raise ValueError(f"{self.views} views are lost, of {len(state.visited)}")
        rounds = (*state.rounds[:left], *state.rounds[len(state.visited) :])
        return replace(
            state,
            visited=state.visited[:left],
            counted=state.counted[:left],
            history=state.history[:left],
            doubts=state.doubts[:left],
            rounds=rounds,
            estimate=None,
            withheld=None,
            hits=self.hits,
            lost_views=state.lost_views + self.views,
        )


@dataclass(frozen=True)
class Returning:
    """The episode ends once the camera is back at the home view."""

    ending: Termination

    def change(self, state: EpisodeState) -> EpisodeState:
        """Send the camera home."""
        return state.aimless(ending=self.ending)


@dataclass(frozen=True)
class Ended:
    """The episode has ended."""

    termination: Termination

    def change(self, state: EpisodeState) -> EpisodeState:
        """Nothing follows but another episode."""
        return state.aimless(termination=self.termination, ending=None, home=None)


@dataclass(frozen=True)
class SceneEstimated:
    """The object is thought to be elsewhere."""

    estimated_scene: EstimatedScene | None

    def change(self, state: EpisodeState) -> EpisodeState:
        """No pose is another one for that."""
        return replace(state, estimated_scene=self.estimated_scene)


@dataclass(frozen=True)
class Sourced:
    """Where the surfaces come from."""

    origin: SurfaceOrigin

    def change(self, state: EpisodeState) -> EpisodeState:
        """Those of others are refused once the episode has begun."""
        return replace(state, origin=self.origin)


@dataclass(frozen=True, eq=False)
class ScansReceived:
    """Scans that counted, each with its pose, for a planner with a map of its own."""

    scans: tuple[tuple[Scan, CameraPose], ...]

    def change(self, state: EpisodeState) -> EpisodeState:
        """Keep them."""
        return replace(state, scan_history=(*state.scan_history, *self.scans))


@dataclass(frozen=True)
class ClockWentBack:
    """The clock has jumped back from `before` to `now`."""

    before: int
    now: int

    def change(self, state: EpisodeState) -> EpisodeState:
        """All that is timed goes on; the goal has a new stamp, since scans older than it never
        count.
        """
        now = self.now
        jump = self.now - self.before
        later = replace(
            state,
            home=None,
            sent=now,
            counted=tuple(min(stamp, now) for stamp in state.counted),
            began=None if state.began is None else state.began + jump,
            left_out=tuple((pose, until + jump * 1e-9) for pose, until in state.left_out),
        )
        if state.goal is None:
            return later
        return replace(later, goal=replace(state.goal, stamp=now), arrived=False, away=now - 1)
