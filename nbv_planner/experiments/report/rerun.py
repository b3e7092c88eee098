"""Running a recorded episode again, for what was not written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import ResultsError
from nbv_planner.settings import from_mapping
from nbv_planner.simulation import Simulation


def recorded_config(values: Mapping[str, Any]) -> EpisodeConfig:
    """Rebuild a configuration from what :meth:`EpisodeConfig.as_dict` gave, also after a way through JSON.

    A group that an older version did not have yet has its default values.

    Raises:
        SettingError: a value is not allowed (any more).
    """
    default = EpisodeConfig()
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(EpisodeConfig):
        if field.name not in values:
            continue
        group, value = getattr(default, field.name), values[field.name]
        arguments[field.name] = from_mapping(type(group), value) if dataclasses.is_dataclass(group) else value
    return EpisodeConfig(**arguments)


def rerun(episode: Mapping[str, Any]) -> Simulation:
    """Run an episode again from its configuration, to the same views.

    Raises:
        ResultsError: it takes other views than were recorded, as another version of the package or of numpy may.
        NbvPlannerError: the configuration does not fit (any more).
    """
    simulation = Simulation(recorded_config(episode["config"]))
    for _ in simulation.run():
        pass
    recorded = [view["angle"] for view in episode["views"]]
    found = [view.angle for view in simulation.judge.views]
    if len(found) != len(recorded) or not np.allclose(found, recorded, rtol=0.0, atol=1e-9):
        case = episode["case"]
        raise ResultsError(
            f"{case['planner']} on {case['object']} takes other views now than were recorded; the sweep was run by "
            "another version, or on another machine where rounding decides"
        )
    return simulation
