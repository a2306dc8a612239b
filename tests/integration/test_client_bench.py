"""`mtbridge.bench.bridge`: the rows of the bridge benchmark, and the echo that they are measured by."""

from __future__ import annotations

import zmq

from mtbridge.bench.bridge import measure_bridge
from mtbridge.bench.echo import EchoServer

KEYS = {
    "case",
    "dtype",
    "contender",
    "device",
    "threads",
    "median_s",
    "spread_s",
    "gflops",
    "error",
    "note",
    "versus",
}


def test_the_echo_sends_every_frame_back_as_it_came() -> None:
    with EchoServer() as echo, zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 10_000)
        socket.connect(echo.endpoint)
        frames = [b"", b"head", b"", bytes(range(256)) * 1000]
        socket.send_multipart(frames)
        assert socket.recv_multipart() == frames
    assert echo._process.exitcode == 0


def test_the_rows_have_the_shape_of_every_benchmark_and_a_ratio_to_the_echo() -> None:
    said: list[str] = []
    rows = measure_bridge(rounds=20, progress=said.append, engines=("numpy",))
    assert said
    assert all(row.keys() == KEYS for row in rows)
    assert [(row["case"], row["contender"]) for row in rows] == [
        ("bridge correlation 60x50", "numpy"),
        ("bridge correlation 60x50", "echo"),
        ("bridge correlation 60x50, 8 clients", "numpy"),
        ("bridge correlation 60x50, 8 clients", "echo"),
    ]
    for ours, echo in (rows[:2], rows[2:]):
        assert ours["dtype"] == "float64"
        assert ours["versus"]["echo"] == echo["median_s"] / ours["median_s"]
        assert echo["versus"] == {}
    assert rows[0]["error"] < 1e-14
    assert "us more than the echo" in rows[0]["note"]
    assert "requests a second" in rows[2]["note"]


def test_a_worker_that_cannot_start_is_a_row_with_the_reason() -> None:
    (row,) = measure_bridge(rounds=20, engines=("opencl",), device="no such device")
    assert row.keys() == KEYS
    assert row["median_s"] is None
    assert "no such device" in row["note"]
