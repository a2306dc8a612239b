"""`Windows`: matrices of the windows of a history, whole or only what is asked of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.compute import statistics
from mtbridge.compute.decay import Decay
from mtbridge.compute.operations import counted
from mtbridge.compute.reducers import (
    LargestEigenvalue,
    MeanOffDiagonal,
    Pairs,
    QuadraticForm,
    Reducer,
    TopPairs,
)
from mtbridge.compute.sequence import Statistic, Wanted
from mtbridge.compute.windows import Rolling, whole
from mtbridge.errors import InputError, OptionError
from mtbridge.frame import labels
from mtbridge.frame.history import History
from mtbridge.frame.options import checked, refuse_no_flags
from mtbridge.frame.say import say
from mtbridge.frame.tables import square
from mtbridge.matrix import Result


class Windows:
    """One matrix for each window; made by `rolling`, `expanding` and `ewm`.

    Of a DataFrame the answers are labelled as pandas labels its own; of an array they are arrays. Methods
    take these options:

    last : the newest window alone, as one matrix
    packed : the upper triangles only, row by row: half the memory
    dtype : "float32" or "float64" of the answer, by default that of the data; sums are float64
    frame : False gives an array for a DataFrame too, of shape (windows, symbols, symbols)
    full : a `Result`
    progress : called with the windows done and all of them, after each 64 MB of the answer
    """

    def __init__(self, history: History, plan: Rolling | Decay, min_periods: int) -> None:
        self._history = history
        self._plan = plan
        self._min_periods = min_periods
        self._count = len(plan)
        self._rows = history.rows
        if self._rows is not None and isinstance(plan, Rolling) and len(plan) != len(history.X):
            self._rows = self._rows[plan.last]

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        rows, columns = self._history.X.shape
        return f"{type(self).__name__}({self._count} windows over {rows} rows of {columns} columns)"

    def correlation(
        self,
        *,
        last: bool = False,
        packed: bool = False,
        dtype: str | None = None,
        frame: bool = True,
        full: bool = False,
        progress: statistics.Progress | None = None,
    ) -> Any:
        """Return the correlation matrix of each window; NaN where a column does not change in a window."""
        wanted = self._wanted("correlation", 1, dtype, packed=packed)
        return self._matrices(wanted, last, frame, full, progress)

    def beta(
        self,
        benchmark: Any,
        *,
        last: bool = False,
        dtype: str | None = None,
        frame: bool = True,
        full: bool = False,
    ) -> Any:
        """Return the beta of each column to the column `benchmark`, of shape (windows, symbols).

        ``covariance(benchmark, column) / variance(benchmark)`` on the rows that both have; NaN where the
        benchmark does not change. With `last` of shape (symbols,).
        """
        left = (self._history.position(benchmark),)
        wanted = self._wanted("beta", 1, dtype, left=left)
        return self._single_row(wanted, last, frame, full, str(benchmark))

    def row(
        self,
        symbol: Any,
        *,
        statistic: Statistic = "correlation",
        ddof: int = 1,
        last: bool = False,
        dtype: str | None = None,
        frame: bool = True,
        full: bool = False,
    ) -> Any:
        """Return the row of `symbol` of each matrix, of shape (windows, symbols)."""
        wanted = self._wanted(statistic, ddof, dtype, left=(self._history.position(symbol),))
        return self._single_row(wanted, last, frame, full, str(symbol))

    def mean_correlation(self) -> Any:
        """Return the mean of the correlations of different columns, one number a window.

        Correlations that are not defined are left out; NaN where none is.
        """
        found = self._reduced(MeanOffDiagonal(), "correlation")
        return self._series(found.matrix, "mean_correlation")

    def pairs(self, pairs: Iterable[Any], *, statistic: Statistic = "correlation", ddof: int = 1) -> Any:
        """Return one column for each of `pairs`, such as ``[("EURUSD", "GBPUSD")]``; (windows, pairs)."""
        left, right = self._history.positions(pairs)
        found = self._reduced(Pairs(tuple(left.tolist()), tuple(right.tolist())), statistic, ddof)
        if self._rows is None:
            return found.matrix
        return labels.flat(found.matrix, self._rows, labels.pair_labels(self._history.columns, left, right))

    def top_pairs(self, k: int, *, by: Literal["absolute", "value"] = "absolute") -> Any:
        """Return the `k` most correlated pairs of each window, the first the largest.

        Parameters
        ----------
        by : "absolute" compares magnitudes, "value" with the sign

        Returns
        -------
        DataFrame of (row label, rank) x ("left", "right", "correlation"); `k` rows a window, rank from 1
            Of an array: (correlations, columns), of shapes (windows, k) and (windows, k, 2). Where fewer
            pairs are defined, the correlation is NaN and both columns are missing, -1 in the array.
        """
        found = self._reduced(TopPairs(k, by), "correlation")
        columns, pairs = self._history.columns, found.pairs
        assert pairs is not None, "the largest pairs have columns"  # noqa: S101 - for the type checker
        if columns is None or self._rows is None:
            return found.matrix, pairs
        return labels.ranked(found.matrix, pairs, self._rows, columns, "correlation")

    def largest_eigenvalue(self, *, statistic: Statistic = "correlation", ddof: int = 1) -> Any:
        """Return the largest eigenvalue of each matrix; NaN where an element of it is."""
        found = self._reduced(LargestEigenvalue(), statistic, ddof)
        return self._series(found.matrix, "largest_eigenvalue")

    def blocks(
        self,
        *,
        statistic: Statistic = "correlation",
        size: int = 256,
        ddof: int = 1,
        packed: bool = False,
        dtype: str | None = None,
    ) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield (labels of the windows, their matrices), `size` windows at a time, in order.

        For answers larger than memory. The labels of an array are the numbers of the windows.
        """
        size = whole("size", size, "windows")
        wanted = self._wanted(statistic, ddof, dtype, packed=packed)
        sequence = self._history.opened().sequence(self._history.X, self._plan, wanted)
        return (
            (self._labels(first, first + len(block)), block)
            for first, block in statistics.streamed(sequence, size)
        )

    def _portfolio(self, weights: Any, ddof: int) -> Any:
        held = self._history.weights(weights, self._rows, self._count)
        found = self._reduced(QuadraticForm(held), "covariance", ddof)
        return self._series(found.matrix, "portfolio_variance")

    def _wanted(
        self,
        statistic: Statistic,
        ddof: int,
        dtype: str | None,
        *,
        left: tuple[int, ...] | None = None,
        packed: bool = False,
    ) -> Wanted:
        refuse_no_flags(packed=packed)
        return Wanted(
            statistic=statistic,
            ddof=counted("ddof", ddof),
            min_periods=self._min_periods,
            left=left,
            packed=packed,
            dtype=np.dtype(checked(dtype) or self._history.X.dtype),
        )

    def _reduced(self, reducer: Reducer[Any], statistic: Statistic, ddof: int = 1) -> Result:
        wanted = self._wanted(statistic, ddof, None)
        found = statistics.moving(
            self._history.X, self._plan, wanted, engine=self._history.opened(), reducer=reducer
        )
        say(*found.notes)
        return found

    def _computed(self, wanted: Wanted, last: bool, progress: statistics.Progress | None = None) -> Result:
        history = self._history
        engine, symbols = history.opened(), history.symbols
        if last:
            return statistics.newest(history.X, self._plan, wanted, engine=engine, symbols=symbols)
        try:
            return statistics.moving(
                history.X, self._plan, wanted, engine=engine, symbols=symbols, progress=progress
            )
        except MemoryError:
            shape = (self._count, *wanted.shape(history.X.shape[1]))
            size = math.prod(shape) * wanted.dtype.itemsize
            raise InputError(
                f"the answer of shape {shape} takes {size / 1e9:,.0f} GB, more than there is; ask for "
                "last=True, a larger step, blocks(), or only for the numbers that you want of each matrix."
            ) from None

    def _matrices(
        self, wanted: Wanted, last: bool, frame: bool, full: bool, progress: statistics.Progress | None
    ) -> Any:
        refuse_no_flags(last=last, frame=frame, full=full)
        if progress is not None and not callable(progress):
            raise OptionError(f"progress is {short(progress)}; give a function of the windows done and all.")
        found = self._computed(wanted, last, progress)
        if full:
            return found
        say(*found.notes)
        columns = self._history.columns
        if columns is None or not frame:
            return found.matrix
        if wanted.packed:
            pairs = labels.pair_labels(columns, *np.triu_indices(len(columns)))
            if last:
                return labels.series(found.matrix, pairs, wanted.statistic)
            return labels.flat(found.matrix, self._rows, pairs)
        return square(found, columns) if last else labels.stacked(found.matrix, self._rows, columns, columns)

    def _single_row(self, wanted: Wanted, last: bool, frame: bool, full: bool, name: str) -> Any:
        refuse_no_flags(last=last, frame=frame, full=full)
        found = self._computed(wanted, last)
        found = replace(found, matrix=found.matrix[..., 0, :])
        if full:
            return found
        say(*found.notes)
        columns = self._history.columns
        if columns is None or not frame:
            return found.matrix
        if last:
            return labels.series(found.matrix, columns, name)
        return labels.flat(found.matrix, self._rows, columns)

    def _series(self, values: NDArray[Any], name: str) -> Any:
        return values if self._rows is None else labels.series(values, self._rows, name)

    def _labels(self, first: int, end: int) -> Any:
        return range(first, end) if self._rows is None else self._rows[first:end]
