"""How a worker stops, and what it does with what it holds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest
from together import together
from wire_peers import GatedEngine, Peer, data, long_job, running, served, served_by, status_of, wait_until

import mtbridge.server.worker
from mtbridge.client import Client
from mtbridge.compute.host import NumpyEngine
from mtbridge.errors import DeviceError, OptionError
from mtbridge.server import Server, WorkerProcess
from mtbridge.wire import Array, Operation, Role, Status

BOUND = 15.0


class ExclusiveEngine(NumpyEngine):
    """Notes which threads use it, and whether two ever do so at once."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.threads: set[int] = set()
        self.collisions = 0

    def _gram(self, X: Any, *, wide: bool) -> Any:
        if not self.lock.acquire(blocking=False):
            self.collisions += 1
            return super()._gram(X, wide=wide)
        try:
            self.threads.add(threading.get_ident())
            if len(X) == 5:
                time.sleep(0.003)
            return super()._gram(X, wide=wide)
        finally:
            self.lock.release()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> GatedEngine:
    """The engine of the servers of a test: it computes when the test lets it."""
    return served_by(GatedEngine(), monkeypatch)


def ended_within(seconds: float, stop: Callable[[], None]) -> float:
    """Run `stop` and return how long it took; a hang fails here by name."""
    start = time.monotonic()
    thread = threading.Thread(target=stop)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"it did not end within {seconds} s"
    return time.monotonic() - start


def test_a_stop_answers_the_running_request_and_refuses_those_that_wait(engine: GatedEngine) -> None:
    with served(running(stop_seconds=20)) as (server, peer):
        for number in (1, 2, 3):
            peer.ask(Operation.GRAM, number, data(4, 2))
        assert engine.started.acquire(timeout=10)
        wait_until(lambda: held(server) == 3)
        server.stop()
        server.stop()
        assert [status_of(peer) for _ in range(2)] == [(2, Status.STOPPING), (3, Status.STOPPING)]
        peer.ask(Operation.PING, 4)
        assert status_of(peer) == (4, Status.STOPPING)
        engine.gate.release()
        assert status_of(peer) == (1, Status.OK)
        ended_within(BOUND, lambda: server.__exit__(None, None, None))
    assert engine.closed
    assert not server.abandoned


def test_a_job_that_does_not_end_is_given_up_in_bounded_time(engine: GatedEngine) -> None:
    with served(running(stop_seconds=0.3)) as (server, peer):
        peer.ask(Operation.GRAM, 1, data(4, 2))
        assert engine.started.acquire(timeout=10)
        seconds = ended_within(BOUND, lambda: server.__exit__(None, None, None))
        assert 0.3 <= seconds < 5
        assert status_of(peer) == (1, Status.STOPPING)
        assert server.abandoned
        assert not engine.closed
        engine.gate.release()
        wait_until(lambda: not server.abandoned)
    assert engine.closed


def test_the_engine_is_opened_and_closed_by_the_thread_that_computes(engine: GatedEngine) -> None:
    engine.threads.clear()
    engine.gate.release()
    with served(running()) as (_, peer):
        peer.ask(Operation.PING, 1)
        peer.ask(Operation.GRAM, 2, data(4, 2))
        assert {peer.receive().head.request for _ in range(2)} == {1, 2}
    assert engine.closed
    assert len(engine.threads) == 1
    assert threading.get_ident() not in engine.threads


def test_small_work_is_done_by_whichever_thread_is_free_but_never_by_two_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = served_by(ExclusiveEngine(), monkeypatch)

    def work(endpoint: str, rows: int) -> None:
        with Client(endpoint, timeout=30) as client:
            for _ in range(150):
                assert client.gram(np.ones((rows, 2))).tolist() == [[float(rows)] * 2] * 2

    with running() as server:
        # those of 3 rows are quick, those of 5 rows are not: the two kinds take turns at the engine
        together(*(partial(work, server.endpoint, rows) for rows in (3, 3, 5, 3)))
    assert not engine.collisions
    assert len(engine.threads) == 2


def test_a_quick_refusal_does_not_bring_the_next_request_into_the_loop(engine: GatedEngine) -> None:
    with served(running()) as (_, peer):
        peer.ask(Operation.GRAM, 1, data(4, 2), options=b'{"unknown":1}')
        assert status_of(peer) == (1, Status.BAD_OPTIONS)
        peer.ask(Operation.GRAM, 2, data(4, 2))
        assert engine.started.acquire(timeout=10)
        # the gate is closed, so the request runs; a loop that ran it itself could not answer this
        peer.ask(Operation.PING, 3)
        assert status_of(peer) == (3, Status.OK)
        engine.gate.release()
        assert status_of(peer) == (2, Status.OK)


def test_a_stop_before_the_start_makes_run_return_at_once() -> None:
    server = Server("tcp://127.0.0.1:0", engine_name="numpy")
    server.stop()
    ended_within(BOUND, server.run)
    server.stop()


