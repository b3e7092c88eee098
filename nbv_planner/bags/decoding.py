"""Serialised messages as values, by the definitions of ROS 2 itself, never by those that a bag brings along."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from nbv_planner.bags.storage.raw import RawMessage, Topic
from nbv_planner.errors import DependencyError, InputRejectedError


@lru_cache(maxsize=1)
def typestore() -> Any:
    """Message definitions of ROS 2 Jazzy; the messages used here are the same in all distributions since Humble.

    Raises:
        DependencyError: rosbags is not installed.
    """
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise DependencyError(
            f"cannot import {error.name}: bags need rosbags (pip install '.[analysis]' in the checkout)"
        ) from error
    return get_typestore(Stores.ROS2_JAZZY)


def definition_problem(topic: Topic) -> str | None:
    """Say why messages of a topic cannot be read: the bag's definition of their type is another one; else None."""
    own = type_hash(topic.type)
    if own and topic.type_hash and topic.type_hash != own:
        return f"{topic.name}: the bag's definition of {topic.type} ({topic.type_hash}) is not that of ROS 2: not used"
    return None


def knows_type(kind: str) -> bool:
    """Whether the definition of a message type is known."""
    return kind in typestore().fielddefs


def type_hash(kind: str) -> str:
    """Hash of the definition of a message type (REP 2011), empty if it is not known."""
    return str(typestore().hash_rihs01(kind)) if knows_type(kind) else ""


def decode(message: RawMessage) -> Any:
    """Deserialise a message.

    Raises:
        InputRejectedError: reason `cdr`: its bytes are no message of its type.
        DependencyError: rosbags is not installed.
    """
    store = typestore()
    try:
        return store.deserialize_cdr(message.data, message.topic.type)
    except Exception as error:  # whatever damaged bytes lead to: they are refused, and nothing else happens
        raise InputRejectedError("cdr", f"{message.topic.name}: no {message.topic.type}: {error}") from error


def header_stamp(message: RawMessage) -> int:
    """Time stamp of a message that begins with a header, nanoseconds, without reading the rest of it.

    Raises:
        InputRejectedError: reason `cdr`: it is too short, or its byte order is not known.
    """
    data = message.data
    if len(data) < 12 or data[0] != 0 or data[1] > 1:
        raise InputRejectedError("cdr", f"{message.topic.name}: no serialised message")
    seconds, nanoseconds = struct.unpack_from("<iI" if data[1] else ">iI", data, 4)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)
