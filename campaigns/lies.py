"""A campaign of lies: episodes in worlds that differ from the declared one, and what became of
them.

An episode runs in process by the code of `nbv-planner simulate`; only its scans and poses (and in
one kind its surfaces) come from a :class:`campaigns.worlds.TrueWorld`. The truth of the outcome is
computed for any outline:

* *reachable*: samples of the true outline within one pixel (1/80 of `radius_max`) of the end of a
  noise-free beam of the true sensor at any candidate view;
* *seen*: the part of the reachable ones within one pixel of the end that a beam that came would
  have without noise; beams of a dead or frozen sensor have seen nothing;
* *in the band*: the part of the true outline between the bounds of the last belief, each piece
  weighed by the angle that it subtends at the declared centre; for a star-shaped object that is the
  part of the circle;
* *RMSE*: root of the mean of :math:`(μ(φ) - r)^2` over the outline with the same weights;

of a surface of cells *in the band* is the part of the reachable samples within three standard
deviations of a range, or two cells, of the likeliest surface, and *RMSE* that of the distance.

A *wrong success* ends COVERED, BAND_NARROW or NO_GAIN with less than 90 % seen or less than 80 % in
the band.
"""

from __future__ import annotations

import math
import re
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from campaigns.scenarios import Scenario, with_settings
from campaigns.worlds import Look, TrueWorld
from nbv_planner.episode.judge import SampledContour
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import Step
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    angle_difference,
    cartesian_to_polar,
)
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.view_space import CircleViewSpace
from nbv_planner.session.state import SurfaceOrigin
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.measurements import polar
from nbv_planner.star2d.robust import mapper_for
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose

SUCCESSES = ("COVERED", "BAND_NARROW", "NO_GAIN")
"""Reasons that say the object has been reconstructed."""
REFUSED, NO_SCAN, ERROR = "REFUSED", "NO_SCAN", "ERROR"
"""Ends of a run before that of its episode: the package refuses the settings or the pose of a view,
or fails.
"""
ENOUGH_SEEN, ENOUGH_IN_BAND, SOON = 0.9, 0.8, 3
_PIXELS = 80.0
_SAMPLES = 3000
# One view per second, and a thousand scans, nanoseconds.
_SECOND, _SCAN = 1_000_000_000, 1_000_000


class FalseSimulation(Simulation):
    """An episode in a true world that is not the declared one."""

    def __init__(self, scenario: Scenario, config: EpisodeConfig) -> None:
        """Set up the episode as declared, and the true world.

        Raises:
            NbvPlannerError: the package refuses the settings.
        """
        super().__init__(config)
        self.world = scenario.world(config)
        self._matcher = ScanMatcher(
            MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.0)
        )
        other = with_settings(config, scenario.other_surface)
        self._other = (
            mapper_for(other.kernel.build(), other.mapper, other.robust)
            if scenario.other_surface
            else None
        )
        self._origins = [_origin(one) for one in (config, other)]
        self.refusals: tuple[str, ...] = ()

    def look(self, goal: CameraPose, scan_number: int = 0) -> MatchedScan:
        """Take the scan that the world gives, matched as in the mapper.

        Scans have no number: none is taken between the views.

        Raises:
            InputRejectedError: the pose is dropped, or the scan does not count.
        """
        view = len(self.judge.steps) + 1
        stamp = view * _SECOND + scan_number * _SCAN
        self._matcher.set_goal(stamp, goal)
        found = self.world.look(goal)
        self._matcher.add_pose(stamp, found.pose)
        self._matcher.add_scan(stamp, found.scan, found.frame)
        taken = self._matcher.take()
        if not taken:
            raise InputRejectedError("goal", "no scan counts at the goal")
        return replace(taken[0], view=view)

    def map(self, scans: Sequence[MatchedScan]) -> SurfaceBelief:
        """Map scans; if there is a second mapper, its surface is used at every other view.

        As in the planner's node, a surface of another origin is refused.
        """
        belief = super().map(scans)
        if self._other is not None and len(self.judge.steps) % 2 == 1:
            self._other.add(polar(self._measured))
            own, other = self._origins
            self.refusals = (own.refusal_of(other)[1],) if own != other else ()
            belief = belief if self.refusals else self._other.belief().as_transmitted()
        self._newest = belief
        return belief


