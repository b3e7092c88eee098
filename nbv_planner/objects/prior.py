"""Surfaces drawn from the Gaussian-process prior, written `prior:<seed>`."""

from __future__ import annotations

import numpy as np

from nbv_planner.errors import ContourError, SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.gp.prior_draw import draw_prior
from nbv_planner.objects.shapes import Spline
from nbv_planner.scene import Scene
from nbv_planner.settings import settings_of

_SIZE = 4096
_MOST_DRAWS = 10_000
# The spline may pass the greatest radius on the grid by a little; metres.
_MARGIN = 1e-3


def parse_prior(text: str, scene: Scene) -> Spline:
    """Build the surface that the part behind `prior:` describes: a seed, and kernel parameters if not the default.

    For example `3` or `3,smoothness=5/2,kernel_std=1`.

    Raises:
        SettingError: no seed, or a parameter is not known or not allowed.
        ContourError: no draw stays inside the radius bounds.
    """
    seed, *rest = text.split(",")
    if not seed.isdecimal():
        raise SettingError(f"object 'prior:{text}': seed {seed!r} is not a whole number >= 0")
    return prior_surface(int(seed), scene, _kernel(rest, text))


def prior_surface(seed: int, scene: Scene, kernel: PeriodicMatern) -> Spline:
    r"""Draw a surface with mean :math:`(d_{min} + d_{max})/2`, again until it stays inside the radius bounds.

    The draw is :math:`m + f` on 4096 angles (:func:`draw_prior`), a cubic spline in between. Draw number i of a seed
    comes from the generator seeded with (seed, i), so that the same text gives the same surface.

    Staying inside conditions the prior: the surfaces are those of the prior *given* that they fit the bounds. An event
    of probability δ under the prior has at most δ/p here, where p is the probability to stay inside, about 0.10 for
    the defaults (:func:`inside_probability`).

    Raises:
        ContourError: none of 10 000 draws stays inside.
    """
    for number in range(_MOST_DRAWS):
        radius = _draw(seed, number, scene, kernel)
        if scene.radius_min + _MARGIN <= radius.min() and radius.max() <= scene.radius_max - _MARGIN:
            return Spline(tuple(_angles().tolist()), tuple(radius.tolist()))
    raise ContourError(
        f"object prior:{seed}: none of {_MOST_DRAWS} draws stays within [{scene.radius_min:g}, {scene.radius_max:g}] m "
        "(radius_min, radius_max)"
    )


def inside_probability(scene: Scene, kernel: PeriodicMatern, draws: int, generator: np.random.Generator) -> float:
    """Estimate the probability that a draw stays inside the radius bounds, from that many `draws`."""
    middle = 0.5 * (scene.radius_min + scene.radius_max)
    furthest = np.abs(draw_prior(kernel, _SIZE, draws, generator)).max(axis=1)
    return float(np.mean(furthest <= middle - scene.radius_min))


def _angles() -> FloatArray:
    return np.arange(_SIZE) * (TWO_PI / _SIZE)


def _draw(seed: int, number: int, scene: Scene, kernel: PeriodicMatern) -> FloatArray:
    middle = 0.5 * (scene.radius_min + scene.radius_max)
    return np.asarray(middle + draw_prior(kernel, _SIZE, 1, np.random.default_rng([seed, number]))[0])


def _kernel(items: list[str], text: str) -> PeriodicMatern:
    kinds = {name: type(default) for name, default, _ in settings_of(PeriodicMatern)}
    values = {}
    for item in items:
        name, _, value = item.partition("=")
        if name not in kinds or name in values:
            raise SettingError(f"object 'prior:{text}': {name!r} is not one of {', '.join(kinds)}, or given twice")
        try:
            values[name] = kinds[name](value)
        except ValueError as error:
            raise SettingError(f"object 'prior:{text}': {name}={value!r} is not a number") from error
    return PeriodicMatern(**values)
