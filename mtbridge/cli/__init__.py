"""The command line: each command parses, calls one library function and prints.

Numbers go to stdout, words about them to stderr. A foreseeable failure is one sentence and exit code 1;
a traceback is a bug of ours.
"""

from __future__ import annotations

import sys

import typer

from mtbridge.cli import (
    bench,
    bench_gpu,
    demo,
    devices,
    kernels,
    ladder,
    memory,
    moving,
    multiply,
    prices,
    statistics,
    tune,
    worker,
)
from mtbridge.cli.say import complain
from mtbridge.errors import MtbridgeError

app = typer.Typer(
    name="mtbridge",
    help="Big covariance, correlation and matrix products for MetaTrader 5, on OpenCL, over ZeroMQ.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("covariance")(statistics.covariance)
app.command("correlation")(statistics.correlation)
app.command("lagged")(statistics.lagged)
app.command("rolling")(moving.rolling)
app.command("expanding")(moving.expanding)
app.command("ewm")(moving.ewm)
app.command("multiply")(multiply.multiply)
app.command("sample")(prices.sample)
app.command("download")(prices.download)
app.command("demo")(demo.demo)
app.command("devices")(devices.devices)
app.command("tune")(tune.tune)
app.command("serve")(worker.serve)
app.command("ping")(worker.ping)
bench.app.command("gpu")(bench_gpu.gpu)
bench.app.command("ladder")(ladder.ladder)
bench.app.command("memory")(memory.memory)
app.add_typer(bench.app, name="bench")
app.add_typer(kernels.app, name="kernels")


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and end."),
) -> None:
    """Big covariance, correlation and matrix products for MetaTrader 5, on OpenCL, over ZeroMQ.

    Example: mtbridge demo
    """
    if version:
        from mtbridge import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; the entry point of `mtbridge` and of `python -m mtbridge`."""
    try:
        app()
    except MtbridgeError as error:
        complain(str(error))
        sys.exit(1)
    except MemoryError as error:
        complain(f"not enough memory: {str(error) or 'the matrix is too large'}; use fewer symbols or rows.")
        sys.exit(1)
