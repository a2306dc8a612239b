"""What must hold of every correlation matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbridge.compute import Engine, operations
from mtbridge.matrix import Matrix

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
ANY_PANEL = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=FINITE)
FEW_LEVELS = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 0.1, 1.81, -1e300, 1e300, 5e-324, 1e-170, 1e9]),
)
NARROW = arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 5)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(X=st.one_of(ANY_PANEL, FEW_LEVELS, NARROW))
def test_any_finite_panel_gives_a_proper_correlation_matrix(engine: Engine, X: Matrix) -> None:
    R = operations.correlation(X, engine=engine).matrix
    varies = X.min(axis=0) < X.max(axis=0)
    assert R.dtype == X.dtype
    assert np.array_equal(R, R.T, equal_nan=True)
    assert (np.diagonal(R)[varies] == 1).all()
    assert np.isnan(R[~varies]).all()
    inner = R[np.ix_(varies, varies)]
    assert (np.abs(inner) <= 1).all(), "NaN or outside the range"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(X=FEW_LEVELS, power=st.sampled_from([-500, -3, 1, 400]))
def test_a_power_of_two_changes_no_correlation(engine: Engine, X: Matrix, power: int) -> None:
    small = X[:, (np.abs(X) < 1e10).all(axis=0) & (np.abs(X)[:, :] != 5e-324).all(axis=0)]
    scaled = np.ldexp(small, power)
    # only where nothing of the data itself is lost below the smallest float
    small, scaled = (part[:, (np.ldexp(scaled, -power) == small).all(axis=0)] for part in (small, scaled))
    if not small.size:
        return
    one = operations.correlation(small, engine=engine).matrix
    other = operations.correlation(scaled, engine=engine).matrix
    assert np.allclose(one, other, rtol=0, atol=1e-13, equal_nan=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), columns=st.integers(2, 6), rows=st.integers(2, 40))
def test_the_order_of_columns_only_reorders(engine: Engine, seed: int, columns: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns))
    order = random.permutation(columns)
    one = operations.correlation(X, engine=engine).matrix
    other = operations.correlation(X[:, order], engine=engine).matrix
    assert np.allclose(one[np.ix_(order, order)], other, rtol=0, atol=1e-14)
