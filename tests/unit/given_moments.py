"""Covariances and correlations of whole matrices in exact arithmetic, and how far an answer is from them."""

from __future__ import annotations

from functools import cache

import exact
import numpy as np

from mtbridge.matrix import Matrix


def exact_covariance(X: Matrix, ddof: int = 1) -> Matrix:
    columns = _columns(X)
    return np.array([[_covariance(one, other, ddof) for other in columns] for one in columns])


def exact_correlation(X: Matrix) -> Matrix:
    columns = _columns(X)
    return np.array([[_correlation(one, other) for other in columns] for one in columns])


def relative(found: Matrix, exact: Matrix) -> float:
    """The largest error, as a share of the product of the two standard deviations."""
    scale = np.sqrt(np.diagonal(exact))
    return float((np.abs(found - exact) / scale / scale[:, np.newaxis]).max())


def _columns(X: Matrix) -> list[tuple[float, ...]]:
    return [tuple(column) for column in X.T.tolist()]


# every engine asks for the same pairs
@cache
def _covariance(one: tuple[float, ...], other: tuple[float, ...], ddof: int) -> float:
    return exact.covariance(one, other, ddof=ddof)


@cache
def _correlation(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return exact.correlation(one, other)
