"""Symbols in the names of files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mtbridge.history.names import mt4_symbol, mt5_symbol


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("EURUSD_H1.csv", "EURUSD"),
        ("EURUSD_M1_202503030000_202503032359.csv", "EURUSD"),
        ("US30m_Daily_202401010000_202509080000.csv", "US30m"),
        ("US30m_H4_202401012000_202509082000.csv", "US30m"),
        ("EUR_USD_D1.csv", "EUR_USD"),
        ("#US30.cash_MN1.csv", "#US30.cash"),
        ("eurusd.ecn_H1.csv", "eurusd.ecn"),
        ("Золото_W1.csv", "Золото"),
        ("EURUSD.£_Weekly_20250303_20250310.csv", "EURUSD.£"),
        # not MetaTrader's, so nothing is taken off
        ("EURUSD.csv", "EURUSD"),
        ("EURUSD_H7.csv", "EURUSD_H7"),
        ("EURUSD_H1_copy.csv", "EURUSD_H1_copy"),
        ("_H1.csv", "_H1"),
    ],
)
def test_an_mt5_export_is_called_by_what_stands_before_its_timeframe(name: str, symbol: str) -> None:
    assert mt5_symbol(Path(name)) == symbol


def hours(minutes: int, count: int = 5) -> pd.DatetimeIndex:
    return pd.date_range("2025-03-03", periods=count, freq=f"{minutes}min")


@pytest.mark.parametrize(
    ("stem", "minutes", "symbol"),
    [
        ("EURUSD60", 60, "EURUSD"),
        ("EURUSD1", 1, "EURUSD"),
        ("EURUSD15", 15, "EURUSD"),
        ("US30Cash60", 60, "US30Cash"),
        ("US3060", 60, "US30"),
        ("NAS1005", 5, "NAS100"),
        ("EURUSD1440", 1440, "EURUSD"),
        ("EURUSD10080", 10080, "EURUSD"),
        ("EURUSDm240", 240, "EURUSDm"),
        ("EURUSD_H1", 60, "EURUSD"),
        ("EURUSD", 60, "EURUSD"),
        ("EURUSD7", 7, "EURUSD7"),
        ("some_bars_m1", 1, "some_bars_m1"),
    ],
)
def test_an_mt4_history_is_called_by_what_stands_before_its_minutes(
    stem: str, minutes: int, symbol: str
) -> None:
    assert mt4_symbol(Path(f"{stem}.csv"), hours(minutes)) == (symbol, ())


def test_months_are_43200_minutes_whatever_their_length() -> None:
    months = pd.DatetimeIndex(["2025-01-01", "2025-02-01", "2025-03-01"])
    assert mt4_symbol(Path("EURUSD43200.csv"), months)[0] == "EURUSD"


def test_digits_that_belong_to_the_symbol_stay_and_that_is_said() -> None:
    symbol, notes = mt4_symbol(Path("US30.csv"), hours(60))
    assert symbol == "US30"
    assert "60 minutes apart" in notes[0]


def test_one_bar_has_no_spacing_so_the_name_decides() -> None:
    assert mt4_symbol(Path("EURUSD60.csv"), hours(60, count=1)) == ("EURUSD", ())
