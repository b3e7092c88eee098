"""Random grounds with random beliefs, and what is true of every place on them: found by brute
force, cell by cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.world.ground.grid_ground import GridGround, ground_of
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import Ground, GroundSettings, path_length

# Rounding, metres.
_SLACK = 1e-7
# Places on a path per cell.
_PER_CELL = 4


@dataclass(frozen=True, eq=False)
class Case:
    """A ground with an object that reaches up to `upper` (M,) at the angles of a uniform grid, and
    a start.
    """

    settings: GroundSettings
    map: OccupancyMap | None
    upper: FloatArray
    start: tuple[float, float]

    @property
    def angle(self) -> FloatArray:
        """Grid of polar angles, radians."""
        return np.arange(len(self.upper)) * (TWO_PI / len(self.upper))

    def ground(self) -> Ground:
        """The ground under test."""
        return ground_of(self.settings, 12.0, self.map).with_object(self.angle, self.upper, 8.0)


def random_case(rng: np.random.Generator) -> Case:
    """A case: with a map or without, clear or cluttered, with up to two polygons, and a smooth or a
    jagged belief.
    """
    polygons = []
    for _ in range(rng.integers(0, 3)):
        angle, away = rng.uniform(0.0, TWO_PI), rng.uniform(4.0, 13.0)
        around, size = np.sort(rng.uniform(0.0, TWO_PI, rng.integers(3, 7))), rng.uniform(0.3, 3.0)
        radius = size * rng.uniform(0.3, 1.0, len(around))
        x = away * math.cos(angle) + radius * np.cos(around)
        y = away * math.sin(angle) + radius * np.sin(around)
        polygons.append(" ".join(f"{a:.4f},{b:.4f}" for a, b in zip(x, y, strict=True)))
    settings = GroundSettings(
        robot_radius=float(rng.choice([0.0, 0.3, 1.0]) * rng.uniform(0.5, 1.0)),
        clearance=float(rng.choice([0.0, 0.3])),
        no_go_polygons="; ".join(polygons),
        unknown_is_blocked=bool(rng.random() < 0.7),
        occupied_threshold=int(rng.integers(1, 101)),
    )
    angle = rng.uniform(0.0, TWO_PI)
    start = 11.0 * math.cos(angle), 11.0 * math.sin(angle)
    return Case(
        settings, _random_map(rng) if rng.random() < 0.95 else None, _random_upper(rng), start
    )


def _random_map(rng: np.random.Generator) -> OccupancyMap:
    height, width = rng.integers(20, 45, 2)
    cells = np.zeros((height, width), dtype=np.int8)
    for value in rng.choice([-1, 40, 70, 100], rng.integers(0, 8)):
        row, column = rng.integers(0, height), rng.integers(0, width)
        cells[row : row + rng.integers(1, 12), column : column + rng.integers(1, 12)] = value
    scattered = rng.random(cells.shape) < rng.choice([0.0, 0.02, 0.1])
    cells[scattered] = rng.integers(-1, 101, int(scattered.sum()))
    side = float(rng.uniform(20.0, 34.0) / max(height, width))
    yaw = float(rng.choice([0.0, rng.uniform(-math.pi, math.pi)]))
    middle = rng.normal(0.0, 2.0, 2)
    x, y = -0.5 * side * width, -0.5 * side * height
    cos, sin = math.cos(yaw), math.sin(yaw)
    return OccupancyMap(
        cells, side, float(middle[0] + cos * x - sin * y), float(middle[1] + sin * x + cos * y), yaw
    )


def _random_upper(rng: np.random.Generator) -> FloatArray:
    size = int(rng.choice([60, 100, 360]))
    angle = np.arange(size) * (TWO_PI / size)
    upper = rng.uniform(3.0, 7.0) + sum(
        rng.normal(0.0, 1.0) / m * np.cos(m * angle + rng.uniform(0.0, TWO_PI)) for m in range(1, 6)
    )
    if rng.random() < 0.3:  # as a band jumps where the measurements end
        upper = np.where(rng.random(size) < 0.5, upper, rng.uniform(2.0, 9.0))
    return np.clip(upper, 0.5, 9.0)


class Truth:
    """What holds at places of a case, by brute force over all cells, edges and sectors."""

    def __init__(self, case: Case) -> None:
        self._case = case
        settings = case.settings
        self._squares = np.empty((0, 2))
        if case.map is not None:
            barred = case.map.cells >= settings.occupied_threshold
            if settings.unknown_is_blocked:
                barred |= case.map.cells == -1
            self._squares = np.argwhere(barred)[:, ::-1].astype(float)
        self._polygons = [
            np.array([[float(number) for number in word.split(",")] for word in text.split()])
            for text in settings.no_go_polygons.split(";")
            if text.strip()
        ]
        reach = np.minimum(case.upper, 8.0)
        # between an angle and the next, up to the larger one
        self._sector = np.maximum(reach, np.roll(reach, -1))

    def free_by(self, x: FloatArray, y: FloatArray) -> dict[str, FloatArray]:
        """By how much places keep the distance to map, polygons and object, metres, shape (n,);
        negative: not.
        """
        case, radius = self._case, self._case.settings.robot_radius
        away = np.full(len(x), np.inf)
        if case.map is not None:
            m = case.map
            dx, dy = x - m.x, y - m.y
            column = (math.cos(m.yaw) * dx + math.sin(m.yaw) * dy) / m.resolution
            row = (math.cos(m.yaw) * dy - math.sin(m.yaw) * dx) / m.resolution
            for part in np.array_split(
                np.arange(len(x)), len(x) * len(self._squares) // 2_000_000 + 1
            ):
                across, along = (
                    np.abs(value[part, None] - 0.5 - of) - 0.5
                    for value, of in zip((column, row), self._squares.T, strict=True)
                )
                squared = (np.maximum(across, 0.0) ** 2 + np.maximum(along, 0.0) ** 2).min(
                    axis=1, initial=np.inf
                )
                within = (np.maximum(across, along) < -1e-9).any(axis=1)
                away[part] = np.where(within, -1.0, np.sqrt(squared) * m.resolution - radius)
            edge = np.minimum(
                np.minimum(column, m.cells.shape[1] - column),
                np.minimum(row, m.cells.shape[0] - row),
            )
            away = np.where(edge < 0.0, -1.0, away)
        beside = np.full(len(x), np.inf)
        for corners in self._polygons:
            beside = np.minimum(
                beside, np.where(_inside(corners, x, y), -1.0, _to_edges(corners, x, y) - radius)
            )
        margin = radius + case.settings.clearance
        place = np.mod(np.arctan2(y, x), TWO_PI)
        sector = np.floor(place * len(case.upper) / TWO_PI).astype(int) % len(case.upper)
        gap = np.hypot(x, y) - self._sector[sector]
        cos, sin = np.cos(case.angle), np.sin(case.angle)
        foot = np.clip(
            x[:, None] * cos + y[:, None] * sin,
            0.0,
            np.maximum(self._sector, np.roll(self._sector, 1)),
        )
        sides = (x[:, None] - foot * cos) ** 2 + (y[:, None] - foot * sin) ** 2
        gap = np.minimum(gap, np.sqrt(sides.min(axis=1)))
        beyond = np.where(np.hypot(x, y) < self._sector[sector], -1.0, gap - margin)
        return {"map": away, "polygon": beside, "object": beyond}


def _inside(corners: FloatArray, x: FloatArray, y: FloatArray) -> np.ndarray:
    """By the angles under which the edges appear: they add up to a full turn, or to nothing."""
    turn = np.zeros(len(x))
    for (a, b), (c, d) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        step = np.arctan2(d - y, c - x) - np.arctan2(b - y, a - x)
        turn += np.remainder(step + math.pi, TWO_PI) - math.pi
    return np.abs(turn) > math.pi


def _to_edges(corners: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    best = np.full(len(x), np.inf)
    for (a, b), (c, d) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        length = max((c - a) ** 2 + (d - b) ** 2, 1e-300)
        part = np.clip(((x - a) * (c - a) + (y - b) * (d - b)) / length, 0.0, 1.0)
        best = np.minimum(best, np.hypot(x - a - part * (c - a), y - b - part * (d - b)))
    return best


@dataclass
class Outcome:
    """What was found in a case."""

    goals: int = 0  #: candidates that may be chosen.
    barred: int = 0  #: candidates in a zone or cut off.
    paths: int = 0  #: paths followed to their ends.
    faults: tuple[str, ...] = ()


def judged(case: Case, rng: np.random.Generator) -> Outcome:
    """Choose goals and paths on the ground, and check all of them, and that nothing far from all is
    barred.
    """
    ground, truth, outcome = case.ground(), Truth(case), Outcome()
    angle, away = rng.uniform(0.0, TWO_PI, 40), rng.uniform(3.0, 13.0, 40)
    x, y = away * np.cos(angle), away * np.sin(angle)
    zones = ground.reachable(case.start, x, y)
    free = zones == 0
    outcome.goals, outcome.barred = int(free.sum()), int((~free).sum())
    faults = _too_near(truth, "goal", x[free], y[free])
    side = 0.05 if not isinstance(ground, GridGround) else math.sqrt(8.0) * ground.map.resolution
    step = TWO_PI / len(case.upper)
    # The outline is a step wider than the belief, and its chords bulge.
    generous = side + (1.0 / math.cos(0.5 * step) - 1.0) * 9.0 + 1e-6
    wide = np.maximum(case.upper, np.maximum(np.roll(case.upper, 1), np.roll(case.upper, -1)))
    plain = Truth(Case(case.settings, case.map, wide, case.start))
    kept = plain.free_by(x, y)
    margins = np.min(list(kept.values()), axis=0)
    needless = (ground.zones(x, y) != 0) & (margins > generous)
    inside_map = kept["map"] > -1.0
    faults += [
        f"barred for nothing at {x[i]:.3f}, {y[i]:.3f}"
        for i in np.flatnonzero(needless & inside_map)
    ]
    lengths = ground.lengths(case.start, x[free], y[free])
    for index in rng.permutation(int(free.sum()))[:2]:
        goal = float(x[free][index]), float(y[free][index])
        path, said = ground.path(case.start, goal), float(lengths[index])
        outcome.paths += 1
        faults += _bad_path(case, ground, truth, path, goal, said)
    outcome.faults = tuple(faults)
    return outcome


def _too_near(truth: Truth, what: str, x: FloatArray, y: FloatArray) -> list[str]:
    return [
        f"{what} at {x[i]:.4f}, {y[i]:.4f} is {-value[i]:.2g} m too near to the {name}"
        for name, value in truth.free_by(x, y).items()
        for i in np.flatnonzero(value < -_SLACK)
    ]


def _bad_path(
    case: Case,
    ground: Ground,
    truth: Truth,
    path: FloatArray,
    goal: tuple[float, float],
    said: float,
) -> list[str]:
    if len(path) < 2 or not (np.allclose(path[0], case.start) and np.allclose(path[-1], goal)):
        return [f"no path to {goal}, which is reachable"]
    out = ground.nearest_free(case.start)
    inside = path[1:] if out != case.start else path  # the path out of a zone begins in it
    side = ground.map.resolution if isinstance(ground, GridGround) else 0.3
    places = [
        a + (b - a) * part
        for a, b in pairwise(inside)
        for part in np.linspace(0.0, 1.0, int(_PER_CELL * math.dist(a, b) / side) + 2)[:, None]
    ]
    faults = _too_near(truth, "path", *np.concatenate(places).reshape(-1, 2).T) if places else []
    if not math.dist(case.start, goal) - 1e-6 <= path_length(path) <= said * (1.0 + 2e-4) + 1e-6:
        faults.append(f"path of {path_length(path)} m to {goal}, said to be {said} m")
    return faults
