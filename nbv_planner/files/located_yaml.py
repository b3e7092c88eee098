"""YAML whose values know their lines: how all that is written by hand is read, each error in one
line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from nbv_planner.errors import ConfigFileError, NbvPlannerError, UnknownNameError, reason, shown
from nbv_planner.system import read_regular

Scalar = str | int | float | bool | None
DEEPEST = 50
MOST_VALUES = 10**6
LONGEST_NUMBER = 100
"""Levels and values that a text may have once its aliases are followed, and characters of a
number.
"""
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
# No name of a file has the first, no encoding the others.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


class YamlLoader(yaml.SafeLoader):
    """Safe loader that reads `1e-3` as a number and `y` as true, as ROS does; YAML 1.1 as PyYAML
    has it does not.

    Nested values, those that aliases make, and numbers are limited. Whatever it reads, it raises a
    `YAMLError` alone, with the line, or while it divides the text a ValueError.
    """

    bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        """Begin to read a text."""
        super().__init__(text)
        self._depth = 0
        # number of values and levels, aliases followed
        self._extent: dict[yaml.Node, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a value and all below it, within the limits."""
        mark, is_alias = self.peek_event().start_mark, self.check_event(yaml.AliasEvent)  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > DEEPEST:
            raise ComposerError(None, None, f"values are nested more than {DEEPEST} deep", mark)
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[no-untyped-call]
        if node is not None:
            self._limit(node, mark, is_alias)
        self._depth -= 1
        return node

    def _limit(self, node: yaml.Node, mark: Any, is_alias: bool) -> None:
        if is_alias and node not in self._extent:
            raise ComposerError(None, None, "a value contains itself", mark)
        if not is_alias:
            below = node.value if isinstance(node, yaml.CollectionNode) else []
            parts = [part for one in below for part in (one if isinstance(one, tuple) else (one,))]
            sizes, levels = zip((0, 0), *(self._extent[part] for part in parts), strict=True)
            self._extent[node] = 1 + sum(sizes), 1 + max(levels)
        number, height = self._extent[node]
        if number > MOST_VALUES or self._depth + height - 1 > DEEPEST:
            raise ComposerError(
                None, None, f"aliases make more than {MOST_VALUES} values or {DEEPEST} levels", mark
            )
        if node.tag not in (*self.yaml_constructors, _MERGE):
            raise ComposerError(None, None, f"the tag {shown(node.tag)} is not allowed", mark)
        if isinstance(node, yaml.ScalarNode) and _NO_TEXT.search(node.value):
            raise ComposerError(
                None, None, f"{shown(node.value)} has a character that is not allowed in text", mark
            )

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build a value; what its tag does not admit (dates, numbers, ...) raises a `YAMLError`,
        too.
        """
        kind = node.tag.removeprefix(_TAG)
        if kind in ("int", "float") and len(node.value) > LONGEST_NUMBER:
            words = f"{shown(node.value)}: a number must have {LONGEST_NUMBER} characters or fewer"
            raise ConstructorError(None, None, words, node.start_mark)
        try:
            return super().construct_object(node, deep)  # type: ignore[no-untyped-call]
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            words = f"{shown(node.value)} is no {kind}: {reason(error)}"
            raise ConstructorError(None, None, words, node.start_mark) from error


class _YamlDumper(yaml.SafeDumper):
    """Safe dumper that quotes what :class:`YamlLoader` and ROS would not read as text."""


for _kind in (YamlLoader, _YamlDumper):
    _kind.add_implicit_resolver(
        f"{_TAG}float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
    )
    _kind.add_implicit_resolver(f"{_TAG}bool", re.compile(r"^[yYnN]$"), list("yYnN"))


@dataclass(frozen=True, eq=False)
class Located:
    """A value of a YAML file: its position, and its content, read on demand.

    Raises:
        ConfigFileError: by all that reads its content: it is something else; names the file, the
            line and the keys.
    """

    file: str
    path: str  #: keys that lead to it, for example `planners.CSW`; empty for the whole file.
    #: number of the line, from 1; for an entry of a mapping that of its key; 0 if the text is no
    #: file.
    line: int
    node: yaml.Node  #: what YAML has parsed there.

    def error(self, text: object) -> ConfigFileError:
        """Error that names the file, the line and the keys."""
        place = f"{self.file}, line {self.line}: " if self.line else f"{self.file}: "
        keys = f"{self.path}: " if self.path else ""
        return ConfigFileError(f"{place}{keys}{' '.join(str(text).split())}")

    def _line_of(self, node: yaml.Node) -> int:
        return node.start_mark.line + 1 if self.line else 0

    @contextmanager
    def errors_here(self) -> Iterator[None]:
        """Attribute errors of the package inside the `with` block to this value."""
        try:
            yield
        except NbvPlannerError as error:
            raise self.error(error) from error

    def named(self, path: str) -> Located:
        """Return the same value under other keys, for messages that name the field themselves."""
        return replace(self, path=path)

    @property
    def is_mapping(self) -> bool:
        """Whether it has entries by key."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_sequence(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    def entries(self, *, merged: bool = False) -> list[tuple[str, Located]]:
        """Entries with their keys, in the order of the file; each key is a plain word, or `<<` if
        `merged`.
        """
        if not self.is_mapping or self.node.tag != f"{_TAG}map":
            raise self.error("must be a mapping, 'key: value'")
        found = list[tuple[str, Located]]()
        for key, value in self.node.value:
            line = self._line_of(key)
            if merged and key.tag == _MERGE:
                found[:0] = replace(self, line=line, node=value).entries(merged=True)
                continue
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                raise replace(self, line=line).error("a key must be a plain word")
            name = str(key.value)
            found.append(
                (
                    name,
                    Located(self.file, f"{self.path}.{name}" if self.path else name, line, value),
                )
            )
        return found

    def mapping(self) -> dict[str, Located]:
        """Entries by key, in the order of the file; each key is a plain word, given once."""
        entries: dict[str, Located] = {}
        for name, entry in self.entries():
            if name in entries:
                raise entry.error(f"is given twice, first in line {entries[name].line}")
            entries[name] = entry
        return entries

    def known_mapping(self, kind: str, known: Iterable[str]) -> dict[str, Located]:
        """Entries by key; keys that are not among `known` are refused as unknown `kind`, and all
        known ones listed.
        """
        entries = self.mapping()
        for key, entry in entries.items():
            if key not in known:
                raise entry.named(self.path).error(UnknownNameError(kind, key, known))
        return entries

    def items(self) -> list[Located]:
        """Items of a list."""
        if not self.is_sequence or self.node.tag != f"{_TAG}seq":
            raise self.error("must be a list")
        return [replace(self, line=self._line_of(item), node=item) for item in self.node.value]

    def sequence(self) -> list[Located]:
        """Items of a list that is not empty."""
        if not self.is_sequence or not self.node.value:
            raise self.error("must be a list with at least one item")
        return self.items()

    def scalar(self) -> Scalar:
        """Content of a single value: no list, mapping or date, and nothing that YAML cannot
        read.
        """
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error("must be a single value")
        try:
            value = YamlLoader("").construct_object(self.node)
        except yaml.YAMLError as error:
            raise self.error(_words(error)) from error
        if not isinstance(value, (str, int, float, bool, type(None))):
            kind = type(value).__name__
            raise self.error(f"{shown(self.node.value)} is a {kind}; quote it if text is meant")
        return value

    def text(self) -> str:
        """Content of a string."""
        value = self.scalar()
        if not isinstance(value, str) or not value:
            raise self.error(f"{shown(value)} must be text")
        return value

    def value(self) -> Any:
        """Content of a single value or of a list of them."""
        return [item.scalar() for item in self.sequence()] if self.is_sequence else self.scalar()

    def plain(self) -> Any:
        """Content of any value: mappings as dictionaries by their keys as text; the last one of a
        key counts.
        """
        if self.is_mapping:
            return {name: entry.plain() for name, entry in self.entries(merged=True)}
        return [item.plain() for item in self.items()] if self.is_sequence else self.scalar()

    def number(self) -> float:
        """A finite number."""
        value = self.plain()
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.error(f"{shown(value)} must be a finite number")
        return float(value)

    def numbers(self, count: int) -> list[float]:
        """A list of `count` finite numbers."""
        if not self.is_sequence or len(self.items()) != count:
            raise self.error(f"{shown(self.plain())} must be {count} finite numbers")
        return [item.number() for item in self.items()]


