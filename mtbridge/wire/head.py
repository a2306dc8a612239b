"""The head frame: 64 bytes about the message, then 48 bytes about each array.

All that can be refused is refused here and in `descriptor`, from the head and the lengths of the other
frames, before an array is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtbridge.errors import ProtocolError
from mtbridge.wire.codes import (
    ARRAY_BYTES,
    HEAD,
    HEAD_BYTES,
    MAGIC,
    VERSION,
    Kind,
    Operation,
    Status,
)
from mtbridge.wire.descriptor import ArrayHead, pack_array, parse_array
from mtbridge.wire.limits import Limits, readable_bytes

# Dictionaries, because calling an IntEnum costs a microsecond and a half for each of a dozen codes.
_KINDS: Final = {int(kind): kind for kind in Kind}
_OPERATIONS: Final[dict[int, int]] = {int(operation): operation for operation in Operation}

_HEAD_ZEROS: Final = bytes(12)


@dataclass(frozen=True, slots=True)
class Head:
    """The fixed part of a message.

    `operation` and `status` are plain numbers where an error reply carries one that is not known here.
    """

    kind: Kind
    operation: int = 0
    status: int = 0
    request: int = 0
    session: int = 0
    sequence: int = 0
    deadline_ms: int = 0
    part: int = 0
    parts: int = 1
    flags: int = 0


def pack_head(head: Head, arrays: Sequence[ArrayHead]) -> bytes:
    """Return the head frame of a message with these arrays."""
    packed = [
        HEAD.pack(
            MAGIC,
            VERSION,
            HEAD_BYTES + ARRAY_BYTES * len(arrays),
            head.kind,
            head.operation,
            head.status,
            head.request,
            head.session,
            head.sequence,
            head.deadline_ms,
            head.part,
            head.parts,
            len(arrays),
            head.flags,
            _HEAD_ZEROS,
        )
    ]
    packed.extend(map(pack_array, arrays))
    return b"".join(packed)


def peek(frame: memoryview) -> tuple[int, int]:
    """Return the request id and the operation of a head frame, however wrong the rest of it is.

    Both are 0 where the frame is too short for them or does not begin with the magic. Every later
    version keeps these fields where they are, so that an old worker can answer a new client.
    """
    if frame.nbytes < HEAD_BYTES:
        return 0, 0
    magic, _, _, _, operation, _, request, *_ = HEAD.unpack_from(frame)
    return (request, operation) if magic == MAGIC else (0, 0)


def parse_head(
    frame: memoryview, lengths: Sequence[int], limits: Limits
) -> tuple[Head, tuple[ArrayHead, ...]]:
    """Read and check the head frame of a message.

    Parameters
    ----------
    frame : the head frame
    lengths : the bytes of each frame after it, the options frame first
    limits : what may be in a message

    Raises
    ------
    ProtocolError
        With the status that the reply must carry.
    """
    if frame.nbytes < HEAD_BYTES:
        raise ProtocolError(
            f"The head frame has {frame.nbytes} bytes; a head has at least {HEAD_BYTES}.", Status.MALFORMED
        )
    (
        magic,
        version,
        head_bytes,
        kind,
        operation,
        status,
        request,
        session,
        sequence,
        deadline_ms,
        part,
        parts,
        arrays,
        flags,
        zeros,
    ) = HEAD.unpack_from(frame)
    if magic != MAGIC:
        raise ProtocolError(
            f"The head frame begins with {magic:#010x}; a message begins with {MAGIC:#010x}.",
            Status.MALFORMED,
        )
    if version != VERSION:
        raise ProtocolError(
            f"Version {version} is not spoken here; version {VERSION} is.", Status.UNSUPPORTED
        )
    expected = HEAD_BYTES + ARRAY_BYTES * arrays
    if head_bytes != expected or frame.nbytes != expected:
        raise ProtocolError(
            f"A head with {arrays} arrays has {expected} bytes, but head_bytes says {head_bytes} "
            f"and the frame has {frame.nbytes}.",
            Status.MALFORMED,
        )
    if arrays > limits.arrays:
        raise ProtocolError(
            f"The message has {arrays} arrays; at most {limits.arrays} are accepted.", Status.TOO_LARGE
        )
    if len(lengths) != arrays + 1:
        raise ProtocolError(
            f"The head announces {arrays + 2} frames, itself and the options included, "
            f"but {len(lengths) + 1} came.",
            Status.MALFORMED,
        )
    if lengths[0] > limits.options_bytes:
        raise ProtocolError(
            f"The options take {readable_bytes(lengths[0])}; "
            f"at most {readable_bytes(limits.options_bytes)} are accepted.",
            Status.TOO_LARGE,
        )
    if session or sequence or part or parts != 1 or flags or zeros != _HEAD_ZEROS:
        raise ProtocolError(
            f"In version {VERSION} session, sequence, part, flags and the last 12 bytes of the head are 0 "
            f"and parts is 1, but session is {session}, sequence {sequence}, part {part}, parts {parts}, "
            f"flags {flags} and the last bytes {bytes(zeros).hex()}.",
            Status.UNSUPPORTED,
        )
    head = Head(
        kind=_known_kind(kind, operation, status, deadline_ms, arrays),
        operation=_OPERATIONS.get(operation, operation),
        status=status,
        request=request,
        deadline_ms=deadline_ms,
    )
    return head, tuple(parse_array(frame, index, lengths[index + 1], limits) for index in range(arrays))


def _known_kind(code: int, operation: int, status: int, deadline_ms: int, arrays: int) -> Kind:
    """Return the kind, once the fields that it leaves unused are zero and its operation is known."""
    kind = _KINDS.get(code)
    if kind is None:
        raise ProtocolError(f"Kind {code} is not known; 1 to {len(_KINDS)} are.", Status.UNSUPPORTED)
    if kind is Kind.ERROR:
        # It may echo an operation that only the other side knows, and carry a status of a later day.
        if status == Status.OK:
            raise ProtocolError("An error has status 0; it must say what went wrong.", Status.MALFORMED)
    elif status:
        raise ProtocolError(
            f"The status of a {kind.name.lower()} is {status}; it must be 0.", Status.UNSUPPORTED
        )
    elif kind is Kind.CANCEL:
        if operation or deadline_ms or arrays:
            raise ProtocolError(
                f"A cancel has operation, deadline_ms and arrays at 0, but they are {operation}, "
                f"{deadline_ms} and {arrays}.",
                Status.UNSUPPORTED,
            )
    elif operation not in _OPERATIONS:
        raise ProtocolError(
            f"Operation {operation} is not known; 1 to {len(_OPERATIONS)} are.", Status.UNSUPPORTED
        )
    if deadline_ms and kind is not Kind.REQUEST:
        raise ProtocolError(
            f"The deadline of a {kind.name.lower()} is {deadline_ms} ms; only a request has one.",
            Status.UNSUPPORTED,
        )
    return kind
