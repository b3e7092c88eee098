"""Writing of bags through rosbags, so that a recorder that is killed loses no more than the last moment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbv_planner import __version__
from nbv_planner.bags.decoding import knows_type, typestore
from nbv_planner.errors import BagError, DependencyError

STORAGES = ("mcap", "sqlite3")

# The newest version of metadata.yaml whose QoS profiles Humble reads too.
_METADATA_VERSION = 8


class BagWriter:
    """A bag that is being written; a context manager that ends it properly.

    rosbags keeps up to a megabyte (MCAP) or everything (SQLite) in memory until the end. :meth:`flush` hands over to
    the operating system what has been written so far: closed chunks in MCAP, a committed transaction in SQLite. What
    was flushed survives the death of the process, and after `durable=True` that of the machine.
    """

    def __init__(self, path: str | Path, storage: str = "mcap") -> None:
        """Begin the bag.

        Args:
            path: its folder; must not exist.
            storage: `mcap` or `sqlite3`.

        Raises:
            BagError: the folder exists or cannot be written.
            DependencyError: rosbags is not installed.
        """
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
        except ImportError as error:
            raise DependencyError(
                f"cannot import {error.name}: recording needs rosbags (pip install '.[analysis]' in the checkout)"
            ) from error
        self.path, self._storage = Path(path), storage
        self._connections: dict[str, Any] = {}
        self._unflushed = 0
        try:
            self._writer = Writer(
                self.path, version=_METADATA_VERSION, storage_plugin=StoragePlugin[storage.upper()]
            )
            self._writer.set_custom_data("recorded_by", f"nbv_planner {__version__}")
            self._writer.open()
        except (OSError, WriterError) as error:
            raise BagError(f"cannot record to {path}: {error}") from error

    def __enter__(self) -> BagWriter:
        """Go on."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the bag, whatever has happened."""
        self.close()

    def add_topic(self, name: str, kind: str, offered_qos: Sequence[Any] = ()) -> None:
        """Describe a topic: name, message type with its definition and hash, and what its publishers offer.

        Raises:
            BagError: the message type is not known.
        """
        if not knows_type(kind):
            raise BagError(f"{name}: the definition of {kind} is not known, so it cannot be recorded")
        self._connections[name] = self._writer.add_connection(
            name, kind, typestore=typestore(), offered_qos_profiles=list(offered_qos)
        )

    def __contains__(self, name: str) -> bool:
        """Whether the topic has been described."""
        return name in self._connections

    def write(self, name: str, time: int, data: bytes) -> None:
        """Write a serialised message of a described topic that came at `time` (nanoseconds).

        Raises:
            BagError: it cannot be written.
        """
        try:
            self._writer.write(self._connections[name], time, data)
        except (OSError, sqlite3.Error) as error:
            raise BagError(f"cannot record to {self.path}: {error}") from error
        self._unflushed += 1

    def flush(self, *, durable: bool = False) -> None:
        """Hand over what has been written to the operating system, and to the disk if `durable`.

        Raises:
            BagError: it cannot be written.
        """
        storage = self._writer.storage
        try:
            if self._storage == "sqlite3":
                storage.conn.commit()
                return
            if self._unflushed:
                storage.close_chunk()
            storage.bio.flush()
            if durable:
                os.fsync(storage.bio.fileno())
        except (OSError, sqlite3.Error) as error:
            raise BagError(f"cannot record to {self.path}: {error}") from error
        finally:
            self._unflushed = 0

    def close(self) -> None:
        """End the bag: index and metadata.yaml.

        Raises:
            BagError: it cannot be written.
        """
        if self._writer.storage is None:
            return
        try:
            self._writer.close()
        except (OSError, sqlite3.Error) as error:
            raise BagError(f"cannot record to {self.path}: {error}") from error
