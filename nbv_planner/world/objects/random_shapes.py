"""Random objects, each given by a seed: `random:<family>:<seed>` of ten families, `prior:<seed>`
from the GP prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from nbv_planner.errors import ContourError, SettingError, UnknownNameError
from nbv_planner.geometry import TWO_PI, FloatArray, cartesian_to_polar, wrap_angle
from nbv_planner.gp.chain import draw_prior, prior_series
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.world.objects.true_shapes import PolarObject, Polygon, Spline, first_outside
from nbv_planner.world.scene import Scene


class RandomSource:
    """Random numbers from a family's name, a seed and the number of the attempt.

    numpy guarantees the raw stream of PCG64 and its uniform numbers, but may change its algorithms
    for normal numbers and integers; here all are computed from the uniform ones, so that an object
    is the same on every version.
    """

    def __init__(self, name: str, seed: int, attempt: int) -> None:
        entropy = [*name.encode(), seed, attempt]
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

    def between(self, low: float, high: float) -> float:
        """Draw a uniform number in [low, high)."""
        return low + (high - low) * float(self._generator.random())

    def whole(self, low: int, high: int) -> int:
        """Draw a uniform whole number, both ends included."""
        return low + int((high - low + 1) * self._generator.random())

    def angle(self) -> float:
        """Draw a uniform angle in [0, 2π), radians."""
        return self.between(0.0, TWO_PI)

    def uniforms(self, count: int, low: float, high: float) -> FloatArray:
        """Draw uniform numbers in [low, high), shape (count,)."""
        return low + (high - low) * self._generator.random(count)

    def normals(self, *shape: int) -> FloatArray:
        r"""Draw standard normal numbers of this shape: :math:`\sqrt{-2\ln(1-u)}\,\cos(2πv)` (Box
        and Muller).
        """
        u, v = self._generator.random((2, *shape))
        return np.asarray(np.sqrt(-2.0 * np.log1p(-u)) * np.cos(TWO_PI * v))


# Between vertices on a circle: the edge stays within 1 % of the radius, r (1 - cos 0.125).
_ARC_STEP = 0.25


def rectangle(rng: RandomSource, low: float, high: float) -> Polygon:
    """Rectangle, turned, its centre off the origin."""
    a = rng.between(0.4 * high, high)
    b = rng.between(1.05 * low, a)
    x0 = rng.between(-0.7, 0.7) * (a - low)
    y0 = rng.between(-0.7, 0.7) * (b - low)
    angle, radius = cartesian_to_polar(
        x0 + a * np.array([1, -1, -1, 1]), y0 + b * np.array([1, 1, -1, -1])
    )
    return _polygon(angle + rng.angle(), radius)


def regular(rng: RandomSource, low: float, high: float) -> Polygon:
    """Regular polygon with 3 to 10 vertices, turned."""
    count = rng.whole(3, 10)
    radius = rng.between(1.1 * low, high)
    return _polygon(np.arange(count) * (TWO_PI / count) + rng.angle(), np.full(count, radius))


def irregular(rng: RandomSource, low: float, high: float) -> Polygon:
    """Polygon with 4 to 12 vertices anywhere between the bounds, one in each of as many equal
    sectors.
    """
    count = rng.whole(4, 12)
    angle = (np.arange(count) + rng.uniforms(count, 0.1, 0.9)) * (TWO_PI / count)
    return _polygon(angle + rng.angle(), rng.uniforms(count, low, high))


def notches(rng: RandomSource, low: float, high: float) -> Polygon:
    """Round body with 2 to 6 notches or teeth, all of one kind: a step in radius with steep flanks,
    one per sector.
    """
    inner = rng.between(low, 0.6 * high)
    outer = rng.between(inner + 0.15 * (high - low), high)
    body, step = (outer, inner) if rng.between(0.0, 1.0) < 0.5 else (inner, outer)
    count = rng.whole(2, 6)
    sector = TWO_PI / count
    middle = (np.arange(count) + rng.uniforms(count, 0.35, 0.65)) * sector
    width = rng.uniforms(count, 0.075, 0.3) * sector
    flank = np.minimum(rng.uniforms(count, 0.02, 0.08), 0.8 * width)
    corners = np.column_stack(
        [middle - width, middle - width + flank, middle + width - flank, middle + width]
    )
    return _polygon(
        *_with_arcs(corners.ravel() + rng.angle(), np.tile([body, step, step, body], count))
    )


def _with_arcs(angle: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put vertices on a circle between neighbours of equal radius; the first follows the last."""
    angles, radii = [angle], [radius]
    gap = np.append(angle[1:], angle[0] + TWO_PI) - angle
    for index in np.flatnonzero(radius == np.roll(radius, -1)):
        number = 1 + math.ceil(gap[index] / _ARC_STEP)
        inner = angle[index] + np.linspace(0.0, gap[index], number)[1:-1]
        angles.append(inner)
        radii.append(np.full(len(inner), radius[index]))
    return np.concatenate(angles), np.concatenate(radii)


