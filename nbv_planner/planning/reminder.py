"""When the goal under way is said again, because somebody may not have heard it."""

from __future__ import annotations


class GoalReminder:
    """Watches who listens to the goals.

    Goals are not kept for subscribers that come late, since a goal of yesterday must move nobody. So a mapper or a
    camera that has been started again knows no goal until the planner, which still waits for the view, repeats it. Its
    stamp stays the same: to whoever knows it already it is no new view.
    """

    def __init__(self) -> None:
        """Nobody listens yet."""
        self._subscribers = 0
        self._goal: int | None = None
        self._said = 0

    def due(self, goal: int | None, subscribers: int, waits_too_long: bool, now: int, period: int) -> bool:
        """Whether to say the goal again; to be asked again and again.

        Args:
            goal: stamp of the goal under way, or None.
            subscribers: number of subscribers of the goals.
            waits_too_long: whether what follows the goal has not come for too long.
            now: time, nanoseconds.
            period: least time between two reminders of somebody who listens already, nanoseconds.
        """
        joined = subscribers > self._subscribers
        self._subscribers = subscribers
        if goal != self._goal:
            self._goal, self._said = goal, now
        late = waits_too_long and now - self._said > period
        if goal is None or not (joined or late):
            return False
        self._said = now
        return True
