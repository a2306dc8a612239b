"""A real worker in a child process, and many kinds of clients."""

from __future__ import annotations

import mmap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zmq
from together import together
from wire_peers import Peer, check_alive, data, long_job

from mtbridge.client import Client
from mtbridge.server import WorkerProcess
from mtbridge.wire import Kind, Operation, Role, Status, encode, request


def test_many_clients_at_once_each_get_their_own_matrix(worker: WorkerProcess) -> None:
    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        with Client(worker.endpoint) as client:
            for _ in range(15):
                rows, columns = random.integers(2, 60, size=2)
                X = random.standard_normal((rows, columns))
                np.testing.assert_allclose(client.gram(X), X.T @ X, atol=1e-12)
                np.testing.assert_allclose(
                    client.covariance(X), np.cov(X, rowvar=False).reshape(columns, columns), atol=1e-12
                )

    together(*(partial(work, seed) for seed in range(8)))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (zmq.DEALER, {}),
        (zmq.REQ, {}),
        (zmq.REQ, {"REQ_RELAXED": 1, "REQ_CORRELATE": 1}),
    ],
    ids=["DEALER", "REQ", "REQ-with-correlation"],
)
def test_each_kind_of_client_socket_is_answered(
    worker: WorkerProcess, kind: int, options: dict[str, int]
) -> None:
    with Peer(worker.endpoint, kind, **options) as peer:
        for number in (1, 2, 3):
            peer.ask(Operation.GRAM, number, data(4, 2))
            reply = peer.receive()
            assert reply.head.request == number
            found = reply.find(Role.RESULT)
            assert found is not None
            assert found.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_frames_of_a_proxy_before_the_delimiter_go_back_with_the_reply(worker: WorkerProcess) -> None:
    with Peer(worker.endpoint) as peer:
        for operation, arrays in ((Operation.PING, []), (Operation.GRAM, [data(2, 2)])):
            frames = encode(request(operation, 5, arrays))
            peer.socket.send_multipart([b"hop 1", b"\x00\x01\x02\x03\x04", b"", *frames])
            assert peer.socket.recv_multipart()[:3] == [b"hop 1", b"\x00\x01\x02\x03\x04", b""]


def test_requests_sent_ahead_are_answered_once_each_and_in_their_order(worker: WorkerProcess) -> None:
    with Peer(worker.endpoint) as peer:
        for number in range(1, 201):
            peer.ask(Operation.GRAM, number, data(number % 7 + 1, 3))
        replies = [peer.receive() for _ in range(200)]
        assert [reply.head.request for reply in replies] == list(range(1, 201))
        assert {reply.head.kind for reply in replies} == {Kind.RESULT}
        for number, reply in enumerate(replies, 1):
            found = reply.find(Role.RESULT)
            assert found is not None
            assert found[0, 0] == number % 7 + 1
        assert peer.silent(50)


def test_a_ping_is_answered_while_a_big_job_runs() -> None:
    with (
        WorkerProcess(engine_name="serial") as worker,
        Peer(worker.endpoint) as busy,
        Peer(worker.endpoint) as other,
    ):
        other.ask(Operation.PING, 1)
        other.receive()
        busy.ask(Operation.MULTIPLY, 1, *long_job())
        # once the worker says that this request is queued behind the big one, the big one has arrived
        while True:
            other.ask(Operation.GRAM, 2, data(2, 2), deadline_ms=20)
            if other.receive().head.status == Status.DEADLINE:
                break
            assert busy.silent(0), "the big job ended before it was seen to run"
        start = time.monotonic()
        other.ask(Operation.PING, 3)
        assert other.receive().head.kind is Kind.RESULT
        seconds = time.monotonic() - start
        assert busy.silent(0), "the ping had to wait for the big job"
        assert seconds < 1
        assert busy.receive().head.kind is Kind.RESULT


def test_a_request_of_100_megabytes_is_whole(worker: WorkerProcess) -> None:
    with Client(worker.endpoint) as client:
        X = np.ones((1_300_000, 10))
        X[-1, -1] = 3.0
        found = client.gram(X)
    assert found[0, 0] == 1_300_000
    assert found[-1, -1] == 1_300_008


def test_a_reply_of_100_megabytes_is_whole(worker: WorkerProcess) -> None:
    column = np.arange(3600.0)[:, np.newaxis]
    with Client(worker.endpoint) as client:
        found = client.multiply(column, column.T)
    assert found.nbytes > 100_000_000
    np.testing.assert_array_equal(found, column * column.T)


def test_a_hundred_clients_come_and_go_and_hold_nothing(worker: WorkerProcess) -> None:
    for _ in range(100):
        with Client(worker.endpoint) as client:
            client.ping()
    check_alive(worker.endpoint)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (37, 11), (64, 64), (7, 100), (300, 50)])
def test_both_dtypes_and_both_orders_give_numpys_covariance(
    worker: WorkerProcess, dtype: str, order: str, shape: tuple[int, int]
) -> None:
    X = np.asarray(np.random.default_rng(3).standard_normal(shape), dtype=dtype, order=order)
    tolerance = 16 * shape[0] * np.finfo(dtype).eps
    with Client(worker.endpoint) as client:
        found = client.covariance(X, ddof=0)
    assert found.dtype == dtype
    expected = np.cov(X.astype(np.float64), rowvar=False, ddof=0).reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=tolerance)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_very_many_small_requests_leave_no_memory_behind(worker: WorkerProcess) -> None:
    def resident_bytes() -> int:
        pages = Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]
        return int(pages) * mmap.PAGESIZE

    def ask(times: int) -> None:
        with Client(worker.endpoint) as client:
            for number in range(times):
                # new forms all the time, and a new connection now and then
                client.gram(np.ones((1 + number % 97, 1 + number % 13)))
                client.ping()

    ask(1000)
    before = resident_bytes()
    for _ in range(4):
        ask(1500)
    assert resident_bytes() - before < 8 << 20
