"""A fault campaign: its cases, its file, its results folder and its tables."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from campaigns.running import CampaignFolder
from nbv_bench.experiments.folder import write_json
from nbv_planner.episode.parameter_files import named_file
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    DepthCameraParameters,
    config_from_parameters,
)
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import NbvPlannerError, SettingError, UnknownNameError
from nbv_planner.files.located_yaml import Located, read_located
from nbv_planner.files.results_folder import write_whole
from nbv_planner.settings import Setting, check_settings, check_value, setting, settings_of
from nbv_planner.versions import versions

NODES = ("depth_camera", "surface_mapper", "nbv_planner")
TOPICS = ("scan", "camera_pose", "goal_pose")
"""Topics between camera, mapper and planner whose messages can be changed."""
_FOR_EVER = 1e6


class DomainTakenError(NbvPlannerError, RuntimeError):
    """There are other nodes on the chosen ROS domain."""


@dataclass(frozen=True)
class Fault:
    """A fault.

    Raises:
        SettingError: a value is not allowed.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class StreamFault(Fault):
    """A fault of messages on a topic, each with a probability, during a part of the episode."""

    topic: str = setting("scan", "Topic.", choices=TOPICS)
    probability: float = setting(
        1.0, "Probability with which it happens to a message.", ge=0.0, le=1.0
    )
    start: float = setting(0.0, "When it begins, after the start of the episode.", unit="s", ge=0.0)
    duration: float = setting(_FOR_EVER, "How long it lasts.", unit="s", gt=0.0)

    def lasts(self, elapsed: float) -> bool:
        """Whether it can happen `elapsed` seconds after the start of the episode."""
        return self.start <= elapsed < self.start + self.duration


@dataclass(frozen=True)
class Drop(StreamFault):
    """The message is lost."""

    kind = "drop"


@dataclass(frozen=True)
class Delay(StreamFault):
    """The message is delayed by a time uniform between 0 and `seconds`; others may overtake it."""

    kind = "delay"
    seconds: float = setting(0.2, "Longest delay.", unit="s", gt=0.0, le=60.0)


@dataclass(frozen=True)
class Duplicate(StreamFault):
    """The message is received twice."""

    kind = "duplicate"


@dataclass(frozen=True)
class Reorder(StreamFault):
    """The message is received after the next one."""

    kind = "reorder"


@dataclass(frozen=True)
class Corrupt(StreamFault):
    """Something in the message is broken: not a number, wrong frame, wrong length, random bits."""

    kind = "corrupt"


@dataclass(frozen=True)
class Freeze(StreamFault):
    """The sensor hangs: scans have the ranges of the first one in that time, with new stamps."""

    kind = "freeze"


@dataclass(frozen=True)
class OutOfRange(StreamFault):
    """All ranges of the scan are out of range, or not a number."""

    kind = "out_of_range"


@dataclass(frozen=True)
class Bias(StreamFault):
    """The camera's pose is off by a constant."""

    kind = "bias"
    topic: str = setting("camera_pose", "Topic.", choices=("camera_pose",))
    x: float = setting(0.0, "Error of the position.", unit="m", ge=-100.0, le=100.0)
    y: float = setting(0.0, "Error of the position.", unit="m", ge=-100.0, le=100.0)
    yaw: float = setting(0.0, "Error of the heading.", unit="rad", ge=-math.pi, le=math.pi)


@dataclass(frozen=True)
class Unreachable(Fault):
    """The camera never moves to a goal, however often it is sent."""

    kind = "unreachable"
    probability: float = setting(
        0.2, "Probability with which a goal cannot be reached.", ge=0.0, le=1.0
    )


@dataclass(frozen=True)
class Kill(Fault):
    """A node is killed (SIGKILL) and restarted by the runner."""

    kind = "kill"
    node: str = setting("surface_mapper", "Node.", choices=NODES)
    at: float = setting(
        -1.0,
        "When, after the start; negative: at random, within the duration of an episode.",
        unit="s",
        ge=-1.0,
    )
    down: float = setting(0.0, "Time until it is restarted.", unit="s", ge=0.0, le=600.0)


