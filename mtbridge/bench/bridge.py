"""What the bridge costs: round trips through the real worker beside a bare echo of the same bytes.

Worker and echo each run in a process of their own on this machine. Their round trips are taken in turn,
so what disturbs one disturbs the other; the worker's include its computation.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import zmq

from mtbridge.bench.echo import EchoServer
from mtbridge.bench.measure import spread
from mtbridge.client import Client
from mtbridge.errors import DeviceError, NoReplyError
from mtbridge.server import WorkerProcess
from mtbridge.wire import Array, Buffer, Operation, Role, encode, request

ROWS, COLUMNS = 60, 50
CASE = f"bridge correlation {ROWS}x{COLUMNS}"
CLIENTS = 8
WARM_UP = 20
PATIENCE_MS = 30_000


def measure_bridge(
    *,
    rounds: int = 300,
    progress: Callable[[str], None] = lambda words: None,
    engines: Sequence[str] = ("opencl", "numpy"),
    device: str | None = None,
) -> list[dict[str, Any]]:
    """Return rows for the round trip of one correlation, and for the requests of several clients at once.

    Parameters
    ----------
    rounds : round trips to time, of each
    progress : called with a line when something begins
    engines : where the worker computes, one worker after the other
    device : which OpenCL device

    Returns
    -------
    list of rows
        `versus` has the echo's time divided by ours. In the rows of several clients `median_s` is the
        time for one request, so its inverse is requests a second.
    """
    rows: list[dict[str, Any]] = []
    with EchoServer() as echo:
        for engine in engines:
            progress(f"starting a worker on {engine}")
            try:
                with WorkerProcess(engine_name=engine, device=device) as worker:
                    rows += _beside_echo(worker.endpoint, echo.endpoint, rounds, progress)
            except DeviceError as failure:
                rows.append(_missing(engine, str(failure)))
    return rows


def _beside_echo(
    worker: str, echo: str, rounds: int, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    X = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
    frames = [b"", *encode(request(Operation.CORRELATION, 1, [Array(Role.DATA, X)]))]
    case, crowd = CASE, f"{CASE}, {CLIENTS} clients"
    with Client(worker) as client, zmq.Context() as context:
        found = client.correlation(X, full=True)
        error = float(np.abs(found.matrix - np.corrcoef(X, rowvar=False)).max())
        progress(f"{case}, {rounds} round trips")
        ours, theirs = _round_trips(client, X, _connected(context, echo), frames, rounds)
        rows = [
            _row(case, found.engine, found.device, ours, theirs, error=error),
            _row(case, "echo", "bare pyzmq ROUTER", theirs, None),
        ]
        progress(crowd)
        ours, theirs = _crowds(context, (worker, echo), frames, rounds)
        rows += [
            _row(crowd, found.engine, found.device, ours, theirs, note=_rate(ours)),
            _row(crowd, "echo", "bare pyzmq ROUTER", theirs, None, note=_rate(theirs)),
        ]
    return rows


def _connected(context: zmq.Context[zmq.Socket[bytes]], endpoint: str) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
    socket.connect(endpoint)
    return socket


def _round_trips(
    client: Client, X: Any, socket: zmq.Socket[bytes], frames: list[Buffer], rounds: int
) -> tuple[list[float], list[float]]:
    """Return the seconds of each round trip through the worker and through the echo, taken in turn."""
    ours, theirs = [], []
    with socket:
        for _ in range(rounds + WARM_UP):
            start = time.perf_counter()
            client.correlation(X)
            middle = time.perf_counter()
            socket.send_multipart(frames)
            socket.recv_multipart()
            end = time.perf_counter()
            ours.append(middle - start)
            theirs.append(end - middle)
    return ours[WARM_UP:], theirs[WARM_UP:]


def _crowds(
    context: zmq.Context[zmq.Socket[bytes]], endpoints: tuple[str, str], frames: list[Buffer], rounds: int
) -> tuple[list[float], list[float]]:
    """Return seconds a request with several clients at once, some windows of each endpoint in turn."""
    windows: tuple[list[float], list[float]] = ([], [])
    requests = max(rounds, 2 * CLIENTS)
    for _ in range(7):
        for endpoint, seconds in zip(endpoints, windows, strict=True):
            seconds.append(_crowd(context, endpoint, frames, requests))
    return windows


def _crowd(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, frames: list[Buffer], requests: int
) -> float:
    """Return seconds a request, each client sending its next as soon as it has the answer to its last."""
    sockets = [_connected(context, endpoint) for _ in range(CLIENTS)]
    try:
        poller = zmq.Poller()
        for socket in sockets:
            poller.register(socket, zmq.POLLIN)
            # a first round trip, which includes the connection
            socket.send_multipart(frames)
        for socket in sockets:
            socket.recv_multipart()
        start = time.perf_counter()
        sent = answered = 0
        for socket in sockets:
            socket.send_multipart(frames)
            sent += 1
        while answered < sent:
            ready = poller.poll(PATIENCE_MS)
            if not ready:
                raise NoReplyError(f"{endpoint} did not answer within {PATIENCE_MS / 1000:g} s.")
            for socket, _ in ready:
                socket.recv_multipart()
                answered += 1
                if sent < requests:
                    socket.send_multipart(frames)
                    sent += 1
        return (time.perf_counter() - start) / answered
    finally:
        for socket in sockets:
            socket.close()


def _rate(seconds: list[float]) -> str:
    return f"{1 / statistics.median(seconds):,.0f} requests a second"


def _row(
    case: str,
    contender: str,
    device: str,
    seconds: list[float],
    echo: list[float] | None,
    *,
    error: float | None = None,
    note: str = "",
) -> dict[str, Any]:
    median = statistics.median(seconds)
    if echo is not None and not note:
        note = f"{1e6 * (median - statistics.median(echo)):.0f} us more than the echo"
    return {
        "case": case,
        "dtype": "float64",
        "contender": contender,
        "device": device,
        "threads": os.cpu_count() or 1,
        "median_s": median,
        "spread_s": spread(seconds),
        "gflops": None,
        "error": error,
        "note": note,
        "versus": {} if echo is None else {"echo": statistics.median(echo) / median},
    }


def _missing(engine: str, why: str) -> dict[str, Any]:
    row = _row(CASE, engine, "", [math.nan], None, note=why)
    return row | {"median_s": None, "spread_s": None}
