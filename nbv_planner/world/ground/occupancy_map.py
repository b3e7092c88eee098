"""A map of the ground: which cells are occupied, out of the file of a map_server or the fields of a
message.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.errors import ConfigFileError, InputRejectedError, UnknownNameError, reason, shown
from nbv_planner.files.located_yaml import Located, read_located
from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.system import read_regular
from nbv_planner.world.pose import CameraPose

MOST_CELLS = 16_000_000
"""Cells that a map may have."""
# Bytes of the head of an image, comments included, and of the number of a pixel.
_LONGEST_HEAD = 2**16
_LONGEST_PIXEL = 9
UNKNOWN = -1
"""Value of a cell of which nothing is known; others are percent."""
_MODES = ("trinary", "scale", "raw")
_NEEDED = ("image", "resolution", "origin", "negate", "occupied_thresh", "free_thresh")


@dataclass(frozen=True, eq=False)
class OccupancyMap:
    """Occupancy of square cells, as nav_msgs/OccupancyGrid has it.

    Raises:
        InputRejectedError: reason `resolution`, `size`, `origin` or `data`: a value that no map
            has.
    """

    #: percent, or UNKNOWN, shape (H, W); the cell [0, 0] lies at the origin.
    cells: NDArray[np.int8]
    resolution: float  #: side of a cell, metres.
    x: float = 0.0  #: corner of the cell [0, 0], metres.
    y: float = 0.0  #: metres.
    yaw: float = 0.0  #: direction of the rows, radians, counter-clockwise.

    def __post_init__(self) -> None:
        """Check the values."""
        if not (math.isfinite(self.resolution) and self.resolution > 0.0):
            raise InputRejectedError(
                "resolution", f"resolution of the map is {self.resolution}, must be > 0 m"
            )
        if not all(math.isfinite(value) for value in (self.x, self.y, self.yaw)):
            raise InputRejectedError(
                "origin", f"origin of the map is {(self.x, self.y, self.yaw)}, must be finite"
            )
        if self.cells.ndim != 2 or not 0 < self.cells.size <= MOST_CELLS:
            raise InputRejectedError(
                "size", f"the map has {self.cells.size} cells, must have 1 to {MOST_CELLS}"
            )
        wrong = (self.cells < UNKNOWN) | (self.cells > 100)
        if wrong.any():
            found = self.cells[wrong][0]
            raise InputRejectedError(
                "data", f"the map holds the occupancy {found}, must be -1 or 0 to 100"
            )

    @classmethod
    def of_message(
        cls,
        data: ArrayLike,
        width: int,
        height: int,
        resolution: float,
        origin: CameraPose,
        frame: str,
    ) -> OccupancyMap:
        """The map that the fields of a nav_msgs/OccupancyGrid describe; `origin` is its planar
        pose.

        Raises:
            InputRejectedError: also for the reason `frame`: the header names none.
        """
        values = np.asarray(data, dtype=np.int64)
        if not frame:
            raise InputRejectedError(
                "frame", "the map has no frame; frame_id must name the one of its origin"
            )
        if values.shape != (width * height,):
            raise InputRejectedError(
                "size", f"the map has {values.size} cells, must have {width} x {height}"
            )
        cells = np.clip(values, -128, 127).astype(np.int8).reshape(height, width)
        return cls(cells, float(resolution), origin.x, origin.y, origin.yaw)

    def seen_from(self, x: float, y: float) -> OccupancyMap:
        """The same map in a frame with the same axes whose origin is at (x, y), metres."""
        return replace(self, x=self.x - x, y=self.y - y)

    def placed(self, frame: CameraPose) -> OccupancyMap:
        """The same map in the frame in which its own one has the pose `frame`."""
        origin = frame.then(CameraPose(self.x, self.y, self.yaw))
        return replace(self, x=origin.x, y=origin.y, yaw=origin.yaw)

    def same_as(self, other: OccupancyMap | None) -> bool:
        """Whether both say the same about the same places."""
        return (
            other is not None
            and np.array_equal(self.cells, other.cells)
            and (
                (self.resolution, self.x, self.y, self.yaw)
                == (other.resolution, other.x, other.y, other.yaw)
            )
        )

    def to_cells(self, x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Column and row of points, metres, as real numbers: a cell reaches from its index to the
        next one.
        """
        ahead, aside = CameraPose(self.x, self.y, self.yaw).to_camera(x, y)
        return ahead / self.resolution, aside / self.resolution

    def to_metres(self, column: ArrayLike, row: ArrayLike) -> FloatArray:
        """Places of columns and rows that are real numbers, shape (n, 2), metres; those of centres
        end in .5.
        """
        ahead, aside = (np.asarray(value, dtype=float) * self.resolution for value in (column, row))
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return np.stack(
            [self.x + cos * ahead - sin * aside, self.y + sin * ahead + cos * aside], axis=-1
        )

    def inside(self, column: FloatArray, row: FloatArray) -> tuple[BoolArray, IntArray, IntArray]:
        """Whether cells are on the map, and their columns and rows, 0 for those that are not."""
        height, width = self.cells.shape
        there = (column >= 0.0) & (column < width) & (row >= 0.0) & (row < height)  # false for NaN
        return there, *(
            np.where(there, np.floor(value), 0.0).astype(np.intp) for value in (column, row)
        )


