"""`mtbridge serve` and `mtbridge ping`: the worker, and whether it answers."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from mtbridge.cli.options import (
    DeviceOption,
    EndpointOption,
    EngineName,
    EngineOption,
    Precision,
    PrecisionOption,
    QuietOption,
    VerboseOption,
)
from mtbridge.cli.say import note
from mtbridge.wire.codes import DEFAULT_ENDPOINT


def serve(
    bind: Annotated[
        str, typer.Option("--bind", help="Where to listen; port 0 takes a free one.")
    ] = DEFAULT_ENDPOINT,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    precision: PrecisionOption = Precision.FULL,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Allow an address that other machines reach; nobody is asked for a password."
        ),
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Start the worker that answers MQL5 scripts and other ZeroMQ clients; Ctrl-C ends it.

    Example: mtbridge serve --bind tcp://127.0.0.1:5555
    """
    from mtbridge.server import Server, serve_until_signalled

    level = logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(message)s")
    server = Server(bind, engine_name=engine, device=device, precision=precision, insecure=insecure)

    def ready(endpoint: str) -> None:
        note(f"listening on {endpoint}: {server.description}", quiet=quiet)

    serve_until_signalled(server, ready=ready)
    note("stopped", quiet=quiet)


def ping(
    endpoint: EndpointOption = DEFAULT_ENDPOINT,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds to wait for an answer.")
    ] = 5.0,
) -> None:
    """Ask a worker whether it is there, what it computes with and what it accepts.

    Example: mtbridge ping --endpoint tcp://127.0.0.1:5555
    """
    import time

    from mtbridge.client import Client

    with Client(endpoint, timeout=timeout) as client:
        # the first round trip includes the connection
        answer = client.ping()
        start = time.perf_counter()
        client.ping()
        milliseconds = 1e3 * (time.perf_counter() - start)
    typer.echo(f"{endpoint}: {answer}, {milliseconds:.2f} ms")
