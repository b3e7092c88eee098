"""Processes that die, without the second that one needs to load everything again."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import ForkProcess
from typing import TextIO


@contextmanager
def forked(work: Callable[..., object], *given: object) -> Iterator[tuple[ForkProcess, TextIO]]:
    """Run `work(say, *given)` in a copy of this process, which is killed in the end; gives it and
    what it says, line by line.
    """
    reading, writing = os.pipe()

    def run() -> None:
        os.close(reading)
        with open(writing, "w", encoding="utf-8") as said:
            work(partial(print, file=said, flush=True), *given)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as said:
            yield process, said
    finally:
        process.kill()
        process.join()
