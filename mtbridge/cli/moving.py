"""`mtbridge rolling`, `expanding` and `ewm`: price files in, a matrix or a number for each row out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbridge.cli.options import (
    DeviceOption,
    EngineName,
    EngineOption,
    OutputOption,
    QuietOption,
    Returns,
    VerboseOption,
)
from mtbridge.cli.panel import (
    Files,
    FromOption,
    Missing,
    MissingOption,
    PathsArgument,
    ReturnsOption,
    SymbolsOption,
    ToOption,
    extent,
    listed,
)
from mtbridge.cli.say import note, reason
from mtbridge.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from mtbridge.compute import Engine


class Statistic(StrEnum):
    correlation = "correlation"
    covariance = "covariance"
    beta = "beta"


class Reduce(StrEnum):
    none = "none"
    mean = "mean"
    row = "row"
    pairs = "pairs"
    top = "top"
    eigenvalue = "eigenvalue"
    variance = "variance"


StatisticOption = Annotated[
    Statistic, typer.Option("--statistic", help="What is taken of each window; beta is to --symbol.")
]
ReduceOption = Annotated[
    Reduce,
    typer.Option(
        "--reduce",
        help="Not matrices but their mean correlation, the row of --symbol, --pairs, the --top pairs, the "
        "largest eigenvalue, or the variance of a portfolio of --weights.",
    ),
]
SymbolOption = Annotated[
    str | None, typer.Option("--symbol", help="The benchmark of beta, or the symbol whose row is wanted.")
]
PairsOption = Annotated[
    str | None, typer.Option("--pairs", help="For --reduce pairs, such as EURUSD:GBPUSD,XAUUSD:XAGUSD.")
]
TopOption = Annotated[int, typer.Option("--top", min=1, help="How many pairs --reduce top gives.")]
WeightsOption = Annotated[
    str | None,
    typer.Option("--weights", help="A portfolio, such as EURUSD=0.5,XAUUSD=0.5; equal by default."),
]
LastOption = Annotated[bool, typer.Option("--last", help="Only the newest window.")]
MovingPeriodsOption = Annotated[
    int | None,
    typer.Option("--min-periods", min=0, help="Rows a pair must share in a window; as pandas by default."),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of each window."""

    statistic: Statistic
    reduce: Reduce
    symbol: str | None
    pairs: str | None
    top: int
    weights: str | None
    last: bool

    def __post_init__(self) -> None:
        beta = self.statistic is Statistic.beta
        if self.reduce is not Reduce.none and self.last:
            raise OptionError("--last gives whole matrices; leave it out with --reduce.")
        if beta and self.reduce is not Reduce.none:
            raise OptionError("--statistic beta is to one --symbol already; leave --reduce out.")
        if self.reduce in (Reduce.mean, Reduce.top) and self.statistic is not Statistic.correlation:
            raise OptionError(
                f"--reduce {self.reduce.value} is of correlations but --statistic is {self.statistic.value}; "
                "leave one of them out."
            )
        # an option that nothing looks at would leave another answer than the one that was meant
        for name, value, user in (
            ("--symbol", self.symbol, Reduce.row),
            ("--pairs", self.pairs, Reduce.pairs),
            ("--weights", self.weights, Reduce.variance),
        ):
            if value is not None and self.reduce is not user and not (beta and name == "--symbol"):
                raise OptionError(f"{name} is for --reduce {user.value}; add that, or leave {name} out.")

    @property
    def taken(self) -> str:
        """What is taken of each window, for people: the variance of a portfolio is of covariances."""
        return "covariance" if self.reduce is Reduce.variance else self.statistic.value

    def of(self, moving: Any, names: list[str], *, quiet: bool) -> Any:
        """Return the table that is asked for, of the windows `moving` of the symbols `names`."""

        def progress(done: int, count: int) -> None:
            if done < count:
                note(f"{done:,} of {count:,} windows", quiet=quiet)

        statistic = self.statistic.value
        if self.statistic is Statistic.beta:
            return moving.beta(self._named(names), last=self.last)
        match self.reduce:
            case Reduce.none:
                return getattr(moving, statistic)(last=self.last, progress=progress)
            case Reduce.mean:
                return moving.mean_correlation()
            case Reduce.row:
                return moving.row(self._named(names), statistic=statistic)
            case Reduce.pairs:
                return moving.pairs(self._pairs(), statistic=statistic)
            case Reduce.top:
                return moving.top_pairs(self.top)
            case Reduce.eigenvalue:
                return moving.largest_eigenvalue(statistic=statistic)
            case Reduce.variance:
                return moving.portfolio_variance(self._weights(names))

    def _named(self, names: list[str]) -> str:
        if self.symbol is None:
            raise OptionError(f"name one symbol by --symbol, such as --symbol {names[0]}.")
        return self.symbol

    def _pairs(self) -> list[tuple[str, str]]:
        found = [tuple(pair.split(":")) for pair in listed(self.pairs or "")]
        if not found or any(len(pair) != 2 for pair in found):
            raise OptionError(f"--pairs is {self.pairs!r}; give pairs such as EURUSD:GBPUSD,XAUUSD:XAGUSD.")
        return [(first.strip(), second.strip()) for first, second in found]

    def _weights(self, names: list[str]) -> list[float]:
        if self.weights is None:
            return [1 / len(names)] * len(names)
        given: dict[str, float] = {}
        for part in listed(self.weights):
            name, _, number = part.partition("=")
            name = name.strip()
            if name in given:
                raise OptionError(f"--weights names {name} twice; give each symbol one weight.")
            try:
                given[name] = float(number)
            except ValueError:
                raise OptionError(
                    f"--weights has {part!r}; give a number for each symbol, such as EURUSD=0.5."
                ) from None
        if unknown := [name for name in given if name not in names]:
            raise OptionError(f"--weights names {unknown[0]!r}, which is not among {', '.join(names)}.")
        if not given:
            raise OptionError("--weights is empty; give a number for each symbol, such as EURUSD=0.5.")
        return [given.get(name, 0.0) for name in names]


