"""The agent that takes the place of the planner in the loop, and the world around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from nbv_planner.episode.judge import EpisodeJudge, PointErrors, truth_of
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.wiring import deciders, planner_core, scan_mapping, view_space
from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.searching_mapping import ViewMapping
from nbv_planner.planning.motion import trip_time
from nbv_planner.planning.objectives import EXPECTED
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.termination import TerminationMonitor
from nbv_planner.session import events
from nbv_planner.session.loop import views
from nbv_planner.session.questions import Answer, EndQuestion, Question, Verdict
from nbv_planner.session.state import Goal
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import surface_points
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.simulated_camera import SimulatedCamera

# Objects whose scans are kept, the 100 of a set and some more: 5 MB each once seen from 100 views.
_KEPT = 128


@dataclass(frozen=True, eq=False)
class KnownObject:
    """An object, and what does not change from one episode to the next."""

    camera: SimulatedCamera
    judge: EpisodeJudge  #: has seen nothing.
    visible: BoolArray  #: which candidate sees which surface point, shape (V, P).

    @staticmethod
    @lru_cache(maxsize=_KEPT)
    def of(config: EpisodeConfig) -> KnownObject:
        """Prepare the object of a configuration; environments of one process share it."""
        scene, planner = config.scene, config.planner
        shape = true_object(config.object, scene, config.surface_model)
        points = surface_points(shape, scene.pixel_size)
        space = view_space(config.views, scene, config.ground)
        start = config.motion.start(scene.view_distance)
        truth = truth_of(shape, points, scene, space.candidates)
        if not len(truth):
            raise SettingError(f"object {config.object}: no candidate view sees any of it")
        tau = planner.completeness_tau
        judge = EpisodeJudge(truth, space, start, tau, planner, config.regions)
        camera = SimulatedCamera(shape, scene, config.sensor, config.world)
        return KnownObject(camera, judge, truth.visible(space.candidates))


@dataclass(frozen=True, eq=False)
class EpisodeSetup:
    """What episodes have in common besides the object."""

    config: EpisodeConfig
    planner: Planner  #: knows the candidate views; the agent chooses in its place.
    monitor: TerminationMonitor  #: is never asked: the environment ends the episode.
    blank: ViewMapping  #: has no scan.
    allowed: BoolArray  #: which candidates may be taken at all, shape (V,).
    apart: BoolArray  #: which candidates may be taken after which, shape (V, V).

    @classmethod
    def of(cls, config: EpisodeConfig) -> EpisodeSetup:
        """Build it by the configuration."""
        views = view_space(config.views, config.scene, config.ground)
        objective = EXPECTED if config.surface_model == "volume" else "U"
        plain = replace(config.planner, planner="greedy", objective=objective)
        ends = replace(config.termination, certify=False)
        planner, monitor = deciders(replace(config, planner=plain, termination=ends), views)
        candidates = views.candidates
        around = config.planner.revisit_radius
        apart = np.array(
            [views.apart(candidates, [candidates[i]], around) for i in range(len(candidates))]
        )
        return cls(config, planner, monitor, scan_mapping(config), views.excluded(0.0) == 0, apart)


class Agent:
    """Takes the place of the planner in the loop, and is the world around it: camera and mapper."""

    def __init__(
        self, setup: EpisodeSetup, camera: SimulatedCamera, start: CameraPose | None
    ) -> None:
        """Begin an episode."""
        self._setup = setup
        self._camera = camera
        self._mapping = setup.blank.copy()
        self._action, self._now = 0, 0
        self.belief: Any = self._mapping.belief()  #: the newest one.
        #: views, the belief after each, and its hits.
        self.taken = list[tuple[CameraPose, Any, Hits]]()
        self._core = planner_core(setup.planner, setup.monitor)
        self._core.inputs.pose = start
        events.take_surface(self._core, self.belief, 0)

    def take(self, action: int) -> CameraPose:
        """Have the loop take the view of an action."""
        self._action = action
        pose = next(views(self._core, self, self._choose)).pose
        self._core.facts.clear()  # nobody keeps a journal
        return pose

    def now(self) -> int:
        """A clock that goes on with each call."""
        self._now += 2
        return self._now

    def scan(self, goal: Goal) -> list[MatchedScan]:
        """Look at the goal."""
        number = len(self.taken) + 1
        return [
            MatchedScan(number, self._camera.scan(goal.pose, number, scan), goal.pose, view=number)
            for scan in range(self._setup.config.matching.scans_per_view)
        ]

    def map(self, scans: Sequence[MatchedScan]) -> Any:
        """Map the scans of a view."""
        hits = self._mapping.add(scans, len(self.taken)).hits
        self.belief = self._mapping.belief()
        self.taken.append((scans[0].pose, self.belief, hits))
        return self.belief

    def _choose(self, question: Question | EndQuestion) -> Answer | Verdict:
        """The view of the action; the episode does not end by itself."""
        if isinstance(question, EndQuestion):
            return Verdict(math.nan, False, None, None, None)
        candidates = question.planner.views.candidates
        nothing = np.zeros(len(candidates))
        return Answer(
            Decision(
                candidates[self._action],
                0.0,
                0.0,
                math.nan,
                math.nan,
                candidates,
                nothing,
                nothing,
                nothing.astype(np.uint8),
                "agent",
            ),
            0.0,
        )


class AgentEpisode:
    """Observations and rewards of an agent."""

    def __init__(self, setup: EpisodeSetup, target: KnownObject, object: str, noise: int) -> None:
        """Begin with an object, and the noise of a seed."""
        self.setup = setup
        self.target = target
        self.object = object
        self.noise = noise
        self.at = target.judge.start  #: where the camera is.
        self.agent = Agent(setup, target.camera.with_seed(noise), self.at)
        self.mask = setup.allowed.copy()
        self.seen = np.zeros(target.visible.shape[1], dtype=bool)
        self.steps, self.seconds, self.new = 0, 0.0, 0

    def step(self, action: int) -> None:
        """Drive to a candidate and look, or lose time at one that is barred."""
        self.steps = self.steps + 1
        self.new = 0
        if not self.mask[action]:
            self.seconds += self.setup.config.planner.dwell_time
            return
        before = self.at
        self.at = self.agent.take(action)
        seen = self.seen | self.target.visible[action]
        self.new = int(seen.sum() - self.seen.sum())
        self.seen = seen
        pace = self.setup.config.planner
        self.seconds += float(
            trip_time(self.setup.planner.views, before, Poses.of([self.at]), pace)[0]
        )
        self.mask &= self.setup.apart[action]

    def completeness(self) -> float:
        """Part of the outline that has been measured."""
        judge = self.target.judge
        measured = judge.truth.measured(self.agent.belief.as_transmitted(), judge.tau)
        return PointErrors.of(measured, judge.outline, judge.tau).completeness
