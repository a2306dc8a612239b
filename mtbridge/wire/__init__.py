"""The wire format, version 1: frozen dataclasses to frames and back, with no socket in sight.

`docs/protocol.md` is the contract. `codes` has the numbers, `head` and `descriptor` the fixed part,
`message` the whole.
"""

from __future__ import annotations

from mtbridge.wire.codes import (
    DEFAULT_ENDPOINT,
    HEAD_BYTES,
    MAGIC,
    VERSION,
    DType,
    Kind,
    Operation,
    Role,
    Status,
)
from mtbridge.wire.descriptor import ArrayHead
from mtbridge.wire.head import Head, peek
from mtbridge.wire.limits import Limits, readable_bytes
from mtbridge.wire.message import Array, Buffer, Message, array_head, decode, encode, error, request, result
from mtbridge.wire.options import CovarianceOptions, NoOptions, decode_options, encode_options

__all__ = [
    "DEFAULT_ENDPOINT",
    "HEAD_BYTES",
    "MAGIC",
    "VERSION",
    "Array",
    "ArrayHead",
    "Buffer",
    "CovarianceOptions",
    "DType",
    "Head",
    "Kind",
    "Limits",
    "Message",
    "NoOptions",
    "Operation",
    "Role",
    "Status",
    "array_head",
    "decode",
    "decode_options",
    "encode",
    "encode_options",
    "error",
    "peek",
    "readable_bytes",
    "request",
    "result",
]
