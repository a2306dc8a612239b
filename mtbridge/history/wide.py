"""Wide CSV: a header, a column of times, and a column for each symbol.

Divided by commas, semicolons or tabs; empty cells and words such as N/A are gaps. The column of times is the
one called so (Date, time, Gmt time), or else the first when its cells are dates; a date and a time of day may
stand in two columns. Decimal commas are read where the separator is another sign.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from mtbridge.errors import PriceFileError
from mtbridge.history import looks
from mtbridge.history.cells import DECIMAL_COMMA, is_missing, is_number, read_columns
from mtbridge.history.clock import DAYS, UNSTATED, UTC, looks_like_date, looks_like_time
from mtbridge.history.table import Table, make_table
from mtbridge.history.text import TextFile
from mtbridge.history.timed import times_of

FAMILY = "wide CSV"
TIME_NAMES = {
    "time", "date", "datetime", "date_time", "date time", "timestamp", "timestamps", "gmt time", "time (utc)",
    "time (eet)", "local time", "open_time", "open time", "data", "datum", "fecha", "zeit", "index",
}  # fmt: skip
_DAY = {"date", "data", "datum", "fecha"}
_ZONED = re.compile(r"\b(gmt|utc)\b", re.IGNORECASE)


def recognise(source: TextFile) -> bool:
    """Tell whether the first line is a header with times below it, symbols beside, and no words of bars."""
    header = source.rows[0]
    return (
        len(header) > 1
        and not any(map(looks_like_time, header))
        and bool(time_columns(source))
        and looks.bars_in(header) is None
        and not any(_is_text(source, position) for position in _value_columns(source))
    )


def time_columns(source: TextFile) -> list[int]:
    """Return the positions of the column of times, or of the day and the time of day, or nothing."""
    names = [name.lower() for name in source.rows[0]]
    called = [position for position, name in enumerate(names) if name in TIME_NAMES]
    if len(called) > 1:
        day = next((position for position in called if names[position] in _DAY), None)
        if day is not None and names[day + 1 : day + 2] == ["time"]:
            return [day, day + 1]
        # a column of days beside one of times: the first that holds dates is meant
        called = [position for position in called if looks_like_time(_first_cell(source, position))]
    if called:
        return called[:1]
    return [0] if looks_like_date(_first_cell(source, 0)) else []


def read(source: TextFile, *, price: str = "close") -> Table:
    """Return the whole file as a `Table`; it has one price for each symbol, so `price` only adds a note.

    Raises
    ------
    PriceFileError
        If a symbol's name is there twice or missing, a cell is neither number nor gap, or a time is missing.
    """
    header = source.rows[0]
    stamps = time_columns(source)
    numbers = [position for position in _value_columns(source) if header[position]]
    unnamed = [position for position in _value_columns(source) if not header[position]]
    names = [header[position] for position in numbers]
    check_names(source.path, names)
    commas = source.separator != "," and _has_decimal_commas(source, numbers)
    texts, values = read_columns(
        source,
        header,
        texts=[*stamps, *unnamed],
        numbers=numbers,
        header_lines=1,
        decimal_point="," if commas else ".",
    )
    notes = source.notes
    if commas:
        notes += ("numbers have decimal commas",)
    if price != "close":
        notes += (f"a wide table has one price for each symbol, so the choice of {price!r} changes nothing",)
    for position, column in zip(unnamed, texts[len(stamps) :], strict=True):
        notes += _unnamed(source, position, column)
    column, values = _without_empty_end(pc.binary_join_element_wise(*texts[: len(stamps)], " "), values)
    times = times_of(source, column, header_lines=1, clock=UNSTATED)
    index, clock = times.index, times.clock
    if index.tz is None and clock != DAYS and _ZONED.search(header[stamps[0]]):
        index, clock = index.tz_localize("UTC"), UTC
    check_values(source.path, names, values)
    return make_table(
        source.path, FAMILY, clock, pd.DataFrame(values, index=index, columns=names), notes + times.notes
    )


def check_names(path: Path, names: list[str]) -> None:
    """Raise PriceFileError if there is no symbol, or one is there twice."""
    if not names:
        raise PriceFileError(f"{path} has a column of times and no column of prices.")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise PriceFileError(f"{path} has {count} columns called {name!r}; rename or remove all but one.")


def check_values(path: Path, names: list[str], values: NDArray[np.float64]) -> None:
    """Raise PriceFileError if the columns are one symbol's bars under names that we do not know."""
    if looks.bars_among(values):
        raise PriceFileError(
            f"{path} looks like the bars of one symbol in another layout, for its columns "
            f"{', '.join(names[:4])} behave as open, high, low and close do; {looks.READABLE}."
        )


def _value_columns(source: TextFile) -> list[int]:
    stamps = time_columns(source)
    return [position for position in range(len(source.rows[0])) if position not in stamps]


def _cells(source: TextFile, position: int) -> list[str]:
    return [row[position] for row in source.rows[1:] if len(row) > position]


def _first_cell(source: TextFile, position: int) -> str:
    return next((cell for cell in _cells(source, position) if cell), "")


def _is_text(source: TextFile, position: int) -> bool:
    cells = [cell for cell in _cells(source, position) if not is_missing(cell)]
    return bool(cells) and not any(letter.isdigit() for cell in cells for letter in cell)


def _has_decimal_commas(source: TextFile, positions: list[int]) -> bool:
    cells = [cell for position in positions for cell in _cells(source, position) if not is_missing(cell)]
    return any(DECIMAL_COMMA.fullmatch(cell) for cell in cells) and not any(map(_has_point, cells))


def _has_point(cell: str) -> bool:
    return is_number(cell) and "." in cell


def _unnamed(source: TextFile, position: int, column: Any) -> tuple[str, ...]:
    """Return a note about a column without a name, which must be empty or count the rows."""
    if column.null_count == len(column):
        return ()
    texts = pc.fill_null(column, "").to_numpy()
    counted = np.arange(len(texts)).astype(str)
    if (texts == counted).all() or (texts == np.arange(1, len(texts) + 1).astype(str)).all():
        return ("a column without a name counts the rows; it was left out",)
    raise PriceFileError(
        f"{source.path} has no name in its header for column {position + 1}; write the symbol there."
    )


def _without_empty_end(times: Any, values: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """Leave out the rows of bare separators that spreadsheets write below a table."""
    filled = pc.is_valid(times).to_numpy() | ~np.isnan(values).all(axis=1)
    rows = int(np.flatnonzero(filled)[-1]) + 1 if filled.any() else 0
    return times.slice(0, rows), values[:rows]
