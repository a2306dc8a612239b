"""Centred float32 columns in halves: panels and sums everywhere, tensor cores where there are some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from given_engines import WAYS, in_halves

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.split_mma import (
    MOST_BIAS,
    MOST_ERROR,
    fault_in,
    fault_of,
    products,
)
from mtbridge.matrix import Matrix

AWKWARD = [(1, 1), (1, 5), (2, 3), (31, 32), (33, 31), (37, 130), (64, 129), (65, 33), (2049, 70), (4097, 9)]
"""(rows, columns): beside a stage, a tile and the sums in registers."""


@pytest.fixture(scope="module")
def plain() -> Iterator[OpenCLEngine]:
    with in_halves("plain", "split_mma") as engine:
        yield engine


@pytest.fixture(scope="module")
def nvidia() -> Iterator[OpenCLEngine]:
    with in_halves("nvidia", "split_mma") as engine:
        yield engine


@pytest.fixture(params=WAYS)
def engine(request: pytest.FixtureRequest) -> OpenCLEngine:
    found: OpenCLEngine = request.getfixturevalue(request.param)
    return found


def found_and_exact(engine: OpenCLEngine, X: Matrix) -> tuple[Matrix, Matrix]:
    assert engine.centred_form is not None
    return products(engine.kernels_device, engine.centred_form, np.ascontiguousarray(X))


def data(rows: int, columns: int, seed: int = 1) -> Matrix:
    random = np.random.default_rng(seed)
    return 1000 + random.standard_normal((rows, columns)) * np.exp(3 * random.standard_normal(columns))


@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_sums_are_within_a_millionth_of_exact_at_awkward_sizes(
    engine: OpenCLEngine, shape: tuple[int, int]
) -> None:
    found, exact = found_and_exact(engine, data(*shape))
    assert not fault_in(found, exact)


def test_heavy_tails_lose_no_more_than_a_millionth(engine: OpenCLEngine) -> None:
    X = np.random.default_rng(2).standard_t(2, (3000, 40))
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)


def test_the_diagonal_is_not_biased_however_long_the_sums(engine: OpenCLEngine) -> None:
    """Tensor cores cut off: sums that they added up alone would be too small by 6e-5 at this length."""
    found, exact = found_and_exact(engine, np.random.default_rng(3).standard_normal((8192, 20)))
    bias = np.mean(np.diagonal(found) / np.diagonal(exact) - 1)
    assert abs(bias) <= MOST_BIAS


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_prices_of_few_levels_stay_within_a_millionth(engine: OpenCLEngine, levels: int) -> None:
    """All roundings of such columns fall alike, and add up."""
    X = 1e5 + 0.01 * np.random.default_rng(levels).integers(0, levels, (8192, 30))
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)


def test_the_same_call_gives_the_same_bits(engine: OpenCLEngine) -> None:
    X = data(700, 150)
    first, *others = (engine.moments(X, dtype=np.dtype(np.float32)).comoment for _ in range(4))
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_constant_columns_have_covariances_of_exactly_zero(engine: OpenCLEngine) -> None:
    X = data(300, 40)
    X[:, 7], X[:, 39] = 0.1, 1e5
    moments = engine.moments(X, dtype=np.dtype(np.float32))
    assert not moments.covariance()[7].any()
    assert not moments.covariance()[:, 39].any()
    assert np.isnan(moments.correlation()[7]).all()


def test_columns_that_repeat_another_correlate_by_exactly_one(engine: OpenCLEngine) -> None:
    X = data(1000, 140)
    X[:, 33], X[:, 131] = X[:, 5], -X[:, 5]
    R = engine.moments(X, dtype=np.dtype(np.float32)).correlation()
    assert R[5, 33] == R[33, 5] == 1
    assert R[5, 131] == R[131, 33] == -1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_agree_with_float64_in_every_order_and_type(
    engine: OpenCLEngine, dtype: Any, order: Any
) -> None:
    X = np.asarray(data(500, 70), dtype, order=order)
    found = engine.moments(X, dtype=np.dtype(np.float32))
    exact = np.cov(X.astype(np.float64), rowvar=False)
    norms = np.sqrt(np.diagonal(exact))
    assert (np.abs(found.covariance() - exact) <= MOST_ERROR * np.outer(norms, norms)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_column_that_is_not_finite_spoils_no_other(engine: OpenCLEngine, bad: float) -> None:
    X = data(300, 20)
    X[5, 3] = bad
    R = engine.moments(X, dtype=np.dtype(np.float32)).correlation()
    others = np.delete(np.arange(20), 3)
    assert np.isnan(R[3]).all()
    expected = np.corrcoef(X[:, others], rowvar=False)
    assert np.abs(R[np.ix_(others, others)] - expected).max() <= MOST_ERROR


def test_the_check_of_a_device_finds_nothing_wrong(engine: OpenCLEngine) -> None:
    assert engine.centred_form is not None
    assert not fault_of(engine.kernels_device, engine.centred_form)


def test_the_check_sees_a_wrong_sum_a_bias_and_a_lost_triangle() -> None:
    exact = np.cov(data(50, 6), rowvar=False)
    assert not fault_in(exact.copy(), exact)
    wrong = exact.copy()
    wrong[1, 2] = wrong[2, 1] = wrong[1, 2] + 1e-5 * np.sqrt(exact[1, 1] * exact[2, 2])
    assert "wrong" in fault_in(wrong, exact)
    assert "diagonal" in fault_in(exact * (1 - 6e-7), exact)
    assert "symmetric" in fault_in(np.triu(exact) + np.tril(exact, -1) * (1 + 1e-9), exact)
    assert fault_in(np.full_like(exact, np.nan), exact)
