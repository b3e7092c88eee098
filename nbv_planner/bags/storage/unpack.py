"""Unpacking of zstd and lz4 with a limit: a few bytes can claim to be gigabytes."""

from __future__ import annotations

import sys
from typing import Any

from nbv_planner.errors import DependencyError


def zstd_module() -> Any:
    """The zstd module that rosbags uses too.

    Raises:
        DependencyError: it is not installed.
    """
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
        return zstd_module().ZstdDecompressor()
    if method == "lz4":
        try:
            from lz4.frame import LZ4FrameDecompressor
        except ImportError as error:
            raise DependencyError(
                f"cannot unpack lz4: {error.name} is not installed (pip install '.[analysis]' in the checkout)"
            ) from error
        return LZ4FrameDecompressor()
    raise ValueError(f"packed by {method!r}, which is not known")
