"""What the bridge tests share: raw ZeroMQ peers, servers, and an engine that waits to be let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import pytest
import zmq

import mtbridge.server.worker
from mtbridge.compute.host import NumpyEngine
from mtbridge.server import Server
from mtbridge.wire import Array, Kind, Limits, Message, Operation, Role, decode, encode, request

PATIENCE_MS = 60_000


class Peer:
    """A raw socket, for what the Python client would never send; every wait is bounded."""

    def __init__(self, endpoint: str, kind: int = zmq.DEALER, **options: int) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        self.socket.setsockopt(zmq.SNDTIMEO, PATIENCE_MS)
        for name, value in options.items():
            self.socket.setsockopt(getattr(zmq, name), value)
        self.socket.connect(endpoint)
        # a REQ socket adds and takes off the delimiter itself
        self.delimiter = [] if kind == zmq.REQ else [b""]

    def send(self, frames: Sequence[Any]) -> None:
        self.socket.send_multipart([*self.delimiter, *frames])

    def ask(self, operation: Operation, number: int, *arrays: Array, **more: Any) -> None:
        self.send(encode(request(operation, number, arrays, **more)))

    def receive(self) -> Message:
        frames = self.socket.recv_multipart()
        if self.delimiter:
            assert frames[0] == b""
        return decode(frames[len(self.delimiter) :], Limits())

    def silent(self, milliseconds: int) -> bool:
        """Whether nothing comes for so long."""
        return self.socket.poll(milliseconds) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close(linger=0)
        self.context.term()


def data(*shape: int, value: float = 1.0) -> Array:
    return Array(Role.DATA, np.full(shape, value))


def long_job() -> tuple[Array, Array]:
    """Factors whose product takes the `serial` engine seconds: what follows surely comes before its end.

    Its loop runs on one thread however many cores there are; a BLAS on a big machine would be done at once.
    """
    A = np.random.default_rng(0).standard_normal((1500, 1500))
    return Array(Role.A, A), Array(Role.B, A)


def check_alive(endpoint: str) -> None:
    """A new client gets its pong: the worker is well."""
    with Peer(endpoint) as peer:
        peer.ask(Operation.PING, 77)
        reply = peer.receive()
    assert reply.head.kind is Kind.RESULT
    assert reply.head.request == 77


Engine = TypeVar("Engine", bound=NumpyEngine)


def served_by(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Make `engine` that of the servers of a test, and return it."""
    monkeypatch.setattr(mtbridge.server.worker, "open_engine", lambda name, **options: engine)
    return engine


@contextmanager
def running(**options: object) -> Iterator[Server]:
    with Server("tcp://127.0.0.1:0", **options) as server:  # type: ignore[arg-type]
        yield server


@contextmanager
def served(running: object) -> Iterator[tuple[Server, Peer]]:
    """A running server and a client of it."""
    with running as server, Peer(server.endpoint) as peer:  # type: ignore[attr-defined]
        yield server, peer


def status_of(peer: Peer) -> tuple[int, int]:
    """The id and the status of the next reply."""
    try:
        head = peer.receive().head
    except zmq.Again:
        pytest.fail("no reply came")
    return head.request, head.status


def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not become so in time"
        time.sleep(0.01)


class GatedEngine(NumpyEngine):
    """Computes as numpy does, but each gram waits at a gate. What waits behind it is then certain."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.closed = False
        self.threads: set[int] = {threading.get_ident()}

    def _gram(self, X: Any, *, wide: bool) -> Any:
        self.threads.add(threading.get_ident())
        self.started.release()
        assert self.gate.acquire(timeout=60)
        return super()._gram(X, wide=wide)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed = True
