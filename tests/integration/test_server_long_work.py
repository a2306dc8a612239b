"""Windows take long: what waits behind them, what is asked meanwhile, and how the worker stops under them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from wire_peers import Peer, data, running, served, served_by, status_of, wait_until

from mtbridge.compute.host import NumpyEngine
from mtbridge.server import WorkerProcess
from mtbridge.wire import Array, Head, Kind, Message, Operation, Role, Status, encode

FEW, ALL = b'{"window":2,"step":4}', b'{"window":2}'


class GatedWindows(NumpyEngine):
    """Opens windows only when the test lets it, and notes in which thread."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.threads: list[int] = []

    def sequence(self, X: Any, plan: Any, wanted: Any) -> Any:
        self.threads.append(threading.get_ident())
        self.started.release()
        assert self.gate.acquire(timeout=60)
        return super().sequence(X, plan, wanted)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> GatedWindows:
    return served_by(GatedWindows(), monkeypatch)


def test_behind_windows_a_deadline_passes_a_cancel_is_heard_and_a_ping_answered(engine: GatedWindows) -> None:
    with served(running()) as (_, peer):
        peer.ask(Operation.ROLLING, 1, data(4, 2), options=ALL)
        assert engine.started.acquire(timeout=10)
        peer.ask(Operation.EWM, 2, data(4, 2), options=b'{"span":3}', deadline_ms=50)
        assert status_of(peer) == (2, Status.DEADLINE)
        peer.ask(Operation.LAGGED, 3, data(4, 2), options=b'{"lags":1}')
        peer.send(encode(Message(Head(Kind.CANCEL, request=3))))
        assert status_of(peer) == (3, Status.CANCELLED)
        peer.ask(Operation.PING, 4)
        assert status_of(peer) == (4, Status.OK)
        engine.gate.release()
        assert status_of(peer) == (1, Status.OK)


def test_a_stop_gives_up_windows_that_do_not_end(engine: GatedWindows) -> None:
    with served(running(stop_seconds=0.3)) as (server, peer):
        peer.ask(Operation.EXPANDING, 1, data(4, 2))
        assert engine.started.acquire(timeout=10)
        peer.ask(Operation.ROLLING, 2, data(4, 2), options=ALL)
        stopping = threading.Thread(target=server.__exit__, args=(None, None, None))
        stopping.start()
        assert {status_of(peer), status_of(peer)} == {(1, Status.STOPPING), (2, Status.STOPPING)}
        stopping.join(10)
        assert not stopping.is_alive()
        engine.gate.release()


def test_quick_windows_do_not_bring_those_of_other_options_into_the_loop(engine: GatedWindows) -> None:
    with served(running()) as (_, peer):
        for number in range(1, 4):
            engine.gate.release()
            peer.ask(Operation.ROLLING, number, data(4, 2), options=FEW)
            assert status_of(peer) == (number, Status.OK)
        # by now few windows are computed where the messages are read; all of them must not be
        engine.threads.clear()
        peer.ask(Operation.ROLLING, 4, data(4, 2), options=ALL)
        wait_until(lambda: bool(engine.threads))
        peer.ask(Operation.PING, 5)
        assert status_of(peer) == (5, Status.OK)
        engine.gate.release()
        assert status_of(peer) == (4, Status.OK)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
def test_a_ping_and_a_signal_are_answered_while_windows_are_computed() -> None:
    # some hundred million elements in float64, of which only the mean is kept: seconds of work
    X = np.random.default_rng(2).standard_normal((20_000, 200))
    with WorkerProcess(engine_name="numpy", stop_seconds=0.01) as worker, Peer(worker.endpoint) as peer:
        peer.ask(Operation.ROLLING, 1, Array(Role.DATA, X), options=b'{"window":60,"reduce":"mean"}')
        start = time.monotonic()
        peer.ask(Operation.PING, 2)
        assert status_of(peer) == (2, Status.OK)
        assert time.monotonic() - start < 5
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGTERM)
        assert status_of(peer) == (1, Status.STOPPING)
        worker.process.join(15)
        assert worker.process.exitcode == 0
