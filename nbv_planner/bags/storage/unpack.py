"""Unpacking of zstd and lz4 with a limit: a few bytes can claim to be gigabytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from nbv_planner.errors import DependencyError

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def _zstd() -> Any:
    """The zstd module that rosbags uses too."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise DependencyError(
            f"cannot unpack zstd: {error.name} is not installed (pip install '.[analysis]' in the checkout)"
        ) from error
    return zstd


def unpack(data: bytes, method: str, limit: int) -> bytes:
    """Unpack at most `limit` bytes; a damaged or cut end gives what comes before it.

    Args:
        data: packed bytes.
        method: `zstd`, `lz4`, or empty for bytes that are not packed.
        limit: greatest number of bytes to give.

    Raises:
        ValueError: the method is not known, or nothing can be unpacked.
        DependencyError: the library is not installed.
    """
    if method == "":
        return data[:limit]
    try:
        return bytes(_unpacker(method).decompress(data, max_length=limit))
    except (DependencyError, MemoryError):
        raise
    except Exception as error:  # each library has its own
        raise ValueError(f"{method}: {error}") from error


def _unpacker(method: str) -> Any:
    if method == "zstd":
        return _zstd().ZstdDecompressor()
    if method == "lz4":
        try:
            from lz4.frame import LZ4FrameDecompressor
        except ImportError as error:
            raise DependencyError(
                f"cannot unpack lz4: {error.name} is not installed (pip install '.[analysis]' in the checkout)"
            ) from error
        return LZ4FrameDecompressor()
    raise ValueError(f"packed by {method!r}, which is not known")


class ZstdFile:
    """A file packed as a whole, unpacked bit by bit while it is read."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            OSError: it cannot be opened.
            DependencyError: the library is not installed.
        """
        zstd = _zstd()
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
