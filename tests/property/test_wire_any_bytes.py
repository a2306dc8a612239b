"""For any bytes at all, the wire gives a message or a documented error."""

# Both outcomes are right here, so pytest.raises does not fit.
# ruff: noqa: PT017
from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from mtbridge.errors import ProtocolError
from mtbridge.wire import (
    Array,
    Kind,
    Limits,
    Message,
    Operation,
    Role,
    Status,
    decode,
    decode_options,
    encode,
    peek,
    request,
)

LIMITS = Limits(frame_bytes=1 << 16, rows=5000, columns=5000)
FIELD = st.one_of(
    st.integers(0, 12),
    st.sampled_from([2**16 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]),
    st.integers(0, 2**64 - 1),
)


def message_or_refusal(frames: list[bytes], limits: Limits = LIMITS) -> Message | None:
    """Decode, and check all that must hold of the outcome."""
    number, operation = peek(memoryview(frames[0])) if frames else (0, 0)
    assert 0 <= number < 2**64
    assert 0 <= operation < 2**16
    try:
        message = decode(frames, limits)
    except ProtocolError as failure:
        assert failure.status in (Status.MALFORMED, Status.UNSUPPORTED, Status.TOO_LARGE, Status.BAD_SHAPE)
        assert len(str(failure)) < 600
        assert str(failure).endswith(".")
        return None
    assert message.head.request == number
    assert len(message.arrays) == len(frames) - 2
    for array, frame in zip(message.arrays, frames[2:], strict=True):
        assert array.data.nbytes == len(frame) <= limits.frame_bytes
    assert repr(message)
    return message


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_frames_are_a_message_or_refused(frames: list[bytes]) -> None:
    message_or_refusal(frames)


@given(st.binary(max_size=300), st.lists(st.binary(max_size=64), max_size=4))
def test_any_bytes_after_the_magic_are_a_message_or_refused(rest: bytes, others: list[bytes]) -> None:
    message_or_refusal([b"MTB1\x01\x00" + rest, *others])


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """A head whose sizes agree with themselves and whose other fields are anything."""
    count = draw(st.integers(0, 4))
    small = {"min_value": 0, "max_value": 10}
    head = struct.pack(
        "<IHHHHIQQQIHHHH12x",
        0x3142544D,
        1,
        64 + 48 * count,
        draw(st.integers(**small)),
        draw(st.integers(**small)),
        draw(st.sampled_from([0, 0, 0, 1])),
        draw(FIELD),
        *(0, 0),
        draw(st.sampled_from([0, 5])),
        *(0, 1),
        count,
        0,
    )
    for _ in range(count):
        head += struct.pack(
            "<HHBB2x5Q",
            draw(st.integers(0, 13)),
            draw(st.integers(0, 5)),
            draw(st.integers(0, 5)),
            draw(st.integers(0, 2)),
            *(draw(FIELD) for _ in range(5)),
        )
    return head


@given(heads(), st.lists(st.binary(max_size=64), max_size=5))
@settings(max_examples=300)
def test_a_plausible_head_with_any_claims_is_a_message_or_refused(head: bytes, others: list[bytes]) -> None:
    message_or_refusal([head, *others])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """A request whose arrays are of any allowed type, shape and order."""
    arrays = []
    for _ in range(draw(st.integers(0, 3))):
        shape = draw(arrays_of.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6))
        dtype = draw(st.sampled_from(["float32", "float64", "int64", "uint8"]))
        raw = draw(
            st.binary(
                min_size=math.prod(shape) * np.dtype(dtype).itemsize,
                max_size=math.prod(shape) * np.dtype(dtype).itemsize,
            )
        )
        data = np.frombuffer(raw, dtype).reshape(shape, order=draw(st.sampled_from("CF")))
        arrays.append(Array(draw(st.sampled_from(Role)), data))
    return request(
        draw(st.sampled_from(Operation)),
        draw(st.integers(0, 2**64 - 1)),
        arrays,
        options=draw(st.binary(max_size=50)),
        deadline_ms=draw(st.integers(0, 2**32 - 1)),
    )


@given(messages())
def test_what_is_encoded_is_decoded_to_the_same(message: Message) -> None:
    frames = [bytes(frame) for frame in encode(message)]
    back = message_or_refusal(frames)
    assert back is not None
    assert back.head == message.head
    assert back.options == message.options
    for found, sent in zip(back.arrays, message.arrays, strict=True):
        assert found.role is sent.role
        assert found.data.dtype == sent.data.dtype
        assert found.data.shape == sent.data.shape
        # bytes, not values: a NaN has many bit patterns
        assert found.data.tobytes() == sent.data.tobytes()
    assert [bytes(frame) for frame in encode(back)] == frames


@given(messages(), st.data())
@settings(max_examples=300)
def test_a_message_with_changed_bytes_is_a_message_or_refused(message: Message, data: st.DataObject) -> None:
    frames = [bytearray(frame) for frame in encode(message)]
    for _ in range(data.draw(st.integers(1, 4))):
        frame = data.draw(st.sampled_from(frames))
        if frame:
            frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    message_or_refusal([bytes(frame) for frame in frames])


@given(messages(), st.data())
def test_a_message_cut_or_lengthened_is_a_message_or_refused(message: Message, data: st.DataObject) -> None:
    frames: list[bytes] = [bytes(frame) for frame in encode(message)]
    index = data.draw(st.integers(0, len(frames) - 1))
    change = data.draw(st.sampled_from(["drop", "repeat", "cut", "lengthen", "swap"]))
    if change == "drop":
        del frames[index]
    elif change == "repeat":
        frames.insert(index, frames[index])
    elif change == "cut":
        frames[index] = frames[index][: data.draw(st.integers(0, len(frames[index])))]
    elif change == "lengthen":
        frames[index] += data.draw(st.binary(min_size=1, max_size=9))
    else:
        frames[0], frames[index] = frames[index], frames[0]
    message_or_refusal(frames)


@given(
    st.sampled_from(Operation),
    st.one_of(
        st.binary(max_size=80),
        st.text(alphabet='{}[]",:0123456789.eE-+ndofatrulse ', max_size=40).map(str.encode),
    ),
)
@settings(max_examples=300)
def test_any_options_are_options_or_refused(operation: Operation, options: bytes) -> None:
    try:
        found: Any = decode_options(operation, options)
    except ProtocolError as failure:
        assert failure.status == Status.BAD_OPTIONS
    else:
        assert not options or options.strip().startswith(b"{")
        assert getattr(found, "ddof", 1) >= 0


def test_the_kinds_and_operations_of_the_strategies_reach_both_outcomes() -> None:
    frames = [bytes(frame) for frame in encode(request(Operation.PING, 1))]
    message = message_or_refusal(frames)
    assert message is not None
    assert message.head.kind is Kind.REQUEST
    assert message_or_refusal([frames[0][:-1], b""]) is None
