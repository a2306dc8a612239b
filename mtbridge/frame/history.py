"""`History`: a table whose rows follow each other in time, ready to be looked at window by window."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import is_whole, short
from mtbridge.compute.engine import Engine
from mtbridge.errors import InputError, OptionError, ShapeError
from mtbridge.frame.engines import opened
from mtbridge.frame.joined import gathered
from mtbridge.frame.objects import weight_numbers
from mtbridge.frame.options import refuse_no_flags
from mtbridge.frame.tables import is_frame, is_series, names, table, without_level
from mtbridge.frame.times import in_order
from mtbridge.matrix import Matrix


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The numbers of a table, its labels, and where it is computed.

    Attributes
    ----------
    X : float array of shape (rows, columns), oldest row first
    columns : Index of the symbols, None for an array
    rows : Index of the times, None for an array
    """

    X: Matrix
    columns: Any
    rows: Any
    engine: str | Engine
    device: str | None

    @classmethod
    def of(cls, data: Any, *, sort: bool, engine: str | Engine, device: str | None) -> History:
        """Return the history in `data`: an array, a DataFrame, or Series that are joined."""
        refuse_no_flags(sort=sort)
        data = gathered(data)
        if is_frame(data):
            data = in_order(data, sort=sort)
        elif sort:
            raise OptionError("an array has no times to sort its rows by; leave sort out.")
        X, columns = table(without_level(data))
        return cls(X, columns, data.index if is_frame(data) else None, engine, device)

    @property
    def symbols(self) -> tuple[str, ...] | None:
        return names(self.columns)

    def opened(self) -> Engine:
        """Return the engine of this thread."""
        return opened(self.engine, self.device)

    def position(self, symbol: Any) -> int:
        """Return the number of a column, given by its label, or by its number where there are no labels."""
        if self.columns is None:
            count = self.X.shape[1]
            if not is_whole(symbol):
                raise InputError(
                    f"{short(symbol)} is no column of an array; give its number, 0 to {count - 1}."
                )
            if not 0 <= symbol < count:
                raise InputError(f"there is no column {short(symbol)}; there are {count}, counted from 0.")
            return int(symbol)
        try:
            found = self.columns.get_loc(symbol)
        except (KeyError, TypeError, ValueError, sys.modules["pandas"].errors.InvalidIndexError):
            known = [short(str(label))[1:-1] for label in self.columns[:6]] + ["..."] * (
                len(self.columns) > 6
            )
            raise InputError(f"there is no column {short(symbol)}; there are {', '.join(known)}.") from None
        if not isinstance(found, int | np.integer):
            raise InputError(f"{short(symbol)} is more than one column; give each column a name of its own.")
        return int(found)

    def positions(self, pairs: Iterable[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the left and of the right columns of pairs of them."""
        try:
            given = [(left, right) for left, right in pairs]
        except (TypeError, ValueError):
            raise InputError("pairs are two columns each, such as [('EURUSD', 'GBPUSD')].") from None
        if not given:
            raise InputError("there are no pairs; give at least one, such as [('EURUSD', 'GBPUSD')].")
        left = [self.position(one) for one, _ in given]
        right = [self.position(other) for _, other in given]
        return np.array(left, np.int64), np.array(right, np.int64)

    def weights(self, given: Any, windows: Any, count: int) -> NDArray[np.float64]:
        """Return the weights of a portfolio, of shape (columns,), or (windows, columns) if they change.

        Parameters
        ----------
        given : array; a Series or DataFrame is matched by the labels of the columns, and of the windows
        windows : Index of the windows, None for an array
        count : windows
        """
        size = self.X.shape[1]
        if self.columns is not None and (is_series(given) or is_frame(given)):
            side = given.index if is_series(given) else given.columns
            strange = self.columns.to_flat_index().symmetric_difference(side.to_flat_index(), sort=False)
            if len(strange) or not (side.is_unique and self.columns.is_unique):
                what = (
                    f"{short(strange[0])} is only in one of them"
                    if len(strange)
                    else "a label is there twice"
                )
                raise InputError(f"the weights do not fit the columns: {what}; give each column one weight.")
            given = given.reindex(self.columns) if is_series(given) else given.reindex(columns=self.columns)
            if is_frame(given):
                absent = windows.difference(given.index)
                if len(absent) or not given.index.is_unique:
                    what = f"none for {absent[0]}" if len(absent) else "a time is there twice"
                    raise InputError(f"the weights do not fit the rows: {what}; give each row its weights.")
                given = given.reindex(windows)
        with np.errstate(over="ignore"):
            held: NDArray[np.float64] = weight_numbers(given).astype(np.float64)
        if held.shape not in ((size,), (count, size)):
            raise ShapeError(
                f"the weights have the shape {held.shape}; give one for each of the {size} columns, or "
                f"for each of {count} windows and {size} columns."
            )
        if not np.isfinite(held).all():
            raise InputError("a weight is NaN or inf; give each column a finite number.")
        return held
