"""Settings of what the nodes keep in files, and of which settings such a file depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nbv_planner.settings import check_settings, setting, settings_of

STATE_FILES = {
    "depth_camera": ("state_file", "camera.npz"),
    "surface_mapper": ("map_file", "map.npz"),
    "nbv_planner": ("state_file", "session.npz"),
}
"""By node: the parameter that names its file, and the name of the file in a folder for all of them."""


@dataclass(frozen=True)
class SavingSettings:
    """When a node saves and restores its state.

    Raises:
        SettingError: a value has the wrong type.
    """

    autosave: bool = setting(
        True, "Save each view and each goal before anybody hears of it, if the node has a file for it."
    )
    restore: bool = setting(
        True, "At start, go on from the node's file if it is there and belongs to this episode and to these settings."
    )
    episode: str = setting(
        "", "Name of the episode: a file of another one is not gone on from; empty goes on from any."
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class MapFile:
    """Where the mapper keeps the surface map; see :class:`SavingSettings`."""

    map_file: str = setting("", "File of ~/save, ~/load, autosave and restore; empty keeps nothing.", start_only=True)

    def __post_init__(self) -> None:
        """Check the value."""
        check_settings(self)


@dataclass(frozen=True)
class StateFile:
    """Where the planner keeps its episode, or the simulated camera its way; see :class:`SavingSettings`."""

    state_file: str = setting(
        "", "File in which the state is kept for autosave and restore; empty keeps nothing.", start_only=True
    )

    def __post_init__(self) -> None:
        """Check the value."""
        check_settings(self)


def fixed_settings(*instances: Any) -> dict[str, dict[str, Any]]:
    """Values of those settings that cannot change at run time, by class name, as JSON holds them."""
    return {
        type(instance).__name__: {
            name: list(value) if isinstance(value := getattr(instance, name), tuple) else value
            for name, _, meta in settings_of(type(instance))
            if meta.read_only
        }
        for instance in instances
    }
