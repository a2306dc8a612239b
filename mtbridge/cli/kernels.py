"""`mtbridge kernels`: the kernel ladder as a table, and the source of a rung."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="Read the kernels: the ladder's table, and each rung's source.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_rungs() -> None:
    """List the rungs of the kernel ladder in order: what each teaches, and where it is.

    Example: mtbridge kernels list
    """
    from mtbridge.compute.ladder import LADDER

    for rung in LADDER:
        where = f"kernels/{rung.file}" if rung.file else "on the host"
        typer.echo(f"{rung.name:18} {rung.article:7} {where:32} {rung.teaches}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A rung of `mtbridge kernels list`.")],
    program: Annotated[
        bool, typer.Option("--program", help="The whole text for a device, with common.clh before it.")
    ] = False,
) -> None:
    """Print a rung's source with its head.

    Example: mtbridge kernels show naive
    """
    import inspect

    from mtbridge.compute.ladder import rung
    from mtbridge.sources import kernel_text, program_text

    found = rung(name)
    if found.runner == "host":
        from mtbridge.bench.serial_orders import ORDERS

        typer.echo(inspect.getsource(ORDERS[found.order]).rstrip())
    elif program:
        typer.echo(program_text((*found.headers, found.file), found.defines).rstrip())
    else:
        typer.echo("\n".join(kernel_text(file).rstrip() for file in (*found.headers, found.file)))
