"""Speed of the core: mapper, objectives, decisions on posterior shapes, ray caster, episodes, the
thesis table.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml

from benchmarks.measure import median_milliseconds, megabytes_of
from benchmarks.reference import (
    REFERENCE_OBJECTIVES,
    Reference,
    expected_gain,
    mean_views_to_go,
    unseen_points,
)
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_planner.episode import simulation
from nbv_planner.episode.judge import Judge
from nbv_planner.episode.parameter_files import shared_file
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.wiring import planner_named, scan_mapping
from nbv_planner.errors import NbvPlannerError
from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.gp.posterior import posterior_on, trusted
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES, Situation
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements, unseen_beyond
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, Shapes
from nbv_planner.star2d.shapes.shape_coverage import REACH_HIDDEN, REACH_SEEN, measured_parts
from nbv_planner.star2d.star_surface import star2d
from nbv_planner.surface.checks import CheckSettings
from nbv_planner.system import python_command
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world import simulated_camera
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SimulatedCamera
from nbv_planner.world.visibility import observe

_SCAN = 50
"""Measurements that one update adds."""
_BATCH = 10_000
"""Measurements that are added together before the measured update."""
_ROUNDS = 9
_SAMPLES = 64
_MOST_DENSE = 1500
"""Measurements up to which the dense solutions are measured too."""
Columns = tuple[FloatArray, FloatArray, FloatArray]


def mapper_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each kernel, grid size and number of measurements, see :func:`mapper_row`;
    `quick`: in seconds.
    """
    numbers = (
        (100, 1500, 10_000) if quick else (100, 500, 1000, 1500, 5000, 20_000, 100_000, 1_000_000)
    )
    cases = [(nu, 1000, n) for nu, n in itertools.product(MATERN_SMOOTHNESS, numbers)]
    cases += [("3/2", grid, 1500) for grid in ((500,) if quick else (500, 2000, 4096))]
    return (mapper_row(nu, grid, n) for nu, grid, n in cases)


def mapper_row(smoothness: str, grid_size: int, n: int) -> dict[str, Any]:
    """Measure one case: n distinct random angles, noise 0.1 m, the default kernel otherwise.

    Returns:
        `smoothness`, `grid`, `measurements`; `solver`; in milliseconds of processor time `update`
        (add the last 50 measurements to a mapper that has given a belief, and compute the next
        one), `samples` (64 joint samples), and where n allows it `dense_update` and `scikit_learn`
        (fit and predict; also only where it is installed), else None; `ratio` of `dense_update` and
        `scikit_learn_ratio` of `scikit_learn` to `update`; `megabytes` held by the mapper once it
        has computed a belief; `difference` in metres of mean and standard deviation from the dense
        solution, the greatest.
    """
    kernel, data = PeriodicMatern(smoothness=smoothness), measured_contour(n)
    mapper = fed_mapper(kernel, grid_size, data)
    belief = mapper.belief()
    times = median_milliseconds(mapper_calls(kernel, grid_size, data, mapper), _ROUNDS)
    row: dict[str, Any] = {
        "smoothness": smoothness,
        "grid": grid_size,
        "measurements": n,
        "solver": mapper.solver,
    }
    row |= {name: times.get(name) for name in _TIMES}
    row["ratio"] = row["difference"] = row["scikit_learn_ratio"] = None
    row["megabytes"] = megabytes_of(lambda: _mapper_in_use(kernel, grid_size, data))
    if n <= _MOST_DENSE:
        mean, std = dense_posterior(kernel, 5.0, belief.angle, *data)
        row["ratio"] = times["dense_update"] / times["update"]
        if "scikit_learn" in times:
            row["scikit_learn_ratio"] = times["scikit_learn"] / times["update"]
        row["difference"] = max(
            float(np.abs(mean - belief.mean).max()), float(np.abs(std - belief.std).max())
        )
    return row


_TIMES = ("update", "samples", "dense_update", "scikit_learn")


