"""Rolling, expanding, exponentially weighted and lagged matrices by a worker, with the labels of `frame`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.client.calls import Calls, encoded, owned, sendable
from mtbridge.errors import InputError, OptionError
from mtbridge.frame import labels
from mtbridge.frame.history import History
from mtbridge.frame.options import at_least
from mtbridge.frame.say import say
from mtbridge.frame.tables import square
from mtbridge.frame.times import has_times, is_span, nanoseconds_of, span_of
from mtbridge.matrix import Result
from mtbridge.wire import Array, MovingOptions, Operation, Role, encode_options, make_options

_MILLISECOND = 1_000_000
"""In nanoseconds."""


class Asked(TypedDict, total=False):
    """What `Client.rolling`, `Client.expanding` and `Client.ewm` take alike: see `Client.rolling`."""

    statistic: Literal["covariance", "correlation", "beta"]
    min_periods: int | None
    reduce: Literal["none", "mean", "row", "pairs", "top", "eigenvalue", "variance"]
    column: Any
    pairs: Iterable[Any]
    top: int
    by: Literal["absolute", "value"]
    weights: Any
    last: bool
    packed: bool
    dtype: Literal["float32", "float64"] | None
    sort: bool
    full: bool


class WindowCalls(Calls):
    """The calls that answer with one matrix a window or a lag."""

    def rolling(self, data: Any, window: Any, *, step: int = 1, ddof: int = 1, **asked: Unpack[Asked]) -> Any:
        """Return one matrix for each rolling window, or what is kept of each.

        Parameters
        ----------
        data : float array or DataFrame of shape (rows, symbols), or Series that are joined by their times
            Oldest row first. NaN is missing: each pair is computed on the rows of the window that both have.
        window : rows, this row included; or a span such as "10D" or a Timedelta, of the time (t - span, t]
        step : each step-th row has a window
        ddof : the divisor of a covariance is rows - ddof
        statistic : "covariance", "correlation", or "beta", covariance (i, j) / variance of i
        min_periods : rows that a pair must have in a window, else NaN
            The window itself for one of rows, 1 for all others, as in pandas.
        reduce : what is kept of each matrix
            "none", all of it; "mean" of the elements beside the diagonal; "row" of `column`; "pairs", these
            elements; "top", the largest; the largest "eigenvalue"; "variance" of a portfolio with `weights`.
        column : label of a column, its number for an array; with beta the benchmark
        pairs : of columns, such as ``[("EURUSD", "GBPUSD")]``
        top : how many pairs, the largest first, `by` "absolute" or "value"
        weights : one for each column, or one row of them for each window
        last : only the newest window
        packed : the upper triangles only, row by row
        dtype : "float32" or "float64" of the answer, by default that of the data; sums are float64
            With `last`, `reduce` and a larger `step` the way to answers past the worker's limit.
        sort : sort the rows by time first; else unsorted ones are refused
        full : return a `Result` with engine, device and the seconds of the round trip

        Returns
        -------
        float array of shape (windows, symbols, symbols), or (windows, ...) of what is kept
            With `last` without its first dimension. With `top` a second array, int64 of shape (windows, top,
            2), the columns of the pairs. Of a DataFrame labelled as `mtbridge.rolling` labels it.

        Raises
        ------
        OptionError, InputError
            If options do not go together, a column is not there, or times are needed and not there.
        RemoteError
            If the worker refuses: its `status` and its sentence say why, and how to ask for less.
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        history = History.of(data, sort=asked.get("sort", False), engine="auto", device=None)
        own: dict[str, Any] = {"step": step, "ddof": ddof}
        times = None
        if is_span(window):
            own["span_ms"], rest = divmod(span_of(window, name="window"), _MILLISECOND)
            if rest:
                raise OptionError(f"window is {short(window)}; a worker counts whole milliseconds.")
            times = _milliseconds(history, None, f"the window {short(window)} is a span of time")
        else:
            own["window"] = window
        return self._moving(Operation.ROLLING, history, own, asked, times, step=step)

    def expanding(self, data: Any, *, ddof: int = 1, **asked: Unpack[Asked]) -> Any:
        """Return one matrix for each row, of all rows so far, or what is kept of each; else as `rolling`."""
        history = History.of(data, sort=asked.get("sort", False), engine="auto", device=None)
        return self._moving(Operation.EXPANDING, history, {"ddof": ddof}, asked)

    def ewm(
        self,
        data: Any,
        *,
        com: float | None = None,
        span: float | None = None,
        halflife: Any = None,
        alpha: float | None = None,
        adjust: bool = True,
        ignore_na: bool = False,
        bias: bool = False,
        times: Any = None,
        **asked: Unpack[Asked],
    ) -> Any:
        """Return one exponentially weighted matrix for each row, or what is kept of each; else as `rolling`.

        Parameters
        ----------
        com, span, halflife, alpha : exactly one of them, as in pandas
            A half-life may be a span of time, such as "4h": weights then fall with the time between rows.
        adjust, ignore_na : as in pandas
        bias : leave out the correction for few effective rows
        times : of the rows, where `halflife` is a span; by default the DatetimeIndex of `data`
        """
        history = History.of(data, sort=asked.get("sort", False), engine="auto", device=None)
        own: dict[str, Any] = {"adjust": adjust, "ignore_na": ignore_na, "bias": bias}
        own |= {
            name: value
            for name, value in (("com", com), ("span", span), ("alpha", alpha))
            if value is not None
        }
        if is_span(halflife):
            own["halflife_ms"] = span_of(halflife, name="halflife") / _MILLISECOND
            if times is not None and asked.get("sort", False):
                raise OptionError(
                    "sort=True would move the rows but not the times that are given; sort them first."
                )
            stamps = _milliseconds(history, times, f"halflife is {short(halflife)}")
            return self._moving(Operation.EWM, history, own, asked, stamps)
        if times is not None:
            raise OptionError(
                f"times are given but halflife is {short(halflife)}; give a span of time such as '4h'."
            )
        if halflife is not None:
            own["halflife"] = halflife
        return self._moving(Operation.EWM, history, own, asked)

    def lagged(
        self,
        data: Any,
        lags: int,
        *,
        statistic: Literal["covariance", "correlation"] = "correlation",
        ddof: int = 1,
        min_periods: int | None = None,
        sort: bool = False,
        full: bool = False,
    ) -> Any:
        """Return the covariance or correlation of each column with each other one some rows later.

        Parameters
        ----------
        data : as for `rolling`
        lags : the lags are -lags to lags, fewer than there are rows
        statistic : "covariance" or "correlation"
        ddof, min_periods, sort, full : as for `rolling`; the counts of a `Result` are of each lag

        Returns
        -------
        float array of shape (2 * lags + 1, symbols, symbols), or a DataFrame of (lag, symbol) x symbols
            Element (lag, i, j) is of column i at row t - lag with column j at row t, on the rows where both
            are there. So a positive lag says that i leads j.
        """
        history = History.of(data, sort=sort, engine="auto", device=None)
        options = make_options(
            Operation.LAGGED,
            {"lags": lags, "statistic": statistic, "ddof": ddof, "min_periods": at_least(min_periods)},
        )
        found = self._compute(
            Operation.LAGGED,
            _arrays(history),
            rows=len(history.X),
            symbols=history.symbols,
            full=full,
            options=encode_options(options),
        )
        if full:
            return found
        if history.columns is None:
            return found.matrix
        rows = sys.modules["pandas"].RangeIndex(-lags, lags + 1, name="lag")
        return labels.stacked(found.matrix, rows, history.columns, history.columns)

    def _moving(
        self,
        operation: Operation,
        history: History,
        own: dict[str, Any],
        asked: Asked,
        times: NDArray[np.int64] | None = None,
        *,
        step: int = 1,
    ) -> Any:
        """Send what is asked, its labels as numbers, and put labels on what comes back."""
        wanted: dict[str, Any] = {**own, **asked}
        full, last = wanted.pop("full", False), wanted.get("last", False)
        wanted.pop("sort", None)
        weights = wanted.pop("weights", None)
        if wanted.get("min_periods") is not None:
            wanted["min_periods"] = at_least(wanted["min_periods"])
        name = wanted.get("column")
        if name is not None:
            wanted["column"] = history.position(name)
        if wanted.get("pairs") is not None:
            left, right = history.positions(wanted["pairs"])
            wanted["pairs"] = list(zip(left.tolist(), right.tolist(), strict=True))
        options = make_options(operation, wanted)
        rows = history.rows
        if rows is not None:
            rows = rows[::step][-1:] if last else rows[::step]
        arrays = _arrays(history)
        if times is not None:
            arrays.append(Array(Role.TIMES, times))
        if weights is not None:
            count = 1 if last else -(-len(history.X) // step)
            arrays.append(Array(Role.WEIGHTS, np.ascontiguousarray(history.weights(weights, rows, count))))
        found, reply = self._answered(
            operation,
            arrays,
            rows=len(history.X),
            symbols=history.symbols,
            full=full,
            options=encode_options(options),
        )
        found = replace(found, packed=options.packed)
        indices = reply.find(Role.INDICES)
        if indices is not None:
            found = replace(found, pairs=owned(indices).astype(np.int32))
        if last and options.reduce != "top":
            found = replace(found, matrix=found.matrix[0])
        if full:
            return found
        say(*found.notes)
        return _labelled(found, options, history, rows, name)


def _arrays(history: History) -> list[Array]:
    arrays = [Array(Role.DATA, sendable(history.X, "data"))]
    if history.symbols is not None:
        arrays.append(Array(Role.SYMBOLS, encoded(history.symbols, history.X.shape[1])))
    return arrays


def _milliseconds(history: History, times: Any, why: str) -> NDArray[np.int64]:
    """Return the times of the rows in the milliseconds of the wire."""
    given = history.rows if times is None else times
    if times is None and not has_times(given):
        raise InputError(f"{why}, but the rows have no times; give a DataFrame with a DatetimeIndex.")
    stamps, rest = np.divmod(nanoseconds_of(given, len(history.X)), _MILLISECOND)
    if rest.any():
        row = int(np.flatnonzero(rest)[0])
        raise InputError(f"the time of row {row} is finer than a millisecond; round the times first.")
    return stamps


def _labelled(found: Result, options: MovingOptions, history: History, rows: Any, name: Any) -> Any:
    """Return what was kept of each window as a DataFrame or a Series, or as it is for an array."""
    matrix, columns, last = found.matrix, history.columns, options.last
    if found.pairs is not None:
        if columns is None:
            return (matrix[0], found.pairs[0]) if last else (matrix, found.pairs)
        return labels.ranked(matrix, found.pairs, rows, columns, options.statistic)
    if columns is None:
        return float(matrix) if matrix.ndim == 0 else matrix
    if options.column is not None:
        return labels.series(matrix, columns, str(name)) if last else labels.flat(matrix, rows, columns)
    if options.packed or options.pairs is not None:
        left, right = zip(*options.pairs, strict=True) if options.pairs else np.triu_indices(len(columns))
        pairs = labels.pair_labels(columns, left, right)
        return labels.series(matrix, pairs, options.statistic) if last else labels.flat(matrix, rows, pairs)
    if options.reduce == "none":
        return square(found, columns) if last else labels.stacked(matrix, rows, columns, columns)
    names = {
        "mean": f"mean_{options.statistic}",
        "eigenvalue": "largest_eigenvalue",
        "variance": "portfolio_variance",
    }
    return float(matrix) if last else labels.series(matrix, rows, names[options.reduce])
