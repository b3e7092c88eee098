"""Run an episode in one process, without ROS."""

from __future__ import annotations

import argparse
import io
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from nbv_planner.cli.options import (
    add_episode_options,
    episode_config,
    episode_folder,
    given_values,
    is_timed,
    one_of,
    parameters_from,
    positive_number,
    results_folder,
    say_derived,
)
from nbv_planner.cli.output import (
    EXIT_CODES,
    drawn,
    finish,
    nominal_of,
    print_files,
    print_header,
    print_view,
    say,
    stopped,
)
from nbv_planner.episode import parameter_files
from nbv_planner.episode.parameters import PROTOCOLS, EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_episode import SolidEpisode, SolidJudge, SolidView
from nbv_planner.episode.solid.solid_results import views_until, write_episode, write_surface
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.episode.solid.space_deciders import early_claim
from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.files.results_folder import ResultsFolder, fresh_folder, write_whole
from nbv_planner.known.deviation import PLACES
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.objectives import EXPECTED
from nbv_planner.planning.planners.decision_settings import (
    PLANNERS_IN_SPACE,
    SPACE_PLANNER_PLUGINS,
)
from nbv_planner.report.ahead.cut_series import CutSeries, totals
from nbv_planner.system import held_signals
from nbv_planner.volume.bodies.mesh_files import is_solid


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_episode_options(parser)
    add_nominal(parser)
    parser.add_argument(
        "--protocol",
        type=one_of("protocol", PROTOCOLS),
        default="sensor",
        metavar="NAME",
        help=(
            "sensor: noisy beams, ends as a robot does; thesis: noise-free surface points (default:"
            " sensor)"
        ),
    )
    parser.add_argument(
        "--series",
        metavar="DIR",
        help="measure the cuts of one object instead: a folder of outlines named by their heights"
        " in metres (0.25.csv), each the prior of the next; resumes an interrupted series in"
        " --out",
    )


