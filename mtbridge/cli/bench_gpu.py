"""`mtbridge bench gpu`: what a graphics card does with data that lie on it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from mtbridge.cli.bench import JsonOption, RoundsOption, known, say_glance, whole
from mtbridge.cli.options import DeviceOption
from mtbridge.cli.say import note
from mtbridge.errors import DeviceError, OptionError

ROUNDS = 9


def gpu(
    device: DeviceOption = None,
    peers: Annotated[
        str, typer.Option("--peers", help="Any of torch and cupy, separated by commas, or '' for none.")
    ] = "torch,cupy",
    cases: Annotated[
        str | None,
        typer.Option(
            "--cases", help="Cases by their first words, separated by commas, such as 'gram,rolling corr'."
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", help="Sides of the matrices instead of the usual ones, separated by commas."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One small size of each case.")] = False,
    rounds: RoundsOption = ROUNDS,
    json: JsonOption = None,
) -> None:
    """Check and time products, covariances and windows on a graphics card beside cuBLAS and torch.

    Example: mtbridge bench gpu --sizes 64 --rounds 1 --json gpu.json
    """
    from mtbridge.bench.gpu import measure_gpu, wrong
    from mtbridge.bench.gpu_cases import QUICK, chosen, listed
    from mtbridge.bench.gpu_ceilings import cards
    from mtbridge.bench.gpu_peers import PEERS
    from mtbridge.bench.gpu_report import text_table
    from mtbridge.bench.report import write_json
    from mtbridge.history.atomic import replace_file

    if quick and sizes is not None:
        raise OptionError(f"--quick and --sizes {sizes} both say how large; give one of them.")
    every = listed(QUICK if quick else None if sizes is None else whole(sizes))
    meant = every if cases is None else chosen(every, cases.split(","))
    others = known(peers, PEERS, "--peers")
    say_glance(rounds)
    # opened first, so that a name that cannot be written to is refused before the work
    with nullcontext() if json is None else replace_file(json) as temporary:
        rows: list[dict[str, Any]] = []
        interrupted = False
        try:
            for found in measure_gpu(note, cases=meant, device=device, peers=others, rounds=rounds):
                typer.echo("\n" * bool(rows) + text_table(found))
                rows += found
                if temporary is not None:
                    # minutes of figures are not lost with those that are not waited for
                    write_json(rows, temporary, cards=cards())
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = True
            note("interrupted: the cases that were done are kept")
    if json is not None:
        note(f"written to {json}")
    faults = list(wrong(rows))
    if faults:
        raise DeviceError(f"{len(faults)} answers are wrong: {'; '.join(faults)}.")
    if interrupted:
        raise KeyboardInterrupt
