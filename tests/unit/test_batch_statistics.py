"""Covariances and correlations of batches, by the public functions and on a device, and who computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_batches import assert_moments, assert_products, batch, batches, tensor_engine

import mtbridge
from mtbridge.compute import Engine
from mtbridge.compute.auto import AutoEngine
from mtbridge.compute.calibration import Calibration, Identity
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import InputError, MissingValueError, OptionError
from mtbridge.matrix import DTYPES
from tests.conftest import DEVICE

# fixtures
__all__ = ["batches", "tensor_engine"]

UNKNOWN = Identity("a device", "kernels", "settings", "a BLAS", 2)


@pytest.fixture(params=["numpy_engine", "opencl_engine", "tiled_engine", "tensor_engine"])
def some_engine(request: pytest.FixtureRequest) -> Engine:
    """The engines whose batches go different ways."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "windows"])
def test_a_public_function_takes_a_batch(some_engine: Engine, order: str, dtype: str) -> None:
    X = batch((6, 31, 17), dtype, order).copy() if order == "C" else batch((6, 31, 17), dtype, order)
    if order == "C":
        X[1, 4, 2] = np.nan
        X[3, 5, 16] = np.inf
        X[4, :, 3] = 7
    for ddof in (0, 1):
        found = mtbridge.covariance(X, engine=some_engine, ddof=ddof)
        assert found.dtype == X.dtype
        for m in range(len(X)):
            one = mtbridge.covariance(X[m].astype(np.float64), engine="numpy", ddof=ddof)
            root = np.sqrt(np.diagonal(one))
            bound = 40 * np.finfo(dtype).eps * np.outer(root, root)
            assert np.array_equal(np.isnan(found[m]), np.isnan(one))
            assert (np.abs(found[m] - one) <= bound)[~np.isnan(one)].all()
            assert np.array_equal(found[m], found[m].T, equal_nan=True)
    found = mtbridge.correlation(X, engine=some_engine)
    for m in range(len(X)):
        one = mtbridge.correlation(X[m].astype(np.float64), engine="numpy")
        np.testing.assert_allclose(found[m], one, rtol=0, atol=40 * np.finfo(dtype).eps)
        assert np.isin(np.diagonal(found[m]), [1, np.nan]).all() or np.isnan(np.diagonal(found[m])).any()


def test_a_result_of_a_batch_counts_the_rows_of_each_matrix(some_engine: Engine) -> None:
    X = batch((4, 20, 8), "float64").reshape(2, 2, 20, 8).copy()
    X[1, 0, :3, 5] = np.nan
    result = mtbridge.covariance(X, engine=some_engine, full=True)
    assert result.matrix.shape == (2, 2, 8, 8)
    assert np.array_equal(result.effective_rows, [[20, 20], [17, 20]])
    assert result.counts is not None
    assert result.counts[1, 0, 5, 0] == 17
    assert result.counts[1, 0, 4, 4] == 20
    few = mtbridge.covariance(X, engine=some_engine, min_periods=18)
    assert np.isnan(few[1, 0, 5]).all()
    assert np.isfinite(few[0]).all()
    assert np.isnan(mtbridge.covariance(X, engine=some_engine, min_periods=21)).all()
    assert np.isnan(mtbridge.covariance(X, engine=some_engine, ddof=20)).all()
    dropped = mtbridge.covariance(X, engine=some_engine, missing="drop")
    np.testing.assert_allclose(dropped[1, 0], np.cov(X[1, 0, 3:], rowvar=False), rtol=1e-12)
    with pytest.raises(MissingValueError):
        mtbridge.covariance(X, engine=some_engine, missing="error")


def test_a_covariance_past_float32_is_refused(some_engine: Engine) -> None:
    X = batch((4, 20, 8), "float32").copy()
    X[2, :, 1] *= np.float32(1e25)
    with pytest.raises(InputError, match="past the range of float32"):
        mtbridge.covariance(X, engine=some_engine)
    found = mtbridge.covariance(X, engine=some_engine, dtype="float64")
    np.testing.assert_allclose(found[2], np.cov(X[2].astype(float), rowvar=False), rtol=1e-6)


def test_an_answer_in_float64_of_float32_data_is_not_rounded_on_the_way(some_engine: Engine) -> None:
    X = batch((4, 20, 8), "float32")
    found = mtbridge.covariance(X, engine=some_engine, dtype="float64")
    expected = mtbridge.covariance(X.astype(np.float64), engine="numpy")
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=40 * np.finfo(float).eps * np.abs(expected).max()
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_covariances_stay_on_the_device(batches: OpenCLEngine, dtype: str) -> None:
    X = batch((6, 31, 17), dtype)
    for spoilt in (False, True):
        if spoilt:
            X = X.copy()
            X[3, 5, 16], X[1, :, 2] = np.nan, 4
        there: Any = batches.upload(X)
        found = batches.covariance_on_device(there)
        expected = batches.moments(X, dtype=np.dtype(np.float64)).covariance()
        root = np.sqrt(np.einsum("mii->mi", expected))
        bound = 8 * np.finfo(dtype).eps * root[:, np.newaxis] * root[:, :, np.newaxis]
        answer = batches.download(found)
        assert answer.dtype == X.dtype
        assert np.array_equal(np.isnan(answer), np.isnan(expected))
        assert (np.abs(answer - expected) <= bound)[~np.isnan(expected)].all()
    assert np.isnan(batches.download(batches.covariance_on_device(there, ddof=31))).all()


@pytest.mark.parametrize("option", [{"weights": np.ones(20)}, {"annualise": 252}])
def test_what_is_for_one_matrix_is_refused_for_a_batch(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="is for one matrix"):
        mtbridge.covariance(batch((4, 20, 8), "float64"), engine="numpy", **option)
    with pytest.raises(OptionError, match="method is for one matrix"):
        mtbridge.correlation(batch((4, 20, 8), "float64"), engine="numpy", method="kendall")


@pytest.mark.parametrize("count", [3, 3000])
def test_auto_gives_batches_of_small_matrices_to_the_device(verdict: Any, count: int) -> None:
    X = batch((count, 20, 8), "float64")
    with AutoEngine(DEVICE, calibration=Calibration(UNKNOWN, {})) as engine:
        assert_products(engine.gram(X), X.swapaxes(1, 2), X)
        assert engine.used.name == ("opencl" if count > 3 else "numpy")
        assert_moments(engine.moments(X), X, "float64")
        assert engine.used.name == ("opencl" if count > 3 else "numpy")
        assert_products(engine.gram(X, X), X.swapaxes(1, 2), X)
        there = engine.upload(X)
        assert np.array_equal(engine.download(engine.gram(there)), engine.download(engine.gram(there)))
