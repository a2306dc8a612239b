"""What users write by hand in numpy, pandas or polars where no function does it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def masked_products(X: Array, *, correlated: bool) -> Array:
    """Return pairwise covariances, or correlations, by products of zero-filled values and masks."""
    mask = ~np.isnan(X)
    M = mask.astype(X.dtype)
    Z = np.where(mask, X - np.nanmean(X, axis=0), 0.0)
    counts = M.T @ M
    sums = Z.T @ M
    comoment: Array = Z.T @ Z - sums * sums.T / counts
    divisor: Array = counts - 1
    if correlated:
        squares = (Z * Z).T @ M - sums * sums / counts
        divisor = np.sqrt(squares * squares.T)
    return np.divide(comoment, divisor)


def rolling_correlations(X: Array, window: int) -> Array:
    """Return the correlation matrix of each window by a small product of its own."""
    out = np.full((len(X), X.shape[1], X.shape[1]), np.nan)
    for end in range(window, len(X) + 1):
        Z = X[end - window : end]
        Z = Z - Z.mean(axis=0)
        products = Z.T @ Z
        root = np.sqrt(np.diagonal(products))
        out[end - 1] = products / (root[:, np.newaxis] * root)
    return out


def rolling_by_polars(frame: Any, window: int) -> Array:
    """Return the same from polars' expressions for pairs; one triangle is computed, and mirrored."""
    import polars as pl

    names = frame.columns
    first, second = np.triu_indices(len(names))
    found = frame.select(
        pl.rolling_corr(names[i], names[j], window_size=window).alias(f"{i} {j}")
        for i, j in zip(first, second, strict=True)
    ).to_numpy()
    out = np.empty((len(frame), len(names), len(names)))
    out[:, first, second] = out[:, second, first] = found
    return out


def decayed_updates(X: Array, alpha: float) -> Array:
    """Return the exponentially weighted covariance matrix at each row by updates of rank one."""
    rows, columns = X.shape
    out = np.empty((rows, columns, columns))
    mean, comoment = X[0].copy(), np.zeros((columns, columns))
    total = squares = 1.0
    out[0] = np.nan
    for row in range(1, rows):
        total, squares, comoment = (1 - alpha) * total, (1 - alpha) ** 2 * squares, (1 - alpha) * comoment
        difference = X[row] - mean
        comoment += np.outer(difference, difference) * (total / (total + 1))
        total, squares = total + 1, squares + 1
        mean += difference / total
        out[row] = comoment * (total / (total * total - squares))
    return out


def lagged_by_pandas(frame: Any, most: int) -> Array:
    """Return the correlations of all pairs at lags -most to most by `corrwith` of shifted frames."""
    shifted = (frame.shift(lag) for lag in range(-most, most + 1))
    return np.array([[one.corrwith(frame[name]) for name in frame] for one in shifted]).swapaxes(1, 2)


def lagged_by_numpy(X: Array, most: int) -> Array:
    """Return the same by one product a lag."""

    def at(lag: int) -> Array:
        left, right = X[: len(X) - lag], X[lag:]
        left, right = left - left.mean(axis=0), right - right.mean(axis=0)
        scale = np.sqrt(np.outer((left * left).sum(axis=0), (right * right).sum(axis=0)))
        found: Array = left.T @ right / scale
        return found

    forward = [at(lag) for lag in range(most + 1)]
    return np.array([found.T for found in forward[:0:-1]] + forward)
