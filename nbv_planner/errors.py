"""Errors raised by the package: one base class, one class per cause."""

from __future__ import annotations


class NbvPlannerError(Exception):
    """Base class of every error that this package raises on purpose.

    The message is one line and says what was wrong, where, and what is allowed.
    """


class SettingError(NbvPlannerError, ValueError):
    """A setting has the wrong type, is out of range, or is not known."""


class UnknownNameError(NbvPlannerError, ValueError):
    """A name (of an object, an objective, a planner, ...) is not in its registry."""

    def __init__(self, kind: str, name: object, known: object) -> None:
        """Say which `kind` of thing `name` is not, and list the `known` names."""
        names = ", ".join(sorted(str(k) for k in known))  # type: ignore[attr-defined]
        super().__init__(f"unknown {kind} {name!r}; known: {names}")


class ContourError(NbvPlannerError, ValueError):
    """A contour is not a star-shaped closed curve inside the radius bounds."""


class MeasurementError(NbvPlannerError, ValueError):
    """Measurements given to the surface model are not finite or do not match in size."""


class InputRejectedError(NbvPlannerError, ValueError):
    """A whole message (scan, pose, surface) cannot be used.

    Attributes:
        reason: short fixed word to count it under.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Give the word to count it under, and what was wrong."""
        super().__init__(detail)
        self.reason = reason


class ConfigFileError(NbvPlannerError, ValueError):
    """A configuration file cannot be read or holds something that is not allowed."""


class ResultsError(NbvPlannerError, OSError):
    """A results folder or file cannot be written or read, or exists and must not be replaced."""


class RosUnavailableError(NbvPlannerError, RuntimeError):
    """A ROS package that the command needs cannot be imported, or is the wrong one."""


class DomainTakenError(NbvPlannerError, RuntimeError):
    """Somebody else's nodes are on the ROS domain that was chosen."""


class DependencyError(NbvPlannerError, RuntimeError):
    """A library that the command needs is missing or too old."""


class BackEndError(NbvPlannerError, RuntimeError):
    """What runs the cases of a sweep broke down: a worker process was killed, a scheduler is out of reach."""


class BagError(NbvPlannerError, OSError):
    """A bag cannot be read or written, or does not hold what the command needs."""


class StateFileError(NbvPlannerError, ValueError):
    """A state file cannot be written, or cannot be gone on from.

    Attributes:
        reason: short fixed word to count it under.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Give the word to count it under, and what was wrong."""
        super().__init__(detail)
        self.reason = reason
