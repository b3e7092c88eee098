"""Scale of a scene: lengths that are not given follow from the bounds of the object and the view
circle.

The defaults are those of the thesis's scene, in which the radius is between 2 and 8 m and the
camera 10 m from the centre. In another one each default with a
:attr:`nbv_planner.settings.Setting.scale` keeps its ratio to that length, so that an object of a
few centimetres is reconstructed by the same views as one of many metres.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, TypeVar

from nbv_planner.geometry import TWO_PI
from nbv_planner.settings import Setting, changed, settings_of, value_of
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import LEAST_FIELD, EstimatedScene, Scene

T = TypeVar("T")
_ROOT = "radius_max"
# Their sum is the resolution at which a surface can be measured.
_RESOLVED = ("noise_std", "pixel_size")
_DEFAULTS = {name: default for name, default, _ in settings_of(Scene)}


def _length(name: str, scene: Mapping[str, float]) -> float:
    low, high = scene["radius_min"], scene["radius_max"]
    return {"mean radius": 0.5 * (low + high), "span": high - low}.get(name) or scene[name]


def scaled(given: Mapping[str, Any], classes: Iterable[type]) -> dict[str, Any]:
    r"""Values of those settings of `classes` that are in proportion to the scene and not among
    those `given`.

    The value is :math:`v\,l/l_0` to twelve digits: its default v times the ratio of a length of the
    scene to the same one of the default scene. Where `radius_min` and `view_distance` are not
    given, they follow from `radius_max`. With a given `noise_std`, `radius_margin` is at least
    three times as large, and `range_offset_std` 0.4 of it; `completeness_tau` is `noise_std` +
    `pixel_size`. Values `given` that are no positive numbers are left to the checks of the
    settings.
    """
    scene = dict(_DEFAULTS)
    for name in (_ROOT, "radius_min", "view_distance"):
        if _is_length(given.get(name)):
            scene[name] = given[name]
        else:
            scene[name] = _times(_DEFAULTS[name], scene[_ROOT] / _DEFAULTS[_ROOT])
    derived = {
        name: _times(default, _length(meta.scale, scene) / _length(meta.scale, _DEFAULTS))
        for cls in classes
        for name, default, meta in settings_of(cls)
        if meta.scale and name not in given
    }
    if "radius_margin" in derived and _is_length(given.get("noise_std")):
        derived["radius_margin"] = max(derived["radius_margin"], 3.0 * given["noise_std"])
    if "range_offset_std" in derived and _is_length(given.get("noise_std")):
        derived["range_offset_std"] = _times(0.4, given["noise_std"])
    if "completeness_tau" in derived:
        known = {**derived, **given}
        if all(type(known.get(name)) in (int, float) for name in _RESOLVED):
            derived["completeness_tau"] = float(f"{sum(known[name] for name in _RESOLVED):.12g}")
    return derived


def _is_length(value: Any) -> bool:
    return type(value) in (int, float) and 0.0 < value < math.inf


# A header has single precision.
_ROUNDING = 1e-5
# Headers that differ from the one before, from which on they change from scan to scan: one change
# is another mode.
_CHANGING = 3


@dataclass(frozen=True)
class SensorHeader:
    """Properties of the sensor in the headers of scans; 0 if not stated. A full turn without range
    limits states no field of view: clouds are converted so, wherever their points are.
    """

    field_of_view: float = 0.0  #: widest cone about the line of sight that the beams fill, radians.
    range_min: float = 0.0  #: least range, metres.
    range_max: float = 0.0  #: greatest range, metres.

    @classmethod
    def of(cls, scan: Scan) -> SensorHeader:
        """Properties in the header of one scan: a range of 0 or `+inf` states nothing."""
        limits = (scan.range_min, scan.range_max)
        laid_out = scan.field_ahead == TWO_PI and limits == (0.0, math.inf)
        far = 0.0 if scan.range_max == math.inf else scan.range_max
        return cls(
            0.0 if laid_out or scan.field_ahead < LEAST_FIELD else scan.field_ahead,
            scan.range_min,
            far,
        )

    def with_other(self, other: SensorHeader) -> SensorHeader:
        """Of each number the one that sees more."""
        nearest = min(self.range_min or math.inf, other.range_min or math.inf)
        return SensorHeader(
            max(self.field_of_view, other.field_of_view),
            0.0 if nearest == math.inf else nearest,
            max(self.range_max, other.range_max),
        )

    def differs(self, other: SensorHeader) -> bool:
        """Whether a number differs by more than the rounding of a header."""
        return not all(map(_same, astuple(self), astuple(other)))

    @property
    def summary(self) -> str:
        """The numbers, for a log."""
        return ", ".join(f"{name} {value:.4g}" for name, value in asdict(self).items())

    def in_scene(self, scene: Scene) -> tuple[dict[str, float], tuple[str, ...]]:
        r"""Those of `field_of_view`, `range_min` and `range_max` that differ from the scene's, and
        the names not stated. Only the part of the cone that can contain the object counts: the
        field of view is at most
        :math:`2 \arcsin(r_{max} / d_{cam})`, the range :math:`d_{cam} + r_{max}`.
        """
        most = {
            "field_of_view": 2.0 * math.asin(scene.radius_max / scene.view_distance),
            "range_max": scene.view_distance + scene.radius_max,
        }
        found = {name: min(value, most.get(name, math.inf)) for name, value in asdict(self).items()}
        differ = {
            name: float(f"{value:.6g}")
            for name, value in found.items()
            if value > 0.0 and not _same(value, getattr(scene, name))
        }
        return differ, tuple(name for name, value in found.items() if value == 0.0)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)


@dataclass(frozen=True)
class SensorHeaders:
    """What the headers of all scans so far say of the sensor."""

    widest: SensorHeader = SensorHeader()  #: of each number the one that sees the most.
    newest: SensorHeader | None = None  #: that of the newest scan.
    changes: int = 0  #: number of headers that differed from the one before.

    def after(self, scan: Scan) -> SensorHeaders:
        """With the header of one more scan: it widens what is known of the sensor, and never
        narrows it.

        Some drivers state as `range_max` the largest range of that scan, or begin with a cropped
        field of view.
        """
        header = SensorHeader.of(scan)
        changed = self.newest is not None and header.differs(self.newest)
        return SensorHeaders(self.widest.with_other(header), header, self.changes + changed)

    @property
    def changing(self) -> bool:
        """Whether they change from scan to scan, beyond a change of the driver's mode."""
        return self.changes >= _CHANGING


