"""Answers that go into an array of the caller's, and covariances that a device makes whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import Engine, operations
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import ShapeError
from mtbridge.matrix import DTYPES


@pytest.fixture
def copying(verdict: Verdict) -> Iterator[OpenCLEngine]:
    """An engine on a device that is taken for one with memory of its own."""
    with open_opencl("cpu") as opened:
        opened.centred_from = 0
        opened._device.host_memory = False
        yield opened


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 2), (0, 4, 3), (37, 211, 11), (130, 64, 129)])
def test_products_go_into_an_array_of_the_callers(
    copying: OpenCLEngine, numpy_engine: Engine, tiled_engine: Engine, shape: tuple[int, int, int], dtype: str
) -> None:
    rows, inner, columns = shape
    random = np.random.default_rng(6)
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    for one in (copying, numpy_engine, tiled_engine):
        for empty in (one.empty_pinned, np.empty):
            product, square = empty((rows, columns), dtype), empty((columns, columns), dtype)
            product[...] = square[...] = np.nan
            assert one.multiply(A, B, out=product) is product
            assert np.array_equal(product, one.multiply(A, B))
            product[...] = np.nan
            assert one.gram(np.asfortranarray(A.T), B, out=product) is product
            assert np.array_equal(product, one.multiply(A, B))
            assert one.gram(B, out=square) is square
            assert np.array_equal(square, one.gram(B))


def test_uploaded_matrices_and_batches_give_products_in_an_array_too(copying: OpenCLEngine) -> None:
    A, B = np.random.default_rng(7).standard_normal((2, 3, 20, 20))
    out = copying.empty_pinned((20, 20))
    left: Any = copying.upload(A[0])
    right: Any = copying.upload(B[0])
    assert copying.multiply(left, right, out=out) is out
    assert np.array_equal(out, copying.multiply(A[0], B[0]))
    assert copying.gram(left, out=out) is out
    assert np.array_equal(out, copying.gram(A[0]))
    many = copying.empty_pinned((3, 20, 20))
    assert copying.multiply(A, B, out=many) is many
    assert np.array_equal(many, copying.multiply(A, B))
    assert copying.gram(A, out=many) is many
    assert np.array_equal(many, copying.gram(A))


def test_products_in_blocks_fill_the_whole_array(verdict: Verdict) -> None:
    random = np.random.default_rng(8)
    A, B = random.standard_normal((133, 301)), random.standard_normal((301, 97))
    with open_opencl("cpu", largest_buffer=20_000) as engine:
        product, square = np.full((133, 97), np.nan), np.full((97, 97), np.nan)
        engine.multiply(A, B, out=product)
        engine.gram(B, out=square)
        assert np.array_equal(product, engine.multiply(A, B))
        assert np.array_equal(square, engine.gram(B))


@pytest.mark.parametrize("missing", ["pairwise", "drop", "error"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_covariances_go_into_an_array_of_the_callers(
    copying: OpenCLEngine, numpy_engine: Engine, missing: operations.Missing, dtype: str
) -> None:
    X = 50 + np.random.default_rng(9).standard_normal((90, 21)).astype(dtype)
    gaps = X.copy()
    gaps[3:7, 5] = np.nan
    for one in (copying, numpy_engine):
        for data in (X,) if missing == "error" else (X, gaps):
            out = one.empty_pinned((21, 21), dtype)
            out[...] = np.nan
            found = operations.covariance(data, engine=one, missing=missing, out=out)
            assert found.matrix is out
            again = operations.covariance(data, engine=one, missing=missing)
            assert np.array_equal(out, again.matrix)
            assert np.array_equal(found.counts, again.counts)  # type: ignore[arg-type]


def test_an_array_that_an_answer_does_not_fit_is_refused(copying: OpenCLEngine) -> None:
    A = np.ones((4, 3))
    frozen = np.empty((3, 3))
    frozen.flags.writeable = False
    for out, words in (
        (np.empty((3, 4)), r"it must be float64 of \(3, 3\)"),
        (np.empty((3, 3), np.float32), r"it must be float64 of \(3, 3\)"),
        (np.empty((3, 3), order="F"), "not C-ordered"),
        (frozen, "read-only"),
        (A[:3], "memory of an operand"),
    ):
        for call in (
            lambda out: copying.gram(A, out=out),
            lambda out: copying.multiply(A.T, A, out=out),
            lambda out: operations.covariance(A, engine=copying, out=out),
        ):
            with pytest.raises(ShapeError, match=words):
                call(out)


# covariances that the device makes whole


@pytest.fixture
def whole(verdict: Verdict) -> Iterator[OpenCLEngine]:
    """An engine with the kernels of graphics cards, which make covariance matrices whole."""
    with open_opencl("cpu", tiled=64) as opened:
        opened.centred_from = 0
        yield opened


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (130, 67), (67, 130)])
@pytest.mark.parametrize("ddof", [0, 1])
def test_a_complete_covariance_is_the_exact_one(
    whole: OpenCLEngine, shape: tuple[int, int], dtype: str, ddof: int
) -> None:
    X = 1e3 + np.random.default_rng(10).standard_normal(shape).astype(dtype)
    X[:, ::9] = 5
    found = whole.complete_covariance(X, dtype=np.dtype(dtype), ddof=ddof)
    assert found is not None
    Z = X.astype(np.longdouble)
    Z -= Z.mean(axis=0)
    exact = Z.T @ Z / (len(X) - ddof)
    deviations = np.sqrt(np.diagonal(exact))
    assert found.matrix.dtype == np.dtype(dtype)
    assert np.array_equal(found.matrix, found.matrix.T)
    bound = (len(X) + 4) * np.finfo(dtype).eps * np.outer(deviations, deviations)
    assert (np.abs(found.matrix - exact) <= bound).all()
    assert (found.matrix[:, ::9] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_missing_is_noticed_and_bits_are_those_of_before(whole: OpenCLEngine, dtype: str) -> None:
    kind = np.dtype(dtype)
    X = np.random.default_rng(11).standard_normal((150, 40)).astype(dtype)
    first = whole.complete_covariance(X, dtype=kind, ddof=1)
    assert first is not None
    for bad in (np.nan, np.inf, -np.inf):
        gaps = X.copy()
        gaps[149, 39] = bad
        # one that is looked at afterwards, and one before
        assert whole.complete_covariance(gaps, dtype=kind, ddof=1) is None
        assert whole.complete_covariance(gaps, dtype=kind, ddof=1) is None
        again = whole.complete_covariance(X, dtype=kind, ddof=1)
        assert again is not None
        assert again.matrix.tobytes() == first.matrix.tobytes()


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        *((scale, dtype) for scale in (1e-30, 1e-6, 1e6, 1e18, 1e30) for dtype in DTYPES),
        *((scale, "float64") for scale in (1e-170, 1e200)),
    ],
)
def test_extreme_columns_are_right_or_left_to_the_host(whole: OpenCLEngine, scale: float, dtype: str) -> None:
    X = np.random.default_rng(12).standard_normal((70, 5)).astype(dtype)
    X[:, 2] *= np.array(scale, dtype)
    found = whole.complete_covariance(X, dtype=np.dtype(dtype), ddof=1)
    if found is None:
        assert abs(np.log10(scale)) > 10, "an ordinary column"
        return
    # long double has the range
    exact = np.cov(X.astype(np.longdouble), rowvar=False, dtype=np.longdouble)
    root = np.sqrt(np.diagonal(exact))
    error = np.abs(found.matrix - exact) / root / root[:, np.newaxis]
    assert error.max() <= 70 * np.finfo(dtype).eps
