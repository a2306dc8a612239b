"""`mtbridge bench`: same-run ratios against named peers, with the error beside the speed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mtbridge.cli.options import DeviceOption
from mtbridge.cli.say import note

app = typer.Typer(help="Measure speed beside named peers.", no_args_is_help=True, rich_markup_mode=None)

JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
SizesOption = Annotated[str, typer.Option("--sizes", help="Sizes of square matrices, separated by commas.")]


@app.command()
def gram(device: DeviceOption = None, sizes: SizesOption = "1000", json: JsonOption = None) -> None:
    """Time X'X on each engine and by OpenBLAS.

    Example: mtbridge bench gram --sizes 256 --json gram.json
    """
    from mtbridge.bench.products import measure_gram

    report(lambda say: measure_gram(whole(sizes), device=device, say=say), json)


@app.command()
def multiply(device: DeviceOption = None, sizes: SizesOption = "1000", json: JsonOption = None) -> None:
    """Time A B on each engine and by OpenBLAS.

    Example: mtbridge bench multiply --sizes 256 --json multiply.json
    """
    from mtbridge.bench.products import measure_multiply

    report(lambda say: measure_multiply(whole(sizes), device=device, say=say), json)


@app.command()
def bridge(
    rounds: Annotated[int, typer.Option("--rounds", min=7, help="Round trips to time.")] = 300,
    json: JsonOption = None,
) -> None:
    """Time a round trip to a worker beside a bare ZeroMQ echo of the same bytes.

    Example: mtbridge bench bridge --rounds 50 --json bridge.json
    """
    from mtbridge.bench.bridge import measure_bridge

    report(lambda say: measure_bridge(rounds=rounds, progress=say), json)


def whole(sizes: str) -> list[int]:
    from mtbridge.errors import OptionError

    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise OptionError(
            f"--sizes is {sizes!r}; give whole numbers separated by commas, such as 500,1000."
        ) from None
    if min(numbers) < 1:
        raise OptionError(f"--sizes is {sizes!r}; sizes start at 1.")
    return numbers


def report(measure: Callable[[Callable[[str], None]], list[dict[str, Any]]], path: Path | None) -> None:
    """Measure, print a table, and write the rows beside the machine's description."""
    from mtbridge.bench.report import table, write_json
    from mtbridge.history.atomic import replace_file

    if path is None:
        typer.echo(table(measure(note)))
        return
    # opened first, so that a name that cannot be written to is refused before the work
    with replace_file(path) as temporary:
        rows = measure(note)
        typer.echo(table(rows))
        write_json(rows, temporary)
    note(f"written to {path}")
