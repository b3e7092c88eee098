"""Parts of the planner's node: planner and monitor by its parameters, and its journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from rclpy.parameter import Parameter

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import deciders_for, view_space
from nbv_planner.errors import SettingError, StateFileError
from nbv_planner.geometry import ORIGIN
from nbv_planner.planning.objectives import EXPECTED
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings, set_ground
from nbv_planner.planning.view_space.view_settings import LISTS
from nbv_planner.ros.core.node import BaseNode, error_text
from nbv_planner.ros.core.node_parameters import changed_settings, read_settings
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.session import facts
from nbv_planner.session.journal import from_records, to_record
from nbv_planner.session.state import EpisodeState, Target
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.regions import Regions
from nbv_planner.world.ground.occupancy_map import OccupancyMap
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.scale import adopted, at_estimate, rescaled
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import EstimatedScene, Scene, check_proportions

T = TypeVar("T")
_SOURCE = "not given, so taken from the mapper"
_BY_MEMBER = "a direction has several surfaces, or has one again"


class Deciders:
    """Builds planner and monitor by the node's parameters; the true object is not known to them."""

    listable: ClassVar[Sequence[str]] = LISTS
    """Parameters that list candidates."""

    def __init__(self, node: BaseNode) -> None:
        """Read the parameters."""
        self._node = node
        #: as declared, with what the mapper knows of the sensor.
        self.scene = read_settings(node, Scene)
        self.views = read_settings(node, ViewSpaceSettings)  #: settings of the candidates.
        self.prior = PriorSettings()  #: the mapper's.
        self._noise: dict[str, float] = {}  # as the mapper declares it, by its settings
        self.map: OccupancyMap | None = None  #: newest map of the ground.
        self._ground = read_settings(node, GroundSettings)
        #: whether a map of the ground is read from a file.
        self.shows_map = bool(self._ground.ground_map)
        self._cells = False  # whether surfaces are of cells

    def build(self, estimated: EstimatedScene | None = None) -> tuple[Planner, TerminationMonitor]:
        """Planner and monitor; where the scene was `found`, lengths are in proportion to what was.

        Raises:
            SettingError: a parameter is not allowed, or two do not go together.
        """
        node = self._node
        scene = self.scene if estimated is None else at_estimate(self.scene, estimated)
        check_proportions(self.scene, *self.in_proportion(None))
        settings, limits = self.in_proportion(estimated)
        try:
            views = view_space(self.views, scene, self._ground, estimated, self.map)
            scene = self.views.sight_in(scene)
            model = "auto" if settings.any_outline else "radius"
            return deciders_for(settings, limits, scene, views, self.prior.prior(), model)
        except SettingError as error:
            raise SettingError(f"{node.get_name()}: {error}") from error

    def check_regions(self, regions: Regions | None) -> None:
        """Warn of a region that holds nothing of the object, where the scene is known."""
        try:
            if regions is not None:
                regions.check(self.scene.radius_max, ORIGIN)
        except SettingError as error:
            self._node.get_logger().warning(f"{error}; with scene: unknown it may")

    def set_ground(self, views: ViewSpace) -> None:
        """Let a view space keep off what the newest map of the ground bars."""
        set_ground(views, self._ground, self.map)

    def in_proportion(
        self, estimated: EstimatedScene | None, changes: Sequence[Parameter] = ()
    ) -> tuple[PlannerSettings, TerminationSettings]:
        """Settings by the parameters, with `changes`; their lengths, of the declared scene, as in
        what was found.
        """
        scene = self.scene if estimated is None else at_estimate(self.scene, estimated)
        given = (
            changed_settings(read_settings(self._node, cls, self._noise), changes)
            for cls in (PlannerSettings, TerminationSettings)
        )
        planner, limits = (rescaled(one, self.scene, scene) for one in given)
        if self._cells and not planner.any_outline:
            planner = replace(planner, planner="greedy", objective=EXPECTED)
        return planner, limits

    def use_cells(self, cells: bool) -> None:
        """Choose by EMC while surfaces are of `cells`, where the planner needs the radius."""
        node = self._node
        core = node.core
        if cells == self._cells:
            return
        before = core.planner.settings.label
        self._cells = cells
        core.use(*self.build(core.episode.estimated_scene))
        label = core.planner.settings.label
        if label != before:
            node.get_logger().warning(f"{label} chooses in place of {before}: {_BY_MEMBER}")

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        """The candidates, where they are listed."""
        return {name: tuple(getattr(self.views, name)) for name in self.listable}

    def with_lists(self, lists: dict[str, tuple[float, ...]]) -> ViewSpaceSettings:
        """Settings with these lists, and no others."""
        return replace(self.views, **{name: tuple(lists.get(name, ())) for name in self.listable})

    def recentre(self, estimated: EstimatedScene | None) -> None:
        """Continue about the centre of what was found."""
        if estimated != self._node.core.episode.estimated_scene:
            self._node.core.recentre(estimated, *self.build(estimated))

    def use_prior(self) -> None:
        """Switch to the mapper's prior once a surface message contains it."""
        origin = self._node.core.episode.origin
        prior = (
            None
            if origin is None or origin.prior is None
            else from_mapping(PriorSettings, origin.prior)
        )
        if prior not in (None, self.prior):
            self.prior = prior
            self._node.core.use(*self.build(self._node.core.episode.estimated_scene))

    def use_views(self, views: ViewSpaceSettings) -> None:
        """Switch to other candidates, unless they are the same; an error changes nothing."""
        before = self.views
        self.views = views
        try:
            if views != before:
                self._node.core.use(
                    *self.build(self._node.core.episode.estimated_scene), new_views=True
                )
        except SettingError:
            self.views = before
            raise

    def use_sensor(self, sensor: Mapping[str, float], noise: RangeNoise) -> None:
        """Switch to what the mapper knows of the sensor, where it was not given here, and to its
        noise.
        """
        node = self._node
        before = self._noise
        self._noise = asdict(noise)
        words = ""
        try:
            self.scene, words = adopted(self.scene, node.not_given(sensor), _SOURCE)
        except SettingError as error:
            node.warn_now_and_then("sensor", f"left out, {_SOURCE}: {error}")
        if words:
            node.get_logger().info(words)
        if words or self._noise != before:
            node.core.use(*self.build(node.core.episode.estimated_scene))


