"""Saved state of a node: a self-describing, versioned, checksummed file, and the map that the mapper keeps in it.

The file is an NPZ archive without compression, which `numpy.load(..., allow_pickle=False)` opens. Its array `header` is
a JSON text: format, version, kind, episode, the settings that the content depends on, the plain values, and the
versions of what wrote it. The comment of the archive is the SHA-256 of every byte before it, so that any change of the
file is detected.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import StateFileError, cut, reason, shown
from nbv_planner.mapping.matching import is_whole
from nbv_planner.mapping.object_search import ViewMapping
from nbv_planner.system import check_regular, read_regular
from nbv_planner.versions import versions
from nbv_planner.world.scale import SensorHeader

FORMAT = "nbv_planner state"
VERSION = 1
HEADER = "header"
_LARGEST = 10**8  # bytes
_MARK = b"sha256:"
_TRAILER = len(_MARK) + 2 * hashlib.sha256().digest_size
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SavedState:
    """Content of a state file."""

    kind: str  #: kind of the state, for example `surface map`.
    values: Mapping[str, Any]  #: plain values, as JSON holds them.
    arrays: Arrays = field(default_factory=dict)  #: arrays by name, none of them of objects.
    #: the settings that the content depends on, by class and name.
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    episode: str = ""  #: name of the episode; empty if it has none.


def encode(state: SavedState) -> bytes:
    """Return the bytes of the file that holds `state`."""
    header = {
        "format": FORMAT, "version": VERSION, "kind": state.kind, "episode": state.episode,
        "settings": state.settings, "values": state.values, "written_by": versions(),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **{HEADER: np.array(json.dumps(header)), **state.arrays})  # type: ignore[arg-type]
    # The last two bytes of an archive are the length of its comment: still none.
    body = buffer.getvalue()[:-2] + _TRAILER.to_bytes(2, "little")
    return body + _MARK + hashlib.sha256(body).hexdigest().encode()


def read_arrays(content: bytes, most: int) -> Arrays:
    """The arrays of an NPZ archive, of at most `most` bytes decompressed.

    Raises:
        ValueError: it has more, is damaged, or holds something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > most:
            raise ValueError(f"decompressed it has {size} bytes, must have at most {most}")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except ValueError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and the parser of array headers each raise their own
        raise ValueError(f"{type(error).__name__}: {reason(error)}") from error
    if alien := [name for name, array in found.items() if not isinstance(array, np.ndarray)]:
        raise ValueError(f"{shown(alien[0])} in it is no array")
    return found


def decode(content: bytes) -> SavedState:
    """Read what :func:`encode` wrote.

    Raises:
        StateFileError: `damaged`, `version` or `content`, with what was found.
    """
    body, trailer = content[:-_TRAILER], content[-_TRAILER:]
    if trailer != _MARK + hashlib.sha256(body).hexdigest().encode():
        raise StateFileError("damaged", "its checksum does not fit: it is damaged, cut off, or no state file")
    try:
        arrays = read_arrays(content, len(content))  # what was written is not compressed
        header = json.loads(str(arrays.pop(HEADER)))
        return _described(header, arrays)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, StateFileError):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise StateFileError("content", f"it is no state file ({kind}{reason(error)})") from error


def _described(header: dict[str, Any], arrays: Arrays) -> SavedState:
    if header["format"] != FORMAT:
        raise StateFileError("content", f"its format is {shown(header['format'])}, expected {FORMAT!r}")
    if header["version"] != VERSION:
        found = shown(header["version"])
        raise StateFileError("version", f"it has version {found}, this package reads version {VERSION}")
    for name, kind in (("kind", str), ("values", dict), ("settings", dict), ("episode", str)):
        if not isinstance(header[name], kind):
            raise TypeError(f"{name}: is a {type(header[name]).__name__}, must be a {kind.__name__}")
    for name, group in header["settings"].items():
        if not isinstance(group, dict):
            raise TypeError(f"settings: {name} is a {type(group).__name__}, must be a dict")
    return SavedState(header["kind"], header["values"], arrays, header["settings"], header["episode"])


def write_state(path: str | Path, state: SavedState) -> int:
    """Write a state file: beside its path, flushed to the disk, then moved there.

    A process or machine that dies meanwhile leaves the old file or the new one, never a part of one.

    Returns:
        Size of the file, bytes.

    Raises:
        StateFileError: `not_written`, with why.
    """
    path, content = Path(path), encode(state)
    if len(content) > _LARGEST:
        sizes = f"{len(content) / 1e6:.0f} MB, of which at most {_LARGEST / 1e6:.0f} are read"
        raise StateFileError("not_written", f"cannot write {path}: the state has {sizes}")
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with contextlib.suppress(FileNotFoundError):
            check_regular(path.stat().st_mode)  # a FIFO or a device would be replaced
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StateFileError("not_written", f"cannot write {path}: {error.strerror or error}") from error
    return len(content)


