"""The optima that have been computed before, one JSON file each."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.errors import ResultsError
from nbv_planner.geometry import BoolArray
from nbv_planner.scene import Scene

FORMAT = "nbv_planner optimum"
FORMAT_VERSION = 1


def default_cache() -> Path:
    """Folder of the cache: `nbv_planner` in `XDG_CACHE_HOME` if that is a full path, else in `~/.cache`."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "nbv_planner"


@dataclass(frozen=True)
class CacheEntry:
    """Place of one optimum.

    Attributes:
        path: the file.
        key: digest of what the optimum depends on.
    """

    path: Path
    key: str

    @classmethod
    def of(cls, visible: BoolArray, folder: str | Path | None) -> CacheEntry:
        """Find the place by which candidate sees which point, shape (V, P).

        That is all the optimum depends on: object, pixel, scene and candidates make it up, and so does the observation
        function, whose change no list of these would show.
        """
        digest = hashlib.sha256(repr(visible.shape).encode())
        digest.update(np.packbits(visible).tobytes())
        key = digest.hexdigest()
        return cls((default_cache() if folder is None else Path(folder)) / f"optimum-{key[:32]}.json", key)

    def load(self) -> Any:
        """Read what has been stored, unchecked; None if nothing has.

        Raises:
            ResultsError: the file cannot be read, or is not one that this version has written.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ResultsError(f"cannot read {self.path}: {error}") from error
        expected = {"format": FORMAT, "format_version": FORMAT_VERSION, "key": self.key}
        found = {name: content.get(name) for name in expected} if isinstance(content, dict) else content
        if found != expected:
            raise ResultsError(f"{self.path} is not a file of format {FORMAT!r}, version {FORMAT_VERSION}, for its key")
        return content.get("optimum") or {}

    def store(self, optimum: dict[str, Any], scene: Scene) -> None:
        """Write the optimum; readers see the whole file or none. The scene is for those who read the file.

        Raises:
            ResultsError: the folder cannot be written.
        """
        content = {
            "format": FORMAT, "format_version": FORMAT_VERSION, "key": self.key, "scene": asdict(scene),
            "optimum": optimum,
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(json.dumps(content, indent=1) + "\n")
        except OSError as error:
            raise ResultsError(f"cannot write {self.path}: {error.strerror}") from error

    def _replace(self, text: str) -> None:
        """Write beside the place and move there."""
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".optimum-") as scratch:
            written = Path(scratch) / self.path.name
            written.write_text(text, encoding="utf-8")
            os.replace(written, self.path)
