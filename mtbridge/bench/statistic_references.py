"""Statistics of a pair or a window in long double: what the benchmark's errors are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pair(x: Array, y: Array, *, correlated: bool) -> float:
    """Return the covariance or the correlation of two columns on the rows that both have."""
    both = ~(np.isnan(x) | np.isnan(y))
    a, b = x[both].astype(np.longdouble), y[both].astype(np.longdouble)
    a, b = a - a.mean(), b - b.mean()
    product = (a * b).sum()
    return float(product / np.sqrt((a * a).sum() * (b * b).sum()) if correlated else product / (len(a) - 1))


def ranked_pair(x: Array, y: Array) -> float:
    """Return Spearman's correlation of two columns, ranked on the rows that both have; no ties."""
    both = ~(np.isnan(x) | np.isnan(y))
    return pair(ranks(x[both]), ranks(y[both]), correlated=True)


def ranks(x: Array) -> Array:
    """Return the ranks of different numbers."""
    order = np.argsort(x)
    found = np.empty(len(x))
    found[order] = np.arange(len(x))
    return found


def window_correlation(X: Array) -> Array:
    """Return the correlation matrix of the rows of `X`."""
    Z = X.astype(np.longdouble)
    Z = Z - Z.mean(axis=0)
    products = Z.T @ Z
    root = np.sqrt(np.diagonal(products))
    found: Array = (products / np.outer(root, root)).astype(np.float64)
    return found


def decayed_covariance(X: Array, alpha: float) -> Array:
    """Return the unbiased covariance matrix of the rows of `X`, weighted by (1 - alpha) ** age."""
    weights = (1 - np.longdouble(alpha)) ** np.arange(len(X) - 1, -1, -1)
    total = weights.sum()
    Z = X.astype(np.longdouble)
    Z = Z - weights @ Z / total
    bias = total**2 / (total**2 - (weights**2).sum())
    found: Array = ((Z * weights[:, np.newaxis]).T @ Z / total * bias).astype(np.float64)
    return found


def lagged_correlation(X: Array, lag: int) -> Array:
    """Return the correlations of column i at row t - lag with column j at row t."""
    if lag < 0:
        return lagged_correlation(X, -lag).T
    left, right = (Z.astype(np.longdouble) for Z in (X[: len(X) - lag], X[lag:]))
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    scale = np.sqrt(np.outer((left**2).sum(axis=0), (right**2).sum(axis=0)))
    found: Array = (left.T @ right / scale).astype(np.float64)
    return found
