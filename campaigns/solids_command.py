"""Compare planners on solids in space: views until 95 % of what any view sees is within the
resolution of a measurement, over those of the greedy planner that knows the object.

Beside the planners there are `knows`, which takes the view whose beams cover most of what is left
of the true surface; `informed`, which does from the second view on, after that of the rollout,
whose first one is blind; `even`, views spread evenly, of which the number that is enough is known
in hindsight; `random`; and the rivals of `nbv_bench`, by their gain. All look by the same simulated
camera, with the same noise. The rollout goes on until it claims 95 % (COVERED): how often it does,
and how often that is true. Objects are solids, or meshes of a folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from campaigns.running import add_half, add_results, ratio_of_means, run_kept
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.cli.options import one_of
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_results import views_until
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.errors import SettingError
from nbv_planner.geometry import IntArray
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.view_space.viewpoints import directions
from nbv_planner.volume.bodies.depth_sensor import SimulatedDepthCamera, seen_in
from nbv_planner.volume.bodies.mesh_files import is_solid
from nbv_planner.volume.volume_surface import VolumeModel, VolumeSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import RangeNoise

SETS = {
    "tuning": ("mug", "chair", "torus", "box", "star:seed=0", "star:seed=1", "star:seed=2"),
    "test": (
        *("table", "bracket", "two_boxes:gap=0.4", "cylinder:radius=0.3,height=1.6"),
        *("superquadric:e1=1.5,e2=1.5", "star:seed=11", "star:seed=12", "star:seed=13"),
    ),
}
"""Solids by half: parameters may be chosen by the first one."""
SCENARIOS = {
    "close": {"view_distance": 1.7, "horizontal_field": 0.785},
    "hemi": {"view_distance": 2.2, "horizontal_field": 0.96, "view_space": "hemisphere"},
    "far": {"view_distance": 3.0, "horizontal_field": 0.873},
    "arm": {
        **{"view_distance": 1.9, "horizontal_field": 0.559, "num_views": 69, "aim_aside": 0.3},
        **{"elevation_min": -0.262, "elevation_max": 1.222, "azimuth_max": 2.094},
    },
}
"""A part in view; the upper half; all in view from everywhere; before an arm that aims aside, too.
"""
RIVALS = (
    *("frontier", "proximity_count", "rear_side", "unobserved", "projection", "occlusion_aware"),
)
"""Gains of the planner `voxels`."""
PLANNERS = ("rollout", "greedy", "random", "even", "knows", "informed", *RIVALS)
THIN = ("chair", "plane", "hammer")
"""How the names of objects begin whose walls are thin."""
ROWS_FILE = "solids.csv"
_MOST = 40
# Radius of the ball of meshes, which reach 1 m but for rounding.
_RADIUS = 1.001


@dataclass(frozen=True)
class SolidCase:
    """An episode."""

    object: str
    scenario: str
    planner: str

    def config(self, *, claims: bool = False) -> SolidConfig:
        """Its configuration, by which it may end with a claim; the object has a radius of at most 1
        m.
        """
        mesh = is_solid(f"file:{self.object}")
        text = f"file:{self.object}" if mesh else f"solid:{self.object}"
        given = {"object": text, "radius_max": _RADIUS if mesh else 1.0, "range_max": 5.0}
        planner = {"even": "random", "knows": "random", "informed": "rollout"}.get(
            self.planner, "voxels" if self.planner in RIVALS else self.planner
        )
        if planner == "voxels":
            given["voxels.gain"] = self.planner
        ends = {"certify": claims, "max_views": _MOST, "planner": planner}
        return SolidConfig.of({"nodes": {**given, **SCENARIOS[self.scenario], **ends}})


@dataclass(frozen=True)
class SolidRow:
    """What became of it."""

    object: str
    scenario: str
    planner: str
    views: int  #: until 95 %, or one more than there may be.
    last: int  #: until the end: that of the rollout is its claim.
    complete: float  #: part of the surface after the last one.
    seconds: float  #: of processor time for a view, on average.
    reason: str  #: why it ended, if by itself.


def run_case(case: SolidCase) -> SolidRow:
    """Run an episode until 95 % of the surface has been measured, the rollout until it ends."""
    claims = case.planner == "rollout"
    episode = SolidEpisode(case.config(claims=claims))
    started = time.process_time()
    if case.planner == "even":
        last, complete = _even(episode)
    elif case.planner in ("knows", "informed"):
        first = [_blind(episode)] if case.planner == "informed" else []
        last, complete = _first_full(_looks(episode, _knowing(episode, first)), episode)
    else:
        last, complete = _run(episode, claims=claims)
    seconds = (time.process_time() - started) / last
    ended = episode.termination.reason if episode.termination else None
    reached = views_until(episode.judge.views, FULL_ENOUGH)
    if reached is None and ended is TerminationReason.COVERED:  # an untrue claim: go on without
        again = SolidEpisode(case.config())
        _run(again, claims=False)
        reached = views_until(again.judge.views, FULL_ENOUGH)
    if reached is None and complete >= FULL_ENOUGH:
        reached = last  # of those that no planner takes
    views = _MOST + 1 if reached is None else reached
    reason = ended.value if ended else ""
    return SolidRow(
        case.object, case.scenario, case.planner, views, last, complete, seconds, reason
    )


def _run(episode: SolidEpisode, *, claims: bool) -> tuple[int, float]:
    """Number of views and how much is complete, at 95 % or with `claims` at the end."""
    for view in episode.run():
        if view.completeness >= FULL_ENOUGH and not claims:
            break
    return len(episode.judge.views), episode.judge.views[-1].completeness


def _looks(episode: SolidEpisode, numbers: Iterator[int]) -> Iterator[VolumeSurface]:
    """The surface after each of the candidates of these numbers."""
    config, truth = episode.judge.config, episode.judge.truth
    noise = config.noise.ranges
    camera = SimulatedDepthCamera(truth.mesh, config.sensor, noise)
    model = VolumeModel(episode.model.surface.form)
    for taken, number in enumerate(numbers):
        position, rotation = truth.views.position[number], truth.views.rotation[number]
        scan = camera.scan(position, rotation, np.random.default_rng([0, taken]))
        hits, free = seen_in(scan, position, rotation, noise, taken)
        model.take(hits, [free])
        yield model.surface


def _first_full(surfaces: Iterator[VolumeSurface], episode: SolidEpisode) -> tuple[int, float]:
    """Number of the first surface that is complete, and how complete it is."""
    complete, taken = 0.0, 0
    for surface in surfaces:
        taken += 1
        complete = float(episode.judge.truth.covered(surface, episode.judge.tau).mean())
        if complete >= FULL_ENOUGH:
            break
    return taken, complete


def _blind(episode: SolidEpisode) -> int:
    """The candidate that is taken before anything is known."""
    first = next(episode.run()).pose
    return episode.judge.space.nearest(first)


def _knowing(episode: SolidEpisode, first: Sequence[int] = ()) -> Iterator[int]:
    """Candidates in the order in which their beams, without noise, cover most of what is left,
    after the `first` ones.
    """
    judge, form = episode.judge, episode.model.surface.form
    camera = SimulatedDepthCamera(judge.truth.mesh, judge.config.sensor, RangeNoise(0.0, 0.0))
    seen = []
    for place in zip(judge.truth.views.position, judge.truth.views.rotation, strict=True):
        scan = camera.scan(*place, np.random.default_rng(0))
        hits, free = seen_in(scan, *place, judge.config.noise.ranges, 0)
        surface = VolumeSurface.blank(form).adding(hits, [free])
        seen.append(judge.truth.covered(surface, judge.tau))
    sees, left = np.array(seen), np.ones(len(judge.truth.points), dtype=bool)
    for number in first:
        yield number
        left &= ~sees[number]
    for _ in range(_MOST - len(first)):
        gain = (sees & left).sum(axis=1)
        if not gain.any():  # what noise has left out
            left[:] = True
            continue
        yield int(gain.argmax())
        left &= ~sees[gain.argmax()]


def _even(episode: SolidEpisode) -> tuple[int, float]:
    """The least number of views, spread evenly over where the camera may stand, that is enough; if
    it may aim aside, each the farthest from those before in place and aim.
    """
    views = episode.judge.truth.views
    if episode.judge.config.views.aim_aside:
        return _first_full(_looks(episode, itertools.islice(_farthest(views), _MOST)), episode)
    lowest = float(views.position[:, 2].min() / np.linalg.norm(views.position[0]))
    tree, complete = cKDTree(views.position), 0.0
    for count in range(2, _MOST + 1):
        ways = directions(count, float(np.arcsin(max(lowest, -1.0))))
        numbers: IntArray = tree.query(ways * np.linalg.norm(views.position[0]))[1]
        *_, surface = _looks(episode, iter(numbers.tolist()))
        complete = float(episode.judge.truth.covered(surface, episode.judge.tau).mean())
        if complete >= FULL_ENOUGH:
            return count, complete
    return _MOST, complete


def _farthest(views: Poses) -> Iterator[int]:
    """Numbers of views, each the farthest from all before by its place and half its aim."""
    aim = views.position + views.rotation[:, :, 0] * views.distance[:, None]
    place = np.concatenate([views.position / views.distance[:, None], 0.5 * aim], axis=1)
    away = np.full(len(place), np.inf)
    while True:
        number = int(away.argmax())
        yield number
        away = np.minimum(away, np.linalg.norm(place - place[number], axis=1))


def meshes_in(folder: str, half: str) -> list[str]:
    """Files of meshes in a folder, by name every other one: the first half is for tuning.

    Raises:
        SettingError: there are fewer than two.
    """
    files = sorted(str(path) for path in Path(folder).glob("*") if is_solid(f"file:{path}"))
    if len(files) < 2:
        raise SettingError(f"--meshes: {folder} holds {len(files)} meshes, must be at least 2")
    return files[tuple(SETS).index(half) :: len(SETS)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, SETS)
    parser.add_argument(
        "--meshes", metavar="DIR", help="half of the meshes of a folder, in place of the solids"
    )
    for name, known in (("scenarios", tuple(SCENARIOS)), ("planners", PLANNERS)):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            type=one_of(name[:-1], known),
            default=known,
            metavar="NAME",
            help=f"some of {', '.join(known)} (default: all)",
        )
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    half = arguments.half
    objects = meshes_in(arguments.meshes, half) if arguments.meshes else SETS[half]
    cases = [
        SolidCase(text, scenario, planner)
        for scenario in arguments.scenarios
        for text in objects
        for planner in arguments.planners
    ]
    table = ROWS_FILE, SolidRow, ("object", "scenario", "planner")
    found = run_kept(run_case, cases, arguments, "episodes", table)
    rows = {(row.object, row.scenario, row.planner): row for row in found}
    chosen = [rows[dataclasses.astuple(case)] for case in cases]
    for line in table_of(chosen):
        print(line)
    return 0


def table_of(rows: Sequence[SolidRow]) -> Iterator[str]:
    """A line for each scenario and planner; the rollout once more over objects with thin walls and
    over the others, if there are both; and the claims of each scenario.
    """
    for scenario in dict.fromkeys(row.scenario for row in rows):
        here = [row for row in rows if row.scenario == scenario]
        for planner in dict.fromkeys(row.planner for row in here):
            yield summary(here, planner)
        thin, thick = ([row for row in here if is_thin(row) == want] for want in (True, False))
        claiming = [row for row in here if row.planner == "rollout"]
        if not claiming:
            continue
        if thin and thick:
            yield from (
                f"{word}: {summary(part, 'rollout')}"
                for word, part in (("thin", thin), ("others", thick))
            )
        claimed = [row for row in claiming if row.reason == TerminationReason.COVERED.value]
        true = sum(row.complete >= FULL_ENOUGH for row in claimed)
        late = np.mean([row.last - row.views for row in claimed]) if claimed else 0.0
        yield (
            f"{scenario}: claimed in {len(claimed)} of {len(claiming)} episodes, true in {true};"
            f" {late:.1f} views after 95 %"
        )


def is_thin(row: SolidRow) -> bool:
    """Whether the walls of its object are thin."""
    return Path(row.object).stem.startswith(THIN)


def summary(rows: Sequence[SolidRow], planner: str) -> str:
    """Mean number of views of a planner in a scenario, over those of the one that knows, of the
    even design and of the best rival, with intervals over objects; how many did not end; and the
    time of a decision.
    """
    own = [row for row in rows if row.planner == planner]
    words = []
    by_rival = {name: [row.views for row in rows if row.planner == name] for name in RIVALS}
    best = sorted((np.mean(views), name) for name, views in by_rival.items() if views)
    for other in ("knows", "even", *(name for _, name in best[:1])):
        theirs = {row.object: row.views for row in rows if row.planner == other}
        pairs = {
            (row.object, 0): (float(row.views), float(theirs[row.object]))
            for row in own
            if row.object in theirs
        }
        if not pairs:
            continue
        ratio, interval = ratio_of_means(pairs)
        known = np.isfinite(interval.low)
        ends = f" [{ratio + interval.low:.2f}, {ratio + interval.high:.2f}]" if known else ""
        words.append(f"over {other} {ratio:.2f}{ends}")
    views = np.mean([row.views for row in own])
    open_ended = sum(row.views > _MOST for row in own)
    return (
        f"{own[0].scenario}, {planner}: {len(own)} objects, {views:.2f} views, {', '.join(words)};"
        f" {open_ended} not ended; {np.mean([row.seconds for row in own]):.2f} s a view"
    )
