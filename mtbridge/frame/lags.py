"""`lagged_correlation` and `lagged_covariance`: each column some rows before each other."""

from __future__ import annotations

import sys
from typing import Any

from mtbridge.compute import statistics
from mtbridge.compute.engine import Engine
from mtbridge.compute.sequence import Statistic
from mtbridge.frame.history import History
from mtbridge.frame.labels import stacked
from mtbridge.frame.options import at_least, checked, refuse_no_flags
from mtbridge.frame.tables import Table


def lagged_correlation(
    data: Table,
    lags: int,
    *,
    min_periods: int | None = None,
    sort: bool = False,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Any:
    """Return the correlation of each column with each other one some rows later, for lags from -lags to lags.

    Parameters
    ----------
    data : array or DataFrame of numbers, of shape (rows, symbols), or Series that are joined by their times
        Oldest row first; NaN is missing.
    lags : how many rows at most; a lag is of rows, whatever time lies between them
    min_periods : rows that a pair must have in common at a lag, else NaN
    sort, engine, device, dtype, full : as for `rolling` and `covariance`

    Returns
    -------
    DataFrame of (lag, symbol) x symbols, or an array of shape (2 * lags + 1, symbols, symbols)
        Element (lag, i, j) is of column i at row t - lag with column j at row t, on the rows where both are
        there, with means and variances of those rows. So a positive lag says that i leads j.

    Raises
    ------
    OptionError
        If `lags` is no whole number of 0 or more.
    """
    history = History.of(data, sort=sort, engine=engine, device=device)
    return _lagged("correlation", history, lags, ddof=1, min_periods=min_periods, dtype=dtype, full=full)


def lagged_covariance(
    data: Table,
    lags: int,
    *,
    ddof: int = 1,
    min_periods: int | None = None,
    sort: bool = False,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Any:
    """Return the covariance of each column with each other one some rows later; as `lagged_correlation`.

    The divisor is the number of rows that the pair has in common at that lag, less `ddof`.
    """
    history = History.of(data, sort=sort, engine=engine, device=device)
    return _lagged("covariance", history, lags, ddof=ddof, min_periods=min_periods, dtype=dtype, full=full)


def _lagged(
    statistic: Statistic,
    history: History,
    lags: int,
    *,
    ddof: int,
    min_periods: int | None,
    dtype: str | None,
    full: bool,
) -> Any:
    refuse_no_flags(full=full)
    found = statistics.lagged(
        history.X,
        lags,
        statistic,
        engine=history.opened(),
        ddof=ddof,
        min_periods=at_least(min_periods),
        symbols=history.symbols,
        dtype=checked(dtype),
    )
    if full:
        return found
    if history.columns is None:
        return found.matrix
    rows = sys.modules["pandas"].RangeIndex(-int(lags), int(lags) + 1, name="lag")
    return stacked(found.matrix, rows, history.columns, history.columns)
