"""The careful routine against exact fractions, on what makes every fast path give up."""

from __future__ import annotations

import math

import exact
import numpy as np
import pytest

from mtbridge.compute import careful
from mtbridge.compute.careful import careful_pairs
from mtbridge.matrix import Matrix

UPPER = np.triu_indices(4)
POOL = [
    0.0,
    0.1,
    -1e200,
    1e200,
    5e-324,
    1e-170,
    -1e-170,
    1e9,
    1e9 + 1e-6,
    1.7e308,
    -1.7e308,
    math.nan,
    math.nan,
]


def check(X: Matrix, Y: Matrix, pairs: tuple[np.ndarray, np.ndarray]) -> None:
    found = careful_pairs(X, Y, pairs)
    C, R = found.covariance(), found.correlation()
    for p, (i, j) in enumerate(zip(*pairs, strict=True)):
        x, y = X[:, i].astype(float), Y[:, j].astype(float)
        assert found.n[p] == len(exact.common_rows(x, y))
        right = exact.correlation(x, y)
        assert math.isnan(right) == math.isnan(R[p])
        assert math.isnan(right) or abs(R[p] - right) <= 4e-16
        right = exact.covariance(x, y)
        assert math.isnan(right) == math.isnan(C[p])
        if 1e-300 < abs(right) < 1e300:
            assert abs(C[p] - right) <= 1e-14 * exact.scale(x, y) / (found.n[p] - 1)
        elif right == 0:
            assert C[p] == 0


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_any_magnitudes_side_by_side_are_exact(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    X = random.choice(POOL, (rows, 4))
    check(X, X, UPPER)


@pytest.mark.parametrize("seed", range(20))
def test_inf_makes_its_pair_nan_and_no_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.choice([1.0, 2.5, 4.0, math.inf, -math.inf, math.nan], (5, 4))
    check(X, X, UPPER)


def test_a_tiny_range_on_the_rows_of_one_pair_keeps_its_digits_beside_a_vast_one() -> None:
    gap = math.nan
    X = np.array(
        [[1e200, gap, 1.0], [-1e200, gap, 2.0], [1e-170, 3.0, 5.0], [2e-170, 1.0, 4.0], [4e-170, 2.0, 4.5]]
    )
    found = careful_pairs(X, X, (np.array([0, 0]), np.array([1, 2])))
    assert found.correlation()[0] == pytest.approx(exact.correlation(X[:, 0], X[:, 1]), rel=1e-15)
    assert found.covariance()[0] == pytest.approx(exact.covariance(X[:, 0], X[:, 1]), rel=1e-15)
    assert found.correlation()[1] == pytest.approx(exact.correlation(X[:, 0], X[:, 2]), rel=1e-15)
    assert found.left.exponent[0] < -500 < 500 < found.left.exponent[1]


@pytest.mark.parametrize("value", [0.1, 1.81, 1e9 + 0.1, 1.7e308, 5e-324, 0.0])
def test_a_constant_has_squares_and_comoments_of_exactly_0(value: float) -> None:
    X = np.column_stack([np.full(1448, value), np.random.default_rng(0).standard_normal(1448)])
    X[::7, 0] = np.nan
    found = careful_pairs(X, X, (np.array([0, 0]), np.array([0, 1])))
    assert (found.left.squares == 0).all()
    assert (found.comoment == 0).all()
    assert found.right.squares[1] > 0


def test_columns_of_two_matrices_and_of_float32_are_paired() -> None:
    random = np.random.default_rng(1)
    X = (2400 + random.standard_normal((50, 3))).astype(np.float32)
    Y = random.standard_normal((50, 2))
    Y[random.random(Y.shape) < 0.3] = np.nan
    check(X, Y, (np.array([2, 0, 1, 2]), np.array([1, 1, 0, 0])))


def test_more_pairs_than_are_worked_on_at_a_time_and_repeated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(careful, "ELEMENTS", 25)
    X = np.random.default_rng(2).standard_normal((10, 6))
    X[3, 2] = X[4, 5] = np.nan
    check(X, X, (np.array([0, 5, 2, 2, 3, 5, 5]), np.array([1, 5, 2, 5, 0, 2, 2])))


def test_no_pairs_and_no_rows_are_empty() -> None:
    none = np.array([], np.intp)
    assert careful_pairs(np.ones((3, 2)), np.ones((3, 2)), (none, none)).shape == (0,)
    found = careful_pairs(np.ones((0, 2)), np.ones((0, 2)), (np.array([0]), np.array([1])))
    assert found.n.tolist() == [0]
    assert np.isnan(found.covariance(0)).all()
