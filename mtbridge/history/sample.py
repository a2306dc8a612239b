"""A made-up price panel that behaves like a broker's: for a first run, for tests, for the documentation.

Log returns come from a few factors (the dollar, risk appetite, metals, oil, crypto) and noise of each
symbol's own, all with Student's fat tails; one slow volatility, higher while London and New York are open, is
common to all. Prices are rounded to the symbol's tick. Gaps are those of real exports: single bars that are
missing, symbols that the broker listed late, and holidays of stock exchanges. Column i of a seed is the same
however many columns are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mtbridge.errors import OptionError
from mtbridge.history.write import check_suffix, write_prices

_FACTORS = ("dollar", "risk", "metal", "oil", "crypto")
_START = "2024-01-08"
_FREEDOM = 4.0
_MEMORY = 0.98


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A symbol's first price, decimals, hourly volatility, and the signed weight of each factor in it."""

    name: str
    price: float
    decimals: int
    volatility: float
    loads: tuple[float, float, float, float, float]
    keeps_holidays: bool = False


_SYMBOLS = (
    _Symbol("EURUSD", 1.10, 5, 0.0010, (-0.85, 0.10, 0.00, 0.00, 0.00)),
    _Symbol("GBPUSD", 1.27, 5, 0.0011, (-0.75, 0.25, 0.00, 0.00, 0.00)),
    _Symbol("USDJPY", 148.0, 3, 0.0012, (0.60, 0.30, 0.00, 0.00, 0.00)),
    _Symbol("XAUUSD", 2400.0, 2, 0.0020, (-0.40, -0.05, 0.75, 0.00, 0.00), keeps_holidays=True),
    _Symbol("AUDUSD", 0.66, 5, 0.0013, (-0.65, 0.45, 0.15, 0.05, 0.00)),
    _Symbol("USDCAD", 1.35, 5, 0.0009, (0.65, -0.30, 0.00, -0.30, 0.00)),
    _Symbol("USDCHF", 0.88, 5, 0.0010, (0.80, 0.10, -0.05, 0.00, 0.00)),
    _Symbol("NZDUSD", 0.61, 5, 0.0013, (-0.65, 0.42, 0.10, 0.00, 0.00)),
    _Symbol("EURGBP", 0.86, 5, 0.0008, (-0.15, -0.20, 0.00, 0.00, 0.00)),
    _Symbol("EURJPY", 163.0, 3, 0.0012, (-0.10, 0.40, 0.00, 0.00, 0.00)),
    _Symbol("GBPJPY", 188.0, 3, 0.0013, (-0.08, 0.50, 0.00, 0.00, 0.00)),
    _Symbol("AUDJPY", 97.5, 3, 0.0014, (-0.10, 0.62, 0.10, 0.05, 0.00)),
    _Symbol("XAGUSD", 28.0, 3, 0.0038, (-0.35, 0.10, 0.78, 0.00, 0.00), keeps_holidays=True),
    _Symbol("US500", 4750.0, 2, 0.0022, (-0.10, 0.85, 0.00, 0.05, 0.05), keeps_holidays=True),
    _Symbol("NAS100", 16800.0, 2, 0.0029, (-0.10, 0.82, 0.00, 0.00, 0.08), keeps_holidays=True),
    _Symbol("US30", 37500.0, 1, 0.0020, (-0.08, 0.80, 0.00, 0.06, 0.03), keeps_holidays=True),
    _Symbol("GER40", 16700.0, 1, 0.0022, (-0.15, 0.74, 0.00, 0.00, 0.03), keeps_holidays=True),
    _Symbol("BRENT", 78.0, 2, 0.0042, (-0.10, 0.25, 0.05, 0.75, 0.00), keeps_holidays=True),
    _Symbol("BTCUSD", 100000.0, 2, 0.0060, (-0.08, 0.30, 0.00, 0.00, 0.78)),
    _Symbol("ETHUSD", 3400.0, 2, 0.0075, (-0.08, 0.32, 0.00, 0.00, 0.75)),
)


