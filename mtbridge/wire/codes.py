"""Every number of the wire, version 1: codes and the order of the fields.

A code keeps its meaning for ever; new ones are added at the end. `docs/protocol.md` prints the same
tables, and a test compares them.
"""

from __future__ import annotations

import struct
from enum import IntEnum

MAGIC = 0x3142544D
"""The first four bytes of a head, "MTB1", read as a little-endian number."""

VERSION = 1

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5555"
"""Where a worker listens and a client looks for it, unless told otherwise."""

HEAD_LAYOUT = (
    ("magic", "I"),
    ("version", "H"),
    ("head_bytes", "H"),
    ("kind", "H"),
    ("operation", "H"),
    ("status", "I"),
    ("request", "Q"),
    ("session", "Q"),
    ("sequence", "Q"),
    ("deadline_ms", "I"),
    ("part", "H"),
    ("parts", "H"),
    ("arrays", "H"),
    ("flags", "H"),
    ("zeros", "12s"),
)
ARRAY_LAYOUT = (
    ("role", "H"),
    ("dtype", "H"),
    ("ndim", "B"),
    ("order", "B"),
    ("zeros", "2s"),
    ("shape", "4Q"),
    ("bytes", "Q"),
)
HEAD = struct.Struct("<" + "".join(code for _, code in HEAD_LAYOUT))
ARRAY = struct.Struct("<" + "".join(code for _, code in ARRAY_LAYOUT))
HEAD_BYTES = HEAD.size
ARRAY_BYTES = ARRAY.size
MAX_DIMENSIONS = 4


class Kind(IntEnum):
    """What a message is."""

    REQUEST = 1
    RESULT = 2
    ERROR = 3
    PROGRESS = 4
    CANCEL = 5


class Operation(IntEnum):
    """What is asked for."""

    PING = 1
    MULTIPLY = 2
    GRAM = 3
    COVARIANCE = 4
    CORRELATION = 5
    ROLLING = 6
    EXPANDING = 7
    EWM = 8
    LAGGED = 9


class Status(IntEnum):
    """Why a request was not answered with a result; stable, for programs."""

    OK = 0
    MALFORMED = 1
    UNSUPPORTED = 2
    TOO_LARGE = 3
    BAD_SHAPE = 4
    BAD_VALUE = 5
    BAD_OPTIONS = 6
    DEADLINE = 7
    BUSY = 8
    DEVICE = 9
    STOPPING = 10
    INTERNAL = 11
    CANCELLED = 12


class Role(IntEnum):
    """What an array means in its message."""

    A = 1
    B = 2
    DATA = 3
    WEIGHTS = 4
    MASK = 5
    SYMBOLS = 6
    TIMES = 7
    RESULT = 8
    COUNTS = 9
    SCALARS = 10
    NAMES = 11
    INDICES = 12


class DType(IntEnum):
    """The element type of an array; always little-endian."""

    FLOAT32 = 1
    FLOAT64 = 2
    INT64 = 3
    UINT8 = 4
