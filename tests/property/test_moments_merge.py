"""However rows are cut into blocks, the merged moments are those of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mtbridge.compute import Moments, open_engine

ENGINE = open_engine("numpy")

levels = st.sampled_from([0.0, 1.0, -1e5, 1e9, 1e-12])
scales = st.sampled_from([1e-9, 1e-3, 1.0, 1e6])


@st.composite
def panels(draw: st.DrawFn) -> NDArray[np.float64]:
    rows, columns = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = random.standard_normal((rows, columns))
    for column in range(columns):
        X[:, column] = X[:, column] * draw(scales) + draw(levels)
        if draw(st.booleans()):
            # constant in stretches, so that whole blocks do not vary
            X[:, column] = np.repeat(X[:, column], 10)[:rows]
    return X


def merged(X: NDArray[np.float64], cuts: list[int]) -> Moments:
    edges = [0, *sorted(min(cut, len(X)) for cut in cuts), len(X)]
    total = Moments.empty(X.shape[1])
    for start, end in pairwise(edges):
        total = total.merge(ENGINE.moments(X[start:end]))
    return total


def exact(X: NDArray[np.float64]) -> NDArray[np.longdouble]:
    Z = X.astype(np.longdouble)
    Z = Z - Z[0]
    Z = Z - Z.mean(axis=0)
    return Z.T @ Z / (len(X) - 1)


def error(found: NDArray[np.float64], right: NDArray[np.longdouble]) -> float:
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right)))
    return float((np.abs(found - right) / np.where(scale > 0, scale, 1)).max())


@settings(max_examples=150, deadline=None)
@given(X=panels(), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_a_merge_of_blocks_is_the_whole(X: NDArray[np.float64], cuts: list[int]) -> None:
    total = merged(X, cuts)
    whole = ENGINE.moments(X)
    right = exact(X)
    # each rounding of a value moves it by eps * |x|; against a deviation that share is level / deviation
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.abs(X).max(axis=0) / np.sqrt(np.diagonal(right).astype(float))
    amplified = float(np.where(np.isfinite(share), share, 0).max())
    tolerance = 1e-12 + 100 * np.finfo(float).eps * amplified
    assert total.n == len(X)
    assert error(whole.covariance(), right) < tolerance
    assert error(total.covariance(), right) < tolerance
    assert np.array_equal(np.isnan(total.correlation()), np.isnan(whole.correlation()))
    assert np.array_equal(total.comoment, total.comoment.T)


@settings(max_examples=100, deadline=None)
@given(X=panels(), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_a_column_that_never_changes_stays_constant_through_merges(
    X: NDArray[np.float64], cuts: list[int]
) -> None:
    X[:, 0] = X[0, 0]
    total = merged(X, cuts)
    assert (total.covariance()[0] == 0).all()
    assert np.isnan(total.correlation()[0]).all()


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(
        st.tuples(
            st.floats(-1e300, 1e300, allow_nan=False), st.floats(-1e-290, 1e-290, allow_subnormal=False)
        ),
        min_size=2,
        max_size=12,
    ),
    cut=st.integers(0, 12),
)
def test_hostile_magnitudes_merge_without_leaving_the_range(
    values: list[tuple[float, float]], cut: int
) -> None:
    X = np.array(values)
    R = merged(X, [cut]).correlation()
    finite = ~np.isnan(R)
    assert (np.abs(R[finite]) <= 1).all()
    for column in range(2):
        varies = X[:, column].min() < X[:, column].max()
        assert (R[column, column] == 1) if varies else np.isnan(R[column, column])


@settings(max_examples=50, deadline=None)
@given(X=panels())
def test_the_order_of_a_merge_does_not_matter(X: NDArray[np.float64]) -> None:
    half = len(X) // 2
    one, other = ENGINE.moments(X[:half]), ENGINE.moments(X[half:])
    first, second = one.merge(other).covariance(), other.merge(one).covariance()
    scale = np.sqrt(np.outer(np.diagonal(first), np.diagonal(first)))
    assert (np.abs(first - second) <= 1e-9 * np.where(scale > 0, scale, 1)).all()
