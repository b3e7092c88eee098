"""The lies of the campaign: what is declared, what is true, and when it could be known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from campaigns.systematic import FINE_SHAPES, Behind, CorrelatedNoise, RangeError, Walk
from campaigns.worlds import (
    SHAPES,
    Frozen,
    Lie,
    Mirrored,
    Moved,
    OffPlane,
    OtherSensor,
    Pane,
    PoseError,
    Reads,
    SecondSensor,
    TrueWorld,
    Visitor,
)
from nbv_planner.episode.parameter_files import load_parameters, shared_file
from nbv_planner.episode.parameters import EpisodeConfig, config_from_parameters
from nbv_planner.world.objects import parse_object
from nbv_planner.world.ray_casting import Contour
from nbv_planner.world.simulated_camera import sampled_contour

HALVES = ("tuning", "test")
"""Parameters of the checks may be chosen by the scenarios of the first half; the second is for
reported results.
"""
PLANNERS: dict[str, dict[str, Any]] = {
    "rollout": {"planner": "rollout", "target": "points", "deadline": 60.0},
    "U": {"planner": "greedy", "objective": "U"},
    "EMC": {"planner": "greedy", "objective": "EMC", "target": "points"},
    "uniform": {"planner": "uniform"},
}
"""Settings of the planners by label; on a busy machine the usual deadline of a decision would
change it.
"""
USUAL_PLANNERS = ("rollout", "U", "uniform")
# Stands for an object that cannot be declared.
_ROUND = "ellipse:a=5,b=5"
_STAR, _CONCAVE = "polygon:star", "polygon:concave"
Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Scenario:
    """One declared world and one true one."""

    kind: str  #: what is untrue, one word for all scenarios of it.
    half: str  #: `tuning` or `test`; the same kind has other values in the other half.
    object: str = _ROUND  #: the object as declared and, without a shape of its own, as it is.
    #: when it could be known, a key of :data:`campaigns.lies.KNOWN`; empty if nothing is untrue.
    known: str = "contradiction"
    lies: tuple[Lie, ...] = ()  #: how the true world departs from the declared one.
    #: outline of the true object, a key of :data:`campaigns.worlds.SHAPES` or
    #: :data:`campaigns.systematic.FINE_SHAPES`, and its arguments.
    shape: tuple[str, tuple[float, ...]] | None = None
    size: float = 1.0  #: true size of the object over the declared one.
    #: what is declared beyond `config/simulation.yaml`, by group and name.
    declared: Settings = field(default_factory=dict)
    scale: float = 1.0  #: of all lengths of that file, except `band_tolerance`, which is not in it.
    #: settings of a second mapper, by group, whose surface comes at every other view.
    other_surface: Settings = field(default_factory=dict)
    label: str = ""  #: tells it from the others of its kind and half, if there are more.

    @property
    def name(self) -> str:
        """Kind, half and label."""
        return "-".join(part for part in (self.kind, self.half, self.label) if part)

    @property
    def since(self) -> int:
        """First view at which a lie is active."""
        return min((lie.since for lie in self.lies), default=1)

    def config(self, planner: str, seed: int, *, robust: bool = True) -> EpisodeConfig:
        """Everything that is declared.

        Raises:
            SettingError: the package refuses it.
        """
        base = scaled(shipped_config(self.object), self.scale)
        groups: dict[str, Mapping[str, Any]] = {
            "sensor": {"seed": seed},
            "planner": {**PLANNERS[planner], "planner_seed": seed},
            # as in the published results
            "robust": {"robust": robust},
            "termination": {"calibrate": False},
        }
        for group, values in self.declared.items():
            groups[group] = {**groups.get(group, {}), **values}
        return with_settings(base, groups)

    def world(self, config: EpisodeConfig) -> TrueWorld:
        """The true world of an episode with this configuration."""
        if self.shape is None:
            contour = sampled_contour(parse_object(self.object, config.scene))
        else:
            contour = {**SHAPES, **FINE_SHAPES}[self.shape[0]](*self.shape[1])
        grown = Contour(self.size * contour.x, self.size * contour.y)
        return TrueWorld(grown, config.scene, config.sensor, self.lies)


@cache
def shipped_config(shape: str) -> EpisodeConfig:
    """Configuration of an episode on an object with `config/simulation.yaml`."""
    return config_from_parameters(
        load_parameters(shared_file("config/simulation.yaml")), object=shape
    )


def with_settings(config: EpisodeConfig, groups: Settings) -> EpisodeConfig:
    """Replace settings by group and name."""
    changed = {
        name: dataclasses.replace(getattr(config, name), **values)
        for name, values in groups.items()
    }
    return dataclasses.replace(config, **changed)


def scaled(config: EpisodeConfig, factor: float) -> EpisodeConfig:
    """Multiply every length that `config/simulation.yaml` holds."""
    lengths = {
        "scene": (
            "radius_min",
            "radius_max",
            "view_distance",
            "range_min",
            "range_max",
            "pixel_size",
        ),
        "sensor": ("noise_std",),
        "measurement": ("noise_std", "radius_margin"),
        "mapper": ("prior_mean",),
        "kernel": ("kernel_std",),
    }
    groups = {
        group: {name: factor * getattr(getattr(config, group), name) for name in names}
        for group, names in lengths.items()
    }
    return with_settings(config, groups)


def _both(
    kind: str, tuning: Mapping[str, Any], test: Mapping[str, Any], **common: Any
) -> list[Scenario]:
    """The scenarios of a kind: what they share, and what differs between the halves."""
    return [
        Scenario(kind, half, **common, **own)
        for half, own in zip(HALVES, (tuning, test), strict=True)
    ]


_OBJECTS = (
    (_STAR, "flower:frequency=4,amplitude=1", "random:irregular:3", "ellipse:a=6,b=4"),
    (_CONCAVE, "square:width=8", "random:gp:12", "ellipse:a=7,b=3"),
)
"""Objects of the systematic errors, by half."""


def _on_all(
    kind: str, tuning: tuple[Lie, ...], test: tuple[Lie, ...], **common: Any
) -> list[Scenario]:
    """The scenarios of a systematic error: one for each object of a half."""
    return [
        Scenario(kind, half, shape, lies=lies, label=shape, **common)
        for half, lies, shapes in zip(HALVES, (tuning, test), _OBJECTS, strict=True)
        for shape in shapes
    ]


def _fine(
    kind: str, tuning: Sequence[tuple[float, ...]], test: Sequence[tuple[float, ...]]
) -> list[Scenario]:
    """The scenarios of an outline of a fine structure: one for each size of it."""
    return [
        Scenario(kind, half, shape=(kind, numbers), known="around", label=f"{numbers[2]:g}")
        for half, several in zip(HALVES, (tuning, test), strict=True)
        for numbers in several
    ]


def _declared_noise(std: float) -> Settings:
    return {"sensor": {"noise_std": std}, "measurement": {"noise_std": std}}


def _lie(lie: Lie, shape: str) -> dict[str, Any]:
    return {"lies": (lie,), "object": shape}


def _form(name: str, *numbers: float) -> dict[str, Any]:
    return {"shape": (name, numbers)}


def _noise(factor: float, shape: str) -> dict[str, Any]:
    return _lie(OtherSensor(noise_factor=factor), shape)


_DEG = math.pi / 180.0
_NO_STALL = {"termination": {"stall_views": 0}}
SCENARIOS: tuple[Scenario, ...] = (
    *_both(
        "cone_5",
        _lie(OtherSensor(field_of_view=5 * _DEG), _STAR),
        _lie(OtherSensor(field_of_view=6 * _DEG), "random:irregular:13"),
        known="header",
    ),
    *_both(
        "cone_10",
        _lie(OtherSensor(field_of_view=10 * _DEG), _STAR),
        _lie(OtherSensor(field_of_view=12 * _DEG), _CONCAVE),
        known="header",
    ),
    *_both(
        "range_short",
        _lie(OtherSensor(range_max=6.0), _STAR),
        _lie(OtherSensor(range_max=5.5), _CONCAVE),
        known="header",
    ),
    *_both(
        "blind",
        _lie(Reads(), _STAR),
        _lie(Reads(), "flower:frequency=5,amplitude=1"),
        known="returns",
        declared=_NO_STALL,
    ),
    *_both("dead", _lie(Reads(10.0), _STAR), _lie(Reads(6.0), "ellipse:a=6,b=4"), known="returns"),
    *_both(
        "frozen",
        _lie(Frozen(since=2), _STAR),
        _lie(Frozen(since=4), "ellipse:a=7,b=3"),
        known="returns",
    ),
    *_both(
        "noise_2",
        _noise(2.0, _STAR),
        _noise(2.3, "flower:frequency=3,amplitude=2"),
        known="returns",
    ),
    *_both("noise_5", _noise(5.0, _STAR), _noise(4.0, "square:width=8"), known="returns"),
    *_both("noise_10", _noise(10.0, _STAR), _noise(8.0, "square:width=10"), known="returns"),
    *_both("noise_small", _noise(0.2, _STAR), _noise(0.3, "square:width=8"), known="returns"),
    *_both(
        "drift_5",
        _lie(PoseError(drift=0.05), _STAR),
        _lie(PoseError(drift=0.06, direction=2.0), _CONCAVE),
    ),
    *_both(
        "drift_10",
        _lie(PoseError(drift=0.1, direction=1.0), _STAR),
        _lie(PoseError(drift=0.09, direction=4.0), "square:width=8"),
    ),
    *_both(
        "bias",
        _lie(PoseError(left=0.3, ahead=0.1), _STAR),
        _lie(PoseError(left=-0.4, ahead=0.2), _CONCAVE),
    ),
    *_both(
        "bias_yaw",
        _lie(PoseError(yaw=4 * _DEG), _STAR),
        _lie(PoseError(yaw=-5 * _DEG), "square:width=8"),
    ),
    *_both(
        "crescent",
        _form("crescent", 4.9, 3.5, 2.45, 1.925),
        _form("crescent", 5.2, 4.0, 2.8, 2.0, 1.0),
        known="around",
    ),
    *_both(
        "letter_c",
        _form("c", 2.0, 5.0, 6.0, 2.5),
        _form("c", 2.2, 5.5, 5.5, 1.8, 0.7),
        known="around",
    ),
    *_both(
        "letter_l",
        _form("l", 2.0, 6.0, 5.0, 5.5, 2.5),
        _form("l", 2.2, 6.5, 4.5, 7.0, 2.0, 2.2),
        known="around",
    ),
    *_both(
        "letter_t",
        _form("t", 2.0, 6.0, 7.0, 5.0, 2.0),
        _form("t", 2.1, 5.5, 6.0, 5.5, 2.5, 4.0),
        known="around",
    ),
    *_both(
        "mushroom",
        _form("mushroom", 2.0, 6.0, 7.0, 1.0),
        _form("mushroom", 2.3, 5.0, 6.0, 2.0, 0.4),
        known="around",
    ),
    *_both(
        "visitor",
        _lie(Visitor(x=8.6, y=1.0, radius=0.8, since=4), "ellipse:a=6,b=4"),
        _lie(Visitor(x=-2.0, y=8.7, radius=0.9, since=3), "square:width=8"),
        known="returns",
    ),
    *_both(
        "glass",
        _lie(Pane(x=1.0, y=0.5, radius=1.5, first=-0.5, last=0.7), "ellipse:a=6,b=5"),
        _lie(Pane(x=-0.5, y=1.0, radius=1.2, first=1.2, last=2.2), "square:width=8"),
    ),
    *_both("coast", {"object": "real:iceland"}, {"object": "real:hawaii"}, known="around"),
    *_both(
        "scale",
        {"scale": 0.0125, "object": "random:irregular:3"},
        {"scale": 0.0175, "object": "random:gp:12"},
        known="declared",
    ),
    *_both(
        "pixel_size",
        {
            "scale": 0.05,
            "object": "random:irregular:3",
            "declared": {"scene": {"pixel_size": 0.1}, "termination": {"band_tolerance": 0.035}},
        },
        {
            "scale": 0.08,
            "object": "random:notches:14",
            "declared": {"scene": {"pixel_size": 0.1}, "termination": {"band_tolerance": 0.056}},
        },
        known="declared",
    ),
    *_both(
        "kernel",
        {"object": _STAR, "declared": {"kernel": {"kernel_std": 0.1}}},
        {"object": _CONCAVE, "declared": {"kernel": {"kernel_std": 0.15}}},
        known="declared",
    ),
    *_both(
        "second_sensor",
        _lie(SecondSensor(away=2.0), _STAR),
        _lie(SecondSensor(away=1.2, since=2), _CONCAVE),
    ),
    *_both(
        "second_frame",
        _lie(SecondSensor(away=1.6, other_frame="camera_2"), _STAR),
        _lie(SecondSensor(away=2.5, since=2, other_frame="front_lidar"), "ellipse:a=7,b=3"),
    ),
    *_both(
        "other_surface",
        {
            "object": _STAR,
            "other_surface": {"mapper": {"grid_size": 720}, "kernel": {"length_scale": 0.5}},
        },
        {"object": _CONCAVE, "other_surface": {"mapper": {"grid_size": 500, "prior_mean": 6.5}}},
        known="second",
    ),
    *_both(
        "height",
        _lie(OffPlane(height=3.0, section=0.7), "square:width=10"),
        _lie(OffPlane(height=2.0, section=0.8), "ellipse:a=7,b=4"),
        known="header",
    ),
    *_both(
        "roll", _lie(OffPlane(roll=0.09), _STAR), _lie(OffPlane(roll=0.3), _CONCAVE), known="header"
    ),
    *_both("mirrored", _lie(Mirrored(), _STAR), _lie(Mirrored(), "random:irregular:12")),
    *_both(
        "moved", _lie(Moved(x=1.0, since=5), _STAR), _lie(Moved(x=-0.5, y=0.6, since=6), _CONCAVE)
    ),
    *_both(
        "turned",
        _lie(Moved(yaw=20 * _DEG, since=5), _STAR),
        _lie(Moved(yaw=-15 * _DEG, since=6), "square:width=8"),
    ),
    *_both(
        "centre",
        _lie(Moved(x=0.5, y=0.3), "ellipse:a=6,b=4"),
        _lie(Moved(x=-0.6, y=0.7), "square:width=8"),
        known="around",
    ),
    *_both(
        "outside",
        {"object": "ellipse:a=7,b=3", "size": 1.25},
        {"object": "square:width=10", "size": 1.3},
        known="bounds",
    ),
    *_both(
        "inside",
        {"object": "polygon:star", "size": 0.5},
        {"object": "ellipse:a=8,b=2", "size": 0.45},
        known="bounds",
    ),
    *_both(
        "touching",
        {"object": "ellipse:a=8,b=2"},
        {"object": "flower:frequency=4,amplitude=2.95"},
        known="bounds",
    ),
    *_both(
        "outliers",
        _lie(OtherSensor(outlier_probability=0.2), _STAR),
        _lie(OtherSensor(outlier_probability=0.15), _CONCAVE),
        known="returns",
    ),
    *_both(
        "dropout",
        _lie(OtherSensor(dropout_probability=0.7), _STAR),
        _lie(OtherSensor(dropout_probability=0.8), _CONCAVE),
        known="returns",
    ),
    *_on_all("range_long", (RangeError(offset=0.25),), (RangeError(offset=0.2),)),
    *_on_all("range_near", (RangeError(offset=-0.25),), (RangeError(offset=-0.3),)),
    *_on_all("range_scale", (RangeError(factor=0.96),), (RangeError(factor=0.95),)),
    *_on_all("far_camera", (PoseError(ahead=-0.4),), (PoseError(ahead=-0.5),)),
    *_on_all("walk", (Walk(step=0.07),), (Walk(step=0.08),)),
    *_on_all("skew", (Behind(angle=2.5 * _DEG),), (Behind(angle=3 * _DEG),)),
    *_on_all("mount_side", (PoseError(left=-0.18),), (PoseError(left=0.15),)),
    *_on_all(
        "correlated", (CorrelatedNoise(correlation=0.85),), (CorrelatedNoise(correlation=0.9),)
    ),
    *_on_all("lag", (Behind(part=0.04),), (Behind(part=0.05),)),
    *_on_all(
        "range_fine",
        (RangeError(offset=0.4),),
        (RangeError(offset=0.5),),
        declared=_declared_noise(0.03),
    ),
    *_on_all(
        "turned_fine",
        (Moved(yaw=-14 * _DEG, since=6), OtherSensor(noise_factor=0.15)),
        (Moved(yaw=17 * _DEG, since=5), OtherSensor(noise_factor=0.1)),
    ),
    *_fine("gear", ((5.0, 0.8, 20), (6.0, 0.6, 28)), ((5.5, 0.7, 24), (5.0, 1.0, 18))),
    *_fine("saw", ((5.0, 1.0, 18), (6.0, 0.8, 24)), ((5.5, 0.9, 20), (5.0, 1.2, 26))),
)
"""Every kind in both halves."""


def honest(sets: Mapping[str, tuple[str, ...]]) -> tuple[Scenario, ...]:
    """Worlds that are as declared, by the name of the set of objects."""
    return tuple(
        Scenario(shape, name, shape, known="") for name, shapes in sets.items() for shape in shapes
    )
