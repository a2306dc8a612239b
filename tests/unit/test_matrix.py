"""What becomes a matrix, and what is refused with a sentence."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mtbridge.errors import InputError, MissingValueError, OptionError, ShapeError
from mtbridge.matrix import as_matrix, refuse_missing


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.ones((2, 3), np.float32), "float32"),
        (np.ones((2, 3)), "float64"),
        (np.ones((2, 3), np.float16), "float64"),
        (np.ones((2, 3), np.int64), "float64"),
        (np.ones((2, 3), np.uint8), "float64"),
        (np.ones((2, 3), bool), "float64"),
        (np.ones((2, 3), ">f8"), "float64"),
        (np.ones((2, 3), ">f4"), "float32"),
        (np.ones((2, 3), np.longdouble), "float64"),
        ([[1, 2, 3], [4, 5, 6]], "float64"),
    ],
    ids=str,
)
def test_float32_stays_and_all_else_becomes_float64(given: Any, kind: str) -> None:
    found = as_matrix(given)
    assert found.dtype == np.dtype(kind)
    assert found.dtype.isnative
    assert found.shape == (2, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_of_the_wanted_dtype_is_not_copied(dtype: str) -> None:
    X = np.ones((2, 3), dtype, order="F")
    assert as_matrix(X) is X
    assert as_matrix(X, dtype=dtype) is X


def test_one_dimension_is_one_column() -> None:
    assert as_matrix([1.0, 2.0, 3.0]).shape == (3, 1)


@pytest.mark.parametrize(
    "bad",
    [
        [["1.5", "2.5"]],
        [[Decimal("1.5")]],
        [[1 + 2j]],
        [[datetime(2025, 1, 1)]],
        np.array([["2025-01-01"]], "datetime64[D]"),
        [[None]],
        [["EURUSD", 1.0]],
    ],
    ids=str,
)
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="data holds"):
        as_matrix(bad)


@pytest.mark.parametrize("shape", [(), (2, 3, 4)])
def test_other_than_two_dimensions_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=f"A has {len(shape)} dimensions"):
        as_matrix(np.ones(shape), name="A")


def test_rows_of_different_lengths_are_refused_with_a_sentence() -> None:
    with pytest.raises(InputError):
        as_matrix([[1.0, 2.0], [3.0]])


def test_an_unknown_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"'float16'.*'float32' or 'float64'"):
        as_matrix([[1.0]], dtype="float16")


def test_masked_values_are_missing_and_not_the_numbers_below_the_mask() -> None:
    X = np.ma.masked_array([[1.0, 2.0], [3.0, 999.0]], mask=[[0, 0], [0, 1]])
    try:
        found = as_matrix(X)
    except InputError:
        return
    assert np.isnan(found[1, 1])


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_whole_numbers_that_float64_cannot_hold_are_not_rounded_in_silence(whole: int) -> None:
    X = np.array([[whole, 1], [whole - 2, 2]], np.int64)
    try:
        found = as_matrix(X)
    except InputError:
        return
    assert [int(x) for x in found[:, 0]] == [whole, whole - 2]


def test_values_past_the_range_of_float32_are_not_made_inf_in_silence() -> None:
    X = np.array([[1e300, 1.0], [2.0, 3.0]])
    try:
        found = as_matrix(X, dtype="float32")
    except InputError:
        return
    assert np.isfinite(found).all()


def test_missing_values_are_counted_and_the_first_column_named() -> None:
    X = np.ones((3, 3))
    X[1, 2] = X[0, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"data has 2 missing values.*column GBPUSD"):
        refuse_missing(X, symbols=("EURUSD", "GBPUSD", "USDJPY"))
    with pytest.raises(MissingValueError, match="B has 2 missing values, the first in column number 1"):
        refuse_missing(X, name="B")


@pytest.mark.parametrize("values", [[np.inf, -np.inf], [1e308, 1e308], [np.inf, 1.0]])
def test_inf_and_overflowing_sums_are_not_missing(values: list[float]) -> None:
    refuse_missing(np.array([values]))


def test_nothing_is_missing_in_an_empty_matrix() -> None:
    refuse_missing(np.ones((0, 3)))
    refuse_missing(np.ones((3, 0)))
