"""Several Series with indexes of their own, joined to one table by instant.

Pairing by position would silently shift one market against another.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from mtbridge.allowed import short
from mtbridge.errors import InputError
from mtbridge.frame.objects import as_numbers, less_level
from mtbridge.frame.tables import is_series
from mtbridge.frame.times import times_of


def gathered(data: Any) -> Any:
    """Return `data` as one table: several Series joined, one Series as a column, all else as it is.

    Parameters
    ----------
    data : table, Series, dict of Series, or list of Series
        Times with a zone are matched by instant, and given back in UTC. Rows are those of any of them, in
        order; what one does not have is missing.

    Raises
    ------
    InputError
        If a label is twice in an index, if some times have a zone and some have none, if times are to be
        matched with other labels, or if a dict holds anything but Series.
    """
    if is_series(data):
        return data.to_frame()
    if isinstance(data, Mapping):
        for label, column in data.items():
            if not is_series(column):
                raise InputError(
                    f"{short(label)} is a {type(column).__name__}; in a dict each column must be a pandas "
                    "Series, with the times or labels that its rows are matched by."
                )
        return _joined(list(data.values()), list(data))
    if isinstance(data, list | tuple) and data and all(is_series(column) for column in data):
        labels = [number if column.name is None else column.name for number, column in enumerate(data)]
        return _joined(list(data), labels)
    return data


def _joined(columns: list[Any], labels: list[Any]) -> Any:
    pandas = sys.modules["pandas"] if columns else None
    if pandas is None:
        raise InputError("the dict is empty; put a pandas Series into it for each column.")
    indexes = [_checked(column.index, label) for column, label in zip(columns, labels, strict=True)]
    _refuse_mixed(indexes, labels)
    zoned = isinstance(indexes[0], pandas.DatetimeIndex) and indexes[0].tz is not None
    if zoned:
        indexes = [index.tz_convert("UTC") for index in indexes]
    if all(index.equals(indexes[0]) for index in indexes[1:]) and indexes[0].is_monotonic_increasing:
        rows = indexes[0]
    else:
        rows = indexes[0]
        try:
            for index in indexes[1:]:
                rows = rows.union(index, sort=False)
            rows = rows.sort_values()
        except (TypeError, ValueError):
            raise InputError(
                f"the rows have labels of different kinds, such as {short(rows[0])} and {short(rows[-1])}; "
                "give them one kind that can be put in order."
            ) from None
    held = {
        number: _numbers(column).set_axis(index).reindex(rows)
        for number, (column, index) in enumerate(zip(columns, indexes, strict=True))
    }
    return pandas.DataFrame(held, index=rows).set_axis(pandas.Index(labels, tupleize_cols=False), axis=1)


def _numbers(column: Any) -> Any:
    """The column with its whole numbers exact, which a join with missing rows would round."""
    values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
    less = as_numbers(less_level(values)) if len(column) else values
    return column if less is values else type(column)(less, index=column.index)


def _checked(labels: Any, label: Any) -> Any:
    """The labels of the rows of a column, as an index of times if they are times."""
    times = times_of(labels)
    index = labels if times is None else times
    twice = int(index.duplicated().sum())
    if twice:
        raise InputError(
            f"{short(label)} has {twice} labels that were there before, the first "
            f"{index[index.duplicated()][0]}; keep one of each, for example the last: "
            "x[~x.index.duplicated(keep='last')]."
        )
    # pandas has no `hasnans` of several levels
    levels = index.codes if index.nlevels > 1 else [-index.isna().astype(np.int8)]
    if any((np.asarray(codes) < 0).any() for codes in levels):
        raise InputError(f"{short(label)} has a row whose time or label is missing; drop it first.")
    return index


def _refuse_mixed(indexes: list[Any], labels: list[Any]) -> None:
    pandas = sys.modules["pandas"]
    kinds: dict[str, Any] = {}
    for index, label in zip(indexes, labels, strict=True):
        if isinstance(index, pandas.DatetimeIndex):
            kinds.setdefault("times without a zone" if index.tz is None else "times with a zone", label)
        elif isinstance(index, pandas.PeriodIndex):
            kinds.setdefault("periods", label)
        elif isinstance(index, pandas.TimedeltaIndex):
            kinds.setdefault("spans of time", label)
        else:
            kinds.setdefault("labels that are no times", label)
    if len(kinds) > 1:
        (first, one), (second, other) = list(kinds.items())[:2]
        raise InputError(
            f"{short(one)} has {first} and {short(other)} has {second}, which cannot be matched; "
            "give all of them the same kind, for example with tz_localize."
        )
