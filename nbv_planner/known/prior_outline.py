"""The outline that is known before the first scan: its parameters, and reading its file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from nbv_planner.errors import ContourError, NbvPlannerError, SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.known.nominal import Nominal
from nbv_planner.settings import Settings, setting
from nbv_planner.world.objects.contour_files import file_origin, load_contour
from nbv_planner.world.objects.text import UNITS, file_options
from nbv_planner.world.objects.true_outlines import outlines_in_file
from nbv_planner.world.objects.true_shapes import Polygon
from nbv_planner.world.scene import Scene

# Displacement in parts of the outline's mean radius, and its turn, radians, if not given; the first
# where the object is searched for.
_PLACE, _ADRIFT = (0.1, 0.1), 0.3
# Sizes of such an object in its stated radius.
_STATED = (0.1, 2.0)
# Greater than any radius of a scene, metres: a file may hold any size until it is judged.
_ANY = 1e12
# In radius_max, how far an outline may reach: the object may be smaller than its drawing.
_BEYOND = 1.25
# Least standard deviation, in parts of the mean radius or of half a turn.
_FINEST = 1e-4
_HINT = "remove prior_outline to continue without it"
_TOLERANCE = re.compile(r"(.+),tolerance=([^,]*)(.*)", re.DOTALL)


@dataclass(frozen=True)
class PriorOutlineSettings(Settings):
    """What is known of the outline before the first scan.

    Raises:
        SettingError: a value is out of range, or `prior_place_std` has another number of values.
    """

    prior_outline: str = setting(
        "",
        "File of the outline that the object should have, in a form that object takes: a drawing,"
        " an earlier result or the cut below; with ,tolerance=M (m) deviations are judged; empty:"
        " none.",
        start_only=True,
    )
    prior_outline_std: float = setting(
        0.1,
        "Standard deviation of the object from prior_outline, along the normal: raise it for a"
        " rough drawing.",
        unit="m",
        gt=0.0,
        scale="mean radius",
    )
    prior_place_std: tuple[float, ...] = setting(
        (0.0, 0.0),
        "Standard deviations of the placement of prior_outline: x and y (m), turn (rad). 0: 0.1"
        " of its mean radius, and 0.1; in an unknown scene the outline is placed about the object"
        " found, to 0.3 of that radius.",
        ge=0.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prior_place_std) != 2:
            raise SettingError(
                f"prior_place_std: has {len(self.prior_place_std)} numbers, must be 2: metres,"
                " radians"
            )
        if self.tolerance is not None and not 0.0 < self.tolerance < math.inf:
            raise SettingError(f"prior_outline: tolerance is {self.tolerance:g} m, must be > 0")

    @property
    def file(self) -> str:
        """The file with its unit and origin, named as an object's is."""
        return "file:" + _TOLERANCE.sub(r"\1\3", self.prior_outline)

    @property
    def tolerance(self) -> float | None:
        """Greatest deviation that is allowed, metres; None if none was given.

        Raises:
            SettingError: it is no number.
        """
        found = _TOLERANCE.fullmatch(self.prior_outline)
        if found is None:
            return None
        try:
            return float(found[2])
        except ValueError as error:
            raise SettingError(
                f"prior_outline: tolerance is {found[2]!r}, must be a number of metres"
            ) from error

    @property
    def adrift(self) -> bool:
        """Whether nothing is said of its place: where the object is searched for it is about what
        is found.
        """
        return not self.prior_place_std[0]

    def known(self, scene: Scene, *, stated: float = 0.0) -> KnownOutline | None:
        """The outline as a prior in a scene, None without one; of an object of a `stated` radius
        (metres) that is searched for it is in its own place, or about the origin if that was not
        given.

        Raises:
            SettingError: it cannot be read, crosses itself, is not star-shaped, of another size
                than the bounds, or elsewhere; one line that says what to change.
        """
        if not self.prior_outline:
            return None
        try:
            path, unit, _ = file_options(self.file)
            changed = Path(path).stat().st_mtime_ns if Path(path).exists() else 0
            origin, radius = _read(self.file, changed)
            _check_size(path, unit, radius, _bounds(scene, stated))
            known = KnownOutline(radius, *self._stds(float(radius.mean()), stated), origin)
            if not stated:
                _check_place(path, known)
            elif self.adrift:
                known = known.moved(*(-known.loops[0].mean(axis=0)))
        except NbvPlannerError as error:
            raise SettingError(f"prior_outline: {error}; {_HINT}") from error
        return known.as_transmitted()

    def known_solid(self, scene: Scene, *, stated: float = 0.0) -> KnownSolid | None:
        """The outlines of any form as a prior of a surface of cells in a scene, None without one;
        see :meth:`known`.

        Raises:
            SettingError: as of :meth:`known`, but that they need not be star-shaped.
        """
        if not self.prior_outline:
            return None
        try:
            bounds = _bounds(scene, stated)
            loops = outlines_in_file(self.file, _ANY if stated else _BEYOND * bounds[1]).loops
            corners = np.concatenate(loops)
            middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
            radius = np.hypot(*(corners - middle).T)
            path, unit, _ = file_options(self.file)
            _check_size(path, unit, radius, bounds)
            std, place_std = self._stds(float(radius.mean()), stated)
        except NbvPlannerError as error:
            raise SettingError(f"prior_outline: {error}; {_HINT}") from error
        known = KnownSolid(bounds[1], std, place_std, tuple(loops))
        return known.within(bounds[1], *(-middle if stated and self.adrift else (0.0, 0.0)))

    def _stds(self, mean: float, stated: float) -> tuple[float, tuple[float, float]]:
        """Deviations of the outline and of its place, of a mean radius, metres."""
        along, turn = self.prior_place_std
        part = _ADRIFT if stated else _PLACE[0]
        stds = {
            "prior_outline_std": (self.prior_outline_std, mean),
            "prior_place_std[0]": (along or part * mean, mean),
            "prior_place_std[1]": (turn or _PLACE[1], math.pi),
        }
        for name, (std, most) in stds.items():
            if not _FINEST * most <= std <= most:
                raise SettingError(
                    f"{name}: {std:g} must be within [{_FINEST * most:.3g}, {most:.3g}]"
                )
        std, along, turn = (std for std, _ in stds.values())
        return std, (along, turn)


