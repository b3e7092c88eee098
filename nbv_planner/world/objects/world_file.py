"""World file of the simulated camera: where the object stands, what else does, and how far the
reported poses are off.
"""

from __future__ import annotations

from typing import Any

from nbv_planner.files.located_yaml import read_located
from nbv_planner.settings import from_mapping
from nbv_planner.world.objects.room import WORLD_SECTIONS, WorldSettings
from nbv_planner.world.simulated_camera import SensorSettings


def world_settings(path: str) -> dict[str, Any]:
    """Read the settings that a world file gives, by name; none without a path.

    It has :data:`~nbv_planner.world.objects.room.WORLD_SECTIONS`: `object`, where that stands,
    `other`, another one, `bias`, how far the true sensor is off its reported pose, in metres and
    radians, and `room`, see :func:`~nbv_planner.world.objects.room.load_room`.

    Raises:
        ConfigFileError: the file cannot be read, or holds something that is not allowed; names the
            file and the line.
    """
    found: dict[str, Any] = {}
    sections = read_located(path)[1].known_mapping("section", WORLD_SECTIONS) if path else {}
    for section, content in sections.items():
        names = WORLD_SECTIONS[section]
        if not names:
            found["room_file"] = path
            continue
        entries = content.known_mapping("entry", names)
        if "radius" in names and "radius" not in entries:
            raise content.error("must have a radius, metres")
        for key, entry in entries.items():
            given = {names[key]: entry.plain()}
            with entry.named("").errors_here():
                from_mapping(WorldSettings, given)
                from_mapping(SensorSettings, given)
            found |= given
    return found
