"""`mtbridge bench`: same-run ratios against named peers, with the error beside the speed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mtbridge.cli.options import DeviceOption
from mtbridge.cli.say import note

if TYPE_CHECKING:
    from mtbridge.bench.contenders import Shape

app = typer.Typer(help="Measure speed beside named peers.", no_args_is_help=True, rich_markup_mode=None)

ROUNDS = 9


class ThreadsName(StrEnum):
    one = "1"
    all = "all"
    both = "both"


JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
SizesOption = Annotated[
    str | None, typer.Option("--sizes", help="Sizes of square matrices, separated by commas.")
]
GramShapesOption = Annotated[
    str | None, typer.Option("--shapes", help="Rows and columns, such as 100000x50,60x5000.")
]
MultiplyShapesOption = Annotated[
    str | None, typer.Option("--shapes", help="Rows, inner size and columns, such as 60x5000x60.")
]
PeersOption = Annotated[
    str,
    typer.Option(
        "--peers",
        help="Any of numpy, openblas and clblast, separated by commas; clblast is CLBlast on the same device "
        "(on Debian the package libclblast1).",
    ),
]
ThreadsOption = Annotated[
    ThreadsName, typer.Option("--threads", help="On all threads, on one (in a child process), or both.")
]
RoundsOption = Annotated[
    int, typer.Option("--rounds", min=1, help="Windows a median is taken of; 7 or more for a result.")
]


@app.command()
def gram(
    device: DeviceOption = None,
    sizes: SizesOption = None,
    shapes: GramShapesOption = None,
    peers: PeersOption = "numpy,openblas",
    threads: ThreadsOption = ThreadsName.both,
    rounds: RoundsOption = ROUNDS,
    json: JsonOption = None,
) -> None:
    """Time X'X on each engine and by its peers; without --sizes and --shapes at 1000 and at odd shapes.

    Example: mtbridge bench gram --sizes 256 --json gram.json
    """
    cases = product_shapes("gram", sizes, shapes)
    measure_and_report("gram", cases, device, known_peers(peers), threads, rounds, json)


@app.command()
def multiply(
    device: DeviceOption = None,
    sizes: SizesOption = None,
    shapes: MultiplyShapesOption = None,
    peers: PeersOption = "numpy,openblas",
    threads: ThreadsOption = ThreadsName.both,
    rounds: RoundsOption = ROUNDS,
    json: JsonOption = None,
) -> None:
    """Time A B on each engine and by its peers; without --sizes and --shapes at 1000 and at odd shapes.

    Example: mtbridge bench multiply --sizes 256 --json multiply.json
    """
    cases = product_shapes("multiply", sizes, shapes)
    measure_and_report("multiply", cases, device, known_peers(peers), threads, rounds, json)


@app.command()
def covariance(
    device: DeviceOption = None,
    shapes: Annotated[str, typer.Option("--shapes", help="Rows and columns, such as 2000x500.")] = "2000x500",
    threads: ThreadsOption = ThreadsName.both,
    rounds: RoundsOption = ROUNDS,
    json: JsonOption = None,
) -> None:
    """Time the covariance matrix of arrays beside np.cov, and of frames beside pandas.

    Example: mtbridge bench covariance --shapes 500x60 --json covariance.json
    """
    measure_and_report("covariance", whole_shapes(shapes, 2), device, (), threads, rounds, json)


@app.command()
def stats(
    device: DeviceOption = None,
    cases: Annotated[
        str | None,
        typer.Option("--cases", help="Any of the cases, separated by commas, such as 'pairwise cov,lags'."),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Rows and symbols of all cases, such as 500x20.")
    ] = None,
    peers: Annotated[
        str, typer.Option("--peers", help="Any of pandas, numbagg, polars and numpy, separated by commas.")
    ] = "pandas,numbagg,polars,numpy",
    rounds: RoundsOption = ROUNDS,
    json: JsonOption = None,
) -> None:
    """Time pairwise, rolling, ewm, rank and lagged statistics beside pandas and other peers.

    Example: mtbridge bench stats --cases lags --shape 500x20 --peers pandas
    """
    from mtbridge.bench.statistic_cases import CASES, PEERS
    from mtbridge.bench.statistics import measure_statistics

    names = tuple(CASES) if cases is None else known(cases, tuple(CASES), "--cases")
    size = None if shape is None else whole_shapes(shape, 2)[0]
    others = known(peers, PEERS, "--peers")
    say_glance(rounds)
    report(
        lambda say: measure_statistics(
            say, names=names, shape=size, device=device, peers=others, rounds=rounds
        ),
        json,
    )


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


def whole_shapes(shapes: str, count: int) -> tuple[Shape, ...]:
    """Return shapes of `count` sizes each."""
    from mtbridge.errors import OptionError

    like = ("100000x50,60x5000", "60x5000x60,1000x1000x50")[count - 2]
    try:
        found = tuple(tuple(int(size) for size in shape.split("x")) for shape in shapes.split(","))
    except ValueError:
        found = ()
    if not found or any(len(shape) != count or min(shape) < 1 for shape in found):
        raise OptionError(f"--shapes is {shapes!r}; give {count} sizes each, such as {like}.")
    return found


def product_shapes(
    operation: Literal["gram", "multiply"], sizes: str | None, shapes: str | None
) -> tuple[Shape, ...]:
    """Return the shapes that are meant: squares, others, or the usual ones where none are named."""
    from mtbridge.bench.products import ODD_SHAPES, square

    if sizes is None and shapes is None:
        return (square(operation, 1000), *ODD_SHAPES[operation])
    squares = () if sizes is None else tuple(square(operation, size) for size in whole(sizes))
    return squares + (() if shapes is None else whole_shapes(shapes, len(square(operation, 1))))


def known(text: str, names: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Return the names in `text`, all of them among `names`."""
    from mtbridge.errors import OptionError

    chosen = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in chosen if name not in names]:
        raise OptionError(f"{option} has {unknown[0]!r}; there are {', '.join(names)}.")
    return chosen


def known_peers(peers: str) -> tuple[str, ...]:
    from mtbridge.bench.products import PEERS

    return known(peers, PEERS, "--peers")


def say_glance(rounds: int) -> None:
    """Say so where a result would rest on too few windows."""
    from mtbridge.bench.measure import FEWEST_ROUNDS

    if rounds < FEWEST_ROUNDS:
        note(f"--rounds {rounds} is a glance; a result rests on {FEWEST_ROUNDS} windows or more")


def measure_and_report(
    operation: Literal["gram", "multiply", "covariance"],
    shapes: tuple[Shape, ...],
    device: str | None,
    peers: tuple[str, ...],
    threads: ThreadsName,
    rounds: int,
    path: Path | None,
) -> None:
    from mtbridge.bench.contenders import Plan
    from mtbridge.bench.one_thread import measure

    say_glance(rounds)
    plan = Plan(operation=operation, shapes=shapes, device=device, peers=peers, rounds=rounds)
    report(lambda say: measure(plan, threads.value, say), path)


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
