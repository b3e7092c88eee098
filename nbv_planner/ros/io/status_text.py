"""The status of the planner as text and as numbers, and the reasons of a view."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus

from nbv_planner.clouds.space_messages import values_of_pose
from nbv_planner.episode.messages import ESTIMATED, PACE
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.view_space import (
    excluded_numbers,
    excluded_text,
    path_length_through,
    start_text,
)
from nbv_planner.ros.core.inputs import InputMonitor
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io.conversions import status_message
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import Ranking, State
from nbv_planner.session.state import Goal, behind_text
from nbv_planner.session.targets import pace
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.checks import Level, check_text, failed_checks
from nbv_planner.surface.coverage import named
from nbv_planner.surface.seam import Banded

# Topics of mapper and robot: a problem there stops the episode.
_PARTNERS = ("surface", "surface_info", "camera_pose", "goal_pose")
_END_LEVELS = {
    TerminationReason.FAILED: DiagnosticStatus.ERROR,
    TerminationReason.DOUBTFUL: DiagnosticStatus.WARN,
}
# Seconds by which a pose may be of a time before the goal that was given before it arrived.
_LATE = 1.0


def status_text(core: PlannerCore, inputs: InputMonitor, now: int) -> tuple[bytes, str]:
    """Level and message of the status; at WARN the message names what is missing, lost or
    incompatible, and the checks that failed.
    """
    ended = core.episode.termination
    if ended is not None:
        level = _END_LEVELS.get(ended.reason, DiagnosticStatus.OK)
        message = f"{ended.reason.value}: {ended.detail}"
        troubles = _doubts(core) if level == DiagnosticStatus.OK else []
    else:
        level, message = _waiting_text(core, inputs, now)
        troubles = [*_troubles(core, inputs), *_doubts(core)]
    more = [text for text in troubles if text not in message]
    return (DiagnosticStatus.WARN if troubles else level), "; ".join([message, *more])


def _waiting_text(core: PlannerCore, inputs: InputMonitor, now: int) -> tuple[bytes, str]:
    if core.overdue(now) is not None and core.episode.started:
        limit = core.settings.input_timeout
        return DiagnosticStatus.WARN, f"{_awaited(core, inputs)}; nothing for more than {limit:g} s"
    number = len(core.episode.visited) + 1
    messages = {
        State.PLANNING: "choosing the next view",
        State.MOVING: f"to view {number}" if core.episode.ending is None else "to the home view",
        State.MEASURING: f"at view {number}, waiting for its surface",
        State.PAUSED: core.episode.interruption or "paused by the operator",
    }
    return DiagnosticStatus.OK, messages.get(core.state) or _awaited(core, inputs)


def _awaited(core: PlannerCore, inputs: InputMonitor) -> str:
    if core.state is State.MEASURING:
        number = len(core.episode.visited) + 1
        refused = inputs.refused.get("surface")
        return (
            f"waiting for a surface with a scan of view {number} on {inputs.described('surface')}"
            + (f", the last one: {refused}" if refused else "")
        )
    if not core.episode.started:
        return "waiting for the service ~/start"
    awaited = [
        _too_few(core, inputs) if topic == "goal_pose" else _not_received(inputs, topic)
        for topic in core.missing()
    ]
    return "waiting for " + (
        "; ".join(awaited) or "enough camera poses for the checks before the first goal"
    )


def _not_received(inputs: InputMonitor, topic: str) -> str:
    """What is missing of an input of the planner; a surface takes two topics."""
    if topic != "surface":
        return "; ".join(inputs.missing(topic))
    missing = inputs.missing("surface", "surface_info") or [
        "a surface and a surface_info with the same stamp"
    ]
    return f"{'; '.join(missing)} (surface_mapper publishes both once its own inputs are alive)"


def _too_few(core: PlannerCore, inputs: InputMonitor) -> str:
    """Name missing subscribers of the goals, and a missing recorder."""
    recorder = core.settings.recorder
    if core.inputs.unrecorded:
        return (
            f"the recorder {recorder}, which has not subscribed to"
            f" {', '.join(core.inputs.unrecorded)} yet"
        )
    expected = core.inputs.expected_subscribers + (", and the recorder" if recorder else "")
    number = f"{core.inputs.subscribers} of {core.settings.goal_subscribers} subscribers"
    return "; ".join(
        [
            f"{inputs.described('goal_pose')}: {number} ({expected})",
            *inputs.problems("goal_pose"),
        ]
    )


def _doubts(core: PlannerCore) -> list[str]:
    """What the failed checks of the newest surface say, and that of the noise where it differs."""
    checks = () if core.inputs.belief is None else core.inputs.belief.checks
    noise = [check for check in checks if check.name == "noise" and check.level is Level.NOTED]
    return [
        check_text(check, core.planner.settings.noise) for check in (*failed_checks(checks), *noise)
    ]


def _troubles(core: PlannerCore, inputs: InputMonitor) -> list[str]:
    episode = core.episode
    found = [*inputs.clock(), *inputs.problems(inputs.name, *_PARTNERS)]
    arrival = core.arrival
    views = core.planner.views
    found += filter(
        None,
        [
            episode.refusal,
            views.indistinct(arrival.settings),
            arrival.standstill(episode),
            episode.remedy,
        ],
    )
    if core.inputs.refused is not None:
        found.append(f"{core.inputs.refused[-1]}; ~/reset begins a new episode with it")
    if core.state is not State.MOVING and (standing := start_text(views)):
        found.append(standing)
    found += inputs.lost("camera_pose")
    found += inputs.gone("surface") or inputs.lost("mapper") or inputs.partners.troubles
    miss, target = episode.last_miss, episode.target
    if (
        miss is not None
        and core.state is State.MOVING
        and target is not None
        and target.stamp == miss.stamp
    ):
        found.append(str(miss))
    elif (behind := arrival.behind(episode, core.inputs)) > _LATE:
        found.append(behind_text(behind))
    under_way = episode.target is not None or episode.visited
    if under_way and core.inputs.unheard(core.settings.goal_subscribers):
        found.append(_too_few(core, inputs))
    return found


def planner_status(core: PlannerCore, now: int) -> dict[str, object]:
    """Values of the status."""
    episode = core.episode
    values: dict[str, object] = {
        "state": core.state.value,
        "views": len(episode.visited),
        "coverage_estimate": _coverage(core, core.inputs.belief),
        "elapsed": episode.elapsed(now),
        "lost_views": episode.lost_views,
        "skipped_views": episode.skipped_views,
        "unreached_views": episode.unreached_views,
        "last_miss": episode.last_miss or "",
        **_certified(core),
    }
    if episode.termination is None:
        return values
    ended = episode.termination
    # The values of every status come last: a value of the same name (views) must not change their
    # format.
    return {**ended.figures, **values, "reason": ended.reason.value, "detail": ended.detail}


def summary(core: PlannerCore, keeper: JournalKeeper, now: int) -> str:
    """Summary of the episode so far, and where it is saved, in one line."""
    found = core.episode.estimate
    what, hypotheses = named(core.episode.visited)
    rough = "width of the band" if what == "outline" else "directions that are measured"
    coverage = f"{_coverage(core, core.inputs.belief):.1%} by the {rough}"
    if found is not None:
        coverage = f"{found.summary} of {found.target.words_of(what)} by the {hypotheses}"
    lacking = "not saved: ~/save needs the parameter state_file, that of the mapper map_file"
    saved = f"saved to {keeper.path}" if keeper.path else lacking
    recorder = core.settings.recorder and f"; recorded by {core.settings.recorder}"
    return (
        f"{len(core.episode.visited)} views, coverage {coverage},"
        f" {core.episode.elapsed(now):.1f} s,"
        f" {path_length_through(core.planner.views, core.episode.visited):.1f} m between the views;"
        f" {saved}{recorder}"
    )


def _coverage(core: PlannerCore, belief: SurfaceBelief | None) -> float:
    """Estimated coverage: by the posterior shapes once they have evaluated a view, else by the
    width of the band.
    """
    found = core.episode.estimate
    if found is not None:
        return found.mean
    return 0.0 if belief is None else core.monitor.coverage(belief)


def _certified(core: PlannerCore) -> dict[str, object]:
    found = core.episode.estimate
    if found is None:
        return {}
    figures = {f"coverage_{name}": getattr(found, name) for name in ESTIMATED}
    return {**figures, "coverage_target": found.target.name}


def iteration_values(core: PlannerCore, goal: Goal, view_distance: float) -> dict[str, object]:
    """Why this view: utility, runner-up, margin, distance, time, and the state of the surface
    before it.
    """
    decision = goal.decision
    return {
        "round": goal.round,
        "decided_by": decision.decided_by,
        "goal_stamp": goal.stamp,
        "view_angle": decision.view_angle,
        **decision.view.off_circle(view_distance),
        **values_of_pose(decision.view),
        "utility": decision.utility,
        "score": decision.score,
        "runner_up": decision.runner_up,
        "margin": decision.margin,
        "cost": decision.utility - decision.score,
        "candidates": len(decision.candidates),
        "feasible_candidates": int(decision.feasible.sum()),
        **excluded_numbers(decision.excluded),
        "planning_milliseconds": goal.planning_milliseconds,
        "surface_stamp": goal.belief_stamp,
        **goal.figures,
        **_certified(core),
    }


def plotted_values(core: PlannerCore, view_distance: float) -> dict[str, object]:
    """Numbers on `/diagnostics` for plotting tools, in addition to those of every status."""
    belief, goal = core.inputs.belief, core.episode.goal
    values: dict[str, object] = {
        "travelled": path_length_through(core.planner.views, core.episode.visited)
    }
    if core.episode.trips:
        last = core.episode.trips[-1]
        learned = pace(core)
        values |= {"leg_predicted": last.predicted, "leg_measured": last.travel + last.dwell}
        values |= {f"measured_{name}": getattr(learned, name) for name in PACE}
    if isinstance(belief, Banded):
        _, lower, upper = belief.band()
        values["band_width_mean"] = float((upper - lower).mean())
        monitor = core.monitor
        values["narrow_fraction"] = belief.narrow_part(
            monitor.settings.band_tolerance, monitor.regions
        )
    if goal is not None:
        values |= {"view_angle": goal.decision.view_angle, "utility": goal.decision.utility}
        values |= goal.decision.view.off_circle(view_distance)
        values["planning_milliseconds"] = goal.planning_milliseconds
    return values


def ranking_status(name: str, objective: str, found: Ranking | Exception) -> DiagnosticStatus:
    """Build the answer to a request for a ranking: the views in their order, or why there is
    none.
    """
    if isinstance(found, Exception):
        return status_message(name, DiagnosticStatus.ERROR, str(found), {})
    values: dict[str, object] = {"objective": objective, "views": len(found.views)}
    for index, angle in enumerate(found.views.view_angle.tolist()):
        row = {
            "utility": found.utilities[index],
            "cost": found.costs[index],
            "excluded": int(found.excluded[index]),
        }
        values |= {
            f"{index + 1}.{key}": value for key, value in {"view_angle": angle, **row}.items()
        }
    best = f"best: {values['1.view_angle']:.4f} rad, {objective} {values['1.utility']:.6g}"
    if found.excluded[0]:
        best = f"none may be chosen: {excluded_text(found.excluded)}"
    return status_message(
        name, DiagnosticStatus.OK, f"{best}; {len(found.views)} views ranked", values
    )
