"""Where a worker may listen, and what to say when it cannot."""

from __future__ import annotations

import errno
import ipaddress

import zmq

from mtbridge.errors import EndpointError
from mtbridge.wire import DEFAULT_ENDPOINT


def check_bind(endpoint: str, *, insecure: bool) -> str:
    """Return `endpoint` as ZeroMQ binds it, once it is known to be reachable from this machine only.

    Parameters
    ----------
    endpoint : "tcp://HOST:PORT", port 0 or * for a free one; "ipc://PATH"
    insecure : accept an address that other machines can reach

    Raises
    ------
    EndpointError
        If it is no such address, or not on the loopback interface without `insecure`.
    """
    transport, separator, rest = endpoint.partition("://")
    if not separator or not rest or transport not in ("tcp", "ipc"):
        raise EndpointError(
            f"{endpoint!r} is no address to listen on; write {DEFAULT_ENDPOINT}, for example."
        )
    if transport != "tcp":
        return endpoint
    host, separator, port = rest.rpartition(":")
    if not separator or not host or not (port == "*" or (port.isascii() and port.isdigit())):
        raise EndpointError(
            f"{endpoint!r} has no port; write {DEFAULT_ENDPOINT}, or port 0 for one that is free."
        )
    if port != "*" and int(port) > 65535:
        raise EndpointError(
            f"{endpoint!r} has port {port}; ports go from 1 to 65535, 0 for one that is free."
        )
    if host == "localhost":
        # ZeroMQ binds to addresses and interfaces, not to names.
        host = "127.0.0.1"
    if not insecure and not _is_loopback(host):
        raise EndpointError(
            f"{endpoint} can be reached from other machines and nothing asks them for a password; "
            "bind to 127.0.0.1, or add --insecure if you mean it."
        )
    return f"tcp://{host}:{port}"


def is_ipv6(endpoint: str) -> bool:
    """Whether the host of a tcp endpoint is an IPv6 address in brackets."""
    return endpoint.startswith("tcp://[")


def bind_failure(endpoint: str, failure: zmq.ZMQError) -> EndpointError:
    """Return what to say when ZeroMQ could not bind to `endpoint`."""
    # on Windows Python's errno has another number for it than ZeroMQ
    if failure.errno in (errno.EADDRINUSE, zmq.Errno.EADDRINUSE):
        return EndpointError(
            f"{endpoint} is in use by another program, perhaps another worker; stop that one, "
            "or choose another port with --bind (port 0 takes a free one)."
        )
    if failure.errno == errno.EACCES:
        return EndpointError(f"{endpoint} may not be bound by this user; choose a port above 1023.")
    return EndpointError(
        f"{endpoint} cannot be bound ({failure.strerror}); its host must be an address of this machine."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        # a name of an interface, *, or several addresses
        return False