def measured_contour(n: int) -> Columns:
    """Angles (radians), radii and standard deviations (metres) of n measurements of a smooth
    contour.
    """
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, TWO_PI, n)
    return angle, 5.0 + np.cos(3.0 * angle) + 0.1 * rng.normal(size=n), np.full(n, 0.1)


def fed_mapper(
    kernel: PeriodicMatern, grid_size: int, data: Columns, *, without: int = 0
) -> SurfaceMapper:
    """A mapper with all of `data` except the last ones."""
    mapper = SurfaceMapper(kernel, MapperSettings(grid_size=grid_size))
    for start in range(0, len(data[0]) - without, _BATCH):
        end = min(start + _BATCH, len(data[0]) - without)
        mapper.add(Measurements(*(column[start:end] for column in data)))
    return mapper


def _mapper_in_use(kernel: PeriodicMatern, grid_size: int, data: Columns) -> SurfaceMapper:
    mapper = fed_mapper(kernel, grid_size, data)
    mapper.belief()
    return mapper


def mapper_calls(
    kernel: PeriodicMatern, grid_size: int, data: Columns, mapper: SurfaceMapper
) -> dict[str, Callable[[], object]]:
    """Timed functions, by the names in :func:`mapper_row`, for a mapper with `data`."""
    before = fed_mapper(kernel, grid_size, data, without=_SCAN)
    before.belief()  # as after every scan: its combined measurements are updated
    scan = Measurements(*(column[-_SCAN:] for column in data))
    grid = mapper.belief().angle
    posterior = trusted(posterior_on(grid, kernel, 5.0).adding(*data), grid)
    posterior.mean_and_std()  # as after a belief
    normals = np.random.default_rng(0).standard_normal((_SAMPLES, posterior.normals_per_sample))

    def update() -> object:
        follower = before.copy()
        follower.add(scan)
        return follower.belief()

    calls: dict[str, Callable[[], object]] = {
        "update": update,
        "samples": lambda: posterior.sample(normals),
    }
    if len(data[0]) <= _MOST_DENSE:
        calls["dense_update"] = lambda: dense_posterior(kernel, 5.0, grid, *data)
        calls |= _scikit_learn(kernel, grid, data)
    return calls


def _scikit_learn(
    kernel: PeriodicMatern, grid: FloatArray, data: Columns
) -> dict[str, Callable[[], object]]:
    """The same update by scikit-learn, on the line instead of the circle; nothing if it is not
    installed.
    """
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern
    except ImportError:
        return {}
    top, bottom = kernel.smoothness.split("/")
    matern = ConstantKernel(kernel.variance, "fixed") * Matern(
        kernel.length_scale, "fixed", nu=int(top) / int(bottom)
    )
    angle, radius, noise_std = data

    def update() -> object:
        regressor = GaussianProcessRegressor(matern, alpha=noise_std**2, optimizer=None)
        return regressor.fit(angle[:, None], radius - 5.0).predict(grid[:, None], return_std=True)

    return {"scikit_learn": update}


VISITED = (0.0, 1.5, 3.2)
"""Views, radians, after which decisions are timed."""
# The reference takes the same time for every candidate: this many are timed and scaled up to all.
_REFERENCE_VIEWS = 5
Row = dict[str, str | int | float]


def objective_rows(quick: bool) -> Iterator[Row]:
    """Time every objective: the star after three views, 100 to 3600 candidates, 500 to 4096 grid
    angles.

    `quick`: only 100 candidates on 1000 grid angles, in fewer rounds.

    Returns:
        Rows with `objective`, `views`, `grid`, `evaluate_ms` (all candidates), `decide_ms` (a whole
        decision of the greedy planner), `reference_ms` (the plain implementation, one candidate at
        a time, scaled up from a few of them) and `ratio` (reference to evaluate). Times are medians
        of the processor time.
    """
    views, grids = ((100,), (1000,)) if quick else ((100, 360, 1000, 3600), (500, 1000, 4096))
    beliefs = {size: belief_after(VISITED, size) for size in grids}
    cases = itertools.product(OBJECTIVES, views, grids)
    return (_row(name, number, beliefs[size], 5 if quick else 9) for name, number, size in cases)


