"""Episodes as a Gymnasium environment: an agent chooses the views; docs/how_to/gymnasium.md
describes it.

It registers `nbv_planner/Circle-v0` when it is imported; world, sensor and mapper are those of the
simulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.parameters import GROUPS, EpisodeConfig, configure
from nbv_planner.episode.records import FULL_ENOUGH, Step
from nbv_planner.errors import (
    DependencyError,
    SettingError,
    UnknownNameError,
    analysis_needed,
    install_hint,
)
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.settings import refuse_unknown
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.view.agent import AgentEpisode, EpisodeSetup, KnownObject
from nbv_planner.volume.grid import HIT, UNKNOWN
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects import OBJECT_SETS
from nbv_planner.world.objects.true_outlines import Outlines, true_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import check_proportions

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as missing:
    raise DependencyError(
        f"cannot import {missing.name}: an environment needs it ({install_hint('gym')})"
    ) from missing

REWARDS = ("points", "completeness", "time")
"""What a step is rewarded with: surface points or part of the outline that are new, or minus the
seconds it takes.
"""
DEFAULTS = {"robust": False, "checks": False, "accuracy": False, "grid_size": 360, "solver": "grid"}
"""Settings of the environment that differ from those of the package: the mapper in closed form, and
nothing beside.
"""
Observation = dict[str, Any]


class CircleEnv(gymnasium.Env[Observation, np.int64]):
    """Choose views on the view circle until enough of the object has been seen.

    An action is the index of one of N candidates. One that `info["action_mask"]` bars is a step of
    the episode that takes nothing: belief, camera and what has been seen stay, the reward is 0, or
    minus the dwell time.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        object: str | Sequence[str] = "polygon:star",
        reward: str = "points",
        target: float = FULL_ENOUGH,
        utility: str = "",
        settings: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up spaces and settings.

        Args:
            object: text of an object, name of a set, or several texts, of which each episode draws
                one.
            reward: one of :data:`REWARDS`.
            target: true coverage at which an episode terminates; with the reward `completeness`,
                true completeness.
            utility: id of an objective in closed form whose value at each candidate is observed;
                empty: none.
            settings: settings of an episode by name, as `--set` takes them; those left out are
                :data:`DEFAULTS` and what follows from the others.
            render_mode: `ansi` or `rgb_array`.

        Raises:
            NbvPlannerError: a value is not allowed.
        """
        if reward not in REWARDS:
            raise UnknownNameError("reward", reward, REWARDS)
        if utility and utility not in OBJECTIVES:
            raise UnknownNameError("utility", utility, OBJECTIVES)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UnknownNameError("render_mode", str(render_mode), self.metadata["render_modes"])
        if not 0.0 < target <= 1.0:
            raise SettingError(f"target: {target} must be > 0 and <= 1")
        self.objects = (
            OBJECT_SETS.get(object, (object,)) if isinstance(object, str) else tuple(object)
        )
        if not self.objects:
            raise SettingError("object: an empty list; must be one object or more")
        self.config = _of_objects(_config({**DEFAULTS, **(settings or {})}), self.objects)
        self.any_outline = self.config.surface_model == "volume"  #: whether beliefs are cells.
        if self.any_outline and utility:
            raise SettingError(
                f"utility: {utility} needs the radius over the polar angle, and an object that is"
                " not star-shaped, or surface_model volume, has none"
            )
        self.reward = reward
        self.target = target
        self.render_mode = render_mode
        self._utility_of, self._setup = utility, EpisodeSetup.of(self.config)
        self._episode: AgentEpisode | None = None
        self._reached = 0.0
        known = {
            **self._belief_spaces(),
            "camera": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "views": spaces.Box(0.0, self.max_views, (1,), np.float32),
        }
        number = len(self.views.candidates)
        if utility:
            known["utility"] = spaces.Box(0.0, np.finfo(np.float32).max, (number,), np.float32)
        self.observation_space: spaces.Dict = spaces.Dict(known)
        self.action_space = spaces.Discrete(number)

    def _belief_spaces(self) -> dict[str, spaces.Space[Any]]:
        """Spaces of what a belief is observed by."""
        if self.any_outline:
            shape = self._setup.blank.belief().cells.lattice.shape
            return {"cells": spaces.Box(UNKNOWN, HIT, shape, np.uint8)}
        # What lies behind the centre or beyond the view circle tells nothing: the object is inside
        # of that.
        band = spaces.Box(
            0.0, self.config.scene.view_distance, (self.config.mapper.grid_size,), np.float32
        )
        seen = spaces.Box(0.0, 1.0, band.shape, np.float32)
        return {"mean": band, "lower": band, "upper": band, "seen": seen}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; `options` may name the `object` and the `noise_seed` of the sensor in
        place of draws.

        Raises:
            NbvPlannerError: an option is not known, or the object is not allowed.
        """
        super().reset(seed=seed)
        given = options or {}
        for name in given.keys() - {"object", "noise_seed"}:
            raise UnknownNameError("option of reset", str(name), ("object", "noise_seed"))
        drawn = int(self.np_random.integers(len(self.objects)))
        noise = int(self.np_random.integers(2**31))
        object = given.get("object", self.objects[drawn])
        noise = int(given.get("noise_seed", noise))
        target = KnownObject.of(replace(self.config, object=object))
        self._episode = episode = AgentEpisode(self._setup, target, object, noise)
        self._reached = self._part(episode)
        shape: Any = target.judge.truth.shape
        true = (
            {"outlines": tuple(map(np.copy, shape.loops))}
            if self.any_outline
            else {"contour": shape.radius(episode.agent.belief.angle)}
        )
        return self._observation(episode), {**self._info(episode), **true}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take the view of an `action`.

        Raises:
            gymnasium.error.InvalidAction: it is no index of a candidate.
            gymnasium.error.ResetNeeded: there is no episode.
        """
        episode = self._begun("step")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"action {action!r}: must be an index from 0 to {len(episode.mask) - 1}"
            )
        before, spent = self._reached, episode.seconds
        episode.step(int(action))
        self._reached = self._part(episode)
        terminated = self._reached >= self.target
        truncated = not terminated and (episode.steps >= self.max_views or not episode.mask.any())
        reward = spent - episode.seconds if self.reward == "time" else self._reached - before
        return self._observation(episode), reward, terminated, truncated, self._info(episode)

    def _begun(self, what: str) -> AgentEpisode:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded(f"{what}: there is no episode yet; reset first")
        return self._episode

    @property
    def max_views(self) -> int:
        """Number of steps after which an episode is truncated."""
        return self.config.termination.max_views

    @property
    def views(self) -> ViewSpace:
        """The candidate views."""
        return self._setup.planner.views

    @property
    def belief(self) -> SurfaceBelief | VolumeSurface:
        """The belief as planners of the package take it, see docs/extend.md."""
        found: SurfaceBelief | VolumeSurface = self._begun("belief").agent.belief.as_transmitted()
        return found

    @property
    def visited(self) -> list[CameraPose]:
        """Views taken so far, first to last; the camera is at the last one."""
        return [view for view, _, _ in self._begun("visited").agent.taken]

    @property
    def current_view(self) -> CameraPose | None:
        """Where the camera is."""
        return self._begun("current_view").at

    def judged(self) -> EpisodeJudge:
        """The episode so far, judged against the true object as in a simulation; for evaluation
        only.
        """
        episode = self._begun("judged")
        blank = episode.target.judge
        before = self._setup.blank.belief().as_transmitted()
        judge = EpisodeJudge(blank.truth, blank.space, blank.start, blank.tau, self.config.planner)
        for view, belief, hits in episode.agent.taken:
            values = self._utility(before)
            value = float(values[self.views.nearest(view)])
            before = belief.as_transmitted()
            judge.add(Step(view, value, self.views.candidates, values, before, hits, 0.0))
        return judge

    def render(self) -> Any:
        """One line of the episode (`ansi`), or its picture, shape (height, width, 3)
        (`rgb_array`).
        """
        episode = self._begun("render")
        where = f"{math.degrees(episode.at.polar[0]):.1f}°" if episode.at else ""
        seen = f"{episode.new} new points, {episode.seen.mean():.1%} seen"
        line = f"{episode.object}: view {len(episode.agent.taken)} at {where}, {seen}"
        if self.render_mode != "rgb_array":
            return line if self.render_mode else None
        with analysis_needed("rgb_array draws with it"):
            from nbv_planner.report.figures.animation import pixels
            from nbv_planner.report.figures.episode_content import episode_frames
            from nbv_planner.report.figures.episode_figure import draw_figure
            from nbv_planner.report.figures.style import figure_style
        judge = self.judged()
        truth = episode.target.judge.truth
        with figure_style():
            return pixels(
                draw_figure(
                    episode_frames(judge.steps, judge.views, truth.shape, truth.scene, line)[-1]
                )
            )

    def _part(self, episode: AgentEpisode) -> float:
        """Part of the object that has been seen, or of its outline that has been measured."""
        return (
            episode.completeness() if self.reward == "completeness" else float(episode.seen.mean())
        )

    def _utility(self, belief: Any) -> FloatArray:
        """Values of the candidates; none are known of cells."""
        if self.any_outline:
            return np.zeros(len(self.views.candidates))
        objective = OBJECTIVES[self._utility_of or "U"]
        return objective.values(belief, self.config.scene, self.views.candidates.polar[:, 0])

    def _observation(self, episode: AgentEpisode) -> Observation:
        belief = episode.agent.belief
        angle = episode.at.polar[0] if episode.at else 0.0
        known: dict[str, Any] = {
            "camera": [math.sin(angle), math.cos(angle)],
            "views": [episode.steps],
        }
        if self.any_outline:
            known["cells"] = belief.cells.state.reshape(belief.cells.lattice.shape)
        else:
            for name in ("mean", "lower", "upper"):
                radius = getattr(belief, name)
                known[name] = np.clip(radius, 0.0, self.config.scene.view_distance)
            known["seen"] = belief.hits > 0
        if self._utility_of:
            known["utility"] = self._utility(self.belief)
        return {
            name: np.array(known[name], dtype=space.dtype)
            for name, space in self.observation_space.spaces.items()
        }

    def _info(self, episode: AgentEpisode) -> dict[str, Any]:
        """The mask of the actions; all else is the truth, for evaluation only."""
        measured = {"completeness": self._reached} if self.reward == "completeness" else {}
        return {
            "action_mask": episode.mask.astype(np.int8),
            "new_points": episode.new,
            "coverage": float(episode.seen.mean()),
            "seconds": episode.seconds,
            "object": episode.object,
            "noise_seed": episode.noise,
            **measured,
        }


def _config(given: Mapping[str, Any]) -> EpisodeConfig:
    """The configuration from settings by name, of an episode that the environment can run.

    Raises:
        SettingError: a name or value is not allowed.
    """
    refuse_unknown(given, GROUPS.values(), "settings")
    config = configure(**given)
    check_proportions(
        config.scene, config.kernel, config.measurement, config.planner, config.termination
    )
    for refused, words in (
        (config.search.unknown, "scene: must be known"),
        (not config.views.on_circle, "view_space: must be circle, without view_poses"),
        (config.ground.given, "ground_map, no_go_polygons, robot_radius: there is no ground"),
        (config.planner.look_every > 0.0, "look_every: must be 0"),
        (config.world.placed != (0.0, 0.0), "object_x, object_y: must be 0"),
        (config.checks.checks, "checks: must be false"),
        (config.accuracy.accuracy, "accuracy: must be false"),
        (config.termination.max_views < 1, "max_views: must be > 0"),
    ):
        if refused:
            raise SettingError(f"{words} in an environment")
    return config


def _of_objects(config: EpisodeConfig, objects: Sequence[str]) -> EpisodeConfig:
    """The same with the surface model that all these objects have: observations are of one kind.

    Raises:
        NbvPlannerError: an object is not allowed.
    """
    model = config.surface_model
    shapes = [true_object(object, config.scene, model) for object in objects]
    if model == "auto":
        some = any(isinstance(shape, Outlines) for shape in shapes)
        model = "volume" if some else "radius"
    return replace(config, search=replace(config.search, surface_model=model))


if "nbv_planner/Circle-v0" not in gymnasium.registry:
    gymnasium.register(id="nbv_planner/Circle-v0", entry_point=f"{__name__}:CircleEnv")
