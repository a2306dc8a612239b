"""Complete rows, then returns."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtbridge.errors import OptionError, PriceFileError
from mtbridge.history import Prices, complete_rows, prepare, read_prices, returns

HOURS = pd.date_range("2025-03-03", periods=5, freq="h", name="time")


def frame(**columns: list[float]) -> pd.DataFrame:
    return pd.DataFrame(columns, index=HOURS[: len(next(iter(columns.values())))], dtype=np.float64)


def prices(**columns: list[float]) -> Prices:
    return Prices(frame(**columns), (), ())


def test_only_rows_with_every_price_are_kept_and_the_others_counted() -> None:
    complete, dropped = complete_rows(frame(A=[1, math.nan, 3, 4], B=[1, 2, 3, math.nan]))
    assert (list(complete.index), dropped) == ([HOURS[0], HOURS[2]], 2)


def test_no_common_time_is_an_error_with_each_symbols_range() -> None:
    table = frame(A=[1, 2, math.nan, math.nan], B=[math.nan, math.nan, 3, 4], C=[math.nan] * 4)
    with pytest.raises(PriceFileError) as refused:
        complete_rows(table)
    message = str(refused.value)
    assert "C has none" in message
    assert "A 2025-03-03 00:00:00 to 2025-03-03 01:00:00" in message
    assert "B 2025-03-03 02:00:00 to 2025-03-03 03:00:00" in message


def test_no_common_time_of_two_files_is_an_error_with_both_ranges(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,A\n2025-03-03,1\n2025-03-04,1\n")
    (tmp_path / "b.csv").write_text("time,B\n2026-03-03,1\n2026-03-04,1\n")
    ranges = r"a\.csv 2025-03-03 00:00:00 to 2025.*b\.csv 2026-03-03 00:00:00 to 2026"
    with pytest.raises(PriceFileError, match=ranges):
        prepare(read_prices(tmp_path))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("log", [math.log(2), math.log(0.5)]),
        ("simple", [1.0, -0.5]),
        ("difference", [1.0, -1.0]),
        ("none", [1.0, 2.0, 1.0]),
    ],
)
def test_returns_are_what_their_name_says(kind: str, expected: list[float]) -> None:
    assert returns(frame(A=[1, 2, 1]), kind)["A"].tolist() == expected


def test_a_return_has_the_time_of_its_later_price() -> None:
    assert list(returns(frame(A=[1, 2, 1])).index) == list(HOURS[1:3])


def test_returns_are_taken_after_the_join() -> None:
    """B misses a bar, so A's return is taken over the same two bars as B's."""
    panel = prepare(prices(A=[1, 2, 4, 8], B=[1, math.nan, 3, 9]))
    np.testing.assert_array_equal(panel.frame["A"], [math.log(4), math.log(2)])
    np.testing.assert_allclose(panel.frame["B"], [math.log(3), math.log(3)], rtol=4e-16)
    assert (panel.kept, panel.dropped, panel.returns) == (3, 1, "log")
    assert "3 of 4 times" in panel.notes[0]
    assert "B lacks 1" in panel.notes[0]


def test_a_complete_table_has_no_note() -> None:
    assert prepare(prices(A=[1, 2, 4], B=[1, 3, 9])).notes == ()


@pytest.mark.parametrize("price", [0.0, -36.98])
def test_a_log_return_of_a_price_that_is_not_above_zero_is_an_error_with_symbol_time_and_value(
    price: float,
) -> None:
    with pytest.raises(PriceFileError) as refused:
        returns(frame(A=[1, 2, 3], WTI=[20, 10, price]))
    assert f"WTI at 2025-03-03 02:00:00 is {price:g}" in str(refused.value)
    assert "use simple or difference returns" in str(refused.value)


def test_a_simple_return_from_zero_is_an_error_but_one_to_zero_is_a_loss_of_all() -> None:
    with pytest.raises(PriceFileError, match=r"A at 2025-03-03 00:00:00 is 0.*difference"):
        returns(frame(A=[0, 1]), "simple")
    assert returns(frame(A=[1, 0]), "simple")["A"].tolist() == [-1.0]


def test_differences_may_be_of_any_sign() -> None:
    assert returns(frame(A=[10, -36.98, 0]), "difference")["A"].tolist() == [-46.98, 36.98]


def test_a_bad_price_in_a_dropped_row_does_not_matter() -> None:
    assert len(prepare(prices(A=[1, 0, 2, 3], B=[1, math.nan, 2, 3])).frame) == 2


def test_levels_come_with_a_warning() -> None:
    panel = prepare(prices(A=[1, 2]), returns="none")
    assert len(panel.frame) == 2
    assert "trend" in panel.notes[-1]


@pytest.mark.parametrize(("kind", "rows"), [("log", 2), ("simple", 2), ("difference", 2), ("none", 1)])
def test_fewer_than_two_rows_are_an_error_with_the_numbers(kind: str, rows: int) -> None:
    with pytest.raises(PriceFileError, match=rf"prices: {rows}, .*: 1; at least 2 are needed"):
        prepare(prices(A=[1.0, 2.0][:rows]), returns=kind)


def test_an_unknown_kind_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"'percent' is not one of log, simple, difference, none"):
        prepare(prices(A=[1, 2, 3]), returns="percent")
    with pytest.raises(OptionError, match="percent"):
        returns(frame(A=[1, 2, 3]), "percent")