def sample_panel(columns: int = 20, rows: int = 2000, seed: int = 7, *, gaps: bool = True) -> pd.DataFrame:
    """Return made-up hourly closes from Monday to Friday, the same to the last bit for the same arguments.

    Parameters
    ----------
    columns : symbols; after the twenty with names they are SYM021, SYM022 and so on
    rows : bars, at least 1
    seed : any whole number from 0 on
    gaps : whether bars are missing; most rows after the late listings stay complete however many columns
        there are

    Returns
    -------
    float64 frame of shape (rows, columns) with a naive DatetimeIndex called "time"; NaN where a bar is
    missing.

    Raises
    ------
    OptionError
        If `columns` or `rows` is below 1, or `seed` below 0.
    """
    for name, value, least in (("columns", columns, 1), ("rows", rows, 1), ("seed", seed, 0)):
        if value < least:
            raise OptionError(f"{name} is {value}; it must be at least {least}.")
    times = _trading_hours(rows)
    common = np.random.default_rng([seed, 0])
    volatility = _volatility(times, common)
    factors = _fat_tailed(common, (rows, len(_FACTORS)))
    outages = np.flatnonzero(common.random(rows) < 0.05)
    holidays = _holidays(times)
    values = np.empty((rows, columns), dtype=np.float64, order="F")
    names = []
    for column in range(columns):
        # a generator of its own keeps a symbol the same whichever others are there
        own = np.random.default_rng([seed, column + 1])
        symbol = _SYMBOLS[column] if column < len(_SYMBOLS) else _invented(column, own)
        names.append(symbol.name)
        values[:, column] = _closes(symbol, factors, volatility, own)
        if gaps:
            values[outages[own.random(len(outages)) < 0.04], column] = np.nan
            if symbol.keeps_holidays:
                values[holidays, column] = np.nan
            if column % 10 == 3:
                values[: rows // 10, column] = np.nan
    return pd.DataFrame(values, index=times, columns=names)


def write_sample(
    path: str | Path, *, columns: int = 20, rows: int = 2000, seed: int = 7, gaps: bool = True
) -> pd.DataFrame:
    """Write `sample_panel` to a wide .csv or .parquet, whole or not at all, and return it.

    Raises
    ------
    OptionError
        If an argument or the suffix is not allowed.
    InputError
        If the file cannot be written.
    """
    check_suffix(path)
    panel = sample_panel(columns, rows, seed, gaps=gaps)
    write_prices(panel, path)
    return panel


def _trading_hours(rows: int) -> pd.DatetimeIndex:
    hours = np.arange(rows)
    days = np.busday_offset(np.datetime64(_START, "D"), hours // 24)
    return pd.DatetimeIndex(
        days.astype("datetime64[ns]") + (hours % 24).astype("timedelta64[h]"), name="time"
    )


def _volatility(times: pd.DatetimeIndex, random: np.random.Generator) -> NDArray[np.float64]:
    """Return each bar's volatility relative to the usual: a slow wave, and the hours of the day."""
    kernel = _MEMORY ** np.arange(200)
    kernel /= np.sqrt(np.sum(kernel**2))
    wave = np.convolve(random.standard_normal(len(times) + len(kernel) - 1), kernel, mode="valid")
    hour = times.hour.to_numpy()
    daily = 0.6 + 0.5 * np.exp(-(((hour - 10) / 3.0) ** 2)) + 0.8 * np.exp(-(((hour - 16) / 2.5) ** 2))
    return np.asarray(daily * np.exp(0.4 * wave - 0.08), dtype=np.float64)


def _fat_tailed(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return Student's t of variance 1."""
    drawn = random.standard_t(_FREEDOM, shape)
    return np.asarray(drawn * np.sqrt((_FREEDOM - 2) / _FREEDOM), dtype=np.float64)


def _closes(
    symbol: _Symbol, factors: NDArray[np.float64], volatility: NDArray[np.float64], own: np.random.Generator
) -> NDArray[np.float64]:
    loads = np.array(symbol.loads)
    noise = np.sqrt(1.0 - np.sum(loads**2)) * _fat_tailed(own, (len(factors),))
    # a sum over five columns in a stated order: a BLAS product would depend on the machine
    shared = np.sum(factors * loads, axis=1)
    walk = np.cumsum(symbol.volatility * volatility * (shared + noise))
    closes = np.round(symbol.price * np.exp(walk), symbol.decimals)
    return np.asarray(np.maximum(closes, 10.0**-symbol.decimals), dtype=np.float64)


def _invented(column: int, own: np.random.Generator) -> _Symbol:
    """Return a symbol beyond the named ones, drawn from its own generator."""
    loads = own.normal(0.0, 1.0, len(_FACTORS)) * np.array([0.5, 1.0, 0.3, 0.3, 0.2])
    loads *= np.sqrt(own.uniform(0.2, 0.7) / np.sum(loads**2))
    price = float(np.round(10.0 ** own.uniform(0.0, 3.5), 2))
    first, second, third, fourth, fifth = map(float, loads)
    return _Symbol(
        f"SYM{column + 1:03d}",
        price,
        4,
        float(own.uniform(0.001, 0.004)),
        (first, second, third, fourth, fifth),
    )


def _holidays(times: pd.DatetimeIndex) -> NDArray[np.bool_]:
    """Return which bars stock exchanges are closed for: third Mondays of January and February."""
    monday = (times.day_of_week == 0) & (times.day >= 15) & (times.day <= 21)
    return np.asarray(monday & times.month.isin([1, 2]), dtype=bool)