@dataclass(frozen=True)
class Stall(Fault):
    """A node is stopped (SIGSTOP) and resumed repeatedly: a slow consumer."""

    kind = "stall"
    node: str = setting("surface_mapper", "Node.", choices=NODES)
    seconds: float = setting(0.5, "How long it is stopped.", unit="s", gt=0.0, le=60.0)
    every: float = setting(1.0, "Time from one stop to the next.", unit="s", gt=0.0, le=600.0)

    def __post_init__(self) -> None:
        """Check that it runs in between."""
        super().__post_init__()
        if self.every <= self.seconds:
            raise SettingError(f"every: {self.every:g} s must be > {self.seconds:g} s (seconds)")


@dataclass(frozen=True)
class ClockJump(Fault):
    """The clock jumps; the nodes then use `/clock`, which otherwise runs at the rate of the true
    time.
    """

    kind = "clock"
    at: float = setting(1.0, "When, after the start.", unit="s", ge=0.0)
    seconds: float = setting(-5.0, "How far it jumps; negative: back.", unit="s", ge=-1e5, le=1e5)


FAULTS: dict[str, type[Fault]] = {
    cls.kind: cls
    for cls in (
        Drop,
        Delay,
        Duplicate,
        Reorder,
        Corrupt,
        Freeze,
        OutOfRange,
        Bias,
        Unreachable,
        Kill,
        Stall,
        ClockJump,
    )
}
"""The kinds of faults by name."""


Parameters = Mapping[str, Mapping[str, Any]]
REFERENCE = "reference"
"""Name of the case without any fault, which runs first: it determines the duration of an episode
and its result.
"""


@dataclass(frozen=True)
class Case:
    """Faults of one case."""

    name: str
    faults: tuple[Fault, ...] = ()
    repeats: int = 1  #: how often it is run.
    #: parameters of the nodes in addition to those of the campaign.
    parameters: Parameters = field(default_factory=dict)
    #: whether every run must end with the views and the surface of the reference, bit for bit.
    expect_reference: bool = False


@dataclass(frozen=True)
class Run:
    """One run of a case."""

    case: Case
    number: int  #: from 0.
    seed: int  #: seed of all its random numbers.

    @property
    def slug(self) -> str:
        """Its name in the results folder."""
        return f"{self.case.name}-{self.number:03d}"

    def as_dict(self) -> dict[str, Any]:
        """What identifies its outcome."""
        return {"case": self.case.name, "number": self.number, "seed": self.seed}

    def rng(self, part: int) -> np.random.Generator:
        """Random numbers of one part of the run, independent of how many another part draws."""
        return np.random.default_rng([self.seed, part])


@dataclass(frozen=True)
class Campaign:
    """Cases that are run one after another."""

    name: str
    cases: tuple[Case, ...]  #: the cases; the first is the reference.
    parameters: Parameters  #: parameters of the nodes, by node name.
    seed: int = 0  #: seed from which those of the runs follow.
    time_limit: float = 60.0  #: seconds after which a run is aborted.
    text: str = ""  #: the file it was read from.

    def runs(self) -> list[Run]:
        """All runs; those of the reference first."""
        return [
            Run(case, number, zlib.crc32(f"{self.seed}/{case.name}/{number}".encode()))
            for case in self.cases
            for number in range(case.repeats)
        ]

    def parameters_of(self, case: Case) -> dict[str, dict[str, Any]]:
        """Parameters of the nodes in a case."""
        nodes = {*self.parameters, *case.parameters}
        return {
            node: {**self.parameters.get(node, {}), **case.parameters.get(node, {})}
            for node in sorted(nodes)
        }

    def as_dict(self) -> dict[str, Any]:
        """All inputs of the runs, as plain values."""
        return {
            "name": self.name,
            "seed": self.seed,
            "time_limit": self.time_limit,
            "parameters": {node: dict(values) for node, values in self.parameters.items()},
            "cases": {case.name: _case_dict(case) for case in self.cases},
        }


def _case_dict(case: Case) -> dict[str, Any]:
    return {
        "repeats": case.repeats,
        "expect_reference": case.expect_reference,
        "parameters": {node: dict(values) for node, values in case.parameters.items()},
        "faults": [{"kind": fault.kind, **dataclasses.asdict(fault)} for fault in case.faults],
    }


# Random times are in this part of the duration of an episode: a slightly faster one also has them.
_LATEST = 0.9


