"""One price file as read: times down, symbols across, and what had to be decided on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mtbridge.errors import PriceFileError


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The prices of one file.

    Attributes
    ----------
    path : the file
    family : what kind of file it is, such as "MT5 bars"
    clock : what the times mean, such as "server clock, not stated", "none (days)" or "UTC"
    frame : float64 frame of shape (times, symbols)
        Its DatetimeIndex is called "time", ascending and without repeats; naive, or in UTC where the file
        states a zone. NaN where the file has no price.
    repeats : rows left out because an identical row of the same time was there already
    notes : sentences about what was decided or changed, without the file's name
    """

    path: Path
    family: str
    clock: str
    frame: pd.DataFrame
    repeats: int = 0
    notes: tuple[str, ...] = ()

    @property
    def times(self) -> pd.DatetimeIndex:
        """The index of the frame."""
        return pd.DatetimeIndex(self.frame.index)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(map(str, self.frame.columns))

    def __repr__(self) -> str:
        times, symbols = self.frame.shape
        return (
            f"Table({self.path.name}: {self.family}, {times} times x {symbols} symbols, clock {self.clock})"
        )


def make_table(
    path: Path,
    family: str,
    clock: str,
    frame: pd.DataFrame,
    notes: tuple[str, ...] = (),
) -> Table:
    """Return the `Table` of a frame in file order: sorted by time, identical repeats left out and counted.

    Raises
    ------
    PriceFileError
        If the frame has no rows, or two rows of one time have different prices.
    """
    if frame.empty:
        raise PriceFileError(f"{path} has a header but no rows of prices.")
    said = list(notes)
    times = pd.DatetimeIndex(frame.index).as_unit("ns")
    frame = frame.set_axis(times.rename("time"), axis=0)
    if not times.is_monotonic_increasing:
        newest_first = times.is_monotonic_decreasing
        said.append(
            "rows are newest first in the file; they were sorted by time"
            if newest_first
            else "rows are not in order of time in the file; they were sorted"
        )
        frame = frame.sort_index(kind="stable")
    repeats = 0
    if not frame.index.is_unique:
        frame, repeats = _without_repeats(frame, path)
        said.append(f"{repeats:,} rows repeat an earlier row of the same time exactly; they were left out")
    return Table(path, family, clock, frame, repeats, tuple(said))


def _without_repeats(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, int]:
    """Return the sorted `frame` with each time once, and the number of rows left out."""
    values = frame.to_numpy()
    again = frame.index.duplicated()
    # the rows of one time are neighbours, so they are all equal when each equals the one before it
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    conflicts = np.flatnonzero(again[1:] & ~same.all(axis=1))
    if conflicts.size:
        row = int(conflicts[0])
        column = int(np.flatnonzero(~same[row])[0])
        raise PriceFileError(
            f"{path} has two prices of {frame.columns[column]} at {frame.index[row]}, {values[row, column]} "
            f"and {values[row + 1, column]}; remove the wrong row."
        )
    return frame[~again], int(again.sum())
