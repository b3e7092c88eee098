"""What a mapper has learned, as published with each surface on the topic `surface_info`: a YAML
text.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import yaml

from nbv_planner.errors import InputRejectedError, reason
from nbv_planner.files.located_yaml import located
from nbv_planner.known.known_outline import KnownOutline, known_outline
from nbv_planner.settings import from_mapping, plain_settings
from nbv_planner.star2d.belief import CommonErrors, SurfaceBelief
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import Check, Level, check_text
from nbv_planner.volume.grid import Merged
from nbv_planner.volume.published import FreeCells, surface_of
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import SENSOR_NAMES, EstimatedScene, Scene, centre_of

VERSION = 2
_LONGEST = 2**18
_FOUND = [one.name for one in fields(EstimatedScene) if one.name != "views"]
_COMMON = ("value", "std", "prior")
_MOUNT = ("x", "y", "yaw")
_MOST = 1e9


@dataclass(frozen=True)
class SurfaceInfo:
    """What belongs to the surface with the same stamp."""

    stamp: int  #: time of the newest scan in the surface, nanoseconds; 0 before the first.
    prior: PriorSettings  #: kernel and mean of the prior, about the scene that was found.
    #: by :data:`~nbv_planner.world.scene.SENSOR_NAMES`, as given or as the scans say.
    sensor: dict[str, float]
    declared: RangeNoise  #: noise of the ranges as declared.
    #: by which the mapper multiplies it, as the scans show; 1 where they do not.
    noise_factor: float = 1.0
    scene: EstimatedScene | None = None  #: where the object was to be found: what was found of it.
    #: x, y (metres) and yaw (radians) of the camera on the carrier whose poses are published.
    mount: tuple[float, ...] = (0.0, 0.0, 0.0)
    checks: tuple[Check, ...] = ()  #: whether what mapper and planner assume holds.
    #: errors common to views that were found; None where none are sought.
    common: CommonErrors | None = None
    #: of a surface of cells, which of them are free; None of the radius.
    cells: FreeCells | None = None
    #: outline that was known before the first scan; None if none was.
    outline: KnownOutline | None = None

    @classmethod
    def about(cls, belief: Any, **known: Any) -> SurfaceInfo:
        """The information about a belief: what it shows, and what is `known` besides."""
        if isinstance(belief, VolumeSurface):
            return cls(checks=tuple(belief.checks), cells=FreeCells.of(belief), **known)
        return cls(checks=belief.checks, common=belief.common, outline=belief.known, **known)

    @classmethod
    def sensor_of(cls, scene: Scene) -> dict[str, float]:
        """The sensor of a scene."""
        return {name: float(getattr(scene, name)) for name in SENSOR_NAMES}

    def applied(self, belief: SurfaceBelief | Merged) -> SurfaceBelief | VolumeSurface:
        """The belief of a `surface` message with its checks, centre and common errors from here.

        Raises:
            InputRejectedError: `cells`: it is not of this information.
        """
        if isinstance(belief, Merged) != (self.cells is not None):
            raise InputRejectedError("cells", "surface and surface_info are not of one model")
        if isinstance(belief, Merged):
            assert self.cells is not None
            surface = surface_of(belief, self.cells)
            return dataclasses.replace(surface, checks=self.checks, centre=centre_of(self.scene))
        common = self.common or belief.common
        centre = centre_of(self.scene)
        known = self.outline and self.outline.about(*centre)
        return dataclasses.replace(
            belief, checks=self.checks, centre=centre, common=common, known=known
        )

    @property
    def noise(self) -> RangeNoise:
        """Noise of the ranges, as the mapper uses it."""
        return self.declared.scaled(self.noise_factor)

    @property
    def text(self) -> str:
        """The YAML text, each check with its message; :func:`info_from_text` reads it."""
        checks = [
            {
                "name": check.name,
                "score": float(check.score),
                "limit": float(check.limit),
                "level": check.level.name,
                "detail": check.detail,
                "text": check_text(check, self.declared),
            }
            for check in self.checks
        ]
        found = self.scene and {
            **{n: float(getattr(self.scene, n)) for n in _FOUND},
            "views": self.scene.views,
        }
        common = self.common and {
            **{name: getattr(self.common, name).tolist() for name in _COMMON},
            "views": self.common.views,
        }
        content = {
            "version": VERSION,
            "surface": "star2d" if self.cells is None else "volume",
            "stamp": self.stamp,
            "prior": plain_settings(self.prior),
            "sensor": self.sensor,
            "noise": {**asdict(self.declared), "factor": float(self.noise_factor)},
            "mount": dict(zip(_MOUNT, map(float, self.mount), strict=True)),
            "scene": found,
            "common_errors": common,
            "cells": self.cells and asdict(self.cells),
            **({"prior_outline": self.outline.plain} if self.outline else {}),
            "checks": checks,
        }
        return str(yaml.safe_dump(content, sort_keys=False, width=120))


def info_from_text(text: str) -> SurfaceInfo:
    """Read the text of a `surface_info` message.

    Raises:
        InputRejectedError: reason `surface_info`: it is too long, not YAML, of another version, or
        a value is not valid.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"{len(text)} characters, more than {_LONGEST}")
        content = located(text, "surface_info").plain()
        if content["version"] != VERSION:
            raise ValueError(
                f"version is {content['version']!r}, this package reads version {VERSION}"
            )
        return _info(content)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise InputRejectedError(
            "surface_info", f"surface_info cannot be read: {reason(error)}"
        ) from error


def _info(content: dict[str, Any]) -> SurfaceInfo:
    scene = content["scene"]
    noise = dict(content["noise"])
    common, mount = content["common_errors"], content["mount"]
    cells, outline = content.get("cells"), content.get("prior_outline")
    sensor = {
        name: _number(value, name)
        for name, value in content["sensor"].items()
        if name in SENSOR_NAMES
    }
    factor = _number(noise.pop("factor"), "factor")
    return SurfaceInfo(
        int(content["stamp"]),
        from_mapping(PriorSettings, content["prior"]),
        sensor,
        RangeNoise(**{name: _number(value, name) for name, value in noise.items()}),
        factor,
        (
            None
            if scene is None
            else EstimatedScene(views=int(scene["views"]), **{n: float(scene[n]) for n in _FOUND})
        ),
        tuple(_number(mount[name], name, -_MOST) for name in _MOUNT),
        tuple(
            Check(
                row["name"],
                float(row["score"]),
                float(row["limit"]),
                Level[row["level"]],
                str(row["detail"]),
            )
            for row in content["checks"]
        ),
        common and _common(common),
        cells and FreeCells(**cells),
        outline and known_outline(outline),
    )


def _common(content: dict[str, Any]) -> CommonErrors:
    value, std, prior = (
        np.array([_number(one, name, least) for one in content[name]])
        for name, least in zip(_COMMON, (-_MOST, 0.0, 0.0), strict=True)
    )
    if not len(value) == len(std) == len(prior) == 4:
        raise ValueError(f"common_errors: {', '.join(_COMMON)} must have 4 numbers each")
    return CommonErrors(value, std, prior, int(content["views"]))


def _number(value: Any, name: str, least: float = 0.0) -> float:
    if not least <= float(value) < math.inf:
        raise ValueError(f"{name} is {value!r}, must be finite and >= {least:g}")
    return float(value)
