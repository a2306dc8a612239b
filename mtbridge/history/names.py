"""The symbol of a file that holds one symbol: MetaTrader writes it in the file's name and nowhere else.

Symbols are kept byte for byte (`EURUSDm`, `#US30`, `EURUSD.£` are what the broker calls them); only what
MetaTrader itself appends is taken off.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

# EURUSD_H1, EURUSD_M1_202503030000_202503032359, US30m_Daily_202401010000_202509080000
_MT5_NAME = re.compile(
    r"(?P<symbol>.+?)_(M1|M2|M3|M4|M5|M6|M10|M12|M15|M20|M30|H1|H2|H3|H4|H6|H8|H12|D1|W1|MN1?"
    r"|Daily|Weekly|Monthly)(_\d{8,14}){0,2}"
)
# EURUSD60: the period in minutes; the shortest symbol wins, so that EURUSD15 is EURUSD at 15 minutes, not
# EURUSD1 at 5; the digits of bars_h1 are no minutes
_MT4_NAME = re.compile(r"(?P<symbol>.+?)(?<![_ .-][A-Za-z])(?P<minutes>1|5|15|30|60|240|1440|10080|43200)")
_MONTHLY = 43200


def mt5_symbol(path: Path) -> str:
    """Return the symbol in the name of a file of MT5's 'Export bars': what stands before the timeframe."""
    match = _MT5_NAME.fullmatch(path.stem)
    return match["symbol"] if match else path.stem


def mt4_symbol(path: Path, times: pd.DatetimeIndex) -> tuple[str, tuple[str, ...]]:
    """Return the symbol in the name of an MT4 history file, and a note where the name is not plain.

    A number at the end is taken off when it is a period of MT4 and the file's bars are that far apart:
    `US30Cash60` is US30Cash, but `US30` with hourly bars stays US30.

    Parameters
    ----------
    times : the file's times, ascending
    """
    match = _MT4_NAME.fullmatch(path.stem)
    if match is None:
        return mt5_symbol(path), ()
    minutes = int(match["minutes"])
    gaps = (times[1:] - times[:-1]).unique()
    gaps = gaps[gaps > pd.Timedelta(0)]
    if gaps.empty:
        return match["symbol"], ()
    nearest = int(gaps.min() // pd.Timedelta(minutes=1))
    if nearest == minutes or (minutes == _MONTHLY and 28 * 1440 <= nearest <= 31 * 1440):
        return match["symbol"], ()
    note = (
        f"the name ends in {minutes} but the bars are {nearest:,} minutes apart, so the symbol is {path.stem}"
    )
    return path.stem, (note,)
