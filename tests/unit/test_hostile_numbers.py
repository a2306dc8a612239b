"""Columns at the edge of what a number is: they are answered or refused, with no warning on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.compute.aligned import aligned_empty
from mtbridge.errors import InputError
from mtbridge.history.looks import bars_among
from mtbridge.matrix import as_matrix, past_float64


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]"])
def test_a_column_of_whole_numbers_that_are_all_missing_has_no_covariance(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([None] * 3, dtype=dtype), "b": [1.0, 2.0, 4.0]})
    found = mtbridge.covariance(frame, engine="numpy")
    assert np.isnan(found["a"]).all()
    assert found.loc["b", "b"] == pytest.approx(7 / 3)


def test_an_array_past_every_memory_is_a_lack_of_memory_and_not_a_wrong_value() -> None:
    with pytest.raises(MemoryError, match="larger than any memory"):
        aligned_empty((4, 2**31, 2**31), np.dtype(np.float64))


def test_no_whole_numbers_at_all_are_not_past_float64() -> None:
    assert not past_float64(np.empty(0, np.int64))


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_array(np.array(["2025-01-01", "2025-01-02"], "M8[s]"), [True, False]),
        np.ma.masked_array(np.array(["1", "2"]), [True, False]),
        np.ma.masked_array(np.array([1j, 2]), [True, False]),
        np.ma.masked_array(np.array([1, 2], "m8[s]"), [True, False]),
    ],
    ids=["times", "text", "complex", "spans"],
)
def test_a_masked_array_of_no_numbers_is_refused_by_its_kind(values: Any) -> None:
    with pytest.raises(InputError, match=r"^data holds .* values; convert them to numbers first\.$"):
        mtbridge.covariance(values, engine="numpy")


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= 1024, reason="long double is float64 here")
def test_a_long_double_past_float64_is_refused_and_does_not_become_an_infinity() -> None:
    large = np.array([[np.longdouble("1e4000")], [np.longdouble(1)]])
    with pytest.raises(InputError, match=r"data holds 1e\+4000, past the range of float64"):
        as_matrix(large)
    assert np.isinf(as_matrix(np.array([[np.longdouble("inf")]]))).all()


def test_columns_of_any_magnitudes_are_looked_at_without_a_warning() -> None:
    steps = np.arange(1.0, 31.0)
    columns = np.stack([steps * 1e-300, steps * 1e306, np.ones(30), steps], axis=1)
    assert not bars_among(columns)
