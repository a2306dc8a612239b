"""Where a worker listens, and where it refuses to."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from wire_peers import check_alive

from mtbridge.errors import EndpointError
from mtbridge.server import DEFAULT_ENDPOINT, Server


@pytest.mark.parametrize(
    "bind",
    [
        "tcp://0.0.0.0:5555",
        "tcp://*:5555",
        "tcp://192.168.1.5:5555",
        "tcp://eth0:5555",
        "tcp://example.org:5555",
        "tcp://[::]:5555",
        "tcp://128.0.0.1:0",
        "tcp://127.0.0.1.example.org:0",
        "tcp://localhost.example.org:0",
        "tcp://lo;127.0.0.1:0",
        "tcp://0:5555",
        "tcp://2130706433:5555",
    ],
)
def test_an_address_that_others_can_reach_needs_a_word_typed(bind: str) -> None:
    with pytest.raises(EndpointError, match="--insecure") as caught:
        Server(bind)
    assert bind in str(caught.value)


@pytest.mark.parametrize(
    "bind",
    [
        "",
        "5555",
        "127.0.0.1:5555",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "tcp://:5555",
        "udp://127.0.0.1:1",
        "tcp://127.0.0.1:x",
        "tcp://127.0.0.1:70000",
        "tcp://127.0.0.1:-1",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(bind: str) -> None:
    with pytest.raises(EndpointError) as caught:
        Server(bind)
    assert DEFAULT_ENDPOINT in str(caught.value) or "65535" in str(caught.value)


@pytest.mark.parametrize(
    "bind", ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*", "tcp://localhost:0", "tcp://127.8.9.10:0"]
)
def test_a_free_port_is_taken_and_told(bind: str) -> None:
    if sys.platform != "linux" and "127.8" in bind:
        pytest.skip("only Linux answers at all of 127.0.0.0/8")
    server = Server(bind, engine_name="numpy")
    with server:
        port = int(server.endpoint.rpartition(":")[2])
        assert port > 0
        assert server.endpoint.startswith("tcp://127.")
        assert "numpy on" in server.description
        check_alive(server.endpoint)


def test_the_loopback_address_of_ipv6_is_accepted() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback address")
    with Server("tcp://[::1]:0", engine_name="numpy") as server:
        assert server.endpoint.startswith("tcp://[::1]:")


def test_an_open_address_is_accepted_once_the_word_is_typed() -> None:
    with Server("tcp://0.0.0.0:0", engine_name="numpy", insecure=True) as server:
        port = server.endpoint.rpartition(":")[2]
        check_alive(f"tcp://127.0.0.1:{port}")


@pytest.mark.skipif(sys.platform == "win32", reason="ipc needs Unix sockets")
def test_a_unix_socket_is_accepted(tmp_path: Path) -> None:
    with Server(f"ipc://{tmp_path}/worker", engine_name="numpy") as server:
        check_alive(server.endpoint)


def test_a_port_in_use_is_named_with_the_mend() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        bind = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(EndpointError, match="in use by another program") as caught:
            Server(bind, engine_name="numpy").run()
    assert bind in str(caught.value)
    assert "--bind" in str(caught.value)


def test_a_second_worker_on_one_port_is_refused_and_the_first_lives_on() -> None:
    with Server("tcp://127.0.0.1:0", engine_name="numpy") as first:
        with pytest.raises(EndpointError, match="in use"), Server(first.endpoint, engine_name="numpy"):
            pytest.fail("it started")
        check_alive(first.endpoint)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    with pytest.raises(EndpointError, match="address of this machine"):
        Server("tcp://192.0.2.1:0", engine_name="numpy", insecure=True).run()
