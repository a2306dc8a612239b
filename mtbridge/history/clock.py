"""Text to times: which shape the dates have, what cannot be told, and whose clock it is.

A column has one shape, decided by its first cell and demanded of all. Where day and month could be swapped,
the whole column is looked through for a number above 12; when there is none, dots mean day first (nobody
writes MM.DD.YYYY), which is said, and slashes are an error: guessing would be wrong half of the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mtbridge.errors import OptionError

SERVER = "server clock, not stated"
DAYS = "none (days)"
UTC = "UTC"
UNSTATED = "not stated"

_CLOCK = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?"
_ZONE = r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?"
_YEAR_FIRST = re.compile(rf"\d{{4}}(?P<mark>[-./])\d{{1,2}}(?P=mark)\d{{1,2}}{_CLOCK}{_ZONE}")
_YEAR_LAST = re.compile(rf"\d{{1,2}}(?P<mark>[-./])\d{{1,2}}(?P=mark)\d{{4}}{_CLOCK}{_ZONE}")
_COMPACT = re.compile(r"(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_EPOCH = re.compile(r"\d{9,19}")
# the largest value that is still in the unit: year 5138 in seconds, milliseconds, microseconds
_EPOCH_UNITS = (("s", 10**11), ("ms", 10**14), ("us", 10**17), ("ns", 10**19))


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """A column of times: the index (naive, or in UTC; NaT where the cell was empty), its clock, and notes."""

    index: pd.DatetimeIndex
    clock: str
    notes: tuple[str, ...] = ()


class UnreadableTimeError(ValueError):
    """A column that is no column of times; `row` is where, or None when it is about the whole column."""

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.row = row


def looks_like_time(cell: str) -> bool:
    """Tell whether `cell` is written as a date, a date with a time, or seconds (or smaller) since 1970."""
    return looks_like_date(cell) or _EPOCH.fullmatch(cell) is not None


def looks_like_date(cell: str) -> bool:
    """Tell whether `cell` is written as a date or a date with a time."""
    return any(shape.fullmatch(cell) for shape in (_YEAR_FIRST, _YEAR_LAST, _COMPACT))


def read_times(column: Any, *, clock: str = UNSTATED) -> Times:
    """Return the times of an arrow string column.

    Parameters
    ----------
    column : arrow strings, null where empty
    clock : whose clock it is, where neither an offset nor bare days say it

    Raises
    ------
    UnreadableTimeError
        If a cell does not fit the shape of the first one, or day and month cannot be told apart.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = pc.utf8_trim_whitespace(column)
    filled = column.drop_null()
    first = filled[0].as_py() if len(filled) else ""
    notes: tuple[str, ...] = ()
    match: re.Match[str] | None = None
    if _EPOCH.fullmatch(first) and not _COMPACT.fullmatch(first):
        return _epochs(column, clock)
    if _COMPACT.fullmatch(first):
        plain = pc.replace_substring_regex(column, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3")
    elif match := _YEAR_FIRST.fullmatch(first):
        plain = (
            column
            if match["mark"] == "-"
            else pc.replace_substring(column, match["mark"], "-", max_replacements=2)
        )
    elif match := _YEAR_LAST.fullmatch(first):
        plain, notes = _year_to_front(column, match["mark"])
    else:
        raise UnreadableTimeError(
            f"{first!r} is not a time that can be read; write it as 2025-03-31 14:00", 0
        )
    zoned = match is not None and match["zone"] is not None
    index = _cast(column, plain, zoned=zoned)
    if zoned:
        return Times(index, UTC, notes)
    days_only = not pc.any(pc.match_substring(filled, ":")).as_py()
    return Times(index, DAYS if days_only else clock, notes)


def parse_moment(value: str | date | datetime | np.datetime64, *, end: bool = False) -> pd.Timestamp:
    """Return a bound of a range as a Timestamp: naive, or in UTC where `value` has a zone.

    Parameters
    ----------
    value : ISO text (2025-03-31, 2025-03-31 14:00; MetaTrader's dots will do), date, datetime or datetime64
    end : whether it ends the range; a bare day then counts to its last nanosecond

    Raises
    ------
    OptionError
        If it is none of these.
    """
    bare_day = False
    moment: date | datetime | np.datetime64
    try:
        if isinstance(value, str):
            text = re.sub(r"^(\d{4})\.(\d{2})\.(\d{2})", r"\1-\2-\3", value.strip())
            try:
                moment = date.fromisoformat(text)
                bare_day = True
            except ValueError:
                moment = datetime.fromisoformat(text)
        elif isinstance(value, np.datetime64):
            moment = value
            bare_day = np.datetime_data(value.dtype)[0] == "D"
        else:
            moment = value
            bare_day = not isinstance(value, datetime)
        stamp = pd.Timestamp(moment).as_unit("ns")
        if end and bare_day:
            stamp += pd.Timedelta(days=1) - pd.Timedelta(1, "ns")
    except (OverflowError, pd.errors.OutOfBoundsDatetime) as error:
        raise OptionError(
            f"{value!r} is out of reach: times go from 1677-09-22 to 2262-04-10; leave it out for no bound."
        ) from error
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"{value!r} is not a time; write it as 2025-03-31 or '2025-03-31 14:00'."
        ) from error
    if pd.isna(stamp):
        raise OptionError(f"{value!r} is not a time; write it as 2025-03-31 or '2025-03-31 14:00'.")
    if stamp.tzinfo is not None:
        stamp = stamp.tz_convert("UTC")
    return stamp


