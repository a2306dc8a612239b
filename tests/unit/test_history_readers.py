"""The readers of each family, on small files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from mtbridge.errors import PriceFileError
from mtbridge.history import Table, read_table

Reader = Callable[..., Table]

MT5 = (
    "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\r\n"
    "2025.03.03\t00:00:00\t1.1\t1.4\t1.0\t1.2\t57\t0\t12\r\n"
    "2025.03.03\t01:00:00\t1.2\t1.5\t1.1\t1.3\t61\t0\t11\r\n"
)
MT4 = "2025.03.03,00:00,1.1,1.4,1.0,1.2,57\r\n2025.03.03,01:00,1.2,1.5,1.1,1.3,61\r\n"


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def read_text(text: str | bytes, name: str = "prices.csv", **options: str) -> Table:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(path, **options)

    return read_text


def test_mt5_bars_give_closes_on_the_servers_clock(read: Reader) -> None:
    table = read(MT5, "EURUSD_H1.csv")
    expected = pd.DataFrame(
        {"EURUSD": [1.2, 1.3]}, index=pd.DatetimeIndex(["2025-03-03 00:00", "2025-03-03 01:00"], name="time")
    )
    pd.testing.assert_frame_equal(table.frame, expected, check_index_type=False, check_freq=False)
    assert (table.family, table.clock, table.notes) == ("MT5 bars", "server clock, not stated", ())


@pytest.mark.parametrize(("price", "first"), [("open", 1.1), ("high", 1.4), ("low", 1.0), ("close", 1.2)])
@pytest.mark.parametrize("text", [MT5, MT4])
def test_any_price_of_a_bar_can_be_taken(read: Reader, text: str, price: str, first: float) -> None:
    assert read(text, price=price).frame.iloc[0, 0] == first


def test_mt5_days_have_no_time_column_and_no_clock(read: Reader) -> None:
    table = read(
        "<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n2025.03.03\t1\t2\t0.5\t1.5\t9\t0\t1\n"
    )
    assert (table.clock, table.frame.index[0]) == ("none (days)", pd.Timestamp("2025-03-03"))


@pytest.mark.parametrize(
    "change",
    [str.lower, lambda text: text.replace("<", "").replace(">", ""), lambda text: text.replace("\t", ",")],
)
def test_mt5_bars_saved_again_are_still_mt5_bars(read: Reader, change: Callable[[str], str]) -> None:
    assert read(change(MT5)).family == "MT5 bars"


def test_utf16_bars_are_the_same_as_utf8_bars(read: Reader) -> None:
    pd.testing.assert_frame_equal(read(MT5.encode("utf-16")).frame, read(MT5).frame)


def test_the_first_bar_of_a_file_without_header_is_a_bar(read: Reader) -> None:
    table = read(MT4, "EURUSD60.csv")
    assert table.frame["EURUSD"].tolist() == [1.2, 1.3]
    assert table.frame.index[0] == pd.Timestamp("2025-03-03")
    assert (table.family, table.clock) == ("MT4 history", "server clock, not stated")


def test_one_bar_of_mt4_is_a_table(read: Reader) -> None:
    assert read(MT4.splitlines()[0]).frame.shape == (1, 1)


def test_mt4_bars_without_volume_may_be_histdatas_and_that_is_said(read: Reader) -> None:
    assert "UTC-5" in read(MT4.replace(",57", ",0").replace(",61", ",0")).notes[0]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_wide_table_has_a_column_for_each_symbol_unchanged(read: Reader, separator: str) -> None:
    text = "time,EURUSD.m,#US30,золото\n2025-03-03 00:00,1.1,37000,2400.5\n2025-03-03 00:05,1.2,,N/A\n"
    table = read(text.replace(",", separator))
    assert table.symbols == ("EURUSD.m", "#US30", "золото")
    np.testing.assert_array_equal(table.frame.to_numpy(), [[1.1, 37000, 2400.5], [1.2, np.nan, np.nan]])
    assert table.frame.index.name == "time"
    assert all(dtype == np.float64 for dtype in table.frame.dtypes)


def test_decimal_commas_are_read_where_the_separator_is_a_semicolon_and_said(read: Reader) -> None:
    table = read("Datum;DAX;EURUSD\n31.03.2025;22163,5;1,0815\n01.04.2025;22539;1,0793\n")
    assert table.frame["EURUSD"].tolist() == [1.0815, 1.0793]
    assert table.frame["DAX"].tolist() == [22163.5, 22539]
    assert "decimal commas" in table.notes[0]


def test_the_time_column_may_have_no_name_or_be_pandas_index(read: Reader) -> None:
    assert read(",A,B\n2025-03-03,1,2\n").symbols == ("A", "B")


def test_the_time_column_need_not_be_the_first(read: Reader) -> None:
    table = read("A,Date,B\n1,2025-03-03,2\n3,2025-03-04,4\n")
    assert (table.symbols, table.frame["B"].tolist()) == (("A", "B"), [2, 4])


def test_date_and_time_of_day_may_stand_in_two_columns(read: Reader) -> None:
    table = read("Date,Time,A\n2025.03.03,09:30,1\n2025.03.03,09:35,2\n")
    assert (table.symbols, table.frame.index[1]) == (("A",), pd.Timestamp("2025-03-03 09:35"))


def test_row_numbers_and_an_empty_last_column_are_left_out(read: Reader) -> None:
    table = read(",time,A,\n0,2025-03-03,1,\n1,2025-03-04,2,\n")
    assert table.symbols == ("A",)
    assert "counts the rows" in table.notes[0]


def test_shares_called_low_and_open_are_symbols(read: Reader) -> None:
    assert read("Date,LOW,OPEN,O,C\n2025-03-03,240,1.5,57,70\n").symbols == ("LOW", "OPEN", "O", "C")


def test_rows_of_bare_separators_below_a_table_are_no_rows(read: Reader) -> None:
    assert len(read("time,A,B\n2025-03-03,1,2\n,,\n,,\n").frame) == 1


def test_a_header_that_says_gmt_makes_the_times_utc(read: Reader) -> None:
    table = read("Gmt time,A\n2025-03-03 10:00,1\n")
    assert (table.clock, table.frame.index[0]) == ("UTC", pd.Timestamp("2025-03-03 10:00", tz="UTC"))


def test_newest_first_is_turned_round_and_said(read: Reader) -> None:
    table = read("time,A\n2025-03-05,3\n2025-03-04,2\n2025-03-03,1\n")
    assert table.frame["A"].tolist() == [1, 2, 3]
    assert "newest first" in table.notes[0]


def test_unsorted_rows_are_sorted_and_said(read: Reader) -> None:
    table = read("time,A\n2025-03-04,2\n2025-03-05,3\n2025-03-03,1\n")
    assert table.frame["A"].tolist() == [1, 2, 3]
    assert "not in order" in table.notes[0]


def test_an_identical_repeat_of_a_row_is_left_out_and_counted(read: Reader) -> None:
    table = read("time,A,B\n2025-03-03,1,\n2025-03-03,1,\n2025-03-04,2,5\n2025-03-03,1,\n")
    assert (len(table.frame), table.repeats) == (2, 2)
    assert "2 rows repeat" in table.notes[-1]


def test_two_prices_at_one_time_are_an_error_with_file_time_and_both(read: Reader) -> None:
    with pytest.raises(
        PriceFileError, match=r"prices\.csv has two prices of B at 2025-03-03 00:00:00, 5\.0 and 6\.0"
    ):
        read("time,A,B\n2025-03-03,1,5\n2025-03-04,1,5\n2025-03-03,1,6\n")


def test_a_gap_and_a_price_at_one_time_are_two_prices(read: Reader) -> None:
    with pytest.raises(PriceFileError, match="two prices of A"):
        read("time,A,B\n2025-03-03,1,5\n2025-03-03,,5\n")


@pytest.mark.parametrize("text", ["12x", "1.2.3", "inf", "1e999", "$5", "8,5"])
def test_a_price_that_is_no_number_is_an_error_with_file_line_and_text(read: Reader, text: str) -> None:
    cells = f'"{text}"'
    with pytest.raises(PriceFileError) as refused:
        read(f"\ntime,A,B\n2025-03-03,1,2\n\n2025-03-04,1,{cells}\n2025-03-05,1,2\n")
    assert "prices.csv" in str(refused.value)
    if text != "1e999":
        assert f"line 5: '{text}' in column 'B'" in str(refused.value)


def test_a_row_that_is_cut_is_an_error_with_its_line(read: Reader) -> None:
    with pytest.raises(PriceFileError, match=r"line 3: 6 cells where 9 are expected"):
        read(MT5[: MT5.rindex("\t61")], "EURUSD_H1.csv")


def test_a_row_without_time_is_an_error_with_its_line(read: Reader) -> None:
    with pytest.raises(PriceFileError, match=r"line 3: the row has no time"):
        read("time,A\n2025-03-03,1\n,2\n2025-03-05,3\n")


def test_a_time_that_cannot_be_read_is_an_error_with_line_and_text(read: Reader) -> None:
    with pytest.raises(PriceFileError, match=r"line 4: '2025\.03\.32' is not a time"):
        read("time,A\n2025.03.03,1\n2025.03.04,1\n2025.03.32,3\n")


def test_ambiguous_dates_are_an_error_that_says_how_to_write_them(read: Reader) -> None:
    with pytest.raises(
        PriceFileError, match=r"prices\.csv: dates such as '03/04/2025'.*write them as 2025-03-31"
    ):
        read("time,A\n03/04/2025,1\n04/04/2025,2\n")


def test_a_symbol_twice_in_one_header_is_an_error(read: Reader) -> None:
    with pytest.raises(PriceFileError, match="2 columns called 'A'"):
        read("time,A,B,A\n2025-03-03,1,2,3\n")


def test_a_column_of_prices_without_name_is_an_error(read: Reader) -> None:
    with pytest.raises(PriceFileError, match="no name in its header for column 3"):
        read("time,A,\n2025-03-03,1,5.5\n")


def test_a_wide_table_says_that_it_has_one_price_only(read: Reader) -> None:
    assert "changes nothing" in read("time,A\n2025-03-03,1\n", price="high").notes[0]


def save(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_parquet(path, engine="pyarrow")
    return path


DAYS = pd.date_range("2025-03-03", periods=3, freq="D")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"A": [1.0, np.nan, 3.0]}, index=DAYS),
        pd.DataFrame({"A": [1.0, np.nan, 3.0]}, index=DAYS.rename("Date")),
        pd.DataFrame({"when": DAYS, "A": [1.0, np.nan, 3.0]}),
        pd.DataFrame({"A": [1.0, np.nan, 3.0], "time": DAYS.strftime("%Y-%m-%d")}),
        pd.DataFrame({"A": np.array([1, np.nan, 3], np.float32), "date": DAYS.date}),
        pd.DataFrame({"date": DAYS.as_unit("ms"), "A": [1.0, np.nan, 3.0]}, index=[5, 6, 7]),
    ],
    ids=["index", "named index", "column", "text column", "dates", "numbered index"],
)
def test_parquet_has_its_times_in_the_index_or_in_a_column(tmp_path: Path, frame: pd.DataFrame) -> None:
    table = read_table(save(tmp_path / "prices.parquet", frame))
    assert (table.symbols, table.clock, table.family) == (("A",), "none (days)", "wide Parquet")
    np.testing.assert_array_equal(table.frame["A"], [1, np.nan, 3])
    assert list(table.frame.index) == list(DAYS)


def test_parquet_times_with_a_zone_are_utc(tmp_path: Path) -> None:
    index = pd.date_range("2025-03-03 09:30", periods=2, freq="h", tz="America/New_York")
    table = read_table(save(tmp_path / "prices.parquet", pd.DataFrame({"A": [1.0, 2.0]}, index=index)))
    assert (table.clock, table.frame.index[0]) == ("UTC", pd.Timestamp("2025-03-03 14:30", tz="UTC"))


def test_parquet_without_pandas_is_read(tmp_path: Path) -> None:
    content = pa.table({"time": pa.array(DAYS), "A": pa.array([1, 2, 3], pa.int32())})
    papq.write_table(content, tmp_path / "a=1.parquet")
    assert read_table(tmp_path / "a=1.parquet").frame["A"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pd.DataFrame({"A": [1.0, 2.0]}), "without a column of times"),
        (pd.DataFrame({"time": DAYS, "A": ["x", "y", "z"]}), "in column 'A', where prices are expected"),
        (pd.DataFrame({"time": DAYS}), "no column of prices"),
        (
            pd.DataFrame({"A": [1.0, np.inf, 2.0]}, index=DAYS),
            "price of A at 2025-03-04 00:00:00 is infinite",
        ),
        (pd.DataFrame({"A": [1.0]}, index=DAYS[:1])[:0], "no rows"),
        (pd.DataFrame({("Close", "A"): [1.0]}, index=DAYS[:1]), "several rows of column names"),
        (pd.DataFrame({"time": [DAYS[0], pd.NaT], "A": [1.0, 2.0]}), r"rows without a time \(1\)"),
    ],
)
def test_parquet_that_is_no_wide_price_table_is_refused(
    tmp_path: Path, frame: pd.DataFrame, says: str
) -> None:
    with pytest.raises(PriceFileError, match=rf"prices\.parquet.*{says}"):
        read_table(save(tmp_path / "prices.parquet", frame))


def test_a_damaged_parquet_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = save(tmp_path / "prices.parquet", pd.DataFrame({"A": [1.0]}, index=DAYS[:1]))
    path.write_bytes(path.read_bytes()[:-9] + b"PAR1\n")
    with pytest.raises(PriceFileError, match=r"prices\.parquet is a damaged Parquet file"):
        read_table(path)


HOURS = pa.array(np.arange(2).astype("datetime64[h]").astype("datetime64[ns]"))
CLOSES = pa.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("arrays", "names", "words"),
    [
        ((HOURS, CLOSES, CLOSES), ("time", "A", "A"), "2 columns called 'A'"),
        ((HOURS, HOURS, CLOSES), ("time", "time", "A"), "2 columns called 'time'"),
        ((HOURS, pa.array([2**60, 1])), ("time", "A"), "'A' holds numbers that float64 would round"),
    ],
)
def test_parquet_columns_that_cannot_be_told_or_held_are_named(
    tmp_path: Path, arrays: tuple[pa.Array, ...], names: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "prices.parquet"
    papq.write_table(pa.Table.from_arrays(list(arrays), names=list(names)), path)
    with pytest.raises(PriceFileError, match=words):
        read_table(path)


def test_a_quotation_mark_that_is_not_closed_is_an_error_that_says_so(read: Reader) -> None:
    text = "time,A,B\n" + "2025-03-03 00:00,1,2\n" * 50 + '2025-03-03 01:00,1,"2\n'
    with pytest.raises(PriceFileError, match="quotation mark"):
        read(text + "2025-03-03 02:00,1,2\n" * 10_000)
