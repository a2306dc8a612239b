"""Rows with times of every kind, and spans: in order or refused, whatever type holds them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from given_frames import equal, hourly_moves

import mtbridge
from mtbridge.errors import InputError, OptionError

ROWS = 40


def arrow(times: Any, kind: Any) -> pd.Index:
    index: pd.Index = pd.Index(pd.array(times, dtype=kind))
    return index


HOURS = pd.date_range("2025-03-03", periods=ROWS, freq="h")
ZONED = HOURS.tz_localize("UTC")
KINDS: dict[str, pd.Index] = {
    "datetimes": HOURS,
    "zoned": ZONED,
    "periods": pd.period_range("2025-03-03", periods=ROWS, freq="h"),
    "spans": pd.timedelta_range("0h", periods=ROWS, freq="h"),
    "arrow": arrow(HOURS, "timestamp[ns][pyarrow]"),
    "arrow-zoned": arrow(ZONED, "timestamp[us, tz=UTC][pyarrow]"),
    "arrow-spans": arrow(HOURS - HOURS[0], "duration[ns][pyarrow]"),
    "objects": pd.Index(HOURS.to_pydatetime(), dtype=object),
    "zoned-objects": pd.Index(ZONED.to_pydatetime(), dtype=object),
    "period-objects": pd.Index(list(pd.period_range("2025-03-03", periods=ROWS, freq="h")), dtype=object),
    "numpy-objects": pd.Index(list(HOURS.to_numpy()), dtype=object),
    "span-objects": pd.Index([datetime.timedelta(hours=row) for row in range(ROWS)], dtype=object),
}


@pytest.fixture(params=list(KINDS))
def timed(request: pytest.FixtureRequest) -> pd.DataFrame:
    return hourly_moves().set_axis(KINDS[request.param])


def test_times_of_every_kind_must_rise_or_be_sorted(timed: pd.DataFrame) -> None:
    backwards = timed.iloc[::-1]
    with pytest.raises(InputError, match=r"not in order of time: .* comes after .*, or pass sort=True\.$"):
        mtbridge.rolling(backwards, 5, engine="numpy")
    right = mtbridge.rolling(timed, 5, engine="numpy").covariance()
    equal(mtbridge.rolling(backwards, 5, sort=True, engine="numpy").covariance(), right)


def test_times_of_every_kind_are_there_once(timed: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="1 row has a time that was there before"):
        mtbridge.expanding(timed.iloc[[0, 1, 1, 2]], engine="numpy")


def test_times_of_every_kind_make_windows_of_time(timed: pd.DataFrame) -> None:
    plain = timed.set_axis(HOURS)
    calls: list[Callable[[pd.DataFrame], Any]] = [
        lambda data: mtbridge.rolling(data, "5h", engine="numpy").covariance(),
        lambda data: mtbridge.ewm(data, halflife="5h", engine="numpy").covariance(),
        lambda data: mtbridge.ewm(data.to_numpy(), halflife="5h", times=data.index).covariance(),
    ]
    for make in calls:
        np.testing.assert_array_equal(make(timed), make(plain))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([HOURS[0], ZONED[1]], "some rows have times without a zone, .* and some times with a zone"),
        ([HOURS[0], "soon"], "some rows have times without a zone, .* and some no times"),
        ([HOURS[0], pd.Period("2025-03-04")], "and some periods"),
        ([pd.Timedelta("1h"), HOURS[0]], "some rows have spans of time"),
        ([pd.Period("2025", "Y"), pd.Period("2025-03", "M")], "no times that pandas can hold together"),
    ],
    ids=["zones", "text", "periods", "spans", "frequencies"],
)
@pytest.mark.parametrize("sort", [False, True])
def test_labels_of_which_some_are_times_are_refused(labels: list[Any], message: str, sort: bool) -> None:
    frame = pd.DataFrame([[1.0], [2.0]], index=pd.Index(labels, dtype=object))
    with pytest.raises(InputError, match=message):
        mtbridge.rolling(frame, 2, sort=sort, engine="numpy")


@pytest.mark.parametrize(
    "labels", [pd.Index(["b", "a"]), pd.RangeIndex(2, 0, -1), pd.Index(["b", 1])], ids=str
)
def test_labels_that_are_no_times_may_stand_in_any_order(labels: pd.Index) -> None:
    frame = pd.DataFrame([[1.0], [2.0]], index=labels)
    found = mtbridge.rolling(frame, 2, engine="numpy").covariance()
    assert list(found.index.get_level_values(0)) == list(labels)


def test_labels_that_have_no_order_cannot_be_sorted() -> None:
    frame = pd.DataFrame([[1.0], [2.0]], index=["b", 1])
    with pytest.raises(InputError, match="have no order"):
        mtbridge.rolling(frame, 2, sort=True, engine="numpy")


@pytest.mark.parametrize("span", ["60", " 3 ", "-3", "1.5", "", np.timedelta64(3), "1" * 5000])
def test_a_span_without_a_unit_is_not_taken_for_nanoseconds(span: Any) -> None:
    frame = hourly_moves()
    with pytest.raises(OptionError, match=r"^window is .*, a span without a unit; give one such as '60min'"):
        mtbridge.rolling(frame, span, engine="numpy")
    with pytest.raises(OptionError, match=r"^halflife is .*, a span without a unit") as refused:
        mtbridge.ewm(frame, halflife=span, engine="numpy")
    assert len(str(refused.value)) < 200


def test_a_span_may_be_written_as_a_clock_shows_it() -> None:
    frame = hourly_moves()
    equal(mtbridge.rolling(frame, "05:00:00").covariance(), mtbridge.rolling(frame, "5h").covariance())


@pytest.mark.parametrize("year", ["0001", "33658"])
def test_a_window_of_time_in_a_year_past_nanoseconds_is_refused(year: str) -> None:
    times = pd.DatetimeIndex(np.datetime64(f"{year}-01-01", "s") + np.arange(ROWS))
    frame = hourly_moves().set_axis(times)
    with pytest.raises(InputError, match="the years 1678 to 2261"):
        mtbridge.rolling(frame, "5h", engine="numpy")
    assert len(mtbridge.rolling(frame, 5, engine="numpy")) == ROWS


@pytest.mark.parametrize("times", [[2**63] * ROWS, 5, pd.NaT, [[1, 2]], "noon"], ids=str)
def test_times_that_cannot_be_read_are_refused(times: Any) -> None:
    with pytest.raises(InputError, match=r"^the times, of type \w+, cannot be read"):
        mtbridge.ewm(hourly_moves(), halflife="5h", times=times, engine="numpy")


@pytest.mark.parametrize(
    "index", [pd.NaT, "2025", pd.timedelta_range("0h", periods=ROWS, freq="h"), HOURS[0]]
)
def test_what_is_no_index_of_times_shows_no_bars_a_year(index: Any) -> None:
    with pytest.raises(InputError, match="without time stamps"):
        mtbridge.bars_per_year(index)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_stamps_from_the_first_to_the_last_that_there_are_show_no_bars_a_year(zone: str | None) -> None:
    index = pd.DatetimeIndex([pd.Timestamp.min, *HOURS[:24], pd.Timestamp.max], tz="UTC").tz_convert(zone)
    with pytest.raises(InputError, match=r"days, too few|irregular"):
        mtbridge.bars_per_year(index)


@pytest.mark.parametrize("kind", ["datetimes", "periods", "arrow", "objects", "zoned-objects"])
def test_every_kind_of_time_stamp_shows_bars_a_year(kind: str) -> None:
    longer = pd.date_range("2025-03-03", periods=480, freq="h")
    index = {
        "datetimes": longer,
        "periods": longer.to_period(),
        "arrow": arrow(longer, "timestamp[ns][pyarrow]"),
        "objects": pd.Index(longer.to_pydatetime(), dtype=object),
        "zoned-objects": pd.Index(longer.tz_localize("UTC").to_pydatetime(), dtype=object),
    }[kind]
    assert mtbridge.bars_per_year(index)[0] == 8760


@pytest.mark.parametrize("kind", ["periods", "spans"])
def test_columns_with_times_of_different_kinds_are_not_joined(kind: str) -> None:
    x, y = pd.Series(1.0, HOURS), pd.Series(1.0, KINDS[kind])
    with pytest.raises(InputError, match="which cannot be matched"):
        mtbridge.covariance({"x": x, "y": y}, engine="numpy")


def test_times_that_arrow_holds_are_joined_with_those_of_pandas() -> None:
    move = hourly_moves()
    x, y = move["EURUSD"], move["US30"].set_axis(KINDS["arrow"]).iloc[::-1]
    found = mtbridge.covariance({"EURUSD": x, "US30": y}, engine="numpy")
    np.testing.assert_allclose(found, move[["EURUSD", "US30"]].cov(), rtol=1e-12)


def test_columns_with_labels_of_two_levels_are_joined() -> None:
    labels = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    x, y = pd.Series([1.0, 2.0, 4.0, 3.0], labels), pd.Series([3.0, 4.0, 2.0, 1.0], labels[::-1])
    found = mtbridge.covariance({"x": x, "y": y}, engine="numpy")
    np.testing.assert_allclose(found, pd.DataFrame({"x": x, "y": y}).cov(), rtol=1e-12)
    missing = y.set_axis(pd.MultiIndex.from_arrays([["a", "b", "c", None], [1, 2, 3, 4]]))
    with pytest.raises(InputError, match="'y' has a row whose time or label is missing"):
        mtbridge.covariance({"x": x, "y": missing}, engine="numpy")
