"""What `demo` and `simulate` show while an episode runs, and what they leave behind."""

from __future__ import annotations

import math
import signal

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import EpisodeRecord, ViewRecord
from nbv_planner.objects import parse_object
from nbv_planner.planning.coverage import coverage_estimate
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination
from nbv_planner.results import ResultsFolder, write_beliefs, write_record


def print_header(config: EpisodeConfig) -> None:
    """Say what begins."""
    print(f"object {config.object}, planner {config.planner.planner}, objective {config.planner.used_objectives[-1]}, "
          f"protocol {config.protocol}, seed {config.sensor.seed}")
    print("view    angle   new points   true coverage    estimated coverage   decision", flush=True)


def print_view(judge: EpisodeJudge, config: EpisodeConfig, estimate: CoverageEstimate | None) -> None:
    """Say what the newest view brought.

    Args:
        judge: holds the view.
        config: the band's tolerance.
        estimate: coverage by the posterior shapes; without it that by the width of the band is shown.
    """
    view: ViewRecord = judge.views[-1]
    if estimate is None:
        said = f"{coverage_estimate(judge.steps[-1].belief, config.termination.band_tolerance):.1%}"
    else:
        said = f"{estimate.mean:.1%} ({100 * estimate.lower:.0f} to {100 * estimate.upper:.0f})"
    print(
        f"{len(judge.views):4d}  {math.degrees(view.angle):6.1f}°   {view.new_points:10d}   {view.coverage:13.1%}"
        f"   {said:>19}   {view.milliseconds:5.0f} ms",
        flush=True,
    )


def finish(
    results: ResultsFolder, config: EpisodeConfig, judge: EpisodeJudge, termination: Termination, **versions: str
) -> EpisodeRecord:
    """Write record, beliefs and pictures, put the folder in place, and say how it ended.

    Ctrl-C is held back meanwhile, so that nothing is lost.
    """
    held = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        record = judge.record(config.as_dict(), config.sensor.seed, termination, **versions)
        write_record(results.folder, record)
        write_beliefs(results.folder, judge.steps)
        _write_pictures(results, config, judge, record)
        results.commit()
    finally:
        signal.signal(signal.SIGINT, held)
    _print_summary(results, record)
    return record


def _write_pictures(
    results: ResultsFolder, config: EpisodeConfig, judge: EpisodeJudge, record: EpisodeRecord
) -> None:
    try:
        from nbv_planner.plotting.episode import plot_episode, save_animation, save_picture
    except ImportError as error:
        print(f"no pictures: {error.name} is not installed (pip install '.[analysis]' in the checkout)")
        return
    shape = parse_object(config.object, config.scene)
    title = f"{config.object} · {config.planner.label} · {record.termination.reason.value}"
    figure = plot_episode(judge.steps, judge.views, shape, config.scene, title)
    save_picture(results.folder / "reconstruction.png", figure)
    save_animation(results.folder / "reconstruction.gif", judge.steps, judge.views, shape, config.scene, title)


def _print_summary(results: ResultsFolder, record: EpisodeRecord) -> None:
    ended, metrics = record.termination, record.metrics
    print(f"ended: {ended.reason.value}, {ended.detail}")
    regret = metrics["mean_individual_regret"]
    print(
        f"{metrics['T']} views, true coverage {metrics['rec']:.1%} of {metrics['surface_points']} surface points, "
        f"95 % after {metrics['T95'] or 'N/A'} views, "
        f"mean individual regret {'N/A' if regret is None else format(regret, '.2f')}"
    )
    print(f"results: {results.path}/ (" + ", ".join(sorted(p.name for p in results.path.iterdir())) + ")")
