"""What `rolling`, `expanding` and `ewm` refuse, and in which words."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from given_frames import equal, hourly_moves

import mtbridge
from mtbridge.errors import InputError, OptionError, ShapeError


@pytest.fixture
def frame() -> pd.DataFrame:
    return hourly_moves()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window is 0"),
        ({"window": -3}, "window is -3"),
        ({"window": 2.5}, "window is 2.5"),
        ({"window": True}, "window is True"),
        ({"window": "ten days"}, "'ten days'"),
        ({"window": "-3h"}, "above 0"),
        ({"window": pd.DateOffset(months=1)}, "DateOffset"),
        ({"window": datetime.timedelta(0)}, "above 0"),
        ({"window": 5, "step": 0}, "step is 0"),
        ({"window": "5h", "step": 0}, "step is 0"),
        ({"window": 5, "min_periods": 6}, "min_periods is 6 but a window has 5 rows"),
        ({"window": 5, "min_periods": -1}, "min_periods is -1"),
        ({"window": 5, "min_periods": 2.0}, "min_periods is 2.0"),
    ],
    ids=str,
)
def test_windows_that_cannot_be_are_refused(
    frame: pd.DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        mtbridge.rolling(frame, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "none of com, span, halflife and alpha"),
        ({"span": 3, "alpha": 0.5}, "exactly one"),
        ({"halflife": -1}, "halflife is -1"),
        ({"halflife": "-4h"}, "above 0"),
        ({"halflife": "soon"}, "'soon'"),
        ({"halflife": "4h", "span": 3}, "exactly one"),
        ({"halflife": "4h", "adjust": False}, "adjust=True"),
        ({"halflife": 4, "times": [1, 2]}, "times are given"),
        ({"span": 0.5}, "span is 0.5"),
        ({"com": -1}, "com is -1"),
        ({"alpha": 0}, "alpha is 0"),
        ({"alpha": "0.5"}, "alpha is '0.5'"),
    ],
    ids=str,
)
def test_decays_that_cannot_be_are_refused(
    frame: pd.DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        mtbridge.ewm(frame, **options)  # type: ignore[arg-type]


def test_rows_out_of_order_are_refused_and_sorted_on_request(frame: pd.DataFrame) -> None:
    shuffled = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    for make in (
        lambda data, **options: mtbridge.rolling(data, 5, engine="numpy", **options),
        lambda data, **options: mtbridge.expanding(data, engine="numpy", **options),
        lambda data, **options: mtbridge.ewm(data, span=5, engine="numpy", **options),
    ):
        with pytest.raises(InputError, match="sort=True"):
            make(shuffled)
        equal(make(shuffled, sort=True).covariance(), make(frame).covariance())
    with pytest.raises(InputError, match="sort=True"):
        mtbridge.lagged_correlation(shuffled, 2, engine="numpy")
    with pytest.raises(OptionError, match="no times"):
        mtbridge.rolling(frame.to_numpy(), 5, sort=True)


def test_stamps_that_are_there_twice_are_refused_with_their_number(frame: pd.DataFrame) -> None:
    twice = frame.iloc[[0, 1, 1, 2, 2, 3]]
    with pytest.raises(InputError, match="2 rows have a time that was there before"):
        mtbridge.rolling(twice, 2)
    with pytest.raises(InputError, match="no time"):
        mtbridge.rolling(frame.set_axis([*frame.index[:-1], pd.NaT]), 2)


def test_a_window_of_time_needs_times(frame: pd.DataFrame) -> None:
    for data in (frame.to_numpy(), frame.reset_index(drop=True)):
        with pytest.raises(InputError, match="no times"):
            mtbridge.rolling(data, "3h")
        with pytest.raises(InputError, match="no times"):
            mtbridge.ewm(data, halflife="3h")
    with pytest.raises(ShapeError, match="2 times for 40 rows"):
        mtbridge.ewm(frame.to_numpy(), halflife="3h", times=["2025-01-01", "2025-01-02"])


def test_columns_that_are_not_there_are_refused_by_name(frame: pd.DataFrame) -> None:
    windows = mtbridge.rolling(frame, 5, engine="numpy")
    with pytest.raises(InputError, match=r"no column 'DAX'; there are EURUSD"):
        windows.beta("DAX")
    with pytest.raises(InputError, match="'DAX'"):
        windows.pairs([("EURUSD", "DAX")])
    with pytest.raises(InputError, match="two columns each"):
        windows.pairs([("EURUSD", "US30", "XAUUSD")])
    with pytest.raises(InputError, match="no pairs"):
        windows.pairs([])
    with pytest.raises(InputError, match="there are 4, counted from 0"):
        mtbridge.rolling(frame.to_numpy(), 5, engine="numpy").row(4)
    with pytest.raises(InputError, match="no column of an array"):
        mtbridge.rolling(frame.to_numpy(), 5, engine="numpy").row("EURUSD")
    with pytest.raises(InputError, match="more than one column"):
        mtbridge.rolling(frame.set_axis(list("AABC"), axis=1), 5, engine="numpy").row("A")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "one for each of the 4 columns"),
        ([1.0, 2.0, np.nan, 0.0], "NaN or inf"),
        (["a", "b", "c", "d"], "not numbers"),
        (pd.Series({"EURUSD": 1.0}), "only in one of them"),
        (np.ones((3, 4)), "40 windows"),
    ],
    ids=["few", "nan", "text", "labels", "rows"],
)
def test_weights_of_a_portfolio_that_do_not_fit_are_refused(
    frame: pd.DataFrame, weights: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        mtbridge.rolling(frame, 5, engine="numpy").portfolio_variance(weights)


def test_text_and_complex_numbers_are_refused(frame: pd.DataFrame) -> None:
    for bad in (["1"] * 40, np.ones(40) * 1j):
        with pytest.raises(InputError, match="'note'"):
            mtbridge.rolling(frame.assign(note=bad), 5)
    with pytest.raises(InputError, match="complex"):
        mtbridge.ewm(frame.to_numpy() * 1j, span=5)


def test_bad_ddof_dtype_and_statistic_are_refused(frame: pd.DataFrame) -> None:
    windows = mtbridge.rolling(frame, 5, engine="numpy")
    decaying = mtbridge.ewm(frame, span=5, engine="numpy")
    for method, options in (
        (windows.covariance, {"ddof": -1}),
        (windows.correlation, {"dtype": "float16"}),
        (windows.blocks, {"statistic": "variance"}),
        (windows.blocks, {"size": 0}),
        (windows.top_pairs, {"k": 0}),
        (windows.top_pairs, {"k": 7}),
        (decaying.row, {"symbol": "US30", "statistic": "covariance", "ddof": 2}),
    ):
        with pytest.raises(OptionError):
            method(**options)


@pytest.mark.parametrize("level", [1e25, 1e308])
def test_a_covariance_past_the_range_of_float32_is_refused_not_infinite(level: float) -> None:
    X = level * np.random.default_rng(0).uniform(-1, 1, (40, 3))
    for windows in (mtbridge.rolling(X, 10), mtbridge.expanding(X), mtbridge.ewm(X, span=5)):
        for last in (False, True):
            with pytest.raises(InputError, match="past the range of float32"):
                windows.covariance(dtype="float32", last=last)
        assert np.isfinite(windows.correlation(dtype="float32")[-1]).all()
