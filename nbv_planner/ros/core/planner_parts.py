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
    kinds: ClassVar[tuple[type, type, type]] = (Scene, ViewSpaceSettings, PlannerSettings)
    """Settings of scene, candidates and planner."""

    def __init__(self, node: BaseNode) -> None:
        """Read the parameters."""
        self._node = node
        #: as declared, with what the mapper knows of the sensor.
        self.scene = read_settings(node, self.kinds[0])
        self.views = read_settings(node, self.kinds[1])  #: settings of the candidates.
        self.prior = PriorSettings()  #: the mapper's.
        self.noise: dict[str, float] = {}  #: as the mapper declares it, by its settings.
        self.map: OccupancyMap | None = None  #: newest map of the ground.
        self._ground = read_settings(node, GroundSettings)
        #: whether a map of the ground is read from a file.
        self.shows_map = bool(self._ground.ground_map)
        self.cells = False  #: whether surfaces are of cells.

    def build(self, estimated: EstimatedScene | None = None) -> tuple[Planner, TerminationMonitor]:
        """Planner and monitor; lengths are in proportion to the scene that was `estimated`, if any.

        Raises:
            SettingError: a parameter is not allowed, or two do not go together.
        """
        settings, limits = self.in_proportion(estimated)
        try:
            return self.made(settings, limits, estimated)
        except SettingError as error:
            raise SettingError(f"{self._node.get_name()}: {error}") from error

    def made(
        self,
        settings: PlannerSettings,
        limits: TerminationSettings,
        estimated: EstimatedScene | None,
    ) -> tuple[Planner, TerminationMonitor]:
        """Planner and monitor with these settings."""
        check_proportions(self.scene, *self.in_proportion(None))
        scene = self.scene if estimated is None else at_estimate(self.scene, estimated)
        views = view_space(self.views, scene, self._ground, estimated, self.map)
        model = "auto" if settings.any_outline else "radius"
        sight = self.views.sight_in(scene)
        return deciders_for(settings, limits, sight, views, self.prior.prior(), model)

    def use(self, **parts: Any) -> None:
        """Have other parts, by the names of their attributes, unless they are the same; an error
        changes nothing.
        """
        before = {name: getattr(self, name) for name in parts}
        if parts == before:
            return
        vars(self).update(parts)
        core = self._node.core
        try:
            core.use(*self.build(core.episode.estimated_scene), new_views="views" in parts)
        except SettingError:
            vars(self).update(before)
            raise

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
        planner, limits = (
            changed_settings(read_settings(self._node, cls, self.noise), changes)
            for cls in (self.kinds[2], TerminationSettings)
        )
        if estimated is not None:
            scene = at_estimate(self.scene, estimated)
            planner, limits = (rescaled(one, self.scene, scene) for one in (planner, limits))
        if self.cells and not planner.any_outline:
            planner = replace(planner, planner="greedy", objective=EXPECTED)
        return planner, limits

    def use_cells(self, cells: bool) -> None:
        """Choose by EMC while surfaces are of `cells`, where the planner needs the radius."""
        core = self._node.core
        before = core.planner.settings.label
        self.use(cells=cells)
        label = core.planner.settings.label
        if label != before:
            words = f"{label} chooses in place of {before}: {_BY_MEMBER}"
            self._node.get_logger().warning(words)

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
        if origin is not None and origin.prior is not None:
            self.use(prior=from_mapping(PriorSettings, origin.prior))

    def use_sensor(self, sensor: Mapping[str, float], noise: RangeNoise) -> None:
        """Switch to what the mapper knows of the sensor, where it was not given here, and to its
        noise.
        """
        node, scene, words = self._node, self.scene, ""
        try:
            found = {name: value for name, value in sensor.items() if name not in node.given}
            scene, words = adopted(scene, found, _SOURCE)
        except SettingError as error:
            node.warn_now_and_then("sensor", f"left out, {_SOURCE}: {error}")
        if words:
            node.get_logger().info(words)
        self.use(scene=scene, noise=asdict(noise))


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
            deciders.use(views=deciders.with_lists(episode.listed))
            core.resume(episode)
        except Exception:
            deciders.use(views=before)
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
