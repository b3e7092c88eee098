"""Run episodes with the object in an unknown place and of unknown size, and compare them with the
known scene.

Each draw moves the object by up to 30 % of its greatest radius R about its own centre (uniform in
the disc), and states a radius between R/2 and 2 R (uniform in the logarithm). The other half of the
pair is the same object, sensor noise and seed with centre, bounds and view circle declared. Both
end at 95 % true coverage or after 40 views: what is compared is the number of views, not the
termination. A run *fails* if it does not reach 95 %, if the camera was sent to where the object is,
or with an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from campaigns.running import add_draws, add_half, add_results, ratio_of_means, run_kept
from campaigns.scenarios import PLANNERS, shipped_config, with_settings
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.cli.options import one_of
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import TWO_PI
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.world.objects import OBJECT_SETS, parse_object
from nbv_planner.world.objects.room import WorldSettings

SETS = {"tuning": ("random_tuning",), "test": ("thesis", "random_test")}
"""Sets of objects by half: parameters may be chosen by the first one."""
ROWS_FILE = "unknown.csv"
_OFF, _FACTOR = 0.3, 2.0
_ERROR = "ERROR"


@dataclass(frozen=True)
class Pair:
    """One draw: an object, where it stands and what is stated, and with which planner."""

    object: str
    draw: int
    planner: str

    def world(self, base: EpisodeConfig) -> tuple[WorldSettings, float, float]:
        """Where the object stands, its greatest radius, and the stated one, metres."""
        rng = np.random.default_rng([self.draw, *self.object.encode()])
        shape = parse_object(self.object, base.scene)
        radius = float(
            shape.radius(np.union1d(np.arange(3600) * (TWO_PI / 3600), shape.corners())).max()
        )
        away, angle = _OFF * radius * math.sqrt(rng.random()), rng.uniform(0.0, TWO_PI)
        stated = radius * math.exp(rng.uniform(-math.log(_FACTOR), math.log(_FACTOR)))
        return (
            WorldSettings(object_x=away * math.cos(angle), object_y=away * math.sin(angle)),
            radius,
            stated,
        )


@dataclass(frozen=True)
class PairRow:
    """What became of a pair; lengths in greatest radii of the object."""

    object: str
    draw: int
    offset: float
    stated: float
    known: int
    known_coverage: float
    unknown: int
    coverage: float
    approaches: int
    centre_error: float
    radius_max: float
    inside: int
    reason: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether the unknown scene was not reconstructed, or not safely."""
        return self.reason.startswith(_ERROR) or self.coverage < FULL_ENOUGH or self.inside > 0


def compare(pair: Pair) -> PairRow:
    """Run both episodes of a pair."""
    started = time.process_time()
    base = with_settings(
        dataclasses.replace(shipped_config(pair.object), stop_at_coverage=FULL_ENOUGH),
        {
            "sensor": {"seed": pair.draw},
            "planner": {"planner_seed": pair.draw, **PLANNERS[pair.planner]},
            "termination": {"certify": False, "band_tolerance": 1e-9, "stall_views": 0},
            "accuracy": {"accuracy": False},  # as in the published results
        },
    )
    world, radius, stated = pair.world(base)
    search = SearchSettings(scene="unknown", rough_radius=stated)
    known, _ = _episode(base)
    found, reason = _episode(dataclasses.replace(base, world=world, search=search))
    seen = found.estimated_scene
    assert seen is not None
    apart = math.hypot(seen.x - world.object_x, seen.y - world.object_y)
    return PairRow(
        pair.object,
        pair.draw,
        math.hypot(world.object_x, world.object_y) / radius,
        stated / radius,
        len(known.judge.views),
        known.judge.coverage,
        len(found.judge.views),
        found.judge.coverage,
        len(found.approaches),
        apart / radius,
        seen.radius_max / radius,
        _inside(found, world),
        reason,
        time.process_time() - started,
    )


def _episode(config: EpisodeConfig) -> tuple[Simulation, str]:
    simulation = Simulation(config)
    try:
        return simulation, simulation.finish().termination.reason.value
    except Exception as error:  # a defect, to be counted and shown
        return simulation, f"{_ERROR}: {type(error).__name__}: {error}"


def _inside(simulation: Simulation, world: WorldSettings) -> int:
    """How many poses of the camera lie within the object."""
    poses = [pose.relative_to(world.object_x, world.object_y) for pose in simulation.poses]
    shape = parse_object(simulation.config.object, simulation.config.scene)
    return sum(math.hypot(pose.x, pose.y) <= float(shape.radius(pose.view_angle)) for pose in poses)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, SETS)
    parser.add_argument(
        "--planner",
        type=one_of("planner", tuple(PLANNERS)),
        default="rollout",
        metavar="NAME",
        help=f"of {', '.join(PLANNERS)} (default: rollout)",
    )
    add_draws(parser, 5, "draws of place and size")
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    objects = [(name, text) for name in SETS[arguments.half] for text in OBJECT_SETS[name]]
    pairs = [
        Pair(text, draw, arguments.planner)
        for draw in range(arguments.draws)
        for _, text in objects
    ]
    rows = run_kept(compare, pairs, arguments, "pairs", (ROWS_FILE, PairRow, ("object", "draw")))
    for name in SETS[arguments.half]:
        print(summary(name, [row for row in rows if row.object in OBJECT_SETS[name]]))
    print(summary("all", rows))
    for row in rows:
        if row.failed:
            print(f"failed: {row}")
    return 1 if any(row.failed for row in rows) else 0


def summary(name: str, rows: Sequence[PairRow]) -> str:
    """Mean numbers of views, their ratio with its interval over objects, approaches and
    failures.
    """
    known, unknown = (
        np.array([getattr(row, which) for row in rows], dtype=float)
        for which in ("known", "unknown")
    )
    with_approaches = unknown + [row.approaches for row in rows]
    ratio, interval = ratio_of_means(
        {(row.object, row.draw): (float(row.unknown), float(row.known)) for row in rows}
    )
    each = np.mean(unknown / known)
    return (
        f"{name}: {len(rows)} pairs, views known {known.mean():.2f}, unknown {unknown.mean():.2f},"
        f" ratio {ratio:.3f} [{ratio + interval.low:.3f}, {ratio + interval.high:.3f}], mean of"
        f" ratios {each:.3f}; with approaches {with_approaches.mean():.2f}, ratio"
        f" {with_approaches.mean() / known.mean():.3f}; {sum(row.failed for row in rows)} failed"
        f" (known {sum(row.known_coverage < FULL_ENOUGH for row in rows)})"
    )
