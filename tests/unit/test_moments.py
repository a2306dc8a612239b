"""Moments: grown row by row, merged in blocks, and never changed by their use."""

from __future__ import annotations

import numpy as np
import pytest
from given_moments import exact_correlation

from mtbridge.compute import Engine, Moments
from mtbridge.errors import ShapeError


def test_empty_moments_have_no_covariance_and_are_neutral() -> None:
    empty = Moments.empty(3)
    assert np.isnan(empty.covariance()).all()
    assert np.isnan(empty.covariance(0)).all()
    assert np.isnan(empty.correlation()).all()
    one = Moments.of_row(np.array([1.0, 2.0, 3.0]))
    assert empty.merge(one) is one
    assert one.merge(empty) is one
    assert empty.merge(empty).n == 0


def test_moments_of_other_columns_are_refused() -> None:
    with pytest.raises(ShapeError, match="3 and of 2 columns"):
        Moments.empty(3).merge(Moments.empty(2))


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-40, 1.0, 1e40, 1e200, 1e306])
def test_rows_added_one_by_one_equal_the_whole(numpy_engine: Engine, scale: float) -> None:
    X = np.random.default_rng(9).uniform(-1, 1, (30, 3)) * scale
    grown = Moments.empty(3)
    for row in X:
        grown = grown.add_row(row)
    assert grown.n == 30
    assert np.abs(grown.correlation() - exact_correlation(X)).max() < 1e-12
    whole = numpy_engine.moments(X)
    assert np.allclose(grown.covariance(), whole.covariance(), rtol=1e-12, atol=0, equal_nan=True)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1.0, 1e200])
def test_blocks_that_are_constant_each_on_its_own_merge_to_what_varies(
    numpy_engine: Engine, scale: float
) -> None:
    X = np.repeat([[1.0, 5.0], [2.0, 3.0], [4.0, 4.0]], 5, axis=0) * scale
    merged = Moments.empty(2)
    for start in range(0, 15, 5):
        merged = merged.merge(numpy_engine.moments(X[start : start + 5]))
    assert np.abs(merged.correlation() - exact_correlation(X)).max() < 1e-13


def test_a_constant_stays_one_through_any_merge(numpy_engine: Engine) -> None:
    X = np.column_stack([np.full(30, 0.1), np.arange(30.0)])
    merged = Moments.empty(2)
    for start, end in [(0, 7), (7, 8), (8, 30)]:
        merged = merged.merge(numpy_engine.moments(X[start:end]))
    merged = merged.add_row(np.array([0.1, 9.0]))
    assert (merged.covariance()[0] == 0).all()
    assert np.isnan(merged.correlation()[0]).all()


def test_inf_in_one_block_is_nan_in_the_whole_for_its_column_alone(numpy_engine: Engine) -> None:
    X = np.random.default_rng(10).standard_normal((20, 3))
    clean = numpy_engine.moments(X).covariance()
    X[3, 1] = np.inf
    merged = numpy_engine.moments(X[:10]).merge(numpy_engine.moments(X[10:]))
    found = merged.covariance()
    assert np.isnan(found[1]).all()
    assert np.allclose(found[np.ix_([0, 2], [0, 2])], clean[np.ix_([0, 2], [0, 2])], rtol=1e-13)


def test_a_row_with_inf_is_nan_for_its_column_alone() -> None:
    grown = Moments.of_row(np.array([1.0, 2.0]))
    grown = grown.add_row(np.array([np.inf, 3.0])).add_row(np.array([2.0, 5.0]))
    found = grown.covariance()
    assert np.isnan(found[0]).all()
    assert found[1, 1] == pytest.approx(7 / 3)


def test_a_first_row_with_inf_is_nan_for_its_column_alone() -> None:
    grown = Moments.of_row(np.array([np.inf, 2.0])).add_row(np.array([1.0, 3.0]))
    assert np.isnan(grown.covariance()[0]).all()
    assert grown.covariance()[1, 1] == pytest.approx(0.5)
    alone = Moments.of_row(np.array([np.inf, 2.0])).covariance(0)
    assert np.isnan(alone[0]).all()
    assert alone[1, 1] == 0


def test_moments_do_not_change_when_they_are_used(numpy_engine: Engine) -> None:
    one = numpy_engine.moments(np.random.default_rng(11).standard_normal((9, 3)))
    kept = [part.copy() for part in (one.origin, one.exponent, one.mean, one.comoment)]
    one.merge(Moments.of_row(np.array([1e200, 1.0, 1e-200])))
    one.covariance()
    one.correlation()
    for before, after in zip(kept, (one.origin, one.exponent, one.mean, one.comoment), strict=True):
        assert np.array_equal(before, after)


def test_a_row_given_to_moments_may_change_afterwards() -> None:
    row = np.array([1.0, 2.0])
    kept = Moments.of_row(row)
    row[0] = 99
    assert kept.origin[0] == 1
