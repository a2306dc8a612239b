"""The made-up panel behaves like a broker's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtbridge.errors import OptionError
from mtbridge.history import complete_rows, read_prices, returns, sample_panel, write_sample

PROGRAM = "import sys; from mtbridge.history import write_sample as w; w(sys.argv[1], columns=25, rows=300)"


def test_the_same_arguments_give_the_same_bits_in_another_process(tmp_path: Path) -> None:
    write_sample(tmp_path / "here.csv", columns=25, rows=300)
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "there.csv")], check=True, cwd=root, timeout=100
    )
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def test_another_seed_gives_another_panel() -> None:
    assert not sample_panel(3, 50, 7).equals(sample_panel(3, 50, 8))


def test_a_symbol_is_the_same_whichever_others_are_there() -> None:
    pd.testing.assert_frame_equal(sample_panel(30, 300).iloc[:, :4], sample_panel(4, 300))


def test_bars_are_hourly_from_monday_to_friday() -> None:
    times = pd.DatetimeIndex(sample_panel(1, 500).index)
    assert times.name == "time"
    assert set(times.day_of_week) == {0, 1, 2, 3, 4}
    assert set(np.diff(times).astype("timedelta64[h]").astype(int)) == {1, 49}


def test_symbols_have_names_then_numbers() -> None:
    names = list(sample_panel(22, 2).columns)
    assert names[:2] == ["EURUSD", "GBPUSD"]
    assert names[20:] == ["SYM021", "SYM022"]
    assert len(set(names)) == 22


def test_prices_are_near_their_levels_and_on_their_ticks() -> None:
    panel = sample_panel(gaps=False)
    for name, level, decimals in (
        ("EURUSD", 1.1, 5),
        ("XAUUSD", 2400, 2),
        ("BTCUSD", 1e5, 2),
        ("USDJPY", 148, 3),
    ):
        prices = panel[name].to_numpy()
        assert 0.6 * level < prices.min() < prices.max() < 1.6 * level
        np.testing.assert_array_equal(prices, np.round(prices, decimals))


def test_log_returns_have_fat_tails_clusters_and_familiar_correlations() -> None:
    changes = returns(sample_panel(rows=4000, gaps=False))
    assert (changes.kurt() > 3).all()
    sizes = changes["EURUSD"].abs()
    # the daily pattern is in it too; independent draws would be within 3 / sqrt(4000) of zero
    assert sizes.autocorr(24) > 0.05
    matrix = changes.corr()
    assert matrix.loc["EURUSD", "USDCHF"] < -0.5
    assert matrix.loc["US500", "NAS100"] > 0.5
    assert abs(matrix.loc["EURGBP", "BTCUSD"]) < 0.3
    assert np.linalg.cond(matrix) < 200


def test_gaps_are_single_bars_late_listings_and_holidays() -> None:
    panel, whole = sample_panel(), sample_panel(gaps=False)
    assert not whole.isna().any(axis=None)
    there = panel.notna()
    pd.testing.assert_frame_equal(panel.where(there), whole.where(there))
    assert panel["XAUUSD"].first_valid_index() == panel.index[200]
    assert panel.loc["2024-01-15", "US30"].isna().all()
    assert panel.loc["2024-01-15", "EURUSD"].notna().any()
    assert 0 < panel["EURUSD"].isna().sum() < 20


def test_many_columns_still_leave_most_rows_complete() -> None:
    complete, _ = complete_rows(sample_panel(400, 1000))
    assert len(complete) > 750


@pytest.mark.parametrize("name", ["panel.csv", "panel.parquet"])
def test_a_written_sample_reads_back_number_for_number(tmp_path: Path, name: str) -> None:
    panel = write_sample(tmp_path / name, columns=8, rows=200, seed=1)
    pd.testing.assert_frame_equal(read_prices(tmp_path / name).frame, panel, check_freq=False)


def test_a_suffix_that_says_nothing_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"panel\.xlsx does not end in \.csv or \.parquet"):
        write_sample(tmp_path / "panel.xlsx", rows=10**9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"columns": 0}, {"rows": 0}, {"seed": -1}])
def test_sizes_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))}"):
        sample_panel(**wrong)


def test_the_smallest_panel_is_one_price() -> None:
    assert sample_panel(1, 1, 0).shape == (1, 1)