def _origin(config: EpisodeConfig) -> SurfaceOrigin:
    kernel = {field.name: getattr(config.kernel, field.name) for field in fields(config.kernel)}
    prior = PriorSettings(prior_mean=config.mapper.prior_mean, **kernel)
    return SurfaceOrigin("object", config.mapper.grid_size, prior)


@dataclass(frozen=True)
class Truth:
    """What is true after an episode."""

    reachable: float  #: part of the outline that the candidate views can see.
    seen: float  #: part of that which has been seen.
    in_band: float | None  #: part of the surface within the band, by angle; None without a surface.
    rmse: float | None  #: of the mean contour, metres; None without a surface.
    #: mean width of the band over the outline, by angle, metres; None without a surface.
    width: float | None


NO_TRUTH = Truth(0.0, 0.0, None, None, None)
"""That of an episode without a view."""


def truth_of(world: TrueWorld, config: EpisodeConfig, steps: Sequence[Step]) -> Truth:
    """Judge an episode by the true world."""
    pixel = config.scene.radius_max / _PIXELS
    own = SampledContour.of_vertices(
        np.stack([world.contour.x, world.contour.y], axis=1), _SAMPLES
    ).points
    candidates = CircleViewSpace(config.views, config.scene.view_distance).candidates
    goals = [candidates[index] for index in range(len(candidates))]
    reachable = _near(own, world.reachable(goals), pixel)
    seen = _near(
        own, np.concatenate([np.empty((0, 2)), *(look.met for look in world.looks)]), pixel
    )
    part = float((seen & reachable).sum() / max(reachable.sum(), 1))
    if not steps:
        return Truth(float(reachable.mean()), part, None, None, None)
    outline = SampledContour.of_vertices(world.outline_now(), _SAMPLES).points
    belief = steps[-1].belief
    if isinstance(belief, VolumeSurface):
        if not belief.drawable:
            return Truth(float(reachable.mean()), part, None, None, None)
        near = max(3.0 * config.measurement.noise_std, 2.0 * belief.form.lattice.cell)
        found = near_and_error(outline[reachable], belief, near)
    else:
        found = band_and_error(outline, belief)
    return Truth(float(reachable.mean()), part, *found)


def near_and_error(
    outline: FloatArray, surface: VolumeSurface, near: float
) -> tuple[float, float, float]:
    """Part of an outline, shape (n, 2), that is `near` (metres) to the likeliest surface, root mean
    square of the distance, and twice `near`.
    """
    away, _ = cKDTree(surface.outline()[0].points[0]).query(outline)
    return float((away <= near).mean()), float(np.sqrt(np.mean(away**2))), 2.0 * near


def _near(points: FloatArray, ends: FloatArray, distance: float) -> BoolArray:
    if len(ends) == 0:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(cKDTree(ends).query(points, distance_upper_bound=distance)[0] <= distance)


def band_and_error(outline: FloatArray, belief: SurfaceBelief) -> tuple[float, float, float]:
    """Part of an outline in the band, RMSE of the mean, and width of the band, by the angle about
    the declared centre.

    The `outline` is given by samples in their order, shape (n, 2), metres.
    """
    angle, radius = cartesian_to_polar(*outline.T)
    weight = np.abs(angle_difference(np.roll(angle, -1), np.roll(angle, 1)))
    mean, low, high = (
        belief.interpolate(v, angle) for v in (belief.mean, belief.lower, belief.upper)
    )
    inside = (low <= radius) & (radius <= high)
    total = float(weight.sum())
    error = math.sqrt(float(weight @ (mean - radius) ** 2) / total)
    return float(weight @ inside) / total, error, float(weight @ (high - low)) / total


# Returns that are enough to judge by, how far off does not count, and how far they must be off
# together, in units of the declared noise; on honest objects nothing is off by that much but at
# steps in the radius.
_ENOUGH = 20
_IGNORED = 0.25
_CHI_SQUARED = 100.0
_CELLS = 1440
_SECTORS = 36
_MOST_SECTORS = 0.75


