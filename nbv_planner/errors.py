"""Errors raised by the package: one base class, one class per cause."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """End of a message about a `name` that is not `known`: the most similar known name, empty if
    none is similar.
    """
    spelled = {other.lower(): other for other in known}
    close = difflib.get_close_matches(str(name)[:_SHOWN].lower(), spelled, n=1)
    return f"; did you mean {spelled[close[0]]}?" if close else ""


def or_of_a_package(kind: str) -> str:
    """Continues a list of known names where packages may register more of this `kind`; empty for
    other kinds.
    """
    registered = kind in ("planner", "objective", "kernel", "object")
    return (
        f", or of a package that is not installed (entry points nbv_planner.{kind}s)"
        if registered
        else ""
    )


_SHOWN, _LONGEST = 200, 5000
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _SHOWN
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = 20


def cut(text: str, most: int = _SHOWN) -> str:
    """A text of at most `most` characters, else both its ends."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def shown(value: object) -> str:
    """A value as messages show it: as Python writes it, of more than some 200 characters both
    ends.
    """
    try:
        return cut(_REPR.repr(value))
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"a {type(value).__name__} of too many digits"


class NbvPlannerError(Exception):
    """Base class of every error that this package raises on purpose.

    The message is one line and states what was wrong, where, and what is allowed; values are as
    :func:`shown`, and of a message of more than some thousand characters both ends are left.
    """

    def __str__(self) -> str:
        return cut(super().__str__(), _LONGEST)


def reason(error: Exception) -> str:
    """Why something could not be read or written, in one line and without Python's words."""
    said = getattr(error, "strerror", None) or " ".join(str(error).split())
    return "it is not a text in UTF-8" if isinstance(error, UnicodeDecodeError) else said


class SettingError(NbvPlannerError, ValueError):
    """A setting has the wrong type, is out of range, or is not known."""


class PluginError(NbvPlannerError, RuntimeError):
    """What another package registered as a plug-in has failed, or has returned what is not
    allowed.
    """


class UnknownNameError(NbvPlannerError, ValueError):
    """A name (of an object, an objective, a planner, ...) is not in its registry."""

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        """Say which `kind` of thing `name` is not, list the `known` names, and suggest one of
        them.
        """
        names = sorted(str(k) for k in known)
        known = f"{', '.join(names)}{or_of_a_package(kind)}{did_you_mean(name, names)}"
        super().__init__(f"unknown {kind} {shown(name)}; known: {known}")


class ContourError(NbvPlannerError, ValueError):
    """A contour is not a star-shaped closed curve inside the radius bounds."""


class MeasurementError(NbvPlannerError, ValueError):
    """Measurements given to the surface model are not finite or do not match in size."""


class _CountedError(NbvPlannerError, ValueError):
    """An error that nodes count."""

    def __init__(self, reason: str, detail: str) -> None:
        """Give the word to count it under, and what was wrong."""
        super().__init__(detail)
        self.reason = reason  #: short fixed word to count it under.


class InputRejectedError(_CountedError):
    """A whole message (scan, pose, surface) cannot be used."""


class ConfigFileError(NbvPlannerError, ValueError):
    """A configuration file cannot be read or holds something that is not allowed."""


class ResultsError(NbvPlannerError, OSError):
    """A results folder or file cannot be written or read, or exists and must not be replaced."""


class RosUnavailableError(NbvPlannerError, RuntimeError):
    """A ROS package that the command needs cannot be imported, or is the wrong one."""


def install_hint(extra: str) -> str:
    """How to install an extra: by pip, which Ubuntu's own Python refuses outside of a virtual
    environment.
    """
    return f"pip install '.[{extra}]' in the checkout, in a virtual environment"


class DependencyError(NbvPlannerError, RuntimeError):
    """A library that the command needs is missing or too old."""


@contextmanager
def analysis_needed(by: str) -> Iterator[None]:
    """For imports from the extra `analysis`: says what they are needed `by`.

    Raises:
        DependencyError: one is missing.
    """
    try:
        yield
    except ImportError as error:
        raise DependencyError(
            f"cannot import {error.name}: {by} ({install_hint('analysis')})"
        ) from error


class BackEndError(NbvPlannerError, RuntimeError):
    """The cases of a sweep cannot be run any more: a worker process was killed, a scheduler is
    unreachable.
    """


class BagError(NbvPlannerError, OSError):
    """A bag cannot be read or written, or does not hold what the command needs."""


class StateFileError(_CountedError):
    """A state file cannot be written, or cannot be resumed."""
