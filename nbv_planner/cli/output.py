"""Progress and results of a subcommand."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import math
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.storage import Progress
from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import (
    EpisodeRecord,
    Metric,
    Step,
    t0_metric,
    write_beliefs,
    write_record,
)
from nbv_planner.errors import NbvPlannerError, cut, install_hint, reason
from nbv_planner.files.results_folder import ResultsFolder, write_whole
from nbv_planner.geometry import Point
from nbv_planner.known.deviation_report import DeviationReport, Known, Wanted, wanted
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.report.take_home import outline_of
from nbv_planner.surface.checks import Level, check_text
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.published import write_cells
from nbv_planner.world.scene import Scene

T = TypeVar("T")
EXIT_CODES = {TerminationReason.FAILED: 1, TerminationReason.DOUBTFUL: 3}
"""Exit codes of the commands that run an episode, by how it ended; 0 for every other end."""


def say(text: str) -> None:
    """Print a line at once.

    Raises:
        OSError: the output has no reader any more.
    """
    print(text, flush=True)


def say_wrapped(text: str) -> None:
    """Print each line of a text, indented where it goes on."""
    for line in text.splitlines():
        say(textwrap.fill(line, 118, subsequent_indent="    ", break_on_hyphens=False))


def print_header(config: EpisodeConfig) -> None:
    """Print the header of the episode."""
    say(
        f"object {config.object}, planner {config.planner.planner}, objective"
        f" {config.planner.used_objectives[-1]}, protocol {config.protocol}, seed"
        f" {config.sensor.seed}, target {config.target.summary}"
    )
    name = config.target.name
    say(f"view    angle   new points   true {name}   {f'estimated {name}':>25}   decision")


def print_view(
    judge: EpisodeJudge, config: EpisodeConfig, estimate: CoverageEstimate | None
) -> None:
    """Print the newest view; without an `estimate` of its coverage by posterior shapes, that by the
    band.
    """
    view = judge.views[-1]
    name = config.target.name
    true = getattr(view, name) if judge.regions is None else view.weighted
    if estimate is None:
        narrow = config.termination.band_tolerance, config.target.regions
        said = f"{judge.steps[-1].belief.measured(*narrow):.1%}"
    else:
        said = estimate.summary
    free = (
        ""
        if config.views.on_circle
        else f"   from {view.distance:.2f} m, turned by {math.degrees(view.turn):.1f}°"
    )
    say(
        f"{len(judge.views):4d}  {math.degrees(view.angle):6.1f}°   {view.new_points:10d}  "
        f" {true:{5 + len(name)}.1%}   {said:>25}   {view.milliseconds:5.0f}"
        f" ms{free}"
    )
    before = {
        check.name
        for step in judge.steps[-2:-1]
        for check in step.belief.checks
        if check.level.speaks
    }
    for check in judge.steps[-1].belief.checks:
        if check.level.speaks and check.name not in before:
            say(
                f"  {'doubt' if check.level is Level.FAILED else 'note'}:"
                f" {check_text(check, config.measurement.noise)}"
            )


def stopped(judge: EpisodeJudge, came: Sequence[int]) -> Termination:
    """The termination by the first received signal."""
    name = "Ctrl-C" if came[0] == signal.SIGINT else signal.Signals(came[0]).name
    return Termination(TerminationReason.STOPPED, {"views": float(len(judge.views))}, name)


def finish(
    results: ResultsFolder,
    config: EpisodeConfig,
    judge: EpisodeJudge,
    termination: Termination,
    *,
    figures: bool,
    timed: bool = False,
    nominal: Wanted | None = None,
) -> None:
    """Write record and outline, move the folder to its place, print how it ended, and if `figures`
    draw pictures.

    It says seconds of the cost model only if it is `timed`: by a speed that was given; deviations
    where there is a `nominal` outline.
    """
    compared(judge)
    record = judge.record(config.as_dict(), config.sensor.seed, termination, **config.packages)
    record = dataclasses.replace(record, metrics=record.metrics | t0_metric(config.near_optimal_by))
    write_record(results.folder, record)
    write_beliefs(results.folder, judge.steps)
    write_cells(results.folder, (step.belief for step in judge.steps))
    x, y = config.world.placed  # steps are as seen from the true centre
    belief = judge.steps[-1].belief.seen_from(-x, -y) if judge.steps else None
    outline = written_outline(results, belief, config.scene)
    report = compared_with(nominal, judge.steps, (x, y))
    if report is not None:
        report.write(results.folder)
    results.commit()
    metrics = record.metrics
    regret = Metric.mean_individual_regret.of(record.metrics)
    say(f"ended: {termination.reason.value}, {termination.detail}")
    say(
        f"{Metric.T.of(metrics)} views, true coverage {Metric.rec.of(metrics):.1%} of"
        f" {len(judge.truth)} surface points, 95 % after {Metric.T95.of(metrics) or 'N/A'} views,"
        f" completeness {Metric.completeness.of(metrics):.1%} at {judge.tau:g} m, 95 % after"
        f" {Metric.C95.of(metrics) or 'N/A'} views, mean individual regret"
        f" {'N/A' if regret is None else format(regret, '.2f')}{_by_weight(judge, metrics)}"
    )
    if judge.views:
        time95 = Metric.time95.of(metrics)
        last = judge.views[-1]
        seconds = "; no time, since linear_speed is not given"
        if timed:
            reached = "N/A" if time95 is None else format(time95, ".0f")
            words = judge.pace.time_text
            seconds = (
                f" and {last.seconds:.0f} s by the cost model ({words}), 95 % after {reached} s"
            )
        say(f"{last.travelled:.1f} m from view to view{seconds}")
    say(outline)
    if report is not None:
        say(f"deviation: {report.summary}")
    drawn(figures, lambda: _write_pictures(results.path, config, judge, record), None)
    drawn(figures and report is not None, lambda: _draw_report(results.path, report), None)
    print_files(results)


def _by_weight(judge: EpisodeJudge, metrics: Mapping[str, Any]) -> str:
    """What is to be said of regions, if there are any."""
    if judge.regions is None or not judge.views:
        return ""
    reached = Metric.W95.of(metrics) or "N/A"
    part = Metric.weighted.of(metrics)
    return f"; completeness {judge.regions.summary} {part:.1%}, 95 % after {reached} views"


def compared(judge: EpisodeJudge) -> None:
    """Have installed packages compare the judged views with what they know (entry points
    `nbv_planner.judges`).
    """
    for entry in metadata.entry_points(group="nbv_planner.judges"):
        with contextlib.suppress(NbvPlannerError):
            entry.load()(judge)


def written_outline(results: ResultsFolder, belief: Any, scene: Scene) -> str:
    """Write the outline of the last belief into the folder, and return a line that says how good it
    is.
    """
    if belief is None:
        return "outline: none, no view has been taken"
    outline = outline_of(belief, scene)
    outline.write(results.folder)
    return f"outline: {outline.summary}"


def nominal_of(
    arguments: argparse.Namespace, known: Known | None, config: EpisodeConfig
) -> Wanted | None:
    """What the options of :func:`add_nominal` compare an object with: a file, else outlines that
    were `known` before the first scan; None without either.

    Raises:
        SettingError: the file cannot be used.
    """
    tolerance = arguments.tolerance or config.outline.tolerance
    return wanted(arguments.nominal, known, config.scene, arguments.place, tolerance)


def compared_with(
    nominal: Wanted | None, steps: Sequence[Step], placed: Point
) -> DeviationReport | None:
    """The deviations of what was hit in the steps, as seen from where the object is `placed`, from
    the nominal outline; None without one.
    """
    if nominal is None:
        return None
    return nominal.compared(Hits.together([step.hits for step in steps]).moved(*placed))


def _draw_report(folder: Path, report: DeviationReport | None) -> None:
    from nbv_planner.report.figures.recorded_figure import write_deviation

    if report is not None:
        write_deviation(folder, report)


def _write_pictures(
    folder: Path, config: EpisodeConfig, judge: EpisodeJudge, record: EpisodeRecord
) -> None:
    from nbv_planner.report.figures.animation import save_animation
    from nbv_planner.report.figures.episode_content import episode_frames
    from nbv_planner.report.figures.episode_figure import draw_figure
    from nbv_planner.report.figures.style import png_bytes

    title = f"{config.object} · {config.planner.label} · {record.termination.reason.value}"
    frames = episode_frames(
        judge.steps,
        judge.views,
        judge.truth.shape,
        config.scene,
        title,
        judge.space.ground,
        judge.regions,
    )
    write_whole(folder / "reconstruction.png", png_bytes(draw_figure(frames[-1])))
    file = io.BytesIO()
    save_animation(file, frames)
    write_whole(folder / "reconstruction.gif", file.getvalue())


def drawn(wanted: bool, draw: Callable[[], T], nothing: T) -> T:
    """What `draw` returns, by matplotlib's own settings; `nothing` if it is not wanted, or cannot
    be drawn: says why.

    Whatever a picture fails for, the work that it shows is done and goes on.
    """
    if not wanted:
        return nothing
    try:
        from nbv_planner.report.figures.style import figure_style

        with figure_style():
            return draw()
    except ImportError as error:
        say(f"no pictures: {error.name} is not installed ({install_hint('analysis')})")
    except BrokenPipeError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, NbvPlannerError) else f"{type(error).__name__}: "
        say(f"no pictures: {cut(f'{kind}{reason(error)}')}")
    return nothing


def print_files(results: ResultsFolder) -> None:
    """Print where the results are."""
    say(
        f"results: {results.path}/"
        f" ({', '.join(sorted(path.name for path in results.path.iterdir()))})"
    )


_TERMINAL_SECONDS, _FILE_SECONDS = 0.2, 30.0


class ProgressLine(contextlib.AbstractContextManager["ProgressLine"]):
    """Shows the number of things done, and the time left at the average speed so far; a block with
    it ends the line.
    """

    def __init__(self, total: int, what: str) -> None:
        """Start the clock, with so many things to do from now on, called `what`."""
        self._total, self._what = total, what
        self._began = time.monotonic()
        self._shown = float("-inf")
        self._width = 0
        self._done = -1

    def __exit__(self, *_: object) -> None:
        self.end()

    def show(self, done: int, remark: str = "") -> None:
        """Print the progress, unless it is the same or printed a moment ago; the end is always
        printed.
        """
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        recent = now - self._shown < (_TERMINAL_SECONDS if terminal else _FILE_SECONDS)
        if done == self._done or (done < self._total and recent):
            return
        self._done = done
        self._shown = now
        elapsed = now - self._began
        left = ""
        if done == self._total:
            left = f", {duration(elapsed)}"
        elif done:
            left = f", about {duration(elapsed / done * (self._total - done))} left"
        text = f"{done} of {self._total} {self._what}{remark}{left}"
        blanks = " " * (self._width - len(text))
        self._width = len(text)
        print(
            f"\r{text}{blanks}" if terminal else text,
            end="" if terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        """End the line on a terminal, if there is one."""
        if self._width and sys.stderr.isatty():
            print(file=sys.stderr)


def duration(seconds: float) -> str:
    """Time in words, for example `1 h 05 min`, `2 min 10 s` or `7 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


@contextlib.contextmanager
def megabytes_read(bag: Bag) -> Iterator[Progress]:
    """Show how much of a bag has been read."""
    total = max(1, round(bag.size / 1e6))
    with ProgressLine(total, f"MB of {bag.path.name}") as line:
        yield lambda fraction: line.show(round(fraction * total))
