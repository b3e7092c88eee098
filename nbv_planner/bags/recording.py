"""What a bag says about an episode."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from nbv_planner.bags.bag import Inventory
from nbv_planner.bags.ground_truth import Contour
from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.bags.topics import TopicMap
from nbv_planner.camera import CameraPose
from nbv_planner.errors import SettingError
from nbv_planner.evaluation.assembly import EpisodeAssembly
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.planning.termination import Termination


@dataclass
class Recording:
    """What a bag says about an episode.

    Attributes:
        inventory: what the bag holds.
        topics: which topic is which.
        remarks: what was wrong or not as expected, with the number of times.
        assembly: the views.
        parameters: parameters of the nodes, None if not recorded.
        contour: points of the true surface, None if not recorded.
        surface_stamps: stamps of the recorded surfaces, nanoseconds.
        goals: goals in the order sent, for a bag without iterations.
        states: changes of the planner's state: time of arrival (nanoseconds) and state.
        termination: why the episode ended, None if the recording ends before.
        diagnostics: newest values of each node on /diagnostics.
        first_pose: first camera pose of the episode, None without one.
        path: length of the way from each recorded camera pose of the episode to the next, metres.
        episode: number of the episode that all this is about, from 1.
        episodes: number of episodes in the bag; every reset of the planner begins one.
        earlier: decisions of the episodes before.
    """

    inventory: Inventory
    topics: TopicMap
    remarks: Counter[str] = field(default_factory=Counter)
    assembly: EpisodeAssembly = field(default_factory=EpisodeAssembly)
    parameters: RunParameters | None = None
    contour: Contour | None = None
    surface_stamps: list[int] = field(default_factory=list)
    goals: list[RecordedDecision] = field(default_factory=list)
    states: list[tuple[int, str]] = field(default_factory=list)
    termination: Termination | None = None
    diagnostics: dict[str, dict[str, str]] = field(default_factory=dict)
    first_pose: CameraPose | None = None
    path: float = 0.0
    episode: int = 1
    episodes: int = 1
    earlier: tuple[RecordedDecision, ...] = ()

    def camera(self, recorded: CameraPose) -> CameraPose:
        """Pose of the camera where a pose or a goal is that of what carries it; as it is where nobody says so."""
        with suppress(SettingError):
            return recorded if self.parameters is None else self.parameters.poses.camera(recorded)
        return recorded
