"""Products of any shape, on the device and on the host, against extended precision."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtbridge.compute import Engine

SIZE = st.integers(0, 70)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=SIZE,
    inner=SIZE,
    columns=SIZE,
    dtype=st.sampled_from(["float32", "float64"]),
    orders=st.tuples(st.sampled_from("CF"), st.sampled_from("CF")),
    seed=st.integers(0, 2**32),
)
def test_a_product_of_any_shape_is_within_its_bound(
    engine: Engine, rows: int, inner: int, columns: int, dtype: str, orders: tuple[str, str], seed: int
) -> None:
    random = np.random.default_rng(seed)
    A = np.array(random.standard_normal((rows, inner)), dtype, order=orders[0])  # type: ignore[call-overload]
    B = np.array(random.standard_normal((inner, columns)), dtype, order=orders[1])  # type: ignore[call-overload]
    bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    assert (np.abs(engine.multiply(A, B) - exact) <= bound).all()
    G = engine.gram(B)
    bound = inner * np.finfo(dtype).eps * (np.abs(B).astype(float).T @ np.abs(B).astype(float))
    assert (np.abs(G - B.astype(np.longdouble).T @ B.astype(np.longdouble)) <= bound).all()
    assert np.array_equal(G, G.T)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 40), columns=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_small_whole_numbers_multiply_exactly(engine: Engine, rows: int, columns: int, seed: int) -> None:
    X = np.random.default_rng(seed).integers(-30, 30, (rows, columns)).astype(np.float32)
    assert np.array_equal(engine.gram(X), X.T @ X)
    assert np.array_equal(engine.multiply(X, X.T), X @ X.T)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 20),
    inner=st.integers(1000, 9000),
    columns=st.integers(1, 20),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 2**32),
)
def test_a_deep_product_is_within_its_bound_and_the_same_every_time(
    engine: Engine, rows: int, inner: int, columns: int, dtype: str, seed: int
) -> None:
    """So deep that the device sums slices of the inner size side by side."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    C = engine.multiply(A, B)
    assert (np.abs(C - A.astype(np.longdouble) @ B.astype(np.longdouble)) <= bound).all()
    assert engine.multiply(A, B).tobytes() == C.tobytes()
    G = engine.gram(B)
    bound = inner * np.finfo(dtype).eps * (np.abs(B).astype(float).T @ np.abs(B).astype(float))
    assert (np.abs(G - B.astype(np.longdouble).T @ B.astype(np.longdouble)) <= bound).all()
    assert G.tobytes() == G.T.copy().tobytes() == engine.gram(B).tobytes()
