"""Columns out of delimited text, by pyarrow's parser; where it stumbles, the line, column and text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from mtbridge.errors import PriceFileError
from mtbridge.history.text import TextFile

MISSING = ("", "N/A", "n/a", "NA", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "-", "--", ".")
"""What stands in a cell that has no price."""

NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")
# a line longer than a block cannot be parsed; a line of 100,000 symbols is about a megabyte
_BLOCK_BYTES = 16 << 20


def is_number(cell: str) -> bool:
    """Tell whether `cell` is a number with a decimal point, or none."""
    return NUMBER.fullmatch(cell) is not None


def is_missing(cell: str) -> bool:
    """Tell whether `cell` says that there is no price."""
    return cell in MISSING


def read_columns(
    source: TextFile,
    names: Sequence[str],
    *,
    texts: Sequence[int],
    numbers: Sequence[int],
    header_lines: int,
    decimal_point: str = ".",
) -> tuple[list[Any], NDArray[np.float64]]:
    """Return some columns of `source` as arrow string columns, others as one float64 array.

    Parameters
    ----------
    names : the name of every column of the file, for messages
    texts, numbers : which columns are wanted, by position
    header_lines : lines before the first row of data

    Returns
    -------
    columns : arrow string column for each of `texts`; null where a cell is empty
    values : float64 array of shape (rows, numbers), Fortran order; NaN where a cell has no price

    Raises
    ------
    PriceFileError
        If there is no row, a row has too many or too few cells, or a price is not a number.
    """
    start = source.start_of_rows(header_lines)
    if start == len(source.data):
        raise PriceFileError(f"{source.path} has a header but no rows of prices.")
    labels = [str(position) for position in range(len(names))]
    types = {labels[i]: pa.string() for i in texts} | {labels[i]: pa.float64() for i in numbers}
    try:
        parsed = pacsv.read_csv(
            pa.BufferReader(pa.py_buffer(source.data).slice(start)),
            read_options=pacsv.ReadOptions(column_names=labels, block_size=_BLOCK_BYTES),
            parse_options=pacsv.ParseOptions(delimiter=source.separator),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                include_columns=[labels[i] for i in (*texts, *numbers)],
                null_values=list(MISSING),
                strings_can_be_null=True,
                decimal_point=decimal_point,
            ),
        )
    except pa.ArrowInvalid as error:
        _explain(source, names, numbers, header_lines, decimal_point)
        reason = " ".join(str(error).split())
        raise PriceFileError(
            f"{source.path} cannot be read as a table ({reason}); export it again."
        ) from error
    values = np.empty((parsed.num_rows, len(numbers)), dtype=np.float64, order="F")
    for target, position in enumerate(numbers):
        values[:, target] = parsed.column(labels[position]).to_numpy(zero_copy_only=False)
    if np.isinf(values).any():
        _explain(source, names, numbers, header_lines, decimal_point)
        raise PriceFileError(f"{source.path} has a price too large for a double; correct it.")
    return [parsed.column(labels[position]) for position in texts], values


def line_of_row(source: TextFile, row: int, header_lines: int) -> int:
    """Return the number, in the file, of the line on which data row `row` (from 0) ends."""
    for count, (line, _) in enumerate(_rows(source, header_lines)):
        if count == row:
            return line
    return 0


def _rows(source: TextFile, header_lines: int) -> Iterator[tuple[int, list[str]]]:
    text = source.data[source.start_of_rows(header_lines) :].decode()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=source.separator)
    try:
        for cells in reader:
            # as the parser does, a blank line is no row
            if cells:
                yield source.skipped + header_lines + reader.line_num, cells
    except csv.Error as error:
        line = source.skipped + header_lines + reader.line_num
        raise PriceFileError(
            f"{source.path} cannot be divided into cells before line {line} ({error}); look for a quotation "
            "mark that is not closed."
        ) from error


def _explain(
    source: TextFile, names: Sequence[str], numbers: Sequence[int], header_lines: int, decimal_point: str
) -> None:
    """Raise the error of the first cell or row that is wrong; return when none is found."""
    number = NUMBER if decimal_point == "." else re.compile(f"{NUMBER.pattern}|{DECIMAL_COMMA.pattern}")
    for line, cells in _rows(source, header_lines):
        if len(cells) != len(names):
            raise PriceFileError(
                f"{source.path}, line {line}: {len(cells)} cells where {len(names)} are expected; "
                "the line is cut or has a separator too many."
            )
        for position in numbers:
            cell = cells[position].strip()
            if number.fullmatch(cell) is None and cell not in MISSING:
                raise PriceFileError(
                    f"{source.path}, line {line}: {cell!r} in column {names[position]!r} is not a number."
                )
