"""Requests that wait behind another: their deadlines, their cancels, and how many a worker holds."""

from __future__ import annotations

import time

import pytest
from wire_peers import GatedEngine, Peer, data, running, served, served_by, status_of, wait_until

from mtbridge.server.loop import Queue
from mtbridge.wire import Head, Kind, Message, Operation, Status, encode


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> GatedEngine:
    """The engine of the servers of a test: it computes when the test lets it."""
    return served_by(GatedEngine(), monkeypatch)


def test_a_request_whose_deadline_passes_in_the_queue_is_told_so_at_once(engine: GatedEngine) -> None:
    with served(running()) as (_, peer):
        peer.ask(Operation.GRAM, 1, data(4, 2))
        assert engine.started.acquire(timeout=10)
        peer.ask(Operation.GRAM, 2, data(4, 2), deadline_ms=60_000)
        peer.ask(Operation.GRAM, 3, data(4, 2), deadline_ms=100)
        start = time.monotonic()
        assert status_of(peer) == (3, Status.DEADLINE)
        assert time.monotonic() - start >= 0.08
        engine.gate.release(2)
        assert [status_of(peer) for _ in range(2)] == [(1, Status.OK), (2, Status.OK)]


def test_a_cancelled_request_is_not_computed_and_is_told_so(engine: GatedEngine) -> None:
    with served(running()) as (server, peer), Peer(server.endpoint) as other:
        for number in (1, 2, 3):
            peer.ask(Operation.GRAM, number, data(4, 2))
        assert engine.started.acquire(timeout=10)
        # of another client, of a request that runs already, of one that never was: nothing happens
        other.send(encode(Message(Head(Kind.CANCEL, request=2))))
        peer.send(encode(Message(Head(Kind.CANCEL, request=1))))
        peer.send(encode(Message(Head(Kind.CANCEL, request=99))))
        other.ask(Operation.PING, 5)
        other.receive()
        assert peer.silent(50)
        peer.send(encode(Message(Head(Kind.CANCEL, request=2))))
        assert status_of(peer) == (2, Status.CANCELLED)
        engine.gate.release(2)
        assert [status_of(peer) for _ in range(2)] == [(1, Status.OK), (3, Status.OK)]
        assert peer.silent(50)


@pytest.mark.parametrize(
    "queue", [Queue(requests=3), Queue(bytes=3 * 64 + 3 * 112 + 10)], ids=["count", "bytes"]
)
def test_a_full_queue_says_busy_and_takes_requests_again_later(engine: GatedEngine, queue: Queue) -> None:
    with served(running(queue=queue)) as (_, peer):
        for number in range(1, 6):
            peer.ask(Operation.GRAM, number, data(4, 2))
        assert [status_of(peer) for _ in range(2)] == [(4, Status.BUSY), (5, Status.BUSY)]
        peer.ask(Operation.PING, 6)
        assert status_of(peer) == (6, Status.OK)
        engine.gate.release(3)
        assert [status_of(peer) for _ in range(3)] == [(1, Status.OK), (2, Status.OK), (3, Status.OK)]
        for number in (7, 8, 9):
            peer.ask(Operation.GRAM, number, data(2, 4))
        assert peer.silent(50)
        engine.gate.release(3)
        assert [status_of(peer) for _ in range(3)] == [(7, Status.OK), (8, Status.OK), (9, Status.OK)]


def test_one_request_is_taken_even_if_it_is_larger_than_the_queue(engine: GatedEngine) -> None:
    engine.gate.release()
    with served(running(queue=Queue(bytes=1))) as (_, peer):
        peer.ask(Operation.GRAM, 1, data(4, 2))
        assert status_of(peer) == (1, Status.OK)


def test_a_reply_to_a_client_that_has_gone_is_counted(engine: GatedEngine) -> None:
    with running() as server:
        with Peer(server.endpoint) as peer:
            peer.ask(Operation.GRAM, 1, data(4, 2))
            assert engine.started.acquire(timeout=10)
        # the socket is closed; give the worker's side the time to see it
        time.sleep(0.2)
        engine.gate.release()
        wait_until(lambda: server.counters.undelivered == 1)
