"""Many files to one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtbridge.errors import OptionError, PriceFileError
from mtbridge.history import find_files, read_prices


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fx.csv").write_text(
        "time,EURUSD,GBPUSD\n2025-03-03 10:00,1.1,1.3\n2025-03-03 11:00,1.2,1.4\n"
    )
    (tmp_path / "gold.txt").write_text("time;XAUUSD\n2025-03-03 11:00;2900\n2025-03-04 00:00;2910\n")
    (tmp_path / "notes.md").write_text("not a price file")
    return tmp_path


def test_files_are_joined_on_time_and_not_by_position(folder: Path) -> None:
    prices = read_prices([folder / "gold.txt", folder / "fx.csv"])
    index = pd.DatetimeIndex(["2025-03-03 10:00", "2025-03-03 11:00", "2025-03-04 00:00"], name="time")
    expected = pd.DataFrame(
        {
            "XAUUSD": [np.nan, 2900, 2910],
            "EURUSD": [1.1, 1.2, np.nan],
            "GBPUSD": [1.3, 1.4, np.nan],
        },
        index=index,
    )
    pd.testing.assert_frame_equal(prices.frame, expected, check_index_type=False)


def test_sources_say_what_each_file_gave(folder: Path) -> None:
    fx, gold = read_prices(folder).sources
    assert (fx.path.name, fx.family, fx.clock, fx.symbols, fx.rows) == (
        "fx.csv",
        "wide CSV",
        "not stated",
        ("EURUSD", "GBPUSD"),
        2,
    )
    assert (gold.first, gold.last) == (pd.Timestamp("2025-03-03 11:00"), pd.Timestamp("2025-03-04"))


def test_a_folder_gives_its_price_files_by_name_and_a_pattern_what_it_matches(folder: Path) -> None:
    (folder / "A.PARQUET").touch()
    (folder / "deeper.csv").mkdir()
    assert [path.name for path in find_files(folder)] == ["A.PARQUET", "fx.csv", "gold.txt"]
    assert [path.name for path in find_files(str(folder / "*.[ct][sx][vt]"))] == ["fx.csv", "gold.txt"]


def test_a_file_that_is_named_twice_is_read_once(folder: Path) -> None:
    assert len(find_files([folder, folder / "fx.csv", str(folder / "*.csv")])) == 2


def test_brackets_in_the_name_of_a_file_are_no_pattern(folder: Path) -> None:
    path = folder / "fx [1].csv"
    path.write_text("time,A\n2025-03-03,1\n")
    assert find_files(str(path)) == [path]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nothing*.csv", r"No file matches '.*nothing\*\.csv'"),
        ("missing.csv", r"There is no file .*missing\.csv"),
        ("a" * 300 + ".csv", "a.csv cannot be read"),
        ("empty", r"The folder .*empty has no \.csv, \.txt or \.parquet file"),
    ],
)
def test_what_matches_nothing_is_an_error_that_names_it(folder: Path, given: str, says: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(PriceFileError, match=says):
        read_prices(folder / given)


def test_no_paths_at_all_is_an_error() -> None:
    with pytest.raises(PriceFileError, match="No price file was given"):
        read_prices([])


def test_one_symbol_in_two_files_is_an_error_that_names_both(folder: Path) -> None:
    (folder / "more.csv").write_text("time,GBPUSD\n2025-03-03,1\n")
    with pytest.raises(PriceFileError, match=r"Both .*fx\.csv and .*more\.csv have the symbol 'GBPUSD'"):
        read_prices(folder)


def test_names_that_differ_in_case_are_two_symbols(folder: Path) -> None:
    (folder / "more.csv").write_text("time,gbpusd\n2025-03-03,1\n")
    assert read_prices(folder).frame.shape == (4, 4)


def test_times_with_and_without_a_zone_are_not_joined(folder: Path) -> None:
    (folder / "zoned.csv").write_text("time,A\n2025-03-03T10:00:00Z,1\n")
    with pytest.raises(PriceFileError, match=r"zoned\.csv have a zone and those in .*fx\.csv have none"):
        read_prices(folder)


def test_files_with_zones_are_joined_in_utc(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,A\n2025-03-03T10:00:00Z,1\n")
    (tmp_path / "b.csv").write_text("time,B\n2025-03-03T12:00:00+02:00,2\n")
    frame = read_prices(tmp_path).frame
    assert frame.shape == (1, 2)
    assert frame.index[0] == pd.Timestamp("2025-03-03 10:00", tz="UTC")


def test_symbols_picks_and_orders_columns(folder: Path) -> None:
    assert list(read_prices(folder, symbols=["XAUUSD", "EURUSD"]).frame.columns) == ["XAUUSD", "EURUSD"]


def test_times_of_symbols_that_are_left_out_are_left_out(folder: Path) -> None:
    frame = read_prices(folder, symbols=["GBPUSD"]).frame
    assert frame["GBPUSD"].tolist() == [1.3, 1.4]
    assert len(read_prices(folder).frame) == 3


def test_a_symbol_that_is_not_there_lists_those_that_are_close_ones_first(folder: Path) -> None:
    with pytest.raises(PriceFileError, match=r"no symbol 'xauusd'; there are XAUUSD, "):
        read_prices(folder, symbols=["EURUSD", "xauusd"])


@pytest.mark.parametrize("symbols", [[], ["EURUSD", "EURUSD"]])
def test_no_symbol_or_one_twice_is_an_error(folder: Path, symbols: list[str]) -> None:
    with pytest.raises(OptionError):
        read_prices(folder, symbols=symbols)


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        (None, None, 3),
        ("2025-03-03 11:00", None, 2),
        (None, "2025-03-03 11:00", 2),
        ("2025-03-03 11:00", "2025-03-03 11:00", 1),
        ("2025-03-03", "2025-03-03", 2),
        ("2025-03-04", "2025-03-04", 1),
        ("2025-03-03 10:00:01", "2025-03-03 23:59", 1),
    ],
)
def test_a_range_includes_both_its_ends_and_days_count_whole(
    folder: Path, start: str | None, end: str | None, rows: int
) -> None:
    assert len(read_prices(folder, start=start, end=end).frame) == rows


def test_a_range_without_any_time_is_an_error_with_the_files_range(folder: Path) -> None:
    with pytest.raises(PriceFileError, match=r"reach from 2025-03-03 10:00:00 to 2025-03-04 00:00:00"):
        read_prices(folder, start="2026-01-01")


def test_a_bound_with_a_zone_does_not_fit_times_without_one(folder: Path) -> None:
    with pytest.raises(OptionError, match="has a zone but the files' times have none"):
        read_prices(folder, start="2025-03-03T10:00:00Z")


def test_a_bound_without_a_zone_is_utc_where_the_files_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,A\n2025-03-03T10:00:00Z,1\n2025-03-03T12:00:00Z,2\n")
    assert len(read_prices(tmp_path, start="2025-03-03 11:00").frame) == 1


def test_an_unknown_price_is_an_error_with_the_known_ones(folder: Path) -> None:
    with pytest.raises(OptionError, match="open, high, low, close"):
        read_prices(folder, price="mid")


def test_notes_name_the_files_they_are_about_and_are_said_once(tmp_path: Path) -> None:
    for name in "ABCDE":
        (tmp_path / f"{name}.csv").write_text(f"time,{name}\n2025-03-04,2\n2025-03-03,1\n")
    (note,) = read_prices(tmp_path).notes
    assert note.startswith("A.csv, B.csv, C.csv and 2 more files: rows are newest first")


def test_different_clocks_are_said(folder: Path) -> None:
    (folder / "days.csv").write_text("time,A\n2025-03-03,1\n")
    assert any(
        "not stated: 2 files" in note and "none (days): 1 file" in note for note in read_prices(folder).notes
    )
