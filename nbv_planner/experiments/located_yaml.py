"""YAML values that know the line they stand on, so that a message can name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.config_files import YamlLoader
from nbv_planner.errors import ConfigFileError, NbvPlannerError, UnknownNameError

Scalar = str | int | float | bool | None


class Located:
    """A value of a YAML file: where it stands, and its content once it is asked for.

    Attributes:
        line: number of the line, from 1; for an entry of a mapping that of its key.
        path: keys that lead to it, for example `planners.CSW`; empty for the whole file.
    """

    def __init__(self, file: str, path: str, line: int, node: yaml.Node, loader: YamlLoader) -> None:
        """Wrap a node of `loader`; the content is not looked at yet."""
        self.path, self.line = path, line
        self._file, self._node, self._loader = file, node, loader

    def error(self, text: object) -> ConfigFileError:
        """Error that names the file, the line and the keys."""
        where = f"{self.path}: " if self.path else ""
        return ConfigFileError(f"{self._file}, line {self.line}: {where}{' '.join(str(text).split())}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Say of an error of the package inside the `with` block that it comes from this value.

        Raises:
            ConfigFileError: the error, with the file, the line and the keys in front.
        """
        try:
            yield
        except NbvPlannerError as error:
            raise self.error(error) from error

    def named(self, path: str) -> Located:
        """Return the same value under other keys, for messages that name the field themselves."""
        return Located(self._file, path, self.line, self._node, self._loader)

    def mapping(self) -> dict[str, Located]:
        """Entries by key, in the order of the file.

        Raises:
            ConfigFileError: it is no mapping, or a key is there twice or is no plain word.
        """
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error("must be a mapping, 'key: value'")
        entries: dict[str, Located] = {}
        for key, value in self._node.value:
            entry = self._entry(key, value)
            name = str(key.value)
            if name in entries:
                raise entry.error(f"is given twice, first in line {entries[name].line}")
            entries[name] = entry
        return entries

    def _entry(self, key: yaml.Node, value: yaml.Node) -> Located:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            raise Located(self._file, self.path, line, key, self._loader).error("a key must be a plain word")
        path = f"{self.path}.{key.value}" if self.path else str(key.value)
        return Located(self._file, path, line, value, self._loader)

    def known_mapping(self, kind: str, known: Iterable[str]) -> dict[str, Located]:
        """Entries by key; keys that are not among `known` are refused as unknown `kind`.

        Raises:
            ConfigFileError: see :meth:`mapping`; or a key is not known, then all known ones are listed.
        """
        entries = self.mapping()
        for key, entry in entries.items():
            if key not in known:
                raise entry.named(self.path).error(UnknownNameError(kind, key, known))
        return entries

    @property
    def is_sequence(self) -> bool:
        """Whether it is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    def sequence(self) -> list[Located]:
        """Items of a list that is not empty.

        Raises:
            ConfigFileError: it is something else, or empty.
        """
        if not isinstance(self._node, yaml.SequenceNode) or not self._node.value:
            raise self.error("must be a list with at least one item")
        return [
            Located(self._file, self.path, item.start_mark.line + 1, item, self._loader) for item in self._node.value
        ]

    def scalar(self) -> Scalar:
        """Content of a single value.

        Raises:
            ConfigFileError: it is a list, a mapping, a date or something that YAML cannot read.
        """
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.error("must be a single value")
        try:
            value = self._loader.construct_object(self._node)  # type: ignore[no-untyped-call]
        except (yaml.YAMLError, ValueError) as error:
            raise self.error(error) from error
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise self.error(f"{self._node.value!r} is a {type(value).__name__}; quote it if text is meant")
        return value

    def text(self) -> str:
        """Content of a string.

        Raises:
            ConfigFileError: it is no string.
        """
        value = self.scalar()
        if not isinstance(value, str) or not value:
            raise self.error(f"{value!r} must be text")
        return value

    def value(self) -> Any:
        """Content of a single value or of a list of them."""
        return [item.scalar() for item in self.sequence()] if self.is_sequence else self.scalar()


def read_located(path: str | Path) -> tuple[str, Located]:
    """Read a YAML file.

    Returns:
        Its exact text, and its content.

    Raises:
        ConfigFileError: it cannot be read, or is empty.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
        loader = YamlLoader(text)
        node = loader.get_single_node()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigFileError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    if node is None:
        raise ConfigFileError(f"{path}: must be a mapping, 'key: value'")
    return text, Located(str(path), "", node.start_mark.line + 1, node, loader)
