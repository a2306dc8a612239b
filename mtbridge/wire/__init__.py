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
from mtbridge.wire.options import (
    CorrelationOptions,
    CovarianceOptions,
    EwmOptions,
    ExpandingOptions,
    LaggedOptions,
    MovingOptions,
    NoOptions,
    Options,
    RollingOptions,
    decode_options,
    encode_options,
    make_options,
)

__all__ = [
    "DEFAULT_ENDPOINT",
    "HEAD_BYTES",
    "MAGIC",
    "VERSION",
    "Array",
    "ArrayHead",
    "Buffer",
    "CorrelationOptions",
    "CovarianceOptions",
    "DType",
    "EwmOptions",
    "ExpandingOptions",
    "Head",
    "Kind",
    "LaggedOptions",
    "Limits",
    "Message",
    "MovingOptions",
    "NoOptions",
    "Operation",
    "Options",
    "Role",
    "RollingOptions",
    "Status",
    "array_head",
    "decode",
    "decode_options",
    "encode",
    "encode_options",
    "error",
    "make_options",
    "peek",
    "readable_bytes",
    "request",
    "result",
]