class EpisodeJournal(JournalKeeper):
    """The journal of the planner's node: what has happened is in it before what follows from it is
    published.
    """

    restored = False
    """Whether a target has been resumed that is still to be sent."""

    def resume(self, records: list[Any]) -> None:
        """Resume from the records of the file."""
        self.go_on(from_records(records))

    def go_on(self, saved: tuple[EpisodeState, int]) -> None:
        """Continue an episode, given with the time at which it was saved; one that was saved by
        another clock changes nothing.
        """
        node = self._node
        episode, saved_at = saved
        deciders = node.deciders
        core = node.core
        now = node.now_ns()
        if 0 < now < saved_at:  # 0: no time of a simulation has been received yet
            raise StateFileError(
                "clock",
                f"it was saved {(saved_at - now) * 1e-9:.1f} s in the future: the clocks differ",
            )
        before = deciders.views
        estimated = core.episode.estimated_scene
        try:
            deciders.recentre(episode.estimated_scene)
            deciders.use_views(deciders.with_lists(episode.listed))
            core.resume(episode)
        except Exception:
            deciders.use_views(before)
            deciders.recentre(estimated)
            raise
        if (views := deciders.views) != before:
            node.set_parameters(
                [Parameter(name, value=list(getattr(views, name))) for name in deciders.listable]
            )
        deciders.use_prior()
        core.unchecked = (
            core.settings.wait_for_start and episode.started and node.operator.unchecked
        )
        self.restored = True

    def note_facts(self) -> bool:
        """Note what has happened in the core; a new episode begins a new file. Returns whether
        anything has happened.
        """
        core = self._node.core
        now = self._node.now_ns()
        if (lists := self._node.deciders.lists) != core.episode.listed:
            core.note(facts.Listed(lists))
        noted = list(core.facts)
        core.facts[:] = []
        begun = [number for number, fact in enumerate(noted) if isinstance(fact, facts.Begun)]
        self.note(
            [to_record(fact, now) for fact in noted[begun[-1] if begun else 0 :]],
            rewrite=bool(begun),
        )
        return bool(noted)

    def keep(self, target: Target | None, publish: Callable[[Target | None], None]) -> None:
        """Save what has happened, then `publish` what follows from it, and a `target`, if any."""
        due = self.note_facts() or target is not None
        if self.path and due:
            self.submit(partial(publish, target))
        elif not self.pending:
            publish(target)

    def end(self) -> None:
        """Write what has not been written."""
        try:
            self.note_facts()
        except Exception as error:  # of the program; it must not keep the node from ending
            self._node.get_logger().error(error_text(error))
        self.close()


def caught(compute: Callable[[], T]) -> T | Exception:
    """Compute; an error is returned, so that the node can report it and keep running."""
    try:
        return compute()
    except Exception as error:
        return error