def _sync_folder(folder: Path) -> None:
    """Flush the move itself: otherwise a power cut may restore the old name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_state(
    path: str | Path, kind: str, settings: Mapping[str, Mapping[str, Any]] | None = None, episode: str = ""
) -> SavedState:
    """Read a state file and check that it is of this kind, and of these settings and this episode where they are given.

    Raises:
        StateFileError: `missing`, `unreadable`, `damaged`, `version`, `content`, `kind`, `episode` or `settings`; the
            message names the file, what was found and what was expected.
    """
    try:
        state = decode(read_regular(path, _LARGEST))
        _check_wanted(state, kind, settings, episode)
    except FileNotFoundError as error:
        raise StateFileError("missing", f"{path} does not exist") from error
    except OSError as error:
        raise StateFileError("unreadable", f"cannot read {path}: {error.strerror or error}") from error
    except StateFileError as error:
        raise StateFileError(error.reason, f"{path}: {error}") from error
    return state


def _check_wanted(
    state: SavedState, kind: str, settings: Mapping[str, Mapping[str, Any]] | None, episode: str
) -> None:
    if state.kind != kind:
        raise StateFileError("kind", f"it holds a {cut(state.kind)}, expected a {kind}")
    if episode and state.episode != episode:
        raise StateFileError("episode", f"it belongs to episode {shown(state.episode)}, this is {episode!r}")
    for group, values in (settings or {}).items():
        known = state.settings.get(group, {})
        for name in sorted({*values, *known}):
            if known.get(name) != values.get(name):
                found, own = shown(known.get(name)), shown(values.get(name))
                raise StateFileError("settings", f"it was made with {cut(name)} = {found}, this node has {own}")


KIND = "surface map"
_COUNTS = ("stamp", "newest_view", "views", "scans")


@dataclass(frozen=True, eq=False)
class SurfaceMap:
    """What has been mapped up to a moment. Later changes of the mapper do not affect it."""

    mapper: ViewMapping  #: the mapping; must not be added to, but copied.
    #: goals and scans returned, see :meth:`ScanMatcher.state`; every scan returned is in the model.
    matching: Mapping[str, Any]
    stamp: int = 0  #: time of the newest scan in the model, nanoseconds; 0 before the first.
    newest_view: int = -1  #: number of the newest view of which the model holds a scan; -1 before the first.
    views: int = 0  #: number of views in the model.
    scans: int = 0  #: number of scans in the model.
    sensor: SensorHeader = field(default_factory=SensorHeader)  #: what all headers so far say.

    def values(self) -> dict[str, Any]:
        """Plain values for a state file."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"matching": dict(self.matching), "sensor": asdict(self.sensor), **counts}

    def arrays(self) -> Arrays:
        """Arrays for a state file."""
        return self.mapper.state()


def map_from_state(state: SavedState, blank: ViewMapping) -> SurfaceMap:
    """The map that a state file holds; fills `blank`, a mapping of the same settings without measurements.

    Raises:
        StateFileError: `content`: a value is impossible, or the surface that follows.
        MeasurementError: an array is impossible.
    """
    counts = {name: state.values.get(name) for name in _COUNTS}
    for name, count in counts.items():
        if not is_whole(count) or count < (-1 if name == "newest_view" else 0):
            raise StateFileError("content", f"{name}: {shown(count)} is no number of {name}")
    matching = state.values.get("matching")
    if not isinstance(matching, dict):
        raise StateFileError("content", "matching: is missing")
    sensor = _sensor_from(state.values.get("sensor", {}))
    blank.restore(state.arrays)
    belief = blank.belief()
    if not (np.isfinite(belief.mean).all() and np.isfinite(belief.std).all()):
        raise StateFileError("content", "its surface is not finite")
    return SurfaceMap(blank, matching, sensor=sensor, **counts)  # type: ignore[arg-type]


def _sensor_from(values: Any) -> SensorHeader:
    """What a state file says of the sensor; nothing in one of an earlier version."""
    names = asdict(SensorHeader())
    if not isinstance(values, dict) or not all(
        name in names and type(value) in (int, float) and 0.0 <= value < math.inf for name, value in values.items()
    ):
        raise StateFileError("content", f"sensor: {values!r:.200} must have numbers >= 0 for {', '.join(names)}")
    return SensorHeader(**values)