def belief_after(visited: Sequence[float], grid_size: int) -> SurfaceBelief:
    """Belief about the star polygon after the views `visited`, radians, on a grid of `grid_size`
    angles.
    """
    scene = Scene()
    points = surface_points(parse_object("polygon:star", scene), scene.pixel_size)
    by_view = observe(points.angle, points.radius, np.array(visited), scene)
    seen = by_view.any(axis=0)
    free = [
        unseen_beyond(
            points.angle[own],
            points.radius[own],
            CameraPose.from_polar(view, scene.view_distance),
            scene,
        )
        for own, view in zip(by_view, visited, strict=True)
    ]
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=grid_size))
    mapper.add(
        Measurements(points.angle[seen], points.radius[seen], np.full(int(seen.sum()), 0.2)),
        free=free,
    )
    return mapper.belief()


def _row(name: str, number: int, belief: SurfaceBelief, rounds: int) -> Row:
    scene, objective = Scene(), OBJECTIVES[name]
    space = CircleViewSpace(ViewSpaceSettings(num_views=number), scene.view_distance)
    taken = [space.at_angle(angle) for angle in VISITED]
    planner = planner_named(PlannerSettings(planner="greedy", objective=name), scene, space)
    sample = np.random.default_rng(0).choice(space.angles, _REFERENCE_VIEWS, replace=False)
    times = median_milliseconds(
        {
            "evaluate": lambda: objective.values(belief, scene, space.angles),
            "decide": lambda: planner.decide(belief, current_view=taken[-1], visited=taken),
            "reference": lambda: [
                REFERENCE_OBJECTIVES[name](belief, scene, float(view)) for view in sample
            ],
        },
        rounds,
    )
    reference = times["reference"] * number / _REFERENCE_VIEWS
    return {
        "objective": name,
        "views": number,
        "grid": len(belief.angle),
        "evaluate_ms": times["evaluate"],
        "decide_ms": times["decide"],
        "reference_ms": reference,
        "ratio": reference / times["evaluate"],
    }


_GRID = 1000
_TAKEN = (0, 1, 3)
_CANDIDATES = (100, 360, 1000, 3600)
# Without a deadline: whole decisions are timed.
_PLANNERS = {
    "EMC": PlannerSettings(planner="greedy", objective="EMC", target="points"),
    "rollout": PlannerSettings(planner="rollout", target="points", deadline=3600.0),
}
# The reference takes the same time for every candidate and every shape: this many are timed and
# scaled up to all.
_SHAPES_REFERENCE_VIEWS, _REFERENCE_SHAPES = 5, 2


def shape_rows(quick: bool) -> Iterator[Row]:
    """Time decisions about the star after 0, 1 and 3 views, with the default settings of the
    shapes.

    `quick`: only after three views, with 100 candidates, in fewer rounds.

    Returns:
        Rows with `planner`, `taken` (number of views before), `views` (candidates), `shapes`,
        `shape_grid`; in milliseconds `decide_ms` (the whole decision), `draw_ms` (of that, drawing
        the shapes) and `reference_ms` (the decision with shapes drawn the same way, one looked at
        after the other from one view at a time, the greedy completion in plain Python; scaled up
        from some of the views or shapes); and `ratio` (reference to decide). Times are medians of
        the processor time.
    """
    cases = [(name, taken, 100) for name in _PLANNERS for taken in _TAKEN]
    cases += [("EMC", _TAKEN[-1], views) for views in _CANDIDATES[1:]]
    if quick:
        cases = [(name, _TAKEN[-1], 100) for name in _PLANNERS]
    return (_shapes_row(name, taken, views, 1 if quick else 9) for name, taken, views in cases)


