"""Real price files, as people committed them, against a parse that was made by hand for each."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mtbridge.errors import PriceFileError
from mtbridge.history import prepare, read_prices, read_table

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
DATA = SHARED / "data"
SHAPES = SHARED / "cases" / "price-file-shapes"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the shared price files are not at {DATA}")
needs_shapes = pytest.mark.skipif(not SHAPES.is_dir(), reason=f"the shared file shapes are not at {SHAPES}")

# file, family, first symbol (= is the file's stem), rows, oldest time and close, newest time and close
FAMILIES = {"MT5": "MT5 bars", "MT4": "MT4 history", "CSV": "wide CSV", "Parquet": "wide Parquet"}
BARS = """
mt5_bars_h1_set_a/AUDUSD_H1.csv|MT5|AUDUSD|3608|2025-06-23 00:00|0.64233|2026-01-21 10:00|0.67517
mt5_bars_h1_set_a/EURGBP_H1.csv|MT5|EURGBP|3608|2025-06-23 00:00|0.85542|2026-01-21 10:00|0.87135
mt5_bars_h1_set_a/EURUSD_H1.csv|MT5|EURUSD|3608|2025-06-23 00:00|1.14721|2026-01-21 10:00|1.17099
mt5_bars_h1_set_a/GBPUSD_H1.csv|MT5|GBPUSD|3608|2025-06-23 00:00|1.34011|2026-01-21 10:00|1.34383
mt5_bars_h1_set_a/USDCAD_H1.csv|MT5|USDCAD|3608|2025-06-23 00:00|1.3742|2026-01-21 10:00|1.38363
mt5_bars_h1_set_a/USDCHF_H1.csv|MT5|USDCHF|3594|2025-06-23 00:00|0.81667|2026-01-20 20:00|0.78948
mt5_bars_h1_set_a/BRENT_H1.csv|MT5|BRENT|3200|2025-06-23 01:00|77.01|2026-01-21 10:00|63.21
mt5_bars_h1_set_a/SILVER_H1.csv|MT5|SILVER|3444|2025-06-23 01:00|36.062|2026-01-21 10:00|94.924
mt5_bars_h1_set_a/ADAUSD_H1.csv|MT5|ADAUSD|5090|2025-06-21 01:00|0.569|2026-01-21 10:00|0.3554
mt5_bars_h1_set_a/DOTUSD_H1.csv|MT5|DOTUSD|5090|2025-06-21 01:00|3.392|2026-01-21 10:00|1.924
mt4_history_h1_set_a/AUDCAD60.csv|MT4|AUDCAD|2048|2017-02-24 16:00|1.00418|2017-06-23 23:00|1.00406
mt4_history_h1_set_a/AUDCHF60.csv|MT4|AUDCHF|2048|2017-02-24 16:00|0.77197|2017-06-23 23:00|0.73339
mt4_history_h1_set_a/AUDJPY60.csv|MT4|AUDJPY|2048|2017-02-24 16:00|86.244|2017-06-23 23:00|84.217
mt4_history_h1_set_a/EURUSD60.csv|MT4|EURUSD|2451|2017-02-01 21:00|1.07755|2017-06-23 23:00|1.11923
mt4_history_h1_set_a/GBPCAD60.csv|MT4|GBPCAD|2048|2017-02-24 16:00|1.63736|2017-06-23 23:00|1.6874
mt4_history_h1_set_a/USDCAD60.csv|MT4|USDCAD|2048|2017-02-24 16:00|1.3089|2017-06-23 23:00|1.32681
mt4_history_h1_set_a/USDCHF60.csv|MT4|USDCHF|2048|2017-02-24 16:00|1.00629|2017-06-23 23:00|0.96922
mt4_history_h1_set_a/GER30Cash60.csv|MT4|GER30Cash|2048|2017-02-14 22:00|11792.7|2017-06-23 23:00|12723.8
mt4_history_h1_set_a/GOLD60.csv|MT4|GOLD|2320|2017-01-25 19:00|1197.62|2017-06-16 23:00|1253.3
mt4_history_h1_set_a/US30Cash60.csv|MT4|US30Cash|2435|2017-01-25 19:00|20061.9|2017-06-23 23:00|21384.7
mt5_bars_d1_notime_US30m_a.csv|MT5|=|527|2024-01-01|37776.3|2025-09-08|45616.3
mt5_bars_h4_US30m_a.csv|MT5|=|2662|2024-01-01 20:00|37776.3|2025-09-08 20:00|45612.3
mt5_bars_d1_plainheader_tab_AUDUSD_a.csv|MT5|=|2280|2015-01-02|0.80878|2023-10-12|0.64043
missing_values_d1_WTI_a.csv|CSV|dcoilwtico|6711|2000-01-04|25.56|2025-09-22|62.99
wide_panel_d1_NA_desc_ecb_eurofxref_a.csv|CSV|USD|999|2021-06-17|1.1937|2025-05-09|1.1252
parquet_wide_d1_etfs_a.parquet|Parquet|TLT|2516|2015-01-02|93.0014877319336|2024-12-31|82.05699920654297
""".strip().splitlines()


@needs_data
@pytest.mark.parametrize("line", BARS, ids=[line.partition("|")[0] for line in BARS])
def test_a_real_file_is_read_as_its_parse_by_hand(line: str) -> None:
    name, family, symbol, rows, first, first_close, last, last_close = line.split("|")
    table = read_table(DATA / name)
    symbol = Path(name).stem if symbol == "=" else symbol
    closes = table.frame[symbol].dropna()
    assert (table.family, table.symbols[0], len(table.frame)) == (FAMILIES[family], symbol, int(rows))
    assert (closes.index[0], closes.iloc[0]) == (pd.Timestamp(first), float(first_close))
    assert (closes.index[-1], closes.iloc[-1]) == (pd.Timestamp(last), float(last_close))
    assert (table.clock == "none (days)") == (" " not in first)


@needs_data
def test_a_wide_panel_keeps_its_gaps_and_its_symbols_without_a_price() -> None:
    table = read_table(DATA / "wide_panel_d1_gaps_stocks_a.csv")
    assert table.frame.shape == (4299, 20)
    assert int(table.frame.isna().sum().sum()) == 31347
    assert list(table.frame.columns[table.frame.isna().all()]) == ["FB", "BABA", "GM"]
    assert table.frame.loc["1989-12-29", ["AAPL", "GE"]].tolist() == [0.117203, 0.352438]
    assert table.frame.loc["2007-01-18", ["GOOG", "AAPL"]].tolist() == [242.338821, 8.613789]


@needs_data
def test_a_panel_without_a_complete_row_names_the_symbols_that_have_no_price() -> None:
    with pytest.raises(PriceFileError, match="FB has none; BABA has none; GM has none; GOOG 2004-08-19"):
        prepare(read_prices(DATA / "wide_panel_d1_gaps_stocks_a.csv"))


@needs_data
def test_reference_rates_newest_first_with_words_for_gaps_are_read() -> None:
    table = read_table(DATA / "wide_panel_d1_NA_desc_ecb_eurofxref_a.csv")
    assert table.frame.shape == (999, 41)
    assert int(table.frame.isna().sum().sum()) == 10406
    assert table.frame.loc["2025-05-09", ["USD", "JPY"]].tolist() == [1.1252, 163.36]
    assert any("newest first" in note for note in table.notes)


@needs_data
def test_a_negative_oil_price_has_no_log_return_and_a_difference() -> None:
    prices = read_prices(DATA / "missing_values_d1_WTI_a.csv")
    with pytest.raises(PriceFileError, match=r"dcoilwtico at 2020-04-20 00:00:00 is -36\.98"):
        prepare(prices)
    panel = prepare(prices, returns="difference")
    assert (panel.kept, panel.dropped) == (6451, 260)


@needs_data
def test_a_damaged_parquet_is_named() -> None:
    with pytest.raises(
        PriceFileError, match=r"parquet_damaged_d1_US500_a\.parquet is a damaged Parquet file"
    ):
        read_table(DATA / "parquet_damaged_d1_US500_a.parquet")


@needs_data
@pytest.mark.parametrize(
    ("folder", "union", "common", "pairs"),
    [
        (
            "mt5_bars_h1_set_a",
            5090,
            3189,
            {("ADAUSD", "AUDUSD"): 0.2587, ("AUDUSD", "USDCHF"): -0.4899, ("ADAUSD", "USDCHF"): -0.0392},
        ),
        (
            "mt4_history_h1_set_a",
            2568,
            1749,
            {("AUDCAD", "AUDCHF"): 0.5013, ("AUDCHF", "USDCHF"): 0.4480, ("AUDCAD", "USDCHF"): -0.0858},
        ),
    ],
)
@pytest.mark.parametrize("form", ["folder", "pattern", "files"])
def test_a_set_of_exports_gives_the_reference_correlations(
    folder: str, union: int, common: int, pairs: dict[tuple[str, str], float], form: str
) -> None:
    paths = {
        "folder": DATA / folder,
        "pattern": str(DATA / folder / "*.csv"),
        "files": sorted((DATA / folder).glob("*.csv"), reverse=True),
    }[form]
    prices = read_prices(paths)
    panel = prepare(prices)
    assert len(prices.frame) == union
    assert (panel.kept, panel.dropped) == (common, union - common)
    matrix = panel.frame.corr()
    for pair, expected in pairs.items():
        assert round(float(matrix.loc[pair]), 4) == expected


READABLE_SHAPES = {
    "mql5_utf16_bars_header.csv": ("MT5 bars", [1.03815, 1.03828]),
    "mt5_bars_m1.csv": ("MT5 bars", [1.03815, 1.03828]),
    "mt5_bars_d1_no_time.csv": ("MT5 bars", [1.0488, 1.062]),
    "mt4_history_center.csv": ("MT4 history", [1.03815, 1.03828, 1.03821]),
    "histdata_mt_m1.csv": ("MT4 history", [1.03815, 1.03828, 1.03821]),
    "wide_closes.csv": ("wide CSV", [1.0381, 1.0382]),
}
OTHER_DATA = (
    "alphavantage_m1_AMZN_a.csv",
    "binance_klines_ms_h1_BTCUSDT_a.csv",
    "binance_klines_us_h1_BTCUSDT_a.csv",
    "dmy_m1_EURUSD_a.csv",
    "dollar_sign_spaced_header_d1_MSFT_a.csv",
    "dukascopy_gmt_d1_EURUSD_a.csv",
    "dup_unsorted_idcol_w1_EURUSD_a.csv",
    "european_semicolon_decimalcomma_d1_EURUSD_a.csv",
    "feather_ohlc_d1_ADAUSDT_a.feather",
    "histdata_ascii_m1_EURUSD_a.csv",
    "investing_portuguese_decimalcomma_d1_USDBRL_a.csv",
    "long_panel_d1_stocks_a.csv",
    "mt4_hst401_h1_EURUSD_a.hst",
    "mt5_copyrates_datetime_h1_EURUSD_a.csv",
    "mt5_ticks_DI1F27_a.csv",
    "mt5_utf16_d1_noheader_BBDC4_a.csv",
    "mt5_utf16_d1_noheader_SPX500p_a.csv",
    "mt5_utf16_h1_noheader_WDOJ25_a.csv",
    "parquet_long_ohlc_d1_fx_a.parquet",
    "stooq_polish_d1_EURUSD_a.csv",
    "thousands_investing_d1_BTC_a.csv",
    "tradingview_epoch_d1_ETHUSDT_b.csv",
    "tradingview_epoch_d1_EURUSD_a.csv",
    "tz_offset_iso_h1_AAPL_a.csv",
    "xlsx_m1_desc_EURUSD_a.xlsx",
    "yahoo_csvgz_d1_NASDAQ_a.csv.gz",
    "yfinance_1header_d1_CHFUSD_a.csv",
    "yfinance_3header_d1_EURUSD_a.csv",
)


@needs_shapes
@pytest.mark.parametrize("name", READABLE_SHAPES)
def test_a_small_file_of_a_known_family_is_read(name: str) -> None:
    family, closes = READABLE_SHAPES[name]
    table = read_table(SHAPES / name)
    assert table.family == family
    assert table.frame.iloc[:, 0].tolist() == closes
    assert table.frame.index[0] == pd.Timestamp("2025-03-03")


@needs_shapes
def test_every_other_small_file_is_refused_with_what_it_looks_like() -> None:
    others = [path for path in sorted(SHAPES.iterdir()) if path.name not in READABLE_SHAPES]
    assert len(others) == 26
    for path in others:
        with pytest.raises(PriceFileError, match=r" looks like |has a header but no rows") as refused:
            read_table(path)
        assert str(refused.value).startswith(str(path))


@needs_data
@pytest.mark.parametrize("name", OTHER_DATA)
def test_a_real_file_of_another_family_is_refused_with_what_it_looks_like(name: str) -> None:
    with pytest.raises(PriceFileError, match=" looks like "):
        read_table(DATA / name)
