"""What a planner watches while the camera drives: whether it arrives or moves at all, and how long it takes.

All of it is of the moment: a restarted planner watches anew.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from nbv_planner.mapping.matching import REMEMBERED, SPEED_TIME, ArrivalSettings, PoseTrack, offset
from nbv_planner.planning.motion import Leg, TimeSettings, leg_time, turns_to
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.session.facts import Stood
from nbv_planner.session.questions import Inputs
from nbv_planner.session.state import EpisodeState, Miss
from nbv_planner.world.pose import CameraPose, Poses


@dataclass(frozen=True)
class Rest:
    """Where the camera stood when it was sent to the goal number `goal`, from 1, with that `stamp`; nanoseconds."""

    goal: int
    stamp: int
    pose: CameraPose


class Arrival:
    """Judges by each pose whether the camera is at its target; an arrival is lost with the first one that is not."""

    def __init__(self, settings: ArrivalSettings) -> None:
        self.settings = settings  #: tolerances and times.
        self.since: int | None = None  #: stamp from which on it has been within the tolerances.
        self.vain = 0  #: number of goals given up in a row without any sign of the camera.
        self.rest: Rest | None = None  #: since when the pose has not changed; None if it has since the last goal.
        self._away = 0
        self._track = PoseTrack(REMEMBERED, 0, 0)
        # Times, both excluded, between which the camera stood at its goal before it was away again.
        self._stood: list[tuple[int, int]] = []
        self._pose_before = 0

    def aim(self, episode: EpisodeState, pose_stamp: int) -> None:
        """Watch for the present target, if any, from here on."""
        self.since, self._stood, self._away, self._pose_before = None, [], episode.away, pose_stamp

    def set_out(self, episode: EpisodeState, pose: CameraPose | None) -> None:
        """Take note of where the camera stands when it is sent to a goal, unless it has not moved since another one."""
        if self.rest is None and pose is not None and episode.goal is not None:
            self.rest = Rest(episode.goals, episode.goal.stamp, pose)

    def moved(self) -> None:
        """Take note of a sign of the camera."""
        self.rest, self.vain = None, 0

    def look(self, episode: EpisodeState, inputs: Inputs) -> Stood | None:
        """Judge the newest pose; returns an arrival or its loss. In a pause the camera may only be driven away."""
        target, pose, stamp = episode.target, inputs.pose, inputs.pose_stamp
        if pose is None:
            return None
        if self.settings.must_stand:
            self._track.add(stamp, pose)
        if self.rest is not None and not self.settings.reached(pose, self.rest.pose):
            self.moved()
        if target is None or stamp < target.stamp:
            return None
        if not self.settings.reached(pose, target.pose):
            away, self.since, self._away = self._away, None, stamp
            if episode.arrived:
                self._stood.append((away, stamp))
            # A restarted planner must not take a surface that came on the way for one of the goal.
            on_the_way = episode.goal is not None and episode.away < inputs.belief_stamp <= stamp
            return Stood(False, stamp) if episode.arrived or on_the_way else None
        if episode.paused:
            return None
        self.since = stamp if self.since is None else self.since
        settled = (stamp - self.since) * 1e-9 >= self.settings.settle_time
        return Stood(True, self._away) if settled and not episode.arrived and self._stands(stamp) else None

    def _stands(self, stamp: int) -> bool:
        """Whether the camera stands still, as far as that counts; it need not from then on, while it is at its goal."""
        return not self.settings.must_stand or self.settings.stands(self._track.during(stamp - SPEED_TIME, stamp))

    def scanned(self, episode: EpisodeState, stamp: int) -> bool:
        """Whether a scan of the time `stamp` was taken while the camera stood at its goal.

        Judged by the last pose before the arrival (or the goal's own stamp), not by the first one after it: the mapper
        may have taken a scan before the first pose seen here.
        """
        here = (episode.arrived and stamp > self._away) or any(one < stamp < other for one, other in self._stood)
        return episode.goal is not None and here

    def behind(self, episode: EpisodeState, inputs: Inputs) -> float:
        """Seconds by which the newest pose, received since the target was given, is of a time before it; else NaN."""
        target, stamp = episode.target, inputs.pose_stamp
        if target is None or inputs.pose is None or stamp == self._pose_before or stamp >= target.stamp:
            return math.nan
        return (target.stamp - stamp) * 1e-9

    def miss(self, episode: EpisodeState, inputs: Inputs, retries: int) -> Miss:
        """By how much the camera has missed its target, which is sent again `retries` times."""
        target = episode.target
        assert target is not None
        pose = inputs.pose if inputs.pose_stamp >= target.stamp else None
        off = (math.nan, math.nan) if pose is None else offset(pose, target.pose)
        return Miss(target.stamp, *off, self.settings, episode.tries, retries, self.behind(episode, inputs))

    def standstill(self, episode: EpisodeState) -> str:
        """Since which goal the pose has not changed, in words; empty unless a goal was missed since."""
        rest, miss = self.rest, episode.last_miss
        if rest is None or miss is None or miss.stamp < rest.stamp:
            return ""
        return f"the pose has not changed since goal {rest.goal}"


class LegWatch:
    """Measures the leg to a goal, as long as nothing disturbs it."""

    def __init__(self) -> None:
        self.start: CameraPose | None = None  #: where the camera set out for its goal, from the centre.
        self.leg: Leg | None = None  #: the leg to the goal; None if disturbed.
        self._came: int | None = None

    def disturb(self) -> None:
        """Let the leg under way not count."""
        self.leg = None

    def forget_view(self) -> None:
        """The view that the leg has led to is lost, and there is none to the next view yet."""
        if self._came is not None:
            self.leg = self._came = None

    def arrived(self, goal_stamp: int, since: int | None, tries: int) -> None:
        """Measure the travel to the view of a goal, which counts; one that was sent again was disturbed."""
        if self.leg is not None and since is not None and not tries and self.leg.length + self.leg.turn:
            self.leg = dataclasses.replace(self.leg, travel=(since - goal_stamp) * 1e-9)
            self._came = since

    def driven(self, views: ViewSpace, last: Poses, now: int) -> Leg | None:
        """The leg that ends with the decision at `now`, after the view `last`; None if it was disturbed."""
        if self.leg is None or self._came is None:
            return None
        own = float(views.extras(last)[1][0])
        return dataclasses.replace(self.leg, dwell=max(0.0, (now - self._came) * 1e-9 - own))

    def set_out(self, views: ViewSpace, start: CameraPose | None, view: CameraPose, pace: TimeSettings) -> None:
        """Begin a leg."""
        self.start, self.leg, self._came, end = start, None, None, Poses.of([view])
        if start is not None:
            length, turn = float(views.legs(start, end)[0]), float(turns_to(start, end)[0])
            self.leg = Leg(length, turn, float(leg_time(views, start, end, pace)[0]))