@lru_cache(maxsize=4)
def _read(text: str, changed: int) -> tuple[tuple[float, float], FloatArray]:
    """The point about which all of a file's outline is seen, in the object frame, and its radius
    about that, shape (720,), metres; `changed` is when it was written.

    That is the origin of the frame where all is seen from there.
    """
    path, unit, moved = file_options(text)
    outlines_in_file(text, _ANY)
    metres = UNITS[unit]
    try:
        contour, x, y = load_contour(path, file_origin=moved), 0.0, 0.0
    except ContourError:
        contour = load_contour(path, file_origin=True)
        x, y = file_origin(path)
    angle, radius = contour
    around = TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)
    shape = Polygon(tuple(angle.tolist()), tuple((metres * radius).tolist()))
    return (metres * x, metres * y), shape.radius(around)


def _bounds(scene: Scene, stated: float) -> tuple[float, float]:
    """Least and greatest radius of the object, metres."""
    low, high = _STATED
    return (low * stated, high * stated) if stated else (scene.radius_min, scene.radius_max)


def _check_size(path: str, unit: str, radius: FloatArray, bounds: tuple[float, float]) -> None:
    """Refuse an outline that is no size of the object, and say which unit would fit, if any."""
    mean, most = math.sqrt(float(np.mean(radius**2))), float(radius.max())
    low, high = bounds

    def fits(factor: float) -> bool:
        return low <= factor * mean <= high and factor * most <= _BEYOND * high

    if fits(1.0):
        return
    found = (
        f"{path} reaches {most:.4g} m from its middle, {mean:.4g} m on average; the object is from"
        f" {low:g} to {high:g} m (radius_min, radius_max)"
    )
    for other, metres in UNITS.items():
        factor = metres / UNITS[unit]
        if fits(factor):
            raise ContourError(f"{found}; {factor:g} times that would fit: write unit={other}")
    raise ContourError(f"{found}; {0.5 * (low + high) / mean:.3g} times that would fit")


def _check_place(path: str, known: KnownOutline) -> None:
    """Refuse an outline that does not surround the origin of the object frame."""
    if np.isfinite(known.curve(np.zeros(3), np.zeros(1))).all():
        return
    x, y = known.origin
    raise ContourError(
        f"{path} does not surround the origin of the object frame: its middle is"
        f" {math.hypot(x, y):.4g} m away, at x = {x:.4g}, y = {y:.4g}; add ,origin=auto"
    )


def nominal_in_file(text: str, scene: Scene) -> tuple[Nominal, tuple[float, float]]:
    """The outlines of a file, which need not be star-shaped, named as an object's is, as what an
    object of the scene is compared with; and how well their place is known: 0.1 of the mean radius,
    metres, and 0.1, radians.

    Raises:
        SettingError: it cannot be read, crosses itself, is of another size than the bounds, or
            elsewhere; one line that says what to change.
    """
    try:
        path, unit, _ = file_options(f"file:{text}")
        nominal = Nominal(outlines_in_file(f"file:{text}", _ANY).loops)
        middle = nominal.points.mean(axis=0)
        radius = np.hypot(*(nominal.points - middle).T)
        _check_size(path, unit, radius, _bounds(scene, 0.0))
        away = float(np.hypot(*middle))
        if away > scene.radius_max:
            x, y = middle
            raise ContourError(
                f"{path}: its middle is {away:.4g} m from the origin of the object frame, at x ="
                f" {x:.4g}, y = {y:.4g}, farther than radius_max; add ,origin=auto"
            )
    except NbvPlannerError as error:
        raise SettingError(f"nominal: {error}") from error
    return nominal, (_PLACE[0] * float(radius.mean()), _PLACE[1])
