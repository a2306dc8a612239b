"""Bars a year from time stamps: what is inferred, that it is said, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.errors import InputError, OptionError

ALL_DAYS = pd.date_range("2025-01-05", periods=60, freq="D")
SIX_DAYS = ALL_DAYS[ALL_DAYS.day_of_week != 5]


def business_hours(days: int, hours: range) -> pd.DatetimeIndex:
    """Hourly stamps of a market that is open on weekdays."""
    dates = pd.bdate_range("2025-01-06", periods=days)
    return pd.DatetimeIndex([date + pd.Timedelta(hours=hour) for date in dates for hour in hours])


@pytest.mark.parametrize(
    ("index", "bars", "words"),
    [
        (pd.date_range("2025-01-01", periods=240, freq="h", tz="UTC"), 8760, "round the clock"),
        (pd.date_range("2025-01-01", periods=2000, freq="15min"), 35040, "15 minutes"),
        (pd.date_range("2025-01-01", periods=20_000, freq="min"), 525_600, "minute"),
        (pd.date_range("2025-01-01", periods=60, freq="4h"), 2190, "4 hours"),
        (pd.date_range("2025-01-01", periods=60, freq="D"), 365, "weekends too"),
        (pd.bdate_range("2025-01-01", periods=60), 252, "trading days"),
        (pd.date_range("2025-01-03", periods=30, freq="W-FRI"), 52, "weekly"),
        (pd.date_range("2020-01-01", periods=30, freq="MS"), 12, "monthly"),
        (pd.date_range("2020-01-01", periods=30, freq="BME"), 12, "monthly"),
        (pd.date_range("2000-01-01", periods=30, freq="QS"), 4, "quarterly"),
        (pd.date_range("1990-01-01", periods=30, freq="YS"), 1, "yearly"),
        (business_hours(20, range(24)), 6048, "24 a trading day"),
        (business_hours(20, range(14, 21)), 1764, "7 a trading day"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bars_a_year_are_told_from_the_stamps(index: pd.DatetimeIndex, bars: float, words: str) -> None:
    found, sentence = mtbridge.bars_per_year(index)
    assert found == bars
    assert words in sentence
    assert f"{bars:,g}"[:3] in sentence


def test_a_week_that_opens_on_sunday_evening_is_no_round_the_clock_market() -> None:
    """FX in UTC: Sunday 22:00 to Friday 22:00, most dates with 24 bars."""
    index = pd.date_range("2025-01-05 22:00", "2025-02-28 21:00", freq="h")
    hours = index.day_of_week * 24 + index.hour
    index = index[~((hours >= 4 * 24 + 22) & (hours < 6 * 24 + 22))]
    assert mtbridge.bars_per_year(index)[0] == 252 * 24


def test_holidays_and_single_gaps_change_nothing() -> None:
    crypto = pd.date_range("2025-01-01", periods=500, freq="h").delete([100, 101, 333])
    assert mtbridge.bars_per_year(crypto)[0] == 8760
    daily = pd.bdate_range("2025-01-01", periods=120).delete([40, 41, 77])
    assert mtbridge.bars_per_year(daily)[0] == 252


def test_a_zone_with_summer_time_keeps_its_days() -> None:
    index = pd.date_range("2025-03-01", periods=60, freq="D", tz="America/New_York")
    assert mtbridge.bars_per_year(index)[0] == 365
    assert mtbridge.bars_per_year(index[index.day_of_week < 5])[0] == 252


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (pd.RangeIndex(100), "without time stamps"),
        (None, "without time stamps"),
        (pd.date_range("2025-01-01", periods=19, freq="h"), "19 time stamps are too few"),
        (pd.date_range("2025-01-06", periods=60, freq="h"), "no weekend"),
        (pd.date_range("2025-01-06", periods=100, freq="h")[::-1], "do not rise"),
        (pd.DatetimeIndex(["2025-01-06"] * 30), "do not rise"),
        (pd.date_range("2025-01-06", periods=60, freq="3D"), "irregular"),
        (
            pd.Timestamp("2025-01-06")
            + pd.to_timedelta(np.cumsum(np.random.default_rng(0).exponential(3600, 500)), "s"),
            "irregular",
        ),
        (
            pd.date_range("2025-01-05", periods=60, freq="D")[[n for n in range(60) if n % 7 != 6]],
            "but not both",
        ),
        (pd.DatetimeIndex([*pd.date_range("2025-01-06", periods=60, freq="h"), pd.NaT]), "missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_told_is_refused(index: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mtbridge.bars_per_year(index)


def test_a_covariance_a_year_says_on_stderr_what_was_inferred(capsys: pytest.CaptureFixture[str]) -> None:
    index = pd.date_range("2024-01-01", periods=240, freq="h", tz="UTC")
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((240, 2)), index, ["A", "B"])
    found = mtbridge.covariance(frame, annualise=True, engine="numpy")
    pd.testing.assert_frame_equal(found, frame.cov() * 8760, rtol=1e-12)
    assert "8,760 bars a year" in capsys.readouterr().err
    full = mtbridge.covariance(frame, annualise=True, engine="numpy", full=True)
    assert "8,760 bars a year" in full.notes[-1]
    assert capsys.readouterr().err == ""


def test_bars_a_year_may_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    found = mtbridge.covariance(X, annualise=252, engine="numpy")
    np.testing.assert_allclose(found, np.cov(X, rowvar=False) * 252, rtol=1e-12)
    narrow = mtbridge.covariance(X.astype(np.float32), annualise=252.0, engine="numpy")
    assert narrow.dtype == np.float32
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="without time stamps"):
        mtbridge.covariance(X, annualise=True, engine="numpy")


@pytest.mark.parametrize("bad", [0, -252, "252", float("nan"), float("inf"), "daily"])
def test_bars_a_year_that_are_no_number_above_0_are_refused(bad: object) -> None:
    with pytest.raises(OptionError, match="annualise is"):
        mtbridge.covariance([[1.0], [2.0]], annualise=bad, engine="numpy")  # type: ignore[call-overload]