def read_located(path: str | Path) -> tuple[str, Located]:
    """Read a YAML file: its exact text, and its content.

    Raises:
        ConfigFileError: it cannot be read, or is empty.
    """
    try:
        text = read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigFileError(f"cannot read {path}: {reason(error)}") from error
    return text, located(text, str(path))


def located(text: str, file: str, *, has_lines: bool = True) -> Located:
    """Read YAML; the `file` is where errors say that it is from, with the line unless it has none.

    Raises:
        ConfigFileError: it cannot be read, or is empty; names the line.
    """
    try:
        node = YamlLoader(text).get_single_node()  # type: ignore[no-untyped-call]
    except (yaml.YAMLError, ValueError, ArithmeticError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None and has_lines else ""
        raise ConfigFileError(f"cannot read {file}{where}: {_words(error)}") from error
    if node is None:
        raise ConfigFileError(f"{file}: must be a mapping, 'key: value'")
    return Located(file, "", node.start_mark.line + 1 if has_lines else 0, node)


def dumped(content: Any) -> str:
    """Write plain values as YAML, in their order."""
    return str(yaml.dump(content, Dumper=_YamlDumper, sort_keys=False))


def _words(error: Exception) -> str:
    """What is wrong, without the place in the words of YAML."""
    parts = [getattr(error, name, None) for name in ("context", "problem", "note")]
    return " ".join(filter(None, parts)) or reason(error)
