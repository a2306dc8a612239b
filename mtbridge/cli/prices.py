"""`mtbridge sample` and `mtbridge download`: price tables to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtbridge.cli.options import QuietOption
from mtbridge.cli.say import note


def sample(
    columns: Annotated[int, typer.Option("--columns", min=1, help="Number of symbols.")] = 20,
    rows: Annotated[int, typer.Option("--rows", min=2, help="Number of hourly bars.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same prices.")] = 7,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this .csv or .parquet file, not to stdout."),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Make a seeded, realistic table of prices with gaps.

    Example: mtbridge sample --columns 20 --rows 2000 --seed 7 -o prices.csv
    """
    from mtbridge.history import sample_panel, write_sample

    if output is None:
        typer.echo(sample_panel(columns, rows, seed).to_csv(lineterminator="\n"), nl=False)
        return
    write_sample(output, columns=columns, rows=rows, seed=seed)
    note(f"made-up prices of {columns} symbols in {rows} hourly bars are in {output}", quiet=quiet)


def download(
    symbols: Annotated[str, typer.Argument(help="Symbols as the broker writes them, separated by commas.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .csv or .parquet file to write.")],
    start: Annotated[str, typer.Option("--from", help="First time, on the server's clock.")],
    end: Annotated[str, typer.Option("--to", help="Last time, included; a bare day counts whole.")],
    timeframe: Annotated[str, typer.Option("--timeframe", help="M1, M5, ..., H1, H4, D1, W1 or MN1.")] = "H1",
    quiet: QuietOption = False,
) -> None:
    """Download prices from a MetaTrader 5 terminal on this Windows machine.

    Example: mtbridge download EURUSD --from 2025-01-01 --to 2025-06-30 -o p.csv
    """
    from mtbridge import history
    from mtbridge.history.write import check_suffix

    check_suffix(output)
    with history.open_terminal() as terminal:
        frame = history.download(
            [name.strip() for name in symbols.split(",") if name.strip()],
            timeframe,
            start,
            end,
            terminal=terminal,
            say=lambda sentence: note(sentence, quiet=quiet),
        )
    history.write_prices(frame, output)
    note(f"{len(frame)} rows of {len(frame.columns)} symbols are in {output}", quiet=quiet)