@dataclass(frozen=True)
class Moment:
    """A fault at a time."""

    at: float  #: seconds after the start of the episode.
    fault: Fault
    resume: bool = False  #: whether it is the end of a stop.


def moments_of(run: Run, episode_seconds: float, time_limit: float) -> list[Moment]:
    """All faults of processes and clock in a run, in the order of time.

    Kills are at random within `episode_seconds`, the duration of an episode without faults; stops
    are repeated until `time_limit`, seconds.
    """
    rng, latest = run.rng(0), _LATEST * episode_seconds
    found: list[Moment] = []
    for fault in run.case.faults:
        if isinstance(fault, Kill):
            found.append(
                Moment(fault.at if fault.at >= 0.0 else float(rng.uniform(0.0, latest)), fault)
            )
        elif isinstance(fault, ClockJump):
            found.append(Moment(fault.at, fault))
        elif isinstance(fault, Stall):
            found += _standstills(fault, time_limit)
    return sorted(found, key=lambda moment: moment.at)


def _standstills(fault: Stall, time_limit: float) -> list[Moment]:
    begins = [number * fault.every for number in range(int(time_limit / fault.every) + 1)]
    return [
        moment
        for begin in begins
        for moment in (Moment(begin, fault), Moment(begin + fault.seconds, fault, resume=True))
    ]


NO_END = "NO_END"
"""Reason given for an episode that did not end in time."""
NODE_DIED = "NODE_DIED"
"""Reason given if a node ended that was not killed."""


