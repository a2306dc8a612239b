"""Rolling matrices against exact fractions on hostile series, and against pandas on ordinary ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import exact
import mpmath
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mtbridge.compute import Engine
from mtbridge.compute.sequence import Wanted
from mtbridge.compute.windows import Rolling

Floats = NDArray[np.float64]
Kind = Callable[[np.random.Generator, int], Floats]
BATCHES, SERIES, ROWS = 20, 100, 26
"""2,000 series in all, as many pairs: each with the next one."""


def walk(random: np.random.Generator, rows: int) -> Floats:
    return random.standard_normal(rows).cumsum() + 10.0 ** random.integers(0, 9)


def spiked(random: np.random.Generator, rows: int) -> Floats:
    x = random.standard_normal(rows)
    x[random.random(rows) < 0.1] *= 1e12
    return x


def scaled(random: np.random.Generator, rows: int) -> Floats:
    scale: float = 10.0 ** random.integers(-170, 201)
    return random.standard_normal(rows) * scale


def mixed(random: np.random.Generator, rows: int) -> Floats:
    numbers: Floats = random.standard_normal(rows) * 10.0 ** random.integers(-170, 201, rows)
    return numbers


def ticks(random: np.random.Generator, rows: int) -> Floats:
    return np.round(random.standard_normal(rows) * 1.5) / 100 + 1e7


def steps(random: np.random.Generator, rows: int) -> Floats:
    return np.repeat(random.standard_normal(rows), random.integers(1, 9, rows))[:rows]


def nearly_still(random: np.random.Generator, rows: int) -> Floats:
    x = np.full(rows, 1.3595)
    x[random.random(rows) < 0.2] = np.nextafter(1.3595, 2)
    return x


KINDS: tuple[Kind, ...] = (walk, spiked, scaled, mixed, ticks, steps, nearly_still)


def hostile(seed: int) -> Floats:
    """Series of every kind side by side; in every second history some values of a half are missing."""
    random = np.random.default_rng(seed)
    X = np.stack([KINDS[k](random, ROWS) for k in random.integers(0, len(KINDS), SERIES)], axis=1)
    if seed % 2:
        holes = random.random(X.shape) < 0.15
        holes[:, : SERIES // 2] = False
        X[holes] = np.nan
        X[(random.random(X.shape) < 0.01) & holes.any(axis=0)] = np.inf
    return X


def answers(engine: Engine, X: Any, plan: Rolling, **options: Any) -> NDArray[Any]:
    wanted = Wanted(**options)
    sequence = engine.sequence(X, plan, wanted)
    out = np.empty((len(plan), *sequence.shape), wanted.dtype)
    sequence.write(out)
    return out


@pytest.mark.parametrize("seed", range(BATCHES))
def test_hostile_series_are_right_within_1e_9_of_the_window(
    opencl_engine: Engine, numpy_engine: Engine, seed: int
) -> None:
    X, window = hostile(seed), (3, 5, 8, 13)[seed % 4]
    plan = Rolling.by_rows(ROWS, window, step=1 + seed % 3)
    found = {
        (statistic, engine.name): answers(engine, X, plan, statistic=statistic)
        for statistic in ("covariance", "correlation")
        for engine in (opencl_engine, numpy_engine)
    }
    for k, (first, last) in enumerate(zip(plan.first, plan.last, strict=True)):
        columns = X[first : last + 1].T.tolist()
        for i in range(SERIES):
            j = (i + 1) % SERIES
            covariance, share, correlation = exactly(columns[i], columns[j])
            for (statistic, name), matrices in found.items():
                value = matrices[k, i, j]
                where = f"{statistic} of {name}, series {i} and {j}, rows {first} to {last}"
                right = covariance if statistic == "covariance" else correlation
                if np.isnan(right) or np.isinf(right):
                    assert np.array_equal(value, right, equal_nan=True), f"{where}: {value} for {right}"
                else:
                    limit = max(share, 5e-315) if statistic == "covariance" else 1.0
                    assert abs(value - right) <= 1e-9 * limit, f"{where}: {value} for {right}"


def exactly(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """The covariance, what its error is a share of, and the correlation."""
    found = exact.sums(x, y)
    if found is None or found[0] < 2:
        return np.nan, np.nan, np.nan
    n, product, *squares = found
    with mpmath.workdps(40):
        root = mpmath.sqrt(
            mpmath.mpf(squares[0].numerator)
            / squares[0].denominator
            * mpmath.mpf(squares[1].numerator)
            / squares[1].denominator
        )
        value = mpmath.mpf(product.numerator) / product.denominator
        correlation = float(value / root) if root else np.nan
        return float(value / (n - 1)), float(root / (n - 1)), correlation


@pytest.mark.parametrize("gaps", [0.0, 0.1])
@pytest.mark.parametrize("window", [2, 10, 60, 500])
def test_ordinary_history_gives_what_pandas_gives(engine: Engine, window: int, gaps: float) -> None:
    random = np.random.default_rng(window)
    X = 0.01 * random.standard_normal((300, 6))
    X[random.random(X.shape) < gaps] = np.nan
    plan, least = Rolling.by_rows(300, window), min(window, 3)
    rolling = pd.DataFrame(X).rolling(window, min_periods=least)
    for statistic, frame in (("covariance", rolling.cov()), ("correlation", rolling.corr())):
        found = answers(engine, X, plan, statistic=statistic, min_periods=least)
        right = frame.to_numpy().reshape(found.shape)
        # a correlation of two rows is 1 or -1, which pandas misses by the rounding of its updates
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12 if statistic == "covariance" else 1e-7)


@pytest.mark.parametrize("window", [5, 60, 400])
def test_float32_correlations_of_prices_of_any_level_are_right_to_1e_6(engine: Engine, window: int) -> None:
    random = np.random.default_rng(4)
    levels, cents = np.array([1.1, 2400, 1e5, 1e7]), np.array([1e-5, 0.01, 0.01, 0.01])
    prices = levels + cents * random.integers(-3, 4, (500, 4)).cumsum(axis=0)
    plan = Rolling.by_rows(500, window, step=50)
    for X in (prices, prices.astype(np.float32)):
        found = answers(engine, X, plan, statistic="correlation", dtype=np.dtype(np.float32))
        assert found.dtype == np.float32
        for k, (first, last) in enumerate(zip(plan.first, plan.last, strict=True)):
            columns = X[first : last + 1].astype(np.float64).T.tolist()
            for i in range(4):
                for j in range(i):
                    right = exact.correlation(columns[i], columns[j])
                    assert found[k, i, j] == pytest.approx(right, rel=0, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_scale_shift_order_and_more_columns_change_nothing(engine: Engine, gaps: float) -> None:
    random = np.random.default_rng(6)
    X = random.standard_normal((80, 7)).cumsum(axis=0)
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(80, 12)
    right = answers(engine, X, plan, statistic="correlation", min_periods=4)
    moved = answers(engine, X * 2.0**40 - 3.0, plan, statistic="correlation", min_periods=4)
    np.testing.assert_allclose(moved, right, rtol=0, atol=1e-10)
    order = random.permutation(7)
    turned = answers(engine, X[:, order], plan, statistic="correlation", min_periods=4)
    np.testing.assert_allclose(turned, right[:, order][:, :, order], rtol=0, atol=1e-12)
    wide = np.concatenate((X, random.standard_normal((80, 4)) * 1e9), axis=1)
    more = answers(engine, wide, plan, statistic="correlation", min_periods=4)
    np.testing.assert_allclose(more[:, :7, :7], right, rtol=0, atol=1e-12)
