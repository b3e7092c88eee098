"""A simulated episode as a notebook shows it: view by view, as a table, as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nbv_planner.episode.parameters import EpisodeConfig, configure
from nbv_planner.episode.records import ViewColumn, ViewRecord
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import DependencyError, UnknownNameError, analysis_needed
from nbv_planner.gp.kernels.kernel_settings import KERNEL_PLUGINS
from nbv_planner.planning.objectives import OBJECTIVE_PLUGINS
from nbv_planner.planning.planners import PLANNER_PLUGINS
from nbv_planner.world.objects import OBJECT_PLUGINS, PolarObject
from nbv_planner.world.objects.text import object_name


class Episode(Simulation):
    """A simulated episode, which takes its views as one iterates; to iterate again gives the same
    views.

    After a `break` the next loop begins with the first view and goes on where the first one
    stopped.
    """

    def __iter__(self) -> Iterator[ViewRecord]:
        """Yield each view, judged against the true object; see :meth:`run`."""
        return self.run()

    def __repr__(self) -> str:
        """Say what it is, how far it has come, and why it ended."""
        seen = f", {self.judge.coverage:.1%} of the surface points seen" if self.views else ""
        ended = f", ended {self.termination.reason.value}" if self.termination else ""
        return f"<Episode {self._title}: {len(self.views)} views{seen}{ended}>"

    @property
    def _title(self) -> str:
        return (
            f"{self.config.object} · {self.config.planner.label} · seed {self.config.sensor.seed}"
        )

    def frame(self) -> Any:
        """The views taken so far as a `pandas.DataFrame`: a row for each number, a column for each
        of its values.

        Raises:
            DependencyError: pandas is not installed.
        """
        with analysis_needed("frame() gives a DataFrame of pandas"):
            import pandas as pd
        frame = pd.DataFrame(map(asdict, self.views), columns=list(ViewColumn.__members__))
        return frame.set_index(ViewColumn.number.name)

    def plot(self) -> Any:
        """Draw the views taken so far: world, polar view, objective of the decisions, coverage.

        Returns:
            A `matplotlib.figure.Figure` that is not known to pyplot.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        with analysis_needed("plot() draws with matplotlib"):
            from nbv_planner.report.figures.episode_content import episode_frames
            from nbv_planner.report.figures.episode_figure import draw_figure
            from nbv_planner.report.figures.style import figure_style
        judge = self.judge
        ground = judge.space.ground
        frames = episode_frames(
            judge.steps,
            judge.views,
            judge.truth.shape,
            judge.truth.scene,
            self._title,
            ground,
            judge.regions,
        )
        with figure_style():
            return draw_figure(frames[-1])

    def _repr_png_(self) -> bytes | None:
        """The figure, for a notebook; None without matplotlib."""
        try:
            figure = self.plot()
        except DependencyError:
            return None
        from nbv_planner.report.figures.style import figure_style, png_bytes

        with figure_style():
            return png_bytes(figure)


_REGISTRIES = {
    group.kind: group
    for group in (PLANNER_PLUGINS, OBJECTIVE_PLUGINS, KERNEL_PLUGINS, OBJECT_PLUGINS)
}


def register(kind: str, name: str, cls: type) -> None:
    """Give a class of yours a name in this process, as the entry point of a package does everywhere
    (docs/extend.md).

    Args:
        kind: planner, objective, kernel or object.
        name: its name from now on; another class of yours with this name is replaced.
        cls: the class; its settings become settings of the episode.

    Raises:
        NbvPlannerError: there is no such kind, the name is taken, or the class cannot be used.
    """
    if kind not in _REGISTRIES:
        raise UnknownNameError("kind of plug-in", kind, _REGISTRIES)
    _REGISTRIES[kind].register(name, cls)


def simulate(
    object: str | PolarObject = EpisodeConfig.object,
    *,
    planner: str | None = None,
    seed: int = 0,
    **settings: Any,
) -> Episode:
    """Set up an episode in one process, without ROS; iterate over it to take its views.

    Args:
        object: the true object, as text, see :data:`nbv_planner.world.objects.OBJECT_FORMS`, or
            itself: anything with `radius(angle)` in metres.
        planner: its name; None is that of `nbv-planner simulate`: rollout, or greedy where an
            objective is given.
        seed: seed of the sensor noise.
        settings: any others by name, see :func:`nbv_planner.episode.parameters.configure`.

    Raises:
        NbvPlannerError: there is no such setting, or a value is not allowed; nothing has run then.
    """
    given = settings if planner is None else {**settings, "planner": planner}
    shape = None if isinstance(object, str) else object
    return Episode(configure(object=object_name(object), seed=seed, **given), shape)
