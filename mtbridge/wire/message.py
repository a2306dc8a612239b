"""A whole message: dataclass to frames and back.

Payloads are never copied here: `encode` gives buffers that look at the arrays, `decode` gives arrays
that look at the frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.errors import ProtocolError
from mtbridge.wire.codes import DType, Kind, Operation, Role, Status
from mtbridge.wire.descriptor import ArrayHead
from mtbridge.wire.head import Head, pack_head, parse_head
from mtbridge.wire.limits import Limits, readable_bytes

Buffer: TypeAlias = bytes | bytearray | memoryview
"""One frame."""

_NUMPY_TYPES: Final = {
    DType.FLOAT32: np.dtype("<f4"),
    DType.FLOAT64: np.dtype("<f8"),
    DType.INT64: np.dtype("<i8"),
    DType.UINT8: np.dtype("u1"),
}
_DTYPES: Final = {numpy_type: dtype for dtype, numpy_type in _NUMPY_TYPES.items()}

MAX_TEXT_CHARACTERS = 600
"""A reply's sentence is cut after this."""


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """An array and what it means in its message."""

    role: Role
    data: NDArray[Any]

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.data.shape))
        order = "" if self.data.flags.c_contiguous else " Fortran"
        return f"{self.role.name.lower()} {shape} {self.data.dtype}{order}"


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A request, a cancel or a reply.

    Attributes
    ----------
    head : the fixed part
    options : UTF-8; a JSON object in a request, a sentence for people in a reply, or empty
    arrays : in the order of their frames
    """

    head: Head
    options: bytes = b""
    arrays: tuple[Array, ...] = ()

    @property
    def text(self) -> str:
        """The options frame as text, whatever its bytes are."""
        return self.options.decode("utf-8", errors="replace")

    def find(self, role: Role) -> NDArray[Any] | None:
        """Return the first array with this role, or None."""
        for array in self.arrays:
            if array.role is role:
                return array.data
        return None

    def __repr__(self) -> str:
        head = self.head
        # An error may echo an operation that is not known here, or none where the head could not be read.
        operation = (
            head.operation.name.lower() if isinstance(head.operation, Operation) else str(head.operation)
        )
        words = [f"{head.kind.name.lower()} {operation} #{head.request}"]
        if head.status:
            words.append(f"status {head.status}")
        words.extend(map(repr, self.arrays))
        words.append(readable_bytes(sum(array.data.nbytes for array in self.arrays)))
        return f"Message({', '.join(words)})"


def request(
    operation: Operation,
    number: int,
    arrays: Sequence[Array] = (),
    *,
    options: bytes = b"",
    deadline_ms: int = 0,
) -> Message:
    """Return a request with this id."""
    head = Head(Kind.REQUEST, operation=operation, request=number, deadline_ms=deadline_ms)
    return Message(head, options, tuple(arrays))


def result(to: Head, arrays: Sequence[Array], *, text: str = "") -> Message:
    """Return the result that answers the request with the head `to`."""
    head = Head(Kind.RESULT, operation=to.operation, request=to.request)
    return Message(head, _sentence(text), tuple(arrays))


def error(number: int, operation: int, status: int, text: str) -> Message:
    """Return the error reply to the request with this id; 0 where it could not be read."""
    return Message(Head(Kind.ERROR, operation=operation, status=status, request=number), _sentence(text))


def _sentence(text: str) -> bytes:
    """Return one line of UTF-8: what it quotes may be long, or hold line ends that would forge a log."""
    if not text.isprintable():
        text = "".join(
            character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
        )
    if len(text) > MAX_TEXT_CHARACTERS:
        text = text[: MAX_TEXT_CHARACTERS - 1] + "…"
    return text.encode("utf-8", errors="replace")


def array_head(array: Array) -> ArrayHead:
    """Return what the head frame says about `array`, which is C or Fortran contiguous.

    Raises
    ------
    ValueError
        If the array has gaps, or a type or a number of dimensions that the wire does not have:
        a mistake of the program, which must convert first.
    """
    data = array.data
    dtype = _DTYPES.get(data.dtype)
    if dtype is None or not 1 <= data.ndim <= 4 or not data.flags.forc:
        raise ValueError(f"{array!r} cannot be sent: it has the wrong dtype or dimensions, or gaps")
    order = "C" if data.flags.c_contiguous else "F"
    return ArrayHead(role=array.role, dtype=dtype, order=order, shape=data.shape, bytes=data.nbytes)


def encode(message: Message) -> list[Buffer]:
    """Return the frames of `message`: head, options, then a buffer for each array, looking at its memory.

    The arrays must stay as they are until the frames have been sent.

    Raises
    ------
    ValueError
        As `array_head`.
    """
    heads = [array_head(array) for array in message.arrays]
    frames: list[Buffer] = [pack_head(message.head, heads), message.options]
    for array, head in zip(message.arrays, heads, strict=True):
        data = array.data if head.order == "C" else array.data.T
        # By way of uint8, because a memoryview of an array at an odd address cannot be cast.
        frames.append(data.reshape(-1).view(np.uint8).data)
    return frames


def decode(frames: Sequence[Buffer], limits: Limits) -> Message:
    """Return the message in `frames`: head, options, arrays, without the envelope of the socket.

    Parameters
    ----------
    frames : bytes or memoryviews, at any address
    limits : what may be in a message

    Returns
    -------
    Message
        Its arrays are views of the frames: read-only, or not aligned, where the frames are.

    Raises
    ------
    ProtocolError
        For any bytes that are not a message; its status is that of docs/protocol.md.
    """
    if len(frames) < 2:
        raise ProtocolError(
            f"The message has {len(frames)} frames; it needs at least a head and an options frame.",
            Status.MALFORMED,
        )
    views = [memoryview(frame) for frame in frames]
    head, heads = parse_head(views[0], [view.nbytes for view in views[1:]], limits)
    arrays = tuple(
        Array(
            array.role,
            np.frombuffer(view, dtype=_NUMPY_TYPES[array.dtype]).reshape(array.shape, order=array.order),  # type: ignore[call-overload]
        )
        for array, view in zip(heads, views[2:], strict=True)
    )
    return Message(head, bytes(views[1]), arrays)
