"""The times of a text file's rows, with the file and line in every complaint."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from mtbridge.errors import PriceFileError
from mtbridge.history.cells import line_of_row
from mtbridge.history.clock import Times, UnreadableTimeError, read_times
from mtbridge.history.text import TextFile


def times_of(source: TextFile, column: Any, *, header_lines: int, clock: str) -> Times:
    """Return the times in an arrow string column of `source`, every one of which must be there.

    Raises
    ------
    PriceFileError
        Naming file, line and text, if one is missing or not a time, or the dates are ambiguous.
    """
    empty = pc.index(pc.is_null(column), True).as_py()
    if empty >= 0:
        line = line_of_row(source, empty, header_lines)
        raise PriceFileError(f"{source.path}, line {line}: the row has no time; complete it or take it out.")
    try:
        return read_times(column, clock=clock)
    except UnreadableTimeError as error:
        where = "" if error.row is None else f", line {line_of_row(source, error.row, header_lines)}"
        raise PriceFileError(f"{source.path}{where}: {error}.") from error
