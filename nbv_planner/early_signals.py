"""SIGINT and SIGTERM while a program is still loading: it ends at once, without a traceback. Imports nothing heavy."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def signals_end_process(code: int) -> Iterator[None]:
    """End the process with exit code `code` at SIGINT and SIGTERM.

    For the time in which modules are loaded, when there is nothing to clean up. An exception would not do: raised in
    the middle of an import it can be swallowed there, and the program would go on.
    """

    def end(*_: object) -> NoReturn:
        os._exit(code)

    before = {kind: signal.signal(kind, end) for kind in (signal.SIGINT, signal.SIGTERM)}
    yield
    for kind, handler in before.items():
        signal.signal(kind, handler)
