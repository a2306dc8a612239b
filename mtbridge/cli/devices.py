"""`mtbridge devices`: every OpenCL device, and what was found wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from mtbridge.cli.say import note


def devices(
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Try every device again, whatever is remembered.")
    ] = False,
) -> None:
    """List the OpenCL devices, whether each works, and why one is left out.

    Example: mtbridge devices
    """
    from mtbridge.compute.calibration import forget
    from mtbridge.compute.devices import nothing_usable, survey

    if fresh:
        forget()
    seen = survey(fresh=fresh)
    for index, device in enumerate(seen.verdicts):
        if device.ok:
            precision = "float32 and float64" if device.fp64 else "float32 only"
            state = f"works, {precision}"
            if device.linker != "system":
                state += f", kernels linked by {device.linker}"
        else:
            state = f"left out: {device.reason}"
        typer.echo(f"{index}: {device.name} ({device.kind}, {device.platform}): {state}")
    for fault in seen.faults:
        typer.echo(fault)
    if not any(device.ok for device in seen.verdicts):
        note(f"{nothing_usable(seen)}.")
