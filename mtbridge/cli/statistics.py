"""`mtbridge covariance`, `correlation` and `lagged`: price files in, one matrix for the whole history out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mtbridge.cli.options import (
    DeviceOption,
    Dtype,
    DtypeOption,
    EngineName,
    EngineOption,
    OutputOption,
    Precision,
    PrecisionOption,
    QuietOption,
    Returns,
    VerboseOption,
    check_precision,
)
from mtbridge.cli.panel import (
    DdofOption,
    Files,
    FromOption,
    MinPeriodsOption,
    Missing,
    MissingOption,
    PathsArgument,
    ReturnsOption,
    SymbolsOption,
    ToOption,
    extent,
)
from mtbridge.cli.say import note, reason
from mtbridge.errors import InputError, OptionError

if TYPE_CHECKING:
    from mtbridge.compute import Engine
    from mtbridge.history import Panel
    from mtbridge.matrix import Result


class Method(StrEnum):
    pearson = "pearson"
    spearman = "spearman"
    kendall = "kendall"


class Lagged(StrEnum):
    correlation = "correlation"
    covariance = "covariance"


def covariance(
    paths: PathsArgument,
    output: OutputOption = None,
    returns: ReturnsOption = Returns.log,
    ddof: DdofOption = 1,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    min_periods: MinPeriodsOption = 1,
    annualise: Annotated[
        str | None,
        typer.Option("--annualise", help="For a year: auto infers the bars of a year, or their number."),
    ] = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    dtype: DtypeOption = Dtype.float64,
    precision: PrecisionOption = Precision.FULL,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute the covariance matrix of the returns in price files.

    Example: mtbridge covariance prices.csv -o covariance.csv
    """
    from mtbridge import frame
    from mtbridge.cli.output import check_output, finish

    check_output(output)
    check_precision(precision, dtype)
    year = bars(annualise)
    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    panel = files.panel()
    if ddof >= len(panel.frame):
        raise InputError(f"ddof is {ddof} but there are only {len(panel.frame)} rows; use a smaller ddof.")
    opened = frame.opened(engine, device, precision)
    result = frame.covariance(
        panel.frame,
        ddof=ddof,
        min_periods=min_periods,
        annualise=year,
        engine=opened,
        dtype=dtype,
        full=True,
    )
    say_result("covariance", files, panel, result, opened)
    finish(result, output, quiet=quiet)


def correlation(
    paths: PathsArgument,
    output: OutputOption = None,
    returns: ReturnsOption = Returns.log,
    method: Annotated[
        Method, typer.Option("--method", help="Of the numbers, or of their ranks.")
    ] = Method.pearson,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    min_periods: MinPeriodsOption = 1,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    dtype: DtypeOption = Dtype.float64,
    precision: PrecisionOption = Precision.FULL,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute the correlation matrix of the returns in price files.

    Example: mtbridge correlation prices.csv --returns log
    """
    from mtbridge import frame
    from mtbridge.cli.output import check_output, finish

    check_output(output)
    check_precision(precision, dtype)
    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    panel = files.panel()
    opened = frame.opened(engine, device, precision)
    result = frame.correlation(
        panel.frame, method=method.value, min_periods=min_periods, engine=opened, dtype=dtype, full=True
    )
    what = "correlation" if method is Method.pearson else f"{method.capitalize()} correlation"
    say_result(what, files, panel, result, opened)
    finish(result, output, decimals=4, quiet=quiet)


def lagged(
    paths: PathsArgument,
    output: OutputOption = None,
    lags: Annotated[int, typer.Option("--lags", min=0, help="Lags from minus this to this are taken.")] = 5,
    statistic: Annotated[
        Lagged, typer.Option("--statistic", help="What is taken of each pair at each lag.")
    ] = Lagged.correlation,
    returns: ReturnsOption = Returns.log,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    min_periods: MinPeriodsOption = 1,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute matrices of all pairs at lags: at lag 2, a row's symbol two bars before the column's.

    Example: mtbridge lagged prices.csv --lags 5 -o lags.csv
    """
    from mtbridge import frame
    from mtbridge.cli.output import check_output, finish_table

    check_output(output)
    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    panel = files.panel()
    opened = frame.opened(engine, device)
    function = frame.lagged_correlation if statistic is Lagged.correlation else frame.lagged_covariance
    table = function(panel.frame, lags, min_periods=min_periods, engine=opened)
    if verbose:
        note(reason(opened))
    note(
        f"{statistic} of {files.what} at lags -{lags} to {lags}: {panel.frame.shape[1]} symbols, "
        f"{extent(panel)}; {opened.used.name} on {opened.used.device}",
        quiet=quiet,
    )
    finish_table(table, output, decimals=4 if statistic is Lagged.correlation else None, quiet=quiet)


def bars(annualise: str | None) -> bool | float:
    """Return what `annualise` of a covariance takes: False, True for what the times say, or bars a year."""
    if annualise is None or annualise == "auto":
        return annualise is not None
    try:
        number = float(annualise)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise OptionError(f"--annualise is {annualise!r}; give auto, or the bars of a year such as 252.")
    return number


def say_result(what: str, files: Files, panel: Panel, result: Result, engine: Engine) -> None:
    """Say what was computed, of what and where."""
    if files.verbose:
        note(reason(engine))
        note(
            f"smallest eigenvalue {result.smallest_eigenvalue:.3g}, condition number "
            f"{result.condition_number:.3g}"
        )
    for sentence in result.notes:
        note(sentence, quiet=files.quiet)
    shared = result.counts
    if shared is not None and shared.size and shared.min() < result.rows:
        note(f"rows that a pair shares: {shared.min():,} to {shared.max():,}", quiet=files.quiet)
    note(
        f"{what} of {files.what}: {len(result.matrix)} symbols, {extent(panel)}; "
        f"{result.engine} on {result.device}, {result.matrix.dtype}, {result.seconds:.4f} s",
        quiet=files.quiet,
    )
