"""Covariance matrices that stay on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_matrices import lying

from mtbridge.compute import engine, slices
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import InputError
from mtbridge.matrix import DTYPES, Matrix

TOLERANCE = {"float32": 4e-7, "float64": 1e-12}
"""Of a covariance, as a share of its two standard deviations."""


@pytest.fixture
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the host centres."""

    def refused(*_: object) -> None:
        raise AssertionError("the host centred")

    monkeypatch.setattr(engine, "centre", refused)


def prices(rows: int, columns: int, dtype: str) -> Matrix:
    random = np.random.default_rng(rows + columns)
    return (2000 + random.standard_normal((rows, columns)).cumsum(axis=0)).astype(dtype)


def exact(X: Matrix, ddof: int = 1) -> Matrix:
    wide = X.astype(np.longdouble)
    wide -= wide.mean(axis=0)
    return (wide.T @ wide / (len(X) - ddof)).astype(float)


def on_device(engine: OpenCLEngine, X: Matrix, **options: int) -> Matrix:
    held: Any = engine.upload(X)
    found = engine.covariance_on_device(held, **options)
    assert found.device is engine.kernels_device
    return engine.download(found)


def near(found: Matrix, right: Matrix, tolerance: float) -> bool:
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right)))
    return bool((np.abs(found - right) <= tolerance * scale).all())


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "columns"), [(2, 5), (3, 1), (127, 63), (128, 64), (129, 65), (300, 97), (1000, 3)]
)
def test_a_covariance_stays_on_the_device(
    device_engine: OpenCLEngine, rows: int, columns: int, dtype: str, order: str
) -> None:
    X = lying(prices(rows, columns, dtype), order)
    found = on_device(device_engine, X)
    assert found.dtype == X.dtype
    assert near(found, exact(X), TOLERANCE[dtype])
    assert np.array_equal(found, found.T)


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_that_of_moments(tiled_engine: OpenCLEngine, dtype: str) -> None:
    X = prices(300, 70, dtype)
    X[5, 3], X[:, 7] = np.nan, 0.1
    expected = tiled_engine.moments(X).covariance(3)
    found = on_device(tiled_engine, X, ddof=3)
    # a division is done as a product, and the answer is rounded to its type
    steps = 4 * np.finfo(dtype).eps
    assert np.allclose(found, expected, rtol=steps, atol=0, equal_nan=True)
    assert np.isnan(found[3]).all()
    assert not np.delete(found[7], 3).any()


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tall_matrix_is_packed_slab_by_slab(
    tiled_engine: OpenCLEngine, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    X = prices(5000, 3, dtype)
    assert near(on_device(tiled_engine, X), exact(X), 1e-6 if dtype == "float32" else 1e-13)


@pytest.mark.usefixtures("no_host")
def test_what_the_rounding_of_an_origin_leaves_is_taken_out(tiled_engine: OpenCLEngine) -> None:
    """At this level an origin is off by some 1e-4 of a deviation: 1e-8 of a variance, were it left there."""
    random = np.random.default_rng(1)
    X = 1e12 + np.round(random.standard_normal((400, 5)) * 2**13) * 2.0**-13
    assert near(on_device(tiled_engine, X), exact(X), 1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "ddof"), [(1, 1), (2, 2), (2, 5)])
def test_too_few_rows_have_no_covariance(
    device_engine: OpenCLEngine, rows: int, ddof: int, dtype: str
) -> None:
    assert np.isnan(on_device(device_engine, prices(rows, 3, dtype), ddof=ddof)).all()


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
def test_an_empty_matrix_has_the_answer_of_the_host(
    device_engine: OpenCLEngine, shape: tuple[int, int]
) -> None:
    found = on_device(device_engine, np.empty(shape))
    assert found.shape == (shape[1], shape[1])
    assert np.isnan(found).all()


@pytest.mark.parametrize("scale", [1e-170, 1e-40, 1e120, 1e307])
def test_what_is_extreme_is_left_to_the_host(device_engine: OpenCLEngine, scale: float) -> None:
    X = prices(200, 4, "float64") - 2000
    X[:, 2] *= scale
    found, expected = on_device(device_engine, X), device_engine.moments(X).covariance()
    assert np.allclose(found, expected, rtol=1e-12, atol=0)


def test_a_covariance_past_the_range_of_float32_is_refused(device_engine: OpenCLEngine) -> None:
    X = prices(200, 4, "float32")
    X[:, 2] *= np.float32(1e20)
    with pytest.raises(InputError, match="float32"):
        on_device(device_engine, X)
    X[:, 2] *= np.float32(1e-4)
    assert near(on_device(device_engine, X), exact(X), TOLERANCE["float32"])


def test_a_matrix_of_another_engine_is_refused(
    opencl_engine: OpenCLEngine, tiled_engine: OpenCLEngine
) -> None:
    held: Any = tiled_engine.upload(np.ones((30, 3)))
    with pytest.raises(InputError, match="another engine"):
        opencl_engine.covariance_on_device(held)


def test_short_memory_is_left_to_the_host(
    tiled_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = prices(100, 40, "float64")
    monkeypatch.setattr(tiled_engine, "_limit", 8 * 40 * 39)
    assert near(on_device(tiled_engine, X), exact(X), TOLERANCE["float64"])
