"""Run episodes with a known outline as prior, and compare them with those without one.

The outline is that of the object, the same displaced by 0.1 of its mean radius R and 5°, in a
direction that is drawn, or that of another object of the set; beside them stand no prior, and the
greedy planner that knows the object. Each episode runs until it ends by itself, that of the knowing
planner until 95 % are reached; what is compared is the number of views to 95 % of the true target.
A run *fails* if it ends before that. A claim COVERED is *wrong* if less than 95 % were there.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.running import (
    add_draws,
    add_every,
    add_half,
    add_objects,
    add_results,
    objects_of,
    ratio_of_means,
    run_kept,
)
from campaigns.scenarios import shipped_config, with_settings
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.cli.options import one_of
from nbv_planner.episode.parameter_files import load_parameters, shared_file
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import solid_object, stl_bytes
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.text import is_no_radius
from nbv_planner.world.objects.true_outlines import parse_outlines

SETS = {
    "tuning": ("random_tuning", "silhouettes_tuning"),
    "test": ("random_test", "silhouettes_test"),
}
"""Sets of objects by half: parameters may be chosen by the first one."""
PRIORS = ("none", "true", "moved", "other", "knows")
"""Outlines that are known: none, that of the object, displaced, that of another object, and in
place of a prior the object itself, to the greedy planner.
"""
ROWS_FILE = "prior.csv"
_ALONG, _TURN = 0.1, np.deg2rad(5.0)
_POINTS = 1440
_SMALLER = 0.97


@dataclass(frozen=True)
class Case:
    """An object, another one of the set, the seed of the noise, and what is to be covered."""

    object: str
    other: str
    draw: int
    target: str
    model: str = "auto"

    @property
    def priors(self) -> tuple[str, ...]:
        """Those that it is run with: the planner that knows the object needs a radius."""
        cells = self.model in ("volume", "space") or is_no_radius(self.object)
        return PRIORS[:4] if cells else PRIORS

    def outline(self, prior: str, config: EpisodeConfig) -> FloatArray:
        """Corners of the outline that is known, shape (n, 2), metres."""
        return np.concatenate(self.loops(prior, config))

    def loops(self, prior: str, config: EpisodeConfig) -> list[FloatArray]:
        """Corners of each body of it, shape (n, 2), metres."""
        named = self.other if prior == "other" else self.object
        if is_no_radius(named) or named.startswith("file:"):
            corners = [loop @ [1.0, 1j] for loop in parse_outlines(named, config.scene).loops]
        else:
            angle = TWO_PI / _POINTS * np.arange(_POINTS)
            radius = parse_object(named, config.scene).radius(angle)
            corners = [radius * np.exp(1j * angle)]
        if prior == "moved":
            rng = np.random.default_rng([self.draw, *self.object.encode()])
            size = float(np.abs(np.concatenate(corners)).mean())
            way = _ALONG * size * np.exp(1j * rng.uniform(0.0, TWO_PI))
            turn = np.exp(1j * _TURN * rng.choice([-1.0, 1.0]))
            corners = [corner * turn + way for corner in corners]
        return [np.stack([corner.real, corner.imag], axis=1) for corner in corners]


@dataclass(frozen=True)
class PriorRow:
    """What became of an episode."""

    object: str
    other: str
    draw: int
    target: str
    model: str
    prior: str
    views: int  #: to 95 % of the true target; 0 if that was not reached.
    taken: int  #: views until it ended.
    reached: float  #: part of the true target then.
    reason: str

    @property
    def wrong(self) -> bool:
        """Whether it claimed what was not so."""
        return self.reason == TerminationReason.COVERED.value and self.reached < FULL_ENOUGH


def _in_space(case: Case) -> list[PriorRow]:
    """The same for a solid; half as far displaced, and turned about the vertical axis."""
    with tempfile.TemporaryDirectory() as folder:
        return [_solid_row(case, prior, Path(folder)) for prior in case.priors]


def _solid_row(case: Case, prior: str, folder: Path) -> PriorRow:
    parameters = load_parameters(shared_file("config/space/solid.yaml"), nodes=SOLID_NODES)
    parameters["depth_camera"].update(object=case.object, seed=case.draw)
    parameters["nbv_planner"].update(planner_seed=case.draw, deadline=600.0)
    if prior != "none":
        radius = SolidConfig.of(parameters).scene.radius_max
        mesh, _ = solid_object(case.other if prior == "other" else case.object, radius)
        if prior == "moved":
            cos, sin = np.cos(_TURN), np.sin(_TURN)
            turn = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
            way = np.array([0.5 * _ALONG * radius, 0.0, 0.0])
            # smaller by so much that all of it is within the bounds
            mesh = Mesh(_SMALLER * (mesh.vertices @ turn + way), mesh.faces)
        file = folder / f"{prior}.stl"
        file.write_bytes(stl_bytes(mesh))
        parameters["surface_mapper"]["prior_outline"] = str(file)
    episode = SolidEpisode(SolidConfig.of(parameters))
    reached = [view.completeness for view in episode.run()]
    assert episode.termination is not None
    return _found(case, prior, reached, episode.termination.reason.value)


def compare(case: Case) -> list[PriorRow]:
    """Run the episodes of a case, with each prior."""
    if case.model == "space":
        return _in_space(case)
    base = with_settings(
        shipped_config(case.object),
        {
            "sensor": {"seed": case.draw},
            "planner": {"planner_seed": case.draw, "target": case.target, "deadline": 60.0},
            "search": {"surface_model": case.model},
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        return [
            _row(case, prior, _config(case, prior, base, Path(folder))) for prior in case.priors
        ]


def _config(case: Case, prior: str, base: EpisodeConfig, folder: Path) -> EpisodeConfig:
    if prior == "none":
        return base
    if prior == "knows":
        stop = "stop_at_coverage" if case.target == "points" else "stop_at_completeness"
        knowing = with_settings(base, {"planner": {"planner": "greedy", "objective": "OSM"}})
        return dataclasses.replace(knowing, **{stop: FULL_ENOUGH})
    file = folder / f"{prior}.csv"
    bodies = (
        "".join(f"{x:.9g},{y:.9g}\n" for x, y in loop.tolist()) for loop in case.loops(prior, base)
    )
    file.write_text("x,y\n" + "\n".join(bodies))
    return with_settings(base, {"outline": {"prior_outline": str(file)}})


def _row(case: Case, prior: str, config: EpisodeConfig) -> PriorRow:
    simulation = Simulation(config)
    ended = simulation.finish().termination
    name = "coverage" if case.target == "points" else "completeness"
    reached = [float(getattr(view, name)) for view in simulation.views]
    return _found(case, prior, reached, ended.reason.value)


def _found(case: Case, prior: str, reached: list[float], reason: str) -> PriorRow:
    """The row of an episode that has `reached` so much after each view."""
    enough = [number for number, part in enumerate(reached, 1) if part >= FULL_ENOUGH]
    known = dataclasses.asdict(case)
    return PriorRow(
        **known,
        prior=prior,
        views=enough[0] if enough else 0,
        taken=len(reached),
        reached=reached[-1] if reached else 0.0,
        reason=reason,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, SETS)
    add_objects(parser)
    add_every(parser)
    parser.add_argument(
        "--target",
        type=one_of("target", ("completeness", "points")),
        default="completeness",
        metavar="NAME",
        help="completeness or points (default: completeness)",
    )
    parser.add_argument(
        "--model",
        type=one_of("model", ("auto", "radius", "volume", "space")),
        default="auto",
        metavar="NAME",
        help="surface_model: auto, radius or volume; space: --objects are solids (default: auto)",
    )
    add_draws(parser, 10)
    add_results(parser)


def cases_of(arguments: argparse.Namespace) -> list[Case]:
    """The cases, seed by seed; the other object is another one for each seed."""
    objects = objects_of(arguments.objects or SETS[arguments.half])[:: arguments.every]
    number = len(objects)
    return [
        Case(
            text,
            objects[(at + 1 + draw % max(number - 1, 1)) % number],
            draw,
            arguments.target,
            arguments.model,
        )
        for draw in range(arguments.draws)
        for at, text in enumerate(objects)
    ]


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    table = ROWS_FILE, PriorRow, ("object", "draw", "target", "model")
    rows = run_kept(compare, cases_of(arguments), arguments, "cases", table)
    for line in summary(
        [row for row in rows if (row.target, row.model) == (arguments.target, arguments.model)]
    ):
        print(line)
    return 1 if any(row.wrong for row in rows) else 0


def summary(rows: Sequence[PriorRow]) -> list[str]:
    """Views with each prior over those without one, and over those of the knowing planner, with
    intervals over objects; failures and claims.
    """
    by = {prior: {(r.object, r.draw): r for r in rows if r.prior == prior} for prior in PRIORS}
    pairs = [(one, "none") for one in PRIORS[1:4]] + [(one, "knows") for one in PRIORS[:4]]
    lines = [f"{one} / {other}: {_ratio(by[one], by[other])}" for one, other in pairs]
    for prior in PRIORS[:4]:
        mine = by[prior].values()
        claims = [row for row in mine if row.reason == TerminationReason.COVERED.value]
        taken = np.mean([row.taken for row in mine] or [0])
        lines.append(
            f"{prior}: {len(mine)} episodes, {sum(not row.views for row in mine)} ended before 95"
            f" %, {len(claims)} claimed, {sum(row.wrong for row in claims)} of them wrong,"
            f" {taken:.2f} views until the end"
        )
    return lines


def _ratio(ones: dict[tuple[str, int], PriorRow], others: dict[tuple[str, int], PriorRow]) -> str:
    """Ratio of the mean numbers of views where both were enough, with its interval."""
    both = [key for key in ones if key in others and ones[key].views and others[key].views]
    if not both:
        return "no pair"
    views = {key: (float(ones[key].views), float(others[key].views)) for key in both}
    ratio, interval = ratio_of_means(views)
    first, second = np.mean(list(views.values()), axis=0)
    low, high = ratio + interval.low, ratio + interval.high
    return (
        f"{ratio:.1%} [{low:.1%}, {high:.1%}] of {len(both)} pairs,"
        f" {first:.2f} against {second:.2f} views"
    )
