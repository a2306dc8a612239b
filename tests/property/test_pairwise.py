"""Pairwise covariance and correlation of every engine: against exact fractions, pandas, and themselves."""

from __future__ import annotations

import math

import exact
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbridge.compute import Engine, operations
from mtbridge.matrix import Matrix

CHECKS = [HealthCheck.function_scoped_fixture]
SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 4))
HOSTILE = [
    0.0,
    -0.0,
    0.1,
    -1e200,
    1e200,
    5e-324,
    1e-170,
    -1e-170,
    1e9,
    1e9 + 1e-6,
    1.7e308,
    -1.7e308,
    math.nan,
]
MODERATE = [0.1, 1.81, -1.81, 1e9, 1e9 + 1e-6, 1e-12, 2.0, 3.0, math.nan, math.nan]
ANY = st.sampled_from(HOSTILE)
ORDINARY = st.one_of(st.sampled_from(MODERATE), st.floats(-1e6, 1e6), st.just(math.nan))
WITH_INF = st.sampled_from([1.0, 2.0, 4.0, math.inf, -math.inf, math.nan])


def check(engine: Engine, X: Matrix, tolerance: float = 1e-12, ddof: int = 1, min_periods: int = 1) -> None:
    """Compare every pair with exact fractions; errors are shares of the two standard deviations."""
    options = {"engine": engine, "min_periods": min_periods}
    C = operations.covariance(X, ddof=ddof, **options)
    R = operations.correlation(X, **options).matrix
    for matrix in (C.matrix, R):
        assert np.array_equal(matrix, matrix.T, equal_nan=True)
    columns = list(X.T.astype(float))
    for i, x in enumerate(columns):
        for j, y in list(enumerate(columns))[i:]:
            assert C.counts[i, j] == len(exact.common_rows(x, y))
            right = exact.correlation(x, y, min_periods=min_periods)
            assert math.isnan(right) == math.isnan(R[i, j]), (x, y, right, R[i, j])
            if not math.isnan(right):
                assert abs(R[i, j] - right) <= tolerance
                assert abs(R[i, j]) <= 1
                assert i != j or R[i, j] == 1
            right = exact.covariance(x, y, ddof=ddof, min_periods=min_periods)
            assert math.isnan(right) == math.isnan(C.matrix[i, j]), (x, y, right, C.matrix[i, j])
            # beyond, rounding to a float is the larger error
            if 1e-300 < abs(right) < 1e300:
                bound = tolerance * exact.scale(x, y) / (C.counts[i, j] - ddof)
                assert abs(C.matrix[i, j] - right) <= bound


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(X=arrays(np.float64, SHAPES, elements=ANY))
def test_values_of_any_magnitude_are_answered_exactly(engine: Engine, X: Matrix) -> None:
    check(engine, X)


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=ORDINARY),
    ddof=st.integers(0, 3),
    min_periods=st.integers(0, 4),
)
def test_ties_constants_and_any_gaps_are_answered_exactly(
    engine: Engine, X: Matrix, ddof: int, min_periods: int
) -> None:
    check(engine, X, ddof=ddof, min_periods=min_periods)


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(X=arrays(np.float64, SHAPES, elements=WITH_INF))
def test_inf_makes_nan_of_the_pairs_that_meet_it_and_of_no_other(engine: Engine, X: Matrix) -> None:
    check(engine, X)


