"""Nodes of a launch that are started again when they fail, and go on from what they have saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launch.events.process import ProcessExited

from nbv_planner.saving import STATE_FILES

ARGUMENTS = {
    "respawn": ("false", "Start a node again that has failed or was killed (true, false)."),
    "state_folder": (
        "", "Folder in which the nodes keep their state, and go on from it after a restart; empty: as in params_file."
    ),
    "episode": ("", "Name of the episode that saved state must belong to; empty: a new one at each launch."),
}
"""Launch arguments by name: default and description."""

DELAY = 1.0
"""Seconds before a node is started again; an end of the launch comes first."""

# Exit code of a node whose parameters are not allowed.
_REFUSED = 2

_LAUNCHED = time.strftime("launch %Y-%m-%d %H:%M:%S")


def state_parameters(node: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of a node that keeps its state below `state_folder`, which is made; none without it."""
    if not given["state_folder"]:
        return {}
    folder = Path(given["state_folder"]).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    name, file = STATE_FILES[node]
    return {name: str(folder / file), "episode": given["episode"] or _LAUNCHED}


def check_exit(event: ProcessExited, context: Any) -> list[Any]:
    """Let a node that has failed be started again, unless it will fail again in the same way.

    Raises:
        RuntimeError: its parameters are not allowed.
    """
    if event.returncode == _REFUSED and not context.is_shutdown:
        raise RuntimeError(f"{event.process_name} has refused its parameters; see its output")
    return []