def add_nominal(parser: argparse.ArgumentParser) -> None:
    """Add what the object is compared with in the end."""
    parser.add_argument(
        "--nominal",
        metavar="FILE",
        help=(
            "outline that the object should have, for example part.dxf,unit=mm: writes the"
            " deviations from it (default: prior_outline, where that was given)"
        ),
    )
    parser.add_argument(
        "--place",
        type=one_of("place", PLACES),
        default=PLACES[0],
        metavar="NAME",
        help="fitted: deviations after the best fit of its position; placed: from its position in"
        " the file (default:"
        " fitted)",
    )
    parser.add_argument(
        "--tolerance", type=positive_number, metavar="M", help="greatest deviation allowed, metres"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    if arguments.series is not None:
        if arguments.nominal:
            raise SettingError("--nominal: compares one object, not a series of cuts")
        return _run_series(arguments)
    if is_about_solid(arguments):
        return _run_solid(arguments)
    parameters = parameters_from(arguments)
    config = episode_config(parameters, arguments.protocol)
    simulation = Simulation(config)
    nominal = nominal_of(arguments, config.known, config)
    with held_signals() as came, episode_folder(arguments, config) as results:
        say_derived(parameters, config)
        termination = _run_episode(simulation, config, came)
        finish(
            results,
            config,
            simulation.judge,
            termination,
            figures=arguments.figures,
            timed=is_timed(parameters),
            nominal=nominal,
        )
    return EXIT_CODES.get(termination.reason, 0)


def _run_episode(simulation: Simulation, config: EpisodeConfig, came: list[int]) -> Termination:
    """Run to the end, or to the view at which a signal is received."""
    for words in getattr(simulation.judge.truth, "remarks", ()):
        say(words)
    print_header(config)
    for _ in simulation.run():
        if not came:  # the reader of the output may have ended by the same signal
            print_view(simulation.judge, config, simulation.estimate)
        if came:
            return stopped(simulation.judge, came)
    return simulation.result.termination


def _run_series(arguments: argparse.Namespace) -> int:
    """The episodes of a series of cuts, each with the one below as its prior."""
    if arguments.object is not None or arguments.protocol != "sensor":
        raise SettingError("series: takes no object but those of its folder, and protocol sensor")
    folder = Path(arguments.series)
    out = Path(arguments.out) if arguments.out else fresh_folder("results", f"series-{folder.stem}")
    parameters = parameters_from(arguments)
    config = episode_config(parameters, "sensor")
    series = CutSeries(config, folder, out, again=arguments.force)
    if series.rows:
        say(f"{out}: {totals(series.rows)} so far")
    with held_signals() as came:
        while series.left and not came:
            cut, (here, known) = series.left[0], series.next_config()
            say(f"cut at {cut.height:g} m, {known}")
            simulation = Simulation(here)
            place = series.folder_of(cut)
            with ResultsFolder(place, force=True) as results:
                termination = _run_episode(simulation, here, came)
                if not came:
                    series.keep(results.folder, simulation)
                finish(results, here, simulation.judge, termination, figures=False)
            if missing := series.write():
                say(missing)
        drawn(arguments.figures and len(series.rows) > 1, lambda: _draw_series(series), None)
    say(f"{totals(series.rows)}; {len(series.left)} cuts left")
    say(f"results: {out}/ ({', '.join(sorted(one.name for one in out.iterdir()))})")
    reasons = (TerminationReason(row.reason) for row in series.rows)
    return max((EXIT_CODES.get(reason, 0) for reason in reasons), default=0)


def _draw_series(series: CutSeries) -> None:
    from nbv_planner.report.figures.series_figure import draw_series
    from nbv_planner.report.figures.style import png_bytes

    write_whole(series.out / "cuts.png", png_bytes(draw_series(series)))


def _run_solid(arguments: argparse.Namespace) -> int:
    """The same in space."""
    if arguments.protocol != "sensor":
        raise SettingError("protocol: in space it is sensor")
    episode = SolidEpisode(SolidConfig.of(solid_parameters(arguments)))
    judge = episode.judge
    with held_signals() as came, solid_folder(arguments, judge.config) as results:
        print_solid_header(judge)
        for view in episode.run():
            if came:
                break
            print_solid_view(view)
        termination = episode.termination or solid_stopped(judge, came)
        finish_solid(results, judge, termination, figures=arguments.figures)
    return EXIT_CODES.get(termination.reason, 0)


def is_about_solid(arguments: argparse.Namespace) -> bool:
    """Whether the object, given by option or in the parameter file, is a solid in space."""
    given = arguments.object
    if given is None and arguments.params_file:
        values = parameter_files.values_for(arguments.params_file, "depth_camera")
        given = values.get("object")
    return is_solid(str(given or ""))


def solid_folder(arguments: argparse.Namespace, config: SolidConfig) -> ResultsFolder:
    """Open the results folder of an episode in space."""
    words = Path(config.object.partition(":")[2].partition(",")[0]).stem.replace("=", "")
    name = f"{arguments.subcommand}-{words}-{config.planner.label}-seed{config.camera.seed}"
    return results_folder(arguments, name.replace(":", "-"))


def solid_parameters(
    arguments: argparse.Namespace, *, ros: bool = False
) -> parameter_files.Parameters:
    """Node parameters of an episode in space: those of config/space/solid.yaml, over them those of
    the file, of `--set`, and of the other options.

    Raises:
        NbvPlannerError: the file or a value is not allowed, or an option is of the plane alone.
    """
    if arguments.objective not in (None, EXPECTED) or arguments.phase_one_objective:
        raise SettingError(f"objective: in space it is {EXPECTED}")
    if arguments.nominal:
        raise SettingError("--nominal: compares outlines in the plane, not solids")
    known = *PLANNERS_IN_SPACE, *SPACE_PLANNER_PLUGINS.names
    if arguments.planner not in (None, *known):
        raise UnknownNameError("planner in space", arguments.planner, known)
    shipped = parameter_files.shared_file("config/space/solid.yaml")
    parameters = parameter_files.load_parameters(shipped, nodes=SOLID_NODES)
    if file := arguments.params_file:
        given = parameter_files.load_parameters(file, nodes=SOLID_NODES)
        parameter_files.lay_over(parameters, given)
    parameter_files.set_parameters(parameters, arguments.set, ros=ros, nodes=SOLID_NODES)
    parameters["depth_camera"].update(given_values(arguments, ("object", "seed")))
    parameters["nbv_planner"].update(given_values(arguments, ("planner", "region_file")))
    return parameters


def solid_stopped(judge: SolidJudge, came: Sequence[int]) -> Termination:
    """The termination by the first signal that was received."""
    name = "Ctrl-C" if came and came[0] == signal.SIGINT else "a signal"
    return Termination(TerminationReason.STOPPED, {"views": float(len(judge.views))}, name)


def print_solid_header(judge: SolidJudge) -> None:
    """Print what is to be done, and what there is to be said of the object."""
    config = judge.config
    claim = early_claim(judge.tau, config.noise.ranges, config.scene, config.sensor)
    for words in filter(None, (*judge.remarks, claim)):
        say(words)
    if judge.truth.hidden >= 0.001:
        say(f"{judge.truth.hidden:.1%} of the surface is hidden from all candidate views")
    say(
        f"object {config.object}, planner {config.planner.label}, seed {config.camera.seed},"
        f" {len(judge.truth.views)} candidate views ({config.views.view_space}), target: the"
        f" surface within {judge.tau:g} m of a measurement"
        f"{'' if judge.regions is None else f', {judge.regions.summary}'}"
    )
    say("view  azimuth  elevation    true        estimated         path   decision")


def print_solid_view(view: SolidView) -> None:
    """Print a view."""
    azimuth, elevation = view.angles
    estimate = "" if view.estimate is None else view.estimate.summary
    say(
        f"{view.number:4d}  {azimuth:6.1f}°   {elevation:6.1f}°   {view.reached:6.1%}"
        f"  {estimate:>25}  {view.travelled:6.2f} m  {view.milliseconds:5.0f} ms"
    )


def finish_solid(
    results: ResultsFolder, judge: SolidJudge, ended: Termination, *, figures: bool
) -> None:
    """Write record, points and surface, draw the pictures, and print how it ended."""
    surface = "surface: none, no view has been taken"
    if judge.views:
        surface = write_surface(results.folder, judge.surfaces[-1], judge.tau)
    write_episode(results.folder, judge, ended)
    drawn(figures and bool(judge.views), lambda: _draw_solid(results.folder, judge), None)
    results.commit()
    say(f"ended: {ended.reason.value}, {ended.detail}")
    if judge.views:
        last = judge.views[-1]
        reached = views_until(judge.views, 0.95) or "N/A"
        regions = judge.regions
        by_weight = "" if regions is None else f", {last.weighted:.1%} {regions.summary}"
        say(
            f"{last.number} views, {last.travelled:.2f} m, true completeness"
            f" {last.completeness:.1%}{by_weight}, 95 % after {reached} views"
        )
    say(surface)
    print_files(results)


def _draw_solid(folder: Path, judge: SolidJudge) -> None:
    from nbv_planner.report.figures.animation import save_animation
    from nbv_planner.report.figures.solid_figure import draw_progress, draw_solid
    from nbv_planner.report.figures.style import png_bytes

    write_whole(folder / "reconstruction.png", png_bytes(draw_solid(judge)))
    file = io.BytesIO()
    numbers = [view.number for view in judge.views]
    save_animation(file, numbers, partial(draw_progress, judge))
    write_whole(folder / "reconstruction.gif", file.getvalue())
