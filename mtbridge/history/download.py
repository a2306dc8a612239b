"""Bars from a MetaTrader 5 terminal by the MetaTrader5 package, or by anything that speaks as it does.

The package runs on Windows, beside the terminal. Elsewhere an object with the same `copy_rates_range` will
do: mt5linux's, which forwards to a Windows Python under Wine, or a stand-in.

What had to be known about the package:

- `copy_rates_range` returns None on failure and `last_error` then tells why; None is never "no bars".
- A terminal loads history when it is asked for it: a first call may return nothing, or too little, and a
  later one everything.
- A bar's time is the server's wall clock counted as if it were UTC, and so are the bounds of a query,
  whatever the documentation says. A datetime without a zone would be shifted by the zone of this computer; so
  bounds travel as whole seconds since 1970 and never as datetimes.
- Rows are 60 bytes, packed: a column of them is strided and unaligned, and is copied before use.
"""

from __future__ import annotations

import difflib
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, Protocol

import numpy as np
import pandas as pd

from mtbridge.errors import InputError, OptionError
from mtbridge.history.clock import parse_moment
from mtbridge.history.prices import PRICES

TIMEFRAMES = {
    **{f"M{minutes}": minutes for minutes in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)},
    **{f"H{hours}": 0x4000 | hours for hours in (1, 2, 3, 4, 6, 8, 12)},
    "D1": 0x4000 | 24,
    "W1": 0x8000 | 1,
    "MN1": 0xC000 | 1,
}
"""The package's numbers of the timeframes."""

_MENDS = {
    -2: "the terminal does not accept these arguments; check symbol, timeframe and dates",
    -4: "the terminal has no such history; check the symbol's letters and open its chart once",
    -5: "the package and the terminal do not fit each other; update both",
    -6: "the terminal is not authorised; log in to an account in it",
    -7: "the terminal does not support this call; update it",
    -8: "algorithmic trading is off in the terminal; switch it on in its toolbar",
    -10003: "the terminal cannot be started; install MetaTrader 5 or give the path of its terminal64.exe",
    -10004: "there is no connection to a terminal; open MetaTrader 5 on this computer and log in",
    -10005: "the terminal did not answer in time; close any dialog that it shows and try again",
}
# waiting does not help against these; all others may come from history that is still being loaded
_FINAL = {-2, -3, -5, -6, -7, -8, -10003, -10004}
# a range may begin on a weekend with a holiday beside it
_CALM = pd.Timedelta(days=5)


class Terminal(Protocol):
    """What a terminal must have; `symbol_select`, `symbols_get` and `last_error` are used where there."""

    def copy_rates_range(self, symbol: str, timeframe: int, date_from: int, date_to: int, /) -> Any:
        """Return bars that open from `date_from` to `date_to`, as a structured array, or None on failure."""


def download(
    symbols: Sequence[str],
    timeframe: str | int,
    start: str | date | datetime | np.datetime64,
    end: str | date | datetime | np.datetime64,
    *,
    terminal: Terminal,
    price: str = "close",
    say: Callable[[str], object] = lambda sentence: None,
    patience: float = 30.0,
    pause: float = 0.5,
) -> pd.DataFrame:
    """Return one price of each bar of `symbols` from a terminal, joined on time.

    Parameters
    ----------
    symbols : names as the broker writes them
    timeframe : "M1" to "MN1", or the package's number
    start, end : the first and the last time at which a bar may open, both included; a bare day as `end`
        counts whole. On the server's clock. One with a zone is turned into UTC and its digits are then taken
        for the server's, as the package itself does, so that bars may be some hours off what was meant;
        `say` is told.
    terminal : the initialised MetaTrader5 module, an mt5linux object, or a stand-in
    price : "open", "high", "low" or "close"
    say : receives sentences about what came: bars and range of each symbol, and where less came than was
        asked for
    patience : seconds to wait, for one symbol, for history that the terminal is still loading
    pause : seconds between two calls while it does

    Returns
    -------
    float64 frame of shape (times, symbols); naive DatetimeIndex "time" on the server's clock; NaN where a
    symbol has no bar.

    Raises
    ------
    InputError
        If a symbol is unknown, or the terminal fails or has no bars; the message has its error and what to
        do.
    OptionError
        If an argument is not allowed.
    """
    if price not in PRICES:
        raise OptionError(f"price {price!r} is not one of {', '.join(PRICES)}.")
    if not symbols:
        raise OptionError("No symbol was chosen; name at least one.")
    frame_number = _timeframe(timeframe)
    first, last = _server_clock(start, say), _server_clock(end, say, end=True)
    if first > last:
        raise OptionError(f"The range ends before it starts: {first} to {last}; swap the two.")
    columns = {}
    for symbol in symbols:
        if symbol in columns:
            raise OptionError(f"The symbol {symbol!r} is chosen twice; name it once.")
        _select(terminal, symbol)
        rates = _rates(terminal, symbol, frame_number, first, last, patience=patience, pause=pause)
        columns[symbol] = _series(symbol, rates, price)
        say(_what_came(symbol, columns[symbol].index, first))
    # an outer join; the union of indexes sorts
    return pd.DataFrame(columns).rename_axis(index="time")