def _cast(column: Any, plain: Any, *, zoned: bool) -> pd.DatetimeIndex:
    """Return ISO text as times: by the strict parser, and with leading zeros put in when it refuses."""
    kind = pa.timestamp("ns", "UTC") if zoned else pa.timestamp("ns")
    try:
        stamps = plain.cast(kind)
    except pa.ArrowInvalid:
        for pattern, padded in (
            (r"-(\d)-", r"-0\1-"),
            (r"-(\d)([ T]|$)", r"-0\1\2"),
            (r"([ T])(\d):", r"\10\2:"),
        ):
            plain = pc.replace_substring_regex(plain, pattern, padded)
        try:
            stamps = plain.cast(kind)
        except pa.ArrowInvalid as error:
            raise _first_unreadable(column, plain, kind) from error
    # as numpy the instants are in UTC already
    index = pd.DatetimeIndex(stamps.cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False))
    return index.tz_localize("UTC") if zoned else index


def _first_unreadable(column: Any, plain: Any, kind: Any) -> UnreadableTimeError:
    """Return the error of the first cell that cannot be cast, found by halving."""
    good, bad = 0, len(plain)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            plain.slice(good, middle - good).cast(kind)
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    if good == 0:
        return UnreadableTimeError(f"{column[0].as_py()!r} is not a time that can be read", 0)
    return UnreadableTimeError(f"{column[good].as_py()!r} is not a time written like those before it", good)


def _year_to_front(column: Any, mark: str) -> tuple[Any, tuple[str, ...]]:
    """Return 31.12.2025 or 12/31/2025 as 2025-12-31, and a note when the order is a custom and not proved."""
    parts = pc.extract_regex(column, rf"^(?P<a>\d{{1,2}})\{mark}(?P<b>\d{{1,2}})\{mark}\d{{4}}")
    broken = pc.index(pc.and_(pc.is_valid(column), pc.is_null(parts)), True).as_py()
    if broken >= 0:
        raise UnreadableTimeError(
            f"{column[broken].as_py()!r} is not a time written like those before it", broken
        )
    above = [pc.greater(pc.cast(pc.struct_field(parts, name), pa.int32()), 12) for name in ("a", "b")]
    # the first row in which each of the two numbers can be no month; -1 where there is none
    day_first, month_first = (pc.index(rows, True).as_py() for rows in above)
    notes: tuple[str, ...] = ()
    if day_first >= 0 and month_first >= 0:
        row = max(day_first, month_first)
        raise UnreadableTimeError(
            f"{column[row].as_py()!r} has day and month the other way round than rows before", row
        )
    if day_first < 0 and month_first < 0:
        example = column.drop_null()[0].as_py()
        if mark != ".":
            raise UnreadableTimeError(
                f"dates such as {example!r} can be day first or month first and no row tells which; "
                "write them as 2025-03-31"
            )
        notes = (
            f"dates such as {example!r} are read day first, as is the custom with dots; no row proves it",
        )
    order = r"\3-\2-\1" if month_first < 0 else r"\3-\1-\2"
    shape = rf"^(\d{{1,2}})\{mark}(\d{{1,2}})\{mark}(\d{{4}})"
    return pc.replace_substring_regex(column, shape, order), notes


def _epochs(column: Any, clock: str) -> Times:
    """Return whole seconds, milliseconds, microseconds or nanoseconds since 1970 as times."""
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid as error:
        raise _first_unreadable(column, column, pa.int64()) from error
    smallest, largest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    unit = _epoch_unit(largest)
    if smallest < 0 or _epoch_unit(smallest) != unit:
        row = pc.index(numbers, smallest).as_py()
        raise UnreadableTimeError(
            f"{smallest} is not in {unit} since 1970 as {largest} is; one column must keep one unit", row
        )
    index = pd.DatetimeIndex(
        numbers.cast(pa.timestamp(unit)).cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False)
    )
    return Times(index, clock, (f"times are numbers, read as {unit} since 1970",))


def _epoch_unit(number: int) -> str:
    return next((unit for unit, limit in _EPOCH_UNITS if number < limit), "ns")
