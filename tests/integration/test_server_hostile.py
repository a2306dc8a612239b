"""Whatever is sent, the worker answers with an error where it can, and lives on."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest
from wire_peers import Peer, check_alive, data

from mtbridge.server import Server, WorkerProcess
from mtbridge.wire import Array, Kind, Limits, Operation, Role, Status, encode, request

REFUSED = json.loads((Path(__file__).parents[1] / "vectors" / "refused.json").read_text("utf-8"))["vectors"]


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess(engine_name="numpy", limits=Limits(frame_bytes=1 << 20)) as worker:
        yield worker


@pytest.fixture(autouse=True)
def lives_on(worker: WorkerProcess) -> Iterator[None]:
    """After each test the very same process still answers."""
    yield
    check_alive(worker.endpoint)
    assert worker.process.is_alive()


@pytest.mark.parametrize("vector", REFUSED, ids=[vector["name"].replace(" ", "-") for vector in REFUSED])
def test_a_bad_message_gets_an_error_with_its_status_and_id(worker: WorkerProcess, vector: Any) -> None:
    with Peer(worker.endpoint) as peer:
        peer.send([bytes.fromhex(frame) for frame in vector["frames"]])
        reply = peer.receive()
        assert reply.head.kind is Kind.ERROR
        assert reply.head.status == vector["status"]
        assert reply.head.request == vector["request"]
        assert reply.text.endswith(".")


def test_random_bytes_are_answered_one_error_each(worker: WorkerProcess) -> None:
    chance = random.Random(11)
    with Peer(worker.endpoint) as peer:
        for _ in range(300):
            peer.send([chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(1, 6))])
            assert peer.receive().head.status == Status.MALFORMED


def test_any_changed_byte_of_a_head_is_answered(worker: WorkerProcess) -> None:
    good = [bytes(frame) for frame in encode(request(Operation.CORRELATION, 5, [data(3, 2)]))]
    chance = random.Random(12)
    with Peer(worker.endpoint) as peer:
        for offset in range(len(good[0])):
            head = bytearray(good[0])
            head[offset] ^= chance.randrange(1, 256)
            peer.send([bytes(head), *good[1:]])
            reply = peer.receive()
            # an id or a deadline may be anything, and 8-byte patterns of one may be another type
            assert reply.head.kind in (Kind.ERROR, Kind.RESULT)


def test_a_message_without_a_delimiter_is_dropped(worker: WorkerProcess) -> None:
    frames = encode(request(Operation.PING, 9))
    with Peer(worker.endpoint) as peer:
        # the empty options frame must not pass for the delimiter
        peer.socket.send_multipart(frames)
        peer.socket.send(b"hello")
        peer.socket.send_multipart([b"x" * 256, b"", *frames])
        peer.socket.send_multipart([b"1", b"2", b"3", b"4", b"5", b"", *frames])
        peer.ask(Operation.PING, 10)
        # answers come in order, so nothing was said to the four before
        assert peer.receive().head.request == 10


def test_what_is_dropped_is_counted() -> None:
    with Server("tcp://127.0.0.1:0", engine_name="numpy") as server, Peer(server.endpoint) as peer:
        peer.socket.send(b"hello")
        peer.ask(Operation.PING, 1)
        peer.receive()
        peer.ask(Operation.PING, 2, options=b"[]")
        peer.receive()
        counters = server.counters
        assert (counters.dropped, counters.results, counters.errors) == (1, 1, 1)


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n",
        b"\xff" + bytes(8) + b"\x7f",
        b"\x00" * 4096,
        b"\x16\x03\x01",
    ],
)
def test_a_peer_that_speaks_something_else_changes_nothing(worker: WorkerProcess, words: bytes) -> None:
    address = urlparse(worker.endpoint)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(words)
        check_alive(worker.endpoint)


def test_a_frame_past_the_limit_costs_its_sender_the_connection_and_nobody_else(
    worker: WorkerProcess,
) -> None:
    with Peer(worker.endpoint) as peer:
        peer.ask(Operation.GRAM, 1, data(200_000, 1))
        assert peer.silent(500)
        # ZeroMQ connects again by itself
        peer.ask(Operation.PING, 2)
        assert peer.receive().head.request == 2


def test_a_matrix_too_large_by_its_result_gets_a_sentence_with_the_limit(worker: WorkerProcess) -> None:
    with Peer(worker.endpoint) as peer:
        peer.ask(Operation.CORRELATION, 1, data(2, 400))
        reply = peer.receive()
        assert reply.head.status == Status.TOO_LARGE
        assert "1.0 MiB" in reply.text


def test_very_many_frames_are_one_error(worker: WorkerProcess) -> None:
    with Peer(worker.endpoint) as peer:
        peer.send([*encode(request(Operation.PING, 3)), *[b"x"] * 5000])
        reply = peer.receive()
        assert (reply.head.status, reply.head.request) == (Status.MALFORMED, 3)
        assert "5002 came" in reply.text


def test_options_nested_without_end_are_bad_options(worker: WorkerProcess) -> None:
    with Peer(worker.endpoint) as peer:
        for options in (b"[" * 60_000, b'{"ddof":' * 8_000, b'{"ddof":[' * 7_000):
            peer.ask(Operation.COVARIANCE, 4, data(3, 2), options=options)
            assert peer.receive().head.status == Status.BAD_OPTIONS


HUGE = b"9" * 5000
WINDOWS = {
    "a window past int64": (Operation.ROLLING, b'{"window":9223372036854775808}', Status.BAD_OPTIONS),
    "a window of 5000 digits": (Operation.ROLLING, b'{"window":' + HUGE + b"}", Status.BAD_OPTIONS),
    "a window below 0": (Operation.ROLLING, b'{"window":-1}', Status.BAD_OPTIONS),
    "a window that is no number": (Operation.ROLLING, b'{"window":NaN}', Status.BAD_OPTIONS),
    "a window past all numbers": (Operation.ROLLING, b'{"window":1e999}', Status.BAD_OPTIONS),
    "a span of time past int64": (Operation.ROLLING, b'{"span_ms":9223372036854775808}', Status.BAD_OPTIONS),
    "an infinite half-life": (Operation.EWM, b'{"halflife":Infinity}', Status.BAD_OPTIONS),
    "a half-life past all numbers": (Operation.EWM, b'{"halflife":1e999}', Status.BAD_OPTIONS),
    "an alpha that is no number": (Operation.EWM, b'{"alpha":NaN}', Status.BAD_OPTIONS),
    "very many pairs": (
        Operation.ROLLING,
        b'{"window":2,"reduce":"pairs","pairs":[' + b"[0,1]," * 10_000 + b"[0,1]]}",
        Status.BAD_OPTIONS,
    ),
    "very many pairs past the frame": (
        Operation.ROLLING,
        b'{"window":2,"reduce":"pairs","pairs":[' + b"[0,1]," * 20_000 + b"[0,1]]}",
        Status.TOO_LARGE,
    ),
    "pairs nested without end": (
        Operation.ROLLING,
        b'{"window":2,"reduce":"pairs","pairs":' + b"[" * 60_000,
        Status.BAD_OPTIONS,
    ),
    "a pair past all columns": (
        Operation.EWM,
        b'{"span":2,"reduce":"pairs","pairs":[[0,2147483647]]}',
        Status.BAD_OPTIONS,
    ),
    "a top past all pairs": (
        Operation.EXPANDING,
        b'{"reduce":"top","top":2147483647}',
        Status.BAD_OPTIONS,
    ),
    "very many lags": (Operation.LAGGED, b'{"lags":2147483647}', Status.BAD_OPTIONS),
    "more lags than rows": (Operation.LAGGED, b'{"lags":4096}', Status.BAD_OPTIONS),
    "windows past a frame": (Operation.ROLLING, b'{"window":2147483647}', Status.TOO_LARGE),
    "expanding past a frame": (Operation.EXPANDING, b"", Status.TOO_LARGE),
    "fading past a frame": (Operation.EWM, b'{"span":1e308}', Status.TOO_LARGE),
    "lags past a frame": (Operation.LAGGED, b'{"lags":999}', Status.TOO_LARGE),
}


@pytest.mark.parametrize("case", WINDOWS.values(), ids=[name.replace(" ", "-") for name in WINDOWS])
def test_what_windows_and_lags_cannot_be_is_refused_at_once(worker: WorkerProcess, case: Any) -> None:
    operation, options, status = case
    with Peer(worker.endpoint) as peer:
        start = time.monotonic()
        peer.ask(operation, 6, data(2000, 10), options=options)
        reply = peer.receive()
        assert time.monotonic() - start < 2
    assert reply.head.kind is Kind.ERROR
    assert (Status(reply.head.status), len(reply.text) <= 600) == (status, True), reply.text
    if status is Status.TOO_LARGE and operation is not Operation.LAGGED and len(options) < 99:
        assert "use last, reduce, packed" in reply.text


def test_hostile_numbers_make_answers_and_no_failures(worker: WorkerProcess) -> None:
    chance = np.random.default_rng(5)
    values = np.array([np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 1e-170, 1e200, 0.0, 1.0, 1.0])
    with Peer(worker.endpoint) as peer:
        for number, (operation, options) in enumerate(
            [
                (Operation.ROLLING, b'{"window":7,"min_periods":1}'),
                (
                    Operation.ROLLING,
                    b'{"window":7,"min_periods":1,"statistic":"correlation","dtype":"float32"}',
                ),
                (Operation.ROLLING, b'{"window":7,"min_periods":1,"statistic":"beta","column":0}'),
                (Operation.ROLLING, b'{"window":7,"reduce":"eigenvalue"}'),
                (Operation.ROLLING, b'{"window":7,"reduce":"top","top":3,"min_periods":2}'),
                (Operation.EXPANDING, b'{"reduce":"mean"}'),
                (Operation.EWM, b'{"alpha":1e-300}'),
                (Operation.EWM, b'{"alpha":1,"adjust":false}'),
                (Operation.EWM, b'{"com":0.5,"ignore_na":true,"reduce":"mean","statistic":"correlation"}'),
                (Operation.LAGGED, b'{"lags":5,"statistic":"correlation"}'),
                (Operation.CORRELATION, b'{"method":"spearman","scalars":true}'),
                (Operation.CORRELATION, b'{"method":"kendall"}'),
                (Operation.COVARIANCE, b'{"scalars":true}'),
            ]
        ):
            for dtype in ("float64", "float32"):
                with np.errstate(over="ignore"):
                    X = chance.choice(values, (60, 5)).astype(dtype)
                peer.ask(operation, number, Array(Role.DATA, X), options=options)
                reply = peer.receive()
                assert reply.head.kind is Kind.RESULT or reply.head.status == Status.BAD_VALUE, reply.text


def test_a_client_that_never_reads_holds_nobody_up(worker: WorkerProcess) -> None:
    column = Array(Role.A, np.ones((300, 1)))
    row = Array(Role.B, np.ones((1, 300)))
    # a queue of one message at the client, so that its replies pile up at the worker
    with Peer(worker.endpoint, RCVHWM=1) as deaf:
        for number in range(60):
            deaf.ask(Operation.MULTIPLY, number, column, row)
        for _ in range(5):
            check_alive(worker.endpoint)


def test_a_client_that_leaves_before_its_answer_changes_nothing(worker: WorkerProcess) -> None:
    for _ in range(20):
        with Peer(worker.endpoint) as peer:
            peer.ask(Operation.GRAM, 1, data(2000, 50))
            # stay until the request is on its way
            peer.socket.poll(1)
