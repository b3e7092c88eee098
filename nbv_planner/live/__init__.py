"""An episode while it happens, put together from what arrives: no ROS, no drawing."""

from nbv_planner.live.episode import LiveEpisode
from nbv_planner.live.values import CandidateValues, LiveDecision, LiveStatus, LiveView

__all__ = ["CandidateValues", "LiveDecision", "LiveEpisode", "LiveStatus", "LiveView"]
