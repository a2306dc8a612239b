"""Bars from a terminal, by a stand-in that has the package's dtypes, conventions and error codes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtbridge.errors import InputError, OptionError
from mtbridge.history import download, open_terminal

RATES = np.dtype(
    [
        ("time", "<i8"),
        ("open", "<f8"),
        ("high", "<f8"),
        ("low", "<f8"),
        ("close", "<f8"),
        ("tick_volume", "<u8"),
        ("spread", "<i4"),
        ("real_volume", "<u8"),
    ]
)
H1 = 16385


def bars(first: str, count: int, close: float = 1.0, hours: int = 1) -> np.ndarray:
    """Return bars as the package does: packed records of 60 bytes, oldest first, server clock as seconds."""
    rates = np.zeros(count, dtype=RATES)
    rates["time"] = np.datetime64(first, "s").astype(np.int64) + 3600 * hours * np.arange(count)
    rates["close"] = close + np.arange(count)
    rates["open"] = rates["close"] - 0.5
    rates["high"], rates["low"] = rates["close"] + 1, rates["close"] - 1
    rates["tick_volume"] = 2**63 + 5
    return rates


@dataclass
class Terminal:
    """Holds bars, hands out at first only as many as `loading` says, and fails with `error` if any."""

    history: dict[str, np.ndarray]
    loading: list[int | None] = field(default_factory=list)
    error: tuple[int, str] = (1, "Success")
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    selected: set[str] = field(default_factory=set)

    def symbol_select(self, symbol: str, enable: bool = True, /) -> bool:
        if symbol not in self.history:
            return False
        self.selected.add(symbol)
        return True

    def symbols_get(self) -> tuple[SimpleNamespace, ...]:
        return tuple(SimpleNamespace(name=name) for name in self.history)

    def last_error(self) -> tuple[int, str]:
        return self.error

    def copy_rates_range(
        self, symbol: str, timeframe: int, date_from: Any, date_to: Any, /
    ) -> np.ndarray | None:
        self.calls.append((symbol, timeframe, date_from, date_to))
        assert symbol in self.selected, "the package gives no bars of a symbol outside the Market Watch"
        if type(timeframe) is not int or type(date_from) is not int or type(date_to) is not int:
            self.error = (-2, "Invalid arguments")
            return None
        count = self.loading.pop(0) if self.loading else len(self.history[symbol])
        if count is None:
            return None
        if self.error[0] < 0:
            return None
        rates = self.history[symbol]
        rates = rates[(rates["time"] >= date_from) & (rates["time"] <= date_to)]
        return rates[len(rates) - min(count, len(rates)) :]


def get(terminal: Any, symbols: list[str] | None = None, **options: Any) -> pd.DataFrame:
    values = {"start": "2025-03-03", "end": "2025-03-31", "patience": 0.2, "pause": 0.01, **options}
    start, end = values.pop("start"), values.pop("end")
    return download(
        symbols or ["EURUSD"], values.pop("timeframe", "H1"), start, end, terminal=terminal, **values
    )


def test_the_stand_ins_rows_are_the_packages() -> None:
    assert RATES.itemsize == 60
    assert [RATES.fields[name][1] for name in RATES.names] == [0, 8, 16, 24, 32, 40, 48, 52]
    assert not bars("2025-03-03", 3)["close"].flags.aligned


def test_closes_of_several_symbols_are_joined_on_time() -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3), "#US30m": bars("2025-03-03T01", 3, close=100)})
    frame = get(terminal, ["#US30m", "EURUSD"])
    expected = pd.DataFrame(
        {"#US30m": [np.nan, 100, 101, 102], "EURUSD": [1, 2, 3, np.nan]},
        index=pd.date_range("2025-03-03", periods=4, freq="h", name="time", unit="ns"),
    )
    pd.testing.assert_frame_equal(frame, expected, check_freq=False)
    assert all(frame[name].to_numpy().flags.aligned for name in frame)


def test_bounds_travel_as_seconds_on_the_servers_clock_and_a_day_counts_whole() -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)})
    get(terminal, start="2025-03-03", end="2025-03-03")
    midnight = int(datetime(2025, 3, 3, tzinfo=UTC).timestamp())
    assert terminal.calls[0] == ("EURUSD", H1, midnight, midnight + 86399)


@pytest.mark.parametrize(
    "end",
    [
        "2025-03-04 00:00",
        datetime(2025, 3, 4),
        datetime(2025, 3, 4, tzinfo=UTC),
        datetime(2025, 3, 4, 2, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2025-03-04T00:00"),
        pd.Timestamp("2025-03-04"),
    ],
)
def test_every_type_of_time_means_the_same_bound(end: Any) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 48)})
    assert len(get(terminal, end=end)) == 25


def test_a_date_and_a_day_of_numpy_count_whole() -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 72)})
    assert (
        len(get(terminal, end=date(2025, 3, 4))) == len(get(terminal, end=np.datetime64("2025-03-04"))) == 48
    )


def test_the_zone_of_this_computer_does_not_shift_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    if not hasattr(time, "tzset"):
        pytest.skip("the zone of a process cannot be set on this system")
    terminal = Terminal({"EURUSD": bars("2025-03-03", 48)})
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        frame = get(terminal, start=datetime(2025, 3, 3, 12))
    time.tzset()
    assert frame.index[0] == pd.Timestamp("2025-03-03 12:00")


def test_a_bound_with_a_zone_is_said_to_be_taken_for_the_servers_clock() -> None:
    said: list[str] = []
    get(Terminal({"EURUSD": bars("2025-03-03", 3)}), start="2025-03-03T02:00+02:00", say=said.append)
    assert "2025-03-03 00:00:00 on the server's clock" in said[0]


@pytest.mark.parametrize("loading", [[None], [0, None, 0], [2, 7], [1, 3]])
def test_history_that_is_still_loading_is_asked_for_again(loading: list[int | None]) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 40)}, loading=list(loading))
    # a range that begins long before the first bar, so that only a second equal answer ends the wait
    assert len(get(terminal, start="2024-01-01")) == 40
    assert len(terminal.calls) == len(loading) + 2


def test_a_whole_answer_is_taken_at_once() -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 40)})
    get(terminal)
    assert len(terminal.calls) == 1


def test_fewer_bars_than_asked_for_are_said() -> None:
    said: list[str] = []
    get(Terminal({"EURUSD": bars("2025-03-03", 3086)}), start="2020-01-01", end="2026-01-01", say=said.append)
    assert "EURUSD: 3,086 bars from 2025-03-03 00:00:00 to 2025-07-09 13:00:00" in said[0]
    assert "Max bars in chart" in said[0]


def test_what_came_is_said_of_every_symbol() -> None:
    said: list[str] = []
    get(Terminal({"A": bars("2025-03-03", 2), "B": bars("2025-03-03", 3)}), ["A", "B"], say=said.append)
    assert said == [
        "A: 2 bars from 2025-03-03 00:00:00 to 2025-03-03 01:00:00.",
        "B: 3 bars from 2025-03-03 00:00:00 to 2025-03-03 02:00:00.",
    ]


@pytest.mark.parametrize(
    ("code", "text", "mend"),
    [
        (-2, "Invalid arguments", "check symbol, timeframe and dates"),
        (-6, "Authorization failed", "log in"),
        (-10003, "IPC initialize failed", "install MetaTrader 5"),
        (-10004, "No IPC connection", "open MetaTrader 5"),
    ],
)
def test_an_error_that_waiting_cannot_mend_is_raised_at_once_with_what_to_do(
    code: int, text: str, mend: str
) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)}, error=(code, text))
    with pytest.raises(InputError) as refused:
        get(terminal, patience=60)
    assert f"error {code} ({text})" in str(refused.value)
    assert mend in str(refused.value)
    assert len(terminal.calls) == 1


@pytest.mark.parametrize(
    ("code", "text", "mend"),
    [
        (-1, "Generic fail", "open the symbol's chart"),
        (-4, "Not found", "check the symbol"),
        (-10005, "IPC timeout", "close any dialog"),
        (-10002, "IPC recv failed", "try again"),
    ],
)
def test_an_error_that_loading_may_cause_is_raised_after_bounded_tries(
    code: int, text: str, mend: str
) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)}, error=(code, text))
    with pytest.raises(InputError) as refused:
        get(terminal)
    assert f"error {code} ({text})" in str(refused.value)
    assert mend in str(refused.value)
    assert 2 <= len(terminal.calls) <= 21


def test_none_with_the_code_of_success_is_no_success() -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)}, loading=[None] * 1000)
    with pytest.raises(InputError, match=r"No bars of EURUSD came: error 1"):
        get(terminal)


def test_no_bars_at_all_are_an_error_with_the_range() -> None:
    with pytest.raises(InputError, match=r"no bars of EURUSD from 2030-01-01 00:00:00 to 2030-02-01"):
        get(Terminal({"EURUSD": bars("2025-03-03", 3)}), start="2030-01-01", end="2030-02-01")


def test_an_unknown_symbol_is_an_error_with_those_near_it() -> None:
    terminal = Terminal({"EURUSDm": bars("2025-03-03", 3), "XAUUSDm": bars("2025-03-03", 3)})
    with pytest.raises(InputError, match=r"no symbol 'eurusd'.*near it are EURUSDm"):
        get(terminal, ["eurusd"])


def test_an_object_with_copy_rates_range_alone_is_a_terminal() -> None:
    class Bare:
        def copy_rates_range(self, *arguments: Any) -> np.ndarray:
            return bars("2025-03-03", 2)

    assert len(get(Bare())) == 2


def test_bars_that_are_no_records_are_an_error() -> None:
    class Wrong:
        def copy_rates_range(self, *arguments: Any) -> np.ndarray:
            return np.zeros(3, dtype=[("time", "<i8"), ("bid", "<f8")])

    with pytest.raises(InputError, match="'close'"):
        get(Wrong())


def test_a_bar_that_two_chunks_share_is_there_once_and_rows_are_sorted() -> None:
    chunks = np.concatenate([bars("2025-03-03T02", 3), bars("2025-03-03", 3)])
    frame = get(Terminal({"EURUSD": chunks}))
    assert frame.index.is_monotonic_increasing
    assert frame["EURUSD"].tolist() == [1, 2, 3, 2, 3]


@pytest.mark.parametrize(
    ("timeframe", "number"), [("H1", 16385), ("d1", 16408), ("W1", 32769), ("MN1", 49153), (30, 30)]
)
def test_timeframes_have_the_packages_numbers(timeframe: str | int, number: int) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)})
    get(terminal, timeframe=timeframe)
    assert terminal.calls[0][1] == number


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeframe": "H7"},
        {"timeframe": 60},
        {"price": "mid"},
        {"start": "soon"},
        {"end": "2025-01-01"},
        {"symbols": ["A", "A"]},
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3), "A": bars("2025-03-03", 3)})
    with pytest.raises(OptionError):
        get(terminal, **wrong)


def test_another_price_of_the_bars_can_be_taken() -> None:
    assert get(Terminal({"EURUSD": bars("2025-03-03", 1)}), price="open").iloc[0, 0] == 0.5


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A computer that says it is Windows and has the package."""
    package = ModuleType("MetaTrader5")
    terminal = Terminal({"EURUSD": bars("2025-03-03", 3)})
    package.opened, package.closed = [], []  # type: ignore[attr-defined]
    package.initialize = lambda *where, **options: not package.opened.append((where, options))  # type: ignore[attr-defined]
    package.shutdown = lambda: package.closed.append(True)  # type: ignore[attr-defined]
    for name in ("copy_rates_range", "symbol_select", "symbols_get", "last_error"):
        setattr(package, name, getattr(terminal, name))
    monkeypatch.setattr("platform.system", lambda: "Windows")
    monkeypatch.setitem(sys.modules, "MetaTrader5", package)
    return package