@dataclass(frozen=True)
class Recovery:
    """Recovery after a kill."""

    node: str
    at: float  #: when, seconds after the start of the episode.
    during: str  #: what the planner was doing.
    #: time until the next view that counted, or the end; None if there was neither.
    seconds: float | None


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run."""

    case: str
    number: int
    seed: int
    reason: str  #: why the episode ended, or :data:`NO_END`, :data:`NODE_DIED`.
    detail: str  #: the planner's last message.
    seconds: float  #: time from start to end.
    visited: tuple[float, ...]  #: angles of the views that the planner has counted, radians.
    map_views: int  #: number of views that the mapper has mapped.
    goals: int  #: number of different goals that were sent.
    lost_views: int  #: number of views that the planner has reported as lost by the mapper.
    coverage: float  #: fraction of the true surface points seen from the views.
    rmse: float | None  #: root mean square error of the last surface, metres; None without one.
    digest: str  #: digest of the last surface.
    starts: int  #: how often the episode had to be started.
    recoveries: tuple[Recovery, ...] = ()  #: one for each kill.
    #: how often each kind of fault has happened.
    happened: dict[str, int] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)  #: drops reported by the nodes, by reason.

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Outcome:
        """The outcome from plain values of its fields.

        Raises:
            TypeError, KeyError: it is none.
        """
        recoveries = tuple(Recovery(**recovery) for recovery in values["recoveries"])
        return cls(**{**values, "visited": tuple(values["visited"]), "recoveries": recoveries})

    @property
    def unreported_lost(self) -> int:
        """Views that the planner counts and the map does not contain, without a report."""
        return max(0, len(self.visited) - self.map_views)

    @property
    def unreported_twice(self) -> int:
        """Views that were mapped more often than the planner counts, without a report.

        Goals that were given up, and those restamped after the clock went back, are reported.
        """
        more = self.map_views - len(self.visited)
        given_up = max(0, self.goals - len(self.visited))
        return max(0, more - given_up - self.lost_views)

    def problems(self, case: Case, reference: Outcome | None) -> list[str]:
        """Describe all violations; none for a good run."""
        found = []
        if self.reason in (NO_END, NODE_DIED):
            found.append(f"{self.reason}: {self.detail}")
        if self.unreported_lost:
            found.append(f"{self.unreported_lost} views lost without a report")
        if self.unreported_twice:
            found.append(f"{self.unreported_twice} views taken twice without a report")
        if case.expect_reference and reference is not None:
            if self.visited != reference.visited:
                found.append("other views than without faults")
            elif self.digest != reference.digest:
                found.append("another surface than without faults")
        return found


M = TypeVar("M")
Change = Callable[[M, StreamFault, np.random.Generator], M]
"""Returns a changed message."""
_CHANGES = (Corrupt, Freeze, OutOfRange, Bias)


@dataclass(frozen=True)
class Delivery(Generic[M]):
    """A message to deliver."""

    due: float  #: when, seconds of the caller's clock.
    message: M


class FaultyStream(Generic[M]):
    """Passes on the messages of one topic with the faults of a run."""

    def __init__(
        self, faults: Sequence[StreamFault], rng: np.random.Generator, change: Change[M]
    ) -> None:
        """Start without a message; the relay, which knows the types, gives `change`."""
        self._faults, self._rng, self._change = tuple(faults), rng, change
        self._held: list[M] = []
        #: how often each kind of fault has happened to a message.
        self.happened: Counter[str] = Counter()

    def passed(self, message: M, now: float, elapsed: float | None) -> list[Delivery[M]]:
        """Apply the faults to a message: what to deliver, and when.

        It is `now` by the caller's clock, and `elapsed` since the start of the episode (None before
        it, without faults), seconds.
        """
        if elapsed is None:
            return [Delivery(now, message)]
        copies, due, hold = 1, now, False
        for fault in self._happening(elapsed):
            self.happened[fault.kind] += 1
            if isinstance(fault, Drop):
                copies = 0
            elif isinstance(fault, Duplicate):
                copies += copies > 0
            elif isinstance(fault, Delay):
                due += float(self._rng.uniform(0.0, fault.seconds))
            elif isinstance(fault, Reorder):
                hold = True
            elif isinstance(fault, _CHANGES):
                message = self._change(message, fault, self._rng)
        return self._in_order([Delivery(due, message)] * copies, hold=hold)

    def _happening(self, elapsed: float) -> list[StreamFault]:
        """Faults of a message at this time; always draws as many random numbers."""
        draws = self._rng.random(len(self._faults))
        return [
            fault
            for fault, draw in zip(self._faults, draws, strict=True)
            if fault.lasts(elapsed) and draw < fault.probability
        ]

    def _in_order(self, deliveries: list[Delivery[M]], *, hold: bool) -> list[Delivery[M]]:
        """Hold a message back until the next one has been received."""
        if hold and not self._held and deliveries:
            self._held = [delivery.message for delivery in deliveries]
            return []
        if not deliveries:
            return []
        held, self._held = self._held, []
        return [*deliveries, *(Delivery(deliveries[0].due, message) for message in held)]


_HEAD = (
    "case",
    "runs",
    "without violations",
    "ended",
    "views",
    "true coverage",
    "recovered in s (median, longest)",
    "lost / taken twice, not reported",
    "reported as lost",
    "drops by reason",
)


def account(campaign: Campaign, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """A campaign as plain values: its settings, a row for each case that was run, and all runs."""
    rows = []
    for case in campaign.cases:
        found = [outcome for outcome in outcomes if outcome.case == case.name]
        if found:
            rows.append(_row(case, found, reference_of(outcomes)))
    return {
        "campaign": campaign.as_dict(),
        "cases": rows,
        "runs": [asdict(outcome) for outcome in outcomes],
    }


def reference_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The run without faults, if any."""
    return next((outcome for outcome in outcomes if outcome.case == REFERENCE), None)


def _row(case: Case, outcomes: Sequence[Outcome], reference: Outcome | None) -> dict[str, Any]:
    recovered = [recovery.seconds for outcome in outcomes for recovery in outcome.recoveries]
    times = sorted(seconds for seconds in recovered if seconds is not None)
    drops: Counter[str] = Counter()
    for outcome in outcomes:
        drops.update(outcome.drops)
    problems = {
        f"{outcome.case}-{outcome.number:03d}": found
        for outcome in outcomes
        if (found := outcome.problems(case, reference))
    }
    return {
        "case": case.name,
        "runs": len(outcomes),
        "good": len(outcomes) - len(problems),
        "ended": dict(Counter(outcome.reason for outcome in outcomes)),
        "views": [min(len(o.visited) for o in outcomes), max(len(o.visited) for o in outcomes)],
        "coverage": [min(o.coverage for o in outcomes), median(o.coverage for o in outcomes)],
        "kills": len(recovered),
        "recovered": len(times),
        "recovery_seconds": [median(times), times[-1]] if times else None,
        "unreported_lost": sum(o.unreported_lost for o in outcomes),
        "unreported_twice": sum(o.unreported_twice for o in outcomes),
        "reported_lost": sum(o.lost_views for o in outcomes),
        "drops": dict(sorted(drops.items())),
        "same_as_reference": _same(outcomes, reference),
        "problems": problems,
    }


