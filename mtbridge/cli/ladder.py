"""`mtbridge bench ladder`: every rung of the kernel ladder, checked and timed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mtbridge.cli.bench import JsonOption, whole
from mtbridge.cli.options import DeviceOption, Dtype
from mtbridge.cli.say import note


def ladder(
    device: DeviceOption = None,
    sizes: Annotated[
        str, typer.Option("--sizes", help="Sizes of square matrices, separated by commas.")
    ] = "500,1000,2000",
    dtype: Annotated[Dtype | None, typer.Option("--dtype", help="One type only; by default both.")] = None,
    json: JsonOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the rungs, to a .png or .html file.")
    ] = None,
) -> None:
    """Time A B by every step of the kernel ladder, from the serial loops to the engine's kernels.

    Example: mtbridge bench ladder --sizes 100 --plot ladder.html
    """
    from mtbridge.bench.ladder import measure_ladder, wrong
    from mtbridge.bench.ladder_report import text_table
    from mtbridge.bench.plot import check_plot
    from mtbridge.bench.plot import plot as draw
    from mtbridge.bench.report import write_json
    from mtbridge.errors import DeviceError
    from mtbridge.history.atomic import replace_file
    from mtbridge.matrix import DTYPES

    if plot is not None:
        check_plot(plot)
    with ExitStack() as files:
        # opened first, so that a name that cannot be written to is refused before the work
        targets = {path: files.enter_context(replace_file(path)) for path in (json, plot) if path is not None}
        rows = measure_ladder(whole(sizes), DTYPES if dtype is None else (dtype.value,), device, note)
        typer.echo(text_table(rows))
        if json is not None:
            write_json(rows, targets[json])
        if plot is not None:
            # the temporary name has another ending, and the ending says what to draw
            draw(rows, targets[plot], kind=plot.suffix)
    for path in targets:
        note(f"written to {path}")
    faults = list(wrong(rows))
    if faults:
        raise DeviceError(f"{len(faults)} answers are wrong: {'; '.join(faults)}.")