def _shapes_row(name: str, taken: int, candidates: int, rounds: int) -> Row:
    settings = _PLANNERS[name]
    visited = VISITED[:taken]
    belief = belief_after(VISITED[:taken], _GRID)
    space = CircleViewSpace(ViewSpaceSettings(num_views=candidates), Scene().view_distance)
    views = [space.at_angle(angle) for angle in visited]
    planner, sampler = planner_named(settings, Scene(), space), shape_sampler(settings, Prior())
    shapes = sampler.draw(belief, Scene())
    near, upon = measured_parts(shapes, belief, Scene(), (REACH_SEEN, REACH_HIDDEN))
    unseen = unseen_points(shapes, visited, Scene(), near, upon)
    reference, scale = _REFERENCES[name](settings, shapes, unseen, visited, space)
    times = median_milliseconds(
        {
            "decide": lambda: planner.decide(_new(belief), visited=views),
            "draw": lambda: sampler.draw(_new(belief), Scene()),
            "reference": reference,
        },
        rounds,
    )
    whole = times["draw"] + scale * times["reference"]
    return {
        "planner": name,
        "taken": taken,
        "views": candidates,
        "shapes": settings.shapes,
        "shape_grid": settings.shape_grid,
        "decide_ms": times["decide"],
        "draw_ms": times["draw"],
        "reference_ms": whole,
        "ratio": whole / times["decide"],
    }


def _new(belief: SurfaceBelief) -> SurfaceBelief:
    """Copy the belief without cached values of the previous decision."""
    return dataclasses.replace(belief)


def _one_view_at_a_time(
    settings: PlannerSettings,
    shapes: Shapes,
    unseen: FloatArray,
    taken: Sequence[float],
    space: CircleViewSpace,
) -> tuple[Callable[[], object], float]:
    """EMC of some of the views, and its scale factor."""
    sample = np.random.default_rng(0).choice(space.angles, _SHAPES_REFERENCE_VIEWS, replace=False)
    return (
        lambda: [expected_gain(shapes, unseen, float(view), Scene()) for view in sample],
        len(space.angles) / len(sample),
    )


def _one_shape_at_a_time(
    settings: PlannerSettings,
    shapes: Shapes,
    unseen: FloatArray,
    taken: Sequence[float],
    space: CircleViewSpace,
) -> tuple[Callable[[], object], float]:
    """Complete the cover on some of the shapes; returns it and the scale factor."""
    some, left = Shapes(shapes.angle, shapes.radius[:_REFERENCE_SHAPES]), unseen[:_REFERENCE_SHAPES]
    excluded = space.excluded(
        0.0, [space.at_angle(angle) for angle in taken], settings.revisit_radius
    )
    views = space.angles[excluded == 0].tolist()
    return (
        lambda: mean_views_to_go(
            some, left, views, settings.first_views, Scene(), settings.target_coverage
        ),
        len(shapes.radius) / len(some.radius),
    )


_REFERENCES = {"EMC": _one_view_at_a_time, "rollout": _one_shape_at_a_time}


_VERTICES = 4000


def camera_rows(quick: bool) -> Iterator[Row]:
    """Time scans of the star polygon, sampled at 4000 vertices; `quick`: only of 640 beams, in
    fewer rounds.

    Returns:
        Rows with `beams`, `vertices`, `cast_ms`, `reference_ms` (:func:`cast_one_by_one`) and
        `ratio` of the two. Times are medians of the processor time.
    """
    return (
        _camera_row(beams, 5 if quick else 15)
        for beams in ((640,) if quick else (64, 121, 640, 4096))
    )


def star_scan(beams: int) -> tuple[Contour, CameraPose, FloatArray]:
    """Contour, pose and bearings of the scan that is timed."""
    scene = Scene()
    angle = np.arange(_VERTICES) * (TWO_PI / _VERTICES)
    contour = Contour(*polar_to_cartesian(angle, parse_object("polygon:star", scene).radius(angle)))
    pose = CameraPose.from_polar(1.0, scene.view_distance)
    return contour, pose, np.linspace(-0.5, 0.5, beams) * scene.field_of_view


def _camera_row(beams: int, rounds: int) -> Row:
    scan = star_scan(beams)
    times = median_milliseconds(
        {
            "cast": lambda: cast_beams(*scan),
            "reference": lambda: cast_one_by_one(*scan),
        },
        rounds,
    )
    return {
        "beams": beams,
        "vertices": _VERTICES,
        "cast_ms": times["cast"],
        "reference_ms": times["reference"],
        "ratio": times["reference"] / times["cast"],
    }


