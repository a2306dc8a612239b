"""`mtbridge covariance` and `mtbridge correlation`: price files in, a matrix out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mtbridge.cli.options import (
    DeviceOption,
    Dtype,
    DtypeOption,
    EngineName,
    EngineOption,
    OutputOption,
    QuietOption,
    Returns,
    VerboseOption,
)
from mtbridge.cli.say import note, reason
from mtbridge.errors import InputError

PathsArgument = Annotated[
    list[str], typer.Argument(help="Price files, folders or patterns.", metavar="PATHS")
]
ReturnsOption = Annotated[
    Returns, typer.Option("--returns", help="What is taken of the prices; none uses their levels.")
]
SymbolsOption = Annotated[
    str | None, typer.Option("--symbols", help="Which symbols, in this order, separated by commas.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", help="First time, included: 2025-03-01 or 2025-03-01T08:00.")
]
ToOption = Annotated[str | None, typer.Option("--to", help="Last time, included; a bare day counts whole.")]


def covariance(
    paths: PathsArgument,
    output: OutputOption = None,
    returns: ReturnsOption = Returns.log,
    ddof: Annotated[int, typer.Option("--ddof", min=0, help="The divisor is rows - ddof.")] = 1,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    dtype: DtypeOption = Dtype.float64,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute the covariance matrix of the returns in price files.

    Example: mtbridge covariance prices.csv -o covariance.csv
    """
    answer(
        "covariance", paths, output, returns, ddof, symbols, start, end, engine, device, dtype, quiet, verbose
    )


def correlation(
    paths: PathsArgument,
    output: OutputOption = None,
    returns: ReturnsOption = Returns.log,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    dtype: DtypeOption = Dtype.float64,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute the correlation matrix of the returns in price files.

    Example: mtbridge correlation prices.csv --returns log
    """
    answer(
        "correlation", paths, output, returns, 1, symbols, start, end, engine, device, dtype, quiet, verbose
    )


def answer(
    statistic: Literal["covariance", "correlation"],
    paths: list[str],
    output: Path | None,
    returns: str,
    ddof: int,
    symbols: str | None,
    start: str | None,
    end: str | None,
    engine: str,
    device: str | None,
    dtype: str,
    quiet: bool,
    verbose: bool,
) -> None:
    from mtbridge import frame
    from mtbridge.cli.output import check_output, show_result, write_result
    from mtbridge.history import prepare, read_prices

    check_output(output)
    chosen = None if symbols is None else [name.strip() for name in symbols.split(",") if name.strip()]
    prices = read_prices(paths, symbols=chosen, start=start, end=end)
    if verbose:
        for source in prices.sources:
            span = f"{source.rows} rows, {source.first} to {source.last}"
            note(f"{source.path}: {source.family}, {source.clock}, {span}")
    panel = prepare(prices, returns=returns)
    for sentence in panel.notes:
        note(sentence, quiet=quiet)
    if ddof >= len(panel.frame):
        raise InputError(f"ddof is {ddof} but there are only {len(panel.frame)} rows; use a smaller ddof.")
    opened = frame.opened(engine, device)
    if statistic == "covariance":
        result = frame.covariance(panel.frame, ddof=ddof, engine=opened, dtype=dtype, full=True)
    else:
        result = frame.correlation(panel.frame, engine=opened, dtype=dtype, full=True)
    if verbose:
        note(reason(opened))
    first, last = panel.frame.index[0], panel.frame.index[-1]
    what = "price levels" if returns == "none" else f"{returns} returns"
    note(
        f"{statistic} of {what}: {len(result.matrix)} symbols, {result.rows} rows, {first} to {last}; "
        f"{result.engine} on {result.device}, {result.matrix.dtype}, {result.seconds:.4f} s",
        quiet=quiet,
    )
    if output is None:
        show_result(result, decimals=4 if statistic == "correlation" else None)
    else:
        write_result(result, output)
        note(f"written to {output}", quiet=quiet)
