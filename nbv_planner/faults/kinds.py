"""The faults by kind, each with its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from nbv_planner.errors import SettingError
from nbv_planner.settings import check_settings, setting

NODES = ("depth_camera", "surface_mapper", "nbv_planner")
TOPICS = ("scan", "camera_pose", "goal_pose")
"""What passes between camera, mapper and planner, and can be tampered with on its way."""

_FOR_EVER = 1e6


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Raises:
        SettingError: a value is not allowed.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class StreamFault(Fault):
    """Happens to messages of a topic on their way, each with a probability, during a stretch of the episode."""

    topic: str = setting("scan", "Topic.", choices=TOPICS)
    probability: float = setting(1.0, "Probability with which it happens to a message.", ge=0.0, le=1.0)
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
    """The message comes late by a time that is uniform between 0 and `seconds`; others overtake it."""

    kind = "delay"
    seconds: float = setting(0.2, "Longest delay.", unit="s", gt=0.0, le=60.0)


@dataclass(frozen=True)
class Duplicate(StreamFault):
    """The message comes twice."""

    kind = "duplicate"


@dataclass(frozen=True)
class Reorder(StreamFault):
    """The message comes after the next one."""

    kind = "reorder"


@dataclass(frozen=True)
class Corrupt(StreamFault):
    """Something in the message is broken: not a number, wrong frame, wrong length, random bits."""

    kind = "corrupt"


@dataclass(frozen=True)
class Freeze(StreamFault):
    """The sensor hangs: the scan has the ranges of the first one in the stretch, and a stamp of its own."""

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
    """The camera never sets out for a goal, however often it is sent."""

    kind = "unreachable"
    probability: float = setting(0.2, "Probability with which a goal cannot be reached.", ge=0.0, le=1.0)


@dataclass(frozen=True)
class Kill(Fault):
    """A node is killed (SIGKILL) and started again by the runner."""

    kind = "kill"
    node: str = setting("surface_mapper", "Node.", choices=NODES)
    at: float = setting(-1.0, "When, after the start; negative: at random, within the time that an episode takes.",
                        unit="s", ge=-1.0)
    down: float = setting(0.0, "Time until it is started again.", unit="s", ge=0.0, le=600.0)


@dataclass(frozen=True)
class Stall(Fault):
    """A node stands still (SIGSTOP) and goes on, over and over: a consumer that is too slow."""

    kind = "stall"
    node: str = setting("surface_mapper", "Node.", choices=NODES)
    seconds: float = setting(0.5, "How long it stands still.", unit="s", gt=0.0, le=60.0)
    every: float = setting(1.0, "Time from one standstill to the next.", unit="s", gt=0.0, le=600.0)

    def __post_init__(self) -> None:
        """Check that it runs in between."""
        super().__post_init__()
        if self.every <= self.seconds:
            raise SettingError(f"every: {self.every:g} s must be > {self.seconds:g} s (seconds)")


@dataclass(frozen=True)
class ClockJump(Fault):
    """The clock jumps; the nodes then take the time from `/clock`, which runs like the true time otherwise."""

    kind = "clock"
    at: float = setting(1.0, "When, after the start.", unit="s", ge=0.0)
    seconds: float = setting(-5.0, "How far it jumps; negative: back.", unit="s", ge=-1e5, le=1e5)


FAULTS: dict[str, type[Fault]] = {
    cls.kind: cls
    for cls in (
        Drop, Delay, Duplicate, Reorder, Corrupt, Freeze, OutOfRange, Bias, Unreachable, Kill, Stall, ClockJump,
    )
}
"""The kinds of faults by name."""