def test_on_windows_the_package_is_opened_used_and_closed(windows: Any) -> None:
    with open_terminal(timeout=5) as terminal:
        assert len(get(terminal)) == 3
        assert not windows.closed
    assert windows.opened == [((), {"timeout": 5000})]
    assert windows.closed


def test_the_terminal_is_closed_after_an_error_too(windows: Any) -> None:
    with pytest.raises(InputError), open_terminal(r"C:\MT5\terminal64.exe") as terminal:
        get(terminal, ["GBPUSD"])
    assert windows.opened[0][0] == (r"C:\MT5\terminal64.exe",)
    assert windows.closed


def test_a_terminal_that_does_not_open_is_an_error_with_its_code(windows: Any) -> None:
    windows.initialize = lambda *where, **options: False
    windows.last_error = lambda: (-10003, "IPC initialize failed, MetaTrader 5 x64 not found")
    with (
        pytest.raises(InputError, match=r"cannot be opened: error -10003 .*install MetaTrader 5"),
        open_terminal(),
    ):
        pass


def test_windows_without_the_package_is_told_what_to_install(
    windows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "MetaTrader5", None)
    with pytest.raises(InputError, match=r"pip install 'mtbridge\[mt5\]'"), open_terminal():
        pass


def test_elsewhere_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(InputError, match=r"Windows.*mt5linux.*export the bars"), open_terminal():
        pass
