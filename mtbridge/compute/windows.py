"""`Rolling`: the plan of a rolling statistic, the first and last row of each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import is_whole, short
from mtbridge.errors import InputError, OptionError

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Rolling:
    """Windows over the rows of a history, in order.

    Attributes
    ----------
    first, last : int64 of shape (windows,), the rows of a window, both inclusive; neither ever goes back

    Raises
    ------
    InputError
        If the arrays differ in length, a window ends before it begins, or one goes back behind the last.
    """

    first: Rows
    last: Rows

    def __post_init__(self) -> None:
        first, last = (np.ascontiguousarray(rows, np.int64) for rows in (self.first, self.last))
        if first.ndim != 1 or first.shape != last.shape:
            raise InputError(
                f"first has the shape {first.shape} but last {last.shape}; give each window one of both."
            )
        if len(first) and first[0] < 0:
            raise InputError(f"the first window begins at row {first[0]}; rows are counted from 0.")
        if (first > last).any():
            k = int(np.argmax(first > last))
            raise InputError(f"window {k} begins at row {first[k]} but ends at row {last[k]}.")
        for name, rows in (("begins", first), ("ends", last)):
            back = np.diff(rows) < 0
            if back.any():
                k = int(np.argmax(back)) + 1
                raise InputError(
                    f"window {k} {name} at row {rows[k]}, before the one in front of it; sort the windows."
                )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)

    @classmethod
    def by_rows(cls, rows: int, window: int, step: int = 1) -> Self:
        """Return windows of `window` rows; number k ends at row ``k * step``, the early ones are shorter.

        Raises
        ------
        OptionError
            If `window` or `step` is below 1 or no whole number.
        """
        window, step = whole("window", window, "rows"), whole("step", step, "rows")
        last = np.arange(0, rows, step, dtype=np.int64)
        return cls(np.maximum(last - (window - 1), 0), last)

    @classmethod
    def by_time(cls, times: Any, span: int, step: int = 1) -> Self:
        """Return windows of the time ``(t - span, t]``; number k ends at row ``k * step``, whose time is t.

        Parameters
        ----------
        times : int64 of shape (rows,), strictly increasing, in any unit
        span : in the same unit, above 0

        Raises
        ------
        InputError
            If the times are no whole numbers or do not increase strictly.
        OptionError
            If `span` or `step` is below 1 or no whole number.
        """
        span, step = whole("window", span, "units of time"), whole("step", step, "rows")
        given = np.asarray(times)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InputError(
                f"times are {given.dtype} of shape {given.shape}; give whole numbers, one for each row."
            )
        stamps = given.astype(np.int64)
        still = stamps[1:] <= stamps[:-1]
        if still.any():
            row = int(np.argmax(still)) + 1
            relation = "equals" if stamps[row] == stamps[row - 1] else "is before"
            raise InputError(
                f"the time of row {row}, {stamps[row]}, {relation} that of the row above; "
                "sort the rows by time and keep one of each."
            )
        last = np.arange(0, len(stamps), step, dtype=np.int64)
        ends = stamps[last]
        # a window that reaches back past the smallest number holds every row before it
        whole_past = ends < np.iinfo(np.int64).min + min(span, np.iinfo(np.int64).max)
        first = np.searchsorted(stamps, np.where(whole_past, 0, ends) - span, side="right")
        return cls(np.where(whole_past, 0, first), last)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> Rows:
        """The number of rows of each window."""
        return self.last - self.first + 1

    @property
    def end(self) -> int:
        """The rows that a history must have: one more than the last row of any window."""
        return int(self.last[-1]) + 1 if len(self) else 0


def whole(name: str, value: Any, unit: str) -> int:
    """Return `value`, a whole number of at least 1 `unit`.

    Raises
    ------
    OptionError
        If it is anything else.
    """
    if not is_whole(value):
        raise OptionError(f"{name} is {short(value)}; give a whole number of {unit}.")
    if value < 1:
        raise OptionError(f"{name} is {value}; it must be 1 or more {unit}.")
    return int(value)
