"""`rolling`, `expanding` and `ewm`: which windows, and what pandas calls them."""

from __future__ import annotations

from typing import Any

from mtbridge.allowed import short
from mtbridge.compute import statistics
from mtbridge.compute.decay import Decay, alpha_of
from mtbridge.compute.engine import Engine
from mtbridge.compute.operations import MOST_ROWS
from mtbridge.compute.windows import Rolling, whole
from mtbridge.errors import InputError, OptionError
from mtbridge.frame.history import History
from mtbridge.frame.options import at_least, refuse_no_flags
from mtbridge.frame.times import has_times, is_span, nanoseconds_of, span_of
from mtbridge.frame.windows import Windows


class RowWindows(Windows):
    """Windows whose rows all count the same: of `rolling` and `expanding`."""

    def covariance(
        self,
        *,
        ddof: int = 1,
        last: bool = False,
        packed: bool = False,
        dtype: str | None = None,
        frame: bool = True,
        full: bool = False,
        progress: statistics.Progress | None = None,
    ) -> Any:
        """Return the covariance matrix of each window; NaN where the divisor, rows - ddof, is not above 0."""
        wanted = self._wanted("covariance", ddof, dtype, packed=packed)
        return self._matrices(wanted, last, frame, full, progress)

    def portfolio_variance(self, weights: Any, *, ddof: int = 1) -> Any:
        """Return w'Cw of each window's covariance matrix C.

        Parameters
        ----------
        weights : one for each column, or one row of them for each window; they need not add up to 1
            A Series or DataFrame is matched by its labels.
        """
        return self._portfolio(weights, ddof)


class DecayingWindows(Windows):
    """All rows so far, the older the less they count: of `ewm`."""

    def covariance(
        self,
        *,
        bias: bool = False,
        last: bool = False,
        packed: bool = False,
        dtype: str | None = None,
        frame: bool = True,
        full: bool = False,
        progress: statistics.Progress | None = None,
    ) -> Any:
        """Return the weighted covariance matrix up to each row; `bias` leaves its correction out."""
        refuse_no_flags(bias=bias)
        wanted = self._wanted("covariance", 0 if bias else 1, dtype, packed=packed)
        return self._matrices(wanted, last, frame, full, progress)

    def portfolio_variance(self, weights: Any, *, bias: bool = False) -> Any:
        """Return w'Cw of the weighted covariance matrix C up to each row; weights as for `rolling`."""
        refuse_no_flags(bias=bias)
        return self._portfolio(weights, 0 if bias else 1)


def rolling(
    data: Any,
    window: Any,
    *,
    min_periods: int | None = None,
    step: int = 1,
    sort: bool = False,
    engine: str | Engine = "auto",
    device: str | None = None,
) -> RowWindows:
    """Return the windows of the last rows, or of the last span of time, at each row of `data`.

    Parameters
    ----------
    data : array or DataFrame of numbers, of shape (rows, symbols), or Series that are joined by their times
        Oldest row first; NaN is missing, and makes only the pairs of its column shorter.
    window : rows, this row included; or a span such as "10D" or a Timedelta, of the time (t - span, t]
    min_periods : rows that a pair must have in common in a window, else NaN
        The window itself for one of rows, 1 for one of time, as in pandas.
    step : each step-th row has a window
    sort : sort the rows by time first; else unsorted ones are refused
    engine, device : as for `covariance`

    Returns
    -------
    RowWindows
        Ask it for ``covariance()``, ``correlation()``, ``beta(benchmark)``, or for the numbers that are
        wanted of each matrix: ``mean_correlation()``, ``pairs([...])``, ``row(symbol)``, ``top_pairs(k)``,
        ``largest_eigenvalue()``, ``portfolio_variance(weights)``.

    Raises
    ------
    OptionError
        If `window` or `step` is below 1, or `min_periods` above a window of rows.
    InputError
        If times are not in order or there twice, or a window of time meets no times.
    """
    history = History.of(data, sort=sort, engine=engine, device=device)
    rows = len(history.X)
    if is_span(window):
        span = span_of(window, name="window")
        if not has_times(history.rows):
            raise InputError(
                f"the window {short(window)} is a span of time, but the rows have no times; give a DataFrame "
                "with a DatetimeIndex, or a number of rows."
            )
        step = min(whole("step", step, "rows"), rows + 1)
        plan = Rolling.by_time(nanoseconds_of(history.rows, rows), span, step)
        return RowWindows(history, plan, at_least(min_periods))
    size = whole("window", window, "rows")
    needed = size if min_periods is None else at_least(min_periods)
    if needed > size:
        raise OptionError(
            f"min_periods is {needed} but a window has {size} rows; at most all of them can be asked for."
        )
    # longer windows and steps are those of all rows
    size, step = min(size, rows + 1), min(whole("step", step, "rows"), rows + 1)
    return RowWindows(history, Rolling.by_rows(rows, size, step), min(needed, MOST_ROWS))


