"""Compare objects with their nominal outlines, and judge what the comparison says.

Each object is scanned as it is, and with a bump and a dent: a bell along the normal, 3 standard
deviations of the noise high and 0.5 m wide at half of that, at a place that is drawn. Its nominal
outline lies displaced by draws of 0.05 of its mean radius and of 0.05 rad, half of what a place is
taken to be known to; it is the prior of every second episode. Said are how many bumps and dents
were found (a significant stretch of the right sign over the place), in how many objects a false
stretch, and at what part of the places seen the 95 % interval holds.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from campaigns.prior_command import SETS
from campaigns.running import add_draws, add_every, add_half, add_results, objects_of, run_kept
from campaigns.scenarios import shipped_config, with_settings
from nbv_bench.cli.experiment import check_back_end
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.known.deviation import Deviation
from nbv_planner.known.deviation_report import wanted
from nbv_planner.known.nominal import Nominal
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import Scene

ROWS_FILE = "deviation.csv"
_HIGH, _WIDE = 3.0, 0.5
_POINTS = 1900  # a file may have 2000 corners
# The place is known to 0.1 by default; the draws are half of that.
_MOVED = 0.05
_TRIES = 200
# The top of a bump stays so many standard deviations within the bounds, beyond which hits are none.
_WITHIN = 3.0
Curve = NDArray[np.complex128]


@dataclass(frozen=True)
class Deviating:
    """An object and what is wrong with it: 1 a bump, -1 a dent, 0 nothing."""

    object: str
    draw: int
    sign: int


@dataclass(frozen=True)
class DeviationRow:
    """What the comparison said."""

    object: str
    draw: int
    sign: int
    views: int  #: that were taken; 0 where the object has no place for a bump.
    detected: int  #: 1 if a stretch of this sign lies over the place.
    false: int  #: stretches elsewhere.
    seen: float  #: part of the outline.
    holds: float  #: part of the places seen where the 95 % interval holds.
    band: int  #: 1 if the simultaneous one holds at all of them.


def compare(case: Deviating) -> DeviationRow:
    """Run the episode of a case."""
    known = dataclasses.asdict(case)
    rng = np.random.default_rng([case.draw, case.sign + 1, *case.object.encode()])
    seed = int(rng.integers(1 << 30))
    base = with_settings(
        shipped_config(case.object), {"sensor": {"seed": seed}, "planner": {"planner_seed": seed}}
    )
    noise = base.sensor.noise_std
    nominal = _outline(case.object, base.scene)
    actual, place = nominal, complex(math.nan)
    if case.sign:
        deviating = _deviating(nominal, case.sign * _HIGH * noise, base.scene, noise, rng)
        if deviating is None:
            return DeviationRow(**known, views=0, detected=0, false=0, seen=0.0, holds=0.0, band=0)
        actual, place = deviating
    size = float(np.abs(nominal).mean())
    x, y, turn = _MOVED * rng.standard_normal(3) * [size, size, 1.0]
    moved = nominal * np.exp(1j * turn) + x + 1j * y
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("actual.csv", "nominal.csv")]
        for file, curve in zip(files, (actual, moved), strict=True):
            np.savetxt(file, _points(curve), "%.9g", ",", header="x,y", comments="")
        config = dataclasses.replace(base, object=f"file:{files[0]}")
        if rng.random() < 0.5:
            config = with_settings(config, {"outline": {"prior_outline": str(files[1])}})
        simulation = Simulation(config)
        simulation.finish()
        asked = wanted(str(files[1]), None, config.scene, "fitted", None)
    assert asked is not None
    report = asked.compared(Hits.together([step.hits for step in simulation.judge.steps]))
    return DeviationRow(
        **known,
        views=len(simulation.views),
        **_judged(report.deviation, nominal, actual, place, case),
    )


def _judged(
    deviation: Deviation, nominal: Curve, actual: Curve, place: complex, case: Deviating
) -> dict[str, float | int]:
    """What is right of a comparison, by the outlines where they truly lie."""
    over = [
        case.sign * one.mean > 0.0
        and abs(complex(one.x, one.y) - place) < 0.5 * (one.length + _WIDE)
        for one in deviation.stretches
    ]
    true = Nominal([_points(nominal)])
    feet = true.feet(_points(_along(actual, 4 * _POINTS)))
    count = len(true.points)
    number = np.bincount(feet.cell, minlength=count)
    there = np.flatnonzero(number)
    mean = np.bincount(feet.cell, feet.distance, count)[there] / number[there]
    truth = np.interp(np.arange(count), there, mean, period=count)
    holds = (deviation.lower <= truth) & (truth <= deviation.upper)
    within = np.abs(deviation.mean - truth) <= deviation.band
    return {
        "detected": int(any(over)),
        "false": len(over) - sum(over),
        "seen": deviation.part_seen,
        "holds": float(holds[deviation.seen].mean()),
        "band": int(within[deviation.seen].all()),
    }


def _outline(text: str, scene: Scene) -> Curve:
    angle = TWO_PI / _POINTS * np.arange(_POINTS)
    return np.asarray(parse_object(text, scene).radius(angle) * np.exp(1j * angle))


def _points(curve: Curve) -> FloatArray:
    return np.stack([curve.real, curve.imag], axis=1)


def _along(curve: Curve, count: int) -> Curve:
    """Points of a closed curve, equally spaced along it."""
    step = np.abs(np.roll(curve, -1) - curve)
    at = np.append(0.0, np.cumsum(step))
    place = np.linspace(0.0, at[-1], count, endpoint=False)
    return np.asarray(np.interp(place, at, np.append(curve, curve[0])))


def _deviating(
    nominal: Curve, height: float, scene: Scene, noise: float, rng: np.random.Generator
) -> tuple[Curve, complex] | None:
    """The outline with a bump of a height, and where it is; None without a place at which the
    object stays star-shaped and within the bounds.
    """
    curve = _along(nominal, _POINTS)
    around = float(np.abs(np.roll(curve, -1) - curve).sum())
    along = np.roll(curve, -3) - np.roll(curve, 3)
    normal = -1j * along / np.abs(along)
    for middle in rng.integers(_POINTS, size=_TRIES):
        away = (np.arange(_POINTS) - middle + _POINTS // 2) % _POINTS - _POINTS // 2
        bell = np.exp(-4.0 * math.log(2.0) * (away * around / _POINTS / _WIDE) ** 2)
        bumped = curve + height * bell * normal
        turn = np.angle(np.roll(bumped, -1) / bumped)
        reach = np.abs(bumped[bell > 0.01])
        if turn.min() > 0.0 and (
            scene.radius_min < reach.min() and reach.max() < scene.radius_max - _WITHIN * noise
        ):
            return bumped, complex(curve[middle])
    return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_half(parser, SETS)
    add_every(parser)
    add_draws(parser, 1)
    add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    check_back_end(arguments)
    cases = [
        Deviating(text, draw, sign)
        for draw in range(arguments.draws)
        for text in objects_of(SETS[arguments.half])[:: arguments.every]
        for sign in (0, 1, -1)
    ]
    table = ROWS_FILE, DeviationRow, ("object", "draw", "sign")
    rows = run_kept(compare, cases, arguments, "cases", table)
    print("\n".join(summary(rows)))
    return 0


def summary(rows: Sequence[DeviationRow]) -> list[str]:
    """What was found, what was not there, and how far the intervals hold."""
    ran = [row for row in rows if row.views]
    lines = []
    for sign, name in ((1, "bumps"), (-1, "dents")):
        some = [row for row in ran if row.sign == sign]
        lines.append(f"{name} detected: {sum(row.detected for row in some)} of {len(some)}")
    without = [row for row in ran if not row.sign]
    wrong = sum(row.false > 0 for row in without)
    lines.append(f"objects as their outline with a false stretch: {wrong} of {len(without)}")
    if ran:
        holds, seen = (np.mean([getattr(row, name) for row in ran]) for name in ("holds", "seen"))
        band = sum(row.band for row in without)
        lines += [
            f"the 95 % interval holds at {holds:.1%} of the places seen, {seen:.1%} of all",
            f"the simultaneous one holds for {band} of {len(without)} without a bump, for"
            f" {sum(row.band for row in ran if row.sign)} of"
            f" {sum(row.sign != 0 for row in ran)} with one",
        ]
    return lines
