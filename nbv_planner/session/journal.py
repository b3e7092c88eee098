r"""Journal of a node: the facts of its episode in an append-only file, one JSON text a line.

The first line is the header: format, version, kind, episode, the settings that the facts depend on,
and the versions of what wrote it. Each line is ``{"sum": "<16 hex>", "fact": ...}``; the sum of
line i over its bytes b_i is ``s_i = blake2b(s_{i-1} + b_i)``, so that a line that is changed,
missing or moved is detected. What follows from a fact may be published once :meth:`Journal.append`
has returned: the line is on the disk then (`fsync`). A process or machine that dies meanwhile
leaves a torn last line, without its end, which is left out when the file is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nbv_planner.errors import NbvPlannerError, StateFileError, cut, reason, shown
from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.session import facts as episode_facts
from nbv_planner.session.state import EpisodeState
from nbv_planner.system import check_regular, read_regular
from nbv_planner.versions import versions

FORMAT = "nbv_planner journal"
VERSION = 3
_LARGEST = 10**8  # bytes
_DIGEST = 8  # bytes
_LINE = b'{"sum": "%s", "fact": %s}\n'
_BEFORE, _BETWEEN = len(b'{"sum": "'), len(b'", "fact": ')
_VERSION_1 = b"PK"  # an NPZ archive
_BESIDE = ("at", "fact")  # what a line holds besides the fields of its fact
Settings = Mapping[str, Mapping[str, Any]]


class Journal:
    """The journal in one file; may be used from several threads."""

    def __init__(
        self, path: str | Path, kind: str, settings: Settings | None = None, episode: str = ""
    ) -> None:
        """Name the file without touching it.

        Args:
            path: the file.
            kind: what the facts are about, for example `planning session`.
            settings: those that the facts depend on, by class and name, as JSON holds them.
            episode: name of the episode; empty: a file of any is read.
        """
        self.path = Path(path)  #: the file.
        self.torn = 0  #: bytes of a torn last line that :meth:`read` has left out.
        self._header = {"kind": kind, "episode": episode, "settings": settings or {}}
        self._sum = b""
        self._size = -1  # bytes of whole lines; -1: none is known
        self._waiting: list[bytes] = []  # facts that could not be written yet
        self._torn = False  # whether bytes behind the whole lines are our own
        self._lock = threading.Lock()

    def read(self, *, any_episode: bool = False) -> list[Any]:
        """Read the facts, without changing the file; :meth:`append` then goes on behind them.

        Raises:
            StateFileError: `missing`, `unreadable`, `damaged`, `version`, `content`, `kind`,
                `episode` or `settings`; the message names the file, what was found and what was
                expected.
        """
        try:
            content = read_regular(self.path, _LARGEST)
            header, facts, size, total = _parsed(content)
            self._check(header, any_episode)
        except FileNotFoundError as error:
            if (old := self.path.with_suffix(".npz")).is_file():  # its name in version 1
                raise StateFileError("version", f"{old}: {_other_version(1)}") from error
            raise StateFileError("missing", f"{self.path} does not exist") from error
        except OSError as error:
            raise StateFileError(
                "unreadable", f"cannot read {self.path}: {error.strerror or error}"
            ) from error
        except StateFileError as error:
            raise StateFileError(error.reason, f"{self.path}: {error}") from error
        with self._lock:
            self.torn = len(content) - size
            self._sum = total
            self._size = size
            self._waiting = []
            self._torn = self.torn > 0
        return facts

    def begin(self, facts: Iterable[Any] = ()) -> None:
        """Write a new file, or one compacted to these `facts`, in place of the present one: all of
        it or nothing.

        Raises:
            StateFileError: `not_written`, with why; an earlier file is as it was.
        """
        head = {"format": FORMAT, "version": VERSION, **self._header, "written_by": versions()}
        with self._lock:
            total, lines = _chained(b"", [_text(head), *map(_text, facts)])
            self._check_size(len(lines))
            beside = self.path.with_name(f".{self.path.name}.tmp")
            try:
                with suppress(FileNotFoundError):
                    check_regular(self.path.stat().st_mode)  # a FIFO or a device would be replaced
                with beside.open("wb") as file:
                    _flushed(file, lines)
                beside.replace(self.path)
                _sync_folder(self.path.parent)
            except OSError as error:
                raise self._not_written(error) from error
            self._sum = total
            self._size = len(lines)
            self._waiting = []
            self._torn = False

    def append(self, facts: Sequence[Any]) -> None:
        """Write `facts` behind the others; the first ones of a journal that was not read begin a
        file.

        Those that cannot be written are kept, and written before the next ones.

        Raises:
            StateFileError: `not_written`, with why.
        """
        if self._size < 0:
            self.begin(facts)
            return
        with self._lock:
            self._waiting += map(_text, facts)
            total, lines = _chained(self._sum, self._waiting)
            self._check_size(self._size + len(lines))
            try:
                with self.path.open("r+b") as file:
                    self._go_to_end(file)
                    self._torn = True
                    _flushed(file, lines)
            except OSError as error:
                raise self._not_written(error) from error
            self._sum = total
            self._size += len(lines)
            self._waiting = []
            self._torn = False

    def _go_to_end(self, file: BinaryIO) -> None:
        """Go behind the last whole line, and drop what is behind it: a line torn by a crash or a
        full disk.
        """
        check_regular(os.fstat(file.fileno()).st_mode)
        more = file.seek(0, os.SEEK_END) - self._size
        if more < 0 or (more > 0 and not self._torn):
            raise OSError("it has been changed by another program")
        file.truncate(self._size)
        file.seek(self._size)

    def _check(self, header: Mapping[str, Any], any_episode: bool) -> None:
        kind, episode, settings = (self._header[name] for name in ("kind", "episode", "settings"))
        if header["kind"] != kind:
            raise StateFileError("kind", f"it holds a {cut(header['kind'])}, expected a {kind}")
        if episode and not any_episode and header["episode"] != episode:
            raise StateFileError(
                "episode", f"it belongs to episode {shown(header['episode'])}, this is {episode!r}"
            )
        for group, values in settings.items():  # type: ignore[attr-defined]
            known = header["settings"].get(group, {})
            for name in sorted({*values, *known}):
                if known.get(name) != values.get(name):
                    found, own = shown(known.get(name)), shown(values.get(name))
                    raise StateFileError(
                        "settings", f"it was made with {cut(name)} = {found}, this node has {own}"
                    )

    def _check_size(self, size: int) -> None:
        if size > _LARGEST:
            sizes = f"{size / 1e6:.0f} MB, of which at most {_LARGEST / 1e6:.0f} are read"
            raise StateFileError(
                "not_written", f"cannot write {self.path}: the journal has {sizes}"
            )

    def _not_written(self, error: OSError) -> StateFileError:
        return StateFileError("not_written", f"cannot write {self.path}: {error.strerror or error}")


def _text(fact: Any) -> bytes:
    return json.dumps(fact, allow_nan=False, ensure_ascii=True).encode()


def _sum_of(before: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(before + text, digest_size=_DIGEST).digest()


def _chained(total: bytes, texts: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The sum behind the last of `texts`, and their lines."""
    lines = []
    for text in texts:
        total = _sum_of(total, text)
        lines.append(_LINE % (total.hex().encode(), text))
    return total, b"".join(lines)


