"""`PairMoments` and the operations on them: counts, options, merging, and complete data as before."""

from __future__ import annotations

import math
from typing import Any

import exact
import numpy as np
import pytest

from mtbridge.compute import Engine, operations
from mtbridge.compute.masked import masked_pair_moments
from mtbridge.compute.moments import Moments
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import Matrix


def with_gaps(rows: int = 60, columns: int = 5, seed: int = 0) -> Matrix:
    random = np.random.default_rng(seed)
    X = 100 + random.standard_normal((rows, columns)).cumsum(axis=0)
    X[random.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 300])
def test_complete_data_are_answered_bit_for_bit_as_by_moments(engine: Engine, rows: int, dtype: str) -> None:
    X = (1e5 + np.random.default_rng(1).standard_normal((rows, 7)).cumsum(axis=0)).astype(dtype)
    X[:, 3] = 1.81
    X[:, 5] = X[:, 4]
    plain = engine.moments(X)
    pairs = PairMoments.of(plain)
    unknown = PairMoments(np.array(pairs.n), pairs.comoment, pairs.left, pairs.right)
    for ddof in (0, 1, 3):
        assert np.array_equal(pairs.covariance(ddof), plain.covariance(ddof), equal_nan=True)
        assert np.array_equal(unknown.covariance(ddof), plain.covariance(ddof), equal_nan=True)
    assert np.array_equal(pairs.correlation(), plain.correlation(), equal_nan=True)
    assert np.array_equal(unknown.correlation(), plain.correlation(), equal_nan=True)
    found = engine.pair_moments(X)
    assert np.array_equal(found.covariance(), plain.covariance(), equal_nan=True)
    assert np.array_equal(found.correlation(), plain.correlation(), equal_nan=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (31, 23), (33, 25), (70, 65), (200, 49)])
def test_counts_are_the_rows_that_both_have(engine: Engine, rows: int, columns: int, order: Any) -> None:
    X = np.asarray(with_gaps(rows, columns, seed=rows), order=order)
    present = (~np.isnan(X)).astype(np.int64)
    found = operations.covariance(X, engine=engine)
    assert found.counts is not None
    assert found.counts.dtype == np.int64
    assert np.array_equal(found.counts, present.T @ present)
    assert found.rows == rows


def test_ddof_is_honoured_though_another_column_has_a_gap(engine: Engine) -> None:
    X = np.array([[1.0, 2.0, 5.0], [2.0, 1.0, np.nan], [4.0, 5.0, 1.0], [3.0, 9.0, 2.0]])
    for ddof in (0, 1, 2):
        found = operations.covariance(X, engine=engine, ddof=ddof).matrix
        assert found[0, 1] == pytest.approx(exact.covariance(X[:, 0], X[:, 1], ddof=ddof), rel=1e-14)


def test_a_correlation_takes_means_and_variances_of_the_pairs_rows(engine: Engine) -> None:
    gap = np.nan
    X = np.array([[1, 9], [2, gap], [gap, 7], [4, 6], [5, 5]])
    assert operations.correlation(X, engine=engine).matrix[0, 1] == -1


@pytest.mark.parametrize("min_periods", [0, 1, 3, 4, 5, 100])
def test_min_periods_is_of_the_pair_and_of_complete_data_too(engine: Engine, min_periods: int) -> None:
    X = np.array([[1.0, 2.0], [2.0, 1.0], [4.0, 5.0], [3.0, np.nan]])
    for data, rows in ((X, [[4, 3], [3, 3]]), (X[:3], [[3, 3], [3, 3]])):
        there = np.array(rows) >= min_periods
        for operation in (operations.covariance, operations.correlation):
            found = operation(data, engine=engine, min_periods=min_periods)
            assert np.array_equal(~np.isnan(found.matrix), there)
            assert np.array_equal(found.counts, rows)


def test_dropped_rows_are_those_with_any_gap(engine: Engine) -> None:
    X = with_gaps()
    complete = X[~np.isnan(X).any(axis=1)]
    assert 2 < len(complete) < len(X)
    for operation in (operations.covariance, operations.correlation):
        found = operation(X, engine=engine, missing="drop")
        assert np.array_equal(found.matrix, operation(complete, engine=engine).matrix)
        assert (found.counts == len(complete)).all()
        assert found.rows == len(X)


def test_nothing_but_gaps_and_one_row_are_nan(engine: Engine) -> None:
    X = np.full((5, 3), np.nan)
    assert np.isnan(operations.covariance(X, engine=engine, ddof=0, min_periods=0).matrix).all()
    assert np.isnan(operations.correlation(X, engine=engine, min_periods=0).matrix).all()
    assert np.isnan(operations.covariance(X, engine=engine, missing="drop").matrix).all()
    X[2] = [1.0, 2.0, np.inf]
    found = operations.covariance(X, engine=engine, ddof=0).matrix
    assert (found[:2, :2] == 0).all()
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize("value", [-1, 1.5, True, None, "2"])
def test_a_min_periods_that_is_no_count_is_refused(numpy_engine: Engine, value: Any) -> None:
    with pytest.raises(OptionError, match=f"min_periods is {value!r}"):
        operations.covariance(np.eye(3), engine=numpy_engine, min_periods=value)
    with pytest.raises(OptionError, match=f"min_periods is {value!r}"):
        operations.correlation(np.eye(3), engine=numpy_engine, min_periods=value)