@contextmanager
def open_terminal(path: str | None = None, *, timeout: float = 60.0) -> Iterator[Terminal]:
    """Yield the MetaTrader5 package connected to a terminal of this Windows computer; disconnect at the end.

    Parameters
    ----------
    path : the terminal64.exe to use; by default the package finds one
    timeout : seconds to wait for the terminal

    Raises
    ------
    InputError
        If this is not Windows, the package is missing, or the terminal cannot be reached; the message says
        what to do.
    """
    if platform.system() != "Windows":
        raise InputError(
            f"The MetaTrader5 package runs on Windows only and this is {platform.system()}; run this beside "
            "the terminal on Windows, or give mtbridge.history.download an mt5linux object, or export the "
            "bars to files from the terminal."
        )
    try:
        import MetaTrader5
    except ImportError as error:
        raise InputError(
            "The MetaTrader5 package is not installed; run: pip install 'mtbridge[mt5]'."
        ) from error
    where = () if path is None else (path,)
    try:
        if not MetaTrader5.initialize(*where, timeout=int(timeout * 1000)):
            raise _failure(MetaTrader5, "The terminal cannot be opened")
        yield MetaTrader5
    finally:
        MetaTrader5.shutdown()


def _timeframe(timeframe: str | int) -> int:
    number = TIMEFRAMES.get(timeframe.upper()) if isinstance(timeframe, str) else int(timeframe)
    if number is None or number not in TIMEFRAMES.values():
        raise OptionError(f"timeframe {timeframe!r} is not one of {', '.join(TIMEFRAMES)}.")
    return number


def _server_clock(
    moment: str | date | datetime | np.datetime64, say: Callable[[str], object], *, end: bool = False
) -> pd.Timestamp:
    stamp = parse_moment(moment, end=end)
    if stamp.tzinfo is None:
        return stamp
    stamp = stamp.tz_localize(None)
    say(
        f"{moment} has a zone: it is taken as {stamp} on the server's clock, which may be some hours from "
        "UTC."
    )
    return stamp


def _select(terminal: Any, symbol: str) -> None:
    """Put `symbol` in the Market Watch, without which a terminal gives no bars of it."""
    select = getattr(terminal, "symbol_select", None)
    if select is None or select(symbol, True):
        return
    code, _ = _last_error(terminal)
    if code in _FINAL - {-2}:
        raise _failure(terminal, f"{symbol!r} cannot be selected")
    offered = [str(item.name) for item in (getattr(terminal, "symbols_get", tuple)() or ())]
    folded = {name.casefold(): name for name in offered}
    near = difflib.get_close_matches(symbol.casefold(), folded, n=5)
    hint = (
        f"near it are {', '.join(folded[name] for name in near)}"
        if near
        else "see Market Watch for its names"
    )
    raise InputError(
        f"The terminal has no symbol {symbol!r}: names are case-sensitive and brokers add to them; {hint}."
    )


def _rates(
    terminal: Any,
    symbol: str,
    timeframe: int,
    first: pd.Timestamp,
    last: pd.Timestamp,
    *,
    patience: float,
    pause: float,
) -> Any:
    """Return the bars, asking again while the terminal loads history, until they no longer grow."""
    since, until = _seconds(first), _seconds(last)
    give_up = time.monotonic() + patience
    seen = 0
    while True:
        rates = terminal.copy_rates_range(symbol, timeframe, since, until)
        if rates is None and _last_error(terminal)[0] in _FINAL:
            raise _failure(terminal, f"No bars of {symbol} came")
        count = 0 if rates is None else len(rates)
        # done when the oldest bar is where it was asked for, or another call brought no more
        if count and (count == seen or int(rates["time"][0]) <= since + _CALM.total_seconds()):
            return rates
        seen = max(seen, count)
        if time.monotonic() + pause > give_up:
            break
        time.sleep(pause)
    if count:
        return rates
    if rates is None:
        raise _failure(terminal, f"No bars of {symbol} came")
    raise InputError(
        f"The terminal has no bars of {symbol} from {first} to {last}; choose other dates, or open its chart "
        "once and scroll back so that the history is loaded."
    )


def _series(symbol: str, rates: Any, price: str) -> pd.Series[float]:
    names = getattr(getattr(rates, "dtype", None), "names", None) or ()
    if not {"time", price} <= set(names):
        raise InputError(
            f"The terminal's bars of {symbol} have no fields 'time' and {price!r} but {type(rates).__name__}."
        )
    # both are copies: views of packed records are unaligned
    seconds = np.array(rates["time"], dtype=np.int64)
    values = np.array(rates[price], dtype=np.float64)
    index = pd.DatetimeIndex(seconds.astype("datetime64[s]").astype("datetime64[ns]"))
    series = pd.Series(values, index=index).sort_index(kind="stable")
    # chunks that a terminal joins may share a bar; the later copy of it is the finished one
    return series[~series.index.duplicated(keep="last")]


def _what_came(symbol: str, times: pd.Index, first: pd.Timestamp) -> str:
    sentence = f"{symbol}: {len(times):,} bars from {times[0]} to {times[-1]}"
    if times[0] > first + _CALM:
        return (
            f"{sentence}, though {first} was asked for: the terminal has no older ones; raise 'Max bars in "
            "chart' in its options, or the broker keeps no more."
        )
    return f"{sentence}."


def _seconds(moment: pd.Timestamp) -> int:
    # by the stored number, which knows no zone of this computer
    return int(moment.as_unit("ns").value) // 10**9


def _last_error(terminal: Any) -> tuple[int, str]:
    last_error = getattr(terminal, "last_error", None)
    if last_error is None:
        return -1, "no reason given"
    code, text = last_error()
    return int(code), str(text)


def _failure(terminal: Any, what: str) -> InputError:
    code, text = _last_error(terminal)
    mend = _MENDS.get(
        code, "open the symbol's chart in the terminal so that it loads the history, and try again"
    )
    return InputError(f"{what}: error {code} ({text}); {mend}.")
