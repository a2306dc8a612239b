"""Covariance and correlation of every engine against exact fractions, on data chosen to hurt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_moments import exact_correlation, exact_covariance, relative

from mtbridge.compute import Engine, open_engine, operations
from mtbridge.errors import InputError, MissingValueError, OptionError, ShapeError
from mtbridge.matrix import as_matrix

DTYPES = ["float32", "float64"]


@pytest.mark.parametrize("ddof", [0, 1, 2, 4])
def test_ddof_is_taken_from_the_rows(engine: Engine, ddof: int) -> None:
    X = np.random.default_rng(0).standard_normal((9, 4))
    found = operations.covariance(X, engine=engine, ddof=ddof)
    assert relative(found.matrix, exact_covariance(X, ddof)) < 1e-14
    assert (found.counts == 9).all()
    assert found.rows == 9


@pytest.mark.parametrize(("rows", "ddof"), [(0, 0), (0, 1), (1, 1), (2, 2), (2, 3), (3, 100)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_degrees_of_freedom_is_nan_everywhere(engine: Engine, rows: int, ddof: int, dtype: str) -> None:
    X = np.arange(rows * 2, dtype=dtype).reshape(rows, 2)
    found = operations.covariance(X, engine=engine, ddof=ddof).matrix
    assert found.shape == (2, 2)
    assert found.dtype == np.dtype(dtype)
    assert np.isnan(found).all()


def test_one_row_has_no_covariance_but_zero_with_ddof_0(engine: Engine) -> None:
    X = np.array([[3.0, 5.0]])
    assert np.isnan(operations.covariance(X, engine=engine).matrix).all()
    assert (operations.covariance(X, engine=engine, ddof=0).matrix == 0).all()
    assert np.isnan(operations.correlation(X, engine=engine).matrix).all()


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_no_columns_give_an_empty_matrix(engine: Engine, rows: int) -> None:
    X = np.ones((rows, 0))
    assert operations.covariance(X, engine=engine).matrix.shape == (0, 0)
    assert operations.correlation(X, engine=engine).matrix.shape == (0, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("value", "rows"), [(0.1, 10), (1.81, 1448), (0.576, 1448), (-0.04096, 5), (1e9 + 0.1, 999), (0.0, 7)]
)
def test_a_constant_has_covariance_exactly_0_and_no_correlation(
    engine: Engine, value: float, rows: int, dtype: str
) -> None:
    X = np.empty((rows, 3), dtype)
    X[:, 0] = value
    X[:, 1] = np.arange(rows)
    X[:, 2] = np.random.default_rng(1).standard_normal(rows)
    C = operations.covariance(X, engine=engine).matrix
    assert (C[0] == 0).all()
    assert (C[:, 0] == 0).all()
    R = operations.correlation(X, engine=engine).matrix
    assert np.isnan(R[0]).all()
    assert np.isnan(R[:, 0]).all()
    assert np.isfinite(R[1:, 1:]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("level", [0, 1, 1e5, 1e9])
def test_equal_columns_correlate_by_exactly_1_and_opposite_ones_by_minus_1(
    engine: Engine, level: float, dtype: str
) -> None:
    steps = np.random.default_rng(2).integers(-50, 50, (257, 5))
    X = (level + np.hstack([steps, steps, -steps + 2 * level * (steps == steps) - level * 2])).astype(dtype)
    R = operations.correlation(X, engine=engine).matrix
    assert (np.diagonal(R) == 1).all()
    assert (np.diagonal(R[:5, 5:10]) == 1).all()
    assert (R >= -1).all()
    assert (R <= 1).all()
    assert np.array_equal(R, R.T)


@pytest.mark.parametrize("seed", range(20))
def test_a_correlation_is_never_outside_its_range_and_its_diagonal_is_exactly_1(
    engine: Engine, seed: int
) -> None:
    random = np.random.default_rng(seed)
    base = random.standard_normal((random.integers(2, 40), 1)) * 10.0 ** random.integers(-12, 12)
    X = base * random.standard_normal(6) + random.standard_normal(6) * 10.0 ** random.integers(-3, 9)
    R = operations.correlation(X, engine=engine).matrix
    there = ~np.isnan(np.diagonal(R))
    assert (np.diagonal(R)[there] == 1).all()
    assert (np.abs(R[np.ix_(there, there)]) <= 1).all()
    assert np.array_equal(R, R.T, equal_nan=True)


def test_two_rows_that_rise_correlate_by_1_however_small_the_rise(engine: Engine) -> None:
    X = np.array([[0.0, 1.35951], [1.0, 1.3595100000000007]])
    assert abs(operations.correlation(X, engine=engine).matrix[0, 1] - 1) <= 1e-15


@pytest.mark.parametrize(
    "scale", [1e-307, 1e-300, 1e-170, 1e-120, 1e-30, 1.0, 1e30, 1e120, 1e200, 1e300, 1e307]
)
def test_any_scale_gives_the_same_correlation(engine: Engine, scale: float) -> None:
    X = np.random.default_rng(3).standard_normal((60, 4)) @ np.array(
        [[1, 0.5, 0, 0], [0, 1, 0.3, 0], [0, 0, 1, -0.9], [0, 0, 0, 1]]
    )
    X = np.clip(X, -5, 5) / 10 * scale
    R = operations.correlation(X, engine=engine).matrix
    assert np.abs(R - exact_correlation(X)).max() < 1e-13


def test_columns_of_very_different_scales_correlate(engine: Engine) -> None:
    base = np.random.default_rng(4).standard_normal((40, 4))
    base[:, 1] += base[:, 0]
    X = base * np.array([1e-300, 1e300, 1.0, 1e-5])
    assert np.abs(operations.correlation(X, engine=engine).matrix - exact_correlation(base)).max() < 1e-13


def test_covariances_at_the_ends_of_the_range_are_right(engine: Engine) -> None:
    X = np.array([[1.0, 2.0], [2.0, 1.0], [4.0, 5.0]])
    small = operations.covariance(X * 2.0**-500, engine=engine).matrix
    large = operations.covariance(X * 2.0**500, engine=engine).matrix
    exact = exact_covariance(X)
    assert relative(small * 2.0**500 * 2.0**500, exact) < 1e-14
    assert relative(large * 2.0**-500 * 2.0**-500, exact) < 1e-14
    assert np.isinf(operations.covariance(X * 1e307, engine=engine).matrix).all()


def test_values_of_both_signs_near_the_largest_float_do_not_overflow(engine: Engine) -> None:
    top = np.finfo(float).max
    X = np.array([[top, 1.0], [-top, 2.0], [top, 4.0], [-top, 1.0]])
    R = operations.correlation(X, engine=engine).matrix
    assert abs(R[0, 1] - exact_correlation(X)[0, 1]) < 1e-14


def test_subnormal_numbers_correlate(engine: Engine) -> None:
    X = np.array([[1.0, 3.0], [2.0, 1.0], [4.0, 9.0], [7.0, 2.0]]) * 5e-324
    assert np.abs(operations.correlation(X, engine=engine).matrix - exact_correlation(X)).max() < 1e-14


@pytest.mark.parametrize("level", [1e5, 1e9, 1e12])
def test_a_large_level_eats_no_digits(engine: Engine, level: float) -> None:
    steps = np.random.default_rng(5).integers(-100, 100, (300, 3)) / 64
    X = level + np.cumsum(steps, axis=0)
    assert relative(operations.covariance(X, engine=engine).matrix, exact_covariance(X)) < 1e-13
    assert np.abs(operations.correlation(X, engine=engine).matrix - exact_correlation(X)).max() < 1e-13


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_inf_makes_its_own_row_and_column_nan_and_nobody_elses(
    engine: Engine, value: float, dtype: str
) -> None:
    X = np.random.default_rng(6).standard_normal((50, 5)).astype(dtype)
    clean = operations.covariance(X, engine=engine).matrix
    related = operations.correlation(X, engine=engine).matrix
    X[17, 2] = value
    others = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])
    for found, before in (
        (operations.covariance(X, engine=engine).matrix, clean),
        (operations.correlation(X, engine=engine).matrix, related),
    ):
        assert np.isnan(found[2]).all()
        assert np.isnan(found[:, 2]).all()
        assert np.allclose(found[others], before[others], rtol=1e-5 if dtype == "float32" else 1e-13)


def test_infs_of_both_signs_in_one_column_are_not_taken_for_missing(engine: Engine) -> None:
    X = np.arange(12.0).reshape(4, 3)
    X[0, 1], X[1, 1] = np.inf, -np.inf
    found = operations.covariance(X, engine=engine).matrix
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0, 2])


def test_a_column_of_nothing_but_inf_is_nan_and_not_a_constant(engine: Engine) -> None:
    X = np.array([[np.inf, 1.0], [np.inf, 2.0], [np.inf, 4.0]])
    found = operations.covariance(X, engine=engine).matrix
    assert np.isnan(found[0]).all()
    assert found[1, 1] == pytest.approx(7 / 3)


def test_nan_is_refused_with_the_name_of_its_column_if_asked_for(engine: Engine) -> None:
    X = np.ones((4, 3))
    X[2, 1] = X[3, 2] = np.nan
    symbols = ("EURUSD", "GBPUSD", "XAUUSD")
    with pytest.raises(MissingValueError, match=r"2 missing values.*column GBPUSD"):
        operations.covariance(X, engine=engine, symbols=symbols, missing="error")
    with pytest.raises(MissingValueError, match="column number 1"):
        operations.correlation(X, engine=engine, missing="error")


def test_a_negative_ddof_is_refused(engine: Engine) -> None:
    with pytest.raises(OptionError, match="ddof is -1"):
        operations.covariance(np.ones((4, 3)), engine=engine, ddof=-1)


def test_symbols_that_do_not_fit_the_columns_are_refused(engine: Engine) -> None:
    with pytest.raises(ShapeError, match="2 symbols for 3 columns"):
        operations.covariance(np.ones((4, 3)), engine=engine, symbols=("A", "B"))


def test_a_float32_covariance_past_its_range_is_refused(engine: Engine) -> None:
    X = np.array([[1e25], [-1e25], [3e25]], np.float32)
    with pytest.raises(InputError, match="float64"):
        operations.covariance(X, engine=engine)
    assert operations.correlation(X, engine=engine).matrix[0, 0] == 1


@pytest.mark.parametrize(
    ("level", "step"), [(1.1, 1e-5), (2400.0, 0.01), (1e5, 0.01), (1e7, 0.01), (1e7, 1.0)]
)
def test_float32_prices_of_any_level_are_within_a_millionth_of_exact(
    engine: Engine, level: float, step: float
) -> None:
    moves = np.random.default_rng(7).integers(-30, 31, (700, 3))
    moves[:, 1] += moves[:, 0]
    X = (level + np.cumsum(moves, axis=0) * step).astype(np.float32)
    exact = exact_covariance(X[:, :])
    assert relative(operations.covariance(X, engine=engine).matrix, exact) < 1e-6
    assert np.abs(operations.correlation(X, engine=engine).matrix - exact_correlation(X)).max() < 1e-6


def test_two_hundred_thousand_float32_gross_returns_are_within_a_millionth_of_exact(engine: Engine) -> None:
    random = np.random.default_rng(7)
    x = (random.standard_normal(200_000) * 1e-4 + 1).astype(np.float32)
    y = (random.standard_normal(200_000) * 1e-4 + 1 + (x - 1) * 0.5).astype(np.float32)
    X = np.column_stack([x, y])
    wide = X.astype(np.longdouble)
    wide -= wide.mean(axis=0)
    exact = (wide.T @ wide / (len(X) - 1)).astype(float)
    assert relative(operations.covariance(X, engine=engine).matrix, exact) < 1e-6


def test_float32_subnormals_and_giants_survive_in_a_correlation(engine: Engine) -> None:
    base = np.array([[1.0, 3.0], [2.0, 1.0], [4.0, 9.0], [7.0, 2.0]])
    for scale in (1e-45, 1e-38, 1e30, 1e37):
        X = (base * scale).astype(np.float32)
        found = operations.correlation(X, engine=engine).matrix
        assert np.abs(found - exact_correlation(X)).max() < 1e-6


def test_one_fat_column_does_not_spoil_a_thin_one(engine: Engine) -> None:
    """A spike in one column must not take the digits of another."""
    X = np.random.default_rng(8).standard_normal((100, 3)) * np.array([1e-8, 1e12, 1.0])
    X[50, 1] = 1e16
    assert np.abs(operations.correlation(X, engine=engine).matrix - exact_correlation(X)).max() < 1e-12


def test_the_result_says_where_it_was_computed(engine: Engine) -> None:
    found = operations.gram(np.ones((3, 2)), engine=engine)
    assert (found.engine, found.device) == (engine.name, engine.device)
    assert found.counts is None
    assert found.seconds > 0
    assert "2x2 float64" in repr(found)


def test_as_matrix_is_what_operations_expect(engine: Engine) -> None:
    found = operations.covariance(as_matrix([[1, 2], [3, 5], [4, 4]]), engine=engine).matrix
    assert relative(found, exact_covariance(np.array([[1.0, 2], [3, 5], [4, 4]]))) < 1e-15


@pytest.mark.parametrize("ddof", [-1, 1.5, True, None])
def test_a_ddof_that_is_no_count_is_refused(ddof: Any) -> None:
    with open_engine("numpy") as engine, pytest.raises(OptionError, match=f"ddof is {ddof!r}"):
        operations.covariance(np.eye(3), engine=engine, ddof=ddof)
