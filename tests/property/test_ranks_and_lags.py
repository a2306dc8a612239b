"""Ranks, lags and weights of small hostile matrices, against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import exact
import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mtbridge.compute import Engine, open_engine
from mtbridge.compute.lagged import lagged
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.weights import weighted_correlation, weighted_covariance

NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-170, -3e-170, 1e200, -1e200, 1e5 + 0.01, INF, -INF, NAN, NAN]
FINITE = [value for value in SPECIAL if math.isfinite(value)]
HOSTILE = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=True, allow_infinity=True, width=64),
)
WEIGHABLE = st.one_of(st.sampled_from(FINITE), st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
HARD = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

Engines = dict[str, Engine]


def matrices(element: st.SearchStrategy[float], columns: int = 4) -> st.SearchStrategy[NDArray[np.float64]]:
    """Matrices of up to 9 rows, of which several columns may be copies of one another."""

    def built(rows: int) -> st.SearchStrategy[NDArray[np.float64]]:
        column = st.lists(element, min_size=rows, max_size=rows)
        return st.lists(column, min_size=1, max_size=columns).map(
            lambda found: np.array(found, np.float64).reshape(len(found), rows).T
        )

    return st.integers(0, 9).flatmap(built)


@pytest.fixture(scope="module")
def engines(opencl_engine: Engine, open_tiled: Callable[[], OpenCLEngine]) -> Any:
    with (
        open_tiled() as tiled,
        open_engine("numpy") as numpy,
        open_engine("serial") as serial,
    ):
        tiled.centred_from = 0
        yield {"opencl": opencl_engine, "tiled": tiled, "numpy": numpy, "serial": serial}


def exact_ratio(product: int, left: int, right: int) -> float:
    if not left or not right:
        return NAN
    with mpmath.workdps(60):
        return float(mpmath.mpf(product) / mpmath.sqrt(mpmath.mpf(left) * right))


def exact_spearman(x: Sequence[float], y: Sequence[float]) -> float:
    rows = exact.common_rows(x, y)
    doubled = [[sum(2 * (u < v) + (u == v) for u in side) for v in side] for side in zip(*rows, strict=True)]
    if not rows:
        return NAN
    a, b = ([rank - len(rows) for rank in side] for side in doubled)
    return exact_ratio(
        sum(u * v for u, v in zip(a, b, strict=True)), sum(u * u for u in a), sum(v * v for v in b)
    )


def exact_kendall(x: Sequence[float], y: Sequence[float]) -> float:
    rows = exact.common_rows(x, y)
    signs = [((u > a) - (u < a), (v > b) - (v < b)) for at, (u, v) in enumerate(rows) for a, b in rows[:at]]
    return exact_ratio(
        sum(a * b for a, b in signs), sum(a * a for a, _ in signs), sum(b * b for _, b in signs)
    )


@pytest.mark.parametrize(("method", "reference"), [("spearman", exact_spearman), ("kendall", exact_kendall)])
@HARD
@given(X=matrices(HOSTILE, 10))
def test_ranks_are_right_to_the_last_bits(
    engines: Engines, method: str, reference: Any, X: NDArray[np.float64]
) -> None:
    columns = range(X.shape[1])
    expected = np.array([[reference(X[:, i], X[:, j]) for j in columns] for i in columns])
    here = (~np.isnan(X)).astype(int)
    for name, engine in engines.items():
        matrix, counts = getattr(engine, method)(X)
        # a product, a root and a quotient are rounded
        np.testing.assert_allclose(matrix, expected, rtol=4e-16, atol=0, err_msg=name)
        assert np.array_equal(np.abs(expected) == 1, np.abs(matrix) == 1), name
        assert np.array_equal(matrix, matrix.T, equal_nan=True), name
        assert np.array_equal(counts, here.T @ here), name


@HARD
@given(X=matrices(HOSTILE), data=st.data())
def test_ranks_do_not_depend_on_scale_order_or_company(
    engines: Engines, X: NDArray[np.float64], data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(X.shape[0])))
    columns = data.draw(st.permutations(range(X.shape[1])))
    more = np.arange(len(X), dtype=np.float64)[:, np.newaxis] % 2
    for name, engine in engines.items():
        for method in ("spearman", "kendall"):
            matrix, _ = getattr(engine, method)(X)
            moved, _ = getattr(engine, method)(X[np.ix_(rows, columns)])
            assert np.array_equal(moved, matrix[np.ix_(columns, columns)], equal_nan=True), name
            joined, _ = getattr(engine, method)(np.hstack([X, more]))
            assert np.array_equal(joined[:-1, :-1], matrix, equal_nan=True), name
            with np.errstate(over="ignore"):
                risen, _ = getattr(engine, method)(np.cbrt(X))
            unlike = len(np.unique(X)) != len(np.unique(np.cbrt(X)))
            assert unlike or np.array_equal(risen, matrix, equal_nan=True), name


@HARD
@given(X=matrices(HOSTILE), ddof=st.integers(0, 2), least=st.integers(1, 4))
@example(X=np.array([[0.0], [0.0], [1e200], [-1e200], [8.1e108]]), ddof=0, least=1)
@example(X=np.array([[0.0], [INF], [NAN]]), ddof=0, least=1)
def test_lags_are_right_on_each_overlap(
    engines: Engines, X: NDArray[np.float64], ddof: int, least: int
) -> None:
    most = 3
    for name, engine in engines.items():
        covariance, counts = lagged(engine, X, most, "covariance", ddof, least)
        correlation, _ = lagged(engine, X, most, "correlation", min_periods=least)
        for lag in range(-most, most + 1):
            for i in range(X.shape[1]):
                for j in range(X.shape[1]):
                    x, y = shifted(X[:, i], X[:, j], lag)
                    at = (most + lag, i, j)
                    what = f"{name}, lag {lag}, columns {i} and {j}"
                    assert counts[at] == len(exact.common_rows(x, y)), what
                    expected = exact.covariance(x, y, ddof=ddof, min_periods=least)
                    scale = exact.scale(x, y) / max(counts[at] - ddof, 1)
                    close(covariance[at], expected, 1e-12 * scale, what)
                    close(correlation[at], exact.correlation(x, y, min_periods=least), 1e-12, what)


@HARD
@given(X=matrices(WEIGHABLE), data=st.data())
def test_weighted_answers_are_right(engines: Engines, X: NDArray[np.float64], data: st.DataObject) -> None:
    rows = len(X)
    frequency = data.draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows))
    reliability = data.draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 1e-9, 1e9]), min_size=rows, max_size=rows)
    )
    ddof = data.draw(st.integers(0, 2))
    weights = [f * Fraction(a) for f, a in zip(frequency, reliability, strict=True)]
    if rows and not sum(weights):
        return
    total = sum(weights, Fraction(0))
    spread = sum((f * Fraction(a) ** 2 for f, a in zip(frequency, reliability, strict=True)), Fraction(0))
    effective = total * total / spread if spread else Fraction(0)
    # where it is ddof but for the last bits, so is the divisor
    if effective != ddof and abs(effective - ddof) < Fraction(1, 10**6):
        return
    for name, engine in engines.items():
        options: dict[str, Any] = {"engine": engine, "frequency": frequency, "reliability": reliability}
        covariance, found = weighted_covariance(X, ddof=ddof, **options)
        correlation, _ = weighted_correlation(X, **options)
        assert found == pytest.approx(float(effective), rel=1e-14)
        if abs(found - ddof) < 1e-9:
            continue
        for i in range(X.shape[1]):
            for j in range(X.shape[1]):
                what = f"{name}, columns {i} and {j}"
                kept = [row for row in range(rows) if weights[row]]
                x, y = X[kept, i], X[kept, j]
                sums = exact.sums(x, y, [weights[row] for row in kept])
                assert sums is not None
                _, product, left, right = sums
                if effective <= ddof:
                    assert math.isnan(covariance[i, j]), what
                else:
                    divisor = total * (1 - ddof / effective)
                    scale = root(left / divisor * (right / divisor))
                    close(covariance[i, j], exact.to_float(product / divisor), 1e-12 * scale, what)
                if left and right:
                    with mpmath.workdps(60):
                        expected = float(real(product) / mpmath.sqrt(real(left * right)))
                    close(correlation[i, j], expected, 1e-12, what)
                else:
                    assert math.isnan(correlation[i, j]), what


def shifted(x: NDArray[Any], y: NDArray[Any], lag: int) -> tuple[list[float], list[float]]:
    """The earlier rows of x with the rows of y `lag` later; for a negative lag the other way round."""
    if lag < 0:
        earlier, later = shifted(y, x, -lag)
        return later, earlier
    return x[: max(len(x) - lag, 0)].tolist(), y[lag:].tolist()


def real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def root(value: Fraction) -> float:
    with mpmath.workdps(60):
        return float(mpmath.sqrt(real(value)))


def close(found: float, expected: float, tolerance: float, what: str) -> None:
    if math.isnan(expected):
        assert math.isnan(found), what
    elif math.isinf(expected) and not math.isinf(tolerance):
        assert found == expected, what
    else:
        # a tolerance past the range of numbers allows both sides of its end
        off = 0.0 if found == expected else abs(found - expected)
        assert off <= tolerance + 5e-324, f"{what}: {found} for {expected}"