def prices(seed: int, rows: int = 200, columns: int = 8, level: float = 100.0) -> Matrix:
    """Random walks with scattered gaps, late listings and a holiday of half of the columns."""
    random = np.random.default_rng(seed)
    X = level + np.cumsum(random.standard_normal((rows, columns)), axis=0) * level * 1e-4
    X[random.random(X.shape) < 0.05] = np.nan
    X[: rows * 2 // 3, 0] = np.nan
    X[: rows - 5, 1] = np.nan
    X[rows // 2 :, 2] = np.nan
    X[10:30, ::2] = np.nan
    return X


@pytest.mark.parametrize("level", [1.1, 2400.0, 1e5, 1e9])
def test_prices_of_any_level_with_late_listings_are_exact(engine: Engine, level: float) -> None:
    check(engine, prices(3, level=level))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("level", [1.1, 2400.0, 1e5, 1e7])
def test_float32_prices_are_within_a_millionth_of_exact(engine: Engine, level: float, seed: int) -> None:
    check(engine, prices(seed, level=level).astype(np.float32), tolerance=1e-6)


@pytest.mark.parametrize("min_periods", [1, 50, 100, 201])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ordinary_data_agree_with_pandas(engine: Engine, min_periods: int, order: str) -> None:
    X = np.asarray(prices(5, columns=70, level=1.0), order=order)  # type: ignore[call-overload]
    table = pd.DataFrame(X)
    C = operations.covariance(X, engine=engine, min_periods=min_periods).matrix
    R = operations.correlation(X, engine=engine, min_periods=min_periods).matrix
    expected = table.cov(min_periods=min_periods).to_numpy()
    deviation = np.sqrt(np.diagonal(table.cov().to_numpy()))
    assert np.array_equal(np.isnan(C), np.isnan(expected))
    # of a few rows late in the history, whose deviations are small beside those of the whole
    assert np.nanmax(np.abs(C - expected) / np.outer(deviation, deviation), initial=0.0) < 1e-11
    expected = table.corr(min_periods=max(min_periods, 1)).to_numpy()
    assert np.array_equal(np.isnan(R), np.isnan(expected))
    assert np.nanmax(np.abs(R - expected), initial=0.0) < 1e-10


def test_the_order_of_rows_and_columns_only_reorders(engine: Engine) -> None:
    X, random = prices(7), np.random.default_rng(7)
    rows, columns = random.permutation(len(X)), random.permutation(X.shape[1])
    one = operations.correlation(X, engine=engine).matrix[np.ix_(columns, columns)]
    other = operations.correlation(X[rows][:, columns], engine=engine).matrix
    assert np.allclose(one, other, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("power", [-500, -30, 7, 400])
def test_a_power_of_two_scales_and_changes_nothing_else(engine: Engine, power: int) -> None:
    X = prices(8)
    one = operations.covariance(X, engine=engine).matrix
    other = operations.covariance(np.ldexp(X, power), engine=engine).matrix
    assert np.allclose(np.ldexp(other, -2 * power), one, rtol=1e-11, atol=0, equal_nan=True)
    one = operations.correlation(X, engine=engine).matrix
    other = operations.correlation(np.ldexp(X, power), engine=engine).matrix
    assert np.allclose(one, other, rtol=0, atol=1e-12, equal_nan=True)


def test_a_shift_changes_nothing(engine: Engine) -> None:
    # whole numbers, so that the shift itself loses nothing
    X = np.rint(prices(9, level=1e6))
    one = operations.covariance(X, engine=engine).matrix
    other = operations.covariance(X + 2.0**40, engine=engine).matrix
    assert np.allclose(one, other, rtol=1e-11, atol=1e-9, equal_nan=True)


def test_more_symbols_change_no_pair_of_the_others(engine: Engine) -> None:
    X = prices(10)
    more = np.column_stack([X, np.full(len(X), np.nan), X[:, 3] * -1e5, np.full(len(X), 0.1)])
    one = operations.correlation(X, engine=engine)
    other = operations.correlation(more, engine=engine)
    kept = slice(X.shape[1])
    assert np.allclose(one.matrix, other.matrix[kept, kept], rtol=0, atol=1e-12, equal_nan=True)
    assert np.array_equal(one.counts, other.counts[kept, kept])


def test_a_spike_is_seen_by_the_pairs_that_have_its_row_alone(engine: Engine) -> None:
    X = prices(11)
    X[100, 3] = 1e14
    X[100, 4:] = np.nan
    check(engine, X)