def cast_one_by_one(contour: Contour, pose: CameraPose, bearings: FloatArray) -> FloatArray:
    r"""Range of the first crossing of each beam, every edge tried for every beam in turn.

    The beam :math:`s(\cosα, \sinα)` meets the edge :math:`a + t e`, :math:`0 \le t \le 1`, at
    :math:`s = a \times e / (d \times e)`, :math:`t = a \times d / (d \times e)`. Edges along the
    beam are skipped: their ends also belong to their neighbours.

    Returns:
        Ranges, shape (B,), metres; `inf` where there is no crossing.
    """
    x, y = pose.to_camera(contour.x, contour.y)
    edge_x, edge_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    ranges = np.full(len(bearings), math.inf)
    for beam, bearing in enumerate(bearings):
        cos, sin = math.cos(bearing), math.sin(bearing)
        with np.errstate(divide="ignore", invalid="ignore"):
            across = cos * edge_y - sin * edge_x
            distance = (x * edge_y - y * edge_x) / across
            part = (x * sin - y * cos) / across
        hit = (distance >= 0.0) & (part >= -1e-12) & (part <= 1.0 + 1e-12)
        ranges[beam] = distance[hit].min(initial=math.inf)
    return ranges


Function = tuple[Any, str]
"""A function by the class or module that has it, and its name there."""


