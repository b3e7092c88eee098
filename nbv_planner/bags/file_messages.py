"""Messages of one file of a bag, whichever format it has and whether it is packed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from nbv_planner.bags.bag_files import storage_of
from nbv_planner.bags.storage.mcap_file import McapFile, Stream
from nbv_planner.bags.storage.raw import RawMessage, Remarks, Topic
from nbv_planner.bags.storage.sqlite_file import SqliteFile
from nbv_planner.bags.storage.zstd_file import ZstdFile, unpacked
from nbv_planner.errors import BagError

Wanted = Callable[[Topic], bool]


def messages_of(
    file: Path, wanted: Wanted, remarks: Remarks
) -> tuple[Iterator[RawMessage], Callable[[], float]]:
    """Messages of one file in the order in which they were written, and a function that says how far they are read.

    Args:
        file: the file.
        wanted: for which topics.
        remarks: takes in what is wrong with the file, and what is left out because of it.

    Raises:
        BagError: it cannot be read at all.
        DependencyError: it is packed, and the library to unpack it is not installed.
    """
    try:
        storage, packed = storage_of(file)
        if storage == "":
            remarks.add(f"{file.name}: is no MCAP and no SQLite file, not even in its first bytes: left out")
            return iter(()), lambda: 1.0
        if storage == "mcap":
            return _from_mcap(file, ZstdFile(file) if packed else file.open("rb"), wanted, remarks)
    except OSError as error:
        raise BagError(f"cannot read {file}: {error}") from error
    return _from_packed_sqlite(file, wanted, remarks) if packed else _from_sqlite(file, wanted, remarks)


def _from_mcap(
    file: Path, stream: Stream, wanted: Wanted, remarks: Remarks
) -> tuple[Iterator[RawMessage], Callable[[], float]]:
    def messages() -> Iterator[RawMessage]:
        with closing(stream):
            yield from McapFile(stream, file.name, remarks).messages(wanted)

    size = max(file.stat().st_size, 1)
    return _as_far_as_possible(messages(), file.name, remarks), lambda: stream.tell() / size


def _from_sqlite(
    file: Path, wanted: Wanted, remarks: Remarks
) -> tuple[Iterator[RawMessage], Callable[[], float]]:
    database = SqliteFile(file, remarks)
    return database.messages(wanted), lambda: database.fraction


def _from_packed_sqlite(
    file: Path, wanted: Wanted, remarks: Remarks
) -> tuple[Iterator[RawMessage], Callable[[], float]]:
    read = 0.0

    def messages() -> Iterator[RawMessage]:
        nonlocal read
        with unpacked(file, remarks) as plain:
            database = SqliteFile(plain, remarks)
            for message in database.messages(wanted):
                read = database.fraction
                yield message

    return _as_far_as_possible(messages(), file.name, remarks), lambda: read


def _as_far_as_possible(messages: Iterator[RawMessage], name: str, remarks: Remarks) -> Iterator[RawMessage]:
    """Pass messages on up to where the file cannot be read."""
    try:
        yield from messages
    except OSError as error:
        remarks.add(f"{name}: cannot be read further ({error})")
