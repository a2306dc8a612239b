"""Time stamps of rows, and spans of time, as whole numbers of nanoseconds."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.errors import InputError, OptionError, ShapeError


def has_times(index: Any) -> bool:
    """Whether these row labels are a DatetimeIndex."""
    return index is not None and hasattr(index, "as_unit") and hasattr(index, "tz")


def in_order(data: Any, index: Any, *, sort: bool) -> Any:
    """Return the DataFrame `data` with its time stamps rising; its rows sorted if that is wanted.

    Raises
    ------
    InputError
        If a stamp is missing or there twice, or if they do not rise and `sort` is False.
    """
    if not has_times(index):
        return data.sort_index(kind="stable") if sort else data
    if index.hasnans:
        raise InputError("a row has no time; drop it first.")
    if not index.is_monotonic_increasing:
        if not sort:
            row = int(np.argmax(index[1:] < index[:-1])) + 1
            raise InputError(
                f"the rows are not in order of time: {index[row]} comes after {index[row - 1]}; sort them, "
                "or pass sort=True."
            )
        data = data.sort_index(kind="stable")
        index = data.index
    twice = index.duplicated()
    if twice.any():
        repeated = "1 row has" if twice.sum() == 1 else f"{twice.sum()} rows have"
        raise InputError(
            f"{repeated} a time that was there before, the first {index[twice][0]}; keep one of each, for "
            "example the last: data[~data.index.duplicated(keep='last')]."
        )
    return data


def nanoseconds_of(times: Any, rows: int) -> NDArray[np.int64]:
    """Return time stamps as int64 nanoseconds.

    Parameters
    ----------
    times : DatetimeIndex, Series or array of times
    rows : how many there must be

    Raises
    ------
    InputError
        If they are no times, or one is missing.
    ShapeError
        If there are more or fewer.
    """
    import pandas

    try:
        index = pandas.DatetimeIndex(times)
    except (TypeError, ValueError):
        raise InputError(
            f"times are {type(times).__name__}; give a DatetimeIndex, one stamp a row."
        ) from None
    if len(index) != rows:
        raise ShapeError(f"there are {len(index)} times for {rows} rows; they must be equal.")
    if index.hasnans:
        raise InputError("a row has no time; drop it first.")
    return np.asarray(index.as_unit("ns").asi8, np.int64)


def is_span(value: Any) -> bool:
    """Whether this is a span of time, and not a number of rows."""
    if isinstance(value, str | np.timedelta64):
        return True
    pandas = sys.modules.get("pandas")
    offset = pandas is not None and isinstance(value, pandas.tseries.offsets.BaseOffset)
    return offset or hasattr(value, "total_seconds")


def span_of(value: Any, *, name: str) -> int:
    """Return a span such as "10D", Timedelta or timedelta in nanoseconds.

    Raises
    ------
    OptionError
        If it cannot be read, has no fixed length, or is not above 0.
    """
    import pandas

    try:
        # a month has no nanoseconds
        span = pandas.Timedelta(getattr(value, "nanos", value))
        length = int(span.as_unit("ns").value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} is {value!r}; give a span of time such as '10D' or '4h'.") from None
    if pandas.isna(span) or length <= 0:
        raise OptionError(f"{name} is {value!r}; it must be a span of time above 0.")
    return length
