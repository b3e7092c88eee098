"""Which files a bag consists of: a folder, with or without metadata.yaml (its recorder was killed), or one file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.bags.storage import mcap_file, sqlite_file, zstd_file
from nbv_planner.bags.storage.raw import Remarks
from nbv_planner.errors import BagError

METADATA_FILE = "metadata.yaml"
_METADATA_LONGEST = 2**24
_BEGIN = 16  # bytes that tell the format of a file
_NAME = re.compile(r".+\.(mcap|db3)(\.zstd)?")


@dataclass(frozen=True)
class BagFiles:
    """Files of a bag.

    Attributes:
        files: in the order in which they were recorded.
        packed_messages: whether each message is packed by itself (zstd).
    """

    files: tuple[Path, ...]
    packed_messages: bool = False


def find_files(path: Path, remarks: Remarks) -> BagFiles:
    """Find the files of a bag.

    Args:
        path: the bag's folder, or one of its files.
        remarks: takes in what is wrong with it.

    Raises:
        BagError: there is nothing that could be read.
    """
    if path.is_file():
        return BagFiles((path,))
    if not path.is_dir():
        raise BagError(f"{path} does not exist; must be the folder of a bag, or an .mcap or .db3 file")
    there = sorted((file for file in path.iterdir() if _NAME.fullmatch(file.name)), key=_natural)
    metadata = _metadata(path / METADATA_FILE, remarks)
    listed = _listed(path, metadata, remarks)
    files = listed + [file for file in there if file not in listed]
    if not files:
        raise BagError(f"{path} holds no bag: no .mcap or .db3 file in it")
    packed = str(metadata.get("compression_mode", "")).lower() == "message"
    return BagFiles(tuple(files), packed)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key by which part 10 comes after part 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _metadata(path: Path, remarks: Remarks) -> dict[str, Any]:
    """What metadata.yaml says, nothing if it is not there or cannot be read."""
    try:
        if path.stat().st_size > _METADATA_LONGEST:
            raise ValueError("it is too long")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = content["rosbag2_bagfile_information"]
        if not isinstance(found, dict):
            raise ValueError("it does not describe a bag")
    except FileNotFoundError:
        remarks.add(f"no {METADATA_FILE}: the recorder did not end properly")
    except (OSError, ValueError, TypeError, KeyError, RecursionError, yaml.YAMLError) as error:
        remarks.add(f"{METADATA_FILE} cannot be read ({' '.join(str(error).split())[:120]}): done without")
    else:
        return found
    return {}


def _listed(folder: Path, metadata: dict[str, Any], remarks: Remarks) -> list[Path]:
    """The files that the metadata lists, those that are there; never outside the folder."""
    names = metadata.get("relative_file_paths", [])
    files = [folder / Path(str(name)).name for name in names] if isinstance(names, list) else []
    for file in files:
        if not file.is_file():
            remarks.add(f"{file.name} is listed in {METADATA_FILE} but missing: its messages are left out")
    return list(dict.fromkeys(file for file in files if file.is_file()))


def storage_of(path: Path) -> tuple[str, bool]:
    """Tell a file by its first bytes.

    Returns:
        `mcap`, `sqlite3`, or empty for neither of them; and whether the file is packed as a whole (zstd).

    Raises:
        OSError: it cannot be read.
        DependencyError: it is packed, and the library to unpack it is not installed.
    """
    with path.open("rb") as file:
        begin = file.read(_BEGIN)
    packed = begin.startswith(zstd_file.MAGIC)
    if packed:
        begin = zstd_file.begin_of(path, _BEGIN)
    kinds = {"mcap": mcap_file.MAGIC, "sqlite3": sqlite_file.MAGIC}
    return next((kind for kind, magic in kinds.items() if begin.startswith(magic)), ""), packed
