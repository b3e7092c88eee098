"""When what happens to the processes and to the clock in a run."""

from __future__ import annotations

from dataclasses import dataclass

from nbv_planner.faults.campaign import Run
from nbv_planner.faults.kinds import ClockJump, Fault, Kill, Stall

# Random moments lie in this part of the time that an episode takes: one that is a little faster has them too.
_LATEST = 0.9


@dataclass(frozen=True)
class Moment:
    """Something that happens at a moment.

    Attributes:
        at: seconds after the start of the episode.
        fault: what happens.
        resume: whether it is the end of a standstill.
    """

    at: float
    fault: Fault
    resume: bool = False


def moments_of(run: Run, episode_seconds: float, time_limit: float) -> list[Moment]:
    """Everything that happens to processes and clock in a run, in the order of time.

    Args:
        run: the run; its seed decides the random moments.
        episode_seconds: time that an episode takes without faults.
        time_limit: standstills are repeated until then, seconds.
    """
    rng, latest = run.rng(0), _LATEST * episode_seconds
    found: list[Moment] = []
    for fault in run.case.faults:
        if isinstance(fault, Kill):
            found.append(Moment(fault.at if fault.at >= 0.0 else float(rng.uniform(0.0, latest)), fault))
        elif isinstance(fault, ClockJump):
            found.append(Moment(fault.at, fault))
        elif isinstance(fault, Stall):
            found += _standstills(fault, time_limit)
    return sorted(found, key=lambda moment: moment.at)


def _standstills(fault: Stall, time_limit: float) -> list[Moment]:
    begins = [number * fault.every for number in range(int(time_limit / fault.every) + 1)]
    return [
        moment for begin in begins
        for moment in (Moment(begin, fault), Moment(begin + fault.seconds, fault, resume=True))
    ]