def rescaled(settings: T, before: Scene, now: Scene) -> T:
    """Settings whose lengths in proportion to the object, of the scene `before`, are those of the
    scene `now`.

    What is in proportion to the view circle (ranges, their noise, tolerances of a pose) belongs to
    the sensor and the robot, and stays.
    """
    old, new = ({name: getattr(scene, name) for name in _DEFAULTS} for scene in (before, now))
    values = {
        name: _times(
            value_of(settings, name, default), _length(meta.scale, new) / _length(meta.scale, old)
        )
        for name, default, meta in settings_of(type(settings))
        if meta.scale not in ("", "view_distance")
    }
    return changed(settings, values)


def at_estimate(scene: Scene, estimated: EstimatedScene) -> Scene:
    """The scene about the centre of an estimated one; its sensor is that of `scene`, its pixels
    are in proportion.
    """
    return replace(
        scene,
        radius_min=estimated.radius_min,
        radius_max=estimated.radius_max,
        view_distance=estimated.view_distance,
        pixel_size=_times(scene.pixel_size, estimated.radius_max / scene.radius_max),
    )


def derived_text(
    derived: Mapping[str, Any], classes: Iterable[type], source: str = "not given, so derived"
) -> str:
    """One line for a log: the values that were `derived` for settings of `classes`, with where they
    come from.
    """
    units = {name: meta.unit for cls in classes for name, _, meta in settings_of(cls)}
    words = (f"{name} {_plain(value)} {units[name]}".rstrip() for name, value in derived.items())
    return f"{source}: " + (", ".join(words) or "nothing")


def adopted(settings: T, values: Mapping[str, Any], source: str) -> tuple[T, str]:
    """The settings with these `values` where they differ, and those that do as text for a log,
    empty where none does.

    Raises:
        SettingError: it does not fit the others.
    """
    changes = {name: value for name, value in values.items() if value != getattr(settings, name)}
    words = derived_text(changes, [type(settings)], source) if changes else ""
    return replace(settings, **changes), words  # type: ignore[type-var]


def proportion(default: Any, meta: Setting) -> str:
    """How a setting with a scale follows from the scene, for tables: `0.0125 radius_max`."""
    return f"{_plain(_times(default, 1.0 / _length(meta.scale, _DEFAULTS)))} {meta.scale}"


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _times(default: Any, ratio: float) -> Any:
    if isinstance(default, tuple):
        return tuple(_times(value, ratio) for value in default)
    return default if ratio == 1.0 else float(f"{default * ratio:.12g}")
