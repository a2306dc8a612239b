"""`mtbridge bench memory`: how a device likes its memory to be used."""

from __future__ import annotations

import typer

from mtbridge.cli.bench import JsonOption
from mtbridge.cli.options import DeviceOption
from mtbridge.cli.say import note


def memory(device: DeviceOption = None, json: JsonOption = None) -> None:
    """Time copies, transposes, lookups, price bars and the ways to the device and back.

    Example: mtbridge bench memory --json memory.json
    """
    from mtbridge.bench.memory import measure_memory
    from mtbridge.bench.memory_rows import table
    from mtbridge.bench.report import write_json

    rows = measure_memory(device, note)
    typer.echo(table(rows))
    if json is not None:
        write_json(rows, json)
        note(f"written to {json}")
