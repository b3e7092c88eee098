"""Server-sent events of a live episode: each client gets what has changed since it was last told."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from nbv_planner.live import LiveEpisode, LiveView
from nbv_planner.live.episode import SECTIONS
from nbv_planner.live.sections import section


class Feed:
    """Makes events of a live episode for any number of clients.

    The text of a section is made once per change and shared by all; only the newest text of each is kept, so memory
    does not grow with time, nor with clients that are slow: they skip what has been overtaken.
    """

    def __init__(self, live: LiveEpisode) -> None:
        """Serve `live`."""
        self.live = live
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[int, str]] = {}

    def event(self, known: Mapping[str, int]) -> tuple[bytes, Mapping[str, int]]:
        """The sections that differ from the versions `known` as one event, and the versions it holds."""
        view = self.live.view()
        changed = [name for name in SECTIONS if view.versions[name] != known.get(name)]
        parts = ",".join(f'"{name}":{self._text(view, name)}' for name in changed)
        return f"event: change\ndata: {{{parts}}}\n\n".encode(), view.versions

    def alive(self) -> bytes:
        """An event that says for how long nothing has been heard; also finds out whether the client is still there."""
        return f"event: alive\ndata: {self.live.silence:.1f}\n\n".encode()

    def _text(self, view: LiveView, name: str) -> str:
        with self._lock:
            version, text = self._texts.get(name, (-1, ""))
            if version < view.versions[name]:
                version = view.versions[name]
                text = json.dumps(section(view, name), allow_nan=False, separators=(",", ":"))
                self._texts[name] = (version, text)
            return text
