"""The closed loop without ROS: one episode in one process, in the thesis or the sensor protocol."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.episode.judge import EpisodeJudge, truth_of
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.records import EpisodeRecord, Step, ViewRecord
from nbv_planner.episode.wiring import deciders, planner_core, scan_mapping, view_space
from nbv_planner.errors import SettingError
from nbv_planner.geometry import cartesian_to_polar
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.searching_mapping import SearchingMapping
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.motion import with_looks
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.session import events
from nbv_planner.session.facts import ScansReceived
from nbv_planner.session.loop import views
from nbv_planner.session.questions import Answer, EndQuestion, Question, Verdict
from nbv_planner.session.state import Goal
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.robust_fit import RobustSettings
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.thesis import TrueSurface, protocol
from nbv_planner.world.objects import (
    PolarObject,
    bisected_surface_points,
    surface_points,
)
from nbv_planner.world.objects.true_outlines import Outlines, true_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import EstimatedScene, check_proportions
from nbv_planner.world.simulated_camera import SimulatedCamera

_NOT_ENDED = Termination(TerminationReason.STOPPED, {}, "not ended yet: more views may be taken")
_Views = Generator[ViewRecord, None, Termination]


@dataclass(eq=False)
class Simulation:
    """An episode whose views are taken one by one, on request."""

    config: EpisodeConfig  #: the configuration it was built from.
    shape: PolarObject | None = None  #: the true object; None takes that of the configuration.
    #: keeps the steps and judges them against the true object.
    judge: EpisodeJudge = dataclasses.field(init=False)
    mapper: Any = dataclasses.field(init=False)  #: the surface model of the member in use.
    #: coverage by the posterior shapes after the newest view; None without `certify`.
    estimate: CoverageEstimate | None = dataclasses.field(init=False, default=None)
    #: why it ended, None before; FAILED after an error.
    termination: Termination | None = dataclasses.field(init=False, default=None)

    def __post_init__(self) -> None:
        """Build object, mapper and planner.

        Raises:
            NbvPlannerError: the configuration does not fit; nothing has run then.
        """
        config = self.config
        scene = self.config.scene
        thesis = config.protocol == "thesis"
        if thesis:
            protocol.check(
                config.ground,
                config.world,
                config.matching.scans_per_view,
                unknown=config.search.unknown,
            )
        else:
            check_proportions(
                scene, config.kernel, config.measurement, config.planner, config.termination
            )
        views = (
            protocol.candidates(config.views, scene)
            if thesis
            else view_space(config.views, scene, config.ground)
        )
        truth = self._true_object(views)
        shape = truth.shape
        tau = config.planner.completeness_tau
        self._start = None if thesis else config.motion.start(scene.view_distance)
        settings = thesis_planner_settings(config) if thesis else config.planner
        regions = config.regions
        self.judge = EpisodeJudge(truth, views, self._start, tau, settings, regions)
        self._by_points = settings.target == "points"
        sight = shape.visible if isinstance(shape, Outlines) else None
        if self._by_points:
            self._truth = TrueSurface(truth.points.angle, truth.points.radius, sight=sight)
        else:
            outline = cartesian_to_polar(*self.judge.outline.points.T)
            points = self.judge.outline.points
            weight = None if regions is None else regions.weights(points)
            self._truth = TrueSurface(*outline, tau, weight, sight)
        planner, monitor = deciders(
            dataclasses.replace(config, planner=settings), views, self._truth
        )
        if thesis and planner.takes_scans:
            raise SettingError(
                f"planner {settings.planner}: takes scans itself, and the thesis protocol has none"
            )
        self.core = planner_core(planner, monitor)  #: the planner's side.
        #: poses in the object frame at which scans had not hit anything yet.
        self.approaches = list[CameraPose]()
        # the published runs depend on ties that rounding decides, so they keep the dense solution
        if thesis:
            dense = dataclasses.replace(config.mapper, solver="dense")
            config = dataclasses.replace(config, mapper=dense, robust=RobustSettings(robust=False))
        self._mapping = scan_mapping(config, protocol.grid() if thesis else None)
        self.mapper = self._mapping.model
        self._camera = SimulatedCamera(shape, scene, config.sensor, config.world)
        # All that is known between two views is kept, so that a copy in another process goes on
        # with the next one.
        self._now = 0
        self._began = time.perf_counter_ns()
        if not thesis:
            self._recentre()
            self.core.inputs.pose, self._newest = self._start, self.belief
            events.take_surface(self.core, self._newest, 0)
        self._to_come: Iterator[ViewRecord] = self._run()

    def _true_object(self, views: ViewSpace) -> Any:
        """The true object, as a judge asks for it."""
        config = self.config
        scene = self.config.scene
        given = self.shape or self.config.object
        shape = true_object(given, scene, config.surface_model)
        points = bisected_surface_points if config.protocol == "thesis" else surface_points
        truth = truth_of(shape, points(shape, scene.pixel_size), scene, views.candidates)
        if not len(truth):
            raise SettingError(f"object {given}: no candidate view sees any of it (range_max)")
        return truth

    def __getstate__(self) -> dict[str, Any]:
        """What :meth:`_run` goes on from; itself it cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_to_come"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._began = time.perf_counter_ns() - self._now
        self._to_come = iter(()) if self.termination else self._run()

    def run(self) -> Iterator[ViewRecord]:
        """Yield each view from the first on; one that has not been taken is taken when it is asked
        for.
        """
        number = 0
        while number < len(self.views) or next(self._to_come, None):
            yield self.views[number]
            number += 1

    def finish(self) -> EpisodeRecord:
        """Take all views that are left; returns the result."""
        for _ in self._to_come:
            pass
        return self.result

    @property
    def planner(self) -> Planner:
        """Chooses the views; a study may put another one in its place before the run."""
        return self.core.planner

    @planner.setter
    def planner(self, planner: Planner) -> None:
        self.core.planner = planner

    @property
    def views(self) -> Sequence[ViewRecord]:
        """The views taken so far, judged against the true object."""
        return self.judge.views

    @property
    def steps(self) -> Sequence[Step]:
        """The same views as they were taken: decision, measurements, belief."""
        return self.judge.steps

    @property
    def belief(self) -> SurfaceBelief:
        """The newest belief, in the precision that the protocol passes on."""
        steps = self.judge.steps
        belief: SurfaceBelief = steps[-1].belief if steps else self._mapping.model.belief()
        return belief if steps or self.config.protocol == "thesis" else belief.as_transmitted()

    @property
    def truth(self) -> PolarObject:
        """The true object."""
        return self.judge.truth.shape

    @property
    def result(self) -> EpisodeRecord:
        """What is kept of the episode so far; its termination is STOPPED as long as there is
        none.
        """
        config = self.config
        ended = self.termination or _NOT_ENDED
        return self.judge.record(config.as_dict(), config.sensor.seed, ended, **config.packages)

    def _run(self) -> Iterator[ViewRecord]:
        """Take all views that are left, then say why the episode ended."""
        try:
            if self.views:  # of a copy that was made behind the newest one
                self.termination = self._covered(self.views[-1]) or self.core.episode.termination
            if self.termination:
                return
            for record in self._by_protocol():
                yield record
                self.termination = self._covered(record)
                if self.termination:
                    return
        # in the middle of a view, which cannot be resumed
        except (Exception, KeyboardInterrupt) as error:
            self.termination = Termination(
                TerminationReason.FAILED, {}, f"{type(error).__name__}: {error}"
            )
            raise

    def _by_protocol(self) -> Iterator[ViewRecord]:
        self.termination = yield from (
            self._thesis() if self.config.protocol == "thesis" else self._sensor()
        )

    def _covered(self, record: ViewRecord) -> Termination | None:
        """The end of the episode if coverage and completeness have reached the values that are
        enough, if any are.
        """
        coverage = self.config.stop_at_coverage
        completeness = self.config.stop_at_completeness
        reached = record.completeness if self.judge.regions is None else record.weighted
        enough = record.coverage >= coverage and reached >= completeness
        if (
            not enough
            or coverage == completeness == 0.0
            or len(self.views) < self.config.stop_after_views
        ):
            return None
        figures = {"coverage": record.coverage}
        more = ""
        if completeness:
            figures["completeness"] = reached
            more = f", completeness {reached:.1%}"
        detail = f"{record.coverage:.1%} of the surface points have been seen{more}"
        return Termination(TerminationReason.COMPLETE, figures, detail)

    def _thesis(self) -> _Views:
        """Observe the surface points themselves, without noise, until nothing new is seen."""
        config = self.config
        taken = protocol.observe_views(
            self.planner,
            self.mapper,
            self.judge.truth.points,
            config.scene,
            config.measurement.noise_std,
            self.judge,
            self._visited,
        )
        while True:
            self._inform()
            try:
                one = next(taken)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            decision = one.decision
            yield self.judge.add(
                Step(
                    decision.view,
                    decision.utility,
                    decision.candidates,
                    decision.utilities,
                    one.belief,
                    one.hits,
                    one.milliseconds,
                )
            )

    def _inform(self) -> None:
        """Tell an objective that knows the object what of it has been seen."""
        self._truth.seen = self.judge.seen if self._by_points else self.judge.complete

    def _sensor(self) -> _Views:
        """Cast noisy beams and stop as a robot does, without use of the true object."""
        for goal in views(self.core, self, self._choose):
            self.core.facts.clear()  # nobody keeps a journal
            self.estimate = self.core.episode.estimate
            yield self._take(goal)
        ended = self.core.episode.termination
        assert ended is not None
        return ended

    def _choose(self, question: Question | EndQuestion) -> Answer | Verdict:
        """Let planner and monitor answer; what counts is the time of this process."""
        self._inform()
        started = time.process_time()
        answer = question.decide()
        if isinstance(answer, Verdict):
            return answer
        return dataclasses.replace(answer, milliseconds=1e3 * (time.process_time() - started))

    def now(self) -> int:
        """Nanoseconds since the episode began, also in a copy in another process."""
        self._now = max(self._now + 2, time.perf_counter_ns() - self._began)
        return self._now

    def scan(self, goal: Goal) -> list[MatchedScan]:
        """Look at the goal, and on the way there."""
        core, config = self.core, self.config
        between = self._on_the_way(core.inputs.pose, goal.pose)
        self._passed = tuple(map(self._from_truth, between))
        dwelt = [self.look(goal.pose, number) for number in range(config.matching.scans_per_view)]
        scans = [self.look(view, number) for number, view in enumerate(between, start=len(dwelt))]
        if self.planner.takes_scans:
            core.note(ScansReceived(tuple((one.scan, one.pose) for one in (*scans, dwelt[0]))))
        return [*scans, *dwelt]

    def map(self, scans: Sequence[MatchedScan]) -> SurfaceBelief:
        """Map scans, and give the planner the scene that they show."""
        self._measured = self._mapping.add(scans, scans[-1].view - 1).hits
        self._recentre(scans[-1].pose)
        self._newest = self._mapping.belief().as_transmitted()
        return self._newest

    @property
    def poses(self) -> list[CameraPose]:
        """Where the camera has been in an unknown scene, approaches first, in the object frame."""
        visited = () if self.estimated_scene is None else self.core.episode.visited
        return [*self.approaches, *visited]

    @property
    def estimated_scene(self) -> EstimatedScene | None:
        """What was found of an unknown scene; None where it is known."""
        return self.core.episode.estimated_scene

    def _visited(self) -> list[CameraPose]:
        """Views taken."""
        return (
            [step.view for step in self.judge.steps]
            if self._start is None
            else list(self.core.episode.visited)
        )

    def _recentre(self, taken: CameraPose | None = None) -> None:
        """Recentre the planner at the object that the mapping has found with the last scan; a scan
        without a hit was an approach.
        """
        if not isinstance(self._mapping, SearchingMapping):
            return
        estimated = self._mapping.estimated_scene
        if taken is not None and not estimated.views:
            self.approaches.append(taken)
        if estimated != self.estimated_scene:
            here = self.config.at(estimated)
            views = view_space(here.views, here.scene, here.ground, estimated)
            self.core.recentre(estimated, *deciders(here, views))
            self.mapper = self._mapping.model

    def _on_the_way(self, start: CameraPose | None, end: CameraPose) -> list[CameraPose]:
        """Views on the trip to a view at which the camera looks, too."""
        every = self.config.planner.look_every
        return [] if start is None else with_looks(self.planner.views, [start, end], every)[1:-1]

    def _from_truth(self, pose: CameraPose) -> CameraPose:
        """A pose in the object frame, as seen from the true centre."""
        return pose.relative_to(*self.config.world.placed)

    def look(self, goal: CameraPose, scan_number: int = 0) -> MatchedScan:
        """Take a scan of the next view at its goal, or one on the way: all that comes from the
        world outside.
        """
        number = len(self.judge.steps) + len(self.approaches) + 1
        return MatchedScan(number, self._camera.scan(goal, number, scan_number), goal, view=number)

    def _take(self, goal: Goal) -> ViewRecord:
        """Judge the step of a goal, which is as seen from the true centre."""
        decision = goal.decision
        belief = self._newest.seen_from(*self.config.world.placed)
        return self.judge.add(
            Step(
                self._from_truth(goal.pose),
                decision.utility,
                decision.candidates,
                decision.utilities,
                belief,
                self._measured.moved(*belief.centre),
                goal.planning_milliseconds,
                self._passed,
            )
        )


def thesis_planner_settings(config: EpisodeConfig) -> PlannerSettings:
    """The planner's settings of an episode in the thesis protocol."""
    planner = config.planner
    return protocol.planner_settings(
        planner, config.views, config.thesis_tie_tolerance, draws_shapes=planner.draws_shapes
    )