def _polygon(angle: FloatArray, radius: FloatArray) -> Polygon:
    """Polygon from vertices in any order."""
    turned = wrap_angle(angle)
    order = np.argsort(turned)
    return Polygon(tuple(turned[order].tolist()), tuple(radius[order].tolist()))


_SIZE = 2048
ANGLES: FloatArray = np.arange(_SIZE) * (TWO_PI / _SIZE)
"""Angles of the samples, radians."""


def ellipse(rng: RandomSource, low: float, high: float) -> Spline:
    r"""Ellipse with axes turned and its centre c off the origin.

    With A scaling the axes to 1, the radius along the unit vector u solves :math:`|A(ru - c)| = 1`.
    """
    a = rng.between(0.5 * high, high)
    b = rng.between(1.1 * low, a)
    turned = ANGLES - rng.angle()
    x, y = 0.7 * rng.uniforms(2, -1.0, 1.0) * (1.0 - low / np.array([a, b]))
    p, q = np.cos(turned) / a, np.sin(turned) / b
    along = p * x + q * y
    square = p**2 + q**2
    return _spline((along + np.sqrt(along**2 + square * (1.0 - x**2 - y**2))) / square)


def flower(rng: RandomSource, low: float, high: float) -> Spline:
    r"""Flower with its petals turned, :math:`m + a\cos(n(φ - φ_0))`."""
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    petals = rng.whole(2, 9)
    mean = middle + rng.between(-0.3, 0.3) * half
    amplitude = rng.between(0.2, 0.9) * half
    return _spline(mean + amplitude * np.cos(petals * (ANGLES - rng.angle())))


def superellipse(rng: RandomSource, low: float, high: float) -> Spline:
    r"""Rectangle with round corners, turned: :math:`(|\cos φ/a|^p + |\sin φ/b|^p)^{-1/p}`."""
    a = rng.between(0.4 * high, high)
    b = rng.between(1.05 * low, a)
    power = rng.between(2.5, 6.0)
    turned = ANGLES - rng.angle()
    total = np.abs(np.cos(turned) / a) ** power + np.abs(np.sin(turned) / b) ** power
    return _spline(total ** (-1.0 / power))


def fourier(rng: RandomSource, low: float, high: float) -> Spline:
    r"""Series :math:`\sum_{k=1}^{10} k^{-s}(g_k\cos kφ + h_k\sin kφ)` with normal g, h, scaled to a
    depth.
    """
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    k = np.arange(1, 11)
    weight = rng.normals(2, 10) * k ** -rng.between(0.5, 1.5)
    series = weight[0] @ np.cos(np.outer(k, ANGLES)) + weight[1] @ np.sin(np.outer(k, ANGLES))
    return _spline(middle + rng.between(0.3, 0.97) * half * series / np.abs(series).max())


def bumps(rng: RandomSource, low: float, high: float) -> Spline:
    r"""Circle with 2 to 8 round bumps and dents :math:`a\exp(κ(\cos(φ - φ_i) - 1))`, 0.1 to 0.5 rad
    wide.
    """
    half = 0.5 * (high - low)
    radius = np.full(_SIZE, rng.between(low + 0.4 * half, high - 0.4 * half))
    for _ in range(rng.whole(2, 8)):
        height = rng.between(-1.0, 1.0) * half
        width = rng.between(0.1, 0.5)
        radius += height * np.exp((np.cos(ANGLES - rng.angle()) - 1.0) / width**2)
    return _spline(radius)


