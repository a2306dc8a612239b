"""The newest matrix alone against the last of all of them, on input that loses digits elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbridge.compute import Engine
from mtbridge.compute.decay import Decay
from mtbridge.compute.newest import newest_matrix, weights_of
from mtbridge.compute.sequence import Statistic, Wanted
from mtbridge.compute.windows import Rolling

VALUES = [0.0, 0.1, 1.0, -1.0, 3.0, 1e8, 1e8 + 1, 1e12, -2.5e-3, 1e-170, 3e-170, 1e200, -7e199]
tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 4)),
    elements=st.sampled_from([*VALUES, math.nan, math.inf]),
)


def plans(rows: int, alpha: float, window: int, adjust: bool) -> list[Rolling | Decay]:
    times = np.cumsum(np.arange(1, rows + 1, dtype=np.int64))
    return [
        Rolling.by_rows(rows, window),
        Decay.expanding(rows),
        Decay.exponential(rows, alpha, adjust=adjust),
        Decay.by_time(times, 3.0),
    ]


# the covariance of the last two columns is 0 beside deviations of 1e200
THIRD, FOURTH = [1, 0, 1, 0, 0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
APART = 1e200 * np.column_stack([np.ones(10), np.ones(10), THIRD, FOURTH])
# the variance of the first column is 1e-342, its covariance with the second 1e-176
FADED = np.full((11, 2), 1e-170)
FADED[0, 0], FADED[2, 1] = 0.0, 0.1


def last_of_all(engine: Engine, X: Any, plan: Rolling | Decay, wanted: Wanted) -> Any:
    sequence = engine.sequence(X, plan, wanted)
    out = np.empty((sequence.count, *sequence.shape), wanted.dtype)
    sequence.write(out)
    return out[-1]


@pytest.mark.parametrize("statistic", ["covariance", "correlation", "beta"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    X=tables,
    alpha=st.sampled_from([0.01, 0.3, 0.9]),
    window=st.integers(1, 9),
    adjust=st.booleans(),
    ddof=st.integers(0, 2),
)
@example(X=APART, alpha=0.01, window=1, adjust=False, ddof=0)
@example(X=FADED, alpha=0.01, window=1, adjust=False, ddof=0)
def test_it_is_the_last_of_all(
    numpy_engine: Engine,
    statistic: Statistic,
    X: Any,
    alpha: float,
    window: int,
    adjust: bool,
    ddof: int,
) -> None:
    for plan in plans(len(X), alpha, window, adjust):
        # other than 0 and 1 is for windows whose rows are counted
        counted = isinstance(plan, Rolling) or plan.counted
        wanted = Wanted(statistic, ddof=ddof if counted else min(ddof, 1))
        right = last_of_all(numpy_engine, X, plan, wanted)
        found = newest_matrix(X, plan, wanted, numpy_engine)
        assert found.shape == right.shape
        np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
        scale = 1.0
        if statistic == "covariance":
            # a variance below the range is there all the same, and its covariances are not below it
            spread = np.sqrt(np.fmax(np.diagonal(right), np.finfo(float).tiny))
            with np.errstate(all="ignore"):
                scale = np.outer(spread, spread)
                # a pair's own rows may spread further than those of its columns
                scale = np.fmax(scale, np.abs(right))
        elif statistic == "beta":
            scale = np.abs(right)
        finite = np.isfinite(right)
        infinite = np.isinf(right)
        if statistic == "covariance":
            # one that is near 0 beside deviations past the range has either sign there
            infinite &= np.eye(len(right), dtype=bool)
        np.testing.assert_array_equal(found[infinite], right[infinite])
        with np.errstate(all="ignore"):
            off = np.abs(found - right) <= 1e-10 * scale
        assert off[finite].all(), (plan, found, right)


def test_weights_are_those_that_age_gives_them() -> None:
    np.testing.assert_allclose(weights_of(Decay.exponential(4, 0.5)), [0.125, 0.25, 0.5, 1])
    np.testing.assert_allclose(weights_of(Decay.exponential(4, 0.5, adjust=False)), [0.125, 0.125, 0.25, 0.5])
    np.testing.assert_allclose(weights_of(Decay.by_time(np.array([0, 1, 3]), 1.0)), [0.125, 0.25, 1])
    assert weights_of(Decay.expanding(0)).size == 0
    assert weights_of(Decay.expanding(1)).tolist() == [1.0]


def test_packed_rows_of_one_column_and_float32_come_as_wanted(numpy_engine: Engine) -> None:
    X = np.random.default_rng(0).standard_normal((30, 4))
    for plan in plans(30, 0.2, 10, True):
        for wanted in (
            Wanted("correlation", packed=True),
            Wanted("covariance", left=(2,)),
            Wanted("covariance", dtype=np.dtype(np.float32)),
            Wanted("beta", left=(1,)),
            Wanted("covariance", min_periods=31),
        ):
            found = newest_matrix(X, plan, wanted, numpy_engine)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, last_of_all(numpy_engine, X, plan, wanted), rtol=1e-6)