@contextlib.contextmanager
def stage_times(stages: Mapping[str, tuple[Function, ...]]) -> Iterator[dict[str, float]]:
    """Processor time that the functions of each stage take within the block, milliseconds.

    No function may call one of another stage.
    """
    milliseconds = dict.fromkeys(stages, 0.0)

    def counted(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                milliseconds[stage] += 1e3 * (time.process_time() - began)

        return call

    members = [(stage, function) for stage, functions in stages.items() for function in functions]
    with replaced((function, counted(stage, getattr(*function))) for stage, function in members):
        yield milliseconds


@contextlib.contextmanager
def replaced(functions: Iterable[tuple[Function, Callable[..., Any]]]) -> Iterator[None]:
    """Replace some functions in the whole process within the block."""
    with contextlib.ExitStack() as stack:
        for (owner, name), other in functions:
            stack.enter_context(patch.object(owner, name, other))
        yield


_STAGES: dict[str, tuple[Function, ...]] = {
    "scan": ((SimulatedCamera, "scan"),),
    "map": ((ScanMapping, "add"), (ScanMapping, "belief")),
    "decide": ((Planner, "decide"),),
    "judge": ((Judge, "add"),),
}


def checks_rows(quick: bool) -> Iterator[Row]:
    """Time an update (a scan of the star with noise becomes a belief) with and without the checks
    of the assumptions.

    `quick`: only the plain mapper after nine views, in fewer rounds.

    Returns:
        Rows with `mapper`, `views`, in milliseconds of processor time `with` and `without`, and
        `part`, the share of `without` that the checks add.
    """
    cases = [(False, 10)] if quick else list(itertools.product((False, True), (10, 20)))
    return (_checks_row(robust, views, 3 if quick else 100) for robust, views in cases)


def _checks_row(robust: bool, views: int, rounds: int) -> Row:
    calls = {}
    for name, checks in (("with", True), ("without", False)):
        config = EpisodeConfig(
            robust=RobustSettings(robust=robust), checks=CheckSettings(checks=checks)
        )
        camera = SimulatedCamera(
            parse_object(config.object, config.scene), config.scene, config.sensor
        )
        *taken, newest = [
            MatchedScan(number, camera.scan(pose, view_number=number), pose, number)
            for number in range(1, views + 1)
            for pose in [CameraPose.from_polar(number * TWO_PI / views, config.scene.view_distance)]
        ]
        mapping = scan_mapping(config)
        for scan in taken:
            mapping.add([scan], scan.view - 1)
            mapping.belief()
        copies = [mapping.copy() for _ in range(rounds + 1)]
        calls[name] = functools.partial(_update, copies, newest)
    times = median_milliseconds(calls, rounds)
    part = times["with"] / times["without"] - 1.0
    return {"mapper": "robust" if robust else "plain", "views": views, **times, "part": part}


def _update(mappings: list[ScanMapping], scan: MatchedScan) -> None:
    mapping = mappings.pop()
    mapping.add([scan], scan.view - 1)
    mapping.belief()


def environment_rows(quick: bool) -> Iterator[Row]:
    """Time steps of the Gymnasium environment (star, random views, each ended episode followed by
    the next).

    `quick`: only the defaults, in one round.

    Returns:
        Rows with the settings in words as `case`, and per second of processor time `steps`,
        `empty`, those of an environment of the same spaces that does nothing, and `ratio`, the
        latter over the former.
    """
    cases: dict[str, dict[str, Any]] = {"defaults": {}}
    if not quick:
        cases |= {
            "solver auto": {"settings": {"solver": "auto"}},
            "grid_size 120, num_beams 61": {"settings": {"grid_size": 120, "num_beams": 61}},
            "with utility U": {"utility": "U"},
            "reward completeness": {"reward": "completeness"},
        }
    return (_environment_row(case, choice, 1 if quick else 20) for case, choice in cases.items())


_STEPS = 200


def _environment_row(case: str, choice: dict[str, Any], rounds: int) -> Row:
    from nbv_planner.view.environment import CircleEnv  # needs gymnasium

    full = CircleEnv(**choice)

    class Empty(CircleEnv):
        """The same spaces, and nothing in them."""

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            return seen

        def step(self, action: Any) -> Any:
            return (seen[0], 0.0, False, False, seen[1])

    seen = full.reset(seed=0)
    calls = {
        name: functools.partial(_play, env, np.random.default_rng(0))
        for name, env in (("full", full), ("empty", Empty(**choice)))
    }
    steps, empty = (1e3 * _STEPS / time for time in median_milliseconds(calls, rounds).values())
    return {"case": case, "steps": steps, "empty": empty, "ratio": empty / steps}


def _play(env: Any, rng: np.random.Generator) -> None:
    _, info = env.reset()
    for _ in range(_STEPS):
        *_, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        if terminated or truncated:
            _, info = env.reset()


def episode_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Time an episode of the sensor protocol (star, 121 beams, noise 0.2 m) for each planner of the
    thesis.

    `quick`: only the planner U, in one round.

    Returns:
        Rows with `planner`, `views`, and in milliseconds of processor time per view: `scan`
        (casting and noise), `map` (measurements, update, belief), `decide`, `judge` (comparing with
        the true object), `episode` (everything, the setting up too), `reference` (the same with
        dense mapper, and objectives and beams one at a time); `ratio` of the last two. Medians over
        rounds in which both take turns, the first one not counted.
    """
    planners = thesis_planners()
    chosen = {"U": planners["U"]} if quick else planners
    return (_episode_row(label, settings, 1 if quick else 3) for label, settings in chosen.items())


def thesis_planners() -> dict[str, PlannerSettings]:
    """Planners of the thesis's table that do not know the object, by label."""
    planners = load_sweep("thesis").planners
    return {
        label: p
        for label, p in planners.items()
        if not set(p.used_objectives) & set(TRUTH_OBJECTIVES)
    }


def _episode_row(label: str, planner: PlannerSettings, rounds: int) -> dict[str, Any]:
    # as the reference
    plain, limits = RobustSettings(robust=False), TerminationSettings(certify=False)
    config = EpisodeConfig(planner=planner, robust=plain, termination=limits)
    measured: list[dict[str, float]] = []
    for _ in range(rounds + 1):
        times = timed_episode(config)
        measured.append({**times, "reference": obvious_episode(config)["episode"]})
    medians = {
        name: statistics.median(times[name] for times in measured[1:]) for name in measured[0]
    }
    ratio = medians["reference"] / medians["episode"]
    return {"planner": label, **medians, "views": int(medians["views"]), "ratio": ratio}


def timed_episode(config: EpisodeConfig) -> dict[str, float]:
    """Run an episode; returns the number of `views`, and `episode` and each stage in milliseconds
    per view.
    """
    began = time.process_time()
    with stage_times(_STAGES) as stages:
        running = simulation.Simulation(config)
        running.finish()
    total, views = 1e3 * (time.process_time() - began), len(running.judge.views)
    return {"views": views, "episode": total / views} | {
        stage: time / views for stage, time in stages.items()
    }


def obvious_episode(config: EpisodeConfig) -> dict[str, float]:
    """Run an episode as :func:`timed_episode` does, with the plain implementations in place of the
    fast ones.
    """
    with obvious_implementation():
        mapper = dataclasses.replace(config.mapper, solver="dense")
        return timed_episode(dataclasses.replace(config, mapper=mapper))


def obvious_implementation() -> AbstractContextManager[None]:
    """Within the block, evaluate objectives one candidate and cast beams one at a time, by their
    formulas.
    """
    plain: list[tuple[Function, Callable[..., Any]]] = [
        ((cls, "evaluate"), _one_by_one(REFERENCE_OBJECTIVES[name]))
        for name, cls in OBJECTIVES.items()
    ]
    return replaced([*plain, ((simulated_camera, "cast_beams"), cast_one_by_one)])


def _one_by_one(reference: Reference) -> Callable[..., FloatArray]:
    def evaluate(objective: object, situation: Situation) -> FloatArray:
        belief = star2d(situation.surface, "the benchmark").belief
        angles = situation.views.view_angle
        return np.array([reference(belief, situation.scene, float(angle)) for angle in angles])

    return evaluate


_WORKERS = 2
_SAMPLE = "polygon:star"


def table_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Time `nbv-bench experiment thesis` as a separate process, from start to end; `quick`: only U
    on the star.

    Returns:
        One row with `objects`, `planners`, `workers`; `wall_s` and `cpu_s` (all processes together)
        in seconds; and from one object, for its episodes with the planners that do not know it, in
        milliseconds of processor time, `sample_ms`, `reference_ms` (objectives one candidate at a
        time) and their `ratio`.

    Raises:
        NbvPlannerError: the command failed; says why.
    """
    labels = ("U",) if quick else tuple(thesis_planners())
    yield {**_timed_sweep(_sweep(quick)), **_sample(labels)}


def _sweep(quick: bool) -> dict[str, Any]:
    sweep: dict[str, Any] = yaml.safe_load(
        shared_file("config/experiments/thesis.yaml").read_text(encoding="utf-8")
    )
    return (
        {**sweep, "objects": [_SAMPLE], "planners": {"U": sweep["planners"]["U"]}}
        if quick
        else sweep
    )


def _timed_sweep(sweep: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False), encoding="utf-8")
        wall, processor = _timed_command(
            "experiment",
            str(folder / "sweep.yaml"),
            "--out",
            str(folder / "out"),
            "--workers",
            str(_WORKERS),
        )
        cases = len(list((folder / "out" / "episodes").iterdir()))
    planners = len(sweep["planners"])
    return {
        "objects": cases // planners,
        "planners": planners,
        "workers": _WORKERS,
        "wall_s": wall,
        "cpu_s": processor,
    }


def _timed_command(*arguments: str) -> tuple[float, float]:
    """Wall time and processor time of a command with all its processes, seconds."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [*python_command("nbv_bench.cli.main"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NbvPlannerError(
            f"nbv-bench {arguments[0]} ended with code {done.returncode}: {''.join(last)}"
        )
    user = after.children_user - before.children_user
    return wall, user + after.children_system - before.children_system


def _sample(labels: tuple[str, ...]) -> dict[str, float]:
    """Time one object both ways."""
    planners = thesis_planners()
    configs = [
        EpisodeConfig(object=_SAMPLE, protocol="thesis", planner=planners[label])
        for label in labels
    ]
    for config in configs:
        timed_episode(config)  # geometry that is computed once per process
    fast = sum(_milliseconds(timed_episode(config)) for config in configs)
    reference = sum(_milliseconds(obvious_episode(config)) for config in configs)
    return {"sample_ms": fast, "reference_ms": reference, "ratio": reference / fast}


def _milliseconds(times: dict[str, float]) -> float:
    return times["views"] * times["episode"]
