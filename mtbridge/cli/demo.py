"""`mtbridge demo`: the whole bridge once, on made-up prices."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mtbridge.cli.options import DeviceOption, EngineName, QuietOption
from mtbridge.cli.say import note

SHOWN = 6


class Report(msgspec.Struct, frozen=True):
    """What the demo found.

    `largest_difference` is between any two of worker, direct and serial: of correlations as they are, of
    covariances as a share of the two standard deviations.
    """

    engine: str
    device: str
    symbols: int
    rows: int
    largest_difference: float
    worker_seconds: float
    direct_seconds: float
    serial_seconds: float
    serial: str


def demo(
    engine: Annotated[
        EngineName | None,
        typer.Option("--engine", help="What computes; by default opencl, or numpy without a device."),
    ] = None,
    device: DeviceOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one line of JSON.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Make sample prices, compute their matrices through a worker and directly, and compare.

    Example: mtbridge demo
    """
    import time

    import numpy as np
    import pandas as pd

    from mtbridge import frame
    from mtbridge.client import Client
    from mtbridge.compute import device_or_numpy, open_engine
    from mtbridge.history import prepare, read_prices, write_sample
    from mtbridge.server import WorkerProcess

    # not auto: the matrices are small, and what is shown is that the device works
    name = engine or device_or_numpy(device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prices.csv"
        write_sample(path)
        panel = prepare(read_prices(path))
    for sentence in panel.notes:
        note(sentence, quiet=quiet)
    returns = panel.frame
    note("starting a worker", quiet=quiet)
    with WorkerProcess(engine_name=name, device=device) as worker, Client(worker.endpoint) as client:
        # the first request of each kind builds a kernel
        client.covariance(returns)
        start = time.perf_counter()
        remote = client.covariance(returns), client.correlation(returns)
        worker_seconds = time.perf_counter() - start
    with open_engine(name, device=device) as direct, open_engine("serial") as serial:
        frame.covariance(returns, engine=direct)
        frame.covariance(returns, engine=serial)
        start = time.perf_counter()
        here = frame.covariance(returns, engine=direct), frame.correlation(returns, engine=direct)
        middle = time.perf_counter()
        loop = frame.covariance(returns, engine=serial), frame.correlation(returns, engine=serial)
        end = time.perf_counter()
        used, described = direct.used, serial.device
    deviations = np.sqrt(np.diagonal(loop[0].to_numpy()))
    scales = np.outer(deviations, deviations), np.ones_like(loop[1].to_numpy())
    largest = max(
        float(np.abs((one - other).to_numpy() / scale).max())
        for answers in (remote, here)
        for one, other, scale in zip(answers, loop, scales, strict=True)
    )
    report = Report(
        engine=used.name,
        device=used.device,
        symbols=len(returns.columns),
        rows=len(returns),
        largest_difference=largest,
        worker_seconds=worker_seconds,
        direct_seconds=middle - start,
        serial_seconds=end - middle,
        serial=described,
    )
    if json:
        typer.echo(msgspec.json.encode(report).decode())
        return
    typer.echo(f"engine              {report.engine}")
    typer.echo(f"device              {report.device}")
    typer.echo(f"data                {report.symbols} symbols, {report.rows} log returns")
    typer.echo("covariance and correlation together:")
    typer.echo(f"  through the worker {1e3 * report.worker_seconds:8.2f} ms")
    typer.echo(f"  in this process    {1e3 * report.direct_seconds:8.2f} ms")
    typer.echo(f"  serial loop        {1e3 * report.serial_seconds:8.2f} ms ({report.serial})")
    typer.echo(f"largest difference  {report.largest_difference:.1e}")
    typer.echo("")
    corner: pd.DataFrame = here[1].iloc[:SHOWN, :SHOWN]
    typer.echo(corner.to_string(float_format="{:.3f}".format))
