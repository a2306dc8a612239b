"""`mtbridge.wire` with bytes alone: no socket."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mtbridge.errors import OptionError, ProtocolError
from mtbridge.wire import (
    Array,
    CovarianceOptions,
    Head,
    Kind,
    Limits,
    Message,
    NoOptions,
    Operation,
    Role,
    Status,
    decode,
    decode_options,
    encode,
    encode_options,
    error,
    peek,
    readable_bytes,
    request,
    result,
)
from mtbridge.wire.codes import ARRAY, HEAD

LIMITS = Limits()


def gram(X: np.ndarray, number: int = 7) -> list[bytes]:
    return [bytes(frame) for frame in encode(request(Operation.GRAM, number, [Array(Role.DATA, X)]))]


def test_a_head_has_64_bytes_and_an_array_48_more() -> None:
    assert HEAD.size == 64
    assert ARRAY.size == 48


def test_a_request_has_the_bytes_that_were_written_by_hand() -> None:
    head = (
        b"MTB1" + b"\x01\x00" + b"\x70\x00" + b"\x01\x00" + b"\x05\x00" + bytes(4)
        + b"\x2a\x00\x00\x00\x00\x00\x00\x00" + bytes(16)
        + b"\xe8\x03\x00\x00" + b"\x00\x00" + b"\x01\x00" + b"\x01\x00" + b"\x00\x00" + bytes(12)
        + b"\x03\x00" + b"\x02\x00" + b"\x02" + b"\x00" + bytes(2)
        + b"\x01" + bytes(7) + b"\x02" + bytes(7) + bytes(16)
        + b"\x10" + bytes(7)
    )  # fmt: skip
    payload = struct.pack("<2d", 1.0, -2.0)
    data = np.array([[1.0, -2.0]])
    message = request(Operation.CORRELATION, 42, [Array(Role.DATA, data)], options=b"{}", deadline_ms=1000)
    assert [bytes(frame) for frame in encode(message)] == [head, b"{}", payload]
    back = decode([head, b"{}", payload], LIMITS)
    assert back.head == message.head
    assert back.options == b"{}"
    np.testing.assert_array_equal(back.arrays[0].data, data)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1,), (5,), (1, 1), (1, 7), (7, 1), (37, 11), (2, 3, 4), (2, 3, 4, 5)])
def test_an_array_comes_back_with_its_dtype_order_and_shape(
    dtype: str, order: str, shape: tuple[int, ...]
) -> None:
    data = np.asarray(np.arange(np.prod(shape)).reshape(shape) % 251, dtype=dtype, order=order)
    frames = encode(result(Head(Kind.REQUEST, operation=Operation.GRAM), [Array(Role.RESULT, data)]))
    (array,) = decode(frames, LIMITS).arrays
    assert array.data.dtype == data.dtype
    assert array.data.flags.c_contiguous == data.flags.c_contiguous
    np.testing.assert_array_equal(array.data, data)


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_payload_is_copied_on_the_way_out_or_in(order: str) -> None:
    data = np.asarray(np.arange(35.0).reshape(5, 7), order=order)
    frames = encode(request(Operation.GRAM, 1, [Array(Role.DATA, data)]))
    assert np.shares_memory(np.frombuffer(frames[2], np.uint8), data)
    assert np.shares_memory(decode(frames, LIMITS).arrays[0].data, data)


@pytest.mark.parametrize("offset", range(8))
def test_a_frame_may_lie_at_any_address(offset: int) -> None:
    data = np.arange(6.0).reshape(2, 3)
    frames = gram(data)
    memory = memoryview(bytearray(offset) + frames[2])[offset:]
    found = decode([frames[0], b"", memory], LIMITS).arrays[0].data
    np.testing.assert_array_equal(found, data)
    again = encode(request(Operation.GRAM, 7, [Array(Role.DATA, found)]))
    assert [bytes(frame) for frame in again] == frames


def test_an_array_with_gaps_or_of_another_type_is_a_mistake_of_the_program() -> None:
    for data in (
        np.zeros((4, 4))[::2, ::2],
        np.zeros((2, 2), np.int32),
        np.zeros((2, 2), ">f8"),
        np.array(1.0),
    ):
        with pytest.raises(ValueError, match="cannot be sent"):
            encode(request(Operation.GRAM, 1, [Array(Role.DATA, data)]))


def test_the_id_of_a_refused_head_can_still_be_read() -> None:
    frames = gram(np.ones((2, 2)), number=2**64 - 1)
    other_version = frames[0][:4] + b"\x09\x00" + frames[0][6:]
    assert peek(memoryview(other_version)) == (2**64 - 1, Operation.GRAM)
    assert peek(memoryview(frames[0][:63])) == (0, 0)
    assert peek(memoryview(b"XTB1" + frames[0][4:])) == (0, 0)
    assert peek(memoryview(b"")) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(frame_bytes=95), "takes 96 bytes; a frame may have 95 bytes"),
        (Limits(rows=3), "is 4x3; at most 3 rows"),
        (Limits(columns=2), "2 columns"),
        (Limits(options_bytes=1), "options take 2 bytes"),
    ],
)
def test_each_limit_is_kept_and_named(limits: Limits, words: str) -> None:
    frames = gram(np.ones((4, 3)))
    frames[1] = b"{}"
    with pytest.raises(ProtocolError, match=words) as caught:
        decode(frames, limits)
    assert caught.value.status == Status.TOO_LARGE
    assert decode(frames, Limits(frame_bytes=96, rows=4, columns=3, options_bytes=2, arrays=1)).arrays


def test_more_arrays_than_the_limit_are_refused() -> None:
    frames = encode(request(Operation.MULTIPLY, 1, [Array(Role.A, np.ones((1, 1)))] * 3))
    with pytest.raises(ProtocolError, match="3 arrays; at most 2") as caught:
        decode(frames, Limits(arrays=2))
    assert caught.value.status == Status.TOO_LARGE


def test_a_limit_is_a_positive_whole_number() -> None:
    with pytest.raises(OptionError, match="frame_bytes is 0"):
        Limits(frame_bytes=0)


def test_an_answer_too_large_for_a_frame_is_refused_before_it_is_computed() -> None:
    limits = Limits(frame_bytes=800)
    limits.check_result((10, 10), 8)
    with pytest.raises(ProtocolError, match="11x10 elements would take 880 bytes") as caught:
        limits.check_result((11, 10), 8)
    assert caught.value.status == Status.TOO_LARGE
    with pytest.raises(ProtocolError, match="EiB"):
        limits.check_result((2**40, 2**40), 8)


def test_an_error_may_carry_codes_of_a_later_day() -> None:
    back = decode(encode(error(9, 77, 500, "Something new.")), LIMITS)
    assert (back.head.kind, back.head.operation, back.head.status) == (Kind.ERROR, 77, 500)
    assert back.text == "Something new."


def test_an_error_with_status_0_is_none() -> None:
    with pytest.raises(ProtocolError, match="status 0"):
        decode(encode(Message(Head(Kind.ERROR))), LIMITS)


@pytest.mark.parametrize("kind", [Kind.RESULT, Kind.PROGRESS])
def test_only_a_request_has_a_deadline(kind: Kind) -> None:
    head = Head(kind, operation=Operation.GRAM, deadline_ms=5)
    with pytest.raises(ProtocolError, match="only a request has one"):
        decode(encode(Message(head)), LIMITS)


@pytest.mark.parametrize(
    "head", [Head(Kind.CANCEL, operation=Operation.GRAM), Head(Kind.CANCEL, deadline_ms=1)]
)
def test_a_cancel_names_nothing_but_the_request(head: Head) -> None:
    with pytest.raises(ProtocolError, match="cancel"):
        decode(encode(Message(head)), LIMITS)


def test_a_sentence_is_cut_where_it_quotes_too_much() -> None:
    assert len(error(1, 2, Status.BAD_OPTIONS, "x" * 100_000).text) == 600


def test_a_sentence_is_one_line_whatever_it_quotes() -> None:
    text = error(1, 2, Status.BAD_OPTIONS, "unknown field `a\nb\x1b[2J\ud800` of Золото, 5 £").text
    assert text == "unknown field `a\ufffdb\ufffd[2J\ufffd` of Золото, 5 £"


def test_text_that_is_not_utf8_can_be_shown_all_the_same() -> None:
    assert Message(Head(Kind.ERROR, status=1), b"\xff\xfe").text == "\ufffd\ufffd"


def test_a_message_prints_its_sizes_and_never_its_payload() -> None:
    data = np.asarray(np.full((60, 50), 1234.5, np.float32), order="F")
    printed = repr(request(Operation.CORRELATION, 12, [Array(Role.DATA, data)]))
    assert printed == "Message(request correlation #12, data 60x50 float32 Fortran, 11.7 KiB)"
    assert repr(error(3, 99, 2, "no")) == "Message(error 99 #3, status 2, 0 bytes)"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 90, "1073741824.0 EiB"),
    ],
)
def test_sizes_are_written_as_people_read_them(number: int, words: str) -> None:
    assert readable_bytes(number) == words


def test_empty_options_are_the_defaults() -> None:
    assert decode_options(Operation.COVARIANCE, b"") == CovarianceOptions(ddof=1)
    assert decode_options(Operation.GRAM, b"{}") == NoOptions()
    assert encode_options(CovarianceOptions()) == b""
    assert decode_options(Operation.COVARIANCE, encode_options(CovarianceOptions(ddof=0))).ddof == 0


@pytest.mark.parametrize(
    "options",
    [
        b'{"dof":1}',
        b'{"ddof":1.0}',
        b'{"ddof":"1"}',
        b'{"ddof":true}',
        b'{"ddof":null}',
        b'{"ddof":-1}',
        b'{"ddof":99999999999999999999}',
        b'{"ddof":NaN}',
        b"[1]",
        b"1",
        b" ",
        b"\xff",
        b'{"\xff":1}',
        b'{"ddof":1',
        b'{"ddof":1}}',
        b'{"ddof":' + b"[" * 60_000,
        b'{"a":' * 12_000,
        b"[" * 65_000,
    ],
)
def test_options_that_are_not_exactly_right_are_refused(options: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_options(Operation.COVARIANCE, options)
    assert caught.value.status == Status.BAD_OPTIONS


def test_an_unknown_option_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ProtocolError, match=r"unknown field `dof`.*Options of this operation: ddof, missing"):
        decode_options(Operation.COVARIANCE, b'{"dof":1}')
