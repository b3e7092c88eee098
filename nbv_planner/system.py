"""What depends on the operating system: signals that end a process, files, other processes. Imports
little.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

LONGEST_TEXT = 10**6
"""Bytes that a file written by hand may have."""

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}
_WAIT = b"ending, please wait; the next signal kills\n"

Handler = Callable[[int, Any], object]


def ending_signals() -> list[signal.Signals]:
    """SIGINT, SIGTERM, and SIGHUP unless it is ignored, as nohup requires."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


@contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    # handlers run in the main thread alone
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {kind: signal.signal(kind, handler) for kind in ending_signals()}
    try:
        yield
    finally:
        for kind, earlier in before.items():
            signal.signal(kind, earlier)


@contextmanager
def signals_end_process(code: int | None = None) -> Iterator[None]:
    """End the process at a signal with exit code `code`, by default 128 + the signal's number.

    For the time in which modules are loaded, when there is nothing to clean up. An exception would
    not do: raised in the middle of an import it can be swallowed there, and the program would
    continue.
    """

    def end(number: int, _: object) -> NoReturn:
        os._exit(128 + number if code is None else code)

    with _handled(end):
        yield


@contextmanager
def signals_interrupt() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at the first signal, and let the clean-up after it finish; yields
    those received.

    The second signal prints a line on stderr, the third kills the process. Signals after the block,
    when only the interpreter is left to end, are ignored.
    """
    came: list[int] = []

    def interrupt(number: int, _: object) -> None:
        _note(came, number)
        if len(came) == 1:
            raise KeyboardInterrupt

    with ignored_after(interrupt):
        yield came


@contextmanager
def ignored_after(handler: Handler) -> Iterator[None]:
    """Handle the signals that end a process, in its main thread, and ignore them after the
    block.
    """
    kinds = ending_signals()
    for kind in kinds:
        signal.signal(kind, handler)
    try:
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, signal.SIG_IGN)


@contextmanager
def held_signals() -> Iterator[list[int]]:
    """Defer the signals: the first one received takes effect at the end of the block. The third
    kills the process.

    Yields the numbers of those received, for a block that ends earlier because of them; a block
    that removes them from the list discards them.
    """
    came: list[int] = []
    try:
        with _handled(partial(_note, came)):
            yield came
    finally:
        if came:
            signal.raise_signal(came[0])


class _LenientOutput(io.FileIO):
    """A stream that drops what nothing takes (a full disk, a closed terminal), and waits for one
    that takes it later.

    Only the end of a reader is an error, as for all programs in a pipe.
    """

    def write(self, data: Any, /) -> int:
        try:
            while (written := super().write(data)) is None:
                select.select([], [self], [])
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes
        return written


def lenient_streams() -> None:
    """Let printing never end the work of this process: for the start of a program.

    A stream that is closed becomes the null device, so that no file that is opened later takes its
    number; a character that the encoding does not have becomes a question mark, and what cannot be
    written is dropped.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # it takes the least number that is free
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 (open to the end)
    for name, number in (("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        at_once = number == 2 or old is None or old.line_buffering or old.write_through
        buffer = io.BufferedWriter(_LenientOutput(number, "w", closefd=False))
        setattr(
            sys,
            name,
            io.TextIOWrapper(
                buffer, getattr(old, "encoding", "utf-8"), "replace", line_buffering=at_once
            ),
        )


def _note(came: list[int], number: int, _: object = None) -> None:
    came.append(number)
    if len(came) == 2:
        with contextlib.suppress(OSError):  # the terminal may have gone
            os.write(2, _WAIT)
    elif len(came) > 2:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def check_regular(mode: int) -> None:
    """Refuse what is no regular file by its `st_mode`.

    Raises:
        OSError: names the kind of file.
    """
    kind = stat.S_IFMT(mode)
    if kind != stat.S_IFREG:
        raise OSError(f"it is {_KINDS.get(kind, 'something special')}, must be a regular file")


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading; no other kind of file is waited for or read.

    Raises:
        OSError: it cannot be opened, or is a FIFO, a device or a folder.
    """
    try:
        # Opened first, then checked, so that it cannot be replaced in between; a FIFO opens without
        # a writer.
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except ValueError as error:  # a character that no file's name has
        raise OSError(f"its name is not valid: {error}") from error
    try:
        check_regular(os.fstat(file.fileno()).st_mode)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | Path, most: int = LONGEST_TEXT) -> bytes:
    """Content of a regular file of at most `most` bytes.

    Raises:
        OSError: as of :func:`open_regular`, or it is larger.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(f"it has {size / 1e6:.1f} MB, must have at most {most / 1e6:g} MB")
        return file.read(size)


def at_home(path: str | Path) -> Path:
    """A path with the home folder in place of `~`; unlike `Path.expanduser` it leaves the home of
    an unknown user as it is.
    """
    return Path(os.path.expanduser(path))


def found_below(folder: str | Path, *names: str) -> str:
    """End of a message about a `folder` without files `names` (patterns): folders with one, up to
    two levels below.
    """
    patterns = [f"{up}/{name}" for name in names for up in ("*", "*/*")]
    found = sorted(
        {str(file.parent) for pattern in patterns for file in Path(folder).glob(pattern)}
    )
    return f"; did you mean {', '.join(found[:9])}?" if found else ""


def python_command(module: str) -> list[str]:
    """Command that runs `main()` of a module of this package in a process that finds modules where
    this one does.

    `python -m` looks into the current folder first: from the folder around a checkout the checkout
    itself, if it is called `nbv_planner`, would pass for the package, and any `yaml.py` for the
    library.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-c", program]