def gp(rng: RandomSource, low: float, high: float) -> Spline:
    """Sample of a Gaussian process about the middle of the bounds, its hyper-parameters drawn as
    well.
    """
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    smoothness = ("3/2", "5/2", "7/2")[rng.whole(0, 2)]
    kernel = PeriodicMatern(smoothness, rng.between(0.12, 0.6), rng.between(0.15, 0.5) * half)
    return _spline(middle + prior_series(kernel, rng.normals(2, 1, _SIZE // 2))[0])


def _spline(radius: FloatArray) -> Spline:
    """Spline through samples at equally spaced angles from φ = 0."""
    return Spline(
        tuple((np.arange(len(radius)) * (TWO_PI / len(radius))).tolist()), tuple(radius.tolist())
    )


FAMILIES: dict[str, Callable[[RandomSource, float, float], PolarObject]] = {
    "ellipse": ellipse,
    "flower": flower,
    "superellipse": superellipse,
    "fourier": fourier,
    "bumps": bumps,
    "gp": gp,
    "rectangle": rectangle,
    "regular": regular,
    "irregular": irregular,
    "notches": notches,
}
"""Families by name: each draws a shape that usually, not always, lies between two radii in
metres.
"""
_MOST_DRAWS, _MOST_DIGITS = 10_000, 15
# Away from the bounds by this part of radius_max, so that rounding does not decide whether a draw
# fits.
_MARGIN = 1.25e-4


def parse_random(text: str, scene: Scene) -> PolarObject:
    """Build the object that the part behind `random:` describes, for example `flower:17`.

    Raises:
        UnknownNameError: the family is not known.
        SettingError: the seed is no whole number of at most 15 digits.
        ContourError: no draw fits the scene.
    """
    family, _, seed = text.partition(":")
    if family not in FAMILIES:
        raise UnknownNameError("random family", family, FAMILIES)
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= _MOST_DIGITS):
        shown = seed if len(seed) <= 2 * _MOST_DIGITS else f"{seed[:_MOST_DIGITS]}..."
        raise SettingError(
            f"object 'random:{family}': seed {shown!r} is not a whole number >= 0 of at most"
            f" {_MOST_DIGITS} digits"
        )
    return random_shape(family, int(seed), scene)


def random_shape(family: str, seed: int, scene: Scene) -> PolarObject:
    """Draw an object of one of the :data:`FAMILIES`, again until it lies between the radius bounds
    of the scene.

    It scales with these; the same seed (>= 0) gives the same object.

    Raises:
        ContourError: none of 10 000 draws fits.
    """
    low, high = _inner_bounds(scene)
    shapes = (
        FAMILIES[family](RandomSource(family, seed, attempt), scene.radius_min, scene.radius_max)
        for attempt in range(_MOST_DRAWS)
    )
    fitting = (shape for shape in shapes if first_outside(shape, low, high) is None)
    return _first_of(fitting, f"random:{family}:{seed}", scene)


# Samples of a surface from the prior; the spline through them may exceed their greatest radius by a
# little.
_PRIOR_SIZE = 4096


def prior_surface(seed: int, scene: Scene, kernel: PeriodicMatern) -> PolarObject:
    r"""Draw a surface with mean :math:`(d_{min} + d_{max})/2`, again until it stays inside the
    radius bounds.

    The draw is :math:`m + f` on 4096 angles (:func:`draw_prior`), a cubic spline in between. Draw
    number i of a seed comes from the generator seeded with (seed, i), so that the same text gives
    the same surface.

    Staying inside conditions the prior: the surfaces are those of the prior *given* that they fit
    the bounds. An event of probability δ under the prior has at most δ/p here, where p is the
    probability to stay inside, about 0.10 for the defaults.

    Raises:
        ContourError: none of 10 000 draws stays inside.
    """
    low, high = _inner_bounds(scene)
    middle = 0.5 * (scene.radius_min + scene.radius_max)
    radii = (
        middle + draw_prior(kernel, _PRIOR_SIZE, 1, np.random.default_rng([seed, attempt]))[0]
        for attempt in range(_MOST_DRAWS)
    )
    fitting = (_spline(radius) for radius in radii if low <= radius.min() and radius.max() <= high)
    return _first_of(fitting, f"prior:{seed}", scene)


def _inner_bounds(scene: Scene) -> tuple[float, float]:
    margin = _MARGIN * scene.radius_max
    return scene.radius_min + margin, scene.radius_max - margin


def _first_of(fitting: Iterator[PolarObject], name: str, scene: Scene) -> PolarObject:
    """The first of the draws that fit, if there is one."""
    found = next(fitting, None)
    if found is None:
        raise ContourError(
            f"object {name}: none of {_MOST_DRAWS} draws stays within [{scene.radius_min:g},"
            f" {scene.radius_max:g}] m (radius_min, radius_max)"
        )
    return found