def load_map(path: str | Path) -> OccupancyMap:
    """Read a map as map_server does: a YAML file and its image, here PGM (P2 or P5).

    The occupancy of a pixel of brightness s from 0 to 1 is :math:`1 - s`, or s with `negate`; above
    `occupied_thresh` it is occupied, below `free_thresh` free. Between them it is unknown
    (`mode: trinary`), or in proportion (`scale`). With `raw` the brightness times 255 is the
    occupancy, unknown above 100.

    Raises:
        ConfigFileError: a file cannot be read or holds something that is not allowed; names the
            file and the line.
    """
    values = read_located(path)[1].mapping()
    for name in _NEEDED:
        if name not in values:
            raise ConfigFileError(f"{path}: {name} is missing; a map needs {', '.join(_NEEDED)}")
    origin = values["origin"].numbers(3)
    negate = values["negate"].number()
    mode = _mode(values)
    resolution, occupied, free = (
        values[name].number() for name in ("resolution", "occupied_thresh", "free_thresh")
    )
    if resolution <= 0.0:
        raise values["resolution"].error(f"{resolution:g} must be > 0 m")
    if not 0.0 <= free < occupied <= 1.0:
        raise values["free_thresh"].error(
            f"{free:g} must be below occupied_thresh ({occupied:g}), both within 0 to 1"
        )
    shade = _read_pgm(Path(path).parent / values["image"].text())[::-1]
    occupancy = shade if negate else 1.0 - shade
    if mode == "raw":
        percent = np.rint(255.0 * shade)
        cells = np.where(percent <= 100.0, percent, UNKNOWN)
    else:
        between = (
            np.rint((occupancy - free) / (occupied - free) * 100.0) if mode == "scale" else UNKNOWN
        )
        cells = np.where(occupancy > occupied, 100, np.where(occupancy < free, 0, between))
    return OccupancyMap(cells.astype(np.int8), resolution, *origin)


def _mode(values: Mapping[str, Located]) -> str:
    if "mode" not in values:
        return "trinary"
    mode = values["mode"].text()
    if mode not in _MODES:
        raise values["mode"].error(UnknownNameError("mode", mode, _MODES))
    return mode


def _read_pgm(path: Path) -> FloatArray:
    """Brightness of each pixel from 0 to 1, shape (H, W), the first row at the top."""
    try:
        content = read_regular(path, most=4 * MOST_CELLS)
    except OSError as error:
        raise ConfigFileError(f"cannot read the image {path}: {reason(error)}") from error
    head = re.match(
        rb"(P[25])" + 3 * rb"(?:\s|#[^\n]*\n)+(\d{1,9})" + rb"\s", content[:_LONGEST_HEAD]
    )
    if not head:
        raise ConfigFileError(
            f"{path} line 1: must be a PGM image (P2 or P5) with width, height and greatest value"
        )
    width, height, greatest = (int(number) for number in head.groups()[1:])
    if not (0 < width * height <= MOST_CELLS and 0 < greatest < 65536):
        raise ConfigFileError(
            f"{path}: has {width} x {height} pixels up to {greatest}, must be 1 to {MOST_CELLS} of "
            "at most 65535"
        )
    body = content[head.end() :]
    if head.group(1) == b"P5":
        kind = np.dtype(np.uint8 if greatest < 256 else ">u2")
        pixels = np.frombuffer(body, kind, count=len(body) // kind.itemsize)
    else:
        line = content[: head.end()].count(b"\n") + 1
        pixels = np.array(_plain_pixels(path, body, line, width * height), dtype=np.int64)
    if len(pixels) < width * height or pixels[: width * height].max() > greatest:
        raise ConfigFileError(
            f"{path}: must hold {width} x {height} pixels of 0 to {greatest}; has {len(pixels)},"
            f" the largest {pixels.max(initial=0)}"
        )
    return pixels[: width * height].astype(float).reshape(height, width) / greatest


def _plain_pixels(path: Path, body: bytes, first: int, most: int) -> list[int]:
    """The first `most` numbers of a P2 image whose pixels begin in line `first`."""
    pixels = list[int]()
    for line, text in enumerate(io.BytesIO(body), first):
        for word in text.partition(b"#")[0].split()[: most - len(pixels)]:
            if not word.isdigit() or len(word) > _LONGEST_PIXEL:
                raise ConfigFileError(
                    f"{path} line {line}: {shown(word.decode('ascii', 'replace'))} is not a pixel"
                    " value"
                )
            pixels.append(int(word))
    return pixels
