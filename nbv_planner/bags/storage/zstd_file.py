"""Files that rosbag2 has packed as a whole (zstd): unpacked while they are read, or to a temporary file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nbv_planner.bags.storage.raw import Remarks
from nbv_planner.bags.storage.unpack import zstd_module

MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK = 2**20


class ZstdFile:
    """A file packed as a whole, unpacked bit by bit while it is read."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            OSError: it cannot be opened.
            DependencyError: the library is not installed.
        """
        zstd = zstd_module()
        self._error: type[Exception] = zstd.ZstdError
        self._packed = path.open("rb")
        self._file = zstd.open(self._packed, "rb")

    def read(self, size: int) -> bytes:
        """Read at most `size` unpacked bytes.

        Raises:
            OSError: the file is damaged here.
        """
        try:
            return bytes(self._file.read(size))
        except (EOFError, self._error) as error:
            raise OSError(f"cannot be unpacked further: {error}") from error

    def tell(self) -> int:
        """Place in the packed file."""
        return self._packed.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._packed.close()


def begin_of(path: Path, size: int) -> bytes:
    """First unpacked bytes; fewer or none of a damaged file.

    Raises:
        DependencyError: the library is not installed.
    """
    with closing(ZstdFile(path)) as file:
        try:
            return file.read(size)
        except OSError:
            return b""


@contextmanager
def unpacked(path: Path, remarks: Remarks) -> Iterator[Path]:
    """Unpack to a temporary file of the same name, for formats that are not read from begin to end.

    A small file can claim to be gigabytes: at most half of the free space is filled, and what is behind is left out.

    Args:
        path: the packed file.
        remarks: takes in what is wrong with it.

    Raises:
        OSError: there is no room for a temporary file.
        DependencyError: the library is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="nbv_planner-") as folder:
        plain = Path(folder) / path.name
        with closing(ZstdFile(path)) as packed, plain.open("wb") as file:
            room = shutil.disk_usage(folder).free // 2
            for block in _blocks(packed, path.name, remarks):
                room -= len(block)
                if room < 0:
                    remarks.add(f"{path.name}: unpacked it is larger than half of the free space: the rest is left out")
                    break
                file.write(block)
        yield plain


def _blocks(packed: ZstdFile, name: str, remarks: Remarks) -> Iterator[bytes]:
    """Give what can be unpacked."""
    try:
        while block := packed.read(_BLOCK):
            yield block
    except OSError as error:
        remarks.add(f"{name}: {error}")
