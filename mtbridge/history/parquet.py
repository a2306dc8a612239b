"""Wide Parquet: the times in the pandas index or in a column, and a column for each symbol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as papq

from mtbridge.errors import PriceFileError
from mtbridge.history import looks
from mtbridge.history.clock import DAYS, UNSTATED, UTC, Times, UnreadableTimeError, read_times
from mtbridge.history.table import Table, make_table
from mtbridge.history.wide import TIME_NAMES, check_names, check_values

FAMILY = "wide Parquet"
MAGIC = b"PAR1"


def read(path: Path, *, price: str = "close") -> Table:
    """Return the whole file as a `Table`; it has one price for each symbol, so `price` only adds a note.

    Raises
    ------
    PriceFileError
        If the file is damaged, is no wide table of numbers, or has no column of times.
    """
    try:
        # read as a single file: the folder's name is no part of the data
        with papq.ParquetFile(path) as file:
            content = file.read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0]
        raise PriceFileError(f"{path} is a damaged Parquet file ({reason}); write it again.") from error
    index_columns, levels = _pandas_index(content.schema)
    if levels > 1:
        raise _refused(path, "a table with several rows of column names; keep one price for each symbol")
    names = list(content.column_names)
    time_name = _time_column(content.schema, index_columns)
    if words := looks.bars_in([time_name or "time", *(name for name in names if name != time_name)]):
        raise _refused(path, words)
    symbols = [name for name in names if name != time_name and not (name in index_columns and time_name)]
    # arrow finds no column by a name that two have
    if time_name is not None and names.count(time_name) > 1:
        raise PriceFileError(f"{path} has {names.count(time_name)} columns called {time_name!r}; keep one.")
    if symbols:
        check_names(path, symbols)
    for name in symbols:
        kind = content.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise _refused(
                path, f"a table with {kind} in column {name!r}, where prices are expected; {looks.READABLE}"
            )
    if time_name is None:
        raise _refused(path, f"a table without a column of times ({','.join(names[:8])}); {looks.READABLE}")
    check_names(path, symbols)
    times = _times(path, content.column(time_name))
    values = np.empty((content.num_rows, len(symbols)), dtype=np.float64, order="F")
    for position, name in enumerate(symbols):
        try:
            column = content.column(name).cast(pa.float64())
        except pa.ArrowInvalid as error:
            raise PriceFileError(
                f"{path}: column {name!r} holds numbers that float64 would round ({error}); convert it first."
            ) from error
        values[:, position] = column.to_numpy(zero_copy_only=False)
    if np.isinf(values).any():
        row, position = map(int, np.argwhere(np.isinf(values))[0])
        raise PriceFileError(
            f"{path}: the price of {symbols[position]} at {times.index[row]} is infinite; correct it."
        )
    check_values(path, symbols, values)
    notes = times.notes
    if price != "close":
        notes += (f"a wide table has one price for each symbol, so the choice of {price!r} changes nothing",)
    return make_table(
        path, FAMILY, times.clock, pd.DataFrame(values, index=times.index, columns=symbols), notes
    )


def _pandas_index(schema: Any) -> tuple[set[str], int]:
    """Return the columns that pandas kept its index in, and how many rows of column names it had."""
    metadata = schema.pandas_metadata or {}
    index_columns = {name for name in metadata.get("index_columns", []) if isinstance(name, str)}
    return index_columns, len(metadata.get("column_indexes", []))


def _time_column(schema: Any, index_columns: set[str]) -> str | None:
    """Return the name of the column of times: the index, the one so typed, or the one so called."""
    typed = [field.name for field in schema if pa.types.is_temporal(field.type)]
    called = [field.name for field in schema if field.name.strip().lower() in TIME_NAMES]
    for candidates in (
        [name for name in typed if name in index_columns],
        [name for name in typed if name in called],
        typed,
        called,
    ):
        if candidates:
            return str(candidates[0])
    return None


def _times(path: Path, column: Any) -> Times:
    column = column.combine_chunks()
    if column.null_count:
        raise PriceFileError(
            f"{path} has rows without a time ({column.null_count:,}); complete them or take them out."
        )
    kind = column.type
    if not pa.types.is_timestamp(kind) and not pa.types.is_date(kind):
        try:
            return read_times(pc.cast(column, pa.string()))
        except (UnreadableTimeError, pa.ArrowException) as error:
            raise PriceFileError(f"{path}: {error}.") from error
    try:
        index = pd.DatetimeIndex(column.cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise PriceFileError(f"{path} has times before 1677 or after 2262; correct them.") from error
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return Times(index.tz_localize("UTC"), UTC)
    return Times(index, DAYS if bool((index == index.normalize()).all()) else UNSTATED)


def _refused(path: Path, description: str) -> PriceFileError:
    return PriceFileError(f"{path} looks like {description}.")