def _from_declaration(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    return 0


def _from_header(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    return next((view for view, look in enumerate(looks, 1) if look.affected), None)


def _from_second(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    return 2 if len(looks) >= 2 else None


def _from_returns(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    """An affected beam without a return counts too: one of the declared sensor would have met
    something.
    """
    beams = np.cumsum([len(look.scan.ranges) * look.affected for look in looks])
    return _first(beams >= _ENOUGH)


def _from_bounds(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    scene, margin = config.scene, config.measurement.noise_std
    low, high = scene.radius_min + margin, scene.radius_max - margin
    radius = [np.hypot(*look.shown.T) for look in looks]
    return _first(np.cumsum([int(((r <= low) | (r >= high)).sum()) for r in radius]) >= _ENOUGH)


def _from_around(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    seen = np.zeros(_SECTORS, dtype=bool)
    for view, look in enumerate(looks, 1):
        seen[_cells(look.shown, _SECTORS)] = True
        if seen.mean() >= _MOST_SECTORS:
            return view
    return None


def _from_contradiction(looks: Sequence[Look], config: EpisodeConfig, since: int) -> int | None:
    sigma = config.measurement.noise_std
    number, total = np.zeros(_CELLS), np.zeros(_CELLS)
    count, score = 0, 0.0
    for view, look in enumerate(looks, 1):
        cell, radius = _cells(look.shown, _CELLS), np.hypot(*look.shown.T)
        known = number[cell] > 0
        off = np.abs(radius[known] - total[cell[known]] / number[cell[known]]) / sigma - _IGNORED
        count = count + int((off > 0.0).sum())
        score = score + float((np.maximum(off, 0.0) ** 2).sum())
        if view >= since and count >= _ENOUGH and score >= _CHI_SQUARED:
            return view
        np.add.at(number, cell, 1.0)
        np.add.at(total, cell, radius)
    return None


def _cells(points: FloatArray, number: int) -> IntArray:
    return (cartesian_to_polar(*points.T)[0] * (number / TWO_PI)).astype(np.int64) % number


def _first(reached: Iterable[bool]) -> int | None:
    return next((view for view, yes in enumerate(reached, 1) if yes), None)


KNOWN: dict[str, tuple[Callable[[Sequence[Look], EpisodeConfig, int], int | None], str]] = {
    "declared": (
        _from_declaration,
        "before the first view: the declared lengths are out of proportion",
    ),
    "header": (
        _from_header,
        "the first affected view: the header of its scan or its pose shows it",
    ),
    "second": (
        _from_second,
        "the second view: its surface has another grid or prior than the first",
    ),
    "returns": (
        _from_returns,
        "the first view with at least 20 affected beams so far: the scans alone show it",
    ),
    "bounds": (
        _from_bounds,
        (
            "the first view with at least 20 noiseless beams so far that end outside the radius"
            " bounds, or inside by less than the declared noise"
        ),
    ),
    "around": (
        _from_around,
        "the first view with returns in 75 % of 36 sectors: the outline must have been seen",
    ),
    "contradiction": (
        _from_contradiction,
        (
            "the first view at which at least 20 noiseless returns so far contradict earlier ones:"
            " they differ by more than a quarter of the declared noise σ from the mean of earlier"
            " returns in the same quarter of a degree, and the squares of the excess in units of σ"
            " sum to 100"
        ),
    ),
}
"""From which view a lie could be known, by the name of the evidence: how it is computed, and in
words.

It is computed from what the true world gave without noise, and is None if the episode ended before.
"""


@dataclass(frozen=True)
class Run:
    """One episode of the campaign."""

    scenario: Scenario  #: its declared and true world.
    planner: str  #: label of the planner, a key of :data:`campaigns.scenarios.PLANNERS`.
    seed: int  #: of noise and planner.
    robust: bool = True  #: whether the mapper is the robust one.

    def as_dict(self) -> dict[str, Any]:
        """What identifies it in its folder."""
        return {"scenario": self.scenario.name, "planner": self.planner, "seed": self.seed}

    @property
    def slug(self) -> str:
        """Name of its file without ending."""
        return re.sub(r"[^A-Za-z0-9.-]+", "_", f"{self.scenario.name}-{self.planner}-{self.seed}")


@dataclass(frozen=True)
class Row:
    """What became of a run; the last fields but `seconds`, of processor time, are those of its
    :class:`Truth`.
    """

    scenario: str
    planner: str
    seed: int
    reason: str  #: why it ended: a termination, :data:`REFUSED`, :data:`NO_SCAN` or :data:`ERROR`.
    said: tuple[str, ...]  #: messages of doubts, warnings, and a failure.
    views: int
    #: view after which the first doubt was raised, 0 before the first; None if there was none.
    doubted: int | None
    #: view after which it could be known, see :data:`KNOWN`; None if the episode ended before, or
    #: no lie.
    known: int | None
    reachable: float
    seen: float
    in_band: float | None
    rmse: float | None
    width: float | None
    seconds: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Row:
        """The row from plain values of its fields.

        Raises:
            TypeError, KeyError: it is none.
        """
        return cls(**{**values, "said": tuple(values["said"])})

    @property
    def success(self) -> bool:
        """Whether it ended as if the object had been reconstructed."""
        return self.reason in SUCCESSES

    @property
    def wrong(self) -> bool:
        """Whether it is a wrong success."""
        return self.success and (self.seen < ENOUGH_SEEN or (self.in_band or 0.0) < ENOUGH_IN_BAND)

    @property
    def what_is_wrong(self) -> tuple[str, ...]:
        """Of a success: `seen`, `band`, and `RMSE` where the error is more than half the width of
        the band.
        """
        found = {
            "seen": self.seen < ENOUGH_SEEN,
            "band": (self.in_band or 0.0) < ENOUGH_IN_BAND,
            "RMSE": self.rmse is None or self.width is None or self.rmse > 0.5 * self.width,
        }
        return tuple(name for name, wrong in found.items() if self.success and wrong)

    @property
    def late(self) -> int | None:
        """Views from when it could be known to the first doubt; None if there was no doubt, or
        nothing to know.
        """
        return None if self.doubted is None or self.known is None else self.doubted - self.known


def attempt(run: Run) -> Row:
    """Run an episode; an error that the package should not have is part of the row."""
    began = time.process_time()
    try:
        return play(run)
    except Exception:
        return _row(run, ERROR, (traceback.format_exc(),), 0, None, None, NO_TRUTH, began)


def play(run: Run) -> Row:
    """Run an episode to its end and judge it."""
    began = time.process_time()
    try:
        config = run.scenario.config(run.planner, run.seed, robust=run.robust)
        simulation = FalseSimulation(run.scenario, config)
    except NbvPlannerError as error:
        return _row(run, REFUSED, (str(error),), 0, 0, 0, NO_TRUTH, began)
    reason, said, doubted = _to_the_end(simulation)
    world = simulation.world
    known = None
    if run.scenario.known:
        known = KNOWN[run.scenario.known][0](world.looks, config, run.scenario.since)
    truth = truth_of(world, config, simulation.judge.steps)
    return _row(run, reason, said, len(simulation.judge.steps), doubted, known, truth, began)


def _row(
    run: Run,
    reason: str,
    said: tuple[str, ...],
    views: int,
    doubted: int | None,
    known: int | None,
    truth: Truth,
    began: float,
) -> Row:
    seconds = round(time.process_time() - began, 3)
    return Row(
        **run.as_dict(),
        reason=reason,
        said=said,
        views=views,
        doubted=doubted,
        known=known,
        **asdict(truth),
        seconds=seconds,
    )


def _to_the_end(simulation: FalseSimulation) -> tuple[str, tuple[str, ...], int | None]:
    """Why the episode ended, its messages of alarm, and the view of the first doubt."""
    doubted = None
    try:
        for view in simulation.run():
            if doubted is None and alarms_of(simulation):
                doubted = view.number
    except InputRejectedError as error:
        return NO_SCAN, (str(error),), len(simulation.views) if doubted is None else doubted
    termination = simulation.result.termination
    said = alarms_of(simulation, termination)
    return (
        termination.reason.value,
        said,
        doubted if doubted is not None or not said else len(simulation.views),
    )


def alarms_of(simulation: Simulation, termination: Termination | None = None) -> tuple[str, ...]:
    """Messages of doubts, warnings and failures so far."""
    said = [*getattr(simulation, "refusals", ())]
    for step in simulation.judge.steps[-1:]:
        said += [check.summary for check in step.belief.checks if check.level.speaks]
    if termination is not None and termination.reason.value in ("FAILED", "DOUBTFUL"):
        said.append(termination.detail)
    return tuple(dict.fromkeys(said))
