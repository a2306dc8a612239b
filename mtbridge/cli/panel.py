"""What the commands on price files share: reading them, and the options that say how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mtbridge.cli.options import Returns
from mtbridge.cli.say import note

if TYPE_CHECKING:
    from mtbridge.history import Panel


class Missing(StrEnum):
    drop = "drop"
    pairwise = "pairwise"


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
MissingOption = Annotated[
    Missing,
    typer.Option("--missing", help="Take the times that all symbols share, or those of each pair."),
]
MinPeriodsOption = Annotated[
    int, typer.Option("--min-periods", min=1, help="Rows that a pair must share, else its number is NaN.")
]
DdofOption = Annotated[int, typer.Option("--ddof", min=0, help="The divisor is rows - ddof.")]


@dataclass(frozen=True, slots=True)
class Files:
    """Which prices are read, and what is taken of them."""

    paths: list[str]
    returns: Returns
    symbols: str | None
    start: str | None
    end: str | None
    missing: Missing
    quiet: bool
    verbose: bool

    def panel(self) -> Panel:
        """Read the files, say what was decided, and return what goes into a matrix."""
        from mtbridge.history import prepare, read_prices

        chosen = None if self.symbols is None else listed(self.symbols)
        prices = read_prices(self.paths, symbols=chosen, start=self.start, end=self.end)
        if self.verbose:
            for source in prices.sources:
                span = f"{source.rows} rows, {source.first} to {source.last}"
                note(f"{source.path}: {source.family}, {source.clock}, {span}")
        panel = prepare(prices, returns=self.returns, missing=self.missing)
        for sentence in panel.notes:
            note(sentence, quiet=self.quiet)
        return panel

    @property
    def what(self) -> str:
        """What is taken of the prices, for people."""
        return "price levels" if self.returns is Returns.none else f"{self.returns} returns"


def extent(panel: Panel) -> str:
    """Return how many rows there are, and from when to when, for people."""
    return f"{len(panel.frame)} rows, {panel.frame.index[0]} to {panel.frame.index[-1]}"


def listed(text: str) -> list[str]:
    """Return the names in a text that separates them by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