def expanding(
    data: Any,
    *,
    min_periods: int = 1,
    sort: bool = False,
    engine: str | Engine = "auto",
    device: str | None = None,
) -> RowWindows:
    """Return the windows of all rows so far at each row of `data`; parameters as for `rolling`."""
    history = History.of(data, sort=sort, engine=engine, device=device)
    return RowWindows(history, Decay.expanding(len(history.X)), at_least(min_periods))


def ewm(
    data: Any,
    *,
    com: float | None = None,
    span: float | None = None,
    halflife: Any = None,
    alpha: float | None = None,
    min_periods: int = 0,
    adjust: bool = True,
    ignore_na: bool = False,
    times: Any = None,
    sort: bool = False,
    engine: str | Engine = "auto",
    device: str | None = None,
) -> DecayingWindows:
    """Return exponentially weighted windows of all rows so far at each row of `data`, as ``DataFrame.ewm``.

    Parameters
    ----------
    data : as for `rolling`
    com, span, halflife, alpha : exactly one of them, as in pandas
        A half-life may be a span of time, such as "4h" or a Timedelta: weights then fall with the time
        between rows, however irregular.
    min_periods : rows that a pair must have in common, else NaN
    adjust : weights are (1 - alpha)**age; else the recursive form, whose first row weighs more
    ignore_na : a row that a pair does not have does not age its other rows
    times : of the rows, where `halflife` is a span; by default those of the index of `data`
    sort, engine, device : as for `rolling`

    Returns
    -------
    DecayingWindows
        With the methods of `rolling`; ``covariance(bias=False)`` takes `bias` in place of ddof.

    Raises
    ------
    OptionError
        If none or more than one of com, span, halflife and alpha is given, or its value is out of range.
    InputError
        If times are not in order, there twice, or needed and not there.
    """
    history = History.of(data, sort=sort, engine=engine, device=device)
    refuse_no_flags(adjust=adjust, ignore_na=ignore_na)
    needed, rows = at_least(min_periods), len(history.X)
    if not is_span(halflife):
        if times is not None:
            raise OptionError(
                f"times are given but halflife is {short(halflife)}; give a span such as '4h', or no times."
            )
        chosen = alpha_of(com, span, halflife, alpha)
        return DecayingWindows(history, Decay.exponential(rows, chosen, adjust, ignore_na), needed)
    if not (com is span is alpha is None):
        alpha_of(com, span, 1.0, alpha)
    length = span_of(halflife, name="halflife")
    if not adjust:
        raise OptionError("a half-life in time needs adjust=True; the recursive form is of rows.")
    if times is not None and sort:
        raise OptionError("sort=True would move the rows but not the times that are given; sort them first.")
    stamps = history.rows if times is None else times
    if times is None and not has_times(stamps):
        raise InputError(
            f"halflife is {short(halflife)} but the rows have no times; pass times=, or give a number of "
            "rows."
        )
    plan = Decay.by_time(nanoseconds_of(stamps, rows), float(length), ignore_na)
    return DecayingWindows(history, plan, needed)
