"""Families of upright objects, as outlines of their cuts from the bottom to the top: heaps, stems,
twin piles; rocks, towers, bends and ridges. Each member is given by a seed.

All have their cuts within the scene of `config/simulation.yaml`: radii from 2.1 to 7.8 m about the
axis of the mast or the turntable, which is where the object stands, not where each cut has its
middle.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.world.objects.random_shapes import RandomSource

_POINTS = 720
_ANGLE = TWO_PI / _POINTS * np.arange(_POINTS)
_LEAST, _MOST = 2.1, 7.8
_APART = 0.25  # metres between two cuts.

Family = Callable[[RandomSource, FloatArray], FloatArray]
"""Corners of each cut, complex (C, 720), metres, at parts u of the height, shape (C,)."""


def _lobes(rng: RandomSource, orders: range, size: float, drift: float = 0.0) -> Family:
    """A sum of waves around the axis, whose phases drift by up to so many radians over the height,
    (C, 720).
    """
    waves = [
        (k, rng.between(-size, size) / k**0.5, rng.angle(), rng.between(-drift, drift))
        for k in orders
    ]
    return lambda _, u: sum(
        (a * np.cos(k * _ANGLE + p + d * u[:, None]) for k, a, p, d in waves),
        np.zeros((len(u), _POINTS)),
    )


def heap(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A pile that ends in a blunt top: its lobes stay, the radius falls to half."""
    lobes = _lobes(rng, range(2, 9), 0.12, 0.6)(rng, u)
    size = rng.between(5.5, 6.5) * (1.0 - rng.between(0.4, 0.55) * u[:, None])
    return np.asarray(size * (1.0 + lobes) * np.exp(1j * _ANGLE))


def stem(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A stem that tapers and leans, with buttresses at its foot."""
    oval = _lobes(rng, range(2, 4), 0.08)(rng, u)
    feet = rng.between(0.1, 0.25) * np.cos(rng.whole(4, 7) * _ANGLE + rng.angle())
    size = rng.between(4.5, 5.5) * (1.0 - rng.between(0.2, 0.4) * u[:, None])
    lean = rng.between(0.3, 0.9) * np.exp(1j * rng.angle()) * u[:, None]
    shape = 1.0 + oval + feet * (1.0 - u[:, None]) ** 2
    return np.asarray(size * shape * np.exp(1j * _ANGLE) + lean)


def twin(rng: RandomSource, u: FloatArray) -> FloatArray:
    """Two piles that have run into each other, and a third one at times: a valley between them."""
    radius = np.full((len(u), _POINTS), _LEAST)
    first = rng.angle()
    for number in range(rng.whole(2, 3)):
        away = rng.between(1.8, 2.8)
        bearing = first + TWO_PI * number / 2.6 + rng.between(-0.2, 0.2)
        size = rng.between(4.0, 4.8) * (1.0 - rng.between(0.3, 0.45) * u[:, None])
        cos, sin = np.cos(_ANGLE - bearing), np.sin(_ANGLE - bearing)
        reach = np.sqrt(np.maximum(size**2 - (away * sin) ** 2, 0.0))
        radius = np.maximum(radius, np.where(reach > 0.0, away * cos + reach, 0.0))
    return np.asarray(radius * np.exp(1j * _ANGLE))


def rock(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A boulder: waves that come and go with the height."""
    size = rng.between(4.8, 5.8) * np.sqrt(1.0 - (0.8 * u[:, None]) ** 2)
    shape = np.ones((len(u), _POINTS))
    for k in range(1, 10):
        high, low = (rng.between(-0.3, 0.3) / k for _ in range(2))
        fades = high * np.cos(2.0 * u[:, None] + rng.angle()) + low
        shape = shape + fades * np.cos(k * _ANGLE + rng.angle())
    return np.asarray(size * shape * np.exp(1j * _ANGLE))


def tower(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A tower with flat walls that twists, and becomes narrower by steps."""
    count, turn = rng.whole(3, 6), rng.between(-0.8, 0.8) * u[:, None] + rng.angle()
    sector = TWO_PI / count
    local = (_ANGLE - turn + 0.5 * sector) % sector - 0.5 * sector
    wall = np.cos(0.5 * sector) / np.cos(local)
    steps = np.floor(rng.whole(2, 4) * u[:, None] * 0.999)
    return np.asarray(rng.between(6.5, 7.5) * (1.0 - 0.1 * steps) * wall * np.exp(1j * _ANGLE))


def bend(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A pipe of an oval section that bends aside, with flanges."""
    long, flat = rng.between(4.5, 5.5), rng.between(0.55, 0.9)
    flange = np.isin(np.arange(len(u)), [rng.whole(2, 8), rng.whole(10, 18)])[:, None]
    local = _ANGLE - rng.angle()
    oval = long * flat / np.hypot(flat * np.cos(local), np.sin(local)) * (1.0 + 0.2 * flange)
    aside = rng.between(0.8, 1.4) * np.exp(1j * rng.angle()) * u[:, None] ** 2
    return np.asarray(oval * np.exp(1j * _ANGLE) + aside)


def ridge(rng: RandomSource, u: FloatArray) -> FloatArray:
    """A long pile with a ridge, out of which a notch has slid down to half of its height."""
    long, wide = rng.between(6.3, 7.3), rng.between(4.0, 5.0)
    first, second = long * (1.0 - 0.3 * u[:, None]), wide * (1.0 - 0.45 * u[:, None])
    local = _ANGLE - rng.angle()
    power = rng.between(2.5, 4.0)
    radius = (np.abs(np.cos(local) / first) ** power + np.abs(np.sin(local) / second) ** power) ** (
        -1.0 / power
    )
    middle, wide = rng.angle(), rng.between(0.15, 0.3)
    off = np.angle(np.exp(1j * (_ANGLE - middle)))
    deep = rng.between(0.2, 0.35) * np.clip(4.0 * (u[:, None] - 0.4), 0.0, 1.0)
    return np.asarray(
        radius * (1.0 - deep * np.exp(-0.5 * (off / wide) ** 2)) * np.exp(1j * _ANGLE)
    )


FAMILIES: dict[str, Family] = {
    one.__name__: one for one in (heap, stem, twin, rock, tower, bend, ridge)
}
HALVES = {"tuning": ("heap", "stem", "twin"), "test": ("rock", "tower", "bend", "ridge")}
"""Families by half: parameters may be chosen by the first one."""


def cuts_of(family: str, seed: int, count: int = 20) -> dict[float, FloatArray]:
    """Corners of the outline of each cut, shape (720, 2), metres, by its height, metres."""
    rng = RandomSource(f"cuts:{family}", seed, 0)
    corner = FAMILIES[family](rng, np.arange(count) / max(count - 1, 1))
    size = np.clip(np.abs(corner), _LEAST, _MOST)
    corner = size * np.exp(1j * np.angle(corner))
    places = np.stack([corner.real, corner.imag], axis=2)
    return {_APART * number: places[number] for number in range(count)}


def write_cuts(folder: Path, cuts: dict[float, FloatArray]) -> None:
    """Write the outline of each cut into a folder, `<height>.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    for height, corners in cuts.items():
        rows = (f"{x:.6g},{y:.6g}" for x, y in corners.tolist())
        write_whole(folder / f"{height:.2f}.csv", "\n".join(["x,y", *rows, ""]))
