"""A result to the terminal or to a file, by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import typer

from mtbridge.cli.say import note
from mtbridge.errors import OptionError
from mtbridge.history import check_destination, replace_file
from mtbridge.matrix import Result

SHOWN_ROWS = 20
SUFFIXES = (".csv", ".parquet", ".npz", ".json")


def check_output(path: Path | None) -> None:
    """Refuse a file name that nothing can be written by, before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which says how to write it."
        )
    # what the file system says of the name itself is said when it is written
    with suppress(OSError):
        check_destination(path)


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


def number_form(decimals: int | None) -> Callable[[float], str]:
    """Return how numbers are printed: `decimals` after the point, or five digits in scientific notation."""
    return "{:.4e}".format if decimals is None else f"{{:.{decimals}f}}".format


def show_result(result: Result, *, decimals: int | None = None) -> None:
    """Print the matrix as a table, in the form of `number_form`."""
    text = labelled(result).to_string(
        float_format=number_form(decimals),
        header=result.symbols is not None,
        index=result.symbols is not None,
    )
    typer.echo(text)


def finish(result: Result, path: Path | None, *, decimals: int | None = None, quiet: bool = False) -> None:
    """Write `result` to the file that is named, or print it."""
    if path is None:
        show_result(result, decimals=decimals)
    else:
        write_result(result, path)
        note(f"written to {path}", quiet=quiet)


def finish_table(
    table: pd.DataFrame | pd.Series[Any], path: Path | None, *, decimals: int | None, quiet: bool = False
) -> None:
    """Write a table whose rows have labels to the file that is named, or print its last rows."""
    frame = table.to_frame(table.name or "value") if isinstance(table, pd.Series) else table
    if path is None:
        typer.echo(frame.tail(SHOWN_ROWS).to_string(float_format=number_form(decimals)))
        if len(frame) > SHOWN_ROWS:
            note(f"the last {SHOWN_ROWS} of {len(frame):,} rows; -o writes all of them", quiet=quiet)
        return
    with replace_file(path) as temporary:
        write_table(frame, temporary, path.suffix.lower())
    note(f"written to {path}", quiet=quiet)


def write_table(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    """Write a table by the suffix that its name will have: .csv and .parquet with its labels as columns,
    .npz as arrays `values`, `columns` and one for each level of the row labels and each column of text, .json
    as a list of rows.
    """
    named = frame.copy(deep=False)
    names = [str(name or f"label {level}") for level, name in enumerate(named.index.names)]
    named.index = named.index.set_names(names)
    named.columns = named.columns.map(str)
    if suffix == ".npz":
        numbers = named.select_dtypes("number")
        arrays = {"values": numbers.to_numpy(), "columns": np.array(numbers.columns, dtype=str)}
        for name in named.columns.difference(numbers.columns):
            arrays[name] = named[name].fillna("").to_numpy().astype(str)
        for name in names:
            level = named.index.get_level_values(name).to_numpy()
            arrays[name] = level.astype(str) if level.dtype == object else level
        with path.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
    elif suffix == ".parquet":
        named.reset_index().to_parquet(path, engine="pyarrow")
    elif suffix == ".json":
        named.reset_index().to_json(path, orient="records", date_format="iso", double_precision=15)
    else:
        named.to_csv(path, lineterminator="\n")


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
