"""The Python functions against pandas on ordinary tables, and what must not change an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mtbridge
from mtbridge.compute import Engine

few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["numpy", "opencl"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(f"{request.param}_engine")
    return found


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Returns of a few symbols, of a common factor, with gaps and late listings, at irregular times."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, 60)), draw(st.integers(1, 9))
    values = random.standard_normal((rows, columns)) + random.standard_normal((rows, 1))
    values[random.random(values.shape) < draw(st.sampled_from([0.0, 0.05, 0.4]))] = np.nan
    for column in range(columns):
        values[: draw(st.sampled_from([0, 0, 0, rows // 2])), column] = np.nan
    stamps = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.cumsum(random.integers(1, 90, rows)), unit="min")
    return pd.DataFrame(values, stamps, [f"S{number}" for number in range(columns)])


def equal(found: Any, right: Any) -> None:
    pd.testing.assert_frame_equal(found, right, rtol=1e-9, atol=1e-11)


@few
@given(frame=tables(), window=st.integers(1, 40), least=st.integers(2, 5), ddof=st.integers(0, 2))
def test_rolling_rows_equal_pandas(
    engine: Engine, frame: pd.DataFrame, window: int, least: int, ddof: int
) -> None:
    least = min(window, max(least, ddof + 1))
    windows = mtbridge.rolling(frame, window, min_periods=least, engine=engine)
    if window > ddof:
        equal(windows.covariance(ddof=ddof), frame.rolling(window, least).cov(ddof=ddof))
    equal(windows.correlation(), frame.rolling(window, least).corr())


@few
@given(frame=tables(), minutes=st.integers(1, 3000), least=st.integers(2, 5))
def test_rolling_times_equal_pandas(engine: Engine, frame: pd.DataFrame, minutes: int, least: int) -> None:
    window = f"{minutes}min"
    windows = mtbridge.rolling(frame, window, min_periods=least, engine=engine)
    equal(windows.covariance(), frame.rolling(window, least).cov())
    equal(windows.correlation(), frame.rolling(window, least).corr())


@few
@given(
    frame=tables(),
    # larger ones leave one row nearly all the weight after a gap, where pandas' correction of bias cancels
    alpha=st.floats(0.01, 0.3),
    adjust=st.booleans(),
    ignore_na=st.booleans(),
    bias=st.booleans(),
)
def test_ewm_equals_pandas(
    engine: Engine, frame: pd.DataFrame, alpha: float, adjust: bool, ignore_na: bool, bias: bool
) -> None:
    options: dict[str, Any] = {
        "alpha": alpha,
        "adjust": adjust,
        "ignore_na": ignore_na,
        "min_periods": 2,
    }
    found, theirs = mtbridge.ewm(frame, engine=engine, **options), frame.ewm(**options)
    equal(found.covariance(bias=bias), theirs.cov(bias=bias))
    equal(found.correlation(), theirs.corr())


@few
@given(frame=tables(), least=st.integers(2, 20))
def test_whole_matrices_equal_pandas(engine: Engine, frame: pd.DataFrame, least: int) -> None:
    found = mtbridge.covariance(frame, min_periods=least, engine=engine)
    equal(found, frame.cov(min_periods=least))
    equal(mtbridge.correlation(frame, min_periods=least, engine=engine), frame.corr(min_periods=least))


@few
@given(frame=tables(), seed=st.integers(0, 99), level=st.sampled_from([-1e4, 0.0, 1.1, 2400.0, 1e6]))
def test_neither_order_nor_scale_nor_level_nor_other_symbols_change_a_pair(
    engine: Engine, frame: pd.DataFrame, seed: int, level: float
) -> None:
    random = np.random.default_rng(seed)
    for correlations in (
        lambda data: mtbridge.correlation(data, engine=engine),
        lambda data: mtbridge.rolling(data, 7, min_periods=3, engine=engine).correlation(),
        lambda data: mtbridge.ewm(data, span=7, min_periods=3, engine=engine).correlation(),
    ):
        right = correlations(frame)
        order = list(random.permutation(frame.columns))
        turned = correlations(frame[order])[frame.columns].reindex(right.index)
        pd.testing.assert_frame_equal(turned, right, rtol=1e-11, atol=1e-12)
        # powers of two are exact
        scaled = correlations(frame * 2.0 ** random.integers(-300, 300, frame.shape[1]))
        pd.testing.assert_frame_equal(scaled, right, rtol=1e-11, atol=1e-12)
        # a level rounds the values, by at most 1.2e-10 at 1e6
        pd.testing.assert_frame_equal(correlations(frame + level), right, rtol=0, atol=1e-7)
        wider = correlations(frame.assign(other=random.standard_normal(len(frame))))
        wider = wider[frame.columns]
        wider = wider[wider.index.get_level_values(-1) != "other"]
        pd.testing.assert_frame_equal(wider, right, rtol=1e-12, atol=1e-13, check_index_type=False)
