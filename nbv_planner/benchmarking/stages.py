"""Processor time of the stages of a program, taken while it runs."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest.mock import patch

Function = tuple[Any, str]
"""A function by the class or module that has it, and its name there."""


class StageClock:
    """Adds up the processor time that functions take.

    Attributes:
        milliseconds: time so far by stage.
    """

    def __init__(self, stages: dict[str, tuple[Function, ...]]) -> None:
        """Take the functions of each stage; no function may call one of another stage."""
        self._stages = stages
        self.milliseconds = dict.fromkeys(stages, 0.0)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count every call in the block."""
        counted = (
            (function, functools.partial(self._counted, stage))
            for stage, functions in self._stages.items() for function in functions
        )
        with replaced((function, count(getattr(*function))) for function, count in counted):
            yield

    def _counted(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.milliseconds[stage] += 1e3 * (time.process_time() - began)

        return call


@contextlib.contextmanager
def replaced(functions: Iterable[tuple[Function, Callable[..., Any]]]) -> Iterator[None]:
    """Put other functions in the place of some for a while; everybody in this process then calls those."""
    with contextlib.ExitStack() as stack:
        for (owner, name), other in functions:
            stack.enter_context(patch.object(owner, name, other))
        yield