def _flushed(file: BinaryIO, lines: bytes) -> None:
    file.write(lines)
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush the move itself: otherwise a power cut may restore the old name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parsed(content: bytes) -> tuple[dict[str, Any], list[Any], int, bytes]:
    """Header, facts, number of bytes of whole lines, and the sum behind the last one."""
    if content.startswith(_VERSION_1):
        raise StateFileError("version", _other_version(1))
    *lines, _ = content.split(b"\n")
    total = b""
    facts = []
    for number, line in enumerate(lines, start=1):
        text = line[_BEFORE + 2 * _DIGEST + _BETWEEN : -1]
        total = _sum_of(total, text)
        if line + b"\n" != _LINE % (total.hex().encode(), text):
            raise StateFileError(
                "damaged",
                f"the checksum of line {number} is wrong: the file is damaged, or not a journal",
            )
        try:
            facts.append(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise StateFileError(
                "content", f"line {number} is not a fact: {cut(reason(error))}"
            ) from error
    if not facts:
        raise StateFileError(
            "damaged", "it has no complete line: it is truncated, or not a journal"
        )
    return _header_of(facts[0]), facts[1:], sum(len(line) + 1 for line in lines), total


def _other_version(version: Any) -> str:
    return (
        f"it has version {shown(version)}, this package reads version {VERSION}: end the episode"
        " with the release that began it, or move the file away to begin anew"
    )


def _header_of(header: Any) -> dict[str, Any]:
    found = header if isinstance(header, dict) else {}
    if found.get("format") != FORMAT:
        raise StateFileError(
            "content", f"its format is {shown(found.get('format'))}, expected {FORMAT!r}"
        )
    if found.get("version") != VERSION:
        raise StateFileError("version", _other_version(found.get("version")))
    for name, kind in (("kind", str), ("settings", dict), ("episode", str)):
        if not isinstance(found.get(name), kind):
            raise StateFileError(
                "content", f"{name}: {shown(found.get(name))} must be a {kind.__name__}"
            )
    if any(not isinstance(group, dict) for group in found["settings"].values()):
        raise StateFileError(
            "content", f"settings: {shown(found['settings'])} must be a dict of dicts"
        )
    return found


FACTS: Mapping[str, type] = {
    name: kind
    for name, kind in vars(episode_facts).items()
    if isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "change")
}
"""All facts by name."""


def to_record(fact: episode_facts.Fact, at: int) -> dict[str, Any]:
    """A fact as a line of the journal holds it, noted `at` that time, nanoseconds."""
    return {"at": at, "fact": type(fact).__name__, **to_plain(fact)}


def from_records(records: Iterable[Any]) -> tuple[EpisodeState, int]:
    """The state after the facts of a journal, and when the last one was noted, nanoseconds.

    Raises:
        StateFileError: `content`: these are no facts of an episode; names the first one that is
            none.
    """
    state = EpisodeState()
    at = 0
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict) or (name := str(record.get("fact"))) not in FACTS:
            raise StateFileError("content", f"fact {number}: {shown(record)} is not a fact")
        at = from_plain(int, record.get("at"), f"fact {number}: at")
        values = {key: value for key, value in record.items() if key not in _BESIDE}
        try:
            fact = from_plain(FACTS[name], values, f"fact {number}: {name}")
            state = fact.change(state)
            _check_poses(state)
        except StateFileError:
            raise
        except (NbvPlannerError, TypeError, ValueError, OverflowError) as error:
            words = f"fact {number}: {shown(record)} cannot be ({reason(error)})"
            raise StateFileError("content", words) from error
    return state, at


def _check_poses(state: EpisodeState) -> None:
    target = state.target
    poses = [
        *state.visited[-1:],
        *(pose for pose, _ in state.left_out),
        *([] if target is None else [target.pose]),
    ]
    if not all(math.isfinite(pose.x + pose.y + pose.yaw) for pose in poses):
        raise ValueError("a pose in it is not finite")