def test_another_word_for_missing_is_refused(numpy_engine: Engine) -> None:
    with pytest.raises(OptionError, match=r"missing is 'skip'.*'pairwise', 'drop' or 'error'"):
        operations.covariance(np.eye(3), engine=numpy_engine, missing="skip")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_of_two_matrices_are_paired(engine: Engine, dtype: str) -> None:
    X, Y = with_gaps(columns=4, seed=2), with_gaps(columns=3, seed=3)
    X[:, 1], Y[7, 2] = np.arange(60), np.inf
    X, Y = X.astype(dtype), Y.astype(dtype)
    found = masked_pair_moments(engine, X, Y)
    C, R = found.covariance(2, 3), found.correlation(3)
    assert C.shape == R.shape == found.n.shape == (4, 3)
    tolerance = 1e-6 if dtype == "float32" else 1e-13
    for i, x in enumerate(X.T.astype(float)):
        for j, y in enumerate(Y.T.astype(float)):
            assert found.n[i, j] == len(exact.common_rows(x, y))
            assert R[i, j] == pytest.approx(exact.correlation(x, y), abs=tolerance, nan_ok=True)
            error = abs(C[i, j] - exact.covariance(x, y, ddof=2))
            assert (
                math.isnan(exact.covariance(x, y)) or error <= tolerance * exact.scale(x, y) / found.n[i, j]
            )


def test_no_rows_of_two_matrices_have_no_moments(numpy_engine: Engine) -> None:
    found = masked_pair_moments(numpy_engine, np.ones((0, 2)), np.ones((0, 3)))
    assert found.n.tolist() == [[0] * 3] * 2
    assert np.isnan(found.covariance(0)).all()
    assert np.isnan(found.correlation()).all()


# Merging


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1.0, 1e200])
def test_merged_blocks_of_rows_equal_the_whole(engine: Engine, scale: float) -> None:
    X = with_gaps() / 1000 * scale
    X[:20, 1] = X[20:, 2] = np.nan
    merged = engine.pair_moments(X[:7])
    for start, end in [(7, 8), (8, 30), (30, 60)]:
        merged = merged.merge(engine.pair_moments(X[start:end]))
    whole = engine.pair_moments(X)
    assert np.array_equal(merged.n, whole.n)
    assert np.allclose(merged.correlation(), whole.correlation(), rtol=0, atol=1e-12, equal_nan=True)
    assert np.allclose(merged.covariance(), whole.covariance(), rtol=1e-11, atol=0, equal_nan=True)
    assert np.array_equal(merged.comoment, merged.comoment.T)


def test_a_constant_stays_one_through_a_merge_and_two_of_them_differ(numpy_engine: Engine) -> None:
    X = with_gaps(30)
    X[:, 0] = 0.1
    X[:15, 1], X[15:, 1] = 0.1, 0.7
    X[4, 0] = X[20, 1] = np.nan
    merged = numpy_engine.pair_moments(X[:15]).merge(numpy_engine.pair_moments(X[15:]))
    assert (merged.covariance()[0] == 0).all()
    assert np.isnan(merged.correlation()[0]).all()
    assert merged.covariance()[1, 1] == pytest.approx(exact.covariance(X[:, 1], X[:, 1]), rel=1e-14)


def test_inf_in_one_block_is_nan_in_the_whole_for_the_pairs_that_meet_it(numpy_engine: Engine) -> None:
    X = with_gaps(30)
    X[3, 1], X[3, 2:] = np.inf, np.nan
    merged = numpy_engine.pair_moments(X[:15]).merge(numpy_engine.pair_moments(X[15:]))
    whole = numpy_engine.pair_moments(X).covariance()
    assert np.isnan(whole[1, 1])
    assert np.allclose(merged.covariance(), whole, rtol=1e-12, equal_nan=True)


def test_merged_pairs_of_complete_blocks_are_merged_moments(numpy_engine: Engine) -> None:
    X = np.random.default_rng(4).standard_normal((40, 3))
    one, other = numpy_engine.moments(X[:10]), numpy_engine.moments(X[10:])
    merged = PairMoments.of(one).merge(PairMoments.of(other))
    assert np.array_equal(merged.covariance(), one.merge(other).covariance())


def test_pairs_of_other_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(3, 3\) and \(2, 2\)"):
        PairMoments.of(Moments.empty(3)).merge(PairMoments.of(Moments.empty(2)))
