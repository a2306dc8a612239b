"""`mtbridge.service` without a socket: messages in, messages out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from service_requests import Idle

import mtbridge
from mtbridge.compute import Engine, open_engine
from mtbridge.compute.host import NumpyEngine
from mtbridge.errors import DeviceError
from mtbridge.service import Service
from mtbridge.wire import Array, Head, Kind, Limits, Message, Operation, Role, Status, encode, request

X = np.array([[1.0, 2.0, 4.0], [2.0, 1.0, 3.0], [4.0, 3.0, 1.0], [3.0, 5.0, 2.0]])


@pytest.fixture
def engine() -> Iterator[Engine]:
    with open_engine("numpy") as engine:
        yield engine


@pytest.fixture
def service(engine: Engine) -> Service:
    return Service(engine)


def text(words: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(words.encode(), np.uint8)


def ask(service: Service, operation: Operation, *arrays: Array, options: bytes = b"") -> Message:
    reply = service.answer(request(operation, 99, arrays, options=options))
    assert reply.head.request == 99
    assert reply.head.operation == operation
    encode(reply)
    return reply


def refusal(service: Service, operation: Operation, *arrays: Array, options: bytes = b"") -> tuple[int, str]:
    reply = ask(service, operation, *arrays, options=options)
    assert reply.head.kind is Kind.ERROR, reply
    assert not reply.arrays
    assert reply.text.endswith(".")
    assert "\n" not in reply.text
    assert "Traceback" not in reply.text
    return reply.head.status, reply.text


def result_of(reply: Message, role: Role = Role.RESULT) -> np.ndarray[Any, Any]:
    assert reply.head.kind is Kind.RESULT, reply.text
    found = reply.find(role)
    assert found is not None
    return found


def test_a_ping_tells_versions_limits_operations_and_the_engine(engine: Engine) -> None:
    limits = Limits(frame_bytes=1000, arrays=4, rows=30, columns=20)
    reply = ask(Service(engine, limits), Operation.PING)
    assert result_of(reply).tolist() == [1, 1, 1000, 4, 30, 20]
    assert result_of(reply, Role.COUNTS).tolist() == list(Operation)
    names = result_of(reply, Role.NAMES).tobytes().decode().split("\n")
    assert names == [f"mtbridge {mtbridge.__version__}", "numpy", engine.device]
    assert reply.text == f"mtbridge {mtbridge.__version__}, numpy on {engine.device}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_operation_gives_what_numpy_gives_in_the_dtype_of_the_data(
    service: Service, dtype: str, order: str
) -> None:
    data = np.asarray(X, dtype=dtype, order=order)
    array = Array(Role.DATA, data)
    tolerance = 16 * len(X) * np.finfo(dtype).eps
    expected = {
        Operation.GRAM: X.T @ X,
        Operation.COVARIANCE: np.cov(X, rowvar=False),
        Operation.CORRELATION: np.corrcoef(X, rowvar=False),
    }
    for operation, matrix in expected.items():
        found = result_of(ask(service, operation, array))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, matrix, rtol=tolerance, atol=tolerance)
    product = ask(service, Operation.MULTIPLY, Array(Role.B, np.asfortranarray(data.T)), Array(Role.A, data))
    np.testing.assert_allclose(result_of(product), X @ X.T, rtol=tolerance)


def test_ddof_is_an_option_of_covariance(service: Service) -> None:
    found = ask(service, Operation.COVARIANCE, Array(Role.DATA, X), options=b'{"ddof":0}')
    np.testing.assert_allclose(result_of(found), np.cov(X, rowvar=False, ddof=0), rtol=1e-14)


def test_rows_within_ddof_give_nan_and_not_an_error(service: Service) -> None:
    found = result_of(ask(service, Operation.COVARIANCE, Array(Role.DATA, X[:1])))
    assert np.isnan(found).all()


def test_the_counts_are_the_rows_behind_each_element(service: Service) -> None:
    counts = result_of(ask(service, Operation.CORRELATION, Array(Role.DATA, X)), Role.COUNTS)
    assert counts.dtype == np.int64
    assert counts.tolist() == [[4] * 3] * 3


@pytest.mark.parametrize(
    "names", ["EURUSD.£\n@ES\nЗолото", "a\nb\nc\n", " \n\t\nEUR/USD", "x" * 64 + "\ny\nz"]
)
def test_symbols_come_back_byte_for_byte(service: Service, names: str) -> None:
    symbols = Array(Role.SYMBOLS, text(names))
    reply = ask(service, Operation.CORRELATION, symbols, Array(Role.DATA, X))
    assert result_of(reply, Role.SYMBOLS).tobytes() == names.encode()


def test_a_matrix_at_an_odd_address_is_answered_like_any_other(service: Service) -> None:
    memory = bytearray(3) + X.tobytes()
    odd = np.frombuffer(memory, np.float64, offset=3).reshape(X.shape)
    assert not odd.flags.aligned
    found = result_of(ask(service, Operation.CORRELATION, Array(Role.DATA, odd)))
    expected = result_of(ask(service, Operation.CORRELATION, Array(Role.DATA, X)))
    np.testing.assert_array_equal(found, expected)


def test_an_engine_gets_an_aligned_copy_of_an_odd_frame_and_an_even_frame_as_it_is() -> None:
    seen: list[np.ndarray[Any, Any]] = []

    class Looking(NumpyEngine):
        def gram(self, X: Any, Y: Any = None) -> Any:
            seen.append(X)
            return super().gram(X, Y)

    odd = np.frombuffer(bytearray(3) + X.tobytes(), np.float64, offset=3).reshape(X.shape)
    service = Service(Looking())
    for data in (odd, X):
        ask(service, Operation.GRAM, Array(Role.DATA, data))
    assert [data.flags.aligned for data in seen] == [True, True]
    assert np.shares_memory(seen[1], X)


def test_more_columns_than_rows_are_fine(service: Service) -> None:
    wide = np.random.default_rng(1).standard_normal((5, 40))
    found = result_of(ask(service, Operation.CORRELATION, Array(Role.DATA, wide)))
    np.testing.assert_allclose(found, np.corrcoef(wide, rowvar=False), atol=1e-14)


DATA = Array(Role.DATA, X)
REFUSED = {
    "sizes that do not fit": (
        Operation.MULTIPLY,
        [Array(Role.A, X), Array(Role.B, X)],
        b"",
        Status.BAD_SHAPE,
        "a has 3 columns but b has 4 rows",
    ),
    "two dtypes": (
        Operation.MULTIPLY,
        [Array(Role.A, X), Array(Role.B, X.T.astype(np.float32))],
        b"",
        Status.UNSUPPORTED,
        "one dtype",
    ),
    "b missing": (
        Operation.MULTIPLY,
        [Array(Role.A, X)],
        b"",
        Status.MALFORMED,
        "needs an array with the role b",
    ),
    "data twice": (Operation.GRAM, [DATA, DATA], b"", Status.MALFORMED, "two arrays with the role data"),
    "weights": (
        Operation.GRAM,
        [DATA, Array(Role.WEIGHTS, np.ones(4))],
        b"",
        Status.UNSUPPORTED,
        "takes no array with the role weights",
    ),
    "ping with data": (Operation.PING, [DATA], b"", Status.UNSUPPORTED, "ping takes no array"),
    "whole numbers": (
        Operation.GRAM,
        [Array(Role.DATA, np.ones((2, 2), np.int64))],
        b"",
        Status.UNSUPPORTED,
        "is int64; send float32 or float64",
    ),
    "a vector": (Operation.GRAM, [Array(Role.DATA, np.ones(4))], b"", Status.BAD_SHAPE, "1 dimensions"),
    "a cube": (Operation.GRAM, [Array(Role.DATA, np.ones((2, 2, 2)))], b"", Status.BAD_SHAPE, "3 dimensions"),
    "NaN": (
        Operation.CORRELATION,
        [Array(Role.DATA, np.where(X == 5, np.nan, X)), Array(Role.SYMBOLS, text("A\nB\nC"))],
        b'{"missing":"error"}',
        Status.BAD_VALUE,
        "in column B",
    ),
    "past float32": (
        Operation.COVARIANCE,
        [Array(Role.DATA, np.array([[3e38], [-3e38]], np.float32))],
        b"",
        Status.BAD_VALUE,
        "float64",
    ),
    "too few symbols": (
        Operation.COVARIANCE,
        [DATA, Array(Role.SYMBOLS, text("A\nB"))],
        b"",
        Status.BAD_SHAPE,
        "2 symbols for 3 columns",
    ),
    "a line for each byte": (
        Operation.COVARIANCE,
        [DATA, Array(Role.SYMBOLS, np.full(1 << 20, ord("\n"), np.uint8))],
        b"",
        Status.BAD_SHAPE,
        "1048576 symbols for 3 columns",
    ),
    "symbols that are no text": (
        Operation.COVARIANCE,
        [DATA, Array(Role.SYMBOLS, np.frombuffer(b"A\xff\nB\nC", np.uint8))],
        b"",
        Status.BAD_VALUE,
        "byte 1 is 0xff",
    ),
    "symbols as numbers": (
        Operation.COVARIANCE,
        [DATA, Array(Role.SYMBOLS, np.array([1.0]))],
        b"",
        Status.UNSUPPORTED,
        "UTF-8",
    ),
    "an unknown option": (Operation.COVARIANCE, [DATA], b'{"dof":0}', Status.BAD_OPTIONS, "dof"),
    "ddof for a correlation": (Operation.CORRELATION, [DATA], b'{"ddof":0}', Status.BAD_OPTIONS, "method"),
    "options that are no JSON": (Operation.GRAM, [DATA], b"ddof=0", Status.BAD_OPTIONS, "options"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=[name.replace(" ", "-") for name in REFUSED])
def test_what_cannot_be_answered_gets_its_status_and_a_sentence(service: Service, case: Any) -> None:
    operation, arrays, options, status, words = case
    found, sentence = refusal(service, operation, *arrays, options=options)
    assert found == status
    assert words in sentence


def test_an_answer_too_large_for_a_frame_is_refused_before_it_is_computed() -> None:
    service = Service(Idle(), Limits(frame_bytes=8 * 9 * 9))
    wide = Array(Role.DATA, np.ones((2, 10)))
    # the counts have 8 bytes an element, though the matrix has 4
    narrow = Array(Role.DATA, np.ones((2, 10), np.float32))
    column = [Array(Role.A, np.ones((10, 1))), Array(Role.B, np.ones((1, 10)))]
    for operation, arrays in (
        (Operation.GRAM, [wide]),
        (Operation.CORRELATION, [wide]),
        (Operation.COVARIANCE, [narrow]),
        (Operation.MULTIPLY, column),
    ):
        status, sentence = refusal(service, operation, *arrays)
        assert status == Status.TOO_LARGE
        assert "10x10" in sentence


@pytest.mark.parametrize("kind", [Kind.PROGRESS, Kind.RESULT])
def test_only_requests_are_answered(service: Service, kind: Kind) -> None:
    reply = service.answer(Message(Head(kind, operation=Operation.PING, request=4)))
    assert (reply.head.status, reply.head.request) == (Status.UNSUPPORTED, 4)


class Broken(Engine):
    """An engine that fails as it is told."""

    name = device = "broken"

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    def _product(self, A: Any, B: Any) -> Any:
        raise self.failure

    def _gram(self, X: Any, *, wide: bool) -> Any:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        (DeviceError("The device was unplugged."), Status.DEVICE, "The device was unplugged."),
        (MemoryError("Unable to allocate 5 GiB"), Status.TOO_LARGE, "too little memory"),
    ],
)
def test_a_failure_of_the_engine_has_its_own_status(failure: Exception, status: int, words: str) -> None:
    found, sentence = refusal(Service(Broken(failure)), Operation.GRAM, DATA)
    assert found == status
    assert words in sentence


def test_a_bug_is_logged_in_full_and_answered_without_details(caplog: pytest.LogCaptureFixture) -> None:
    failure = ZeroDivisionError("secret of the house, /home/someone")
    with caplog.at_level(logging.ERROR):
        status, sentence = refusal(Service(Broken(failure)), Operation.GRAM, DATA)
    assert status == Status.INTERNAL
    assert "ZeroDivisionError" in sentence
    assert "secret" not in sentence
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is failure
    assert "#99" in record.getMessage()
