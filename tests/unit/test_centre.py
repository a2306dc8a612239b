"""Columns centred and scaled before any product."""

from __future__ import annotations

import numpy as np
import pytest

from mtbridge.compute.centre import centre


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e5, 1e30])
def test_values_and_origin_give_the_data_back(dtype: str, scale: float) -> None:
    X = (np.random.default_rng(0).standard_normal((50, 3)) * scale + scale).astype(dtype)
    centred = centre(X)
    back = np.ldexp(centred.values.astype(float), centred.exponent.astype(np.int32)) + centred.origin
    assert centred.values.dtype == np.dtype(dtype)
    # the rounding of a deviation, not of the value: at most the range of a column times eps
    assert np.abs(back - X).max() <= 2 * np.finfo(dtype).eps * np.ptp(X.astype(float))


@pytest.mark.parametrize("scale", [1e-308, 1e-200, 1e200, 1e308])
def test_extreme_columns_come_out_near_one(scale: float) -> None:
    centred = centre(np.array([[1.0], [0.5], [-1.0]]) * scale)
    assert 0.25 <= np.abs(centred.values).max() <= 1


def test_every_float32_column_comes_out_near_one() -> None:
    X = np.array([[1e30, 1e-30, 1e7], [2e30, 3e-30, 1e7 + 1]], np.float32)
    assert (np.abs(centre(X).values).max(axis=0) <= 1).all()
    assert (np.abs(centre(X).values).max(axis=0) >= 0.125).all()


def test_a_constant_is_exactly_zero_even_where_its_mean_rounds_away() -> None:
    X = np.column_stack([np.full(1448, 1.81), np.full(1448, 0.1), np.arange(1448.0)])
    centred = centre(X)
    assert not centred.values[:, :2].any()
    assert (centred.origin[:2] == [1.81, 0.1]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_column_with_nan_or_inf_is_nan_whole_and_alone(value: float) -> None:
    X = np.arange(12.0).reshape(4, 3)
    X[1, 1] = value
    values = centre(X).values
    assert np.isnan(values[:, 1]).all()
    assert np.isfinite(values[:, [0, 2]]).all()


def test_the_data_stay_as_they_were() -> None:
    X = np.arange(6.0).reshape(3, 2)
    kept = X.copy()
    centre(X)
    assert np.array_equal(X, kept)
