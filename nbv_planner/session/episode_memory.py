"""Memory of a planning session about its episode, kept through restarts, lost maps and clock jumps."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import InputRejectedError, SettingError, StateFileError, reason, shown
from nbv_planner.mapping.matching import ArrivalSettings, is_whole
from nbv_planner.planning.motion import Leg
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.planners.account import Round
from nbv_planner.planning.termination import Termination, TerminationMonitor, TerminationReason
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import FoundScene, centre_of


@dataclass(frozen=True, eq=False)
class Target:
    """Pose that the camera has been sent to, and the time of the decision, nanoseconds, which names the target."""

    pose: CameraPose
    stamp: int


@dataclass(frozen=True, eq=False)
class Goal(Target):
    """A view that the camera has been sent to, as number `round`, from 1; why, and how long that decision took.

    It was made from `belief`, whose newest scan is of the time `belief_stamp`, nanoseconds.
    """

    decision: Decision
    round: int
    planning_milliseconds: float
    belief: SurfaceBelief
    belief_stamp: int


@dataclass(frozen=True)
class Miss:
    """By how much the camera missed the target named `stamp` when its time had passed or the robot gave up.

    The distance from the last pose to the target is in metres, the difference of their headings (`turn`) in radians;
    both are NaN if there is no pose of a time since. It had been sent again `tries` of at most `retries` times before.
    Poses that were received since and are all of a time before are `behind` the target by so many seconds, else NaN.
    """

    stamp: int
    distance: float
    turn: float
    arrival: ArrivalSettings
    tries: int
    retries: int
    behind: float = math.nan

    def __str__(self) -> str:
        """One sentence with all numbers."""
        again, given_up = f"retry {self.tries + 1} of {self.retries}", f"given up after {self.retries} retries"
        return f"not reached: {self._offset()}, {again if self.tries < self.retries else given_up}"

    def figures(self) -> dict[str, float]:
        """The numbers of the last pose by name; none if there is none."""
        numbers = {"miss_distance": self.distance, "miss_turn": self.turn}
        return {name: number for name, number in numbers.items() if not math.isnan(number)}

    def _offset(self) -> str:
        if not math.isnan(self.behind):
            return behind_words(self.behind)
        if math.isnan(self.distance):
            return "no pose since the goal"
        allowed = self.arrival
        if self.distance <= allowed.position_tolerance and self.turn <= allowed.heading_tolerance:
            return f"within the tolerances for less than {allowed.settle_time:g} s (settle_time)"
        return (
            f"{_short(self.distance)} m / {_short(math.degrees(self.turn))}° off, "
            f"tolerance {allowed.position_tolerance:g} m / {_short(math.degrees(allowed.heading_tolerance))}°"
        )


@dataclass(frozen=True)
class Rest:
    """Where the camera stood when it was sent to the goal number `goal`, from 1, with that `stamp`; nanoseconds."""

    goal: int
    stamp: int
    pose: CameraPose


def behind_words(seconds: float) -> str:
    """Message that poses arrive whose stamps are so many seconds before the goal that was given before them."""
    return (
        f"poses come, but stamped {seconds:.0f} s before the goal: their clock has stepped back, or is not that of the "
        "planner"
    )


def _short(number: float) -> str:
    """Two significant digits, never with an exponent."""
    return f"{float(f'{number:.2g}'):g}"


Values = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]
T = TypeVar("T", bool, int, float)
# Plain values of an episode that survive the process; in the file they have no underscore.
_KEPT: dict[str, type] = {
    "started": bool, "paused": bool, "lost_views": int, "_hits": int, "skipped_views": int, "unreached_views": int,
    "_arrived": bool, "_away": int, "_sent": int, "_tries": int,
}
_OF_GOAL: dict[str, type] = {"stamp": int, "round": int, "planning_milliseconds": float, "belief_stamp": int}
_DECIDED = ("utility", "score", "runner_up", "margin")
_BY_CANDIDATE = ("utilities", "costs", "excluded")
_BELIEVED = ("angle", "mean", "std", "lower", "upper")
_ALLOWED = {bool: "true or false", int: "an integer", float: "a finite number"}


def content_error(detail: str) -> StateFileError:
    """Error for content that no session can have."""
    return StateFileError("content", detail)


def checked(name: str, value: Any, kind: type[T]) -> T:
    """Return a plain `value`, which must be of this `kind`: bool, int, or float (integers, too), and finite."""
    found: type = type(value)
    usable = math.isfinite(value) if found is float else found is bool or is_whole(value)
    if (found is not kind and (kind, found) != (float, int)) or not usable:
        raise content_error(f"{name}: {shown(value)} must be {_ALLOWED[kind]}")
    return kind(value)


def numbers(name: str, values: Any, count: int) -> list[float]:
    """Return `values`, which must be a list of `count` finite numbers."""
    if not isinstance(values, list) or len(values) != count:
        raise content_error(f"{name}: {shown(values)} must be {count} numbers")
    return [checked(name, value, float) for value in values]


def plain(value: Termination | SurfaceOrigin | FoundScene | None) -> dict[str, Any] | None:
    """The fields of `value` as JSON holds them; None if there is none."""
    return None if value is None else asdict(value)


def goal_state(goal: Goal | None, space: ViewSpace) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
    """A goal in a view space as plain values and arrays; None and no arrays if there is none."""
    if goal is None:
        return None, {}
    decision, belief = goal.decision, goal.belief
    arrays: dict[str, NDArray[Any]] = {"goal_candidates": space.packed(decision.candidates)}
    arrays |= {f"goal_{name}": getattr(decision, name) for name in _BY_CANDIDATE}
    # Numbers that may be NaN, which JSON does not know.
    numbers = [getattr(decision, name) for name in _DECIDED]
    arrays["goal_decision"] = np.append(space.packed(Poses.of([decision.view])), numbers)
    arrays["goal_belief"] = np.stack([getattr(belief, name) for name in _BELIEVED])
    arrays["goal_belief_hits"] = belief.hits
    own = {name: getattr(goal, name) for name in _OF_GOAL}
    return {"pose": [goal.pose.x, goal.pose.y, goal.pose.yaw], "decided_by": decision.decided_by, **own}, arrays


def goal_from_state(values: Values | None, arrays: Arrays, space: ViewSpace) -> Goal | None:
    """The goal that :func:`goal_state` described."""
    if values is None:
        return None
    decided, believed = arrays["goal_decision"], arrays["goal_belief"]
    columns: dict[str, Any] = {name: arrays[f"goal_{name}"] for name in _BY_CANDIDATE}
    candidates, view = space.unpacked(arrays["goal_candidates"]), space.unpacked(decided[: -len(_DECIDED)])
    shapes = {candidates.view_angle.shape, *(column.shape for column in columns.values())}
    if decided.ndim != 1 or len(view) != 1 or believed.ndim != 2 or len(shapes) != 1:
        raise content_error("goal: its arrays do not fit together")
    if not (np.isfinite(decided[: 1 - len(_DECIDED)]).all() and np.isfinite(believed).all()):
        raise content_error("goal: holds a value that is not finite")
    rest = dict(zip(_DECIDED, decided[-len(_DECIDED) :].tolist(), strict=True))
    decision = Decision(view=view[0], candidates=candidates, **rest, **columns, decided_by=str(values["decided_by"]))
    belief = SurfaceBelief(**dict(zip(_BELIEVED, believed, strict=True)), hits=arrays["goal_belief_hits"])
    own: dict[str, Any] = {name: checked(f"goal: {name}", values[name], kind) for name, kind in _OF_GOAL.items()}
    x, y, yaw = numbers("goal: pose", values["pose"], 3)
    return Goal(CameraPose(x, y, yaw), decision=decision, belief=belief, **own)


def views_from_state(name: str, values: Any, space: ViewSpace) -> list[CameraPose]:
    """The views that a view space had packed into lists."""
    flat = [checked(name, number, float) for row in values for number in (row if isinstance(row, list) else [row])]
    views = space.unpacked(np.array(flat))
    return [views[index] for index in range(len(views))]


def termination_from_state(values: Values | None) -> Termination | None:
    """The termination that :func:`plain` described."""
    if values is None:
        return None
    figures = {str(name): checked(f"termination: {name}", value, float) for name, value in values["figures"].items()}
    return Termination(TerminationReason(values["reason"]), figures, str(values["detail"]))


def heard_state(heard: Sequence[tuple[Scan, CameraPose]]) -> dict[str, NDArray[Any]]:
    """Scans and their poses as arrays; none without a scan. Their errors, which no planner asks for, are left out."""
    if not heard:
        return {}
    headers = [
        (len(s.ranges), s.angle_min, s.angle_increment, s.range_min, s.range_max, p.x, p.y, p.yaw, p.height)
        for s, p in heard
    ]
    return {"heard": np.array(headers), "heard_ranges": np.concatenate([scan.ranges for scan, _ in heard])}


def heard_from_state(arrays: Arrays) -> tuple[tuple[Scan, CameraPose], ...]:
    """The scans and poses that :func:`heard_state` described; a ValueError or InputRejectedError if it did not."""
    headers = arrays.get("heard", np.empty((0, 9)))
    ranges = arrays.get("heard_ranges", np.empty(0))
    if not np.isfinite(headers[:, [0, 5, 6, 7, 8]]).all() or headers[:, 0].sum() != len(ranges):
        raise content_error("heard: its scans and poses do not fit together")
    parts = np.split(ranges, np.cumsum(headers[:, 0]).astype(int))[:-1]
    return tuple(
        (Scan(first, step, part, low, high), CameraPose(x, y, yaw, height=height))
        for part, (_, first, step, low, high, x, y, yaw, height) in zip(parts, headers.tolist(), strict=True)
    )


def round_from_state(values: Any) -> Round | None:
    """The round of a regret ledger of which best and taken are given, or None where nothing is known."""
    if values is None:
        return None
    best, taken = numbers("account", values, 2)
    if not 0.0 <= taken <= best:
        raise content_error(f"account: taken {taken} must be between 0 and best {best}")
    return Round(best, taken)


@dataclass
class Inputs:
    """Newest inputs received so far; stamps are in nanoseconds, that of the belief is the time of its newest scan."""

    belief: SurfaceBelief | None = None
    belief_stamp: int = 0
    pose: CameraPose | None = None
    pose_stamp: int = 0
    mapped: bool = True  #: whether the map of the ground is known, if one is awaited.
    subscribers: int = 0  #: number of subscribers of the goals.
    hearers: str = "mapper and robot"  #: the expected subscribers, in words.
    unrecorded: tuple[str, ...] = ()  #: full names of the topics to which the awaited recorder has not subscribed yet.


@dataclass(frozen=True)
class SurfaceOrigin:
    """What the surfaces of an episode have in common, as plain data: frame, number of grid angles, prior, if given."""

    frame: str
    size: int
    prior: PriorSettings | None

    def refusal_of(self, other: SurfaceOrigin) -> tuple[str, str]:
        """Reason for refusing a surface of another origin, and the words for it with both values."""
        mine, its = asdict(self), asdict(other)
        reason = "other_prior" if (self.frame, self.size) == (other.frame, other.size) else "other_grid"
        if self.prior and other.prior and reason == "other_prior":
            mine, its = mine["prior"], its["prior"]
        differing = [f"{name} {its[name]} (the episode's: {mine[name]})" for name in mine if mine[name] != its[name]]
        return reason, f"a surface was refused: it has {', '.join(differing)}"


def found_from_state(values: Values | None) -> FoundScene | None:
    """The scene that :func:`plain` described."""
    try:
        return None if values is None else FoundScene(**{name: checked(name, n, type(n)) for name, n in values.items()})
    except (TypeError, AttributeError, SettingError) as error:
        raise content_error(f"found: {error}") from error


def origin_from_state(values: Values | None) -> SurfaceOrigin | None:
    """The origin that :func:`plain` described."""
    if values is None:
        return None
    prior = None if values["prior"] is None else PriorSettings(**values["prior"])
    return SurfaceOrigin(str(values["frame"]), checked("surface: size", values["size"], int), prior)


class EpisodeMemory:
    """Everything that is known about the episode."""

    def __init__(self, planner: Planner, monitor: TerminationMonitor) -> None:
        """Start without any input."""
        #: decides; knows which views could not be reached, and may keep a regret ledger of the rounds.
        self.planner = planner
        self.monitor = monitor  #: ends the episode; knows the coverage after each view.
        self.inputs = Inputs()  #: inputs received.
        self.legs: list[Leg] = []  #: legs that the robot has driven undisturbed, in this episode and before it.
        #: where the surfaces of the episode come from; None before the first, or if not given.
        self.origin: SurfaceOrigin | None = None
        #: newest surface of another origin, with its stamp, its origin and why it was refused; None if one of the
        #: episode's own has arrived since.
        self.refused: tuple[SurfaceBelief, int, SurfaceOrigin, str] | None = None
        #: where the object was found, about whose centre all poses and views are; None where that is the origin.
        self.found: FoundScene | None = None
        self.forget()

    def forget(self) -> None:
        """Forget the episode; received inputs are kept, and a surface that it had refused becomes one of them."""
        if self.refused is not None:
            self.inputs.belief, self.inputs.belief_stamp, self.origin, _ = self.refused
            self.refused = None
        self.monitor.reset()
        self.planner.views.unreachable = {}
        self.started = self.paused = False  #: whether the episode may begin, and whether it is paused.
        self.unchecked = False  #: whether the start came before the poses by which it is to be checked.
        self.refusal = ""  #: why the last start was withdrawn, in words.
        self.termination: Termination | None = None  #: why it ended, or None.
        self.ending: Termination | None = None  #: why it is about to end, once the camera is home, or None.
        self._home: Target | None = None
        self.goal: Goal | None = None  #: view that the camera has been sent to, or None.
        self.visited: list[CameraPose] = []  #: the views taken so far.
        #: number of views that had counted and that the mapper has lost; of goals that were skipped on request; of
        #: goals that were given up because they were not reached.
        self.lost_views = self.skipped_views = self.unreached_views = 0
        self.withdrawn_views = 0  #: number of goals withdrawn because the camera must not go there any more.
        self.withdrawal = ""  #: which one was withdrawn last, and why.
        self.approaches = 0  #: number of goals at which an object in an unknown place has not been seen yet.
        self._counted: list[int] = []
        self._hits = 0
        self._episode = object()
        self._began: int | None = None
        self.last_miss: Miss | None = None  #: by how much the last missed target was missed, or None.
        self._set_out: CameraPose | None = None
        #: the leg to the goal, and when the camera arrived there for the view that counted; None if disturbed.
        self.leg: Leg | None = None
        self._came: int | None = None
        self._since: int | None = None
        self._arrived = False
        self._away = 0
        #: times, both excluded, between which the camera stood at its goal before it was away again.
        self._stood: list[tuple[int, int]] = []
        self._sent = 0
        self._tries = 0
        self._waiting_since: int | None = None
        #: since when the pose has not changed, None if it has since the last goal; how many goals in a row have been
        #: given up without any sign of the camera since; stamp of the newest pose when the target was given.
        self._rest: Rest | None = None
        self._vain = 0
        self._pose_before = 0

    def use(self, planner: Planner, monitor: TerminationMonitor, *, new_views: bool = False) -> None:
        """Replace planner and monitor; what is known about rounds is kept, and about views unless there are others."""
        planner.views.ground = planner.views.ground or self.planner.views.ground
        planner.views = planner.views if new_views else self.planner.views
        planner.account, planner.heard = self.planner.account, self.planner.heard
        self.planner, self.monitor = planner, monitor.after(self.monitor)

    def refer(self, found: FoundScene | None, planner: Planner, monitor: TerminationMonitor) -> None:
        """Continue about another centre: all poses and views are those of before, as seen from there.

        The `planner` and the `monitor` are those of the scene that was `found`.
        """
        x, y = (now - before for now, before in zip(centre_of(found), centre_of(self.found), strict=True))

        def moved(view: CameraPose) -> CameraPose:
            return view.relative_to(x, y)

        views, now_out = self.planner.views, {}
        for index, until in views.unreachable.items():
            now_out[planner.views.nearest(moved(views.candidates[index]))] = until
        planner.views.unreachable = now_out
        if views.ground is not None:
            planner.views.ground = views.ground.seen_from(x, y)
        if (x, y) != (0.0, 0.0):
            self.visited = [moved(view) for view in self.visited]
            self._set_out = None if self._set_out is None else moved(self._set_out)
            if self._rest is not None:
                self._rest = dataclasses.replace(self._rest, pose=self._rest.pose.relative_to(x, y))
            if self.inputs.pose is not None:
                self.inputs.pose = self.inputs.pose.relative_to(x, y)
            if self.goal is not None:
                decision = dataclasses.replace(self.goal.decision, view=moved(self.goal.decision.view))
                self.goal = dataclasses.replace(self.goal, pose=self.goal.pose.relative_to(x, y), decision=decision)
            if self._home is not None:
                self._home = dataclasses.replace(self._home, pose=self._home.pose.relative_to(x, y))
        planner.account = self.planner.account
        if found is None or self.found is None or not found.same_as(self.found):
            self._episode = object()  # a decision under way is about the old centre
        self.planner, self.monitor, self.found = planner, monitor.after(self.monitor), found

    def take_surface(self, belief: SurfaceBelief, stamp: int, origin: SurfaceOrigin | None = None) -> int:
        """Process a belief whose newest scan is from `stamp` (nanoseconds); returns the number of views that are lost.

        A belief that is older than those of views that have counted, and depends on fewer measurements, comes from a
        mapper that has lost these views. They no longer count and may be taken again.

        Raises:
            InputRejectedError: `other_prior` or `other_grid`: the episode has begun with another `origin`; names both.
        """
        if origin is not None:
            if self._began is not None and self.origin is not None and self.origin != origin:
                reason, words = self.origin.refusal_of(origin)
                self.refused = belief, stamp, origin, words
                raise InputRejectedError(reason, words)
            self.origin, self.refused = origin, None
        self.inputs.belief, self.inputs.belief_stamp = belief, stamp
        hits = int(belief.hits.sum())
        if self.termination is not None or hits >= self._hits:
            return 0
        lost = sum(counted > stamp for counted in self._counted)
        if lost:
            del self.visited[-lost:], self._counted[-lost:]
            self.monitor.take_back(lost)
            self.lost_views += lost
            self._hits = hits
            self._episode = object()  # a decision under way is about the views that are lost
            if self._came is not None:  # the leg has led to one of them, and there is none to the next view yet
                self.leg = self._came = None
        return lost

    def clock_went_back(self, before: int, now: int) -> Goal | None:
        """Continue with a clock that has jumped back from `before` to `now` (ns); returns the goal to publish again.

        Received inputs are stamped as of now; the present goal gets a new stamp, since scans older than it never count.
        """
        inputs = self.inputs
        inputs.belief_stamp, inputs.pose_stamp = min(inputs.belief_stamp, now), min(inputs.pose_stamp, now)
        self._counted = [min(counted, now) for counted in self._counted]
        self._began = None if self._began is None else self._began + now - before
        self._sent, self._waiting_since, self._home, self.leg = now, None, None, None
        views, jump = self.planner.views, (now - before) * 1e-9
        views.unreachable = {index: until + jump for index, until in views.unreachable.items()}
        if self.goal is not None:
            self.goal = dataclasses.replace(self.goal, stamp=now)
            self._arrived, self._since, self._away, self._stood = False, None, now - 1, []
        self._rest, self._pose_before = None, inputs.pose_stamp
        return self.goal

    @property
    def milestone(self) -> tuple[object, ...]:
        """Changes whenever something changes that must not be lost."""
        goal = None if self.goal is None else self.goal.stamp
        return (
            self._episode, self.started, self.paused, self.termination, self.ending, goal, self._tries, self._arrived,
            len(self.visited), self.lost_views, tuple(self.planner.views.unreachable.items()),
        )

    def saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything of the episode that is to survive the process, as plain values and arrays by name.

        Received inputs are not in it, since they arrive again; nor are the settings.
        """
        space = self.planner.views
        goal, arrays = goal_state(self.goal, space)
        if self.planner.takes_scans:
            arrays |= heard_state(self.planner.heard)
        values = {
            **{name.lstrip("_"): getattr(self, name) for name in _KEPT},
            "visited": space.packed(Poses.of(self.visited)).tolist(), "counted": list(self._counted),
            "began": self._began, "goal": goal, "coverage": list(self.monitor.history),
            "doubts": list(self.monitor.doubts),
            "termination": plain(self.termination), "ending": plain(self.ending), "origin": plain(self.origin),
            "found": plain(self.found), "approaches": self.approaches, "withdrawn_views": self.withdrawn_views,
            "legs": [list(astuple(leg)) for leg in self.legs],
            "unreachable": [[index, until] for index, until in space.unreachable.items()],
        }
        if self.planner.account is not None:
            rounds = self.planner.account.rounds(self._chosen)
            values["account"] = [entry and [entry.best, entry.taken] for entry in rounds]
        return values, arrays

    @property
    def _chosen(self) -> list[CameraPose]:
        """Views whose rounds may be in the planner's ledger: those taken, and that of the goal under way."""
        return [*self.visited, *([] if self.goal is None else [self.goal.decision.view])]

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume the episode that another session :meth:`saved`.

        Raises:
            StateFileError: `content`: it is no such state; nothing is changed.
        """
        twin = copy.copy(self)
        twin.planner, twin.monitor = self.planner.snapshot(), copy.copy(self.monitor)
        try:
            twin._fill(values, arrays)
        except StateFileError:
            raise
        except Exception as error:  # whatever arrays of other shapes and plain values of other types lead to
            raise content_error(f"it is no planning session ({type(error).__name__}: {reason(error)})") from error
        self._fill(values, arrays)
        self._episode, self._waiting_since = object(), None
        self._rest, self._vain, self._pose_before = None, 0, 0

    def _fill(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the values, each checked."""
        for name, kind in _KEPT.items():
            setattr(self, name, checked(name, values[name.lstrip("_")], kind))
        self.visited = views_from_state("visited", values["visited"], self.planner.views)
        self._counted = [checked("counted", stamp, int) for stamp in values["counted"]]
        self._began = None if values["began"] is None else checked("began", values["began"], int)
        self.goal = goal_from_state(values["goal"], arrays, self.planner.views)
        self.termination = termination_from_state(values["termination"])
        self.ending, self._home = termination_from_state(values["ending"]), None
        self.origin = origin_from_state(values.get("origin"))  # none in states of older versions
        self.approaches = checked("approaches", values.get("approaches", 0), int)
        self.legs = [Leg(*numbers("legs", leg, len(fields(Leg)))) for leg in values.get("legs", [])]
        self.leg = self._came = None
        self.withdrawn_views = checked("withdrawn_views", values.get("withdrawn_views", 0), int)
        self.monitor.history = [checked("coverage", coverage, float) for coverage in values["coverage"]]
        doubts = values.get("doubts", [False] * len(self.monitor.history))  # none in states of older versions
        self.monitor.doubts = [checked("doubts", doubt, bool) for doubt in doubts]
        self.planner.views.unreachable = {
            checked("unreachable", index, int): checked("unreachable", until, float)
            for index, until in values["unreachable"]
        }
        self.planner.heard = heard_from_state(arrays)
        judged = len(self.monitor.doubts) == len(self.monitor.history)
        if len(self._counted) != len(self.visited) or not judged or (self._arrived and self.goal is None):
            raise content_error("its views, their surfaces and its goal do not fit together")
        if self.planner.account is not None:  # last: it belongs to checked views, and copies share it
            chosen = self._chosen
            entries = values.get("account", [None] * len(chosen))  # in states of older versions: unknown
            if not isinstance(entries, list) or len(entries) != len(chosen):
                raise content_error(f"account: must be a list of {len(chosen)} rounds, one per view and for the goal")
            self.planner.account.restore(chosen, [round_from_state(entry) for entry in entries])


class GoalReminder:
    """Decides when to republish a goal to its subscribers.

    Goals are not latched, since an outdated goal must not move a camera. So a mapper or a camera that has been
    restarted knows no goal until the planner, which still waits for the view, repeats it. Its stamp stays the same, so
    that for subscribers that know it, it is no new view.
    """

    def __init__(self) -> None:
        self._subscribers = 0
        self._goal: int | None = None
        self._sent_at = 0

    def due(self, goal: int | None, subscribers: int, waits_too_long: bool, now: int, period: int) -> bool:
        """Whether to republish the goal under way, given by its stamp or None; to be called periodically.

        That is when it has a new one of the `subscribers`, or the reaction to it `waits_too_long` and the `period` (as
        `now` in nanoseconds) since the last repetition to the same subscribers has passed.
        """
        joined = subscribers > self._subscribers
        self._subscribers = subscribers
        if goal != self._goal:
            self._goal, self._sent_at = goal, now
        late = waits_too_long and now - self._sent_at > period
        if goal is None or not (joined or late):
            return False
        self._sent_at = now
        return True
