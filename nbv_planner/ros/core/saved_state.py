"""Saves the state of a node in a file: resumed at start, written in a worker thread."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbv_planner.episode.parameters import MapFile, SavingSettings, StateFile, fixed_settings
from nbv_planner.errors import NbvPlannerError, StateFileError, reason
from nbv_planner.mapping.saved import Arrays, SavedState, read_state, write_state
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.system import at_home

if TYPE_CHECKING:
    from nbv_planner.ros.core.node import BaseNode


# Suffix of a file that was not resumed: it is kept, and not overwritten by the next save.
_REFUSED = ".refused"


class StateKeeper:
    """The state file of one node.

    A file that cannot be resumed is renamed (`<file>.refused`) and counted (`dropped.state.<reason>`), and the node
    starts without it: a restarted robot has to continue, and the planner detects the missing views.
    """

    def __init__(self, node: BaseNode, kind: str, file: type[MapFile | StateFile], *settings: object) -> None:
        """Read the parameters, without reading the file.

        The kind is the content of the file in words, `file` declares the parameter with its path (empty to save
        nothing), and the state depends on the `settings`.
        """
        self._node, self._kind, self._settings = node, kind, fixed_settings(*settings)
        self._saving = read_settings(node, SavingSettings)
        ((self._parameter, path),) = dataclasses.asdict(read_settings(node, file)).items()
        self.path = at_home(path) if path else None  #: the file, or None if nothing is saved.
        self.autosave = self._saving.autosave and self.path is not None  #: whether to save without a request.
        self._lock = threading.Lock()
        self._written_at = float("-inf")
        self._saves, self._milliseconds, self._restored = 0, 0.0, False

    def state(self, values: Mapping[str, Any], arrays: Arrays) -> SavedState:
        """The state of the node as written to the file."""
        return SavedState(self._kind, values, arrays, self._settings, self._saving.episode)

    def restore(self, apply: Callable[[SavedState], None]) -> None:
        """At start, `apply` the content of the file, if it exists and is to be resumed."""
        if self.path is None or not self._saving.restore:
            return
        try:
            self.load(apply)
        except StateFileError as error:
            if error.reason != "missing":
                with contextlib.suppress(OSError):
                    if self.path.is_file():
                        self.path.replace(self.path.with_name(self.path.name + _REFUSED))
                self._node.drop(f"state.{error.reason}", f"starts without the saved state: {error}")
            return
        self._restored = True
        self._node.get_logger().info(f"resumed from {self.path}")

    def load(self, apply: Callable[[SavedState], None], *, any_episode: bool = False) -> None:
        """`apply` the content of the file.

        Raises:
            StateFileError: it does not exist or cannot be used; names the file.
        """
        path = self._named_path()
        state = read_state(path, self._kind, self._settings, "" if any_episode else self._saving.episode)
        try:
            apply(state)
        except StateFileError as error:
            raise StateFileError(error.reason, f"{path}: {error}") from error
        except NbvPlannerError as error:
            raise StateFileError("content", f"{path}: {error}") from error
        except Exception as error:  # a file must not end the node, or it would end it again at every restart
            raise StateFileError("content", f"{path}: {type(error).__name__}: {reason(error)}") from error

    def write(self, state: SavedState) -> StateFileError | None:
        """Write the file, in any thread; returns the error, if any, for :meth:`took` in the node's thread."""
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
        """Count and log an error of writing, if any."""
        if error is not None:
            self._node.drop(f"state.{error.reason}", str(error))

    @property
    def age(self) -> float:
        """Seconds since the last writing."""
        return time.monotonic() - self._written_at

    def diagnosis(self) -> dict[str, object]:
        """Values for `/diagnostics`; none if nothing is saved."""
        if self.path is None:
            return {}
        return {"restored": self._restored, "saves": self._saves, "save_milliseconds": self._milliseconds}

    def _named_path(self) -> Path:
        if self.path is None:
            raise StateFileError("no_file", f"no file is named: start the node with the parameter {self._parameter}")
        return self.path
