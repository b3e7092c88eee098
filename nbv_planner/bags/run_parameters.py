"""What `run_info` says: the parameters of the nodes, and the true object where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from nbv_planner.camera_poses import PoseSettings
from nbv_planner.config_files import Parameters, load_parameters
from nbv_planner.episode_config import EpisodeConfig, config_from_parameters
from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.node_settings import NODE_SETTINGS
from nbv_planner.settings import from_mapping, settings_of

_LONGEST = 2**20


@dataclass(frozen=True)
class RunParameters:
    """Parameters of a recorded run.

    Attributes:
        nodes: parameter values by node and name, only those that the nodes declare.
        versions: versions of what it ran on.
    """

    nodes: Parameters
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def object(self) -> str | None:
        """The true object as text; None without a simulated camera."""
        value = self.nodes.get("depth_camera", {}).get("object")
        return value if isinstance(value, str) else None

    @property
    def poses(self) -> PoseSettings:
        """Whose poses and goals are recorded: the camera's, or those of what carries it.

        Raises:
            SettingError: a value is not allowed (by this version of the package).
        """
        return from_mapping(PoseSettings, self.nodes.get("surface_mapper", {}))

    def config(self) -> EpisodeConfig:
        """Configuration of the episode.

        Raises:
            SettingError: a value is not allowed (by this version of the package).
        """
        scene_of_all = next((self.nodes[name] for name in NODE_SETTINGS if self.nodes.get(name)), {})
        nodes = {name: self.nodes.get(name) or scene_of_all for name in NODE_SETTINGS}
        return config_from_parameters(nodes, object=self.object or "unknown", protocol="sensor")


def parameters_from_text(text: str) -> RunParameters:
    """Read the text of a `run_info` message.

    Raises:
        InputRejectedError: reason `run_info`: it is too long, no YAML, or holds something else.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"{len(text)} characters, more than {_LONGEST}")
        content = yaml.safe_load(text)
        nodes, versions = content["nodes"], content.get("versions", {})
        known = {name: _declared(name, nodes[name]) for name in NODE_SETTINGS if name in nodes}
        return RunParameters(known, {str(k): str(v) for k, v in dict(versions).items()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise InputRejectedError("run_info", f"run_info cannot be read: {' '.join(str(error).split())}") from error


def parameters_from_file(path: str) -> RunParameters:
    """Read a ROS 2 parameter file in place of `run_info`.

    Raises:
        NbvPlannerError: it cannot be read, or a value is not allowed.
    """
    return RunParameters({name: values for name, values in load_parameters(path).items() if values})


def _declared(node: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the parameters of ROS itself."""
    names = {name for cls in NODE_SETTINGS[node] for name, _, _ in settings_of(cls)}
    return {name: value for name, value in values.items() if name in names}


def usable_config(parameters: RunParameters | None) -> tuple[EpisodeConfig | None, str]:
    """The configuration, or None and the reason why there is none."""
    if parameters is None:
        return None, "run_info is not in the bag (its parameters can be given with --params-file)"
    try:
        return parameters.config(), ""
    except NbvPlannerError as error:
        return None, f"the parameters in run_info are not usable: {error}"