def test_the_port_is_free_as_soon_as_the_worker_has_stopped() -> None:
    with running(engine_name="numpy") as server, Peer(server.endpoint) as peer:
        peer.ask(Operation.PING, 1)
        peer.receive()
        endpoint = server.endpoint
        server.__exit__(None, None, None)
        with Server(endpoint, engine_name="numpy") as again:
            assert again.endpoint == endpoint
            peer.ask(Operation.PING, 2)
            assert peer.receive().head.request == 2


def test_an_engine_that_cannot_be_opened_is_told_to_whoever_starts_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_device(name: str, **options: str | None) -> None:
        raise DeviceError("There is no device.")

    with pytest.raises(OptionError, match="abacus"):
        Server("tcp://127.0.0.1:0", engine_name="abacus").run()
    monkeypatch.setattr(mtbridge.server.worker, "open_engine", no_device)
    with pytest.raises(DeviceError, match="no device"), running():
        pytest.fail("it started")
    monkeypatch.undo()
    with pytest.raises(OptionError, match="abacus"), WorkerProcess(engine_name="abacus"):
        pytest.fail("it started")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
@pytest.mark.parametrize(("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 3)])
def test_a_signal_ends_the_process_in_bounded_time_answering_what_it_holds(
    number: signal.Signals, times: int
) -> None:
    with WorkerProcess(engine_name="serial", stop_seconds=40) as worker, Peer(worker.endpoint) as peer:
        peer.ask(Operation.MULTIPLY, 1, *long_job())
        peer.ask(Operation.GRAM, 2, data(4, 2))
        peer.ask(Operation.PING, 3)
        # the ping overtakes both, so both are held now
        assert status_of(peer) == (3, Status.OK)
        # and the first one has been begun when another has waited behind it for so long
        peer.ask(Operation.GRAM, 4, data(4, 2), deadline_ms=300)
        assert status_of(peer) == (4, Status.DEADLINE)
        assert worker.process.pid is not None
        for _ in range(times):
            os.kill(worker.process.pid, number)
        answers = dict(status_of(peer) for _ in range(2))
        assert answers == {1: Status.OK, 2: Status.STOPPING}
        worker.process.join(BOUND + 40)
        assert worker.process.exitcode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
def test_a_process_whose_engine_does_not_end_is_left_after_the_answer() -> None:
    with WorkerProcess(engine_name="serial", stop_seconds=0.01) as worker, Peer(worker.endpoint) as peer:
        peer.ask(Operation.MULTIPLY, 1, *long_job())
        peer.ask(Operation.PING, 2)
        assert status_of(peer) == (2, Status.OK)
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGTERM)
        assert status_of(peer) == (1, Status.STOPPING)
        worker.process.join(BOUND)
        assert worker.process.exitcode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
def test_a_signal_ends_an_idle_worker_at_once() -> None:
    with WorkerProcess(engine_name="numpy") as worker:
        start = time.monotonic()
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGTERM)
        worker.process.join(BOUND)
        assert worker.process.exitcode == 0
        assert time.monotonic() - start < 5


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for another process")
def test_a_client_that_reads_nothing_does_not_keep_the_worker_from_ending() -> None:
    column, row = Array(Role.A, np.ones((1500, 1))), Array(Role.B, np.ones((1, 1500)))
    with WorkerProcess(engine_name="numpy") as worker, Peer(worker.endpoint, RCVHWM=1) as deaf:
        for number in range(8):
            deaf.ask(Operation.MULTIPLY, number, column, row)
        with Peer(worker.endpoint) as other:
            other.ask(Operation.PING, 1)
            other.receive()
        assert worker.process.pid is not None
        os.kill(worker.process.pid, signal.SIGTERM)
        worker.process.join(BOUND)
        assert worker.process.exitcode == 0


def test_a_worker_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import time\n"
        "from mtbridge.server import WorkerProcess\n"
        "if __name__ == '__main__':\n"
        "    with WorkerProcess(engine_name='numpy') as worker:\n"
        "        print(worker.endpoint, flush=True)\n"
        "        time.sleep(60)\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        address = urlparse(parent.stdout.readline().strip())
        socket.create_connection((address.hostname, address.port), timeout=5).close()
        parent.kill()

    def gone() -> bool:
        try:
            socket.create_connection((address.hostname, address.port), timeout=5).close()
        except ConnectionRefusedError:
            return True
        return False

    wait_until(gone)


def test_a_worker_process_ends_with_its_with_statement() -> None:
    with WorkerProcess(engine_name="numpy") as worker:
        address = urlparse(worker.endpoint)
        socket.create_connection((address.hostname, address.port), timeout=5).close()
    assert worker.process.exitcode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port), timeout=5)


def held(server: Server) -> int:
    """How many requests the server waits for or computes."""
    compute = server._compute
    assert compute is not None
    return len(compute.waiting) + (compute.current is not None)
