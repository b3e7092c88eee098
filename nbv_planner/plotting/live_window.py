"""A window that shows an episode while it happens."""

from __future__ import annotations

import threading

import matplotlib as mpl
import matplotlib.pyplot as plt

from nbv_planner.errors import DependencyError
from nbv_planner.live import LiveEpisode
from nbv_planner.plotting.figure import SIZE
from nbv_planner.plotting.live_figure import draw_live

# Seconds between two looks for news; drawing everything takes about as long.
_PERIOD = 0.4


class LiveWindow:
    """The figure of a live episode in a window of its own, drawn again when there is news.

    Raises:
        DependencyError: matplotlib has no display to open a window on, or no toolkit for it.
    """

    def __init__(self, live: LiveEpisode) -> None:
        """Open the window."""
        self._live = live
        try:
            self.figure = plt.figure(num="nbv_planner", figsize=SIZE)
        except ImportError as error:
            raise DependencyError(f"no window: {error}; use --web and a browser") from error
        if getattr(type(self.figure.canvas), "required_interactive_framework", None) is None:
            plt.close(self.figure)
            raise DependencyError(
                f"no window: matplotlib's backend here is {mpl.get_backend()}, for want of a display or of a toolkit "
                "such as tkinter; use --web and a browser"
            )

    def run(self, ended: threading.Event) -> None:
        """Show what happens until the window is closed or `ended` is set.

        A signal handler should set it: an exception in one would be caught by the toolkit, and go unnoticed.
        """
        plt.show(block=False)
        known: object = None
        while plt.fignum_exists(self.figure.number) and not ended.is_set():
            view = self._live.view()
            if view.versions != known:
                known = view.versions
                draw_live(self.figure, view)
                self.figure.canvas.draw_idle()
            self.figure.canvas.start_event_loop(_PERIOD)
        plt.close(self.figure)