def rolling(
    paths: PathsArgument,
    window: Annotated[
        str,
        typer.Option("--window", help="Rows of a window, such as 60, or a time, such as 10D."),
    ],
    output: OutputOption = None,
    statistic: StatisticOption = Statistic.correlation,
    reduce: ReduceOption = Reduce.none,
    symbol: SymbolOption = None,
    pairs: PairsOption = None,
    top: TopOption = 10,
    weights: WeightsOption = None,
    last: LastOption = False,
    step: Annotated[int, typer.Option("--step", min=1, help="Every so manieth window.")] = 1,
    min_periods: MovingPeriodsOption = None,
    returns: ReturnsOption = Returns.log,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute matrices of rolling windows, or one number of each.

    Example: mtbridge rolling prices.csv --window 60 --reduce mean -o mean.csv
    """
    from mtbridge import frame

    length: int | str = window
    # a bare number is one of rows, with a sign or a blank too: as a span of time it would be of nanoseconds
    with suppress(ValueError):
        length = int(window)
    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    asked = Asked(statistic, reduce, symbol, pairs, top, weights, last)
    answer(
        f"rolling {window}",
        files,
        asked,
        output,
        frame.opened(engine, device),
        lambda data, opened: frame.rolling(data, length, min_periods=min_periods, step=step, engine=opened),
    )


def expanding(
    paths: PathsArgument,
    output: OutputOption = None,
    statistic: StatisticOption = Statistic.correlation,
    reduce: ReduceOption = Reduce.none,
    symbol: SymbolOption = None,
    pairs: PairsOption = None,
    top: TopOption = 10,
    weights: WeightsOption = None,
    last: LastOption = False,
    min_periods: MovingPeriodsOption = None,
    returns: ReturnsOption = Returns.log,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute matrices of all rows up to each row, or one number of each.

    Example: mtbridge expanding prices.csv --reduce mean -o mean.csv
    """
    from mtbridge import frame

    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    answer(
        "expanding",
        files,
        Asked(statistic, reduce, symbol, pairs, top, weights, last),
        output,
        frame.opened(engine, device),
        lambda data, opened: frame.expanding(
            data, min_periods=1 if min_periods is None else min_periods, engine=opened
        ),
    )


def ewm(
    paths: PathsArgument,
    output: OutputOption = None,
    span: Annotated[float | None, typer.Option("--span", help="Decay by span, 1 or more.")] = None,
    halflife: Annotated[
        str | None,
        typer.Option("--halflife", help="Decay by half-life: rows, such as 20, or a time, such as 4h."),
    ] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Decay by the weight of a new row.")] = None,
    statistic: StatisticOption = Statistic.correlation,
    reduce: ReduceOption = Reduce.none,
    symbol: SymbolOption = None,
    pairs: PairsOption = None,
    top: TopOption = 10,
    weights: WeightsOption = None,
    last: LastOption = False,
    min_periods: MovingPeriodsOption = None,
    returns: ReturnsOption = Returns.log,
    symbols: SymbolsOption = None,
    start: FromOption = None,
    end: ToOption = None,
    missing: MissingOption = Missing.drop,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compute exponentially weighted matrices at each row, or one number of each.

    Example: mtbridge ewm prices.csv --span 60 --last
    """
    from mtbridge import frame

    life: float | str | None = halflife
    if halflife is not None:
        with suppress(ValueError):
            life = float(halflife)
    files = Files(paths, returns, symbols, start, end, missing, quiet, verbose)
    answer(
        "exponentially weighted",
        files,
        Asked(statistic, reduce, symbol, pairs, top, weights, last),
        output,
        frame.opened(engine, device),
        lambda data, opened: frame.ewm(
            data, span=span, halflife=life, alpha=alpha, min_periods=min_periods or 0, engine=opened
        ),
    )


def answer(
    what: str,
    files: Files,
    asked: Asked,
    output: Path | None,
    engine: Engine,
    windows: Callable[[Any, Engine], Any],
) -> None:
    """Read the files, compute what is asked of their windows, say so and give the table out."""
    from mtbridge.cli.output import check_output, finish_table

    check_output(output)
    panel = files.panel()
    names = [str(name) for name in panel.frame.columns]
    table = asked.of(windows(panel.frame, engine), names, quiet=files.quiet)
    if files.verbose:
        note(reason(engine))
    number = "" if asked.reduce is Reduce.none else f", {asked.reduce.value} of each"
    note(
        f"{what} {asked.taken} of {files.what}{number}: {len(names)} symbols, {extent(panel)}; "
        f"{engine.used.name} on {engine.used.device}",
        quiet=files.quiet,
    )
    decimals = 4 if asked.statistic is Statistic.correlation and asked.reduce is not Reduce.variance else None
    finish_table(table, output, decimals=decimals, quiet=files.quiet)
