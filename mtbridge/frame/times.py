"""Time stamps of rows, and spans of time, as whole numbers of nanoseconds."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.errors import InputError, OptionError, ShapeError


def times_of(labels: Any) -> Any:
    """Return row labels as an index of times, None if they are none.

    Parameters
    ----------
    labels : Index, or anything

    Returns
    -------
    DatetimeIndex, PeriodIndex or TimedeltaIndex
        Also of times that arrow holds, or that are objects; objects with a zone are given in UTC.

    Raises
    ------
    InputError
        If only some of the labels are times, only some have a zone, or pandas cannot hold them.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(labels, pandas.Index) or labels.nlevels > 1:
        return None
    if isinstance(labels, pandas.DatetimeIndex | pandas.PeriodIndex | pandas.TimedeltaIndex):
        return labels
    kind = labels.dtype.kind
    if kind in "mM":
        return pandas.DatetimeIndex(labels) if kind == "M" else pandas.TimedeltaIndex(labels)
    if labels.dtype != np.dtype(object):
        return None
    kinds = _kinds(labels[labels.notna()])
    if set(kinds) <= {"no times"}:
        return None
    if len(kinds) > 1:
        (first, one), (second, other) = list(kinds.items())[:2]
        raise InputError(
            f"some rows have {first}, such as {short(one)}, and some {second}, such as {short(other)}; "
            "give all of them one kind."
        )
    try:
        if "periods" in kinds:
            return pandas.PeriodIndex(labels)
        if "spans of time" in kinds:
            return pandas.TimedeltaIndex(labels)
        return pandas.to_datetime(labels, utc="times with a zone" in kinds)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"the times of the rows, such as {short(labels[0])}, are no times that pandas can hold together; "
            "give a DatetimeIndex."
        ) from None


def _kinds(labels: Iterable[Any]) -> dict[str, Any]:
    """What kinds of labels there are, each with the first of them."""
    period = sys.modules["pandas"].Period
    kinds: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, date | np.datetime64):
            kind = "times without a zone" if getattr(label, "tzinfo", None) is None else "times with a zone"
        elif isinstance(label, timedelta | np.timedelta64):
            kind = "spans of time"
        else:
            kind = "periods" if isinstance(label, period) else "no times"
        kinds.setdefault(kind, label)
    return kinds


def has_times(index: Any) -> bool:
    """Whether these row labels are times."""
    return times_of(index) is not None


def in_order(data: Any, *, sort: bool) -> Any:
    """Return the DataFrame `data` with its times rising; its rows sorted if that is wanted.

    Raises
    ------
    InputError
        If a time is missing or there twice, if they do not rise and `sort` is False, or if labels that are no
        times cannot be sorted.
    """
    times = times_of(data.index)
    if times is None:
        try:
            return data.sort_index(kind="stable") if sort else data
        except TypeError:
            raise InputError(
                "the rows have labels of different kinds, which have no order; give them one kind, or leave "
                "sort out."
            ) from None
    if times.hasnans:
        raise InputError("a row has no time; drop it first.")
    if not times.is_monotonic_increasing:
        if not sort:
            row = int(np.argmax(times[1:] < times[:-1])) + 1
            raise InputError(
                f"the rows are not in order of time: {times[row]} comes after {times[row - 1]}; sort them, "
                "or pass sort=True."
            )
        order = np.argsort(times.asi8, kind="stable")
        data, times = data.iloc[order], times[order]
    twice = times.duplicated()
    if twice.any():
        repeated = "1 row has" if twice.sum() == 1 else f"{twice.sum()} rows have"
        raise InputError(
            f"{repeated} a time that was there before, the first {times[twice][0]}; keep one of each, for "
            "example the last: data[~data.index.duplicated(keep='last')]."
        )
    return data


def nanoseconds_of(times: Any, rows: int) -> NDArray[np.int64]:
    """Return time stamps as int64 nanoseconds; a period is its start.

    Parameters
    ----------
    times : Index, Series or array of times
    rows : how many there must be

    Raises
    ------
    InputError
        If they are no times, one is missing, or one is not in the years 1678 to 2261.
    ShapeError
        If there are more or fewer.
    """
    import pandas

    unreadable = InputError(
        f"the times, of type {type(times).__name__}, cannot be read; give a DatetimeIndex, one stamp a row."
    )
    try:
        labels = pandas.Index(times)
    except (TypeError, ValueError, OverflowError):
        raise unreadable from None
    index = times_of(labels)
    if index is None:
        try:
            index = pandas.DatetimeIndex(times)
        except (TypeError, ValueError, OverflowError):
            raise unreadable from None
    if len(index) != rows:
        raise ShapeError(f"there are {len(index)} times for {rows} rows; they must be equal.")
    if index.hasnans:
        raise InputError("a row has no time; drop it first.")
    try:
        index = index.to_timestamp() if isinstance(index, pandas.PeriodIndex) else index
        return np.asarray(index.as_unit("ns").asi8, np.int64)
    except (ValueError, OverflowError):
        raise InputError(
            f"the times run from {index.min()} to {index.max()}, but spans of time are taken in nanoseconds, "
            "which hold the years 1678 to 2261; give a number of rows instead."
        ) from None


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
        If it cannot be read, has no unit, has no fixed length, or is not above 0.
    """
    import pandas

    text = isinstance(value, str) and not any(letter.isalpha() or letter == ":" for letter in value)
    if text or (isinstance(value, np.timedelta64) and np.datetime_data(value)[0] == "generic"):
        raise OptionError(
            f"{name} is {short(value)}, a span without a unit; give one such as '60min', or a number of rows "
            "such as 60."
        )
    try:
        # a month has no nanoseconds
        span = pandas.Timedelta(getattr(value, "nanos", value))
        length = int(span.as_unit("ns").value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} is {short(value)}; give a span of time such as '10D' or '4h'.") from None
    if pandas.isna(span) or length <= 0:
        raise OptionError(f"{name} is {short(value)}; it must be a span of time above 0.")
    return length
