"""The plan of rolling windows: which rows each has, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtbridge.compute.windows import Rolling
from mtbridge.errors import InputError, OptionError


def rows_of(plan: Rolling) -> list[tuple[int, int]]:
    return list(zip(plan.first.tolist(), plan.last.tolist(), strict=True))


def test_windows_by_rows_are_short_at_the_start() -> None:
    assert rows_of(Rolling.by_rows(5, 3)) == [(0, 0), (0, 1), (0, 2), (1, 3), (2, 4)]


def test_a_step_keeps_every_kth_window() -> None:
    assert rows_of(Rolling.by_rows(8, 3, step=3)) == [(0, 0), (1, 3), (4, 6)]


def test_a_window_larger_than_the_history_holds_all_of_it() -> None:
    assert rows_of(Rolling.by_rows(3, 100)) == [(0, 0), (0, 1), (0, 2)]


def test_no_rows_have_no_windows() -> None:
    plan = Rolling.by_rows(0, 3)
    assert (len(plan), plan.end) == (0, 0)
    assert len(Rolling.by_time(np.empty(0, np.int64), 5)) == 0


@pytest.mark.parametrize("window", [1, 2, 7, 40])
@pytest.mark.parametrize("step", [1, 4])
def test_windows_by_rows_are_those_of_pandas(window: int, step: int) -> None:
    values = np.arange(25.0)
    plan = Rolling.by_rows(25, window, step)
    rolling = pd.Series(values).rolling(window, min_periods=1, step=step)
    assert plan.first.tolist() == rolling.min().tolist()
    assert plan.last.tolist() == rolling.max().tolist()
    assert plan.rows.tolist() == rolling.count().tolist()


@pytest.mark.parametrize("minutes", [1, 5, 33, 10_000])
def test_windows_by_time_are_those_of_pandas(minutes: int) -> None:
    random = np.random.default_rng(5)
    times = np.cumsum(random.integers(1, 20, 60)) * 60_000_000_000
    series = pd.Series(np.arange(60.0), pd.DatetimeIndex(times))
    rolling = series.rolling(f"{minutes}min")
    plan = Rolling.by_time(times, minutes * 60_000_000_000)
    assert plan.first.tolist() == rolling.min().tolist()
    assert plan.last.tolist() == rolling.max().tolist()
    stepped = Rolling.by_time(times, minutes * 60_000_000_000, step=7)
    assert rows_of(stepped) == rows_of(plan)[::7]


def test_times_at_the_ends_of_their_range_do_not_overflow() -> None:
    times = np.array([-(2**63), -5, 2**62])
    assert rows_of(Rolling.by_time(times, 2**63 - 1)) == [(0, 0), (0, 1), (1, 2)]


def test_rows_and_end_are_those_of_the_windows() -> None:
    plan = Rolling(np.array([0, 2, 2]), np.array([1, 2, 6]))
    assert plan.rows.tolist() == [2, 1, 5]
    assert plan.end == 7


@pytest.mark.parametrize("bad", [0, -3, 2.5, "10", True, None])
def test_a_window_or_step_that_is_no_number_of_rows_is_refused(bad: Any) -> None:
    with pytest.raises(OptionError, match=f"^window is {bad!r}[;] .*rows[.]$"):
        Rolling.by_rows(10, bad)
    with pytest.raises(OptionError, match=f"^step is {bad!r}[;] .*rows[.]$"):
        Rolling.by_rows(10, 3, bad)
    with pytest.raises(OptionError, match=f"^window is {bad!r}[;] .*units of time[.]$"):
        Rolling.by_time(np.arange(5), bad)


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([1, 2, 2, 3], "the time of row 2, 2, equals that of the row above"),
        ([1, 5, 4], "the time of row 2, 4, is before that of the row above"),
        ([1.0, 2.0], "times are float64"),
        ([[1, 2]], r"times are int64 of shape \(1, 2\)"),
    ],
)
def test_times_that_do_not_increase_are_refused(times: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Rolling.by_time(np.array(times), 3)


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        ([0, 1], [1], "shape"),
        ([-1], [1], "begins at row -1"),
        ([3], [2], "window 0 begins at row 3 but ends at row 2"),
        ([0, 2, 1], [2, 2, 2], "window 2 begins at row 1, before"),
        ([0, 0], [3, 2], "window 1 ends at row 2, before"),
    ],
)
def test_windows_that_are_none_are_refused(first: list[int], last: list[int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Rolling(np.array(first), np.array(last))
