"""`mtbridge tune`: the fastest settings of the kernels on a device, searched for and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mtbridge.cli.options import DeviceOption, Dtype
from mtbridge.cli.say import note

if TYPE_CHECKING:
    from mtbridge.compute.opencl_engine import OpenCLEngine

SECONDS, QUICK_SECONDS = 240.0, 60.0


def tune(
    device: DeviceOption = None,
    dtype: Annotated[Dtype | None, typer.Option("--dtype", help="One type only; by default both.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Search for one minute, not for four.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, max=86400, help="How long to search in all.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only print the settings that are in use.")] = False,
) -> None:
    """Search for the fastest checked settings of the product kernels on a device, and keep them for it.

    Example: mtbridge tune --seconds 20
    """
    from mtbridge.compute.opencl_engine import open_opencl
    from mtbridge.compute.tuned import store
    from mtbridge.compute.tuning import tune as search
    from mtbridge.compute.tuning import words

    with open_opencl(device) as engine:
        if show:
            describe(engine)
            return
        wanted = engine.dtypes if dtype is None else (dtype.value,)
        budget = seconds or (QUICK_SECONDS if quick else SECONDS)
        note(f"tuning {engine.device} for {budget:.0f} s; other work on this machine disturbs")
        for name in wanted:
            found = search(engine, name, seconds=budget / len(wanted), say=note)
            ends = ", ".join(f"{count} {how}" for how, count in found.ends.most_common())
            note(f"{name}: {found.candidates} candidates{f' ({ends})' if ends else ''}")
            gain = f"{found.best.speedup:.2f} x the shipped settings"
            typer.echo(f"{name}: {gain}: {words(found.best.settings)}")
        note(f"kept in {store()}")


def describe(engine: OpenCLEngine) -> None:
    """Print what is in use for each element type, and where it comes from."""
    from mtbridge.compute.tuned import tuned_for
    from mtbridge.compute.tuning import words

    typer.echo(f"{engine.device}: kernels/{engine.form(engine.dtypes[0]).headers[0]}")
    for dtype in engine.dtypes:
        form = engine.form_in_use(dtype)
        found, _ = tuned_for(engine.target(dtype), engine.limits)
        tuned = found is not None and found.settings == form.defines
        origin = f"tuned here, {found.speedup:.2f} x the shipped ones" if tuned and found else "shipped"
        typer.echo(f"{dtype} ({origin}): {words(form.defines)}")
