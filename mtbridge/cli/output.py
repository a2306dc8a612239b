"""A result to the terminal or to a file, by the file's suffix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import typer

from mtbridge.errors import OptionError
from mtbridge.history import replace_file
from mtbridge.matrix import Result

SUFFIXES = (".csv", ".parquet", ".npz", ".json")


def check_output(path: Path | None) -> None:
    """Refuse a file name that nothing can be written by, before any work is done."""
    if path is not None and path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which says how to write it."
        )


def write_result(result: Result, path: Path) -> None:
    """Write `result` whole or not at all.

    .csv and .parquet hold the matrix, with the symbols on both sides where there are symbols; .npz holds
    matrix, symbols and counts; .json the same with how it was computed, and null for NaN.
    """
    suffix = path.suffix.lower()
    with replace_file(path) as temporary:
        if suffix == ".npz":
            # an open file, since numpy adds a suffix to a name that does not end in a small .npz
            with temporary.open("wb") as stream:
                np.savez(stream, **arrays(result))
        elif suffix == ".json":
            temporary.write_bytes(msgspec.json.encode(plain(result)) + b"\n")
        elif suffix == ".parquet":
            frame = labelled(result)
            frame.columns = frame.columns.astype(str)
            frame.to_parquet(temporary, engine="pyarrow")
        else:
            named = result.symbols is not None
            labelled(result).to_csv(temporary, index=named, header=named, lineterminator="\n")


def show_result(result: Result, *, decimals: int | None = None) -> None:
    """Print the matrix as a table: `decimals` after the point, or five digits in scientific notation."""
    form = "{:.4e}".format if decimals is None else f"{{:.{decimals}f}}".format
    text = labelled(result).to_string(
        float_format=form, header=result.symbols is not None, index=result.symbols is not None
    )
    typer.echo(text)


def labelled(result: Result) -> pd.DataFrame:
    labels = None if result.symbols is None else pd.Index(result.symbols)
    return pd.DataFrame(result.matrix, index=labels, columns=labels)


def arrays(result: Result) -> dict[str, Any]:
    held: dict[str, Any] = {"matrix": result.matrix}
    if result.symbols is not None:
        held["symbols"] = np.array(result.symbols)
    if result.counts is not None:
        held["counts"] = result.counts
    return held


def plain(result: Result) -> dict[str, Any]:
    """Return what .json holds; msgspec writes NaN as null."""
    return {
        "symbols": result.symbols,
        "matrix": result.matrix.tolist(),
        "counts": None if result.counts is None else result.counts.tolist(),
        "rows": result.rows,
        "dtype": result.matrix.dtype.name,
        "engine": result.engine,
        "device": result.device,
        "seconds": result.seconds,
    }