def _same(outcomes: Sequence[Outcome], reference: Outcome | None) -> int | None:
    """Number of runs with the views and the surface of the reference, bit for bit."""
    if reference is None:
        return None
    return sum(o.visited == reference.visited and o.digest == reference.digest for o in outcomes)


def markdown(content: Mapping[str, Any]) -> str:
    """The summary as Markdown."""
    rows = content["cases"]
    lines = [
        f"# Fault campaign {content['campaign']['name']}",
        "",
        (
            "A run has no violation if the episode ended by itself, every view that counts is in"
            " the map once or was reported as lost or taken twice, and, where the case says so,"
            " views and surface are those of the run without faults, bit for bit."
        ),
        "",
        f"| {' | '.join(_HEAD)} |",
        "|" + "---|" * len(_HEAD),
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
    ]
    problems = [(name, found) for row in rows for name, found in row["problems"].items()]
    if problems:
        lines += [
            "",
            "Violations:",
            "",
            *(f"* `{name}`: {'; '.join(found)}" for name, found in problems),
        ]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = row["recovery_seconds"]
    same = (
        f"; {row['same_as_reference']} same as reference"
        if row["same_as_reference"] is not None
        else ""
    )
    recovered = (
        ""
        if times is None
        else f"{row['recovered']} of {row['kills']}: {times[0]:.1f}, {times[1]:.1f}"
    )
    if times is None and row["kills"]:
        recovered = f"0 of {row['kills']}"
    low, high = row["views"]
    return [
        f"`{row['case']}`",
        str(row["runs"]),
        f"{row['good']} of {row['runs']}{same}",
        ", ".join(f"{reason} {number}" for reason, number in row["ended"].items()),
        str(low) if low == high else f"{low} to {high}",
        f"{row['coverage'][1]:.3f} (least {row['coverage'][0]:.3f})",
        recovered,
        f"{row['unreported_lost']} / {row['unreported_twice']}",
        str(row["reported_lost"]),
        ", ".join(f"{reason} {number}" for reason, number in row["drops"].items()) or "nothing",
    ]


KEYS = ("name", "seed", "time_limit", "parameters", "cases")
"""Keys of a campaign file; `cases` is required."""
CASE_KEYS = ("faults", "repeats", "parameters", "expect_reference")
"""Keys of a case."""
# These are set by the campaign itself.
_TAKEN = {
    "map_file",
    "state_file",
    "wait_for_start",
    "run_info_nodes",
    "exit_when_done",
    "autostart",
}
_SEED = Setting("Seed.", minimum=0, maximum=2**53)
_REPEATS = Setting("Number of runs.", minimum=1, maximum=10_000)
_TIME_LIMIT = Setting("Time after which a run is aborted.", unit="s", minimum=1.0, maximum=3600.0)
_EXPECT = Setting("Whether the runs must end as the reference does.")
T = TypeVar("T")


def load_campaign(name: str) -> Campaign:
    """Read and check a campaign: a YAML file, or by its name one included in the package.

    Raises:
        ConfigFileError: it cannot be read, or something in it is not allowed; names the file and
            the line.
    """
    path = named_file(name, "campaign", "config/faults/standard.yaml")
    text, root = read_located(path)
    entries = root.known_mapping("key", KEYS)
    if "cases" not in entries:
        raise root.error("'cases' is missing")
    parameters = _parameters(entries["parameters"]) if "parameters" in entries else {}
    campaign = Campaign(
        name=entries["name"].text() if "name" in entries else path.stem,
        cases=(Case(REFERENCE), *_cases(entries["cases"])),
        parameters=parameters,
        seed=_scalar(entries, "seed", 0, _SEED),
        time_limit=_scalar(entries, "time_limit", 60.0, _TIME_LIMIT),
        text=text,
    )
    for case in campaign.cases:
        entry = (
            entries["cases"] if case.name == REFERENCE else entries["cases"].mapping()[case.name]
        )
        with entry.errors_here():
            given = campaign.parameters_of(case)
            shape = given.get("depth_camera", {}).get("object", DepthCameraParameters().object)
            Simulation(config_from_parameters(given, object=shape, protocol="sensor"))
    return campaign


