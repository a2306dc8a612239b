"""Covariances of every column with every other one some rows later."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import exact
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mtbridge.compute import Engine
from mtbridge.compute.lagged import LAGS_AT_ONCE, lagged
from mtbridge.errors import InputError, OptionError
from mtbridge.matrix import DTYPES

NAN, INF = math.nan, math.inf
STATISTICS = ("covariance", "correlation")


def by_pandas(X: NDArray[Any], most: int, statistic: str, **options: int) -> NDArray[np.float64]:
    frame = pd.DataFrame(X.astype(np.float64))
    columns = X.shape[1]
    found = np.empty((2 * most + 1, columns, columns))
    for lag in range(-most, most + 1):
        moved = frame.shift(lag)
        for i in range(columns):
            for j in range(columns):
                one, other = moved[i], frame[j]
                found[most + lag, i, j] = (
                    one.cov(other, **options) if statistic == "covariance" else one.corr(other)
                )
    return found


def prices(rows: int, columns: int, *, gaps: float = 0) -> NDArray[np.float64]:
    random = np.random.default_rng(rows + columns)
    X = 100 + random.standard_normal((rows, columns)).cumsum(axis=0)
    X[random.random(X.shape) < gaps] = NAN
    return X


@pytest.mark.parametrize("gaps", [0, 0.2])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_lags_are_those_of_shifted_columns(engine: Engine, statistic: Any, gaps: float) -> None:
    X = prices(40, 5, gaps=gaps)
    matrix, counts = lagged(engine, X, 6, statistic)
    np.testing.assert_allclose(matrix, by_pandas(X, 6, statistic), rtol=1e-11, atol=1e-13)
    here = ~np.isnan(X)
    for lag in range(7):
        n = here[: 40 - lag].T.astype(int) @ here[lag:]
        assert np.array_equal(counts[6 + lag], n)
        assert np.array_equal(counts[6 - lag], n.T)


@pytest.mark.parametrize("gaps", [0, 0.1])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_negative_lag_is_the_other_one_transposed_and_lag_zero_the_ordinary_answer(
    engine: Engine, statistic: Any, gaps: float
) -> None:
    X = prices(60, 7, gaps=gaps)
    matrix, counts = lagged(engine, X, 3, statistic)
    assert np.array_equal(matrix, matrix[::-1].swapaxes(1, 2), equal_nan=True)
    assert np.array_equal(counts, counts[::-1].swapaxes(1, 2))
    ordinary = engine.pair_moments(X)
    expected = ordinary.covariance() if statistic == "covariance" else ordinary.correlation()
    assert np.array_equal(matrix[3], expected, equal_nan=True)


def test_a_column_that_follows_another_shows_at_a_positive_lag(engine: Engine) -> None:
    x = np.random.default_rng(1).standard_normal(50)
    X = np.stack([x, np.r_[0.5, 0.5, x[:-2]]], axis=1)
    matrix, _ = lagged(engine, X, 3)
    assert matrix[3 + 2, 0, 1] == 1
    assert matrix[3 - 2, 1, 0] == 1
    assert np.count_nonzero(np.abs(matrix) == 1) == 4, "beside these only the diagonal of lag 0"


def test_the_case_with_a_known_answer(shared: Path, engine: Engine) -> None:
    cases = json.loads((shared / "cases" / "statistics.json").read_text(encoding="utf-8"))
    (case,) = (case for case in cases["cases"] if case["name"] == "lagged_corr_overlap")
    X = np.array([column["values"] for column in case["columns"].values()], np.float64).T
    lag = case["options"]["lag"]
    matrix, _ = lagged(engine, X, lag)
    assert matrix[2 * lag, 0, 1] == pytest.approx(case["expect"], rel=case["tolerance"]["relative"])


def test_a_spike_outside_an_overlap_leaves_no_trace_in_it(engine: Engine) -> None:
    X = prices(30, 3)
    X[-1, 0], X[0, 1] = 1e14, -1e12
    matrix, _ = lagged(engine, X, 2, "covariance")
    # at lag 2 the last row of the earlier column and the first row of the later one take no part
    expected = exact.covariance(X[:-2, 0], X[2:, 1])
    assert matrix[4, 0, 1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", [False, True])
def test_an_infinity_makes_nan_only_where_it_takes_part(engine: Engine, gap: bool) -> None:
    X = prices(20, 3)
    X[-1, 0] = INF
    if gap:
        X[5, 1] = NAN
    matrix, _ = lagged(engine, X, 1)
    assert np.isnan(matrix[1, 0, :]).all()
    assert np.isnan(matrix[1, :, 0]).all()
    assert np.isfinite(matrix[2, 0, 1:]).all(), "earlier than its last row, column 0 is ordinary"
    assert np.isnan(matrix[2, :, 0]).all()
    assert np.isfinite(matrix[:, 1:, 1:]).all()
    expected = exact.correlation(X[:-1, 0], X[1:, 2])
    assert matrix[2, 0, 2] == pytest.approx(expected, abs=1e-13)


def test_a_column_that_only_changes_outside_the_overlap_has_no_correlation(engine: Engine) -> None:
    X = prices(12, 2)
    X[:-2, 0] = 0.1
    correlation, _ = lagged(engine, X, 2)
    covariance, _ = lagged(engine, X, 2, "covariance")
    assert np.isnan(correlation[4, 0]).all()
    assert covariance[4, 0].tolist() == [0, 0]
    assert np.isfinite(correlation[4, 1]).all()


@pytest.mark.parametrize("gaps", [0, 0.3])
def test_lags_beyond_the_last_row_have_no_rows(engine: Engine, gaps: float) -> None:
    X = prices(4, 2, gaps=gaps)
    matrix, counts = lagged(engine, X, 6, "covariance", ddof=0)
    for lag in (4, 5, 6):
        assert (counts[6 + lag] == 0).all()
        assert np.isnan(matrix[6 + lag]).all()
    if not gaps:
        assert (counts[6 + 3] == 1).all()
        assert (matrix[6 + 3] == 0).all(), "a single row has no deviation"


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (1, 1)])
def test_no_rows_or_columns_are_answered_too(engine: Engine, shape: tuple[int, int]) -> None:
    matrix, counts = lagged(engine, np.zeros(shape), 1)
    assert matrix.shape == counts.shape == (3, shape[1], shape[1])
    assert np.isnan(matrix).all()


def test_more_lags_than_are_held_at_once_are_all_there(numpy_engine: Engine) -> None:
    X = prices(50, 3)
    most = 2 * LAGS_AT_ONCE + 1
    many, few = lagged(numpy_engine, X, most)[0], lagged(numpy_engine, X, 2)[0]
    assert np.array_equal(many[most - 2 : most + 3], few)
    assert np.isfinite(many).all()


@pytest.mark.parametrize("gaps", [0, 0.1])
def test_divisor_and_least_rows_are_honoured(engine: Engine, gaps: float) -> None:
    X = prices(30, 3, gaps=gaps)
    matrix, counts = lagged(engine, X, 4, "covariance", ddof=0, min_periods=28 if not gaps else 22)
    expected = by_pandas(X, 4, "covariance", ddof=0)
    expected[counts < (22 if gaps else 28)] = NAN
    assert np.isnan(expected).any()
    np.testing.assert_allclose(matrix, expected, rtol=1e-11)


@pytest.mark.parametrize("level", [0, 1e5])
def test_float32_answers_are_within_a_millionth(engine: Engine, level: float) -> None:
    X = (level + prices(200, 4)).astype(np.float32)
    matrix, _ = lagged(engine, X, 3)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, by_pandas(X, 3, "correlation"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_either_order_in_memory_gives_the_same_answer(numpy_engine: Engine, dtype: Any) -> None:
    X = prices(33, 6).astype(dtype)
    one, other = (lagged(numpy_engine, Y, 2)[0] for Y in (X, np.asfortranarray(X)))
    np.testing.assert_allclose(one, other, rtol=1e-6 if dtype == "float32" else 1e-13, atol=1e-14)


def test_bad_options_are_refused(numpy_engine: Engine) -> None:
    X = prices(5, 2)
    for most in (-1, 1.5, True, "2"):
        with pytest.raises(OptionError, match="the largest lag is"):
            lagged(numpy_engine, X, most)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'beta'"):
        lagged(numpy_engine, X, 1, "beta")
    with pytest.raises(InputError, match="range of float32"):
        lagged(numpy_engine, (1e30 * X).astype(np.float32), 1, "covariance")
