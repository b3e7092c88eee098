"""Keeps the state of a node in a file: gone on from at start, written beside the node's own work."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbv_planner.errors import NbvPlannerError, StateFileError
from nbv_planner.saving import SavingSettings
from nbv_planner.state.state_file import Arrays, SavedState, read_state, write_state

if TYPE_CHECKING:
    from nbv_planner.ros.base_node import BaseNode

# Ending of a file that was not gone on from: it is kept, and is not written over by the next save.
_REFUSED = ".refused"


class StateKeeper:
    """The state file of one node.

    A file that cannot be gone on from is set aside (`<file>.refused`) and counted (`dropped.state.<reason>`), and the
    node begins anew: a robot that was started again has to go on, and the planner notices the views that are missing.

    Attributes:
        path: the file, or None if nothing is kept.
        autosave: whether to save without being asked.
    """

    def __init__(
        self, node: BaseNode, kind: str, file: str, saving: SavingSettings, settings: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Look at nothing yet.

        Args:
            node: whose state it is.
            kind: what the file holds, in words.
            file: its path; empty to keep nothing.
            saving: when to save and to restore.
            settings: the settings that the state depends on.
        """
        self._node, self._kind, self._saving, self._settings = node, kind, saving, settings
        self.path = Path(file).expanduser() if file else None
        self.autosave = saving.autosave and self.path is not None
        self._lock = threading.Lock()
        self._written_at = float("-inf")
        self._saves, self._milliseconds, self._restored = 0, 0.0, False

    def state(self, values: Mapping[str, Any], arrays: Arrays) -> SavedState:
        """The state of the node as it goes into the file."""
        return SavedState(self._kind, values, arrays, self._settings, self._saving.episode)

    def restore(self, apply: Callable[[SavedState], None]) -> bool:
        """At start, have `apply` take over what the file holds, if it is there and is to be gone on from.

        Returns:
            Whether the node goes on from the file.
        """
        if self.path is None or not self._saving.restore:
            return False
        try:
            self.load(apply)
        except StateFileError as error:
            if error.reason != "missing":
                self._set_aside(error)
            return False
        self._restored = True
        self._node.get_logger().info(f"goes on from {self.path}")
        return True

    def load(self, apply: Callable[[SavedState], None], *, any_episode: bool = False) -> None:
        """Have `apply` take over what the file holds.

        Raises:
            StateFileError: it is not there or cannot be used; names the file.
        """
        path = self._named_path()
        state = read_state(path, self._kind, self._settings, "" if any_episode else self._saving.episode)
        try:
            apply(state)
        except StateFileError as error:
            raise StateFileError(error.reason, f"{path}: {error}") from error
        except NbvPlannerError as error:
            raise StateFileError("content", f"{path}: {error}") from error

    def write(self, state: SavedState) -> StateFileError | None:
        """Write the file, in whichever thread; what is wrong is handed to :meth:`took` in the node's own.

        Returns:
            Why it could not be written, or None.
        """
        with self._lock:
            started = time.monotonic()
            try:
                write_state(self._named_path(), state)
            except StateFileError as error:
                return error
            self._written_at = time.monotonic()
            self._saves, self._milliseconds = self._saves + 1, 1e3 * (self._written_at - started)
        return None

    def took(self, error: StateFileError | None) -> None:
        """Count and say that the file could not be written, if it could not."""
        if error is not None:
            self._node.drop(f"state.{error.reason}", str(error))

    @property
    def age(self) -> float:
        """Seconds since the last writing."""
        return time.monotonic() - self._written_at

    def diagnosis(self) -> dict[str, object]:
        """What to say of it on `/diagnostics`; nothing if nothing is kept."""
        if self.path is None:
            return {}
        return {"restored": self._restored, "saves": self._saves, "save_milliseconds": self._milliseconds}

    def _named_path(self) -> Path:
        if self.path is None:
            raise StateFileError("no_file", f"no file is named: set the parameter for the {self._kind}")
        return self.path

    def _set_aside(self, error: StateFileError) -> None:
        assert self.path is not None
        with contextlib.suppress(OSError):
            if self.path.is_file():
                self.path.replace(self.path.with_name(self.path.name + _REFUSED))
        self._node.drop(f"state.{error.reason}", f"begins anew, not from the file: {error}")
