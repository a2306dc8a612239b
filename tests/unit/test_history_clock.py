"""Text to times, and bounds of a range."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mtbridge.errors import OptionError
from mtbridge.history import clock
from mtbridge.history.clock import UnreadableTimeError, looks_like_time, parse_moment, read_times


def times_of(*cells: str) -> clock.Times:
    return read_times(pa.array(cells, pa.string()))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2025-03-04", "2025-03-04"),
        ("2025.03.04", "2025-03-04"),
        ("2025/03/04", "2025-03-04"),
        ("20250304", "2025-03-04"),
        ("2025-3-4", "2025-03-04"),
        ("2025.03.04 05:06", "2025-03-04 05:06"),
        ("2025.03.04 5:06", "2025-03-04 05:06"),
        ("2025-03-04T05:06:07", "2025-03-04 05:06:07"),
        ("2025-03-04 05:06:07.125", "2025-03-04 05:06:07.125"),
        (" 2025-03-04 05:06 ", "2025-03-04 05:06"),
        ("31.03.2025 05:06", "2025-03-31 05:06"),
        ("31/3/2025", "2025-03-31"),
        ("03/31/2025", "2025-03-31"),
        ("1740960000", "2025-03-03"),
        ("1740960000000", "2025-03-03"),
        ("1740960000000000", "2025-03-03"),
        ("1740960000000000000", "2025-03-03"),
    ],
)
def test_a_time_is_read_in_every_shape_that_files_have(cell: str, expected: str) -> None:
    assert looks_like_time(cell.strip())
    assert times_of(cell).index[0] == pd.Timestamp(expected)


@pytest.mark.parametrize(
    "cell", ["", "EURUSD", "1.0381", "12:30", "45000", "2025", "600519", "99999999", "0"]
)
def test_what_is_no_time_does_not_look_like_one(cell: str) -> None:
    assert not looks_like_time(cell)


def test_offsets_become_utc_even_where_they_change_with_daylight_saving() -> None:
    times = times_of("2025-03-07T09:30:00-05:00", "2025-03-10T09:30:00-04:00")
    assert times.clock == clock.UTC
    assert list(times.index) == [
        pd.Timestamp("2025-03-07 14:30", tz="UTC"),
        pd.Timestamp("2025-03-10 13:30", tz="UTC"),
    ]


def test_bare_days_keep_no_clock() -> None:
    assert times_of("2025-03-03").clock == clock.DAYS
    assert times_of("2025-03-03 00:00").clock == clock.UNSTATED


def test_dotted_dates_that_nothing_decides_are_day_first_and_that_is_said() -> None:
    times = times_of("03.04.2025 00:00")
    assert times.index[0] == pd.Timestamp("2025-04-03")
    assert "03.04.2025" in times.notes[0]
    assert "day first" in times.notes[0]


def test_one_row_above_12_decides_for_the_whole_column() -> None:
    day_first = times_of("03/04/2025", "13/04/2025")
    month_first = times_of("03/04/2025", "04/13/2025")
    assert (day_first.index[0], day_first.notes) == (pd.Timestamp("2025-04-03"), ())
    assert (month_first.index[0], month_first.notes) == (pd.Timestamp("2025-03-04"), ())


@pytest.mark.parametrize("mark", ["/", "-"])
def test_dates_with_slashes_that_nothing_decides_are_refused(mark: str) -> None:
    with pytest.raises(UnreadableTimeError, match="day first or month first"):
        times_of(f"03{mark}04{mark}2025", f"04{mark}04{mark}2025")


def test_day_and_month_that_swap_within_a_column_are_refused_at_the_row() -> None:
    with pytest.raises(UnreadableTimeError, match="04/13/2025") as refused:
        times_of("13/04/2025", "03/04/2025", "04/13/2025")
    assert refused.value.row == 2


@pytest.mark.parametrize(
    "bad", ["yesterday", "2025-02-30", "2025-03-03 25:00", "2025-03-03T00:00Z", "1740960000"]
)
def test_a_cell_unlike_those_before_it_is_refused_at_its_row(bad: str) -> None:
    cells = ["2025-03-03 00:00"] * 700
    cells[613] = bad
    with pytest.raises(UnreadableTimeError, match="not a time") as refused:
        times_of(*cells)
    assert refused.value.row == 613


def test_a_column_that_mixes_seconds_and_milliseconds_is_refused() -> None:
    with pytest.raises(UnreadableTimeError, match="one unit"):
        times_of("1740960000", "1740960000000")


def test_a_day_that_ends_a_range_counts_whole() -> None:
    assert parse_moment("2025-03-31") == pd.Timestamp("2025-03-31")
    assert parse_moment("2025-03-31", end=True) == pd.Timestamp("2025-03-31 23:59:59.999999999")
    assert parse_moment("2025-03-31 00:00", end=True) == pd.Timestamp("2025-03-31")


@pytest.mark.parametrize(
    "value",
    [
        "2025-03-31 14:00",
        "2025-03-31T14:00:00",
        "2025.03.31 14:00",
        datetime(2025, 3, 31, 14),
        np.datetime64("2025-03-31T14:00"),
        pd.Timestamp("2025-03-31 14:00"),
    ],
)
def test_a_bound_may_have_any_type_that_python_has_for_times(value: str) -> None:
    assert parse_moment(value) == pd.Timestamp("2025-03-31 14:00")


def test_dates_and_day_datetime64_are_bare_days() -> None:
    assert parse_moment(date(2025, 3, 31), end=True) == parse_moment("2025-03-31", end=True)
    assert parse_moment(np.datetime64("2025-03-31"), end=True) == parse_moment("2025-03-31", end=True)


def test_a_bound_with_a_zone_is_in_utc() -> None:
    expected = datetime(2025, 3, 31, 12, tzinfo=UTC)
    assert parse_moment("2025-03-31 14:00+02:00") == expected
    assert parse_moment(datetime(2025, 3, 31, 14, tzinfo=timezone(timedelta(hours=2)))) == expected


@pytest.mark.parametrize("value", ["31.03.2025", "soon", "", None, np.datetime64("NaT"), object()])
def test_a_bound_that_is_no_time_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(OptionError, match="2025-03-31 14:00"):
        parse_moment(value)


@pytest.mark.parametrize("value", ["9999-12-31", "2262-04-11", "0001-01-01"])
def test_a_bound_past_the_range_of_times_says_what_the_range_is(value: str) -> None:
    with pytest.raises(OptionError, match="2262-04-10"):
        parse_moment(value, end=True)


def test_the_last_day_of_the_range_counts_whole() -> None:
    assert parse_moment("2262-04-10", end=True) == pd.Timestamp("2262-04-10 23:59:59.999999999")
