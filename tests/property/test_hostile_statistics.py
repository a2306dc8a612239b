"""Numbers that were once wrong, each against the answer by its definition in fractions or whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import mtbridge
from mtbridge.compute import open_engine
from mtbridge.compute.engine import Engine
from mtbridge.compute.opencl_engine import open_opencl

WAYS = ("serial", "numpy", "opencl", "tiled")


@pytest.fixture(scope="module", params=WAYS)
def engine(request: pytest.FixtureRequest, opencl_engine: Engine) -> Iterator[Engine]:
    """Each engine; OpenCL with the kernels of a CPU and of a GPU, for small matrices too."""
    if request.param in ("serial", "numpy"):
        opened = open_engine(request.param)
    else:
        opened = open_opencl("cpu", tiled=64 if request.param == "tiled" else 0)
        opened.centred_from = 0
    with opened:
        yield opened


def exact_correlation(x: NDArray[Any], y: NDArray[Any]) -> float:
    """The correlation of two columns without NaN, from whole numbers."""
    left, right = ([Fraction(value) for value in column.tolist()] for column in (x, y))
    n = len(left)
    product = n * sum(a * b for a, b in zip(left, right, strict=True)) - sum(left) * sum(right)
    squares = [n * sum(a * a for a in column) - sum(column) ** 2 for column in (left, right)]
    share = product * product / (squares[0] * squares[1])
    return math.copysign(math.sqrt(share), product)


def test_a_pair_and_its_mirror_have_the_same_bits_whatever_columns_with_nan_lie_beside(
    engine: Engine,
) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        columns = int(random.integers(3, 20))
        X = random.standard_normal((40, columns)) * 10.0 ** random.integers(-3, 17, columns)
        gaps = random.random(columns) < 0.3
        X[:, gaps] = np.where(random.random((40, gaps.sum())) < 0.2, np.nan, X[:, gaps])
        for window in (2, 3, 9, 30):
            windows = mtbridge.rolling(X, window, min_periods=1, engine=engine)
            for matrices in (windows.covariance(ddof=0), windows.correlation()):
                np.testing.assert_array_equal(matrices, matrices.swapaxes(1, 2))


def test_equal_columns_correlate_by_exactly_one_after_thousands_of_rows(engine: Engine) -> None:
    rows = 600 if engine.name == "serial" else 6000
    x = 7 + np.random.default_rng(3).standard_normal(rows).cumsum() * 1e-3
    X = np.stack([x, x, -x, 2 * x], axis=1)
    right = np.array([[1, 1, -1, 1], [1, 1, -1, 1], [-1, -1, 1, -1], [1, 1, -1, 1]], np.float64)
    hollow = np.where(np.arange(rows)[:, None] % 7 == 3, np.nan, X)
    for given in (X, hollow):
        for windows in (
            mtbridge.expanding(given, engine=engine),
            mtbridge.ewm(given, span=60, engine=engine),
            mtbridge.ewm(given, span=5000, adjust=False, engine=engine),
        ):
            found = windows.correlation()[2:]
            np.testing.assert_array_equal(found, np.broadcast_to(right, found.shape))


@pytest.mark.parametrize("hollow", [False, True])
def test_subnormal_columns_have_the_covariances_of_their_multiples(engine: Engine, hollow: bool) -> None:
    random = np.random.default_rng(0)
    X = np.stack([random.standard_normal(12), random.integers(-99, 99, 12) * 5e-324], axis=1)
    if hollow:
        X[4, 0] = np.nan
    multiple = X * np.array([1.0, 2.0**600])
    for windows, right in (
        (mtbridge.expanding(X, engine=engine), mtbridge.expanding(multiple, engine="serial")),
        (mtbridge.ewm(X, alpha=0.25, engine=engine), mtbridge.ewm(multiple, alpha=0.25, engine="serial")),
    ):
        np.testing.assert_allclose(windows.correlation(), right.correlation(), rtol=0, atol=1e-15)
        covariance = windows.covariance()[..., 0, 1]
        # of subnormal numbers, one in the last place
        np.testing.assert_allclose(covariance, right.covariance()[..., 0, 1] * 2.0**-600, rtol=0, atol=5e-324)


def test_a_subnormal_column_correlates_as_its_whole_numbers_do(engine: Engine) -> None:
    random = np.random.default_rng(1)
    whole = random.integers(-999, 999, (9, 2)).astype(np.float64)
    X = np.stack([whole[:, 0], whole[:, 1] * 5e-324], axis=1)
    found = mtbridge.expanding(X, engine=engine).correlation()[-1, 0, 1]
    assert found == pytest.approx(exact_correlation(whole[:, 0], whole[:, 1]), abs=1e-15)


def test_huge_values_after_a_pause_of_many_half_lives_have_a_finite_covariance(engine: Engine) -> None:
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.array([0, 1, 501]), unit="h")
    frame = pd.DataFrame({"small": [-1.0, 0.5, 2.0], "huge": [2e300, 1e300, -1e300], "tiny": 5e-324}, times)
    found = mtbridge.ewm(frame, halflife="2h", engine=engine).covariance(frame=False)
    weights = [Fraction(1, 2**250) * Fraction(np.sqrt(0.5)), Fraction(1, 2**250), Fraction(1)]
    total = sum(weights)
    columns = [[Fraction(value) for value in frame[name]] for name in ("small", "huge")]
    means = [sum(w * v for w, v in zip(weights, column, strict=True)) / total for column in columns]
    products = sum(w * (a - means[0]) * (b - means[1]) for w, a, b in zip(weights, *columns, strict=True))
    right = products / (total - sum(w * w for w in weights) / total)
    assert found[2, 0, 1] == pytest.approx(float(right), rel=1e-13)


@pytest.mark.parametrize("share", [1e-3, 1e-9, 1e-14, 1e-30])
def test_one_heavy_row_costs_the_divisor_of_a_weighted_covariance_no_digits(
    engine: Engine, share: float
) -> None:
    X = np.array([[1.0, 2.0], [2.0, 5.0], [4.0, 1.0]])
    weights = [Fraction(1), Fraction(share), Fraction(share) * 2]
    found = mtbridge.covariance(X, weights=[float(weight) for weight in weights], engine=engine)
    total = sum(weights)
    columns = [[Fraction(value) for value in column] for column in X.T.tolist()]
    means = [sum(w * v for w, v in zip(weights, column, strict=True)) / total for column in columns]
    divisor = total - sum(w * w for w in weights) / total
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = sum(
            w * (a - means[i]) * (b - means[j])
            for w, a, b in zip(weights, columns[i], columns[j], strict=True)
        )
        assert found[i, j] == pytest.approx(float(products / divisor), rel=1e-14)


def few_levels(name: str, rows: int) -> NDArray[np.float64]:
    """Columns whose float32 products are all rounded alike, and one that is ordinary."""
    random = np.random.default_rng(rows)
    ordinary = random.standard_normal(rows)
    if name == "a lone outlier":
        one, other = np.full(rows, 0.1), np.full(rows, 0.7)
        one[rows // 3], other[rows // 2] = 0.9, 0.2
        other[rows // 3] = 0.7000001
    elif name == "two levels":
        one = np.where(np.arange(rows) % 2, 0.1234567, 0.7654321)
        other = np.where(random.random(rows) < 0.3, 0.3, one)
    elif name == "three levels":
        one, other = (random.choice([-0.01, 0.0, 0.01], rows, p=[0.1, 0.8, 0.1]) for _ in range(2))
    else:
        one = random.standard_normal(rows) * 1e-4
        other = random.standard_normal(rows) * 1e-4
        one[rows // 2] = other[rows // 2] = 1.0
    return np.stack([one, other, ordinary, one + 1e-3 * ordinary], axis=1)


@pytest.mark.parametrize("rows", [64, 100, 1000])
@pytest.mark.parametrize("name", ["a lone outlier", "two levels", "three levels", "still but for an outlier"])
@pytest.mark.parametrize("hollow", [False, True])
def test_float32_products_that_are_rounded_alike_stay_within_a_millionth(
    engine: Engine, name: str, rows: int, hollow: bool
) -> None:
    X = few_levels(name, rows)
    given = np.vstack([X, np.full((1, 4), np.nan)]) if hollow else X
    found = mtbridge.correlation(given, dtype="float32", engine=engine)
    covariance = mtbridge.covariance(given, dtype="float32", engine=engine)
    exact = np.array([[exact_correlation(x, y) for y in X.T] for x in X.T])
    np.testing.assert_allclose(found, exact, rtol=0, atol=5e-7)
    deviations = X.std(axis=0, ddof=1)
    scale = np.outer(deviations, deviations)
    np.testing.assert_allclose(covariance / scale, exact, rtol=0, atol=5e-7)