def _scalar(entries: dict[str, Located], key: str, default: T, meta: Setting) -> T:
    """Value of `key`, checked, or the default."""
    if key not in entries:
        return default
    with entries[key].named("").errors_here():
        value: T = check_value(key, entries[key].scalar(), default, meta)
    return value


def _parameters(entry: Located) -> dict[str, dict[str, Any]]:
    """Parameters by node; those of `all` are given to every node that has them."""
    found: dict[str, dict[str, Any]] = {node: {} for node in NODE_SETTINGS}
    sections = entry.known_mapping("node", ("all", *NODE_SETTINGS))
    for section in sorted(sections, key=lambda name: name != "all"):
        nodes = list(NODE_SETTINGS) if section == "all" else [section]
        known = {node: _known(node) for node in nodes}
        names = {name for of_node in known.values() for name in of_node}
        for name, value in sections[section].known_mapping("parameter", names).items():
            for node in (node for node in nodes if name in known[node]):
                with value.named("").errors_here():
                    found[node][name] = check_value(name, value.value(), *known[node][name])
    return {node: values for node, values in found.items() if values}


def _known(node: str) -> dict[str, tuple[Any, Setting]]:
    """Parameters of a node that a campaign may set: default and description by name."""
    return {
        name: (default, meta)
        for cls in NODE_SETTINGS[node]
        for name, default, meta in settings_of(cls)
        if name not in _TAKEN
    }


def _cases(entry: Located) -> list[Case]:
    cases = entry.mapping()
    if not cases:
        raise entry.error("must have at least one case, 'name: {faults: [...]}'")
    return [_case(name, case) for name, case in cases.items()]


def _case(name: str, entry: Located) -> Case:
    if not re.fullmatch(r"[a-z0-9_]+", name) or name == REFERENCE:
        raise entry.error(
            f"{name!r} is not a name of a case; must be small letters, digits and _, and not"
            f" {REFERENCE}"
        )
    entries = entry.known_mapping("key", CASE_KEYS)
    if "faults" not in entries:
        raise entry.error("'faults' is missing")
    return Case(
        name,
        tuple(_fault(item) for item in entries["faults"].sequence()),
        _scalar(entries, "repeats", 1, _REPEATS),
        _parameters(entries["parameters"]) if "parameters" in entries else {},
        _scalar(entries, "expect_reference", False, _EXPECT),
    )


def _fault(entry: Located) -> Fault:
    """One fault, `{kind: ..., ...}`."""
    entries = entry.mapping()
    if "kind" not in entries:
        raise entry.error(f"'kind' is missing; one of {', '.join(FAULTS)}")
    kind = entries["kind"].text()
    if kind not in FAULTS:
        raise entries["kind"].error(UnknownNameError("kind of fault", kind, FAULTS))
    known = {name: (default, meta) for name, default, meta in settings_of(FAULTS[kind])}
    values = {}
    for name, value in entry.known_mapping("setting", {"kind", *known}).items():
        if name != "kind":
            with value.named("").errors_here():
                values[name] = check_value(name, value.scalar(), *known[name])
    with entry.errors_here():
        return FAULTS[kind](**values)


TABLE_FILE, ACCOUNT_FILE = "faults.md", "faults.json"


class FaultFolder(CampaignFolder):
    """The results folder of a fault campaign."""

    format, description, outcome = "nbv_planner faults", "campaign.yaml", Outcome

    def __init__(self, path: str | Path, campaign: Campaign, *, resume: bool = False) -> None:
        """Refuse immediately what could not be written later.

        Raises:
            ResultsError: see :class:`nbv_bench.experiments.folder.RunFolder`.
        """
        self._campaign = campaign
        super().__init__(path, campaign.runs(), campaign.as_dict(), campaign.text, resume=resume)

    def fresh_folder(self, run: Run) -> Path:
        """Empty folder for the logs and files of a run; files of an interrupted run are removed."""
        folder = self.path / "runs" / run.slug
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def write_tables(self) -> None:
        """Write the table and the summary of the runs so far."""
        content = account(self._campaign, self.outcomes())
        write_json(self.path / ACCOUNT_FILE, {**content, "versions": versions()})
        write_whole(self.path / TABLE_FILE, markdown(content))
